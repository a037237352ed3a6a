"""Hybrid stores on Spark: built, and asked, by the same `Hybrid` as in process.

What a build stores beside the explicit facts is the schema's closure, which the driver derives. A
query reads the facts of the predicates that its rules name, and no others; what it derives stays in
Spark unless it is small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from corollary.algorithms.hybrid import Hybrid
from corollary.core.dictionary import Ids
from corollary.core.partial import PartialDictionary
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.on_demand import read_on_demand
from corollary.engines.spark.stored import DataFrame
from corollary.knowledge_base.hybrid import HybridSpecialized, make_hybrid, proof_tree
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, Atom, Term, Variable
from corollary.query.hybrid import Pattern
from corollary.rdf.specialize import is_specializable, split

Kept = Hybrid[Any] | HybridSpecialized[Any]
MOST = 50_000  # values that are passed on from one pattern to the next


def kept_by(
    program: Program,
    explicit: SparkFacts,
    engine: SparkEngine,
    *,
    materialize: Sequence[Atom],
    coarse: bool = True,
    **options: Any,
) -> Kept:
    """What keeps the pre-materialization of explicit facts, and answers patterns."""
    if is_specializable(program):
        # The terms of axioms in one job: they would be fetched rule by rule.
        axioms = explicit.only(split(program).predicates)
        ids = [axioms.rows(predicate).ravel() for predicate in axioms.predicates()]
        engine.dictionary.terms(np.unique(np.concatenate(ids)).tolist() if ids else ())
    return make_hybrid(program, explicit, engine, materialize=materialize, coarse=coarse, **options)


@dataclass(frozen=True)
class Triples:
    """Answers to a triple pattern."""

    engine: SparkEngine
    facts: SparkFacts
    most: int

    def frame(self) -> DataFrame:
        """The triples, as a DataFrame of ids: s, p, o."""
        return self.engine.frame(self.facts).selectExpr("arg0 AS s", "arg1 AS p", "arg2 AS o")

    def values(self, place: int) -> Ids | None:
        """The distinct ids at a place, None if there are many triples."""
        if len(self.facts) > self.most:
            return None
        number = self.engine.dictionary.id
        parts = [np.zeros(0, np.uint32)]
        for predicate in self.facts.predicates():
            assert predicate.property is not None, "triples are kept by property"
            if place == 1:
                parts.append(np.array([number(predicate.property)], np.uint32))
            elif place == 2 and predicate.member_of is not None:
                parts.append(np.array([number(predicate.member_of)], np.uint32))
            else:
                parts.append(self.facts.rows(predicate)[:, min(place, 1)])
        found: Ids = np.unique(np.concatenate(parts))
        return found


class Unfolded:
    """The answers of a hybrid store to patterns."""

    def __init__(
        self,
        rows: DataFrame,
        program: Program,
        patterns: Sequence[Atom],
        dictionary: PartialDictionary,
        *,
        most: int = MOST,
        **options: Any,
    ) -> None:
        """`rows` are the explicit facts; `options` those of `SparkEngine`."""
        self.most = most
        self._dictionary = dictionary
        self._prefixes = program.prefixes
        self.engine = SparkEngine(dictionary, ColumnarEngine, rows.sparkSession, **options)
        explicit = read_on_demand(self.engine.workspace, rows, TRIPLES_NAME)
        self.kept = kept_by(program, explicit, self.engine, materialize=patterns)

    def matching(self, atom: Atom, admissible: Mapping[int, Ids] | None = None) -> SparkFacts:
        """The facts that match an atom."""
        found: SparkFacts = self.kept.answer(atom, admissible).facts
        return found

    def answer(self, pattern: Pattern, admissible: Mapping[int, Ids]) -> Triples:
        """The triples that match, with one of the admissible ids at some places."""
        return Triples(self.engine, self.matching(self._atom(pattern), admissible), self.most)

    def nothing(self) -> Triples:
        """No triples."""
        return Triples(self.engine, self.engine.facts({}), self.most)

    def more_terms(self) -> list[tuple[int, str]]:
        """Terms of rules that the table lacks."""
        return self._dictionary.new_terms

    def tree(self, pattern: Pattern) -> str:
        """The proof tree of a pattern, with leaves and sizes."""
        return self.tree_of(self._atom(pattern))

    def tree_of(self, atom: Atom) -> str:
        """The proof tree of an atom."""
        return str(replace(proof_tree(self.kept, atom), prefixes=self._prefixes))

    def _atom(self, pattern: Pattern) -> Atom:
        known = self._dictionary.term
        terms: list[Term] = [
            Variable(f"v{place}") if term is None else known(term)
            for place, term in enumerate(pattern)
        ]
        return Atom(TRIPLE, tuple(terms))
