"""`Maintainer`: a materialization that is kept up to date as facts and rules change.

An update works on values that are thrown away if it fails: the facts, the explicit facts, the
program and the counters are replaced together, at the end, or not at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

from corollary.algorithms import seminaive
from corollary.algorithms.aggregates import is_internal
from corollary.algorithms.backward_forward import BackwardForward
from corollary.algorithms.choose import Auto, worth_rematerializing
from corollary.algorithms.counted import CountedBackwardForward, CountedDRed, recount
from corollary.algorithms.dred import DRed
from corollary.algorithms.explain import BUDGET, explain
from corollary.algorithms.fp_update import FPUpdate
from corollary.algorithms.modular.framework import Module
from corollary.algorithms.modular.update import (
    Begun,
    ModularBackwardForward,
    ModularDRed,
    Settled,
    rivals,
)
from corollary.algorithms.step import Algorithm, Counters, Step, finish
from corollary.algorithms.strata import CompiledStrata, CompiledStratum, ModuleKey
from corollary.core.changes import Changes
from corollary.core.compile import CompiledRule
from corollary.core.engine import Derived, Engine, F
from corollary.core.proof import Proof
from corollary.core.statistics import Statistics
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Graph, Predicate
from corollary.lang.syntax import Atom, Rule

OnStratum = Callable[[int, int, int, int], None]  # stratum, strata, rounds so far, facts


@dataclass(frozen=True)
class _Kind:
    """An algorithm by name: how to make it, what it counts, what it is."""

    make: Callable[[], Algorithm[Any]] | None
    counts: tuple[bool, bool] = (False, False)  # nonrecursive and recursive instances
    about: str = ""
    modular: Callable[[Sequence[Module[Any]]], Algorithm[Any]] | None = None


_BF, _DRED = ModularBackwardForward, ModularDRed
KINDS = {
    "auto": _Kind(Auto, about="no stratum is touched", modular=_BF),
    "bf": _Kind(BackwardForward, about="Backward/Forward", modular=_BF),
    "dred": _Kind(DRed, about="Delete/Rederive", modular=_DRED),
    "dred-c": _Kind(CountedDRed, (True, True), "Delete/Rederive with counters", _DRED),
    "bf-c": _Kind(CountedBackwardForward, (True, False), "Backward/Forward with a counter", _BF),
    "counting": _Kind(CountedDRed, (True, False), "counting, for programs without recursion"),
    "fp": _Kind(FPUpdate, about="FP-update: two fixpoints"),
    "rematerialize": _Kind(None, about="everything derived anew"),
}
ALGORITHMS = tuple(KINDS)


@dataclass(frozen=True)
class _State(Generic[F]):
    """All that an update replaces."""

    program: Program
    strata: CompiledStrata
    explicit: F
    facts: F
    counters: Counters[F] | None
    modules: Mapping[ModuleKey, Any]  # their states
    instances: int  # considered when everything was derived


class Maintainer(Generic[F]):
    """Keeps mat(Π, E) while E and Π change.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import decode, encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> dictionary = Dictionary()
    >>> engine = ColumnarEngine(dictionary)
    >>> program = Program.parse("p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- e(?x, ?y), p(?y, ?z) .")
    >>> def facts(text):
    ...     return engine.facts(encode(Program.parse(text).facts, dictionary))
    >>> maintainer = Maintainer(program, facts("e(1, 2) . e(2, 3) . e(3, 4) ."), engine)
    >>> changes = maintainer.update(Changes(facts("e(1, 3) ."), facts("e(2, 3) .")))
    >>> sorted(Printer().atom(atom) for atom in decode(changes.deleted, dictionary))
    ['e(2, 3)', 'p(2, 3)', 'p(2, 4)']
    """

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        *,
        algorithm: str = "auto",
        coarse: bool = False,
        modules: bool = True,
        on_progress: OnStratum | None = None,
    ) -> None:
        """Materialize. With `coarse`, there are as few strata as negation allows.

        `modules` (`algorithms.modular`) keep transitive relations and the like by algorithms of
        their own: always in a materialization, and in updates by `auto`, `bf`, `bf-c`, `dred` and
        `dred-c`.
        """
        if algorithm not in KINDS:
            raise InvalidInput(
                "E308", f"there is no algorithm {algorithm}", f"there are {', '.join(KINDS)}"
            )
        self.engine = engine
        self.algorithm = algorithm
        self._kind = KINDS[algorithm]
        self._coarse = coarse
        self._modules = modules
        self._on_progress = on_progress
        self._state = self._materialized(program, explicit, None)

    @property
    def program(self) -> Program:
        """Π."""
        return self._state.program

    @property
    def explicit(self) -> F:
        """E."""
        return self._state.explicit

    @property
    def facts(self) -> F:
        """The materialization, explicit facts included."""
        return _visible(self._state.facts)

    @property
    def everything(self) -> F:
        """The materialization with auxiliary facts."""
        return self._state.facts

    @property
    def state(self) -> object:
        """All that updates replace, as a value: to go back to it, assign it."""
        return self._state

    @state.setter
    def state(self, state: object) -> None:
        assert isinstance(state, _State), "a state of this maintainer"
        self._state = state

    def update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes of explicit facts and rules; the answer is what the facts differ by."""
        state = self._state
        program, strata = state.program, state.strata
        if changes.added_rules or changes.removed_rules:
            program = program.removed(*changes.removed_rules).added(*changes.added_rules)
            strata = self._compiled(program, strata)
        # E⁻ := (E⁻ ∩ E) \ E⁺; E⁺ := E⁺ \ E
        removed = changes.deleted.intersection(state.explicit).difference(changes.inserted)
        inserted = changes.inserted.difference(state.explicit)
        explicit = state.explicit.difference(removed).union(inserted)
        statistics = Statistics(self.algorithm, self._kind.about)
        anew = self._kind.make is None
        if self.algorithm == "auto":
            reason = worth_rematerializing(
                len(removed), len(inserted), len(state.explicit), state.instances
            )
            if reason is not None:
                anew, statistics.reason = True, reason
        if anew:
            new = self._materialized(program, explicit, strata, statistics)
            difference = (new.facts.difference(state.facts), state.facts.difference(new.facts))
        else:
            work = _Update(self, state, strata, explicit, statistics)
            difference = work.run(removed, inserted)
            new = replace(
                state,
                program=program,
                strata=strata,
                explicit=explicit,
                facts=work.facts,
                counters=work.counters,
                modules=work.modules,
            )
        self._state = new
        return Changes(
            _visible(difference[0]),
            _visible(difference[1]),
            _missing(program, state.program),
            _missing(state.program, program),
            statistics,
        )

    def explain(self, fact: Atom, *, budget: int = BUDGET) -> Proof:
        """A smallest proof of a fact, looking at so many instances (`algorithms.explain`)."""
        state = self._state
        return explain(
            fact,
            state.program,
            state.strata,
            state.facts,
            state.explicit,
            self.engine,
            budget=budget,
        )

    def verify(self) -> None:
        """Derive and count everything again; raises `OperationFailed` where it differs."""
        state = self._state
        anew = self._materialized(state.program, state.explicit, state.strata)
        if not _equal(anew.facts, state.facts):
            raise OperationFailed("E407", "the materialization is not what follows from the facts")
        self._verify_modules(state)
        if state.counters is None or anew.counters is None:
            return
        pairs = [("nonrecursive", state.counters.nonrecursive, anew.counters.nonrecursive)]
        if state.counters.recursive is not None and anew.counters.recursive is not None:
            pairs.append(("recursive", state.counters.recursive, anew.counters.recursive))
        for name, kept, counted in pairs:
            facts = counted.facts()
            right = _equal(kept.facts(), facts)
            ours, theirs = kept.of(facts), counted.of(facts)
            if not right or any((ours[p] != theirs[p]).any() for p in facts.predicates()):
                raise OperationFailed("E407", f"the counts of {name} instances are not right")

    def _verify_modules(self, state: _State[F]) -> None:
        for stratum in state.strata.strata:
            for module in stratum.modules:
                key = stratum.key(module)
                if key not in state.modules:
                    continue
                given = module.with_state(state.modules[key]).given
                if given is None:
                    continue
                expected = _given(module, stratum, self.engine, state.explicit, state.facts)
                if not _equal(given, expected):
                    raise OperationFailed("E407", f"what is given to {module.name} is not right")

    def _materialized(
        self,
        program: Program,
        explicit: F,
        strata: CompiledStrata | None,
        statistics: Statistics | None = None,
    ) -> _State[F]:
        strata = strata or self._compiled(program, None)
        done = seminaive.materialize_strata(
            strata.sources,
            explicit,
            self.engine,
            compiled=strata.compiled,
            modules=self._modules,
            on_progress=self._on_progress,
        )
        instances = sum(done.statistics.derivations.values())
        if statistics is not None:
            statistics.rounds += done.statistics.rounds
            statistics.count("materialization", instances)
        counters = None
        if self._kind.counts[0]:
            counters = recount(
                self.engine,
                strata.strata,
                done.facts,
                recursive=self._kind.counts[1],
                modules=self.uses_modules,
            )
        modules = self._begun(strata, done) if self.uses_modules else {}
        return _State(program, strata, explicit, done.facts, counters, modules, instances)

    def _begun(
        self, strata: CompiledStrata, done: seminaive.Materialization[F]
    ) -> dict[ModuleKey, Any]:
        """The states of the modules, which know all that is given to them."""
        used = {frozenset(module.rules): module for module in done.modules}
        states = {}
        for stratum in strata.strata:
            for module, others in rivals(stratum.modules, stratum):
                made = used.get(frozenset(module.rules), module.with_state(None))
                if others:
                    found = self.engine.derive(others, done.facts).facts
                    made.give(self.engine, found.only(module.predicates))
                states[stratum.key(module)] = made.state
        return states

    @property
    def uses_modules(self) -> bool:
        """Whether updates use modules."""
        return self._modules and self._kind.modular is not None

    def _compiled(self, program: Program, known: CompiledStrata | None) -> CompiledStrata:
        if self.algorithm == "counting":
            _refuse_recursion(program)
        compiled = known.compiled if known is not None else None
        coarse = self._coarse and self.algorithm != "counting"
        return CompiledStrata(
            program.rules, self.engine.dictionary, coarse=coarse, compiled=compiled
        )


class _Update(Generic[F]):
    """The working state of one update."""

    def __init__(
        self,
        maintainer: Maintainer[F],
        state: _State[F],
        strata: CompiledStrata,
        explicit: F,
        statistics: Statistics,
    ) -> None:
        kind = maintainer._kind
        assert kind.make is not None, "rematerialization is no update"
        self.algorithm: Algorithm[F] = kind.make()
        self.engine = maintainer.engine
        self.strata = strata
        self.before = self.facts = state.facts
        self.explicit = explicit
        self.statistics = statistics
        self.counters = replace(state.counters) if state.counters is not None else None
        self.deleted = self.inserted = self.engine.facts({})
        self._on_progress = maintainer._on_progress
        self._modular = kind.modular if maintainer.uses_modules else None
        self._with_modules = 0  # strata
        # For strata whose modules are new; with C_nr alone, DRed^c would not rederive.
        self._plain = CountedBackwardForward() if kind.counts[1] else self.algorithm
        self._was = state.strata
        self.modules: Mapping[ModuleKey, Any] = dict(state.modules)
        self._lost = self._gained = self.deleted

    def run(self, removed: F, inserted: F) -> tuple[F, F]:
        """Update stratum by stratum; returns what was inserted and deleted."""
        self._lost, self._gained = removed, inserted
        added = self._change_rules()
        self._update_underived()
        touched = self.strata.readers([*self.deleted.predicates(), *self.inserted.predicates()])
        touched |= self._owners(self._lost.predicates()) | self._owners(self._gained.predicates())
        if added:
            touched |= {
                stratum.number
                for stratum in self.strata.strata
                if not added.isdisjoint(stratum.rules)
                or any(aggregation.rule in added for aggregation in stratum.aggregations)
            }
        waiting = sorted(touched)
        while waiting:
            number = heapq.heappop(waiting)
            stratum = self.strata.strata[number]
            if stratum.aggregations:
                changed = self._aggregate(stratum, added)
            else:
                changed = self._step(stratum, added)
            for reader in self.strata.readers(changed):
                if reader > number and reader not in touched:
                    touched.add(reader)
                    heapq.heappush(waiting, reader)
            if self._on_progress is not None:
                total = len(self.strata.strata)
                self._on_progress(number + 1, total, self.statistics.rounds, len(self.facts))
        if self._with_modules:
            n = self._with_modules
            text = f"modules in {n} strat{'um' if n == 1 else 'a'}"
            untouched = self.statistics.reason == KINDS["auto"].about
            self.statistics.reason = text if untouched else f"{self.statistics.reason}, {text}"
        return self.inserted, self.deleted

    def _change_rules(self) -> frozenset[CompiledRule]:
        """Heads of removed rules are lost; counters follow. Returns the rules that are new."""
        old, new = self._was.compiled, self.strata.compiled
        if old is new:
            return frozenset()
        removed = [compiled for rule, compiled in old.items() if rule not in new]
        kinds_before, kinds_now = (
            strata.kinds(modules=self._modular is not None) for strata in (self._was, self.strata)
        )
        derived_by = self._derived_by_modules(frozenset(removed))
        for rule in removed:
            if self.strata.owner(rule.head.predicate) is None and not rule.head.wide:
                continue  # forgotten as a whole
            if rule in derived_by:
                self._lost = self._lost.union(derived_by[rule].only(self.strata.derived))
                continue
            derived = self.engine.derive([rule], self.before, counted=self.counters is not None)
            self.statistics.count("rule removal", derived.instances)
            self._lost = self._lost.union(derived.facts.only(self.strata.derived))
            if self.counters is not None:
                self._count(derived, kinds_before[rule], sign=-1)
        self._forget([rule.head.predicate for rule in removed])
        if self.counters is not None:
            for rule in (compiled for source, compiled in new.items() if source in old):
                was, now = kinds_before[rule], kinds_now[rule]
                if was != now:
                    derived = self.engine.derive([rule], self.before, counted=True)
                    self._count(derived, was, sign=-1)
                    self._count(derived, now, sign=1)
        # A state that is not kept up to date is of no use later.
        if self._modular is not None:
            keys = {s.key(module) for s in self.strata.strata for module in s.modules}
            self.modules = {key: state for key, state in self.modules.items() if key in keys}
        return frozenset(compiled for rule, compiled in new.items() if rule not in old)

    def _count(self, derived: Derived[F], kind: str, *, sign: int) -> None:
        """Tell the counters; instances in modules are not counted."""
        if self.counters is not None and kind != "modular":
            self.counters.add(derived, recursive=kind == "recursive", sign=sign)

    def _derived_by_modules(self, removed: frozenset[CompiledRule]) -> dict[CompiledRule, F]:
        """For removed rules of modules that decide everything: what was not given by others."""
        found: dict[CompiledRule, F] = {}
        if self._modular is None:
            return found
        for stratum in self._was.strata:
            if removed.isdisjoint(stratum.recursive) or not stratum.modular:
                continue
            for module in stratum.modules:
                key = stratum.key(module)
                if key not in self.modules or removed.isdisjoint(module.rules):
                    continue
                given = module.with_state(self.modules[key]).given
                if given is not None:
                    facts = self.before.only(module.predicates).difference(given)
                    found |= {rule: facts for rule in module.rules if rule in removed}
        return found

    def _forget(self, heads: list[Predicate]) -> None:
        """Predicates that no rule derives any more keep their explicit facts."""
        derived = self.strata.derived
        facts = self.before.only(heads).without(derived)
        self._lost = self._lost.union(facts)
        if self.counters is not None:
            gone = list(facts.predicates())
            self.counters.nonrecursive = self.counters.nonrecursive.without(gone)
            if self.counters.recursive is not None:
                self.counters.recursive = self.counters.recursive.without(gone)

    def _update_underived(self) -> None:
        """Facts of predicates that no rule derives: nothing but explicit ones."""
        derived = self.strata.derived
        lost = self._lost.without(derived).difference(self.explicit)
        gained = self._gained.without(derived).difference(self.facts)
        self._lost, self._gained = self._lost.only(derived), self._gained.only(derived)
        self._apply(lost, gained)

    def _owners(self, predicates: Iterable[Predicate]) -> set[int]:
        return {owner for p in predicates if (owner := self.strata.owner(p)) is not None}

    def _apply(self, lost: F, gained: F) -> list[Predicate]:
        """Replace facts; returns the predicates that changed."""
        if len(lost):
            self.facts = self.facts.difference(lost)
        if len(gained):
            self.facts = self.facts.union(gained)
        return self._remember(lost, gained)

    def _remember(self, lost: F, gained: F) -> list[Predicate]:
        """Add to D \\ A and A \\ D; returns the predicates that changed."""
        if len(lost):
            self.deleted = self.deleted.union(lost)
        if len(gained):
            self.inserted = self.inserted.union(gained)
        return [*lost.predicates(), *gained.predicates()]

    def _aggregate(
        self, stratum: CompiledStratum, added: frozenset[CompiledRule]
    ) -> list[Predicate]:
        changed = []
        for aggregation in stratum.aggregations:
            if aggregation.rule in added:
                gained = self.engine.derive([aggregation.rule], self.facts).facts
                changed += self._apply(self.engine.facts({}), gained)
                continue
            gained, lost = aggregation.evaluate(
                self.engine, self.before, self.facts, self.deleted, self.inserted
            )
            changed += self._apply(lost, gained)
        return changed

    def _step(self, stratum: CompiledStratum, added: frozenset[CompiledRule]) -> list[Predicate]:
        step = Step(
            self.engine,
            stratum,
            self.statistics,
            added,
            self.before,
            self.facts,
            self.explicit,
            self.deleted,
            self.inserted,
            self._lost.only(stratum.predicates),
            self._gained.only(stratum.predicates),
            self.counters,
        )
        algorithm, modules = self._algorithm(stratum)
        if modules and self.counters is not None:
            # C_r is for strata without modules.
            step.counters = Counters(self.counters.nonrecursive)
        removal = finish(algorithm.delete(step))
        if len(removal.overdeleted):
            step.facts = step.facts.difference(removal.overdeleted)
        new = algorithm.insert(step, removal.rederived)
        self.facts = step.facts
        if step.counters is not None and self.counters is not None:
            self.counters.nonrecursive = step.counters.nonrecursive
        if isinstance(algorithm, type(self._plain)):
            for module in modules:
                self._begin(module, step)
        self.modules = {**self.modules, **{stratum.key(m): m.state for m in modules}}
        lost, gained = removal.overdeleted, new
        if len(lost) and len(gained):
            lost, gained = lost.difference(new), new.difference(removal.overdeleted)
        return self._remember(lost, gained)

    def _algorithm(self, stratum: CompiledStratum) -> tuple[Algorithm[F], Sequence[Module[F]]]:
        """How the stratum is updated, and its modules."""
        if self._modular is None or not stratum.modules:
            return self.algorithm, ()
        known = all(stratum.key(module) in self.modules for module in stratum.modules)
        modules = [
            module.with_state(self.modules[stratum.key(module)] if known else None)
            for module in stratum.modules
        ]
        if not known and not stratum.modular:
            return self._plain, modules
        self._with_modules += 1
        if stratum.modular:
            return (Settled if known else Begun)(modules), modules
        return self._modular(modules), modules

    def _begin(self, module: Module[F], step: Step[F]) -> None:
        """Tell a new module of the facts that other rules derive."""
        given = _given(module, step.stratum, step.engine, step.explicit, step.facts)
        module.give(step.engine, given)


def _given(
    module: Module[F], stratum: CompiledStratum, engine: Engine[F], explicit: F, facts: F
) -> F:
    """The facts of a module's predicates that are explicit, or that other rules derive."""
    others = [
        rule
        for rule in stratum.rules
        if rule not in module.rules and rule.head.predicate in module.predicates
    ]
    given = explicit.only(module.predicates)
    if others:
        given = given.union(engine.derive(others, facts).facts.only(module.predicates))
    return given


def _visible(facts: F) -> F:
    hidden = [predicate for predicate in facts.predicates() if is_internal(predicate)]
    return facts.without(hidden) if hidden else facts


def _missing(program: Program, other: Program) -> tuple[Rule, ...]:
    """The rules of a program that the other one does not have."""
    if program is other:
        return ()
    return tuple(rule for rule in (*program.rules, *program.constraints) if rule not in other)


def _equal(one: F, two: F) -> bool:
    return len(one) == len(two) == len(one.intersection(two))


def _refuse_recursion(program: Program) -> None:
    graph = Graph(program.rules)
    for dependency in graph.dependencies:
        cycle = graph.cycle(dependency)
        if cycle is not None:
            printer = Printer(program.prefixes)
            path = " → ".join(p.describe(printer) for p in [dependency.head, *cycle])
            raise InvalidInput(
                "E309",
                f"counting cannot maintain recursive rules, and this program has {path}",
                "use dred-c, bf-c or auto",
            )
