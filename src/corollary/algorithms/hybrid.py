"""Hybrid reasoning: answers by backward chaining over a small pre-materialization.

Paper: Urbani, Piro, van Harmelen, Bal: Hybrid Reasoning on OWL RL, Semantic Web 5, 2014,
Algorithms 1 and 2.

Idea: of all that follows, only the answers to some patterns L are kept, those that nearly every
rule needs: the schema. All else is derived when it is asked for: a query is unfolded by the rules
whose heads it unifies with into queries for their bodies, until what is left can be looked up;
atoms of L are looked up at once.

Invariants: `facts` holds E and all answers to patterns of L; so a rule whose head is an instance of
a pattern of L need not be unfolded, and an atom that is one is a look-up. The answers to a query
are those of mat(Π, E), after every update.

Differs from the paper:
- Algorithm 1 is evaluated set at a time: a query stands for all queries with other values in the
  same places (`Goal`), and the calls of *infer* are rules themselves (`hybrid_rewrite`), which the
  engine closes semi-naively. So *PrevQueries* holds the goals of the whole tree, not of one path,
  no query is answered twice, and the global loop considers no instance twice.
- Algorithm 2 is one closure: the rules for the goals of L, kept up to date by a `Maintainer`. Its
  relations S_Q are the predicates themselves, as these hold all answers to Q.
- Negation and aggregates: what they read is asked for completely, stratum by stratum.

Cost: a query considers the rule instances that its goals ask for; the first one of its kind also
writes the rules down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Generic

import numpy as np

from corollary.algorithms.aggregates import is_internal
from corollary.algorithms.constraints import Inconsistency, inconsistencies
from corollary.algorithms.explain import BUDGET, explain
from corollary.algorithms.hybrid_asking import Asked, Asking, admitted, reader_of, wanted
from corollary.algorithms.hybrid_cleanup import CleanUp, candidates, duplicates
from corollary.algorithms.hybrid_goals import Goal, Patterns, free, goal_of, is_asked, is_wide
from corollary.algorithms.hybrid_plan import GoalPlan
from corollary.algorithms.hybrid_rewrite import Rewriting, Rules, Size, rewrite
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.strata import CompiledStrata
from corollary.algorithms.tuning import tuning
from corollary.algorithms.updating import OnStratum
from corollary.core.changes import Changes
from corollary.core.compile import (
    TRIPLES,
    TYPES,
    CompiledRule,
    compile_rule,
    covers,
    home,
)
from corollary.core.dictionary import Ids
from corollary.core.engine import Engine, F
from corollary.core.proof import Proof
from corollary.core.tables import encode, joined, narrow_atoms
from corollary.errors import OperationFailed
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, Aggregate, Atom, Rule

_VIOLATED = "VIOLATED"  # the relation of a constraint, with its number


@dataclass(frozen=True)
class Answer(Generic[F]):
    """What a query gave, and what it took (the measures of the paper's Table 5)."""

    facts: F  # that match
    known: F  # all facts that were looked at or derived, explicit ones included
    derived: int  # facts that no one had before
    look_ups: int  # readings of stored facts, one for all values of a goal
    goals: Mapping[Goal, int]  # how many values were asked for; 1 if all facts were
    rewriting: Rewriting
    roots: tuple[Goal, ...] = ()  # what the query asks for, beside what is stored


@dataclass(frozen=True, eq=False)
class _State(Generic[F]):
    """What updates replace together."""

    program: Program
    patterns: tuple[Atom, ...]  # L
    explicit: F  # E
    clean_up: CleanUp[F]  # of the program, given L
    dropped: frozenset[Rule]  # by the clean-up, given E
    prematerializing: Rewriting
    inner: object  # the state of the inner maintainer
    stored: F  # its facts


class Hybrid(Generic[F]):
    """Keeps E and the answers to some patterns up to date, and derives all others when asked.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import decode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.lang.parser import parse_atom
    >>> from corollary.lang.printer import Printer
    >>> engine = ColumnarEngine(Dictionary())
    >>> program = Program.parse("p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- e(?x, ?y), p(?y, ?z) .")
    >>> edges = Program.parse("e(1, 2) . e(2, 3) . e(4, 1) .").facts
    >>> kept = Hybrid(program, engine.facts(encode(edges, engine.dictionary)), engine)
    >>> answer = kept.answer(parse_atom("p(2, ?y)", {}, ""))
    >>> [Printer().atom(atom) for atom in decode(answer.facts, engine.dictionary)]
    ['p(2, 3)']
    >>> answer.derived, len(kept.facts)
    (1, 3)
    """

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        *,
        patterns: Iterable[Atom] = (),
        also: Iterable[Atom] = (),
        clean: bool = True,
        algorithm: str = "auto",
        modules: bool = True,
        coarse: bool = False,
        on_progress: OnStratum | None = None,
    ) -> None:
        """Pre-materialize the patterns; the other parameters are those of `Maintainer`.

        The answers to patterns of `also` are derived beforehand too, but are no part of `facts`.
        With `coarse`, queries have few strata too, and begin with the values that are asked for, as
        is best for engines that pay for each operation and not for each fact. With `clean`,
        duplicates among the rules are left out (`hybrid_cleanup`).
        """
        self.engine = engine
        self._clean = clean
        self._coarse = coarse
        self.patterns = tuple(patterns)  # L
        self.also = tuple(also)  # of L too; what is assigned counts from the next update on
        self._compiled: dict[Rule, CompiledRule] = {}
        self._nothing = engine.facts({})
        clean_up = self._cleaning(program)
        dropped = clean_up.dropped(explicit)
        found = self._prematerializing(program, explicit, dropped)
        self._inner = Maintainer(
            Program.of(found.rules),
            explicit.union(self._seeds(found)),
            engine,
            algorithm=algorithm,
            modules=modules,
            coarse=coarse,
            on_progress=on_progress,
        )
        self.statistics = self._inner.statistics  # of the pre-materialization
        self._set(self._state_of(program, explicit, clean_up, dropped, found))

    # -- Algorithm 2 -------------------------------------------------------------------------------

    @property
    def _wanted(self) -> tuple[Atom, ...]:
        return (*self.patterns, *self.also)

    def _cleaning(self, program: Program) -> CleanUp[F]:
        return CleanUp(program.rules if self._clean else (), self._wanted, self.engine)

    def _prematerializing(
        self, program: Program, explicit: F, dropped: frozenset[Rule]
    ) -> Rewriting:
        """The rules that derive the answers to all patterns of L.

        They follow from Π, L, the rules that are dropped and the predicates that have explicit
        facts: an update of any of these chooses them again. The sizes only decide on an order.
        """
        rules = Rules([r for r in program.rules if r not in dropped], explicit.predicates())
        goals = [goal_of(pattern) for pattern in self._wanted]
        size = rules.sizes(_sizes(explicit))
        found = rewrite(rules, [g for g in goals if rules.derives(g.predicate)], Patterns(), size)
        for goal, pattern in zip(goals, self._wanted, strict=True):
            root = found.roots.get(goal)
            if root is not None and not root.is_free:
                found.seeds.setdefault(root.guard(pattern))
        return found

    def _told(self) -> F:
        """The facts of the inner maintainer without what it asked for."""
        facts = self._inner.all_facts
        asked = [predicate for predicate in facts.predicates() if is_asked(predicate)]
        return facts.without(asked) if asked else facts

    def _seeds(self, rewriting: Rewriting) -> F:
        return self.engine.facts(encode(rewriting.seeds, self.engine.dictionary))

    def update(self, changes: Changes[F]) -> Changes[F]:
        """Apply changes of E and Π; the answer is by what `facts` differs."""
        explicit, stored = self.explicit, self._stored
        done = self.update_all(changes)
        return self.shown(changes, done, (explicit, stored), self.explicit)

    def shown(
        self, changes: Changes[F], done: Changes[F], before: tuple[F, F], explicit: F
    ) -> Changes[F]:
        """What was done to explicit facts and answers to `patterns`, of all that was `done`.

        `before` are the explicit facts and all stored ones as they were, `explicit` those of now.
        """
        (had, was), now = before, self._stored
        new, old = done.inserted.union(changes.inserted), done.deleted.union(changes.deleted)
        came = new.intersection(explicit).union(self.answers(new.intersection(now)))
        came = came.difference(had).difference(self.answers(came.intersection(was)))
        went = old.intersection(had).union(self.answers(old.intersection(was)))
        went = went.difference(explicit).difference(self.answers(went.intersection(now)))
        return replace(done, inserted=_visible(came), deleted=_visible(went))

    def answers(self, facts: F) -> F:
        """Those of the facts that answer `patterns`."""
        found = [self.look_up(pattern, facts) for pattern in self.patterns] if len(facts) else []
        return reduce(lambda one, two: one.union(two), found, self._nothing)

    def update_all(self, changes: Changes[F], *, explicit: F | None = None) -> Changes[F]:
        """As `update`; the answer has all facts that are stored.

        If E is known as it will be, `explicit`, the facts of the changes are those it differs by.
        """
        old = self._state
        program = old.program
        if changes.added_rules or changes.removed_rules:
            program = program.removed(*changes.removed_rules).added(*changes.added_rules)
        gone = changes.deleted
        if explicit is None:
            explicit, gone, _ = old.explicit.changed(changes.deleted, changes.inserted)
        clean_up, dropped, found = old.clean_up, old.dropped, old.prematerializing
        others = program is not old.program or self._wanted != old.patterns
        if others:
            clean_up = self._cleaning(program)
        if others or clean_up.depends_on(changes):
            dropped = clean_up.dropped(explicit)
        if (
            others
            or dropped != old.dropped
            or frozenset(explicit.predicates()) != frozenset(old.explicit.predicates())
        ):
            found = self._prematerializing(program, explicit, dropped)
        before, after = self._seeds(old.prematerializing), self._seeds(found)
        rules = self._inner.program
        done = self._inner.update(
            Changes(
                changes.inserted.union(after),
                gone.union(before.difference(after)),
                tuple(rule for rule in found.rules if rule not in rules),
                tuple(rule for rule in rules.rules if rule not in found.rules),
            )
        )
        self._set(self._state_of(program, explicit, clean_up, dropped, found))
        return Changes(
            _visible(done.inserted),
            _visible(done.deleted),
            tuple(rule for rule in program.rules if rule not in old.program),
            tuple(rule for rule in old.program.rules if rule not in program),
            done.statistics,
        )

    def _state_of(
        self,
        program: Program,
        explicit: F,
        clean_up: CleanUp[F],
        dropped: frozenset[Rule],
        found: Rewriting,
    ) -> _State[F]:
        inner = self._inner.state
        return _State(
            program, self._wanted, explicit, clean_up, dropped, found, inner, self._told()
        )

    def _set(self, state: _State[F]) -> None:
        known: _State[F] | None = getattr(self, "_state", None)
        if known is None or known.program is not state.program:
            # What rules may derive has a number, so that queries may name it.
            self.engine.dictionary.encode(
                constant for rule in state.program.rules for constant in rule.head.constants()
            )
        # So have properties and classes, which rules that read all triples make terms of facts.
        self.engine.dictionary.encode(
            label
            for predicate in state.stored.predicates()
            for label in (predicate.property, predicate.member_of)
            if label is not None
        )
        self._state = state
        self._plans: dict[tuple[Goal, ...], GoalPlan[F]] = {}
        self._readers: dict[tuple[object, ...], CompiledRule] = {}
        self._covered = Patterns(state.patterns)
        self._stored = state.stored
        left = [rule for rule in state.program.rules if not self._covered.cover(rule.head)]
        if known is None or known.program is not state.program or known.patterns != state.patterns:
            self._candidates = candidates(left, self._covered) if self._clean else []
            self._computes = any(
                isinstance(part, Aggregate) for rule in state.program.rules for part in rule.body
            )
        self.duplicates = duplicates(self._candidates, self._stored, self.engine)
        gone = {duplicate.rule for duplicate in self.duplicates}
        self._rules = Rules([r for r in left if r not in gone], self._stored.predicates())
        self._compiled = {}
        for name in ("facts", "_size", "_narrow", "_strata"):
            self.__dict__.pop(name, None)

    @property
    def state(self) -> object:
        """All that updates replace, as a value: to go back to it, assign it."""
        return self._state

    @state.setter
    def state(self, state: object) -> None:
        assert isinstance(state, _State), "a state of this object"
        self.also = state.patterns[len(self.patterns) :]
        self._inner.state = state.inner
        self._set(state)

    @property
    def program(self) -> Program:
        """Π."""
        return self._state.program

    @property
    def explicit(self) -> F:
        """E."""
        return self._state.explicit

    @cached_property
    def facts(self) -> F:
        """E and the answers to `patterns`."""
        return self.kept(self.explicit)

    def kept(self, explicit: F) -> F:
        """Some explicit facts and the answers to `patterns`."""
        return _visible(explicit.union(self.answers(self._stored)))

    @property
    def all_facts(self) -> F:
        """All facts that are stored: with what the pre-materialization was derived from."""
        return self._stored

    def verify(self) -> None:
        """Derive what is stored again; raises `OperationFailed` where it differs."""
        self._inner.verify()
        anew = Hybrid(
            self.program,
            self.explicit,
            self.engine,
            patterns=self.patterns,
            clean=False,  # so that the clean-up is checked as well
        ).facts
        if not len(anew) == len(self.facts) == len(anew.intersection(self.facts)):
            raise OperationFailed("E407", "what is pre-materialized is not what follows")

    @property
    def rules(self) -> Rules:
        """The rules that queries are unfolded by: those whose heads are not pre-materialized."""
        return self._rules

    @property
    def unseen(self) -> list[Predicate]:
        """The wide predicates that rules derive into, but of which not all facts are stored.

        So any property or class that they cover may have facts, whatever is stored.

        >>> from corollary.core.dictionary import Dictionary
        >>> from corollary.engines.columnar.engine import ColumnarEngine
        >>> from corollary.lang.parser import parse_atom
        >>> engine = ColumnarEngine(Dictionary())
        >>> program = Program.parse("[?x, ?p, ?y] :- told(?x, ?p, ?y) .")
        >>> told = engine.facts(encode(Program.parse("told(1, 2, 3) .").facts, engine.dictionary))
        >>> everything = parse_atom("[?x, ?p, ?y]", {}, "")
        >>> [
        ...     Hybrid(program, told, engine, patterns=patterns).unseen == [TRIPLES]
        ...     for patterns in ([], [everything])
        ... ]
        [True, False]
        """
        goals = self._state.prematerializing.goals
        return [
            wide
            for wide in (TRIPLES, TYPES)
            if wide in self._rules.heads
            and not any(goal.is_free and covers(goal.predicate, wide) for goal in goals)
        ]

    # -- Algorithm 1 -------------------------------------------------------------------------------

    def answer(self, query: Atom, admissible: Mapping[int, Ids] | None = None) -> Answer[F]:
        """The facts that match an atom.

        `admissible` holds sets of ids for places of the atom that have variables: only answers with
        one of these there are wanted.
        """
        asking = Asking(query, admissible or {}, self.engine.dictionary, self._computes)
        wide = home(query)
        roots: dict[Goal, Ids] = {}
        narrow = True
        if is_wide(wide) and any(is_wide(h) for h in self._rules.heads if covers(TRIPLES, h)):
            narrow = False
            asked = asking.of(query)
            if asked is not None:
                roots[Goal(wide, asked.bound)] = asked.rows
        found: list[tuple[Atom, Asked]] = []
        for atom in narrow_atoms(query, self._narrow):
            asked = asking.of(atom)
            if asked is not None:
                found.append((atom, asked))
                if narrow and not self._covered.cover(atom):
                    goal = Goal(home(atom), asked.bound)
                    if self._rules.derives(goal.predicate):
                        roots[goal] = asked.rows
        closed = self.closed(roots)
        if not narrow:
            found = asking.all(query, closed.known)
        facts = self._look_up(found, closed.known)
        return replace(closed, facts=facts, look_ups=closed.look_ups + len(found))

    def is_prematerialized(self, query: Atom) -> bool:
        """Whether the answers to a query are kept."""
        return self._covered.cover(query)

    def closed(self, roots: Mapping[Goal, Ids], more: Iterable[Rule] = ()) -> Answer[F]:
        """All that answers goals with these values, by the rules and `more` of them.

        `Answer.facts` is empty: what matches is for the caller to look up in `known`.
        """
        if not roots:
            return Answer(self._nothing, self._stored, 0, 0, {}, Rewriting())
        plan = self._plan(tuple(roots), tuple(more))
        goals = plan.rewriting.goals
        tables = [plan.seeds]
        for goal, ids in roots.items():
            root = plan.rewriting.roots[goal]
            if not root.is_free:
                tables.append({root.asked: _projected(ids, goal, root)})
        before = self._stored
        seeds = joined(tables)
        if seeds:
            before = before.union(self.engine.facts(seeds))
        known = plan.evaluate(self.engine, before)
        asked = {g: 1 if g.is_free else len(known.only([g.asked])) for g in goals}
        return Answer(
            self._nothing,
            known,
            len(known.only(plan.heads)) - len(before.only(plan.heads)),
            sum(
                1 + sum(call.goal is None for way in ways for call in (*way.calls, *way.read))
                for goal, ways in goals.items()
                if asked[goal]
            ),
            asked,
            plan.rewriting,
            tuple(roots),
        )

    def _plan(self, roots: tuple[Goal, ...], more: tuple[Rule, ...]) -> GoalPlan[F]:
        plan = None if more else self._plans.get(roots)
        if plan is None:
            rules = self._rules
            if more:
                rules = Rules((*rules.rules, *more), rules.present)
            found = rewrite(rules, roots, self._covered, self._size)
            plan = GoalPlan(found, self.engine.dictionary, self._compiled, coarse=self._coarse)
            if not more:
                if len(self._plans) >= tuning.hybrid_plans_limit:
                    del self._plans[next(iter(self._plans))]
                self._plans[roots] = plan
        return plan

    @cached_property
    def _size(self) -> Size:
        return self._rules.sizes(_sizes(self._stored))

    @cached_property
    def _narrow(self) -> list[Predicate]:
        """The properties and classes that may have facts, as far as rules and facts tell."""
        found = dict.fromkeys((*self._stored.predicates(), *self._rules.heads))
        return [p for p in found if p.relation == TRIPLE and not is_wide(p)]

    def look_up(self, query: Atom, facts: F) -> F:
        """Those of the facts that match an atom; nothing is derived."""
        return self._look_up(Asking(query, {}, self.engine.dictionary).all(query, facts), facts)

    def _look_up(self, found: Sequence[tuple[Atom, Asked]], facts: F) -> F:
        """The facts that match atoms with the values that are asked for."""
        whole: list[Predicate] = []
        readers: list[CompiledRule] = []
        tables: dict[Predicate, Ids] = {}
        numbers: dict[bytes, int] = {}
        bound = 0
        for atom, asked in found:
            predicate = home(atom)
            shape = asked.shape(atom)
            if not any(asked.bound) and not asked.admitted and shape == tuple(range(len(shape))):
                whole.append(predicate)
                continue
            number = numbers.setdefault(asked.rows.tobytes(), len(numbers))
            key = (predicate, asked.bound, number, tuple(asked.admitted), shape)
            reader = self._readers.get(key)
            if reader is None:
                rule = reader_of(predicate, asked, number, shape)
                reader = self._readers[key] = compile_rule(rule, self.engine.dictionary)
            readers.append(reader)
            if any(asked.bound):
                bound += 1
                tables[wanted(number, asked.bound)] = asked.rows
            for place, ids in asked.admitted.items():
                tables[admitted(place)] = ids.reshape(-1, 1)
        matching = facts.only(whole)
        if readers:
            given = self.engine.facts(tables)
            within = facts.union(given) if tables else facts
            # As for rules that are guarded: each instance uses a value that is wanted.
            few = given if self._coarse and bound == len(readers) else None
            matching = matching.union(self.engine.derive(readers, within, delta=few).facts)
        return matching

    # -- proofs ------------------------------------------------------------------------------------

    def explain(self, fact: Atom, *, budget: int = BUDGET) -> Proof:
        """A smallest proof of a fact; what it may need is derived first."""
        return explain(
            fact,
            self.program,
            self._strata,
            self.relevant(fact),
            self.explicit,
            self.engine,
            budget=budget,
        )

    def relevant(self, fact: Atom) -> F:
        """The facts that a proof of a fact may need."""
        return self.answer(fact).known

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """The constraints that follow to be contradicted; what they read is derived first."""
        program = self.program
        return inconsistencies(
            program, self.violating(program.constraints), self.engine, examples=examples
        )

    def violating(self, constraints: Sequence[Rule]) -> F:
        """The facts that constraints read, as far as they may contradict one."""
        rules = [
            Rule(Atom(f"{_VIOLATED} {number}", ()), rule.body, rule.name, rule.span)
            for number, rule in enumerate(constraints)
        ]
        roots = {free(home(r.head), r.head): np.zeros((0, 0), np.uint32) for r in rules}
        return self.closed(roots, rules).known

    @cached_property
    def _strata(self) -> CompiledStrata:
        return CompiledStrata(self.program.rules, self.engine.dictionary)


def _projected(rows: Ids, goal: Goal, wider: Goal) -> Ids:
    """The values of a goal at the places that are bound in one that it is part of."""
    if goal is wider:
        return rows
    places = [at for at, bound in enumerate(goal.bound) if bound]
    return rows[:, [places.index(at) for at, bound in enumerate(wider.bound) if bound]]


def _sizes(facts: F) -> Size:
    """How many facts of each predicate there are."""
    known: dict[Predicate, int] = {}

    def size(predicate: Predicate) -> int:
        found = known.get(predicate)
        if found is None:
            found = known[predicate] = len(facts.only([predicate]))
        return found

    return size


def _visible(facts: F) -> F:
    hidden = [p for p in facts.predicates() if is_internal(p) or is_asked(p)]
    return facts.without(hidden) if hidden else facts
