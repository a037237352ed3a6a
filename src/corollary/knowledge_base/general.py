"""`GeneralMaintainer`: rules as they are written, over whole relations, for a schema that is large.

`Specialized` makes a rule of each axiom, which suits schemas of some thousands of axioms. Here a
rule about a schema stays one rule, and the axioms are facts that it joins. An engine whose facts
are in partitions replicates them, so that `[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c]`
joins where the types of `?x` are.

The axioms are closed first, tuple at a time, in the process of the driver: what follows from
explicit axioms alone are the *lemmas* that the materialization begins with. They save rounds, and
prove nothing by themselves: every lemma is derived again by the rules.

Invariants: every rule whose narrow predicates all have facts is in the program of the main
maintainer, so that its facts are all that follow. A rule that is not there has no instance. Rules
are added as predicates get their first facts, and stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic

from corollary.algorithms.aggregates import is_internal
from corollary.algorithms.constraints import Inconsistency, inconsistencies
from corollary.algorithms.explain import BUDGET, explain
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.strata import CompiledStrata
from corollary.algorithms.updating import OnStratum
from corollary.core.changes import Changes, composed
from corollary.core.compile import TRIPLES, TYPES, home
from corollary.core.engine import Engine, F
from corollary.core.proof import Proof
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.tuples.limits import TooManySteps
from corollary.engines.tuples.program import is_supported
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom, Filter, Rule
from corollary.rdf.plan import Plan
from corollary.rdf.specialize import schema_predicates

_WIDE = (TRIPLES, TYPES)


@dataclass(eq=False)
class _Rules:
    """The rules of a program: those in use, and those that wait for facts."""

    program: Program
    plan: Plan
    late: dict[Rule, frozenset[Predicate]]  # wait for facts of these predicates

    @classmethod
    def of(cls, program: Program) -> _Rules:
        """All rules wait.

        A rule with a variable property or class in its head waits until the predicates of its
        body have facts. That others may derive some is not enough: all triples that there are
        would be shuffled for `[?t, ?p, ?o] :- _same(?s, ?t), [?s, ?p, ?o]`.
        """
        plan = Plan(narrows=False)
        late = {}
        for rule in program.rules:
            if home(rule.head) in _WIDE:
                body = {home(part) for part in rule.body if isinstance(part, Atom)}
                late[rule] = frozenset(body.difference(_WIDE))
            else:
                plan.want(rule)
        return cls(program, plan, late)

    def meet(self, predicates: Iterable[Predicate]) -> None:
        """Use the rules that may derive something where these predicates have facts."""
        present = frozenset(predicates)
        self.plan.meet(present)
        for rule, needed in list(self.late.items()):
            if needed <= present:
                del self.late[rule]
                self.plan.want(rule)


class GeneralMaintainer(Generic[F]):
    """Keeps mat(Π, E) while E and Π change, as `Maintainer` does, by the rules of Π in use.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import decode, encode
    >>> from corollary.lang.printer import Printer
    >>> from corollary.rdf.rulesets import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> def facts(text):
    ...     return engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    >>> axiom = "[<Student>, rdfs:subClassOf, <Person>] ."
    >>> kept = GeneralMaintainer(rules("rhodf"), facts("[<ann>, a, <Student>] ." + axiom), engine)
    >>> [rule.name for rule in kept.specialized.rules]
    ['rdfs11', 'rdfs9']
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
        algorithm: str = "auto",
        modules: bool = True,
        coarse: bool = False,
        on_progress: OnStratum | None = None,
        known: F | None = None,
        complete: str | None = None,
    ) -> None:
        """Materialize, or begin with what is `known`; the parameters are those of `Maintainer`.

        There are no `modules`: in a program over all triples they would be closed in every round.
        """
        self.engine = engine
        self.algorithm = algorithm
        self._nothing = engine.facts({})
        self._rules = _Rules.of(program)
        lemmas = None
        if known is None:
            lemmas = closed_schema(program, explicit, engine)
            self._rules.meet([*explicit.predicates(), *lemmas.predicates()])
        else:
            self._rules.meet(known.predicates())
        added, _ = self._rules.plan.take()
        self._main: Maintainer[F] = Maintainer(
            Program.of(added),
            explicit,
            engine,
            algorithm=algorithm,
            modules=False,
            coarse=coarse,
            on_progress=on_progress,
            known=known,
            complete=complete,
            lemmas=lemmas,
        )
        self.statistics = self._main.statistics
        self._settle(Changes(self._nothing, self._nothing, statistics=self.statistics))
        if known is not None:
            self._main.begin()

    @property
    def program(self) -> Program:
        """Π, as it was written."""
        return self._rules.program

    @property
    def specialized(self) -> Program:
        """The rules in use at the moment."""
        return self._main.program

    @property
    def explicit(self) -> F:
        """E."""
        return self._main.explicit

    @property
    def facts(self) -> F:
        """The materialization, explicit facts included."""
        return _visible(self._main.all_facts)

    @property
    def all_facts(self) -> F:
        """The materialization with the facts that are no results."""
        return self._main.all_facts

    @property
    def signature(self) -> str:
        """By what rules facts that are no results are derived, see `Maintainer`."""
        return self._main.signature

    def update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes of explicit facts and rules; the answer is what the facts differ by."""
        before, main = self._rules, self._main.state
        try:
            done = self._update(changes)
        except BaseException:
            self._main.state = main
            self._rules = self._planned(before.program)
            raise
        program = self.program
        return Changes(
            _visible(done.inserted),
            _visible(done.deleted),
            program.rules_not_in(before.program),
            before.program.rules_not_in(program),
            done.statistics,
        )

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """The constraints of Π that the facts contradict."""
        return inconsistencies(self.program, self._main.all_facts, self.engine, examples=examples)

    def explain(self, fact: Atom, *, budget: int = BUDGET) -> Proof:
        """A smallest proof of a fact by the rules of Π."""
        strata = CompiledStrata(self.program.rules, self.engine.dictionary)
        facts, explicit = self._main.all_facts, self.explicit
        return explain(fact, self.program, strata, facts, explicit, self.engine, budget=budget)

    def verify(self) -> None:
        """Derive everything again; `OperationFailed` where it differs."""
        self._main.verify()

    def _update(self, changes: Changes[F]) -> Changes[F]:
        program = self.program
        removed: tuple[Rule, ...] = ()
        if changes.added_rules or changes.removed_rules:
            program = program.removed(*changes.removed_rules).added(*changes.added_rules)
            removed = tuple(rule for rule in self._main.program.rules if rule not in program)
            self._rules = self._planned(program)
        self._rules.meet([*self._main.all_facts.predicates(), *changes.inserted.predicates()])
        done = self._add_rules(changes.inserted, changes.deleted, removed)
        return self._settle(done)

    def _planned(self, program: Program) -> _Rules:
        """The rules of a program, of which the main maintainer has some."""
        rules = _Rules.of(program)
        rules.meet(self._main.all_facts.predicates())
        return rules

    def _add_rules(self, inserted: F, deleted: F, removed: tuple[Rule, ...] = ()) -> Changes[F]:
        """Change facts, and the rules of the main maintainer to those in use."""
        self._rules.plan.take()
        known = self._main.program
        added = tuple(rule for rule in self._rules.plan.program if rule not in known)
        return self._main.update_all(Changes(inserted, deleted, added, removed))

    def _settle(self, done: Changes[F]) -> Changes[F]:
        """Go on until every rule is in use that may derive something."""
        while True:
            self._rules.meet(self._main.all_facts.predicates())
            if not self._rules.plan.changed:
                return done
            done = composed(done, self._add_rules(self._nothing, self._nothing))


def closed_schema(program: Program, explicit: F, engine: Engine[F]) -> F:
    """What follows from the explicit axioms alone by rules without filters, tuple at a time.

    These are facts of the schema that are not explicit: none if they are too expensive to derive.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import encode
    >>> from corollary.rdf.rulesets import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> text = "[<A>, rdfs:subClassOf, <B>] . [<B>, rdfs:subClassOf, <C>] . [<x>, a, <A>] ."
    >>> explicit = engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    >>> len(closed_schema(rules("rhodf"), explicit, engine))
    1
    """
    from corollary.knowledge_base.tuples import TupleMaintainer  # loads the compiler

    predicates = schema_predicates(program)
    rules = [
        rule
        for rule in program.rules
        if not any(isinstance(part, Filter) for part in rule.body) and is_supported([rule])
    ]
    axioms = explicit.only(predicates)
    process = ColumnarEngine(engine.dictionary)
    own = process.facts({p: axioms.rows(p) for p in axioms.predicates()})
    try:
        closed = TupleMaintainer(Program.of(rules), own, process).all_facts
    except TooManySteps:
        return engine.facts({})
    new = closed.only(predicates).difference(own)
    return engine.facts({p: new.rows(p) for p in new.predicates()})


def _visible(facts: F) -> F:
    hidden = [p for p in facts.predicates() if is_internal(p)]
    return facts.without(hidden) if hidden else facts
