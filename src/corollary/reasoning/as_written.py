"""`AsWrittenReasoner`: rules as written, over whole relations.

`SpecializedReasoner` turns each axiom into rules, which pays off if there are many facts for each
rule. Here a rule about the schema stays a single rule, and the axioms are facts that it joins with.
An engine with partitioned facts replicates the axioms, so that
`[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c]` is joined where the types of `?x` are.

The axioms are closed first, tuple at a time, in this process: the consequences of explicit axioms
alone are the *lemmas* that the materialization starts from. They save rounds and prove nothing by
themselves, since the rules derive every lemma again.

Invariants: the inner maintainer has every rule all of whose narrow predicates have facts, so its
facts are complete; a rule that it lacks has no instance. Rules are added when predicates get their
first facts, and are never removed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Options, changed_program
from corollary.core.changes import Changes
from corollary.core.engine import Engine, F
from corollary.engines.tuples.limits import TooManySteps
from corollary.engines.tuples.program import is_supported
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Filter, Rule
from corollary.reasoning.active_rules import RulePlan, deferred_rules
from corollary.reasoning.engines import replicate
from corollary.reasoning.rewriting import RewritingReasoner
from corollary.reasoning.templates import schema_predicates


class AsWrittenReasoner(RewritingReasoner[F, Maintainer[F]]):
    """Maintains mat(Π, E) while E and Π change, by the rules of Π that have instances."""

    def _start(self, program: Program, explicit: F, options: Options[F]) -> None:
        replicate(self.engine, schema_predicates(program))
        lemmas = None
        if options.known is None:
            lemmas = closed_schema(program, explicit, self.engine)
            self._plan_rules(program, [*explicit.predicates(), *lemmas.predicates()])
        else:
            self._plan_rules(program, options.known.predicates())
        added, _ = self._plan.take_changes()
        self._inner = Maintainer(
            Program.of(added),
            explicit,
            self.engine,
            # In a program over all triples, modules would be recomputed in every round.
            replace(options, modules=False),
            trust_updates=True,
            lemmas=lemmas,
        )
        self.statistics = self._inner.statistics
        nothing = Changes(self._nothing, self._nothing, statistics=self.statistics)
        self._run_to_fixpoint(nothing)
        if options.known is not None:
            self._inner.begin()

    @property
    def program(self) -> Program:
        """Π, as written."""
        return self._program

    @property
    def signature(self) -> str:
        """A hash of the rules that derive hidden facts; see `Maintainer`."""
        return self._inner.signature

    @property
    def state(self) -> object:
        """Everything that an update replaces, as a value; assign it to roll back."""
        return self._program, self._inner.state

    @state.setter
    def state(self, state: object) -> None:
        assert isinstance(state, tuple), "a state of this reasoner"
        program, self._inner.state = state
        self._plan_rules(program, self._inner.all_facts.predicates())

    def _update(self, changes: Changes[F]) -> Changes[F]:
        program, known = changed_program(self._program, changes), self._inner.all_facts.predicates()
        removed: tuple[Rule, ...] = ()
        if program is not self._program:
            removed = tuple(rule for rule in self._inner.program.rules if rule not in program)
            self._plan_rules(program, known)
        self._mark_live([*known, *changes.inserted.predicates()])
        return self._run_to_fixpoint(self._add_rules(changes.inserted, changes.deleted, removed))

    def _plan_rules(self, program: Program, live: Iterable[Predicate]) -> None:
        """Plan from scratch."""
        self._program = program
        self._plan = RulePlan(narrows=False)
        self._deferred = deferred_rules(program.rules)
        for rule in program.rules:
            if rule not in self._deferred:
                self._plan.want(rule)
        self._mark_live(live)

    def _mark_live(self, predicates: Iterable[Predicate]) -> None:
        present = frozenset(predicates)
        self._plan.mark_live(present)
        for rule, needed in list(self._deferred.items()):
            if needed <= present:
                del self._deferred[rule]
                self._plan.want(rule)

    def _add_rules(self, inserted: F, deleted: F, removed: tuple[Rule, ...] = ()) -> Changes[F]:
        """Update the inner maintainer: the facts, and the rules as planned."""
        self._plan.take_changes()
        known = self._inner.program
        added = tuple(rule for rule in self._plan.program if rule not in known)
        return self._inner.update_all(Changes(inserted, deleted, added, removed))

    def _follow_up(self, result: Changes[F]) -> Changes[F] | None:
        """Add the rules for predicates that have become live."""
        self._mark_live(self._inner.all_facts.predicates())
        if not self._plan.changed:
            return None
        return self._add_rules(self._nothing, self._nothing)


def closed_schema(program: Program, explicit: F, engine: Engine[F]) -> F:
    """Close the explicit axioms under the rules without filters, tuple at a time.

    Returns the derived facts of the schema; none if they are too expensive to derive.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import encode
    >>> from corollary.rdf.rulesets import rules
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> engine = ColumnarEngine(Dictionary())
    >>> text = "[<A>, rdfs:subClassOf, <B>] . [<B>, rdfs:subClassOf, <C>] . [<x>, a, <A>] ."
    >>> explicit = engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    >>> len(closed_schema(rules("rhodf"), explicit, engine))
    1
    """
    from corollary.reasoning.tuples import TupleReasoner  # loads the compiler

    predicates = schema_predicates(program)
    rules = [
        rule
        for rule in program.rules
        if not any(isinstance(part, Filter) for part in rule.body) and is_supported([rule])
    ]
    axioms = explicit.only(predicates)
    from corollary.engines.columnar.engine import (
        ColumnarEngine,  # compiled loops, loaded when needed
    )

    process = ColumnarEngine(engine.dictionary)
    own = process.facts({p: axioms.rows(p) for p in axioms.predicates()})
    try:
        closed = TupleReasoner(Program.of(rules), own, process).all_facts
    except TooManySteps:
        return engine.facts({})
    new = closed.only(predicates).difference(own)
    return engine.facts({p: new.rows(p) for p in new.predicates()})
