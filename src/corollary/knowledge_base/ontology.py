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
from corollary.errors import OperationFailed
from corollary.knowledge_base.tuning import tuning
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom, Rule
from corollary.rdf.cases import Open, opens
from corollary.rdf.plan import Plan
from corollary.rdf.specialize import Split, Template, is_cases, split

_Row = tuple[Template, tuple[int, ...]]


class _TooManyCases(Exception):
    """A template has become general, and the plan is to be made again."""


@dataclass(eq=False)
class _State(Generic[F]):
    """What there is beside the main maintainer. It is made again if an update fails."""

    program: Program
    split: Split
    schema: Maintainer[F]
    plan: Plan
    gates: Open
    cases: dict[_Row, Rule | None]  # and their instances, None if one says nothing
    guarded: set[_Row]  # of them, those that data derive
    open: frozenset[Rule]  # of those that wait for facts, see `late`
    cyclic: bool  # whether data may derive axioms

    @cached_property
    def templates(self) -> dict[Predicate, list[Template]]:
        """The templates by the predicates of their cases."""
        found: dict[Predicate, list[Template]] = {}
        for template in self.split.templates:
            found.setdefault(template.predicate, []).append(template)
        return found

    @cached_property
    def rules_of_cases(self) -> list[Rule]:
        """The rules that derive the cases which are no facts of the schema already."""
        return [template.cases for template in self.split.templates if not template.direct]

    @cached_property
    def pure(self) -> frozenset[Rule]:
        """The rules about schemas alone."""
        return frozenset(self.split.schema)

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

    def derives_schema(self, rule: Rule) -> bool:
        """Whether a rule may derive axioms from data."""
        return self.split.derives_schema(rule.head) and rule not in self.pure

    @property
    def closed(self) -> F:
        """The schema with all that follows from it alone."""
        return self.schema.all_facts.only(self.split.predicates)

    def active(self, facts: F) -> Iterator[_Row]:
        """The cases among some facts whose instances may derive something."""
        for predicate in facts.predicates():
            for template in self.templates.get(predicate, ()):
                for row in self.gates.rows(template, facts.rows(predicate)).tolist():
                    yield template, tuple(row)


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
        on_progress: OnStratum | None = None,
        known: F | None = None,
        complete: str | None = None,
    ) -> None:
        """Materialize, or begin with what is `known`; the parameters are those of `Maintainer`."""
        self.engine = engine
        self.algorithm = algorithm
        self._nothing = engine.facts({})
        self._general: frozenset[Rule] = frozenset()  # templates that are not written out
        # While only rules about schemas derive axioms, the main maintainer is given the schema as
        # the other one has closed it, and does without these rules.
        self._given = True
        self._moved: tuple[frozenset[Predicate], F] | None = None
        self._state: _State[F]
        live = (explicit if known is None else known).predicates()
        state = self._planned(program, explicit, live)
        self._turn()
        self._given = not state.cyclic
        added, _ = state.plan.take()
        if self._given:
            added = tuple(rule for rule in added if rule not in state.pure)
            explicit = explicit.without(state.split.predicates).union(state.closed)
        self._main: Maintainer[F] = self._maintained(
            Program.of(added),
            explicit,
            algorithm=algorithm,
            modules=modules,
            coarse=coarse,
            on_progress=on_progress,
            known=known,
            complete=complete,
        )
        # What it took to derive everything: the schema, the rest, and what came with new rules.
        self.statistics = state.schema.statistics
        self.statistics.include(self._main.statistics)
        everything = self._main.all_facts
        self._settle(Changes(everything, self._nothing, statistics=self.statistics))
        if known is not None:
            self._main.begin()

    def _maintained(self, program: Program, explicit: F, **options: Any) -> Any:
        """The main maintainer."""
        return Maintainer(program, explicit, self.engine, **options)

    @property
    def program(self) -> Program:
        """Π, as it was written."""
        return self._state.program

    @property
    def specialized(self) -> Program:
        """The rules that do the work at the moment."""
        return Program.of(self._state.plan.program)

    @property
    def rule_count(self) -> int:
        """How many rules do the work at the moment."""
        return len(self._main.program.rules)

    @property
    def explicit(self) -> F:
        """E."""
        if not self._given:
            return self._main.explicit
        state = self._state
        return self._main.explicit.without(state.split.predicates).union(state.schema.explicit)

    @property
    def facts(self) -> F:
        """The materialization, explicit facts included."""
        return self._visible(self._main.all_facts)

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
        state, given = self._state, self._given
        main, schema = self._main.state, state.schema.state
        try:
            return self._update(changes)
        except BaseException:
            self._main.state, state.schema.state = main, schema
            self._state, self._given = state, given
            self._replan(state.program, self.explicit)
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
        hidden = [p for p in facts.predicates() if is_cases(p) or is_internal(p)]
        return facts.without(hidden) if hidden else facts

    # -- updates ---------------------------------------------------------------------------------

    def _update(self, changes: Changes[F]) -> Changes[F]:
        before = program = self.program
        about: Changes[F] | None = None
        if changes.added_rules or changes.removed_rules:
            program = program.removed(*changes.removed_rules).added(*changes.added_rules)
            known = self.explicit
            gone = changes.deleted.intersection(known).difference(changes.inserted)
            self._replan(program, known.difference(gone).union(changes.inserted))
        else:
            about = self._change_schema(changes)
        self._meet(changes.inserted)
        done = self._settle(self._follow(changes.inserted, changes.deleted, about))
        if about is not None and about.statistics is not None and done.statistics is not None:
            done.statistics.include(about.statistics)
        added: tuple[Rule, ...] = ()
        removed: tuple[Rule, ...] = ()
        if program is not before:
            added = tuple(rule for rule in program.rules if rule not in before)
            removed = tuple(rule for rule in before.rules if rule not in program)
        return Changes(
            self._visible(done.inserted),
            self._visible(done.deleted),
            added,
            removed,
            done.statistics,
        )

    def _change_schema(self, changes: Changes[F]) -> Changes[F] | None:
        """Update the schema; cases that come get an instance, and cases that go lose it."""
        state = self._state
        predicates = state.split.predicates
        inserted, deleted = changes.inserted.only(predicates), changes.deleted.only(predicates)
        if not len(inserted) and not len(deleted):
            return None
        done = state.schema.update_all(Changes(inserted, deleted))
        for row in state.active(done.deleted):
            if row in state.cases:
                self._remove(row)
                if state.cyclic:  # it may still hold, by what data derive
                    self._add(row, guarded=True)
        try:
            self._add_all(done.inserted)
        except _TooManyCases:
            self._replan(state.program, self._schema_facts())
        return done

    def _follow(self, inserted: F, deleted: F, about: Changes[F] | None) -> Changes[F]:
        """Let the main maintainer make a change of facts, together with what the plan changed.

        `about` is by what the schema differs.
        """
        self._turn()
        state, main = self._state, self._main
        given, was_given = not state.cyclic, self._given
        added, removed = state.plan.take()
        after: F | None = None  # E of the main maintainer
        if self._moved is not None or given != was_given:
            # Compare: which rules there should be, and which explicit facts about the schema.
            now = [rule for rule in state.plan.program if not (given and rule in state.pure)]
            known = main.program
            added = tuple(rule for rule in now if rule not in known)
            wanted = frozenset(now)
            removed = tuple(rule for rule in known.rules if rule not in wanted)
            predicates, explicit = self._moved or (state.split.predicates, state.schema.explicit)
            target = explicit.without(state.split.predicates)
            target = target.union(state.closed if given else state.schema.explicit)
            present = main.explicit.only(predicates)
            inserted = inserted.without(predicates).union(target.difference(present))
            deleted = deleted.without(predicates).union(present.difference(target))
        elif given:
            added = tuple(rule for rule in added if rule not in state.pure)
            removed = tuple(rule for rule in removed if rule not in state.pure)
            after, deleted, inserted = main.explicit.changed(
                deleted.without(state.split.predicates), inserted.without(state.split.predicates)
            )
            if about is not None:
                came = about.inserted.only(state.split.predicates)
                went = about.deleted.only(state.split.predicates)
                after = after.replaced(went, came, shared=state.schema.all_facts)
                inserted, deleted = inserted.union(came), deleted.union(went)
        self._moved, self._given = None, given
        return main.update_all(Changes(inserted, deleted, added, removed), explicit=after)

    def _settle(self, done: Changes[F]) -> Changes[F]:
        """Go on until the rules are right for what they derive."""
        total = done
        while True:
            self._meet(done.inserted)
            self._change_guarded(done)
            self._open_late()
            self._turn()
            if not self._state.plan.changed and self._moved is None:
                return total
            done = self._follow(self._nothing, self._nothing, None)
            total = composed(total, done)

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
        if not state.cyclic:
            return
        for row in state.active(done.inserted):
            if row not in state.cases:
                self._add(row, guarded=True)
        for row in state.active(done.deleted):
            if row in state.guarded:
                self._remove(row)
        if len(state.guarded) > tuning.guarded_cases_limit:
            self._general |= {template.rule for template, _ in state.guarded}
            self._replan(state.program, self._schema_facts())

    def _turn(self) -> None:
        """Find the instances that new predicates call for, and whether data may derive axioms."""
        state = self._state
        try:
            self._wake()
        except _TooManyCases:
            self._replan(state.program, self._schema_facts())
            state = self._state
        cyclic = state.plan.watched > 0
        if cyclic != state.cyclic:
            state.cyclic = cyclic
            for rule in state.rules_of_cases:
                (state.plan.want if cyclic else state.plan.drop)(rule)
            if cyclic and hasattr(self, "_main"):
                self._add_guarded()  # facts that were known may have axioms that data derive
            if not cyclic:
                for row in list(state.guarded):
                    self._remove(row)

    # -- plans -----------------------------------------------------------------------------------

    def _replan(self, program: Program, explicit: F) -> None:
        """Plan from scratch, and go on from the rules that the main maintainer has.

        Of the explicit facts, those about the schema count.
        """
        everything, rules = self._main.all_facts, self._main.program
        moved = self._state.split.predicates
        if self._moved is not None:
            moved |= self._moved[0]
        state = self._planned(program, explicit, everything.predicates())
        moved |= state.split.predicates
        self._moved = moved, explicit.only(moved)
        state.open = frozenset(rule for rule in state.late if rule in rules)
        for rule in state.open:
            state.plan.want(rule)
        state.cyclic = not self._given
        if state.cyclic:
            for rule in state.rules_of_cases:
                state.plan.want(rule)
            self._add_guarded()

    def _schema_facts(self) -> F:
        """The explicit facts about the schema, and those that are still to move out of it.

        A plan may be made again before the main maintainer has got the facts of predicates that a
        change of rules has made data.
        """
        state = self._state
        if self._moved is None:
            return state.schema.explicit
        return self._moved[1].without(state.split.predicates).union(state.schema.explicit)

    def _planned(self, program: Program, explicit: F, live: Iterable[Predicate]) -> _State[F]:
        """A plan for a program and its explicit facts; of late rules there are none so far."""
        while True:
            found = split(program, self._general)
            rules = [*found.schema, *(t.cases for t in found.templates if not t.direct)]
            schema = Maintainer(Program.of(rules), explicit.only(found.predicates), self.engine)
            gates = Open(self.engine.dictionary)
            state = _State[F](
                program, found, schema, Plan(), gates, {}, set(), frozenset(), cyclic=False
            )
            soon = [rule for rule in found.general if rule not in state.late]
            state.plan = Plan(soon, state.derives_schema)
            state.plan.meet(live)
            for rule in (*found.schema, *soon):
                state.plan.want(rule)
            self._state = state
            try:
                # Those without a gate are for no predicate to call for.
                self._add_all(schema.all_facts)
                self._wake()
            except _TooManyCases:
                continue
            return state

    def _wake(self) -> None:
        """Write the instances for cases whose gates have opened."""
        state = self._state
        while met := state.plan.met():
            state.gates.add(met)
            templates = [t for t in state.split.templates if opens(t, met)]
            if templates:
                predicates = [template.predicate for template in templates]
                self._add_all(state.schema.all_facts.only(predicates), fresh=True)
                if state.cyclic:
                    self._add_guarded(predicates)

    def _add_all(self, cases: F, *, fresh: bool = False) -> None:
        """Instances for the cases that follow from the schema alone.

        With `fresh`, for those alone whose gates have just opened.
        """
        state = self._state
        found = []
        for predicate, template in (
            (p, t) for p in cases.predicates() for t in state.templates.get(p, ())
        ):
            rows = state.gates.rows(template, cases.rows(predicate))
            if len(rows) > tuning.specialized_cases_limit:
                self._general |= {template.rule}
                raise _TooManyCases
            if fresh:
                rows = state.gates.rows(template, rows, fresh=True)
            found.append((template, rows.tolist()))
        # Together, because a dictionary whose terms are in tables is slow to ask for each.
        self.engine.dictionary.terms({i for _, rows in found for values in rows for i in values})
        for template, rows in found:
            for values in rows:
                row = (template, tuple(values))
                if row in state.guarded:
                    self._remove(row)
                if row not in state.cases:
                    self._add(row)

    def _add_guarded(self, predicates: Iterable[Predicate] | None = None) -> None:
        """Instances for the cases that the main maintainer has beside those."""
        state = self._state
        facts = self._main.all_facts.only(list(predicates or state.templates))
        for row in state.active(facts):
            if row not in state.cases:
                self._add(row, guarded=True)

    def _add(self, row: _Row, *, guarded: bool = False) -> None:
        state, (template, ids) = self._state, row
        values = self.engine.dictionary.terms(ids)
        rule = state.cases[row] = template.instance(values, guarded=guarded)
        if guarded:
            state.guarded.add(row)
        state.plan.want(rule)

    def _remove(self, row: _Row) -> None:
        self._state.guarded.discard(row)
        self._state.plan.drop(self._state.cases.pop(row))
