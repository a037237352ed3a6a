"""`TupleReasoner`: a materialization of rules as written, maintained tuple at a time.

Paper: Gupta, Mumick, Subrahmanian, *Maintaining Views Incrementally* (DRed), SIGMOD 1993.

Idea: the facts are in a hash table with indexes (`engines.tuples`). An update overdeletes the
consequences of the deleted facts, rederives those with another derivation, and inserts the new
facts with their consequences, all in compiled code that processes one fact at a time.

Invariants: the index contains the facts of `all_facts`, except those of relations that no rule
mentions; a missing index (`None`) is built on demand. A failed update leaves the facts unchanged,
and drops the index.

Differs from the paper: explicit facts are not overdeleted, nor are facts that have a derivation
from facts of lower rank (see `engines.tuples.kernel`); there are no strata, as rules with negation
and aggregates are not supported here; a deletion that takes too large a share of the steps of a
rematerialization is replaced by one. Changes of rules are part of the same update.
"""

from __future__ import annotations

from functools import partial

from corollary.algorithms.aggregates import is_internal
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Reasoner, changed_program, refuse_difference
from corollary.algorithms.seminaive import OnProgress, materialize
from corollary.core.changes import Changes
from corollary.core.engine import Engine, F
from corollary.core.statistics import Statistics
from corollary.engines.tuples import layout
from corollary.engines.tuples.index import Rows, RuleChange, TupleIndex
from corollary.engines.tuples.limits import DeletionLimits, DeletionTooExpensive, TooManySteps
from corollary.engines.tuples.program import RuleProgram, compile_program
from corollary.engines.tuples.rows import rows_of, tables_of
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.reasoning.engines import budget_of
from corollary.reasoning.templates import schema_predicates
from corollary.reasoning.tuning import tuning

# Shares of the steps of a rematerialization after which a deletion is replaced by it:
_BLIND_SHARE = 1 / 5  # of a deletion whose cost is unknown: the loss is bounded by this share
_PROJECTED_SHARE = 2 / 3  # of a projected one: its steps take up to 1.5 times as long
_STEPS_OF_FACT = 64  # estimated steps per fact of a materialization that did not count them
_INDEX = "the index of the facts"
_REMATERIALIZED = "tuple at a time, rematerialized: much is deleted"


class TupleReasoner(Reasoner[F]):
    """Maintains mat(Π, E) while E and Π change, as `Maintainer` does, tuple at a time.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import decode, encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.lang.printer import Printer
    >>> from corollary.rdf.rulesets import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> def facts(text):
    ...     return engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    >>> axiom = "[<Student>, rdfs:subClassOf, <Person>] ."
    >>> reasoner = TupleReasoner(rules("rhodf"), facts("[<ann>, a, <Student>] ." + axiom), engine)
    >>> changes = reasoner.update(Changes(facts(""), facts(axiom)))
    >>> sorted(Printer().atom(atom) for atom in decode(changes.deleted, engine.dictionary))
    ['[<Student>, rdfs:subClassOf, <Person>]', '[<ann>, a, <Person>]']
    """

    has_index = True

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        *,
        on_progress: OnProgress | None = None,
        known: F | None = None,
        known_auxiliary: bool = False,
    ) -> None:
        """Materialize, or start from `known` facts.

        Facts of auxiliary relations are derived from them unless they are among the known ones.
        """
        self.engine = engine
        self._program = program
        self._explicit = explicit
        self._on_progress = on_progress
        self._empty = engine.facts({})
        self._hidden = frozenset(filter(is_internal, explicit.predicates()))
        self._rules = compile_program(program.rules, engine.dictionary)
        self.statistics = Statistics("auto", "semi-naive, tuple at a time")
        self._steps = 0  # estimated steps of a materialization
        self._index: TupleIndex | None = None
        if known is None:
            self._facts: F = self._materialize()
        else:
            self._facts = known if known_auxiliary else self._with_auxiliary_facts(known)
            self._steps = _STEPS_OF_FACT * len(self._facts)
        self._pending = Changes(self._empty, self._empty)  # changes not yet in `_facts`

    @property
    def program(self) -> Program:
        """Π."""
        return self._program

    @property
    def explicit(self) -> F:
        """E."""
        return self._explicit

    @property
    def state(self) -> object:
        """Everything that an update replaces, as a value; assign it to roll back."""
        return (
            self._program,
            self._explicit,
            self._facts,
            self._pending,
            self._rules,
            self._hidden,
            self._steps,
        )

    @state.setter
    def state(self, state: object) -> None:
        assert isinstance(state, tuple), "a state of this reasoner"
        self._program, self._explicit, self._facts, self._pending, *others = state
        self._rules, self._hidden, self._steps = others
        self._index = None  # updates change it in place

    @property
    def all_facts(self) -> F:
        """The materialization with the facts of auxiliary relations.

        Changes are applied on demand: with a relation for each of 10⁵ classes, applying them takes
        longer than an update.
        """
        self._apply_pending(0)
        return self._facts

    def _apply_pending(self, limit: int) -> None:
        """Apply the pending changes if they comprise more facts than the limit."""
        pending = self._pending
        if len(pending.inserted) + len(pending.deleted) > limit:
            self._facts = self._facts.replaced(pending.deleted, pending.inserted)
            self._pending = Changes(self._empty, self._empty)

    def _update(self, changes: Changes[F]) -> Changes[F]:
        explicit, deleted, inserted = self.explicit.changed(changes.deleted, changes.inserted)
        statistics = Statistics("auto", "DRed, tuple at a time")
        index, before = self._loaded(), self.program
        self._index = None  # until the update has succeeded
        if index.is_sparse:  # postponed from the update that deletes, to keep that one fast
            index = index.compacted()
        program, rules, rule_change = changed_program(before, changes), self._rules, None
        if program is not before:
            index, rule_change = self._changed_rules(index, program)
            rules = rule_change.program
        lost, gained = (
            rows_of(facts, rules.numbers, self.engine.dictionary) for facts in (deleted, inserted)
        )
        instances, alive = index.instances, index.alive
        try:
            limits = self._deletion_limits(len(deleted))
            lost_rows, new_rows = index.update(lost, gained, self._check, limits, rule_change)
            left = self._steps * (alive - len(lost_rows)) // max(1, alive)
            steps = left + index.insertion_steps
        except DeletionTooExpensive:
            statistics.reason = _REMATERIALIZED
            statistics.count("update", index.instances - instances)
            explicit_rows = rows_of(explicit, rules.numbers, self.engine.dictionary)
            index, lost_rows, new_rows = index.rematerialized(explicit_rows, self._check, rules)
            steps, instances = index.work, 0
        statistics.rounds = 1
        statistics.count("update", index.instances - instances)
        statistics.consider("overdeletion", index.overdeleted)
        old, new = self._facts_of(lost_rows, rules), self._facts_of(new_rows, rules)
        # Facts that no rule mentions have no consequences.
        other_old, other_new = (_unread(facts, rules) for facts in (deleted, inserted))
        old = old.union(other_old) if len(other_old) else old
        new = new.union(other_new) if len(other_new) else new
        self._pending = Changes(
            self._pending.inserted.difference(old).union(new.difference(self._pending.deleted)),
            self._pending.deleted.difference(new).union(old.difference(self._pending.inserted)),
        )
        self._apply_pending(tuning.pending_facts_limit)
        self._explicit, self._program, self._rules = explicit, program, rules
        self._hidden = self._hidden.union(filter(is_internal, inserted.predicates()))
        self._index, self._steps = index, steps
        return Changes(new, old, statistics=statistics)

    def _deletion_limits(self, deleted: int) -> DeletionLimits:
        """Limit the steps of a deletion of some explicit facts.

        A rematerialization repeats the steps that derive the consequences of the other explicit
        facts; the limits are shares of these. To overdelete facts usually takes more steps than to
        derive them: if those are too many, the deletion does not begin.
        """
        explicit = max(1, len(self.explicit))
        repeated = self._steps * (explicit - deleted) // explicit
        least = tuning.least_update_steps
        projected = max(least, int(_PROJECTED_SHARE * repeated))
        if self._steps * deleted // explicit > projected:
            return DeletionLimits(0, 0)
        return DeletionLimits(max(least, int(_BLIND_SHARE * repeated)), projected)

    def _changed_rules(self, index: TupleIndex, program: Program) -> tuple[TupleIndex, RuleChange]:
        """Create an index for the old and the new rules; also return the changes of rules."""
        before, dictionary = self.program.rules, self.engine.dictionary
        both = [*before, *(rule for rule in program.rules if rule not in self.program)]
        union = compile_program(both, dictionary, self._rules)
        unread = _unread(self.explicit, self._rules)
        index = index.with_program(union, rows_of(unread, union.numbers, dictionary))
        return index, RuleChange(
            [number for number, rule in enumerate(both) if rule not in program],
            [number for number, rule in enumerate(program.rules) if rule not in self.program],
            compile_program(program.rules, dictionary, union),
        )

    def verify(self) -> None:
        """Rematerialize with another engine; raise `OperationFailed` on a difference."""
        facts = Maintainer(self.program, self.explicit, self.engine).all_facts
        indexed = self._facts_of(self._loaded().rows(layout.ALIVE), self._rules)
        for known in (self.all_facts, indexed.union(_unread(self.explicit, self._rules))):
            refuse_difference(known, facts)

    # -- the index ---------------------------------------------------------------------------------

    def _materialize(self) -> F:
        index = self._new_index(self._rules, self.explicit)
        index.materialize(self._rows(self.explicit), self._check)
        self._index, self._steps = index, index.work
        self.statistics.rounds = 1
        self.statistics.count("materialization", index.instances)
        facts = self._facts_of(index.rows(layout.ALIVE), self._rules)
        other = _unread(self.explicit, self._rules)
        return facts.union(other) if len(other) else facts

    def _new_index(self, rules: RuleProgram, facts: F) -> TupleIndex:
        budget = budget_of(self.engine)
        reserve = None if budget is None else partial(budget.reserve, purpose=_INDEX)
        return TupleIndex(rules, self.engine.dictionary, len(facts), reserve)

    def _loaded(self) -> TupleIndex:
        if self._index is None:
            self._index = self._new_index(self._rules, self.all_facts)
            schema = self.explicit.only(schema_predicates(self.program))
            facts, explicit, schema_rows = map(self._rows, (self.all_facts, self.explicit, schema))
            self._index.load(facts, explicit, schema_rows, self._check)
        return self._index

    def _with_auxiliary_facts(self, known: F) -> F:
        """Add the facts of auxiliary relations, which are derived."""
        facts = self._visible(known).union(self.explicit)
        rules = [rule for rule in self.program.rules if is_internal(Predicate(rule.head.relation))]
        if not rules:
            return facts
        return materialize(Program.of(rules), facts, self.engine).facts

    def _rows(self, facts: F) -> Rows:
        return rows_of(facts, self._rules.numbers, self.engine.dictionary)

    def _facts_of(self, rows: Rows, rules: RuleProgram) -> F:
        return self.engine.facts(
            tables_of(rows, rules.names, rules.arities, self.engine.dictionary)
        )

    def _visible(self, facts: F) -> F:
        """Drop facts that are not results: of auxiliary relations, in rules or explicit."""
        hidden = self._hidden.union(self._rules.hidden)
        return facts.without(hidden) if hidden else facts

    def _check(self, index: TupleIndex) -> None:
        """Check limits and interrupts between two slices of a run."""
        budget = budget_of(self.engine)
        if budget is not None:
            budget.reserve(0, _INDEX)
            if budget.facts is not None:
                budget.check_fact_limit(index.count_alive())
        if self._on_progress is not None:
            self._on_progress(1, 1, 1, index.size)
        allowed = tuning.tuple_steps_of_fact * index.size + tuning.least_tuple_steps
        if index.run_steps > allowed:
            raise TooManySteps


def _unread(facts: F, rules: RuleProgram) -> F:
    """Select the facts of relations that no rule mentions."""
    return facts.only([p for p in facts.predicates() if p.relation not in rules.numbers])
