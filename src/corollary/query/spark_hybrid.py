"""Queries on Spark where answers are derived when asked for: each pattern before the join.

As in process (`hybrid`), patterns with most constants are answered first, and what is bound by then
limits what the next ones derive, as long as the values are few enough to be passed on. The answers
stay in Spark, which joins them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from corollary.core.dictionary import Ids
from corollary.query.dialect import Dialect, HybridSparkDialect, answers_name
from corollary.query.hybrid import Pattern, answered, trees
from corollary.query.plan import Plan
from corollary.query.spark import Frame, SparkRunner


class Found(Protocol):
    """Answers to a pattern."""

    def frame(self) -> Frame:
        """The triples, as a DataFrame of ids: s, p, o."""
        ...

    def values(self, place: int) -> Ids | None:
        """The distinct ids at a place, None if there are too many to pass on."""
        ...


class SparkAnswers(Protocol):
    """What answers patterns."""

    @property
    def most(self) -> int:
        """How many admissible values a pattern may be asked with."""
        ...

    def answer(self, pattern: Pattern, admissible: Mapping[int, Ids]) -> Found:
        """The triples that match, with one of the admissible ids at some places."""
        ...

    def nothing(self) -> Found:
        """No triples."""
        ...

    def more_terms(self) -> list[tuple[int, str]]:
        """Terms that answers may have and the table lacks: ids and texts."""
        ...

    def tree(self, pattern: Pattern) -> str:
        """How the answers to a pattern are derived."""
        ...


class HybridSparkRunner(SparkRunner):
    """Runs plans over answers to patterns."""

    def __init__(self, session: Any, answers: SparkAnswers, terms: Frame) -> None:
        super().__init__(session, answers.nothing().frame(), terms)
        self._answers = answers

    @property
    def dialect(self) -> Dialect:
        """A view for each pattern of each query."""
        return HybridSparkDialect()

    def explain(self, plan: Plan) -> str:
        """How each pattern is answered, in the order in which they are, and how Spark joins."""
        return "\n\n".join([*trees(plan, self._answers.tree), super().explain(plan)])

    def _known_terms(self) -> Frame:
        more = self._answers.more_terms()
        if not more:
            return self._all_terms
        made = self._session.createDataFrame(more, "id bigint, term string")
        return self._all_terms.unionAll(made)

    def _read(self, plan: Plan) -> None:
        answers = self._answers
        found = answered(
            plan, answers.answer, lambda one, place: one.values(place), answers.nothing()
        )
        for scan, answer in found:
            self._view(answers_name(plan, scan), answer.frame())

    def _triples_of(self, subjects: Frame) -> Frame:
        most = self._answers.most
        few = [row[0] for row in subjects.limit(most + 1).collect()]
        admissible = {0: np.array(few, np.uint32)} if len(few) <= most else {}
        found = self._answers.answer((None, None, None), admissible)
        frame = found.frame()
        return frame.join(subjects.withColumnRenamed("id", "s"), "s").select("s", "p", "o")
