"""Query hybrid stores on Spark, with the same reasoner as in process.

A query reads only the facts of the predicates in its rules; derived facts stay in Spark unless they
are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from corollary.core.dictionary import Ids
from corollary.core.partial import PartialDictionary
from corollary.core.tables import argument_columns
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.on_demand import read_on_demand
from corollary.engines.spark.stored import DataFrame
from corollary.knowledge_base.distributed import spark_reasoner
from corollary.knowledge_base.hybrid import triple_pattern
from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from corollary.query.hybrid import Pattern


@dataclass(frozen=True)
class Triples:
    """The answers to a triple pattern."""

    engine: SparkEngine
    facts: SparkFacts

    def frame(self) -> DataFrame:
        """Return the triples as a DataFrame of ids: s, p, o."""
        return self.engine.frame(self.facts).selectExpr("arg0 AS s", "arg1 AS p", "arg2 AS o")

    def values(self, place: int) -> Ids | None:
        """Return the distinct ids at a position; None if the triples are many."""
        if len(self.facts) > Unfolded.most:
            return None
        dictionary = self.engine.dictionary
        parts = [np.zeros(0, np.uint32)]
        for predicate in self.facts.predicates():
            rows = self.facts.rows(predicate)
            parts.append(argument_columns(predicate, rows, dictionary)[place])
        found: Ids = np.unique(np.concatenate(parts))
        return found


class Unfolded:
    """Answers patterns over a hybrid store."""

    most = 50_000  # values that are passed from one pattern to the next

    def __init__(
        self,
        rows: DataFrame,
        program: Program,
        patterns: Sequence[Atom],
        dictionary: PartialDictionary,
        **options: Any,
    ) -> None:
        """`rows` are the explicit facts; `options` those of `SparkEngine`."""
        self._dictionary = dictionary
        self._prefixes = program.prefixes
        self.engine = SparkEngine(dictionary, ColumnarEngine, rows.sparkSession, **options)
        explicit = read_on_demand(self.engine.run, rows)
        self._reasoner = spark_reasoner(
            program, explicit, self.engine, mode="hybrid", materialize=patterns
        )

    def matching(self, atom: Atom, admissible: Mapping[int, Ids] | None = None) -> SparkFacts:
        """Derive the facts that match an atom."""
        return self._reasoner.match(atom, admissible)

    def answer(self, pattern: Pattern, admissible: Mapping[int, Ids]) -> Triples:
        """Derive the triples that match, restricted to admissible ids at some positions."""
        atom = triple_pattern(pattern, self._dictionary)
        return Triples(self.engine, self.matching(atom, admissible))

    def nothing(self) -> Triples:
        """Return the empty set of triples."""
        return Triples(self.engine, self.engine.facts({}))

    def more_terms(self) -> list[tuple[int, str]]:
        """Return the terms of rules that are not in the terms table."""
        return self._dictionary.new_terms

    def tree(self, pattern: Pattern) -> str:
        """Render the proof tree of a pattern, with leaves and sizes."""
        return self.tree_of(triple_pattern(pattern, self._dictionary))

    def tree_of(self, atom: Atom) -> str:
        """Render the proof tree of an atom."""
        return str(replace(self._reasoner.query_plan(atom), prefixes=self._prefixes))
