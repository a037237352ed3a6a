"""`Maintainer`: a materialization that is kept up to date as facts and rules change.

An update works on values that are thrown away if it fails: the facts, the explicit facts, the
program and the counters are replaced together, at the end, or not at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
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
from corollary.algorithms.step import Algorithm, Counters, Step, finish
from corollary.algorithms.strata import CompiledStrata, CompiledStratum
from corollary.core.changes import Changes
from corollary.core.compile import CompiledRule
from corollary.core.engine import Engine, F
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


KINDS = {
    "auto": _Kind(Auto, about="no stratum is touched"),
    "bf": _Kind(BackwardForward, about="Backward/Forward"),
    "dred": _Kind(DRed, about="Delete/Rederive"),
    "dred-c": _Kind(CountedDRed, (True, True), "Delete/Rederive with counters"),
    "bf-c": _Kind(CountedBackwardForward, (True, False), "Backward/Forward with a counter"),
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

        `modules` (`algorithms.modular`) are for what is derived from scratch: a materialization, or
        a stratum that `auto` closes again.
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
                self.engine, strata.strata, done.facts, recursive=self._kind.counts[1]
            )
        return _State(program, strata, explicit, done.facts, counters, instances)

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
        make = maintainer._kind.make
        assert make is not None, "rematerialization is no update"
        self.algorithm: Algorithm[F] = make()
        self.engine = maintainer.engine
        self.strata = strata
        self.before = self.facts = state.facts
        self.explicit = explicit
        self.statistics = statistics
        self.counters = replace(state.counters) if state.counters is not None else None
        self.deleted = self.inserted = self.engine.facts({})
        self._on_progress = maintainer._on_progress
        self._modules = maintainer._modules
        self._was = state.strata
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
        return self.inserted, self.deleted

    def _change_rules(self) -> frozenset[CompiledRule]:
        """Heads of removed rules are lost; counters follow. Returns the rules that are new."""
        old, new = self._was.compiled, self.strata.compiled
        if old is new:
            return frozenset()
        removed = [compiled for rule, compiled in old.items() if rule not in new]
        recursive_before, recursive_now = self._was.recursive, self.strata.recursive
        for rule in removed:
            if self.strata.owner(rule.head.predicate) is None and not rule.head.wide:
                continue  # forgotten as a whole
            derived = self.engine.derive([rule], self.before, counted=self.counters is not None)
            self.statistics.count("rule removal", derived.instances)
            self._lost = self._lost.union(derived.facts.only(self.strata.derived))
            if self.counters is not None:
                self.counters.add(derived, recursive=rule in recursive_before, sign=-1)
        self._forget([rule.head.predicate for rule in removed])
        if self.counters is not None:
            for rule in (compiled for source, compiled in new.items() if source in old):
                was, now = rule in recursive_before, rule in recursive_now
                if was != now:
                    derived = self.engine.derive([rule], self.before, counted=True)
                    self.counters.add(derived, recursive=was, sign=-1)
                    self.counters.add(derived, recursive=now)
        return frozenset(compiled for rule, compiled in new.items() if rule not in old)

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
            self._modules,
        )
        removal = finish(self.algorithm.delete(step))
        if len(removal.overdeleted):
            step.facts = step.facts.difference(removal.overdeleted)
        new = self.algorithm.insert(step, removal.rederived)
        self.facts = step.facts
        lost, gained = removal.overdeleted, new
        if len(lost) and len(gained):
            lost, gained = lost.difference(new), new.difference(removal.overdeleted)
        return self._remember(lost, gained)


def _visible(facts: F) -> F:
    hidden = [predicate for predicate in facts.predicates() if is_internal(predicate)]
    return facts.without(hidden) if hidden else facts


def _missing(program: Program, other: Program) -> tuple[Rule, ...]:
    """The rules of a program that the other one does not have."""
    if program is other:
        return ()
    return tuple(rule for rule in program.rules if rule not in other)


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
