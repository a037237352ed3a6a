"""Computed values that flow back into their own recursion: the program may have no finite result.

The graph has a node for each argument of each relation, property or class, and an edge from an
argument of a body to one of the head where a rule passes a value on, as it is or computed. A cycle
with a computed value may give new values without end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from corollary.lang.forms import COMPARISONS
from corollary.lang.functions import FUNCTIONS
from corollary.lang.syntax import (
    IRI,
    TRIPLE,
    Atom,
    Bind,
    Expression,
    Filter,
    Operation,
    Rule,
    Variable,
)

# Operators with finitely many values, whatever their arguments are.
_FINITE = {"&&", "||", "!", "IN", "NOT IN", "DATATYPE", "LANG", *COMPARISONS}
_LIMITS = {"<", "<=", ">", ">=", "=", "IN"}


class Argument(NamedTuple):
    """An argument of a relation, or of the triples of a property."""

    relation: str
    property: str | None
    place: int

    def __str__(self) -> str:
        names = ("subject", "property", "object")
        if self.relation == TRIPLE:
            of = "triples" if self.property is None else f"<{self.property}>"
            return f"{names[self.place]} of {of}"
        return f"argument {self.place + 1} of {self.relation}"


def growing_values(rules: Iterable[Rule]) -> Iterator[list[Argument]]:
    """For each rule that computes a value from itself, the cycle of arguments.

    A rule that limits the value by a `FILTER` is not among them.

    >>> from corollary.lang.program import Program
    >>> text = "n(?y) :- m(?x), BIND(?x + 1 AS ?y) . m(?x) :- n(?x) ."
    >>> for cycle in growing_values(Program.parse(text).rules):
    ...     print(" → ".join(map(str, cycle)))
    argument 1 of n → argument 1 of m → argument 1 of n
    """
    rules = list(rules)
    if not any(isinstance(part, Bind) for rule in rules for part in rule.body):
        return
    improved = {
        _argument(rule.head, rule.head.terms.index(rule.extremum.variable))
        for rule in rules
        if rule.extremum is not None
    }
    edges: dict[Argument, dict[Argument, None]] = {}
    computed: list[tuple[Argument, Argument]] = []
    for rule in rules:
        copied, made = _origins(rule)
        for place, variable in enumerate(rule.head.terms):
            if not isinstance(variable, Variable):
                continue
            head = _argument(rule.head, place)
            for source in _reading(rule, copied.get(variable, frozenset([variable]))):
                edges.setdefault(source, {}).setdefault(head)
            if head in improved:  # it only ever gets better, up to an end
                continue
            for source in _reading(rule, made.get(variable, frozenset())):
                edges.setdefault(source, {}).setdefault(head)
                computed.append((source, head))
    for source, head in computed:
        path = _path(edges, head, source)
        if path is not None:
            yield [*path, head]


def _origins(
    rule: Rule,
) -> tuple[dict[Variable, frozenset[Variable]], dict[Variable, frozenset[Variable]]]:
    """For each computed variable the variables that it copies, and those that it grows from."""
    copied: dict[Variable, frozenset[Variable]] = {}
    made: dict[Variable, frozenset[Variable]] = {}
    limited = {
        variable
        for part in rule.body
        if isinstance(part, Filter)
        for variable in _limited(part.expression)
    }
    for bind in rule.binds:
        inputs = bind.inputs()
        sources = frozenset(v for i in inputs for v in copied.get(i, frozenset([i])))
        grown = frozenset(v for i in inputs for v in made.get(i, frozenset()))
        if isinstance(bind.expression, Variable):
            copied[bind.variable], made[bind.variable] = sources, grown
        elif not _is_finite(bind.expression) and bind.variable not in limited:
            copied[bind.variable], made[bind.variable] = frozenset(), sources | grown
        else:
            copied[bind.variable] = made[bind.variable] = frozenset()
    return copied, made


def _is_finite(expression: Expression) -> bool:
    if not isinstance(expression, Operation):
        return True
    name = expression.operator
    if name in ("IF", "COALESCE"):
        return all(map(_is_finite, expression.arguments[name == "IF" :]))
    return name in _FINITE or (name in FUNCTIONS and FUNCTIONS[name].is_test)


def _limited(expression: Expression) -> Iterator[Variable]:
    """The variables that a condition compares with something."""
    if isinstance(expression, Operation):
        if expression.operator in _LIMITS:
            yield from (part for part in expression.arguments if isinstance(part, Variable))
        elif expression.operator == "&&":
            for part in expression.arguments:
                yield from _limited(part)


def _argument(atom: Atom, place: int) -> Argument:
    if atom.relation != TRIPLE:
        return Argument(atom.relation, None, place)
    named = atom.terms[1]
    return Argument(TRIPLE, named.value if isinstance(named, IRI) else None, place)


def _reading(rule: Rule, variables: frozenset[Variable]) -> Iterator[Argument]:
    """The arguments of the body's atoms that bind one of the variables."""
    for atom, reading in rule.atoms():
        if reading == "positive":
            for place, term in enumerate(atom.terms):
                if term in variables:
                    yield _argument(atom, place)


def _path(
    edges: dict[Argument, dict[Argument, None]], start: Argument, goal: Argument
) -> list[Argument] | None:
    """A shortest path; an argument of any property may be one of each property."""
    before: dict[Argument, Argument] = {start: start}
    queue = deque([start])
    while queue and goal not in before:
        at = queue.popleft()
        following = [*edges.get(at, ())]
        if at.relation == TRIPLE:
            alike = (other for other in edges if other.relation == TRIPLE)
            following += [
                other
                for other in alike
                if other.place == at.place and None in (other.property, at.property)
            ]
        for other in following:
            if other not in before:
                before[other] = at
                queue.append(other)
    if goal not in before:
        return None
    path = [goal]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]
