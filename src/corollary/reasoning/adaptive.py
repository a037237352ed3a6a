"""`AdaptiveReasoner`: tuple at a time for ontologies, whole relations for large data.

There are two ways to maintain the same materialization. `TupleReasoner` costs microseconds per
fact, whatever the schema; `SpecializedReasoner` costs hundreds of them per axiom, but only a few
nanoseconds per fact. The data decide: with many facts per axiom, rules are specialized to the
schema; otherwise they are evaluated tuple at a time. A large schema with much more data is
materialized by specialized rules and then updated tuple at a time.

Measured (decision 030): OWL 2 RL takes 3 µs per LUBM triple tuple at a time, and 500 µs per axiom
when specialized; the threshold is the ratio of the two.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from corollary.algorithms.reasoner import Options, changed_program
from corollary.core.changes import Changes
from corollary.core.engine import Engine, F
from corollary.engines.tuples.limits import BYTES_OF_FACT, TooManySteps
from corollary.engines.tuples.program import is_supported
from corollary.lang.program import Program
from corollary.reasoning.engines import budget_of
from corollary.reasoning.rewriting import DelegatingReasoner
from corollary.reasoning.specialization import SpecializedReasoner
from corollary.reasoning.templates import schema_predicates
from corollary.reasoning.tuning import tuning

if TYPE_CHECKING:
    from corollary.reasoning.tuples import TupleReasoner


class AdaptiveReasoner(DelegatingReasoner[F, "TupleReasoner[F] | SpecializedReasoner[F]"]):
    """Maintains mat(Π, E) with the reasoner that is cheaper for the current data."""

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        options: Options[F] | None = None,
    ) -> None:
        """Materialize, or start from the known facts of the options."""
        options = options or Options()
        self.engine = engine
        self._options = replace(options, known=None)
        self._may_index = True  # until an update has taken too many steps
        self._inner = self._cheaper(program, explicit, options)
        self.statistics = self._inner.statistics

    def _cheaper(
        self, program: Program, explicit: F, options: Options[F]
    ) -> TupleReasoner[F] | SpecializedReasoner[F]:
        if self._fits_tuples(program, explicit):
            with contextlib.suppress(TooManySteps):
                return self._tuple_reasoner(program, explicit, options.known)
        return SpecializedReasoner(program, explicit, self.engine, options)

    def _tuple_reasoner(
        self, program: Program, explicit: F, known: F | None, *, known_auxiliary: bool = False
    ) -> TupleReasoner[F]:
        from corollary.reasoning.tuples import TupleReasoner  # loads the compiler

        return TupleReasoner(
            program,
            explicit,
            self.engine,
            on_progress=self._options.on_progress,
            known=known,
            known_auxiliary=known_auxiliary,
        )

    def _fits_tuples(
        self, program: Program, explicit: F, changes: Changes[F] | None = None
    ) -> bool:
        """Test whether to evaluate rules tuple at a time: there are few facts per axiom.

        Changes to the explicit facts are only counted, so redundant changes make the numbers
        inexact.
        """
        if self._options.algorithm != "auto" or not is_supported(program.rules):
            return False
        schema = schema_predicates(program)
        size, axioms = len(explicit), len(explicit.only(schema))
        if changes is not None:
            size += len(changes.inserted) - len(changes.deleted)
            axioms += len(changes.inserted.only(schema)) - len(changes.deleted.only(schema))
        return size <= tuning.tuple_facts_limit + tuning.tuple_facts_of_axiom * axioms

    @property
    def facts(self) -> F:
        """The materialization, explicit facts included."""
        return self._inner.facts

    @property
    def state(self) -> object:
        """Everything that an update replaces, as a value; assign it to roll back."""
        return self._inner, self._inner.state

    @state.setter
    def state(self, state: object) -> None:
        assert isinstance(state, tuple), "a state of this reasoner"
        self._inner, self._inner.state = state

    def _update(self, changes: Changes[F]) -> Changes[F]:
        if self._switch(changes):
            return self._start_over(changes)
        try:
            return self._inner.update(changes)
        except TooManySteps:
            self._may_index = False
            self._specialize()
            return self._inner.update(changes)

    def _switch(self, changes: Changes[F]) -> bool:
        """Switch to the other reasoner if it is cheaper for an update.

        Returns whether to start over instead: the rules are to be specialized, and most of the
        facts are new.
        """
        inner = self._inner
        program = changed_program(inner.program, changes)
        size = len(changes.inserted) + len(changes.deleted)
        least = tuning.tuple_facts_limit // 10
        is_bulk = size > least and size > len(inner.explicit) // 10
        if not is_bulk and program is inner.program:
            if isinstance(inner, SpecializedReasoner) and self._is_worth_an_index(inner):
                self._index()
            return False
        if not (is_bulk or isinstance(inner, SpecializedReasoner)) and is_supported(program.rules):
            return False
        # The index begins with the old rules, which must be supported as well as the new ones.
        is_old_supported = program is inner.program or is_supported(inner.program.rules)
        if is_old_supported and self._fits_tuples(program, inner.explicit, changes):
            self._index()
        elif isinstance(inner, SpecializedReasoner) or size <= len(inner.explicit):
            self._specialize()
        else:
            return True
        return False

    def _start_over(self, changes: Changes[F]) -> Changes[F]:
        """Materialize with specialized rules, instead of specializing them to the old schema."""
        before = self._inner
        facts, program = before.facts, changed_program(before.program, changes)
        explicit, _, _ = before.explicit.changed(changes.deleted, changes.inserted)
        self._inner = after = SpecializedReasoner(program, explicit, self.engine, self._options)
        return Changes(
            after.facts.difference(facts),
            facts.difference(after.facts),
            program.rules_not_in(before.program),
            before.program.rules_not_in(program),
            after.statistics,
        )

    def _index(self) -> None:
        """Evaluate tuple at a time from now on."""
        inner = self._inner
        if isinstance(inner, SpecializedReasoner):
            self._inner = self._tuple_reasoner(
                inner.program, inner.explicit, inner.all_facts, known_auxiliary=True
            )

    def _specialize(self) -> None:
        """Evaluate specialized rules over whole relations from now on."""
        inner = self._inner
        if not isinstance(inner, SpecializedReasoner):
            options = replace(self._options, known=inner.facts)
            self._inner = SpecializedReasoner(inner.program, inner.explicit, self.engine, options)

    def _is_worth_an_index(self, inner: SpecializedReasoner[F]) -> bool:
        """Test whether small updates of a specialized program are faster tuple at a time.

        An update evaluates every specialized rule that it reaches, and some rules over whole
        relations; with an index of all facts, its cost depends only on the facts that change.
        """
        if not self._may_index or inner.rule_count <= tuning.specialized_rules_limit:
            return False
        if self._options.algorithm != "auto" or not is_supported(inner.program.rules):
            return False
        budget = budget_of(self.engine)
        needed = BYTES_OF_FACT * len(inner.facts)
        return budget is None or needed * tuning.index_memory_share <= budget.available()
