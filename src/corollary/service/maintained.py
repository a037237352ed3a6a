"""Queries whose answers are maintained: a basic graph pattern with filters is a rule.

`View` keeps the triples that match the pattern in a knowledge base of its own, whose only rule is
the query. A commit then costs what its matching changes cost, whatever the size of the store. All
other queries, and stores whose derived triples are not listed in their changes, are asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from corollary.core.terms import text_of
from corollary.errors import CorollaryError
from corollary.knowledge_base.base import KnowledgeBase
from corollary.lang.functions import is_function, spelled
from corollary.lang.program import Program
from corollary.lang.substitute import matched
from corollary.lang.syntax import (
    IRI,
    TRIPLE,
    Atom,
    BlankNode,
    BodyLiteral,
    Constant,
    Expression,
    Filter,
    Operation,
    Rule,
    Term,
    Variable,
)
from corollary.query.parse import parse
from corollary.query.syntax.algebra import Expr, Node
from corollary.store.layout import DELETED, INSERTED

_ANSWER = "answer"
# The value of these depends on the request, or on what the pattern leaves unbound.
_NOT_MAINTAINED = {"IRI", "URI", "BNODE"}

Answer = tuple[tuple[str, str], ...]  # pairs of a variable and the text of its term
Change = tuple[str, Atom]  # the kind of a change and a fact


class _Unsuitable(Exception):
    """The query is no basic graph pattern with filters."""


@dataclass(frozen=True)
class Pattern:
    """A query as a rule: its head has all variables, of which `shown` are the answer's."""

    rule: Rule
    shown: tuple[tuple[str, int], ...]  # variables of the answer with their places in the head
    distinct: bool

    @property
    def atoms(self) -> list[Atom]:
        """The triple patterns."""
        return [part for part in self.rule.body if isinstance(part, Atom)]

    def answer(self, fact: Atom) -> Answer:
        """The answer of a fact of the rule."""
        texts = [text_of(term) for term in fact.terms if not isinstance(term, Variable)]
        return tuple((name, texts[place]) for name, place in self.shown)


def pattern_of(text: str, prefixes: Mapping[str, str]) -> Pattern | None:
    """The rule of a query; None unless it is a basic graph pattern with filters.

    >>> found = pattern_of("SELECT ?x { ?x <urn:p> ?y . FILTER(?y > 3) }", {})
    >>> len(found.atoms), found.shown
    (1, (('x', 0),))
    >>> pattern_of("SELECT ?x { ?x <urn:p>+ ?y }", {}) is None
    True
    """
    algebra = parse(text, prefixes).algebra
    try:
        return _pattern(algebra)
    except _Unsuitable:
        return None
    except CorollaryError:  # what rules refuse, such as expressions nested too deeply
        return None


def _pattern(node: Node) -> Pattern:
    if node.name != "SELECT" or node.dataset is not None:
        raise _Unsuitable
    names = node.variables
    node, distinct = node.p, False
    while node.name in ("Project", "Distinct", "OrderBy"):
        distinct |= node.name == "Distinct"
        node = node.p
    filters: list[Expr] = []
    while node.name == "Filter":
        filters.append(node.expr)
        node = node.p
    if node.name != "BGP" or not node.triples:
        raise _Unsuitable
    variables: dict[str, Variable] = {}
    atoms = [
        Atom(TRIPLE, tuple(_term(term, variables) for term in triple)) for triple in node.triples
    ]
    body: tuple[BodyLiteral, ...] = (
        *atoms,
        *(Filter(_expression(one, variables)) for one in filters),
    )
    places = {name: place for place, name in enumerate(variables)}
    if not variables or any(name not in places for name in names):
        raise _Unsuitable
    rule = Rule(Atom(_ANSWER, tuple(variables.values())), body)
    Program.of([rule])  # raises for what rules refuse
    return Pattern(rule, tuple((name, places[name]) for name in names), distinct)


def _term(term: Any, variables: dict[str, Variable]) -> Term:
    """A term of a pattern; a blank node is a variable."""
    if isinstance(term, Node):  # a property path
        raise _Unsuitable
    if isinstance(term, Variable | BlankNode):
        name = term.name if isinstance(term, Variable) else f" {term.label}"
        return variables.setdefault(name, Variable(f"v{len(variables)}"))
    found: Constant = term
    return found


def _expression(node: Expr, variables: Mapping[str, Variable]) -> Expression:
    """An expression of the rule language with the same value."""

    def of(*parts: Expr) -> tuple[Expression, ...]:
        return tuple(_expression(part, variables) for part in parts)

    if isinstance(node, Variable):
        if node.name not in variables:
            raise _Unsuitable
        return variables[node.name]
    if not isinstance(node, Node):
        return node
    match node.name:
        case "Or" | "And":
            return Operation("||" if node.name == "Or" else "&&", of(*node.args))
        case "Not":
            return Operation("!", of(node.arg))
        case "Negate" | "Plus":
            return Operation("-" if node.name == "Negate" else "+", of(node.arg))
        case "Compare":
            return Operation(node.op, of(node.left, node.right))
        case "In":
            return Operation("NOT IN" if node.negated else "IN", of(node.left, *node.options))
        case "Arithmetic":
            value = _expression(node.first, variables)
            for sign, operand in node.rest:
                value = Operation(sign, (value, _expression(operand, variables)))
            return value
        case "Cast":
            name = node.iri.value if isinstance(node.iri, IRI) else str(node.iri)
            if not is_function(name):
                raise _Unsuitable
            return Operation(name, of(*node.args))
        case "Call":
            spelling = spelled(node.function)
            if spelling is None or spelling in _NOT_MAINTAINED:
                raise _Unsuitable
            return Operation(spelling, of(*node.args))
    raise _Unsuitable


def listed(kb: KnowledgeBase) -> bool:
    """Whether the changes of versions list all triples that come and go."""
    settings = kb.state.settings
    return settings.mode == "materialized" and settings.equality == "rules"


class View:
    """The answers to a query at a version, brought to the next one by its changes."""

    def __init__(self, pattern: Pattern, kb: KnowledgeBase, limit_rows: int) -> None:
        self.pattern = pattern
        self.version = kb.version
        self._kb = KnowledgeBase(Program.of([pattern.rule]))
        self._solutions: Counter[Answer] = Counter()
        with self._kb.transaction() as tx:
            for atom in pattern.atoms:
                tx.insert(kb.query(_construct(atom), limit_rows=limit_rows))
        self._count(tx.changes)

    @property
    def answers(self) -> Counter[Answer]:
        """The answers at this version."""
        if self.pattern.distinct:
            return Counter(dict.fromkeys(self._solutions, 1))
        return self._solutions

    def counted(self, rows: Iterable[Mapping[str, Any]]) -> Counter[Answer]:
        """Count the answers that a query returned."""
        return Counter(tuple((name, row[name]) for name, _ in self.pattern.shown) for row in rows)

    def advance(
        self, version: int, changes: Iterable[Change]
    ) -> tuple[Counter[Answer], Counter[Answer]]:
        """Apply the changes of the next version; returns the answers that come and go."""
        atoms = self.pattern.atoms
        relevant: dict[str, list[Atom]] = {INSERTED: [], DELETED: []}
        for kind, fact in changes:
            if kind in relevant and any(matched(atom, fact, {}) is not None for atom in atoms):
                relevant[kind].append(fact)
        with self._kb.transaction() as tx:
            tx.delete(relevant[DELETED])
            tx.insert(relevant[INSERTED])
        self.version = version
        return self._count(tx.changes)

    def _count(
        self, changes: Iterable[tuple[str, Atom]]
    ) -> tuple[Counter[Answer], Counter[Answer]]:
        """Count the solutions that come and go."""
        net: Counter[Answer] = Counter()
        for sign, fact in changes:
            if fact.relation == _ANSWER:
                net[self.pattern.answer(fact)] += 1 if sign == "+" else -1
        came: Counter[Answer] = Counter()
        gone: Counter[Answer] = Counter()
        for answer, difference in net.items():
            before = self._solutions[answer]
            after = before + difference
            if after:
                self._solutions[answer] = after
            else:
                del self._solutions[answer]
            if self.pattern.distinct:
                before, after = min(before, 1), min(after, 1)
            if after > before:
                came[answer] = after - before
            elif after < before:
                gone[answer] = before - after
        return came, gone


def rows_of(answers: Counter[Answer]) -> list[dict[str, str]]:
    """Answers as rows, as a query returns them."""
    return [dict(answer) for answer in answers.elements()]


def _construct(atom: Atom) -> str:
    """The query for the triples that match a pattern."""
    shown = " ".join(
        f"?{term.name}" if isinstance(term, Variable) else text_of(term) for term in atom.terms
    )
    return f"CONSTRUCT {{ {shown} }} WHERE {{ {shown} }}"
