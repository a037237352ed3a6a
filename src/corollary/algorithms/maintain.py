"""`Maintainer`: a materialization that is kept up to date as facts and rules change.

An update works on values that are thrown away if it fails: the facts, the explicit facts, the
program and the counters are replaced together, at the end, or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Generic

from corollary.algorithms import seminaive
from corollary.algorithms.aggregates import is_internal
from corollary.algorithms.choose import worth_rematerializing
from corollary.algorithms.constraints import Inconsistency, inconsistencies
from corollary.algorithms.counted import recount
from corollary.algorithms.explain import BUDGET, explain
from corollary.algorithms.kinds import ALGORITHMS, KINDS, State
from corollary.algorithms.step import Counters
from corollary.algorithms.strata import CompiledStrata, ModuleKey
from corollary.algorithms.updating import OnStratum, Update, given_to, worth_keeping
from corollary.core.changes import Changes
from corollary.core.compile import home
from corollary.core.engine import Engine, F
from corollary.core.proof import Proof
from corollary.core.statistics import Statistics
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Graph, Predicate, stratify
from corollary.lang.syntax import Atom, Rule

__all__ = ["ALGORITHMS", "KINDS", "Maintainer"]


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
        known: F | None = None,
        complete: str | None = None,
        lemmas: F | None = None,
    ) -> None:
        """Materialize. With `coarse`, there are as few strata as negation allows.

        `lemmas` are facts that are known to follow and are not explicit; the materialization
        begins with them.

        If the materialization is `known`, as that of a store is, nothing is derived but the facts
        that are no results; updates believe it as well, until `begin` is called. These facts are
        known too if they are those of a maintainer whose `signature` is given as `complete`.

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
        self._believing = known is not None
        self._complete = complete
        self.statistics = Statistics("semi-naive", "everything is derived anew")
        if known is None:
            self._state = self._materialized(
                program, explicit, None, self.statistics, lemmas=lemmas
            )
        else:
            self.statistics.reason = "what follows is known"
            strata = self._compiled(program)
            self._state = self._believed(program, explicit, strata, known)

    def begin(self) -> None:
        """From now on updates derive what changes, after a beginning with `known` facts."""
        state = self._state
        self._believing = False
        done = seminaive.Materialization(state.facts, state.explicit, Statistics("", ""))
        self._state = replace(
            state,
            counters=self._counted(state.strata, state.facts),
            modules=self._begun(state.strata, done) if self.uses_modules else {},
        )

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
    def all_facts(self) -> F:
        """The materialization with the facts that are no results: of auxiliary relations."""
        return self._state.facts

    @property
    def signature(self) -> str:
        """By what rules facts that are no results are derived, as a short text."""
        return self._signature(self._state.strata)

    @property
    def state(self) -> object:
        """All that updates replace, as a value: to go back to it, assign it."""
        return self._state

    @state.setter
    def state(self, state: object) -> None:
        assert isinstance(state, State), "a state of this maintainer"
        self._state = state

    def update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes of explicit facts and rules; the answer is what the facts differ by."""
        done = self.update_all(changes)
        return replace(done, inserted=_visible(done.inserted), deleted=_visible(done.deleted))

    def update_all(self, changes: Changes[F], *, explicit: F | None = None) -> Changes[F]:
        """As `update`; the answer has the facts of auxiliary relations too.

        If E is known as it will be, `explicit`, the facts of the changes are those it differs by.
        """
        state = self._state
        program, strata = state.program, state.strata
        if changes.added_rules or changes.removed_rules:
            program = program.removed(*changes.removed_rules).added(*changes.added_rules)
            if self.algorithm == "counting":
                _refuse_recursion(program)
            added, gone = (
                [rule for rule in _missing(rules, known) if not rule.is_constraint]
                for rules, known in (
                    (changes.added_rules, state.program),
                    (changes.removed_rules, program),
                )
            )
            strata = strata.changed(program.rules, added, gone)
        # E⁻ := (E⁻ ∩ E) \ E⁺; E⁺ := E⁺ \ E
        removed, inserted = changes.deleted, changes.inserted
        if explicit is None:
            explicit, removed, inserted = state.explicit.changed(removed, inserted)
        statistics = Statistics(self.algorithm, self._kind.about)
        anew = self._kind.make is None
        if self.algorithm == "auto" and not self._believing:
            reason = worth_rematerializing(
                strata.concerned(removed),
                strata.concerned(inserted),
                len(state.explicit),
                state.instances,
            )
            if reason is not None:
                anew, statistics.reason = True, reason
        if self._believing:
            new = self._believed(program, explicit, strata, state.facts)
            difference = (new.facts.difference(state.facts), state.facts.difference(new.facts))
        elif anew:
            new = self._materialized(program, explicit, strata, statistics)
            difference = (new.facts.difference(state.facts), state.facts.difference(new.facts))
        else:
            work = Update(
                self.engine,
                self._kind,
                state,
                strata,
                explicit,
                statistics,
                modules=self.uses_modules,
                on_progress=self._on_progress,
            )
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
            *difference,
            _missing(changes.added_rules, state.program),
            _missing(changes.removed_rules, program),
            statistics,
        )

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """The constraints that the facts contradict, those of auxiliary relations included."""
        state = self._state
        return inconsistencies(state.program, state.facts, self.engine, examples=examples)

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

    def _verify_modules(self, state: State[F]) -> None:
        for stratum in state.strata.strata:
            for module in stratum.modules:
                key = stratum.key(module)
                if key not in state.modules:
                    continue
                given = module.with_state(state.modules[key]).given
                if given is None:
                    continue
                expected = given_to(module, stratum, self.engine, state.explicit, state.facts)
                if not _equal(given, expected):
                    raise OperationFailed("E407", f"what is given to {module.name} is not right")

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
        done = seminaive.materialize_strata(
            strata.sources,
            explicit,
            self.engine,
            compiled=strata.compiled,
            modules=self._modules,
            lemmas=lemmas,
            on_progress=self._on_progress,
        )
        instances = sum(done.statistics.derivations.values())
        if statistics is self.statistics:
            statistics.include(done.statistics)
        elif statistics is not None:
            statistics.rounds += done.statistics.rounds
            statistics.count("materialization", instances)
        counters = self._counted(strata, done.facts)
        modules = self._begun(strata, done) if self.uses_modules else {}
        return State(program, strata, explicit, done.facts, counters, modules, instances)

    def _believed(
        self, program: Program, explicit: F, strata: CompiledStrata, known: F
    ) -> State[F]:
        """The state of a materialization that is known but for what is no result."""
        if self._complete is not None and self._complete == self._signature(strata):
            return State(program, strata, explicit, known, None, {}, len(known))
        facts = known.without([p for p in known.predicates() if _is_hidden(p)])
        facts = facts.union(explicit.only([p for p in explicit.predicates() if _is_hidden(p)]))
        rules = _hidden_rules(strata)
        if rules:
            facts = seminaive.materialize_strata(
                stratify(rules), facts, self.engine, compiled=strata.compiled
            ).facts
        # How many instances there are is not known: about as many as facts, as a rule.
        return State(program, strata, explicit, facts, None, {}, len(facts))

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

    def _begun(
        self, strata: CompiledStrata, done: seminaive.Materialization[F]
    ) -> dict[ModuleKey, Any]:
        """The states of the modules, which know all that is given to them."""
        used = {frozenset(module.rules): module for module in done.modules}
        states: dict[ModuleKey, Any] = {}
        for stratum in strata.strata:
            modules = [
                used.get(frozenset(module.rules), module.with_state(None))
                for module in stratum.modules
            ]
            known = all(frozenset(module.rules) in used for module in modules)
            worth = (
                worth_keeping(module, stratum, self.engine, done.explicit, done.facts)
                for module in modules
                if not (stratum.modular and known)
            )
            if not all(list(worth) if stratum.modular else worth) and not stratum.modular:
                continue
            states |= {stratum.key(module): module.state for module in modules}
        return states

    @property
    def uses_modules(self) -> bool:
        """Whether updates use modules."""
        return self._modules and self._kind.modular is not None

    def _compiled(self, program: Program) -> CompiledStrata:
        if self.algorithm == "counting":
            _refuse_recursion(program)
        coarse = self._coarse and self.algorithm != "counting"
        return CompiledStrata(program.rules, self.engine.dictionary, coarse=coarse)


def _hidden_rules(strata: CompiledStrata) -> list[Rule]:
    return [rule for rule in strata.compiled if _is_hidden(home(rule.head))]


def _is_hidden(predicate: Predicate) -> bool:
    """Whether facts are no results, or of a relation that no program can name."""
    return is_internal(predicate) or " " in predicate.relation


def _visible(facts: F) -> F:
    hidden = [predicate for predicate in facts.predicates() if is_internal(predicate)]
    return facts.without(hidden) if hidden else facts


def _missing(rules: Iterable[Rule], program: Program) -> tuple[Rule, ...]:
    """The rules that a program does not have."""
    return tuple(dict.fromkeys(rule for rule in rules if rule not in program))


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
