"""Soufflé's test cases read as programs of ours: facts, rules, negation, constants and `_`.

The cases come without declarations, so the types of columns are inferred: a column is of numbers
if a number stands in it somewhere, or a variable that also stands in a column of numbers. Any other
column is read as one of symbols, which is right where it is one, and makes no difference where it
is not: no constant of the program is ever compared with its cells.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from corollary.lang.program import Program
from corollary.lang.syntax import XSD, Atom, BodyLiteral, Literal, Negation, Rule, Term, Variable

Column = tuple[str, int]

_TOKEN = re.compile(r'\s+|(?P<token>"[^"\n]*"|-?\d+|\w+|:-|[(),.!])|(?P<other>.)')
_INTEGER = XSD + "integer"


@dataclass(frozen=True)
class Case:
    """A program with its input facts, and all facts that belong into its output relations."""

    program: Program
    outputs: frozenset[str]
    expected: frozenset[Atom]


def load(folder: Path) -> Case:
    """The case in a folder: `program.dl`, `meta.json`, `facts/*.tsv`, `expected/*.tsv`."""
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    statements = list(read_rules((folder / "program.dl").read_text("utf-8")))
    numeric = number_columns(statements)

    def tables(kind: str, relations: Iterable[str]) -> Iterator[Atom]:
        for relation in relations:
            yield from read_table(folder / kind / f"{relation}.tsv", numeric)

    rules = [rule for rule in statements if rule.body]
    explicit = [rule.head for rule in statements if not rule.body]
    return Case(
        Program.of(rules, [*explicit, *tables("facts", meta["inputs"])]),
        frozenset(meta["outputs"]),
        frozenset(tables("expected", meta["outputs"])),
    )


def read_rules(text: str) -> Iterator[Rule]:
    """The rules of a program; facts are rules without a body.

    >>> print(Program.of(read_rules('p(x, "a") :- q(x, _, -1), !r(x).')), end="")
    p(?x, "a") :- q(?x, ?_1, -1), NOT r(?x) .
    """
    tokens = deque(_tokens(text))
    fresh = (Variable(f"_{number}") for number in count(1))
    while tokens:
        head = _atom(tokens, fresh)
        body: list[BodyLiteral] = []
        while tokens.popleft() != ".":  # else ':-' or ','
            negated = tokens[0] == "!"
            if negated:
                tokens.popleft()
            atom = _atom(tokens, fresh)
            body.append(Negation(atom) if negated else atom)
        yield Rule(head, tuple(body))


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        if match["other"]:
            raise ValueError(f"not plain Datalog: {text[match.start() :].splitlines()[0]}")
        if match["token"]:
            yield match["token"]


def _atom(tokens: deque[str], fresh: Iterator[Variable]) -> Atom:
    relation = tokens.popleft()
    terms: list[Term] = []
    while tokens.popleft() != ")":  # else '(' or ','
        terms.append(_term(tokens.popleft(), fresh))
    return Atom(relation, tuple(terms))


def _term(token: str, fresh: Iterator[Variable]) -> Term:
    if token.startswith('"'):
        return Literal(token[1:-1])
    if token.lstrip("-").isdigit():
        return Literal(token, _INTEGER)
    return next(fresh) if token == "_" else Variable(token)


def number_columns(rules: Iterable[Rule]) -> set[Column]:
    """The columns that hold numbers."""
    places: list[tuple[int, Term, Column]] = [
        (number, term, (atom.relation, index))
        for number, rule in enumerate(rules)
        for atom in (rule.head, *(atom for atom, _ in rule.atoms()))
        for index, term in enumerate(atom.terms)
    ]
    numeric = {
        column
        for _, term, column in places
        if isinstance(term, Literal) and term.datatype == _INTEGER
    }
    size = 0
    while len(numeric) > size:
        size = len(numeric)
        variables = {
            (number, term)
            for number, term, column in places
            if isinstance(term, Variable) and column in numeric
        }
        numeric |= {column for number, term, column in places if (number, term) in variables}
    return numeric


def read_table(path: Path, numeric: set[Column]) -> Iterator[Atom]:
    """The facts of a tab-separated file, named as its relation is."""
    for line in path.read_text("utf-8").splitlines():
        cells = enumerate(line.split("\t"))
        yield Atom(
            path.stem,
            tuple(
                Literal(cell, _INTEGER) if (path.stem, index) in numeric else Literal(cell)
                for index, cell in cells
            ),
        )
