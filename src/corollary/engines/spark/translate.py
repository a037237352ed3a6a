"""Π[Ip, In : Δp, Δn] as clauses over operands: one clause for each way in which Δ may enter.

An operand is a set of facts under a letter; an atom that reads it is an atom of that letter's
relations. What only the driver can tell is relations too: the groups of aggregates, which it makes
before, and the values for which filters hold, which tasks ask it for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations

from corollary.core.compile import (
    CompiledExpression,
    CompiledRule,
    Condition,
    Grouping,
    Pattern,
)
from corollary.core.expressions import holds
from corollary.engines.spark.answers import Asked
from corollary.engines.spark.base import Workspace
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.filters import Column, compared
from corollary.engines.spark.packing import NONE, Key
from corollary.engines.spark.plan import ASKED, AUXILIARY, AtomOf, Clause, Plan, Planner, Source
from corollary.engines.spark.tuning import tuning
from corollary.lang.stratify import Predicate

_FRESH = 1 << 16  # variables that a rule does not have are numbered from here on


class Question(Enum):
    """What is asked about terms, if no condition is."""

    VALUE = "which value it has"
    TOLD = "what it is, so that tasks can compare it"


VALUE, TOLD = Question

Reading = tuple[list[AtomOf], list[AtomOf], list[AtomOf]]  # positive, absent, present


@dataclass
class Translation:
    """Clauses of rules in a plan, and the facts that their letters stand for."""

    workspace: Workspace
    operands: Mapping[str, SparkFacts]
    recursive: Sequence[CompiledRule] = ()  # rules whose heads are facts of `f`
    tiny: int | None = None
    asked: dict[Key, Asked] = field(default_factory=dict)
    compared: set[Column] = field(default_factory=set)  # whose terms filters compare
    groups: Mapping[Grouping, Predicate] = field(default_factory=dict)  # facts of `g`
    replicated: Collection[Predicate] = ()  # predicates whose facts every task has

    def __post_init__(self) -> None:
        self.plan = Plan(self.workspace.type_id)
        derived = {self.source("f", rule.head) for rule in self.recursive}
        wide = any(p.wide for r in self.recursive for p in (r.head, *r.body))
        if wide:  # any of them may be derived as another one
            derived |= {self.source("f", p) for r in self.recursive for p in r.body}
        self._sizes: dict[Source, int] = {}
        replicated = {
            key
            for key in (self.workspace.key(p, 0)[:3] for p in self.replicated)
            if self._is_replicated(key)
        }
        self.planner = Planner(
            self.plan, self._size, tiny=self.tiny, derived=derived, replicated=replicated
        )
        self._questions: dict[CompiledExpression | Question, Key] = {}
        self._asking: set[tuple[Key, Source, int]] = set()
        for rule in self.recursive:
            home = self.source("f", rule.head)
            if wide and home.key[0] == 0:
                home = self.plan.wide("f")[1]
            self.plan.homes[home] = self.plan.place(home, 0)

    def _is_replicated(self, relation: tuple[int, ...]) -> bool:
        """Whether every task may have the facts of a relation, in each of the operands."""
        most = max(
            (
                sum(n for key, n in self._counts_of(facts).items() if key[:3] == relation)
                for facts in self.operands.values()
            ),
            default=0,
        )
        return most <= tuning.replicated_facts_limit

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
        counts = self._counts_of(facts)
        if key[0] == 0 and key[1] == NONE:
            return sum(n for k, n in counts.items() if k[0] == 0)
        if key[0] == 0 and key[1] == self.workspace.type_id and key[2] == NONE:
            return sum(n for k, n in counts.items() if k[0] == 0 and k[2] != NONE)
        return counts.get(key, 0)

    def _counts_of(self, facts: SparkFacts) -> dict[Key, int]:
        counts = self._counts.get(id(facts))
        if counts is None:
            counts = self._counts[id(facts)] = counted_by_key(facts)
        return counts

    _counts: dict[int, dict[Key, int]] = field(default_factory=dict)

    # -- rules -----------------------------------------------------------------------------------

    def add(self, rule: CompiledRule, head: AtomOf, reading: Reading) -> None:
        """One reading of a rule."""
        positive, absent, present = reading
        body = list(positive)
        for grouping in rule.groupings:
            key = self.workspace.key(self.groups[grouping], len(grouping.outer))
            body.append(AtomOf(Source("g", key), grouping.outer))
        body += [self._projected(atom, rule.bound) for atom in present]
        if any(
            self._size(a.source) == 0
            and a.source.operand in self.operands
            and a.source not in self.planner._derived
            for a in body
        ):
            return  # nothing to read
        negated = [a for a in absent if self._size(a.source)]
        conditions: list[Condition] = []
        for number, condition in enumerate(rule.conditions):
            match condition.expression, condition.variables:
                case _, ():
                    if not holds(condition.expression, {}, 1, self.workspace.dictionary)[0]:
                        return
                case ("sameValue", (int(one), int(two))), _ if one != two:
                    # both have the value that is a variable of its own
                    value = _FRESH + number
                    body += [self._known_of(v, body, VALUE, value) for v in (one, two)]
                case _, (variable,):
                    question = condition.renumbered({variable: 0}).expression
                    body.append(self._known_of(variable, body, question))
                case _:
                    conditions.append(condition)
        for variable in compared(conditions):
            atoms = [a for a in body if variable in a.variables]
            asker = min(atoms, key=lambda a: (self._is_derived(a), self._size(a.source)))
            if self._is_derived(asker):
                # Of a rule that compares all literals with some, none is asked for if there are
                # none of these.
                others = [
                    self._projected(a, 0)
                    for a in positive
                    if a is not asker and not {*a.variables} & {*asker.variables}
                ]
                body.append(self._known_of(variable, body, TOLD, given=others))
            else:
                self.compared.add((asker.source, asker.arguments.index(variable)))
        self.planner.add(Clause(head, tuple(body), tuple(negated), rule.bound, tuple(conditions)))

    def _is_derived(self, atom: AtomOf) -> bool:
        return atom.source in self.planner._derived

    def _known_of(
        self,
        variable: int,
        body: Sequence[AtomOf],
        question: CompiledExpression | Question,
        value: int = -1,
        given: Sequence[AtomOf] = (),
    ) -> AtomOf:
        """What the driver knows of a term: that a condition holds, its value, or its text.

        It is asked for all terms that an atom of the body may have there, where others match too
        that are `given`; rules with the same question share the answers.
        """
        key = self._questions.get(question)
        if key is None:
            key = self._questions[question] = (len(self.asked) + 1, NONE, NONE, 1)
            answers = Source("k", (*key[:3], 2 if question is VALUE else 1))
            self.planner._derived.add(answers)
            self._sizes[answers] = 1 << 40
            condition = None if isinstance(question, Question) else question
            self.asked[key] = Asked(answers, condition, question is TOLD)
        atoms = [a for a in body if variable in a.variables and a.source.operand != "k"]
        asker = min(atoms, key=lambda a: self._size(a.source))
        place = (key, asker.source, asker.arguments.index(variable))
        if given or place not in self._asking:
            if not given:
                self._asking.add(place)
            asking = AtomOf(Source(ASKED, key), (variable,))
            clause = Clause(asking, (asker, *given), (), _FRESH)
            self.planner.add(clause, final=False, cut=True)
        arguments = (variable, value) if question is VALUE else (variable,)
        return AtomOf(self.asked[key].answers, arguments)

    def _projected(self, atom: AtomOf, bound: int) -> AtomOf:
        """An atom that need only match somehow: its variables that the rule binds."""
        found = self.planner._aux(sorted(v for v in atom.variables if v < bound))
        numbered = max((*atom.variables, bound - 1)) + 1
        self.planner.add(Clause(found, (atom,), (), numbered), final=False, cut=True)
        return found


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
    """The body in `f`; or exactly one of its facts (at least two if `several`) in `p` only."""
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
