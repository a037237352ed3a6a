"""Work for rule systems: positive rules over numbers, the facts that they read, and the result.

A folder holds `work.json` (rules and relations), `<input>.facts` (tab-separated numbers) and, once
it is known, `closure.npy`: the facts of the output relation, distinct and sorted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.report import Row
from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, Atom, Rule, Variable

Term: TypeAlias = str | int  # the name of a variable, or a number
Pattern: TypeAlias = tuple[str, Sequence[Term]]  # a relation and its terms


@dataclass(frozen=True)
class Work:
    """Rules, each as its head and its body; the relation that has facts, and the one compared."""

    rules: Sequence[tuple[Pattern, Sequence[Pattern]]]
    input: str
    output: str

    @classmethod
    def of(cls, program: Program, dictionary: Dictionary, given: str, wanted: str) -> Work:
        """The rules of a program, with the ids of constants.

        >>> program = Program.parse("[?x, a, ?d] :- [?x, ?p, ?d], top(?d) .")
        >>> Work.of(program, Dictionary(), "triple", "triple").rules
        [(('triple', ('x', 0, 'd')), [('triple', ('x', 'p', 'd')), ('r_top', ('d',))])]
        """

        def pattern(atom: Atom) -> Pattern:
            terms = (
                term.name if isinstance(term, Variable) else dictionary.id(term)
                for term in atom.terms
            )
            return relation(atom.relation), tuple(terms)

        rules = [(pattern(rule.head), [*map(pattern, body(rule))]) for rule in program.rules]
        return cls(rules, given, wanted)

    @classmethod
    def read(cls, folder: Path) -> Work:
        """Read `work.json`."""
        found = json.loads((folder / "work.json").read_text("utf-8"))
        rules = [
            ((head[0], tuple(head[1])), [(name, tuple(terms)) for name, terms in atoms])
            for head, atoms in found["rules"]
        ]
        return cls(rules, found["input"], found["output"])

    def write(self, folder: Path, facts: Ids) -> None:
        """Write `work.json` and the facts."""
        text = json.dumps({"rules": self.rules, "input": self.input, "output": self.output})
        (folder / "work.json").write_text(text, encoding="utf-8")
        table = pa.table({str(place): facts[:, place] for place in range(facts.shape[1])})
        options = csv.WriteOptions(include_header=False, delimiter="\t")
        csv.write_csv(table, folder / f"{self.input}.facts", options)

    def arities(self) -> dict[str, int]:
        """The number of terms of each relation; that of the input comes first."""
        patterns = [atom for head, atoms in self.rules for atom in (head, *atoms)]
        found = {name: len(terms) for name, terms in patterns}
        return {self.input: found[self.input]} | found


def relation(name: str) -> str:
    """A name that is an identifier in every dialect.

    >>> relation("edge"), relation(TRIPLE)
    ('r_edge', 'triple')
    """
    return "triple" if name == TRIPLE else f"r_{name}"


def body(rule: Rule) -> list[Atom]:
    """The atoms of a body."""
    return [part for part in rule.body if isinstance(part, Atom)]


def read_rows(
    path: Path,
    arity: int,
    delimiter: str = "\t",
    skip: Sequence[str] = (),
    after: Sequence[str] = (),
) -> Ids:
    """The distinct rows of a file of numbers, sorted; other columns stand before and after them."""
    names = [f"c{place}" for place in range(arity)]
    table = csv.read_csv(
        path,
        csv.ReadOptions(column_names=[*skip, *names, *after]),
        csv.ParseOptions(delimiter=delimiter),
        csv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(names, pa.uint32())),
    )
    return distinct([table[name].to_numpy() for name in names])


def rows_of(rows: Iterable[Sequence[int]], arity: int) -> Ids:
    """Rows of numbers as an array: distinct and sorted."""
    array = np.array(list(rows), np.uint32).reshape(-1, arity)
    return np.unique(array, axis=0)


def distinct(columns: Sequence[Ids]) -> Ids:
    """Columns as rows, distinct and sorted."""
    order = np.lexsort(columns[::-1])
    rows = np.stack([column[order] for column in columns], axis=1).astype(np.uint32)
    kept = np.ones(len(rows), bool)
    kept[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return rows[kept]


def compared(closure: Ids, folder: Path) -> Row:
    """The size and hash of a closure, and whether it equals the expected one."""
    wanted = np.load(folder / "closure.npy")
    return {
        "facts": len(closure),
        "hash": hashlib.sha256(np.ascontiguousarray(closure, "<u4").tobytes()).hexdigest()[:12],
        "correct": bool(np.array_equal(closure, wanted)),
    }
