"""`AdaptiveReasoner`: the data decide how the rules about a schema are evaluated.

There are three ways to maintain the same materialization:

- `TupleReasoner` costs microseconds per fact, whatever the schema.
- `SpecializedReasoner` costs some 100 µs per rule and update, but only nanoseconds per fact.
- `AsWrittenReasoner` costs microseconds per fact and round, and nothing per axiom. It needs no
  index, derives whole relations at a time, and runs on every engine and with every algorithm.

With few facts per axiom, rules are evaluated tuple at a time, if possible. Otherwise they are
specialized to the schema, unless there would be too many rules for so few facts: then they stay as
written. What is loaded with many rules, or as written, is then updated tuple at a time.

Measured (decisions 030 and 041): OWL 2 RL takes 3 µs per LUBM triple tuple at a time, and 500 µs
per axiom when specialized; the threshold is the ratio of the two. As written, a fact takes 3 to 6
µs where a specialized rule takes 60 to 120 µs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from corollary.algorithms.reasoner import Options, Reasoner, changed_program
from corollary.core.changes import Changes
from corollary.core.engine import Engine, F
from corollary.engines.tuples.limits import BYTES_OF_FACT, TooManySteps
from corollary.engines.tuples.program import is_supported
from corollary.lang.program import Program
from corollary.reasoning.as_written import AsWrittenReasoner
from corollary.reasoning.engines import budget_of, is_in_process
from corollary.reasoning.rewriting import TransparentReasoner
from corollary.reasoning.specialization import SpecializedReasoner, TooManyRules
from corollary.reasoning.templates import schema_predicates
from corollary.reasoning.tuning import tuning

if TYPE_CHECKING:
    from corollary.reasoning.tuples import TupleReasoner


@dataclass(frozen=True)
class Ways:
    """How to evaluate rules over whole relations, specialized or as written."""

    specialized: Callable[..., SpecializedReasoner[Any]] = SpecializedReasoner
    as_written: Callable[..., Reasoner[Any]] = AsWrittenReasoner
    continues: bool = True  # whether one may continue with all facts of another, or of an index


class AdaptiveReasoner(TransparentReasoner[F]):
    """Maintains mat(Π, E) with the reasoner that is cheapest for the current data."""

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        options: Options[F] | None = None,
        ways: Ways | None = None,
    ) -> None:
        """Materialize, or start from the known facts of the options."""
        options = options or Options()
        self.engine = engine
        self._ways = ways or Ways()
        self._options = replace(options, known=None, complete=None)
        # Until an update has taken too many steps.
        self._may_index = is_in_process(engine) and self._ways.continues
        self._may_index &= options.algorithm == "auto" and not options.coarse
        self._chosen_for = 0  # explicit facts when rules were left as written
        self._inner = self._cheapest(program, explicit, options)
        self.statistics = self._inner.statistics

    # -- the choice --------------------------------------------------------------------------------

    def _cheapest(self, program: Program, explicit: F, options: Options[F]) -> Reasoner[F]:
        axioms = len(explicit.only(schema_predicates(program)))
        if self._fits_tuples(program, len(explicit), axioms):
            with contextlib.suppress(TooManySteps):
                return self._tuple_at_a_time(program, explicit, options.known)
        return self._over_relations(program, explicit, options, axioms)

    def _over_relations(
        self, program: Program, explicit: F, options: Options[F], axioms: int
    ) -> Reasoner[F]:
        """Specialize the rules, or evaluate them as written."""
        most_rules = self._most_rules(len(explicit))
        if most_rules is None or axioms <= most_rules:
            with contextlib.suppress(TooManyRules):
                limited = replace(options, most_rules=most_rules)
                return self._ways.specialized(program, explicit, self.engine, limited)
        return self._as_written(program, explicit, options)

    def _as_written(self, program: Program, explicit: F, options: Options[F]) -> Reasoner[F]:
        self._chosen_for = len(explicit)
        return self._ways.as_written(program, explicit, self.engine, options)

    def _fits_tuples(self, program: Program, facts: int, axioms: int) -> bool:
        """Test whether to evaluate rules tuple at a time: there are few facts per axiom."""
        most = tuning.tuple_facts_limit + tuning.tuple_facts_of_axiom * axioms
        return self._may_index and facts <= most and is_supported(program.rules)

    def _most_rules(self, facts: int) -> int | None:
        """Return the number of specialized rules that pay off; None if there is no alternative."""
        if self._options.algorithm == "counting":  # rules as written are recursive
            return None
        most: int = tuning.specialized_rules_limit + facts // tuning.facts_of_specialized_rule
        return most if is_in_process(self.engine) else min(most, tuning.distributed_rules_limit)

    def _is_worth_an_index(self) -> bool:
        """Test whether small updates are faster tuple at a time.

        An update evaluates every specialized rule that it reaches, and some rules over whole
        relations; with an index of all facts, its cost depends only on the facts that change.
        """
        inner = self._inner
        if not self._may_index:
            return False
        if isinstance(inner, SpecializedReasoner):
            if inner.rule_count <= tuning.specialized_rules_limit:
                return False
        elif inner.has_index:
            return False
        if not is_supported(inner.program.rules):
            return False
        budget = budget_of(self.engine)
        needed = BYTES_OF_FACT * len(inner.facts)
        return budget is None or needed * tuning.index_memory_share <= budget.available()

    # -- updates -----------------------------------------------------------------------------------

    def _update(self, changes: Changes[F]) -> Changes[F]:
        if is_in_process(self.engine) and self._reconsider(changes):
            return self._start_over(changes)
        while True:
            inner = self._inner
            if isinstance(inner, SpecializedReasoner):
                inner.most_rules = self._most_rules(len(inner.explicit) + len(changes.inserted))
            try:
                return inner.update(changes)
            except TooManySteps:
                self._may_index = False
                self._use_relations()
            except TooManyRules:
                if not self._ways.continues or self._is_mostly_new(changes):
                    return self._start_over(changes)
                self._inner = self._as_written(inner.program, inner.explicit, self._known())

    def _reconsider(self, changes: Changes[F]) -> bool:
        """Switch to another reasoner if it is cheaper for an update.

        Returns whether to start over instead, because most of the facts are new. Changes to the
        explicit facts are only counted, so redundant changes make the numbers inexact.
        """
        inner = self._inner
        program = changed_program(inner.program, changes)
        size, least = len(changes.inserted) + len(changes.deleted), tuning.tuple_facts_limit // 10
        facts = len(inner.explicit) + len(changes.inserted) - len(changes.deleted)
        is_as_written = not isinstance(inner, SpecializedReasoner) and not inner.has_index
        if is_as_written and facts > max(least, 2 * self._chosen_for):
            return True
        is_bulk = size > least and size > len(inner.explicit) // 10
        if not is_bulk and program is inner.program:
            if self._is_worth_an_index():
                self._index()
            return False
        if inner.has_index and not is_bulk and is_supported(program.rules):
            return False
        schema = schema_predicates(program)
        axioms = len(inner.explicit.only(schema)) + len(changes.inserted.only(schema))
        axioms -= len(changes.deleted.only(schema))
        # The index begins with the old rules, which must be supported as well as the new ones.
        is_old_supported = program is inner.program or is_supported(inner.program.rules)
        if is_old_supported and self._fits_tuples(program, facts, axioms):
            self._index()
        elif inner.has_index and self._is_mostly_new(changes):
            return True
        elif inner.has_index:
            self._use_relations()
        return False

    def _is_mostly_new(self, changes: Changes[F]) -> bool:
        """Test whether an update changes more facts than there are."""
        size = len(changes.inserted) + len(changes.deleted)
        return is_in_process(self.engine) and size > len(self._inner.explicit)

    def _start_over(self, changes: Changes[F]) -> Changes[F]:
        """Materialize from scratch, instead of specializing rules to the old schema first."""
        before = self._inner
        facts, program = before.facts, changed_program(before.program, changes)
        explicit, _, _ = before.explicit.changed(changes.deleted, changes.inserted)
        self._inner = after = self._cheapest(program, explicit, self._options)
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
        if not inner.has_index:
            self._inner = self._tuple_at_a_time(
                inner.program, inner.explicit, inner.all_facts, known_auxiliary=True
            )

    def _use_relations(self) -> None:
        """Evaluate over whole relations from now on."""
        program, explicit = self._inner.program, self._inner.explicit
        axioms = len(explicit.only(schema_predicates(program)))
        self._inner = self._over_relations(program, explicit, self._known(), axioms)

    # -- the reasoners -----------------------------------------------------------------------------

    def _known(self) -> Options[F]:
        """The options of a reasoner that replaces the current one."""
        return replace(self._options, known=self._inner.facts)

    def _tuple_at_a_time(
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
