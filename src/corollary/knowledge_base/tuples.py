"""`TupleMaintainer`: a materialization of rules as they were written, kept tuple at a time.

Paper: Gupta, Mumick, Subrahmanian, *Maintaining Views Incrementally* (DRed), SIGMOD 1993.

Idea: the facts are in a hash table with indexes (`engines.tuples`). An update overdeletes what the
deleted facts helped to derive, restores what still has a derivation, and inserts the new facts
with what follows from them, all in compiled code that looks at a fact at a time.

Invariants: the index holds the facts of `all_facts` but for those of relations that no rule
mentions; without an index (`None`), one is made when it is needed. A failed update leaves the
facts as they were, and no index.

Differs from the paper: explicit facts are not overdeleted, nor are facts that have a derivation
from facts of lower rank (see `engines.tuples.kernel`); there are no strata, as rules with negation
and aggregates are not taken here; an update that does a fifth of the work of a materialization
derives everything again. Changes of rules are part of the same update.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Generic

from corollary.algorithms.aggregates import is_internal
from corollary.algorithms.constraints import Inconsistency, inconsistencies
from corollary.algorithms.explain import BUDGET, explain
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.seminaive import materialize
from corollary.algorithms.strata import CompiledStrata
from corollary.algorithms.updating import OnStratum
from corollary.core.changes import Changes
from corollary.core.engine import Engine, F
from corollary.core.proof import Proof
from corollary.core.statistics import Statistics
from corollary.engines.tuples import layout
from corollary.engines.tuples.index import Rows, RuleChange, TupleIndex
from corollary.engines.tuples.limits import DeletionTooExpensive, TooManySteps
from corollary.engines.tuples.program import RuleProgram, compile_program
from corollary.engines.tuples.rows import rows_of, tables_of
from corollary.errors import OperationFailed
from corollary.knowledge_base.engines import budget_of
from corollary.knowledge_base.tuning import tuning
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom
from corollary.rdf.specialize import schema_predicates

_SHARE = 5  # of a materialization: what a deletion may cost before everything is derived again
_STEPS_OF_FACT = 64  # of a materialization, where they were not counted
_INDEX = "the index of the facts"
_REMATERIALIZED = "tuple at a time, rematerialized: much is deleted"


class TupleMaintainer(Generic[F]):
    """Keeps mat(Π, E) while E and Π change, as `Maintainer` does, tuple at a time.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import decode, encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.lang.printer import Printer
    >>> from corollary.rdf.rulesets import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> def facts(text):
    ...     return engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    >>> axiom = "[<Student>, rdfs:subClassOf, <Person>] ."
    >>> kept = TupleMaintainer(rules("rhodf"), facts("[<ann>, a, <Student>] ." + axiom), engine)
    >>> done = kept.update(Changes(facts(""), facts(axiom)))
    >>> sorted(Printer().atom(atom) for atom in decode(done.deleted, engine.dictionary))
    ['[<Student>, rdfs:subClassOf, <Person>]', '[<ann>, a, <Person>]']
    """

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        *,
        on_progress: OnStratum | None = None,
        known: F | None = None,
        known_auxiliary: bool = False,
    ) -> None:
        """Materialize, or begin with facts that are `known`.

        Facts of auxiliary relations are derived from them, unless they are known as well.
        """
        self.engine = engine
        self.program = program
        self.explicit = explicit
        self._on_progress = on_progress
        self._empty = engine.facts({})
        self._hidden = frozenset(filter(is_internal, explicit.predicates()))
        self._rules = compile_program(program.rules, engine.dictionary)
        self.statistics = Statistics("auto", "semi-naive, tuple at a time")
        self._steps = 0  # that a materialization would take, about
        self._index: TupleIndex | None = None
        self._compiled_strata: tuple[Program, CompiledStrata] | None = None
        if known is None:
            self._facts: F = self._materialize()
        else:
            self._facts = known if known_auxiliary else self._with_auxiliary_facts(known)
            self._steps = _STEPS_OF_FACT * len(self._facts)
        self._pending = Changes(self._empty, self._empty)  # what `_facts` lacks

    def __copy__(self) -> TupleMaintainer[F]:
        """A maintainer of the same facts; the index, which updates change, is now its own."""
        other: TupleMaintainer[F] = object.__new__(TupleMaintainer)
        other.__dict__.update(self.__dict__)
        self._index = None
        return other

    @property
    def all_facts(self) -> F:
        """The materialization with the facts that are no results.

        Changes are applied when they are asked for: with a relation for each of 10⁵ classes, that
        takes longer than an update.
        """
        self._apply_pending(0)
        return self._facts

    def _apply_pending(self, limit: int) -> None:
        """Apply the changes that are pending, if they are of more facts than the limit."""
        pending = self._pending
        if len(pending.inserted) + len(pending.deleted) > limit:
            self._facts = self._facts.replaced(pending.deleted, pending.inserted)
            self._pending = Changes(self._empty, self._empty)

    @property
    def facts(self) -> F:
        """The materialization, explicit facts included."""
        return self._visible(self.all_facts)

    def update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes of explicit facts and rules; the answer is what the facts differ by."""
        explicit, deleted, inserted = self.explicit.changed(changes.deleted, changes.inserted)
        statistics = Statistics("auto", "DRed, tuple at a time")
        index, before = self._loaded(), self.program
        self._index = None  # until the update has succeeded
        if index.is_sparse:  # not in the update that deletes, which has had enough to do
            index = index.compacted()
        program, rules, rule_change = before, self._rules, None
        if changes.added_rules or changes.removed_rules:
            program = before.removed(*changes.removed_rules).added(*changes.added_rules)
            index, rule_change = self._changed_rules(index, program)
            rules = rule_change.program
        lost, gained = (
            rows_of(facts, rules.numbers, self.engine.dictionary) for facts in (deleted, inserted)
        )
        instances, alive = index.instances, index.alive
        try:
            limit = max(tuning.least_update_steps, self._steps // _SHARE)
            if len(deleted) > len(self.explicit) // 2:
                limit = 0
            went, came = index.update(lost, gained, self._check, limit, rule_change)
            left = self._steps * (alive - len(went)) // max(1, alive)
            steps = left + index.insertion_steps
        except DeletionTooExpensive:
            work = index.work
            statistics.reason = _REMATERIALIZED
            went, came = index.rematerialize(lost, gained, self._check, rule_change)
            steps = index.work - work
        statistics.rounds = 1
        statistics.count("update", index.instances - instances)
        statistics.consider("overdeletion", index.overdeleted)
        gone, new = self._facts_of(went, rules), self._facts_of(came, rules)
        # Facts that no rule mentions have no consequences.
        other_gone, other_new = (_unread(facts, rules) for facts in (deleted, inserted))
        gone = gone.union(other_gone) if len(other_gone) else gone
        new = new.union(other_new) if len(other_new) else new
        self._pending = Changes(
            self._pending.inserted.difference(gone).union(new.difference(self._pending.deleted)),
            self._pending.deleted.difference(new).union(gone.difference(self._pending.inserted)),
        )
        self._apply_pending(tuning.pending_facts_limit)
        self.explicit, self.program, self._rules = explicit, program, rules
        self._hidden = self._hidden.union(filter(is_internal, inserted.predicates()))
        self._index, self._steps = index, steps
        return Changes(
            self._visible(new),
            self._visible(gone),
            () if program is before else program.rules_not_in(before),
            () if program is before else before.rules_not_in(program),
            statistics,
        )

    def _changed_rules(self, index: TupleIndex, program: Program) -> tuple[TupleIndex, RuleChange]:
        """An index for the old rules and the new ones, and how they change."""
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

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """The constraints of Π that the facts contradict."""
        return inconsistencies(self.program, self.all_facts, self.engine, examples=examples)

    def explain(self, fact: Atom, *, budget: int = BUDGET) -> Proof:
        """A smallest proof of a fact by the rules of Π."""
        return explain(
            fact,
            self.program,
            self._strata,
            self.all_facts,
            self.explicit,
            self.engine,
            budget=budget,
        )

    @property
    def _strata(self) -> CompiledStrata:
        if self._compiled_strata is None or self._compiled_strata[0] is not self.program:
            strata = CompiledStrata(self.program.rules, self.engine.dictionary)
            self._compiled_strata = self.program, strata
        return self._compiled_strata[1]

    def verify(self) -> None:
        """Derive everything again, by another engine; `OperationFailed` where it differs."""
        facts = Maintainer(self.program, self.explicit, self.engine).all_facts
        indexed = self._facts_of(self._loaded().rows(layout.ALIVE), self._rules)
        for known in (self.all_facts, indexed.union(_unread(self.explicit, self._rules))):
            if not len(facts) == len(known) == len(facts.intersection(known)):
                raise OperationFailed(
                    "E407", "the materialization is not what follows from the facts"
                )

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
        """Facts with those of auxiliary relations, which are derived."""
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
        """Facts without those that are no results: of auxiliary relations, in rules or explicit."""
        hidden = self._hidden.union(self._rules.hidden)
        return facts.without(hidden) if hidden else facts

    def _check(self, index: TupleIndex) -> None:
        """Look at limits and interrupts, between two slices of a run."""
        budget = budget_of(self.engine)
        if budget is not None:
            budget.reserve(0, _INDEX)
            if budget.facts is not None:
                budget.refuse_more(index.count_alive())
        if self._on_progress is not None:
            self._on_progress(1, 1, 1, index.size)
        allowed = tuning.tuple_steps_of_fact * index.size + tuning.least_tuple_steps
        if index.run_steps > allowed:
            raise TooManySteps


def _unread(facts: F, rules: RuleProgram) -> F:
    """The facts of relations that no rule mentions."""
    return facts.only([p for p in facts.predicates() if p.relation not in rules.numbers])
