"""Queries in hybrid mode: each triple pattern is answered on demand, before the join.

The patterns of a basic graph pattern are answered in order of selectivity, those with most
constants first, and their bindings restrict what later patterns derive. DuckDB joins the answers
and evaluates the rest of the query as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from corollary.core.dictionary import Ids
from corollary.query.database import AnswerSource, DuckDBRunner
from corollary.query.dialect import Dialect, HybridDialect, answers_name
from corollary.query.plan import Plan, Scan

Pattern = tuple[int | None, int | None, int | None]

_NAMES = ("s", "p", "o")


class Answers(AnswerSource, Protocol):
    """Answers triple patterns on demand."""

    def answer(self, pattern: Pattern, admissible: Mapping[int, Ids]) -> Ids:
        """The matching triples, one per row, restricted to admissible ids by position."""

    def tree(self, pattern: Pattern) -> str:
        """Explain how answers to a pattern are derived."""


class HybridDatabase(DuckDBRunner[Answers]):
    """Runs plans in DuckDB over the answers to their patterns."""

    @property
    def dialect(self) -> Dialect:
        """One table per pattern of each query."""
        return HybridDialect()

    def describing(self, subjects: Sequence[int]) -> Sequence[Scan]:
        """One pattern per subject."""
        return [Scan(subject, None, None) for subject in subjects]

    def explain(self, plan: Plan) -> str:
        """The proof tree of each pattern in evaluation order, then DuckDB's physical plan."""
        return "\n\n".join([*trees(plan, self._source.tree), super().explain(plan)])

    def forget(self, plan: Plan) -> None:
        """Drop the functions and the answers of an evicted plan."""
        super().forget(plan)
        for scan in _patterns(plan):
            self._drop(answers_name(plan, scan))
        self._stamps.pop(plan.number, None)

    def _prepare(self, plan: Plan) -> None:
        stamp = (self._source.stamp(), len(self._dictionary))
        if plan.number and self._stamps.get(plan.number) == stamp:
            return
        no_triples = np.zeros((0, 3), np.uint32)
        for scan, triples in answer_patterns(plan, self._source.answer, no_triples, _distinct):
            columns = {name: triples[:, position] for position, name in enumerate(_NAMES)}
            self._load(answers_name(plan, scan), columns)
        self._stamps[plan.number] = stamp


def trees(plan: Plan, tree: Callable[[Pattern], str]) -> Iterator[str]:
    """Explain how each pattern of a plan is answered, in evaluation order."""
    for number, scan in enumerate(sorted(_patterns(plan), key=selectivity), 1):
        known = scan.is_satisfiable()
        explanation = tree(scan.pattern()) if known else "no triple has these terms"
        yield f"pattern {number} ({answers_name(plan, scan)}):\n{explanation}"


def _patterns(plan: Plan) -> list[Scan]:
    """The patterns of all triples, explicit and derived."""
    return [scan for scan in plan.scans if scan.source == "union"]


A = TypeVar("A")


def answer_patterns(
    plan: Plan,
    answer: Callable[[Pattern, Mapping[int, Ids]], A],
    nothing: A,
    values: Callable[[A, int], Ids | None],
) -> Iterator[tuple[Scan, A]]:
    """Answer the patterns of a plan in order of selectivity, passing bindings sideways.

    `nothing` is the empty answer; `values` returns the distinct ids at a position of answers, or
    None if there are too many to pass on.
    """
    bound: dict[tuple[int, str], Ids] = {}  # by group and variable
    for scan in sorted(_patterns(plan), key=selectivity):
        admissible = {
            position: bound[scan.group, variable]
            for position, variable in enumerate(scan.variables)
            if variable is not None and (scan.group, variable) in bound
        }
        is_empty = not scan.is_satisfiable() or not all(map(len, admissible.values()))
        answers = nothing if is_empty else answer(scan.pattern(), admissible)
        for position, variable in enumerate(scan.variables):
            if variable is not None:
                ids = values(answers, position)
                if ids is not None:
                    bound[scan.group, variable] = ids
        yield scan, answers


def _distinct(triples: Ids, position: int) -> Ids:
    ids: Ids = np.unique(triples[:, position])
    return ids


def selectivity(scan: Scan) -> int:
    """A selectivity estimate, lower first: unbound positions, an unbound property weighs most."""
    return sum(
        weight for term, weight in zip(scan.pattern(), (2, 4, 1), strict=True) if term is None
    )
