"""Hybrid reasoning: answer queries by backward chaining over a small pre-materialization.

Paper: Urbani, Piro, van Harmelen, Bal: Hybrid Reasoning on OWL RL, Semantic Web 5, 2014,
Algorithms 1 and 2.

Idea: only the answers to some patterns L, which nearly every rule reads, are materialized: the
schema. All other facts are derived on demand: a query is unfolded by the rules whose heads unify
with it into queries for their bodies, until only look-ups remain; atoms of L are look-ups.

Algorithm 1 in the code:

| line | paper | code |
| --- | --- | --- |
| 1, 5, 7 | main(Q), New := infer(Q, ∅), return New | `answer`: roots of Q, `closed`, look-up |
| 2–4, 6 | repeat until no new facts | `GoalPlan.evaluate`: semi-naive, stratum by stratum |
| 12 | the loop runs in parallel | the engine evaluates all rules of all goals together |
| 10, 19 | infer(Q, PrevQueries) | a `Goal`; its queries are the facts of `Goal.asked` |
| 13 | lookup(Q, I ∪ Mat) | body atoms over stored facts; for the root, `_look_up` |
| 14 | r ∈ P whose head unifies with Q | `Rules.of` |
| 15 | Q ∉ PrevQueries | `_Build.ask` queues each goal once |
| 16–17 | θ_h := MGU(Q, r.HEAD) | `hybrid_goals.unified`, and the guard of the rewritten rule |
| 18–19, 21–22 | the queries for the body, subst ⋈ tuples | `_Build._unfold`: one rule per query |
| 20 | Tmp := Tmp ∪ tuples | derived facts of every goal stay among the facts of the evaluation |
| 23, 26 | the answers θ(Q) | the heads of the guarded rules |

Invariants: `facts` holds E and all answers to patterns of L; so a rule whose head is an instance of
a pattern of L need not be unfolded, and an atom that is an instance is a look-up. After every
update, the answers to a query are those of mat(Π, E).

Differs from the paper:
- Algorithm 1 is evaluated set at a time: a goal stands for all queries that bind the same places
  (`Goal`), and the calls of *infer* are rules (`hybrid_rewrite`) that the engine closes
  semi-naively. So *PrevQueries* holds the goals of the whole tree, not of one path; no query is
  answered twice, and the global loop considers no instance twice.
- Algorithm 2 is one closure: a `Maintainer` maintains the rules for the goals of L. The predicates
  themselves serve as its relations S_Q, as they hold all answers to Q.
- Negation and aggregates: the predicates that they read are evaluated completely, stratum by
  stratum.

Cost: a query considers the rule instances that its goals need; the first query of a shape also
rewrites the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce
from typing import Generic

import numpy as np

from corollary.algorithms.constraints import Inconsistency, inconsistencies
from corollary.algorithms.hybrid_cleanup import candidates, duplicates
from corollary.algorithms.hybrid_goals import Goal, Patterns, free, goal_of, is_asked, is_wide
from corollary.algorithms.hybrid_lookup import (
    AtomValues,
    QueryValues,
    admissible_relation,
    bound_relation,
    lookup_rule,
)
from corollary.algorithms.hybrid_plan import GoalPlan
from corollary.algorithms.hybrid_rewrite import Rewriting, Rules, Size, rewrite
from corollary.algorithms.hybrid_tree import Tree, grow
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import (
    Options,
    Reasoner,
    ReasonerState,
    changed_program,
    refuse_difference,
)
from corollary.algorithms.tuning import tuning
from corollary.core.changes import Changes
from corollary.core.compile import (
    TRIPLES,
    TYPES,
    CompiledRule,
    compile_rule,
    covers,
    narrow_predicate,
)
from corollary.core.dictionary import Ids
from corollary.core.engine import Engine, F
from corollary.core.tables import encode, joined, narrow_atoms
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, Aggregate, Atom, Rule

_VIOLATED = "VIOLATED"  # the relation of a constraint, with its number


@dataclass(frozen=True)
class Answer(Generic[F]):
    """The answer to a query, with the measures of the paper's Table 5."""

    facts: F  # the matches
    known: F  # all stored and derived facts, explicit ones included
    derived: int  # newly derived facts
    look_ups: int  # look-ups in stored facts, one for all values of a goal
    goals: Mapping[Goal, int]  # the number of queries per goal; 1 for a free goal
    rewriting: Rewriting
    roots: tuple[Goal, ...] = ()  # the goals of the query beyond look-ups


@dataclass(frozen=True, eq=False)
class _State(ReasonerState[F]):
    """The state of a `Hybrid`."""

    patterns: tuple[Atom, ...]  # L
    rewriting: Rewriting  # of the program for L
    inner: object  # the state of the inner maintainer
    stored: F  # its facts


class Hybrid(Reasoner[F]):
    """Maintain E and the answers to some patterns; derive all other answers on demand.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import decode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.lang.parser import parse_atom
    >>> from corollary.lang.printer import Printer
    >>> engine = ColumnarEngine(Dictionary())
    >>> program = Program.parse("p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- e(?x, ?y), p(?y, ?z) .")
    >>> edges = Program.parse("e(1, 2) . e(2, 3) . e(4, 1) .").facts
    >>> hybrid = Hybrid(program, engine.facts(encode(edges, engine.dictionary)), engine)
    >>> answer = hybrid.answer(parse_atom("p(2, ?y)", {}, ""))
    >>> [Printer().atom(atom) for atom in decode(answer.facts, engine.dictionary)]
    ['p(2, 3)']
    >>> answer.derived, len(hybrid.facts)
    (1, 3)
    """

    _state: _State[F]

    def __init__(
        self,
        program: Program,
        explicit: F,
        engine: Engine[F],
        options: Options[F] | None = None,
        *,
        patterns: Iterable[Atom] = (),
        hidden_patterns: Iterable[Atom] = (),
        clean: bool = True,
    ) -> None:
        """Pre-materialize the patterns.

        The answers to `hidden_patterns` are pre-materialized too, but are not part of `facts`.
        With the option `coarse`, queries use few strata as well and start from the bound values,
        which suits engines whose cost is per operation rather than per fact. With `clean`,
        duplicate rules are dropped (`hybrid_cleanup`).
        """
        options = options or Options()
        self.engine = engine
        self._clean = clean
        self._coarse = options.coarse
        self.patterns = tuple(patterns)  # L
        self.hidden_patterns = tuple(
            hidden_patterns
        )  # part of L; assignments take effect with the next update
        self._compiled: dict[Rule, CompiledRule] = {}
        self._nothing = engine.facts({})
        rewriting = self._rewrite_patterns(program, explicit)
        self._inner: Maintainer[F] = Maintainer(
            Program.of(rewriting.rules), explicit.union(self._seeds(rewriting)), engine, options
        )
        self.statistics = self._inner.statistics  # of the pre-materialization
        self._set(
            _State(
                program,
                explicit,
                self._all_patterns,
                rewriting,
                self._inner.state,
                self._inner_facts(),
            )
        )

    # -- Algorithm 2 -------------------------------------------------------------------------------

    @property
    def _all_patterns(self) -> tuple[Atom, ...]:
        return (*self.patterns, *self.hidden_patterns)

    def _rewrite_patterns(self, program: Program, explicit: F) -> Rewriting:
        """Rewrite the program into rules that derive the answers to all patterns of L.

        The result depends on Π, L and the predicates with explicit facts; an update of any of these
        rewrites again. Sizes only affect the order of atoms.
        """
        rules = Rules(program.rules, explicit.predicates())
        goals = [goal_of(pattern) for pattern in self._all_patterns]
        size = rules.sizes(_sizes(explicit))
        derived = [goal for goal in goals if rules.derives(goal.predicate)]
        rewriting = rewrite(rules, derived, Patterns(), size)
        for goal, pattern in zip(goals, self._all_patterns, strict=True):
            root = rewriting.roots.get(goal)
            if root is not None and not root.is_free:
                rewriting.seeds.setdefault(root.guard(pattern))
        return rewriting

    def _inner_facts(self) -> F:
        """The facts of the inner maintainer without the values of goals."""
        facts = self._inner.all_facts
        asked = [predicate for predicate in facts.predicates() if is_asked(predicate)]
        return facts.without(asked) if asked else facts

    def _seeds(self, rewriting: Rewriting) -> F:
        return self.engine.facts(encode(rewriting.seeds, self.engine.dictionary))

    def _update(self, changes: Changes[F]) -> Changes[F]:
        before = self.explicit, self._stored
        return self.visible_changes(changes, self.update_all(changes), before, self.explicit)

    def visible_changes(
        self, changes: Changes[F], stored: Changes[F], before: tuple[F, F], explicit: F
    ) -> Changes[F]:
        """The changes of E and of the answers to `patterns`, given those of the stored facts.

        `before` holds the old explicit and the old stored facts, `explicit` the new explicit ones.
        """
        changed = stored.inserted.union(changes.inserted)
        changed = changed.union(stored.deleted).union(changes.deleted)
        old, new = (
            changed.intersection(explicit_then).union(
                self.answers(changed.intersection(stored_then))
            )
            for explicit_then, stored_then in (before, (explicit, self._stored))
        )
        return replace(stored, inserted=new.difference(old), deleted=old.difference(new))

    def answers(self, facts: F) -> F:
        """Select the facts that answer `patterns`."""
        parts = [self.look_up(pattern, facts) for pattern in self.patterns] if len(facts) else []
        return reduce(lambda one, two: one.union(two), parts, self._nothing)

    def update_all(self, changes: Changes[F], *, explicit: F | None = None) -> Changes[F]:
        """Like `update`, but return the changes of all stored facts; rollback is up to the caller.

        If the caller passes the new E as `explicit`, `changes` must be its exact diff.
        """
        old = self._state
        program = changed_program(old.program, changes)
        deleted = changes.deleted
        if explicit is None:
            explicit, deleted, _ = old.explicit.changed(changes.deleted, changes.inserted)
        rewriting = old.rewriting
        if (
            program is not old.program
            or self._all_patterns != old.patterns
            or frozenset(explicit.predicates()) != frozenset(old.explicit.predicates())
        ):
            rewriting = self._rewrite_patterns(program, explicit)
        before, after = self._seeds(old.rewriting), self._seeds(rewriting)
        rules = self._inner.program
        result = self._inner.update_all(
            Changes(
                changes.inserted.union(after),
                deleted.union(before.difference(after)),
                tuple(rule for rule in rewriting.rules if rule not in rules),
                tuple(rule for rule in rules.rules if rule not in rewriting.rules),
            )
        )
        self._set(
            replace(
                old,
                program=program,
                patterns=self._all_patterns,
                explicit=explicit,
                rewriting=rewriting,
                inner=self._inner.state,
                stored=self._inner_facts(),
            )
        )
        return result

    def _set(self, state: _State[F]) -> None:
        known: _State[F] | None = getattr(self, "_state", None)
        if known is None or known.program is not state.program:
            # Rules may derive these constants, so queries must find their ids.
            self.engine.dictionary.encode(
                constant for rule in state.program.rules for constant in rule.head.constants()
            )
        # Rules over all triples turn properties and classes into terms of facts.
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
        unfoldable = [rule for rule in state.program.rules if not self._covered.cover(rule.head)]
        if known is None or known.program is not state.program or known.patterns != state.patterns:
            plain = [rule for rule in unfoldable if rule.extremum is None]
            self._candidates = candidates(plain, self._covered) if self._clean else []
            self._has_aggregates = any(
                isinstance(part, Aggregate) for rule in state.program.rules for part in rule.body
            )
        self.duplicates = duplicates(self._candidates, self._stored, self.engine)
        dropped = {duplicate.rule for duplicate in self.duplicates}
        rules = [rule for rule in unfoldable if rule not in dropped]
        self._rules = Rules(rules, self._stored.predicates())
        self._compiled = {}
        for name in ("facts", "_size", "_narrow"):
            self.__dict__.pop(name, None)

    @property
    def state(self) -> _State[F]:
        """Everything that an update replaces, as a value; assign it to roll back."""
        return self._state

    @state.setter
    def state(self, state: _State[F]) -> None:
        self.hidden_patterns = state.patterns[len(self.patterns) :]
        self._inner.state = state.inner
        self._set(state)

    @cached_property
    def facts(self) -> F:
        """E and the answers to `patterns`."""
        return self.visible_facts(self.explicit)

    def visible_facts(self, explicit: F) -> F:
        """These explicit facts and the answers to `patterns`, without auxiliary relations."""
        return self._visible(explicit.union(self.answers(self._stored)))

    @property
    def all_facts(self) -> F:
        """All stored facts, including those that the pre-materialization depends on."""
        return self._stored

    def verify(self) -> None:
        """Pre-materialize from scratch and compare; raise `OperationFailed` if different."""
        self._inner.verify()
        expected = Hybrid(
            self.program,
            self.explicit,
            self.engine,
            patterns=self.patterns,
            clean=False,  # so that the clean-up is checked as well
        ).facts
        refuse_difference(self.facts, expected, "what is pre-materialized is not what follows")

    @property
    def rules(self) -> Rules:
        """The rules that unfold queries: those whose heads are not pre-materialized."""
        return self._rules

    @property
    def unseen(self) -> list[Predicate]:
        """The wide predicates that rules derive without all of their facts being stored.

        Any property or class that they cover may have facts beyond the stored ones.

        >>> from corollary.core.dictionary import Dictionary
        >>> from corollary.engines.columnar.engine import ColumnarEngine
        >>> from corollary.lang.parser import parse_atom
        >>> engine = ColumnarEngine(Dictionary())
        >>> program = Program.parse("[?x, ?p, ?y] :- stated(?x, ?p, ?y) .")
        >>> stated = Program.parse("stated(1, 2, 3) .").facts
        >>> stated = engine.facts(encode(stated, engine.dictionary))
        >>> everything = parse_atom("[?x, ?p, ?y]", {}, "")
        >>> [
        ...     Hybrid(program, stated, engine, patterns=patterns).unseen == [TRIPLES]
        ...     for patterns in ([], [everything])
        ... ]
        [True, False]
        """
        goals = self._state.rewriting.goals
        return [
            wide
            for wide in (TRIPLES, TYPES)
            if wide in self._rules.heads
            and not any(goal.is_free and covers(goal.predicate, wide) for goal in goals)
        ]

    # -- Algorithm 1 -------------------------------------------------------------------------------

    def match(self, pattern: Atom, admissible: Mapping[int, Ids] | None = None) -> F:
        """Derive the facts that match a pattern."""
        return self.answer(pattern, admissible).facts

    def answer(self, query: Atom, admissible: Mapping[int, Ids] | None = None) -> Answer[F]:
        """Return the facts that match an atom.

        `admissible` restricts variables of the atom, by position, to sets of ids.
        """
        query_values = QueryValues(
            query, admissible or {}, self.engine.dictionary, self._has_aggregates
        )
        wide = narrow_predicate(query)
        roots: dict[Goal, Ids] = {}
        narrow = True
        if is_wide(wide) and any(is_wide(h) for h in self._rules.heads if covers(TRIPLES, h)):
            narrow = False
            values = query_values.of(query)
            if values is not None:
                roots[Goal(wide, values.bound)] = values.rows
        atoms: list[tuple[Atom, AtomValues]] = []
        for atom in narrow_atoms(query, self._narrow):
            values = query_values.of(atom)
            if values is not None:
                atoms.append((atom, values))
                if narrow and not self._covered.cover(atom):
                    goal = Goal(narrow_predicate(atom), values.bound)
                    if self._rules.derives(goal.predicate):
                        roots[goal] = values.rows
        closed = self.closed(roots)
        if not narrow:
            atoms = query_values.all(query, closed.known)
        facts = self._look_up(atoms, closed.known)
        return replace(closed, facts=facts, look_ups=closed.look_ups + len(atoms))

    def is_prematerialized(self, query: Atom) -> bool:
        """Whether the answers to a query are pre-materialized."""
        return self._covered.cover(query)

    def closed(self, roots: Mapping[Goal, Ids], more: Iterable[Rule] = ()) -> Answer[F]:
        """Derive the answers to goals with these values, by the rules and `more` rules.

        `Answer.facts` is empty: the caller looks up the matches in `known`.
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
            rewriting = rewrite(rules, roots, self._covered, self._size)
            plan = GoalPlan(rewriting, self.engine.dictionary, self._compiled, coarse=self._coarse)
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
        """The properties and classes of stored facts and of rule heads."""
        predicates = dict.fromkeys((*self._stored.predicates(), *self._rules.heads))
        return [p for p in predicates if p.relation == TRIPLE and not is_wide(p)]

    def look_up(self, query: Atom, facts: F) -> F:
        """Select the facts that match an atom, without deriving any."""
        values = QueryValues(query, {}, self.engine.dictionary).all(query, facts)
        return self._look_up(values, facts)

    def _look_up(self, atoms: Sequence[tuple[Atom, AtomValues]], facts: F) -> F:
        """Select the facts that match atoms with their bound and admissible values."""
        whole: list[Predicate] = []
        readers: list[CompiledRule] = []
        tables: dict[Predicate, Ids] = {}
        numbers: dict[bytes, int] = {}
        bound = 0
        for atom, values in atoms:
            predicate = narrow_predicate(atom)
            shape = values.shape(atom)
            if (
                not any(values.bound)
                and not values.admissible
                and shape == tuple(range(len(shape)))
            ):
                whole.append(predicate)
                continue
            number = numbers.setdefault(values.rows.tobytes(), len(numbers))
            key = (predicate, values.bound, number, tuple(values.admissible), shape)
            reader = self._readers.get(key)
            if reader is None:
                rule = lookup_rule(predicate, values, number, shape)
                reader = self._readers[key] = compile_rule(rule, self.engine.dictionary)
            readers.append(reader)
            if any(values.bound):
                bound += 1
                tables[bound_relation(number, values.bound)] = values.rows
            for place, ids in values.admissible.items():
                tables[admissible_relation(place)] = ids.reshape(-1, 1)
        matching = facts.only(whole)
        if readers:
            bindings = self.engine.facts(tables)
            within = facts.union(bindings) if tables else facts
            # As for guarded rules, every instance uses a bound value.
            delta = bindings if self._coarse and bound == len(readers) else None
            matching = matching.union(self.engine.derive(readers, within, delta=delta).facts)
        return matching

    # -- proofs ------------------------------------------------------------------------------------

    def query_plan(self, pattern: Atom) -> Tree:
        """Return the proof tree by which a pattern is answered."""
        root, answer, complete = grow(self, pattern)
        without = grow(Hybrid(self.program, self.explicit, self.engine), pattern, sizes=False)[0]
        return Tree(root, root.leaves, without.leaves, answer.derived, answer.look_ups, complete)

    def premises(self, fact: Atom) -> F:
        """Derive the facts that a proof of a fact may use."""
        return self.answer(fact).known

    def inconsistencies(self, *, examples: int | None = 3) -> Iterator[Inconsistency]:
        """The violated constraints, after deriving the facts that constraints read."""
        program = self.program
        return inconsistencies(
            program, self.violating(program.constraints), self.engine, examples=examples
        )

    def violating(self, constraints: Sequence[Rule]) -> F:
        """Derive the facts that may violate constraints."""
        rules = [
            Rule(Atom(f"{_VIOLATED} {number}", ()), rule.body, rule.name, rule.span)
            for number, rule in enumerate(constraints)
        ]
        roots = {free(narrow_predicate(r.head), r.head): np.zeros((0, 0), np.uint32) for r in rules}
        return self.closed(roots, rules).known


def _projected(rows: Ids, goal: Goal, wider: Goal) -> Ids:
    """Project the values of a goal to the places that a wider goal binds."""
    if goal is wider:
        return rows
    places = [at for at, bound in enumerate(goal.bound) if bound]
    return rows[:, [places.index(at) for at, bound in enumerate(wider.bound) if bound]]


def _sizes(facts: F) -> Size:
    """Return a cached function that counts the facts of a predicate."""
    return cache(lambda predicate: len(facts.only([predicate])))
