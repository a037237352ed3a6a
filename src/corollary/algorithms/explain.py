"""A smallest proof of a fact of a materialization; nothing is stored for it.

Idea: the height of an explicit fact is 0, that of another one 1 + the greatest height of the body
facts of some rule instance, the instance being chosen so that this is least: the first round of
naive evaluation that derives the fact. What rules negate or aggregate is complete and counts as
given. `support` finds the instances of a fact in the materialization, so facts that a proof may
need are found backward from the goal, ring by ring (the *cone*); `derive` restricted to the cone
finds forward which of them have a proof.

Invariants: the cone of depth d holds every fact that a proof of height d may need; so the goal has
height at most d exactly if rounds 1 … d inside that cone derive it. The cone grows until the goal
is proved, by a proof of height h say, and then to depth h; no proof is smaller than the one that is
found then. An instance is chosen for a fact of height k among those whose body facts have smaller
heights, so that no fact supports itself. Of these instances one is taken, among the first
thousand of each rule, with the fewest premises that need a proof, then with the least sum of their
heights; the number of facts in the whole proof is not minimized.

Cost: follows the instances of the facts in the cone, not the materialization; facts of height 1 are
not expanded. Cones can be huge: in a transitive closure over n nodes by a rule that is not linear
there are n³ instances. When the next ring would go beyond the budget,
1. one round of evaluation gives all facts of height 1, so that the same cone decides about proofs
   of one step more;
2. else a proof is looked for among instances with at most one premise of height above 1, which
   makes such rules linear; if it may not be of least height, `Proof.least` says so;
3. if there is none, backward chaining that stops early (`backward_forward`) finds some proof,
   stratum by stratum from the goal downward.
Aggregated facts are shown as a sample, each with a proof of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic

import numpy as np

from corollary.algorithms.aggregates import Aggregation
from corollary.algorithms.backward_forward import BackwardForward
from corollary.algorithms.instances import SAMPLE, Builder, Chosen, Instance, Key
from corollary.algorithms.step import Step, finish
from corollary.algorithms.strata import CompiledStrata
from corollary.algorithms.tuning import tuning
from corollary.core.compile import TRIPLES, CompiledRule, Pattern, constant_id
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, F
from corollary.core.proof import Proof
from corollary.core.statistics import Statistics
from corollary.core.tables import body_tables, encode, is_known, joined
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Atom, Variable

BUDGET = 100_000  # instances that a search looks at before it settles for less
_WIDE = 256  # instances that a head counts for in a ring of more: it may take long to find few
_LINEAR = 10  # budgets for a linear search


def explain(
    fact: Atom,
    program: Program,
    strata: CompiledStrata,
    facts: F,
    explicit: F,
    engine: Engine[F],
    *,
    budget: int = BUDGET,
) -> Proof:
    """A proof of least height (see above) of a fact of the materialization `facts`.

    `facts` holds the relations of aggregates too. See `Maintainer.explain`.
    """
    if any(isinstance(term, Variable) for term in fact.terms):
        text = Printer(program.prefixes).atom(fact)
        raise InvalidInput("E208", f"one fact is explained at a time, but {text} has variables")
    fits = program.arities.get(fact.relation, len(fact.terms)) == len(fact.terms)
    known = fits and is_known(fact, engine.dictionary)  # asking adds no term
    goal = encode([fact], engine.dictionary) if known else {}
    if not len(engine.facts(goal).intersection(facts)):
        raise InvalidInput(
            "E340",
            f"{Printer(program.prefixes).atom(fact)} is not in the materialization",
            "it is neither an explicit fact nor derived by a rule",
        )
    [(predicate, rows)] = goal.items()
    search = _Search(strata, facts, explicit, engine, budget)
    key = (predicate, tuple(rows[0].tolist()))
    search.prove(key)
    return Builder(search.chosen, program, engine.dictionary).build(key)


class _TooWide(Exception):
    """The cone has more instances than the budget."""


@dataclass
class _Stages(Generic[F]):
    """Facts by height: `truth` holds what is given or has a proof, `deltas[k]` height k + 1."""

    truth: F
    deltas: list[F] = field(default_factory=list)
    heights: dict[Key, int] = field(default_factory=dict)

    @property
    def height(self) -> int:
        """The greatest height."""
        return len(self.deltas)

    def add(self, facts: F, keys: Iterable[Key]) -> None:
        """The facts of one height more."""
        self.deltas.append(facts)
        self.heights.update(dict.fromkeys(keys, len(self.deltas)))
        self.truth = self.truth.union(facts)


def _found(stages: _Stages[F] | None) -> _Stages[F]:
    if stages is None:
        raise OperationFailed("E407", "the materialization is not what follows from the facts")
    return stages


class _Search(Generic[F]):
    """Which instance proves which fact."""

    def __init__(
        self, strata: CompiledStrata, facts: F, explicit: F, engine: Engine[F], budget: int
    ) -> None:
        self.strata, self.facts, self.explicit, self.engine = strata, facts, explicit, engine
        self.budget = self.left = budget
        self.chosen = Chosen()
        self.nothing = engine.facts({})

    @property
    def dictionary(self) -> Dictionary:
        return self.engine.dictionary

    @cached_property
    def aggregations(self) -> dict[Predicate, Aggregation]:
        """The aggregations by the relations that hold their results."""
        return {a.rule.head.predicate: a for s in self.strata.strata for a in s.aggregations}

    @cached_property
    def given(self) -> F:
        """What needs no proof: explicit facts, and the results of aggregates."""
        results = self.facts.only(self.aggregations) if self.aggregations else self.nothing
        return self.explicit.union(results) if len(results) else self.explicit

    def prove(self, goal: Key) -> None:
        """Choose instances for the goal, for all they use, and then for samples of aggregates."""
        pending = self._proved({goal})
        least = self.chosen.least
        while pending:
            sampled = {premise for key in pending for premise in self._sampled(key)}
            pending = self._proved(sampled)
        self.chosen.least = least  # heights of aggregated facts do not count

    def _proved(self, goals: set[Key]) -> set[Key]:
        """Choose instances for the goals and all they use; returns results of aggregates."""
        results = set[Key]()
        while goals:
            results |= {key for key in goals if key[0] in self.aggregations}
            goals = goals - results - self.chosen.instances.keys()
            goals -= self._members(goals, self.explicit)
            if not goals:
                break
            try:
                self.left = self.budget
                goals = self._extract(self._least(self._facts(goals)), goals)
            except _TooWide:
                self.chosen.least = False
                stratum = max(self._owner(key) for key in goals)
                now = {key for key in goals if self._owner(key) == stratum}
                found = self._extract(self._some(stratum, self._facts(now)), now)
                goals = goals - now | found
        return results

    # -- proofs of least height ----------------------------------------------------------------

    def _least(self, goals: F) -> _Stages[F]:
        """The facts of the cone by height, until all goals have theirs."""
        given = self.given
        cone = proved = ready = self.nothing  # `ready` has height 1
        stages: _Stages[F] | None = None
        ring, depth = goals, 1
        while len(ring):
            cone = cone.union(ring)
            try:
                at_once = self._derivable(ring, given)
                ready = ready.union(at_once)
                if stages is None:
                    proved = self._saturated(given, cone, ring, proved, at_once)
                    if not len(goals.difference(proved)):
                        stages = self._staged(cone, given, ready, goals)
                if stages is not None and depth >= stages.height:
                    break
                ring = ring.difference(ready)
                if len(ring) > tuning.proof_heads_batch:
                    self._spend(_WIDE * len(ring))
                ring = self._premises(ring, given).difference(cone)
            except _TooWide:
                if stages is None:
                    return self._beyond(goals, cone, depth)
                self.chosen.least = False
                return stages
            depth += 1
        return _found(self._staged(cone, given, ready, goals))

    def _derivable(self, heads: F, facts: F) -> F:
        """The heads that a rule derives from the facts in one step."""
        rules = self._rules(heads)
        return self.engine.derive(rules, facts, negative=self.facts, heads=heads).facts

    def _saturated(self, given: F, cone: F, ring: F, proved: F, at_once: F) -> F:
        """All facts of the cone that have a proof inside it, whatever its height."""
        delta, true = at_once, given
        if len(proved):
            true = given.union(proved)
            delta = delta.union(self._derivable(ring.difference(at_once), true))
        if not len(delta):
            return proved
        left = cone.difference(proved)
        while len(delta):
            proved, true, left = proved.union(delta), true.union(delta), left.difference(delta)
            if not len(left):
                return proved
            delta = self._consequences(true, delta, left)
            self._spend(len(delta))
        return proved

    def _consequences(self, facts: F, delta: F, heads: F) -> F:
        rules = self._reading(delta, heads)
        derived = self.engine.derive(rules, facts, negative=self.facts, delta=delta, heads=heads)
        return derived.facts.difference(facts)

    def _staged(
        self, cone: F, given: F, ready: F, goals: F, limit: int = sys.maxsize
    ) -> _Stages[F] | None:
        """The rounds of naive evaluation inside the cone, until they reach the goals."""
        stages = _Stages(given)
        delta, left = ready, cone.difference(given)
        while len(delta) and stages.height < limit:
            stages.add(delta, self._keys(delta))
            goals = goals.difference(delta)
            if not len(goals):
                return stages
            left = left.difference(delta)
            if not len(left):
                return None
            delta = self._consequences(stages.truth, delta, left)
        return None

    def _premises(
        self, heads: F, given: F, *, within: F | None = None, unproved: F | None = None
    ) -> F:
        """What the instances of the heads read that is not given."""
        tables = []
        rules = self._rules(heads)
        within = self.facts if within is None else within
        for part in self._parts(heads):
            for support in self.engine.support(
                rules, part, within=within, negative=self.facts, unproved=unproved
            ):
                self._spend(len(support.bindings))
                tables.append(body_tables(support, self.dictionary, self._may_be_derived))
        return self.engine.facts(joined(tables)).difference(given)

    def _parts(self, facts: F) -> Iterator[F]:
        for predicate in facts.predicates():
            rows = facts.rows(predicate)
            for start in range(0, len(rows), tuning.proof_heads_batch):
                yield self.engine.facts({predicate: rows[start : start + tuning.proof_heads_batch]})

    def _spend(self, instances: int) -> None:
        self.left -= instances
        if self.left < 0:
            raise _TooWide

    def _may_be_derived(self, predicate: Predicate) -> bool:
        if predicate in self.aggregations:
            return False
        return predicate.relation == TRIPLE or self.strata.owner(predicate) is not None

    # -- some proofs, where cones are too wide ---------------------------------------------------

    def _beyond(self, goals: F, cone: F, depth: int) -> _Stages[F]:
        """Stages for goals whose height is above `depth`, where the next ring is too wide."""
        last = max(self._owner(key) for key in self._keys(goals))
        rules = [rule for stratum in self.strata.strata[: last + 1] for rule in stratum.rules]
        derived = self.engine.derive(rules, self.given, negative=self.facts).facts
        given = derived.union(self.given)
        goals = goals.difference(given)  # the others have height 1
        self.left = _LINEAR * self.budget
        left = cone.difference(given)
        stages = self._staged(left, given, self._derivable(left, given), goals, limit=depth)
        return stages or self._linear(goals, given, depth + 2)

    def _linear(self, goals: F, given: F, bound: int) -> _Stages[F]:
        """Facts that prove the goals by instances with at most one premise that is not given."""
        cone = proved = self.nothing
        ring = goals
        while len(ring):
            cone = cone.union(ring)
            proved = self._saturated(given, cone, ring, proved, self._derivable(ring, given))
            if not len(goals.difference(proved)):
                stages = _found(self._staged(cone, given, self._derivable(cone, given), goals))
                self.chosen.least &= stages.height + 1 <= bound
                return stages
            ring = ring.difference(proved)
            ring = self._premises(ring, given, within=given, unproved=self.facts).difference(cone)
        raise _TooWide

    def _some(self, number: int, goals: F) -> _Stages[F]:
        """Facts of a stratum that prove the goals from explicit facts and lower strata."""
        stratum, nothing = self.strata.strata[number], self.nothing
        step = Step(  # in which nothing changes
            self.engine,
            stratum,
            Statistics("explain", "some proof"),
            added_rules=frozenset(),
            before=self.facts,
            facts=self.facts,
            explicit=self.explicit,
            deleted=nothing,
            inserted=nothing,
            lost=nothing,
            gained=nothing,
        )
        search = BackwardForward[F]().search(step)
        given = search.true
        finish(search.prove(goals))
        cone = search.proved.difference(given)
        return _found(self._staged(cone, given, self._derivable(cone, given), goals))

    # -- instances -----------------------------------------------------------------------------

    def _extract(self, stages: _Stages[F], goals: Iterable[Key]) -> set[Key]:
        """Choose an instance for each goal and all they use; returns what has no stage."""
        unknown: set[Key] = set()
        by_height: dict[int, list[Key]] = {}

        def add(keys: Iterable[Key]) -> None:
            for key in keys:
                if key in self.chosen.instances:
                    continue
                if key not in stages.heights:
                    unknown.add(key)
                else:
                    by_height.setdefault(stages.heights[key], []).append(key)

        add(goals)
        # Premises are lower, so that one set, which shrinks, holds what may be used.
        lower = stages.truth
        for height in range(stages.height, 0, -1):
            lower = lower.difference(stages.deltas[height - 1])
            for key in by_height.pop(height, ()):
                if key not in self.chosen.instances:
                    instance = self._choose(key, stages.heights, lower)
                    self.chosen.instances[key] = instance
                    add(instance.body)
        return unknown

    def _choose(self, key: Key, heights: Mapping[Key, int], lower: F) -> Instance:
        """The first instance of a fact that needs the fewest premises with proofs of their own."""
        head = self._facts([key])
        best: tuple[tuple[int, int], Instance] | None = None
        seen: dict[CompiledRule, int] = {}
        for support in self.engine.support(
            self._rules(head), head, within=lower, negative=self.facts
        ):
            rule = support.rule
            if seen.get(rule, 0) >= tuning.proof_rule_instances_limit:
                continue
            rows = support.bindings[: tuning.proof_rule_instances_limit].tolist()
            seen[rule] = seen.get(rule, 0) + len(rows)
            for row in rows:
                body = tuple(_key(pattern, row, self.dictionary) for pattern in rule.body)
                needed = [heights[premise] for premise in {*body} if premise in heights]
                cost = len(needed), sum(needed)
                if best is None or cost < best[0]:
                    best = cost, Instance(rule, tuple(row), body)
            if best is not None and best[0] == (0, 0):
                break
        assert best is not None, "a fact of height k has an instance in what is lower"
        return best[1]

    def _sampled(self, key: Key) -> set[Key]:
        """Facts that the result of an aggregate comes from, if it was not asked for before."""
        if key in self.chosen.samples:
            return set()
        bodies = self.chosen.samples[key] = self._sample(key, self.aggregations[key[0]])
        return {premise for body in bodies[:SAMPLE] for premise in body}

    def _sample(self, key: Key, aggregation: Aggregation) -> list[tuple[Key, ...]]:
        """The bodies of some of an aggregate's matches, one more than are shown."""
        values = dict(zip(aggregation.rule.source.head.terms, key[1], strict=True))
        touching = aggregation.touching
        group = tuple(values[term] for term in touching.source.head.terms)
        heads = self._facts([(touching.head.predicate, group)])
        for support in self.engine.support([touching], heads, within=self.facts):
            return [
                tuple(_key(pattern, row, self.dictionary) for pattern in touching.body)
                for row in support.bindings[: SAMPLE + 1].tolist()
            ]
        return []

    # -- facts and keys --------------------------------------------------------------------------

    def _facts(self, keys: Iterable[Key]) -> F:
        rows: dict[Predicate, list[tuple[int, ...]]] = {}
        for predicate, row in keys:
            rows.setdefault(predicate, []).append(row)
        return self.engine.facts(
            {
                p: np.array(found, np.uint32).reshape(len(found), len(found[0]))
                for p, found in rows.items()
            }
        )

    def _keys(self, facts: F) -> Iterable[Key]:
        return [(p, tuple(row)) for p in facts.predicates() for row in facts.rows(p).tolist()]

    def _members(self, keys: set[Key], facts: F) -> set[Key]:
        return {*self._keys(self._facts(keys).intersection(facts))} if keys else set()

    def _owner(self, key: Key) -> int:
        owner = self.strata.owner(key[0])
        assert owner is not None, "what no rule derives is explicit"
        return owner

    def _rules(self, heads: F) -> Sequence[CompiledRule]:
        """The rules that may derive such heads."""
        owners = {self.strata.owner(predicate) for predicate in heads.predicates()}
        numbers = sorted(owner for owner in owners if owner is not None)
        return [rule for number in numbers for rule in self.strata.strata[number].rules]

    def _reading(self, delta: F, heads: F) -> Sequence[CompiledRule]:
        """The rules that may derive such heads from a delta."""
        strata = [self.strata.strata[n] for n in sorted(self.strata.readers(delta.predicates()))]
        return [
            rule
            for stratum in strata
            if len(heads.only(stratum.predicates))
            for rule in stratum.rules
        ]


def _key(pattern: Pattern, row: Sequence[int], dictionary: Dictionary) -> Key:
    """The fact that a body atom reads in an instance."""
    ids = [row[a] if a >= 0 else constant_id(a) for a in pattern.arguments]
    if not pattern.wide:
        return pattern.predicate, tuple(ids)
    if pattern.predicate == TRIPLES:
        subject, label, object_ = ids
        property_ = dictionary.term(label)
        if property_ != TYPE:
            return Predicate(TRIPLE, property_), (subject, object_)
        ids = [subject, object_]
    return Predicate(TRIPLE, TYPE, dictionary.term(ids[1])), (ids[0],)
