"""Find a proof of least height for a fact of a materialization, without stored provenance.

Idea: an explicit fact has height 0; a derived fact has height 1 + the greatest height among the
body facts of a rule instance, minimized over its instances. That is the first round of naive
evaluation that derives the fact. Negated and aggregated facts are complete and count as given.
`support` returns the instances of a fact, so backward search from the goal collects the facts that
a proof may need, ring by ring (the *cone*); `derive` restricted to the cone then decides forward
which of them have a proof.

Invariants: the cone of depth d holds every fact that a proof of height d may need, so the goal has
height at most d if and only if rounds 1 … d inside that cone derive it. The cone grows until the
goal has a proof, of height h say, and then to depth h; the proof extracted then has least height.
The instance of a fact of height k has body facts of smaller heights only, so no fact supports
itself. Among the first thousand such instances of each rule, the search prefers the fewest premises
that need a proof, then the least sum of their heights; it does not minimize the size of the proof.

Cost: proportional to the instances of the facts in the cone, not to the materialization; facts of
height 1 are not expanded. Cones can be huge: a nonlinear transitive rule over n nodes has n³
instances. When the next ring would exceed the budget,
1. one round of evaluation yields all facts of height 1, so that the same cone covers proofs of one
   more step;
2. failing that, the search considers only instances with at most one premise of height above 1,
   which makes such rules linear; if the proof may not have least height, `Proof.least` is false;
3. failing that, backward chaining that stops early (`backward_forward`) finds some proof, stratum
   by stratum from the goal downward.
Aggregated facts are shown as a sample, each with its own proof.
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
from corollary.algorithms.instances import SAMPLE, Instance, Key, ProofBuilder, ProofChoice
from corollary.algorithms.strata import CompiledStrata
from corollary.algorithms.stratum import StratumUpdate, finish
from corollary.algorithms.tuning import tuning
from corollary.core.compile import TRIPLES, CompiledRule, Pattern, constant_id
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, F
from corollary.core.proof import SEARCH_BUDGET, Proof
from corollary.core.statistics import Statistics
from corollary.core.tables import body_tables, encode, is_known, joined
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Atom, Variable

_WIDE_RING_COST = 256  # instances charged per head of a wide ring, as even few may be slow to find
_LINEAR_BUDGETS = 10  # the budget of a linear search, in budgets


def explain(
    fact: Atom,
    program: Program,
    strata: CompiledStrata,
    facts: F,
    explicit: F,
    engine: Engine[F],
    *,
    budget: int = SEARCH_BUDGET,
) -> Proof:
    """Return a proof of least height of a fact of the materialization `facts`.

    `facts` includes the relations of aggregates. See `Maintainer.explain`.
    """
    if any(isinstance(term, Variable) for term in fact.terms):
        text = Printer(program.prefixes).atom(fact)
        raise InvalidInput("E208", f"only a fact can be explained, but {text} has variables")
    fits = program.arities.get(fact.relation, len(fact.terms)) == len(fact.terms)
    known = fits and is_known(fact, engine.dictionary)  # a query must not add terms
    goal = encode([fact], engine.dictionary) if known else {}
    if not len(engine.facts(goal).intersection(facts)):
        raise InvalidInput(
            "E340",
            f"{Printer(program.prefixes).atom(fact)} is not in the materialization",
            "it is neither explicit nor derived; kb.why_not, or 'corollary explain' with --why-not,"
            " shows what is missing",
        )
    [(predicate, rows)] = goal.items()
    search = _Search(strata, facts, explicit, engine, budget)
    key = (predicate, tuple(rows[0].tolist()))
    search.prove(key)
    return ProofBuilder(search.choice, program, engine.dictionary).build(key)


class _TooWide(Exception):
    """The cone exceeds the budget."""


@dataclass
class _Stages(Generic[F]):
    """Facts by height: `truth` holds given and proved facts, `deltas[k]` those of height k + 1."""

    truth: F
    deltas: list[F] = field(default_factory=list)
    heights: dict[Key, int] = field(default_factory=dict)

    @property
    def height(self) -> int:
        """The greatest height."""
        return len(self.deltas)

    def add(self, facts: F, keys: Iterable[Key]) -> None:
        """Add the facts of the next height."""
        self.deltas.append(facts)
        self.heights.update(dict.fromkeys(keys, len(self.deltas)))
        self.truth = self.truth.union(facts)


def _require(stages: _Stages[F] | None) -> _Stages[F]:
    if stages is None:
        raise OperationFailed("E407", "the materialization is not what follows from the facts")
    return stages


class _Search(Generic[F]):
    """Search for the instances that prove facts."""

    def __init__(
        self, strata: CompiledStrata, facts: F, explicit: F, engine: Engine[F], budget: int
    ) -> None:
        self.strata, self.facts, self.explicit, self.engine = strata, facts, explicit, engine
        self.budget = self.remaining = budget
        self.choice = ProofChoice()
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
        """The facts without a proof: explicit facts and results of aggregates."""
        results = self.facts.only(self.aggregations) if self.aggregations else self.nothing
        return self.explicit.union(results) if len(results) else self.explicit

    def prove(self, goal: Key) -> None:
        """Choose instances for the goal and its premises, then for samples of aggregates."""
        pending = self._prove_all({goal})
        least = self.choice.least
        while pending:
            samples = {premise for key in pending for premise in self._new_sample(key)}
            pending = self._prove_all(samples)
        self.choice.least = least  # heights of aggregated facts do not count

    def _prove_all(self, goals: set[Key]) -> set[Key]:
        """Choose instances for the goals and their premises; return the aggregate results used."""
        results = set[Key]()
        while goals:
            results |= {key for key in goals if key[0] in self.aggregations}
            goals = goals - results - self.choice.instances.keys()
            goals -= self._members(goals, self.explicit)
            if not goals:
                break
            try:
                self.remaining = self.budget
                goals = self._extract(self._least(self._facts(goals)), goals)
            except _TooWide:
                self.choice.least = False
                stratum = max(self._owner(key) for key in goals)
                own = {key for key in goals if self._owner(key) == stratum}
                premises = self._extract(self._any_proofs(stratum, self._facts(own)), own)
                goals = goals - own | premises
        return results

    # -- proofs of least height ----------------------------------------------------------------

    def _least(self, goals: F) -> _Stages[F]:
        """Grow the cone until all goals have a height; return its facts by height."""
        given = self.given
        cone = proved = ready = self.nothing  # `ready` has height 1
        stages: _Stages[F] | None = None
        ring, depth = goals, 1
        while len(ring):
            cone = cone.union(ring)
            try:
                one_step = self._derivable(ring, given)
                ready = ready.union(one_step)
                if stages is None:
                    proved = self._saturate(given, cone, ring, proved, one_step)
                    if not len(goals.difference(proved)):
                        stages = self._stages(cone, given, ready, goals)
                if stages is not None and depth >= stages.height:
                    break
                ring = ring.difference(ready)
                if len(ring) > tuning.proof_heads_batch:
                    self._spend(_WIDE_RING_COST * len(ring))
                ring = self._premises(ring, given).difference(cone)
            except _TooWide:
                if stages is None:
                    return self._beyond(goals, cone, depth)
                self.choice.least = False
                return stages
            depth += 1
        return _require(self._stages(cone, given, ready, goals))

    def _derivable(self, heads: F, facts: F) -> F:
        """Select the heads that a rule derives from the facts in one step."""
        rules = self._rules(heads)
        return self.engine.derive(rules, facts, negative=self.facts, heads=heads).facts

    def _saturate(self, given: F, cone: F, ring: F, proved: F, one_step: F) -> F:
        """Return all facts of the cone with a proof inside it, of any height."""
        delta, true = one_step, given
        if len(proved):
            true = given.union(proved)
            delta = delta.union(self._derivable(ring.difference(one_step), true))
        if not len(delta):
            return proved
        unproved = cone.difference(proved)
        while len(delta):
            proved, true = proved.union(delta), true.union(delta)
            unproved = unproved.difference(delta)
            if not len(unproved):
                return proved
            delta = self._consequences(true, delta, unproved)
            self._spend(len(delta))
        return proved

    def _consequences(self, facts: F, delta: F, heads: F) -> F:
        rules = self._rules_reading(delta, heads)
        derived = self.engine.derive(rules, facts, negative=self.facts, delta=delta, heads=heads)
        return derived.facts.difference(facts)

    def _stages(
        self, cone: F, given: F, ready: F, goals: F, limit: int = sys.maxsize
    ) -> _Stages[F] | None:
        """Run rounds of naive evaluation inside the cone until they reach the goals."""
        stages = _Stages(given)
        delta, unproved = ready, cone.difference(given)
        while len(delta) and stages.height < limit:
            stages.add(delta, self._keys(delta))
            goals = goals.difference(delta)
            if not len(goals):
                return stages
            unproved = unproved.difference(delta)
            if not len(unproved):
                return None
            delta = self._consequences(stages.truth, delta, unproved)
        return None

    def _premises(
        self, heads: F, given: F, *, within: F | None = None, unproved: F | None = None
    ) -> F:
        """The body facts of the heads' instances that are not given."""
        tables = []
        rules = self._rules(heads)
        within = self.facts if within is None else within
        for part in self._batches(heads):
            for support in self.engine.support(
                rules, part, within=within, negative=self.facts, unproved=unproved
            ):
                self._spend(len(support.bindings))
                tables.append(body_tables(support, self.dictionary, self._may_be_derived))
        return self.engine.facts(joined(tables)).difference(given)

    def _batches(self, facts: F) -> Iterator[F]:
        for predicate in facts.predicates():
            rows = facts.rows(predicate)
            for start in range(0, len(rows), tuning.proof_heads_batch):
                yield self.engine.facts({predicate: rows[start : start + tuning.proof_heads_batch]})

    def _spend(self, instances: int) -> None:
        self.remaining -= instances
        if self.remaining < 0:
            raise _TooWide

    def _may_be_derived(self, predicate: Predicate) -> bool:
        if predicate in self.aggregations:
            return False
        return predicate.relation == TRIPLE or self.strata.owner(predicate) is not None

    # -- fallbacks, where cones are too wide -----------------------------------------------------

    def _beyond(self, goals: F, cone: F, depth: int) -> _Stages[F]:
        """Stages of goals higher than `depth`, if the next ring exceeds the budget."""
        last = max(self._owner(key) for key in self._keys(goals))
        rules = [rule for stratum in self.strata.strata[: last + 1] for rule in stratum.rules]
        derived = self.engine.derive(rules, self.given, negative=self.facts).facts
        given = derived.union(self.given)
        goals = goals.difference(given)  # the others have height 1
        self.remaining = _LINEAR_BUDGETS * self.budget
        cone = cone.difference(given)
        stages = self._stages(cone, given, self._derivable(cone, given), goals, limit=depth)
        return stages or self._linear(goals, given, depth + 2)

    def _linear(self, goals: F, given: F, bound: int) -> _Stages[F]:
        """Stages by instances with at most one premise that is not given."""
        cone = proved = self.nothing
        ring = goals
        while len(ring):
            cone = cone.union(ring)
            proved = self._saturate(given, cone, ring, proved, self._derivable(ring, given))
            if not len(goals.difference(proved)):
                stages = _require(self._stages(cone, given, self._derivable(cone, given), goals))
                self.choice.least &= stages.height + 1 <= bound
                return stages
            ring = ring.difference(proved)
            ring = self._premises(ring, given, within=given, unproved=self.facts).difference(cone)
        raise _TooWide

    def _any_proofs(self, number: int, goals: F) -> _Stages[F]:
        """Stages of any proofs of the goals from explicit facts and lower strata."""
        stratum, nothing = self.strata.strata[number], self.nothing
        update = StratumUpdate(  # without changes
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
        search = BackwardForward[F]().search(update)
        given = search.true
        finish(search.prove(goals))
        cone = search.proved.difference(given)
        return _require(self._stages(cone, given, self._derivable(cone, given), goals))

    # -- instances -----------------------------------------------------------------------------

    def _extract(self, stages: _Stages[F], goals: Iterable[Key]) -> set[Key]:
        """Choose instances for the goals and their premises; return the facts without a stage."""
        unknown: set[Key] = set()
        by_height: dict[int, list[Key]] = {}

        def add(keys: Iterable[Key]) -> None:
            for key in keys:
                if key in self.choice.instances:
                    continue
                if key not in stages.heights:
                    unknown.add(key)
                else:
                    by_height.setdefault(stages.heights[key], []).append(key)

        add(goals)
        # Premises have smaller heights: one shrinking set holds the facts that may be used.
        lower = stages.truth
        for height in range(stages.height, 0, -1):
            lower = lower.difference(stages.deltas[height - 1])
            for key in by_height.pop(height, ()):
                if key not in self.choice.instances:
                    instance = self._choose(key, stages.heights, lower)
                    self.choice.instances[key] = instance
                    add(instance.body)
        return unknown

    def _choose(self, key: Key, heights: Mapping[Key, int], lower: F) -> Instance:
        """The first instance of a fact with the fewest premises that need a proof."""
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
        assert best is not None, "a fact has an instance among facts of smaller heights"
        return best[1]

    def _new_sample(self, key: Key) -> set[Key]:
        """Sample the facts behind the result of an aggregate; empty if already sampled."""
        if key in self.choice.samples:
            return set()
        bodies = self.choice.samples[key] = self._sample(key, self.aggregations[key[0]])
        return {premise for body in bodies[:SAMPLE] for premise in body}

    def _sample(self, key: Key, aggregation: Aggregation) -> list[tuple[Key, ...]]:
        """The bodies of some matches of an aggregate, one more than a proof shows."""
        values = dict(zip(aggregation.rule.source.head.terms, key[1], strict=True))
        affecting = aggregation.affecting
        group = tuple(values[term] for term in affecting.source.head.terms)
        heads = self._facts([(affecting.head.predicate, group)])
        for support in self.engine.support([affecting], heads, within=self.facts):
            return [
                tuple(_key(pattern, row, self.dictionary) for pattern in affecting.body)
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
                p: np.array(table, np.uint32).reshape(len(table), len(table[0]))
                for p, table in rows.items()
            }
        )

    def _keys(self, facts: F) -> Iterable[Key]:
        return [(p, tuple(row)) for p in facts.predicates() for row in facts.rows(p).tolist()]

    def _members(self, keys: set[Key], facts: F) -> set[Key]:
        return {*self._keys(self._facts(keys).intersection(facts))} if keys else set()

    def _owner(self, key: Key) -> int:
        owner = self.strata.owner(key[0])
        assert owner is not None, "underived facts are explicit"
        return owner

    def _rules(self, heads: F) -> Sequence[CompiledRule]:
        """The rules that may derive these heads."""
        owners = {self.strata.owner(predicate) for predicate in heads.predicates()}
        numbers = sorted(owner for owner in owners if owner is not None)
        return [rule for number in numbers for rule in self.strata.strata[number].rules]

    def _rules_reading(self, delta: F, heads: F) -> Sequence[CompiledRule]:
        """The rules that may derive these heads from a delta."""
        strata = [self.strata.strata[n] for n in sorted(self.strata.readers(delta.predicates()))]
        return [
            rule
            for stratum in strata
            if len(heads.only(stratum.predicates))
            for rule in stratum.rules
        ]


def _key(pattern: Pattern, row: Sequence[int], dictionary: Dictionary) -> Key:
    """The fact that a body atom matches in an instance."""
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
