"""`Specialized`: a materialization whose rules are written out for the schema that its facts hold.

Two maintainers: a small one of the *schema*, which knows what follows from axioms alone, and the
main one of everything, whose program has an instance of each template for each case
(`rdf.specialize`) that may derive something (`rdf.plan`). An axiom that comes or goes changes the
schema; the cases by which it differs are a change of rules, and the main maintainer makes it
together with the change of facts, as it makes any other.

Data may derive axioms too: a property below `rdfs:subClassOf`, say. Such a case is not the
schema's own, and its instance is *guarded*: it has the case in its body, and is a rule like
any other, which holds while the case does. So an axiom never supports itself through the rules
that it brought.

Invariants: instances without a guard have cases that follow from explicit axioms by the rules
about schemas; every other case of the materialization has a guarded instance. So the facts are
exactly what the program follows from as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic

from corollary.algorithms.constraints import Inconsistency, inconsistencies
from corollary.algorithms.explain import BUDGET, explain
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.strata import CompiledStrata
from corollary.core.changes import Changes
from corollary.core.compile import TRIPLES, TYPES, home
from corollary.core.engine import Engine, F
from corollary.core.proof import Proof
from corollary.core.statistics import Statistics
from corollary.errors import OperationFailed
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom, Rule
from corollary.rdf.plan import Plan
from corollary.rdf.specialize import Split, Template, is_cases, split

# A template with more cases stays as it is: an instance takes 20 µs to write and some kB.
MANY = 50_000
# Nor are more guarded instances written than these, as each makes the strata larger: where data
# say that everything is below everything, there would be one for each two terms.
GUARDED = 500

_Row = tuple[Predicate, tuple[int, ...]]


@dataclass(eq=False)
class _State(Generic[F]):
    """What there is beside the main maintainer. It is made again if an update fails."""

    program: Program
    split: Split
    schema: Maintainer[F]
    plan: Plan
    cases: dict[_Row, bool]  # with an instance; whether it is guarded
    open: frozenset[Rule]  # of those that wait for facts, see `late`
    cyclic: bool  # whether data may derive axioms

    @cached_property
    def templates(self) -> dict[Predicate, Template]:
        """The templates by the relations of their cases."""
        return {template.predicate: template for template in self.split.templates}

    @cached_property
    def late(self) -> dict[Rule, list[Predicate]]:
        """Rules that may derive any property, and the predicates that they need facts of.

        With one of them in the program, everything depends on everything; so they come when these
        have facts, not when these might have: eq-rep-s when two terms are equal.
        """
        found = {}
        for rule in self.split.general:
            if home(rule.head) in (TRIPLES, TYPES):
                needed = {home(part) for part in rule.body if isinstance(part, Atom)}
                found[rule] = [p for p in needed if p not in (TRIPLES, TYPES)]
        return found

    @property
    def derives_schema(self) -> bool:
        """Whether a rule of the program may derive axioms from data."""
        pure = frozenset(self.split.schema)
        return any(
            self.split.derives_schema(rule.head) and rule not in pure for rule in self.plan.program
        )


class Specialized(Generic[F]):
    """Keeps mat(Π, E) while E and Π change, as `Maintainer` does, by rules written out for E.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import decode, encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.lang.printer import Printer
    >>> from corollary.rdf.rulesets import rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> def facts(text):
    ...     return engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    >>> axiom = "[<Student>, rdfs:subClassOf, <Person>] ."
    >>> kept = Specialized(rules("rhodf"), facts("[<ann>, a, <Student>] ." + axiom), engine)
    >>> print(kept.specialized, end="")
    [rdfs11] [?c, rdfs:subClassOf, ?e] :- [?c, rdfs:subClassOf, ?d], [?d, rdfs:subClassOf, ?e] .
    [rdfs9] [?x, a, <Person>] :- [?x, a, <Student>] .
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
        known: F | None = None,
    ) -> None:
        """Materialize, or begin with what is `known`; the parameters are those of `Maintainer`."""
        self.engine = engine
        self.algorithm = algorithm
        self._nothing = engine.facts({})
        self._general: frozenset[Rule] = frozenset()  # templates that are not written out
        live = (explicit if known is None else known).predicates()
        self._state = self._planned(program, explicit, live)
        added, _ = self._changed_rules()
        self._main = Maintainer(
            Program.of(added),
            explicit,
            engine,
            algorithm=algorithm,
            modules=modules,
            coarse=coarse,
            known=known,
        )
        everything = self._main.all_facts
        self._settle(Changes(everything, self._nothing, statistics=Statistics(algorithm, "")))
        if known is not None:
            self._main.begin()

    @property
    def program(self) -> Program:
        """Π, as it was written."""
        return self._state.program

    @property
    def specialized(self) -> Program:
        """The rules that do the work at the moment."""
        return self._main.program

    @property
    def explicit(self) -> F:
        """E."""
        return self._main.explicit

    @property
    def facts(self) -> F:
        """The materialization, explicit facts included."""
        return self._visible(self._main.facts)

    def update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes of explicit facts and rules; the answer is what the facts differ by."""
        program, main = self.program, self._main.state
        try:
            return self._update(changes)
        except BaseException:
            self._main.state = main
            self._replan(program, self._main.explicit)
            raise

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """The constraints of Π that the facts contradict."""
        return inconsistencies(self.program, self._main.all_facts, self.engine, examples=examples)

    def explain(self, fact: Atom, *, budget: int = BUDGET) -> Proof:
        """A smallest proof of a fact by the rules of Π."""
        return explain(
            fact,
            self.program,
            self._strata,
            self._main.all_facts,
            self.explicit,
            self.engine,
            budget=budget,
        )

    def verify(self) -> None:
        """Derive everything again, by the rules of Π too; `OperationFailed` where it differs."""
        self._main.verify()
        facts = Maintainer(self.program, self.explicit, self.engine).facts
        if not len(facts) == len(self.facts) == len(facts.intersection(self.facts)):
            raise OperationFailed("E407", "the materialization is not what follows from the facts")

    @property
    def _strata(self) -> CompiledStrata:
        known: tuple[Program, CompiledStrata] | None = getattr(self, "_compiled", None)
        if known is None or known[0] is not self.program:
            known = self.program, CompiledStrata(self.program.rules, self.engine.dictionary)
            self._compiled = known
        return known[1]

    @staticmethod
    def _visible(facts: F) -> F:
        hidden = [predicate for predicate in facts.predicates() if is_cases(predicate)]
        return facts.without(hidden) if hidden else facts

    # -- updates ---------------------------------------------------------------------------------

    def _update(self, changes: Changes[F]) -> Changes[F]:
        before = program = self.program
        if changes.added_rules or changes.removed_rules:
            program = program.removed(*changes.removed_rules).added(*changes.added_rules)
            gone = changes.deleted.intersection(self.explicit).difference(changes.inserted)
            explicit = self.explicit.difference(gone).union(changes.inserted)
            self._replan(program, explicit)
        else:
            self._change_schema(changes)
        self._meet(changes.inserted)
        added, removed = self._changed_rules()
        done = self._main.update(Changes(changes.inserted, changes.deleted, added, removed))
        done = self._settle(done)
        return Changes(
            self._visible(done.inserted),
            self._visible(done.deleted),
            tuple(rule for rule in program.rules if rule not in before),
            tuple(rule for rule in before.rules if rule not in program),
            done.statistics,
        )

    def _change_schema(self, changes: Changes[F]) -> None:
        """Update the schema; cases that come get an instance, and cases that go lose it."""
        state = self._state
        about = state.split.predicates
        inserted, deleted = changes.inserted.only(about), changes.deleted.only(about)
        if not len(inserted) and not len(deleted):
            return
        done = state.schema.update(Changes(inserted, deleted))
        gone, new = list(_rows(done.deleted)), list(_rows(done.inserted))
        if not gone and not new:
            return
        if any(_count(state.schema, predicate) > MANY for predicate in {row[0] for row in new}):
            explicit = self.explicit.difference(changes.deleted).union(changes.inserted)
            self._replan(state.program, explicit)
            return
        for row in gone:
            self._remove(row)
            if state.cyclic:  # it may still hold, by what data derive
                self._add(row, guarded=True)
        for row in new:
            if row in state.cases:
                self._remove(row)
            self._add(row)

    def _settle(self, done: Changes[F]) -> Changes[F]:
        """Go on until the rules are right for what they derive."""
        total = done
        while True:
            self._meet(done.inserted)
            self._change_guarded(done)
            self._open_late()
            added, removed = self._changed_rules()
            if not added and not removed:
                return total
            empty = self._nothing
            done = self._main.update(Changes(empty, empty, added, removed))
            total = _composed(total, done)

    def _meet(self, facts: F) -> None:
        self._state.plan.meet(facts.predicates())

    def _open_late(self) -> None:
        state = self._state
        if not state.late:
            return
        facts = self._main.all_facts
        now = frozenset(
            rule
            for rule, needed in state.late.items()
            if all(len(facts.only([predicate])) for predicate in needed)
        )
        if now != state.open:
            for rule in now - state.open:
                state.plan.want(rule)
            for rule in state.open - now:
                state.plan.drop(rule)
            state.open = now

    def _change_guarded(self, done: Changes[F]) -> None:
        """Cases that data derive, or derive no longer."""
        state = self._state
        if state.cyclic:
            for row in _rows(done.inserted):
                if row not in state.cases:
                    self._add(row, guarded=True)
            for row in _rows(done.deleted):
                if state.cases.get(row) is True:
                    self._remove(row)
            guarded = [row for row, is_guarded in state.cases.items() if is_guarded]
            if len(guarded) > GUARDED:
                many = {row[0] for row in guarded}
                self._general |= {t.rule for p, t in state.templates.items() if p in many}
                self._replan(state.program, self.explicit)

    def _changed_rules(self) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
        """What the plan has changed since the last time."""
        state = self._state
        if not state.plan.changed:
            return (), ()
        cyclic = state.derives_schema
        if cyclic != state.cyclic:
            state.cyclic = cyclic
            for template in state.split.templates:
                (state.plan.want if cyclic else state.plan.drop)(template.cases)
            for row in [row for row, guarded in state.cases.items() if guarded and not cyclic]:
                self._remove(row)
        return state.plan.take()

    # -- plans -----------------------------------------------------------------------------------

    def _replan(self, program: Program, explicit: F) -> None:
        """Plan from scratch, and go on from the rules that the main maintainer has."""
        everything, rules = self._main.all_facts, self._main.program.rules
        state = self._state = self._planned(program, explicit, everything.predicates())
        state.plan.taken = dict.fromkeys(rules)
        state.open = frozenset(rule for rule in state.late if rule in state.plan.taken)
        for rule in state.open:
            state.plan.want(rule)
        state.cyclic = any(is_cases(home(rule.head)) for rule in rules)
        if state.cyclic:
            for template in state.split.templates:
                state.plan.want(template.cases)
            for row in _rows(everything):
                if row[0] in state.templates and row not in state.cases:
                    self._add(row, guarded=True)

    def _planned(self, program: Program, explicit: F, live: Iterable[Predicate]) -> _State[F]:
        """A plan for a program and its explicit facts; of late rules there are none so far."""
        general = self._general
        while True:
            found = split(program, general)
            rules = [*found.schema, *(template.cases for template in found.templates)]
            schema = Maintainer(Program.of(rules), explicit.only(found.predicates), self.engine)
            many = [t.rule for t in found.templates if _count(schema, t.predicate) > MANY]
            if not many:
                break
            general |= frozenset(many)
        state = _State[F](program, found, schema, Plan(), {}, frozenset(), cyclic=False)
        soon = [rule for rule in found.general if rule not in state.late]
        state.plan = Plan(soon)
        state.plan.meet(live)
        for rule in (*found.schema, *soon):
            state.plan.want(rule)
        self._state = state
        for row in _rows(schema.facts):
            self._add(row)
        return state

    def _add(self, row: _Row, *, guarded: bool = False) -> None:
        self._state.cases[row] = guarded
        self._state.plan.want(self._instance(row, guarded=guarded))

    def _remove(self, row: _Row) -> None:
        guarded = self._state.cases.pop(row)
        self._state.plan.drop(self._instance(row, guarded=guarded))

    def _instance(self, row: _Row, *, guarded: bool) -> Rule | None:
        predicate, ids = row
        values = self.engine.dictionary.terms(ids)
        return self._state.templates[predicate].instance(values, guarded=guarded)


def _rows(facts: Any) -> Iterable[_Row]:
    for predicate in facts.predicates():
        if is_cases(predicate):
            for row in facts.rows(predicate).tolist():
                yield predicate, tuple(row)


def _count(schema: Maintainer[Any], predicate: Predicate) -> int:
    return len(schema.facts.only([predicate]))


def _composed(first: Changes[F], second: Changes[F]) -> Changes[F]:
    """What two updates, one after the other, differ by together."""
    statistics = first.statistics
    if statistics is not None and second.statistics is not None:
        statistics.include(second.statistics)
    return Changes(
        first.inserted.difference(second.deleted).union(second.inserted.difference(first.deleted)),
        first.deleted.difference(second.inserted).union(second.deleted.difference(first.inserted)),
        statistics=statistics,
    )
