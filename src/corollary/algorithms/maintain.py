"""`Maintainer`: incremental maintenance of a materialization under changes of facts and rules.

Updates are atomic: an update works on new values, and replaces the facts, the explicit facts, the
program and the counters together at the end, or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from corollary.algorithms import seminaive
from corollary.algorithms.aggregates import is_internal
from corollary.algorithms.choose import worth_rematerializing
from corollary.algorithms.counted import recount
from corollary.algorithms.modular.states import ModuleStates
from corollary.algorithms.reasoner import (
    Options,
    Reasoner,
    are_equal,
    changed_program,
    refuse_difference,
)
from corollary.algorithms.registry import ALGORITHMS, KINDS, State
from corollary.algorithms.strata import CompiledStrata
from corollary.algorithms.stratum import Counters
from corollary.algorithms.update import UpdateRun
from corollary.core.changes import Changes
from corollary.core.compile import CompiledRule, narrow_predicate
from corollary.core.engine import Engine, F
from corollary.core.statistics import Statistics
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Graph, stratify
from corollary.lang.syntax import Rule

__all__ = ["ALGORITHMS", "KINDS", "Maintainer"]


class Maintainer(Reasoner[F]):
    """Maintain mat(Π, E) while E and Π change.

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

    _state: State[F]

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        options: Options[F] | None = None,
        *,
        trust_updates: bool = False,
        lemmas: F | None = None,
    ) -> None:
        """Materialize, or start from the known facts of the options.

        With `trust_updates`, updates derive nothing until `begin` is called: the caller vouches
        that the known facts stay the materialization. `lemmas` are derived facts known in advance,
        none of them explicit; materialization starts from them.
        """
        options = options or Options()
        if options.algorithm not in KINDS:
            raise InvalidInput(
                "E308",
                f"unknown algorithm '{options.algorithm}'",
                f"choose one of {', '.join(KINDS)}",
            )
        self.engine = engine
        self.algorithm = options.algorithm
        self._kind = KINDS[options.algorithm]
        self._options = replace(options, known=None)
        self._trusting = options.known is not None
        self.statistics = Statistics("semi-naive", "materialization from scratch")
        if options.known is None:
            self._state = self._materialized(
                program, explicit, None, self.statistics, lemmas=lemmas
            )
        else:
            self.statistics.reason = "the materialization is known"
            strata = self._compiled(program)
            self._state = self._trusted(program, explicit, strata, options.known)
            if not trust_updates:
                self.begin()

    def begin(self) -> None:
        """Derive changes from now on, after `trust_updates`."""
        state = self._state
        self._trusting = False
        materialization = seminaive.Materialization(state.facts, state.explicit, Statistics("", ""))
        self._state = replace(
            state,
            counters=self._counted(state.strata, state.facts),
            modules=self._module_states(state.strata, materialization),
        )

    @property
    def all_facts(self) -> F:
        """The materialization including the hidden facts of auxiliary relations."""
        return self._state.facts

    @property
    def signature(self) -> str:
        """A hash of the rules that derive hidden facts."""
        return self._signature(self._state.strata)

    def _update(self, changes: Changes[F]) -> Changes[F]:
        return self.update_all(changes)

    def update_all(self, changes: Changes[F], *, explicit: F | None = None) -> Changes[F]:
        """Like `update`, but return hidden facts too, and leave rollback to the caller.

        If the caller passes the new E as `explicit`, `changes` must be its exact diff.
        """
        state, program = self._state, changed_program(self.program, changes)
        strata = state.strata
        if program is not state.program:
            if self.algorithm == "counting":
                _refuse_recursion(program)
            added = _missing(changes.added_rules, state.program)
            strata = strata.changed(program.rules, added, _missing(changes.removed_rules, program))
        # E⁻ := (E⁻ ∩ E) \ E⁺; E⁺ := E⁺ \ E
        removed, inserted = changes.deleted, changes.inserted
        if explicit is None:
            explicit, removed, inserted = state.explicit.changed(removed, inserted)
        statistics = Statistics(self.algorithm, self._kind.about)
        rematerialize = self._kind.make is None
        if self.algorithm == "auto" and not self._trusting:
            reason = worth_rematerializing(
                strata.count_relevant(removed),
                strata.count_relevant(inserted),
                len(state.explicit),
                state.instances,
            )
            if reason is not None:
                rematerialize, statistics.reason = True, reason
        if strata is not state.strata and self._kind.make is not None:
            changed = [*strata.difference(state.strata)[0], *strata.difference(state.strata)[1]]
            if _changes_extrema(changed, state.strata, strata):
                rematerialize = True
                statistics.reason = "rematerialized: a rule of a MIN or MAX relation changed"
        if self._trusting or rematerialize:
            new = (
                self._trusted(program, explicit, strata, state.facts)
                if self._trusting
                else self._materialized(program, explicit, strata, statistics)
            )
            difference = (new.facts.difference(state.facts), state.facts.difference(new.facts))
        else:
            new = replace(state, program=program, strata=strata, explicit=explicit)
            run = UpdateRun(
                self.engine,
                self._kind,
                state,
                new,
                statistics,
                modules=self.uses_modules,
                on_progress=self._options.on_progress,
            )
            difference = run.run(removed, inserted)
            new = replace(new, facts=run.facts, counters=run.counters, modules=run.modules)
        self._state = new
        return Changes(*difference, statistics=statistics)

    @property
    def _strata(self) -> CompiledStrata:
        return self._state.strata

    def verify(self) -> None:
        """Rematerialize and compare facts, counters and modules; raise `OperationFailed`."""
        state = self._state
        expected = self._materialized(state.program, state.explicit, state.strata)
        refuse_difference(state.facts, expected.facts)
        state.modules.verify(state.strata, self.engine, state.explicit, state.facts)
        if state.counters is None or expected.counters is None:
            return
        pairs = [("nonrecursive", state.counters.nonrecursive, expected.counters.nonrecursive)]
        if state.counters.recursive is not None and expected.counters.recursive is not None:
            pairs.append(("recursive", state.counters.recursive, expected.counters.recursive))
        for name, maintained, recounted in pairs:
            facts = recounted.facts()
            same_facts = are_equal(maintained.facts(), facts)
            ours, theirs = maintained.of(facts), recounted.of(facts)
            if not same_facts or any((ours[p] != theirs[p]).any() for p in facts.predicates()):
                raise OperationFailed("E407", f"the counters of {name} instances are wrong")

    def _materialized(
        self,
        program: Program,
        explicit: F,
        strata: CompiledStrata | None,
        statistics: Statistics | None = None,
        *,
        lemmas: F | None = None,
    ) -> State[F]:
        strata = strata or self._compiled(program)
        materialization = seminaive.materialize_strata(
            strata.sources,
            explicit,
            self.engine,
            compiled=strata.compiled,
            modules=self._options.modules,
            lemmas=lemmas,
            on_progress=self._options.on_progress,
        )
        instances = sum(materialization.statistics.derivations.values())
        if statistics is self.statistics:
            statistics.include(materialization.statistics)
        elif statistics is not None:
            statistics.rounds += materialization.statistics.rounds
            statistics.count("materialization", instances)
        facts = materialization.facts
        counters = self._counted(strata, facts)
        modules = self._module_states(strata, materialization)
        return State(program, explicit, strata, facts, counters, modules, instances)

    def _trusted(self, program: Program, explicit: F, strata: CompiledStrata, known: F) -> State[F]:
        """The state of a known materialization; only hidden facts are derived."""
        if self._options.complete == self._signature(strata):
            return State(program, explicit, strata, known, None, ModuleStates(), len(known))
        facts = known.without([p for p in known.predicates() if is_internal(p)])
        facts = facts.union(explicit.only([p for p in explicit.predicates() if is_internal(p)]))
        rules = _hidden_rules(strata)
        if rules:
            facts = seminaive.materialize_strata(
                stratify(rules), facts, self.engine, compiled=strata.compiled
            ).facts
        # The number of instances is unknown; estimate one per fact.
        return State(program, explicit, strata, facts, None, ModuleStates(), len(facts))

    @staticmethod
    def _signature(strata: CompiledStrata) -> str:
        printer = Printer()
        texts = sorted(printer.rule(rule) for rule in _hidden_rules(strata))
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()

    def _counted(self, strata: CompiledStrata, facts: F) -> Counters[F] | None:
        if not self._kind.counts[0]:
            return None
        return recount(
            self.engine,
            strata.strata,
            facts,
            recursive=self._kind.counts[1],
            modules=self.uses_modules,
        )

    def _module_states(
        self, strata: CompiledStrata, materialization: seminaive.Materialization[F]
    ) -> ModuleStates[F]:
        if not self.uses_modules:
            return ModuleStates()
        return ModuleStates.of(strata, materialization, self.engine)

    @property
    def uses_modules(self) -> bool:
        """Whether updates use modules."""
        return self._options.modules and self._kind.modular is not None

    def _compiled(self, program: Program) -> CompiledStrata:
        if self.algorithm == "counting":
            _refuse_recursion(program)
        coarse = self._options.coarse and self.algorithm != "counting"
        return CompiledStrata(program.rules, self.engine.dictionary, coarse=coarse)


def _changes_extrema(rules: Iterable[CompiledRule], *versions: CompiledStrata) -> bool:
    """Whether rules derive a relation that keeps the least or greatest values."""
    extremal = {
        predicate
        for strata in versions
        for stratum in strata.strata
        if stratum.source.is_extremal
        for predicate in stratum.predicates
    }
    return bool(extremal) and any(rule.may_derive(extremal) for rule in rules)


def _hidden_rules(strata: CompiledStrata) -> list[Rule]:
    return [rule for rule in strata.compiled if is_internal(narrow_predicate(rule.head))]


def _missing(rules: Iterable[Rule], program: Program) -> list[Rule]:
    """The rules missing from a program, without constraints."""
    return [r for r in dict.fromkeys(rules) if r not in program and not r.is_constraint]


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
