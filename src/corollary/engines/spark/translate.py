"""Π[Ip, In : Δp, Δn] as clauses over operands: one clause for each way in which Δ may enter.

An operand is a set of facts under a letter; an atom that reads it is an atom of that letter's
relations. What only the driver can tell is relations too: the groups of aggregates, which it makes
before, and the values for which filters hold, which tasks ask it for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from corollary.core.compile import CompiledRule, Grouping, Pattern
from corollary.core.dictionary import Ids
from corollary.core.expressions import holds
from corollary.engines.spark.base import Workspace
from corollary.engines.spark.evaluate import Asked
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import NONE, Key
from corollary.engines.spark.plan import ASKED, AUXILIARY, AtomOf, Clause, Plan, Planner, Source

Reading = tuple[list[AtomOf], list[AtomOf], list[AtomOf]]  # positive, absent, present


@dataclass
class Translation:
    """Clauses of rules in a plan, and the facts that their letters stand for."""

    workspace: Workspace
    operands: Mapping[str, SparkFacts]
    recursive: Sequence[CompiledRule] = ()  # rules whose heads are facts of `f`
    tiny: int | None = None
    asked: dict[Key, Asked] = field(default_factory=dict)
    given: list[tuple[Source, Ids]] = field(default_factory=list)
    groups: Mapping[Grouping, Ids] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plan = Plan(self.workspace.type_id)
        derived = {self.source("f", rule.head) for rule in self.recursive}
        wide = any(
            p.wide for r in self.recursive for p in (r.head, *r.body)
        )
        if wide:  # any of them may be derived as another one
            derived |= {
                self.source("f", p) for r in self.recursive for p in r.body
            }
        options = {} if self.tiny is None else {"tiny": self.tiny}
        self.planner = Planner(self.plan, self._size, derived=derived, **options)
        self._sizes: dict[Source, int] = {}
        self._groups: dict[Grouping, Source] = {}
        for rule in self.recursive:
            home = self.source("f", rule.head)
            if wide and home.key[0] == 0:
                home = self.plan.wide("f")[1]
            self.plan.homes[home] = self.plan.place(home, 0)

    def source(self, letter: str, pattern: Pattern) -> Source:
        """What an atom reads."""
        return Source(letter, self.workspace.key(pattern.predicate, len(pattern.arguments)))

    def atom(self, letter: str, pattern: Pattern) -> AtomOf:
        return AtomOf(self.source(letter, pattern), pattern.arguments)

    def atoms(self, letter: str, patterns: Sequence[Pattern]) -> list[AtomOf]:
        return [self.atom(letter, pattern) for pattern in patterns]

    def _size(self, source: Source) -> int:
        found = self._sizes.get(source)
        if found is None:
            facts = self.operands.get(source.operand)
            found = 1 << 40 if source.operand == AUXILIARY else 0
            if facts is not None:
                found = self._count(facts, source.key)
            self._sizes[source] = found
        return found

    def _count(self, facts: SparkFacts, key: Key) -> int:
        counts = self._counts.get(id(facts))
        if counts is None:
            counts = self._counts[id(facts)] = counted_by_key(facts)
        if key[0] == 0 and key[1] == NONE:
            return sum(n for k, n in counts.items() if k[0] == 0)
        if key[0] == 0 and key[1] == self.workspace.type_id and key[2] == NONE:
            return sum(n for k, n in counts.items() if k[0] == 0 and k[2] != NONE)
        return counts.get(key, 0)

    _counts: dict[int, dict[Key, int]] = field(default_factory=dict)

    # -- rules -----------------------------------------------------------------------------------

    def add(self, rule: CompiledRule, head: AtomOf, reading: Reading) -> None:
        """One reading of a rule."""
        positive, absent, present = reading
        body = list(positive)
        for grouping in rule.groupings:
            source = self._grouped(grouping)
            body.append(AtomOf(source, grouping.outer))
        for atom in present:
            body.append(self._projected(atom, rule.bound))
        if any(self._size(a.source) == 0 and a.source.operand in self.operands
               and a.source not in self.planner._derived for a in body):
            return  # nothing to read
        negated = [a for a in absent if self._size(a.source)]
        conditions = []
        for condition in rule.conditions:
            if condition.variables:
                conditions.append(condition)
            elif not holds(condition.expression, {}, 1, self.workspace.dictionary)[0]:
                return
        if not conditions:
            self.planner.add(Clause(head, tuple(body), tuple(negated), rule.bound))
            return
        found = self.planner._aux(sorted({v for a in body for v in a.variables}))
        self.planner.add(Clause(found, tuple(body), tuple(negated), rule.bound), final=False)
        variables = tuple(dict.fromkeys(v for c in conditions for v in c.variables))
        number = len(self.asked) + 1
        key = (number, NONE, NONE, len(variables))
        question, answers = Source(ASKED, key), Source("k", key)
        self.asked[key] = Asked(answers, tuple(conditions), variables)
        self.planner._derived.add(answers)
        self._sizes[answers] = 1 << 40
        self.planner.add(
            Clause(AtomOf(question, variables), (found,), (), rule.bound), final=False
        )
        self.planner.add(Clause(head, (found, AtomOf(answers, variables)), (), rule.bound))

    def _projected(self, atom: AtomOf, bound: int) -> AtomOf:
        """An atom that need only match somehow: its variables that the rule binds."""
        found = self.planner._aux(sorted(v for v in atom.variables if v < bound))
        numbered = max((*atom.variables, bound - 1)) + 1
        self.planner.add(Clause(found, (atom,), (), numbered), final=False)
        return found

    def _grouped(self, grouping: Grouping) -> Source:
        source = self._groups.get(grouping)
        if source is None:
            rows = self.groups[grouping]
            key = (len(self._groups) + 1, NONE, NONE, len(grouping.outer))
            source = self._groups[grouping] = Source("g", key)
            self._sizes[source] = len(rows)
            self.given.append((source, rows))
        return source


def counted_by_key(facts: SparkFacts) -> dict[Key, int]:
    """How many facts of each predicate there are, at most."""
    workspace = facts.workspace
    counts = {key: len(rows) for key, rows in workspace.packed(facts.small).items()}
    if facts.base is not None:
        for key, predicate in facts.base.keys().items():
            counts[key] = counts.get(key, 0) + facts.base.counts[predicate]
    return counts


def delta_readings(
    translation: Translation, rule: CompiledRule, *, delta: bool, negative_delta: bool
) -> Iterator[Reading]:
    """The ways to read a rule in Π[f, n : d, e]; no instance is found by two of them.

    `o` is Ip − Δp, `b` is In ∪ Δn.
    """
    t = translation
    absent = t.atoms("n", rule.negated)
    if not delta and not negative_delta:
        yield t.atoms("f", rule.body), absent, []
    if delta:
        # the first fact of Δp stands at position i
        for i, pattern in enumerate(rule.body):
            before, after = t.atoms("o", rule.body[:i]), t.atoms("f", rule.body[i + 1 :])
            yield [t.atom("d", pattern), *before, *after], absent, []
    if negative_delta:
        # no fact of Δp; the first negated atom that matches in Δn stands at position k
        old = "o" if delta else "f"
        for k, pattern in enumerate(rule.negated):
            before = t.atoms("b", rule.negated[:k])
            yield t.atoms(old, rule.body), [*before, *absent[k:]], [t.atom("e", pattern)]


def body_readings(
    translation: Translation, rule: CompiledRule, *, unproved: bool, several: bool
) -> Iterator[Reading]:
    """The body in `f`; or exactly one of its facts (at least two if `several`) in `p`, not in `f`.
    """
    t = translation
    absent = t.atoms("n", rule.negated)
    if not unproved:
        yield t.atoms("f", rule.body), absent, []
        return
    places = range(len(rule.body))
    for size in range(2, len(places) + 1) if several else (1,):
        for chosen in combinations(places, size):
            atoms = [t.atom("p" if at in chosen else "f", p) for at, p in enumerate(rule.body)]
            yield atoms, [*absent, *(t.atom("f", rule.body[at]) for at in chosen)], []


def no_rows(columns: int) -> Ids:
    """An empty table."""
    return np.zeros((0, columns), np.uint32)
