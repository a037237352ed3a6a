"""`AdaptiveMaintainer`: tuple at a time for ontologies, whole relations for large data.

Two ways to maintain the same materialization. `TupleMaintainer` costs a microsecond for a rule and
a fact, whatever the schema; `Specialized` costs 100 µs for each axiom, and a few nanoseconds for a
fact. So data decide: with many facts for each axiom the rules are specialized to the schema, and
otherwise they are evaluated tuple at a time. A large schema with much more data is materialized by
specialized rules, and then updated tuple at a time.

Measured (decision 030): OWL 2 RL takes 3 µs for a triple of LUBM tuple at a time, and 500 µs for an
axiom specialized; the ratio of the two is the threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic

from corollary.algorithms.constraints import Inconsistency
from corollary.algorithms.explain import BUDGET
from corollary.algorithms.updating import OnStratum
from corollary.core.changes import Changes
from corollary.core.engine import Engine, F
from corollary.core.proof import Proof
from corollary.core.statistics import Statistics
from corollary.engines.tuples.limits import BYTES_OF_FACT, TooManySteps
from corollary.engines.tuples.program import is_supported
from corollary.knowledge_base.engines import budget_of
from corollary.knowledge_base.ontology import Specialized
from corollary.knowledge_base.tuning import tuning
from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from corollary.rdf.specialize import schema_predicates

if TYPE_CHECKING:
    from corollary.knowledge_base.tuples import TupleMaintainer


class AdaptiveMaintainer(Generic[F]):
    """Maintains mat(Π, E) while E and Π change, with the reasoner that suits them."""

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        *,
        algorithm: str = "auto",
        modules: bool = True,
        on_progress: OnStratum | None = None,
        known: F | None = None,
    ) -> None:
        """Materialize, or begin with what is `known`; the parameters are those of `Maintainer`."""
        self.engine = engine
        self._options = {"algorithm": algorithm, "modules": modules, "on_progress": on_progress}
        self._may_index = True  # until an update has taken too many steps
        self._inner = self._reasoner(program, explicit, known)

    def _reasoner(
        self, program: Program, explicit: F, known: F | None
    ) -> TupleMaintainer[F] | Specialized[F]:
        if self._suits_tuples(program, explicit):
            try:
                return self._tuple_maintainer(program, explicit, known)
            except TooManySteps:
                pass
        return self._specialized(program, explicit, known)

    def _tuple_maintainer(
        self, program: Program, explicit: F, known: F | None, *, known_auxiliary: bool = False
    ) -> TupleMaintainer[F]:
        from corollary.knowledge_base.tuples import TupleMaintainer  # loads the compiler

        progress: Any = self._options["on_progress"]
        return TupleMaintainer(
            program,
            explicit,
            self.engine,
            on_progress=progress,
            known=known,
            known_auxiliary=known_auxiliary,
        )

    def _specialized(self, program: Program, explicit: F, known: F | None) -> Specialized[F]:
        options: dict[str, Any] = self._options
        return Specialized(program, explicit, self.engine, known=known, **options)

    def _suits_tuples(self, program: Program, explicit: F) -> bool:
        return self._options["algorithm"] == "auto" and suits_tuples(program, explicit)

    @property
    def program(self) -> Program:
        """Π, as it was written."""
        return self._inner.program

    @property
    def specialized(self) -> Program:
        """The rules that do the work at the moment."""
        inner = self._inner
        return inner.specialized if isinstance(inner, Specialized) else inner.program

    @property
    def explicit(self) -> F:
        """E."""
        return self._inner.explicit

    @property
    def facts(self) -> F:
        """The materialization, explicit facts included."""
        return self._inner.facts

    @property
    def all_facts(self) -> F:
        """The materialization with the facts that are no results."""
        return self._inner.all_facts

    @property
    def statistics(self) -> Statistics:
        """Of the materialization."""
        return self._inner.statistics

    def update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes of explicit facts and rules; the answer is what the facts differ by."""
        inner = self._suitable(changes)
        try:
            done = inner.update(changes)
        except TooManySteps:
            self._may_index = False
            inner = self._specialized(inner.program, inner.explicit, inner.facts)
            done = inner.update(changes)
        self._inner = inner
        return done

    def _suitable(self, changes: Changes[F]) -> TupleMaintainer[F] | Specialized[F]:
        """The reasoner for an update: that of the last one, or another with the same facts."""
        inner, program = self._inner, self._inner.program
        if changes.added_rules or changes.removed_rules:
            program = program.removed(*changes.removed_rules).added(*changes.added_rules)
        size = len(changes.inserted) + len(changes.deleted)
        is_bulk = size > max(tuning.tuple_facts_limit, len(inner.explicit)) // 10
        is_specialized = isinstance(inner, Specialized)
        if not is_bulk and program is inner.program:
            if not (isinstance(inner, Specialized) and self._is_worth_an_index(inner)):
                return inner
            suits = True
        else:
            explicit, _, _ = inner.explicit.changed(changes.deleted, changes.inserted)
            suits = self._suits_tuples(program, explicit)
            if not is_bulk and not is_specialized and is_supported(program.rules):
                return inner
        if suits != is_specialized:
            return inner
        if is_specialized:
            facts = inner.all_facts
            return self._tuple_maintainer(
                inner.program, inner.explicit, facts, known_auxiliary=True
            )
        return self._specialized(inner.program, inner.explicit, inner.facts)

    def _is_worth_an_index(self, inner: Specialized[F]) -> bool:
        """Whether small updates of a specialized program are faster tuple at a time.

        An update evaluates every specialized rule that it reaches, and some rules over whole
        relations; an index of all facts makes it a matter of the facts that change.
        """
        if not self._may_index or inner.rule_count <= tuning.specialized_rules_limit:
            return False
        if self._options["algorithm"] != "auto" or not is_supported(inner.program.rules):
            return False
        budget = budget_of(self.engine)
        needed = BYTES_OF_FACT * len(inner.facts)
        return budget is None or needed * tuning.index_memory_share <= budget.available()

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """The constraints of Π that the facts contradict."""
        return self._inner.inconsistencies(examples=examples)

    def explain(self, fact: Atom, *, budget: int = BUDGET) -> Proof:
        """A smallest proof of a fact by the rules of Π."""
        return self._inner.explain(fact, budget=budget)

    def verify(self) -> None:
        """Derive everything again; `OperationFailed` where it differs."""
        self._inner.verify()


def suits_tuples(program: Program, explicit: F) -> bool:
    """Whether rules are to be evaluated tuple at a time: there are few facts for each axiom."""
    if not is_supported(program.rules):
        return False
    axioms = len(explicit.only(schema_predicates(program)))
    return len(explicit) <= tuning.tuple_facts_limit + tuning.tuple_facts_of_axiom * axioms
