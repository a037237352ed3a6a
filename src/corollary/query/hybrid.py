"""Queries where answers are derived when asked for: each pattern is answered before the join.

The patterns of a basic graph pattern are answered one after the other, those with most constants
first, and what is bound by then limits what the next ones derive. DuckDB joins the answers, and
does all else as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Constant
from corollary.query.database import Database
from corollary.query.dialect import Dialect, HybridDialect, answers_name
from corollary.query.plan import Plan, Scan

Pattern = tuple[int | None, int | None, int | None]

_NAMES = ("s", "p", "o")


class Answers(Protocol):
    """What answers patterns."""

    @property
    def dictionary(self) -> Dictionary:
        """The terms."""
        ...

    def constants(self) -> Sequence[Constant]:
        """Terms that answers may have and the dictionary may lack: those of rules."""
        ...

    def answer(self, pattern: Pattern, admissible: Mapping[int, Ids]) -> Ids:
        """The triples that match, one a row, with one of the admissible ids at some places."""
        ...

    def tree(self, pattern: Pattern) -> str:
        """How the answers to a pattern are derived."""
        ...

    def stamp(self) -> Hashable:
        """Something that is different after answers may have changed."""
        ...


class HybridDatabase(Database):
    """DuckDB over answers to patterns."""

    def __init__(
        self, answers: Answers, *, threads: int = 1, limit_memory: int | None = None
    ) -> None:
        self._answers = answers
        self._prepared: dict[int, Hashable] = {}
        super().__init__(_NoTables(answers), threads=threads, limit_memory=limit_memory)

    def _reconnect(self) -> None:
        super()._reconnect()
        self._prepared = {}

    @property
    def dialect(self) -> Dialect:
        """A table for each pattern of each query."""
        return HybridDialect()

    def describing(self, subjects: Sequence[int]) -> Sequence[Scan]:
        """A pattern for each subject."""
        return [Scan(subject, None, None) for subject in subjects]

    def explain(self, plan: Plan) -> str:
        """How each pattern is answered, in the order in which they are, and how DuckDB joins."""
        return "\n\n".join([*trees(plan, self._answers.tree), super().explain(plan)])

    def forget(self, plan: Plan) -> None:
        """Drop the answers as well."""
        super().forget(plan)
        for scan in plan.scans:
            self._drop(answers_name(plan, scan))
        self._prepared.pop(plan.number, None)

    def _prepare(self, plan: Plan) -> None:
        stamp = (self._answers.stamp(), len(self._answers.dictionary))
        if plan.number and self._prepared.get(plan.number) == stamp:
            return
        nothing = np.zeros((0, 3), np.uint32)
        for scan, found in answered(plan, self._answers.answer, _distinct, nothing):
            columns = {name: found[:, place] for place, name in enumerate(_NAMES)}
            self._load(answers_name(plan, scan), columns)
        self._prepared[plan.number] = stamp


def trees(plan: Plan, tree: Callable[[Pattern], str]) -> Iterator[str]:
    """How each pattern of a query is answered."""
    for number, scan in enumerate(sorted(plan.scans, key=openness), 1):
        pattern = (scan.subject, scan.property, scan.object)
        known = not any(term is not None and term < 0 for term in pattern)
        shown = tree(pattern) if known else "no triple has these terms"
        yield f"pattern {number} ({answers_name(plan, scan)}):\n{shown}"


A = TypeVar("A")


def answered(
    plan: Plan,
    answer: Callable[[Pattern, Mapping[int, Ids]], A],
    values: Callable[[A, int], Ids | None],
    nothing: A,
) -> Iterator[tuple[Scan, A]]:
    """The patterns of a query, each with its answers, in the order in which they are asked for.

    `values` gives the distinct ids at a place of answers, None if they are too many to pass on;
    `nothing` is no answers.
    """
    bound: dict[tuple[int, str], Ids] = {}  # by group and variable
    for scan in sorted(plan.scans, key=openness):
        pattern = (scan.subject, scan.property, scan.object)
        admissible = {
            place: bound[scan.group, variable]
            for place, variable in enumerate(scan.variables)
            if variable is not None and (scan.group, variable) in bound
        }
        known = not any(term is not None and term < 0 for term in pattern)
        if known and all(len(ids) for ids in admissible.values()):
            found = answer(pattern, admissible)
        else:
            found = nothing  # nobody has heard of it
        for place, variable in enumerate(scan.variables):
            if variable is not None:
                ids = values(found, place)
                if ids is not None:
                    bound[scan.group, variable] = ids
        yield scan, found


def _distinct(found: Ids, place: int) -> Ids:
    ids: Ids = np.unique(found[:, place])
    return ids


def openness(scan: Scan) -> int:
    """The fewer places are open, the fewer answers; a property that is open counts most."""
    return sum(
        weight
        for term, weight in ((scan.subject, 2), (scan.property, 4), (scan.object, 1))
        if term is None
    )


class _NoTables:
    """A source of nothing but terms."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    @property
    def dictionary(self) -> Dictionary:
        return self._answers.dictionary

    def predicates(self) -> Sequence[Predicate]:
        return ()

    def labels(self) -> Sequence[Constant]:
        return self._answers.constants()

    def rows(self, predicate: Predicate) -> Ids:
        return np.zeros((0, 2), np.uint32)

    def stamp(self, predicate: Predicate | None = None) -> Hashable:
        return self._answers.stamp()
