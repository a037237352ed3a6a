"""The rules of a program that answer some goals, each kept to what is asked for.

The calls of Algorithm 1, *infer* for the atoms of a body from left to right, are written down as
rules: for a goal G and a rule `H :- B₁, …, Bₙ` whose head it unifies with,

    H     :- asked G(head), B₁, …, Bₙ           what the call gives back
    asked Gᵢ(Bᵢ) :- asked G(head), B₁, …, Bᵢ₋₁  the call for Bᵢ, with its admissible values

so that an engine that evaluates rules over sets answers all calls for a goal together, and passes
sets of admissible values sideways. Each goal is unfolded once (that is *PrevQueries*, for all paths
of the proof tree together), so that this ends.

Invariants: every fact that the rules derive follows from the program; of each goal's predicate all
facts with values that are asked for follow. What is negated or aggregated, and all that it depends
on, is asked for without values, so the strata of the program stay as they were.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from corollary.algorithms.hybrid_goals import (
    Goal,
    Patterns,
    free,
    goal_of,
    is_wide,
    may_meet,
    unified,
    wide_of,
)
from corollary.core.compile import TRIPLES, TYPES, covers, home, open_terms
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Atom, BodyLiteral, Filter, Rule, Term, Variable

Size = Callable[[Predicate], float]  # about how many facts there are

_ESTIMATES = 4  # rounds in which sizes of derived predicates are estimated
_MANY = 1e12
# A rule is unfolded for goals with other bound places, mostly for one or two of these. Rules that
# derive any property are unfolded for each, and so are then all others for each of these.
_WAYS, _AT_LEAST = 3, 100


class Rules:
    """Rules by what they derive, without those that cannot have an instance.

    A rule is left out while a predicate of its body has no explicit facts and no rule that is not
    left out: that is the paper's early failure, found out before any query.
    """

    def __init__(self, rules: Iterable[Rule], present: Collection[Predicate]) -> None:
        self.present = frozenset(present)
        self.tangled = False  # whether goals for triples turned out to be too many
        self._by_head: dict[Predicate, list[Rule]] = {}
        self._apart: dict[Predicate, frozenset[int]] = {}
        self.rules = tuple(self._live(list(rules)))
        for rule in self.rules:
            self._by_head.setdefault(home(rule.head), []).append(rule)

    def _live(self, rules: list[Rule]) -> Iterator[Rule]:
        """The rules whose bodies may hold, as far as predicates tell."""
        live: set[Predicate] = set()
        waiting: dict[Predicate, list[Rule]] = {}
        queue = deque(rules)

        def meet(predicate: Predicate, derived: bool) -> None:
            """There are facts of a predicate, or (`derived`) a rule derives some."""
            new = {predicate}
            if predicate.relation == TRIPLE:
                new.add(TRIPLES)
                if predicate.property == TYPE or (derived and predicate is TRIPLES):
                    new.add(TYPES)
            for found in new - live:
                live.add(found)
                queue.extend(waiting.pop(found, ()))
            if derived and is_wide(predicate):  # which may be any property or class
                anything.add(predicate)
                for other in [p for p in waiting if covers(predicate, p)]:
                    queue.extend(waiting.pop(other))

        anything: set[Predicate] = set()
        for predicate in self.present:
            meet(predicate, derived=False)
        while queue:
            rule = queue.popleft()
            needed = (home(part) for part in rule.body if isinstance(part, Atom))
            lacking = next(
                (p for p in needed if p not in live and not any(covers(w, p) for w in anything)),
                None,
            )
            if lacking is not None:
                waiting.setdefault(lacking, []).append(rule)
            else:
                yield rule
                meet(home(rule.head), derived=True)

    def meeting(self, predicate: Predicate) -> list[Rule]:
        """The rules that may derive facts of a predicate."""
        if is_wide(predicate):
            return [r for p, rs in self._by_head.items() if may_meet(predicate, p) for r in rs]
        found = list(self._by_head.get(predicate, ()))
        for wide in wide_of(predicate):
            found += self._by_head.get(wide, ())
        return found

    def of(self, predicate: Predicate) -> Iterator[Rule]:
        """The rules that may derive facts of a predicate, as far as they do (θₕ)."""
        for rule in self.meeting(predicate):
            instance = unified(rule, predicate)
            if instance is not None:
                yield instance

    def derives(self, predicate: Predicate) -> bool:
        """Whether some rule may derive facts of a predicate."""
        if is_wide(predicate):
            return any(may_meet(predicate, head) for head in self._by_head)
        return predicate in self._by_head or any(w in self._by_head for w in wide_of(predicate))

    def apart(self, predicate: Predicate) -> Collection[int]:
        """The places at which every rule for a plain relation has a constant in its head."""
        if predicate.relation == TRIPLE:
            return ()
        found = self._apart.get(predicate)
        if found is None:
            heads = [rule.head.terms for rule in self._by_head.get(predicate, ())]
            found = self._apart[predicate] = frozenset(
                at
                for at, terms in enumerate(zip(*heads, strict=True))
                if not any(isinstance(term, Variable) for term in terms)
            )
        return found

    @property
    def heads(self) -> Collection[Predicate]:
        """What the rules derive."""
        return self._by_head.keys()

    def sizes(self, explicit: Size) -> Size:
        """About how many facts of each predicate follow: rules give as many as their least atom."""
        sizes: dict[Predicate, float] = {}

        def size(predicate: Predicate) -> float:
            found = sizes.get(predicate)
            return float(explicit(predicate)) if found is None else found

        for _ in range(_ESTIMATES):
            new: dict[Predicate, float] = {}
            for head, rules in self._by_head.items():
                total = float(explicit(head))
                for rule in rules:
                    atoms = [size(home(part)) for part in rule.body if isinstance(part, Atom)]
                    total += min(atoms, default=1.0)
                new[head] = min(total, _MANY)
            sizes.update(new)
        return size


@dataclass(frozen=True)
class Call:
    """*infer* for one atom of a body: the goal that it asks, None if it is looked up."""

    atom: Atom
    goal: Goal | None


@dataclass(frozen=True)
class Unfolding:
    """A rule by which a goal is unfolded, with the calls for its atoms in order."""

    rule: Rule
    calls: tuple[Call, ...]
    read: tuple[Call, ...]  # what is negated or aggregated


@dataclass
class Rewriting:
    """Rules that answer goals, values that are asked for from the beginning, and the goals."""

    rules: dict[Rule, None] = field(default_factory=dict)
    seeds: dict[Atom, None] = field(default_factory=dict)
    goals: dict[Goal, list[Unfolding]] = field(default_factory=dict)
    roots: dict[Goal, Goal] = field(default_factory=dict)  # and what they are part of

    @cached_property
    def asked(self) -> tuple[Predicate, ...]:
        """The relations of values that are asked for."""
        return tuple(goal.asked for goal in self.goals if not goal.is_free)


def rewrite(
    rules: Rules, roots: Iterable[Goal], prematerialized: Patterns, size: Size
) -> Rewriting:
    """The rules that answer the goals; atoms of pre-materialized patterns are looked up.

    >>> from corollary.lang.program import Program
    >>> from corollary.lang.printer import Printer
    >>> program = Program.parse("p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- e(?x, ?y), p(?y, ?z) .")
    >>> goal = Goal(Predicate("p"), (True, False))
    >>> found = rewrite(Rules(program.rules, [Predicate("e")]), [goal], Patterns(), lambda p: 1)
    >>> for rule in found.rules:
    ...     print(Printer().rule(rule))
    p(?x, ?y) :- ASKED p bf(?x), e(?x, ?y) .
    p(?x, ?z) :- ASKED p bf(?x), e(?x, ?y), p(?y, ?z) .
    ASKED p bf(?y) :- ASKED p bf(?x), e(?x, ?y) .
    """
    asked = tuple(roots)
    if rules.tangled and any(goal.predicate.relation == TRIPLE for goal in asked):
        return _whole(rules, asked, prematerialized)
    wider: dict[Goal, None] = {}
    complete: dict[Predicate, None] = {}
    while True:
        build = _Build(rules, prematerialized, size, wider, complete)
        for goal in asked:
            build.result.roots[goal] = build.ask(goal)
        if not build.run():
            # If a rule derives any property, the next query will be no better.
            rules.tangled = TRIPLES in rules.heads
            return _whole(rules, asked, prematerialized)
        if not build.widen():
            return build.result


def _whole(rules: Rules, roots: Iterable[Goal], prematerialized: Patterns) -> Rewriting:
    """The rules that the goals depend on as they are, where values would not keep them apart."""
    result = Rewriting()
    queue: deque[Goal] = deque()

    def ask(goal: Goal) -> Goal:
        whole = Goal(goal.predicate, (False,) * len(goal.bound))
        if whole not in result.goals:
            result.goals[whole] = []
            queue.append(whole)
        return whole

    def call(atom: Atom) -> Call:
        derived = rules.derives(home(atom)) and not prematerialized.cover(atom)
        return Call(atom, ask(goal_of(atom)) if derived else None)

    for root in roots:
        result.roots[root] = ask(root)
    while queue:
        goal = queue.popleft()
        for rule in rules.meeting(goal.predicate):
            if rule not in result.rules:
                result.rules[rule] = None
                atoms = list(rule.atoms())
                calls = tuple(call(atom) for atom, reading in atoms if reading == "positive")
                read = tuple(call(atom) for atom, reading in atoms if reading != "positive")
                result.goals[goal].append(Unfolding(rule, calls, read))
    return result


class _Build:
    """One attempt; what it finds out about goals that others are part of, the next one knows."""

    def __init__(
        self,
        rules: Rules,
        prematerialized: Patterns,
        size: Size,
        wider: dict[Goal, None],
        complete: dict[Predicate, None],
    ) -> None:
        self.rules = rules
        self.prematerialized = prematerialized
        self.size = size
        self.wider, self.complete = wider, complete
        self.result = Rewriting()
        self._queue: deque[Goal] = deque()
        self._known = len(wider) + len(complete)

    def ask(self, goal: Goal) -> Goal:
        """The goal, or one that it is part of, is to be answered."""
        for predicate in self.complete:
            if may_meet(predicate, goal.predicate):
                whole = Goal(goal.predicate, (False,) * len(goal.bound))
                if covers(predicate, goal.predicate):
                    goal = whole
                else:  # its facts are not to depend on what negates some of them
                    self.complete.setdefault(goal.predicate)
                    goal = whole
                break
        for other in self.wider:
            if other.subsumes(goal):
                goal = other
                break
        if goal not in self.result.goals:
            self.result.goals[goal] = []
            self._queue.append(goal)
        return goal

    def run(self) -> bool:
        """Unfold goals until there are no others, or they are too many for the rules there are."""
        left = _WAYS * len(self.rules.rules) + _AT_LEAST
        while self._queue:
            goal = self._queue.popleft()
            whole = any(covers(p, goal.predicate) for p in self.complete)
            for rule in self.rules.of(goal.predicate):
                if any(
                    mine is not None and mine != its
                    for mine, its in zip(goal.constants, rule.head.terms, strict=False)
                ):
                    continue
                unfold = self._complete if whole else self._unfold
                self.result.goals[goal].append(unfold(goal, rule))
                left -= 1
                if left < 0:
                    return False
        return True

    def widen(self) -> bool:
        """Whether some goals turned out to be part of others."""
        goals = self.result.goals
        by_predicate: dict[Predicate, list[Goal]] = {}
        for goal in goals:
            by_predicate.setdefault(goal.predicate, []).append(goal)
        for found in by_predicate.values():
            for one in found:
                if any(one is not other and one.subsumes(other) for other in found):
                    self.wider.setdefault(one)
        for wide in (TRIPLES, TYPES):
            for one in by_predicate.get(wide, ()):
                if one.is_free and any(one is not o and one.subsumes(o) for o in goals):
                    self.wider.setdefault(one)
        # With a variable property or class in a head, all triples or all types are one predicate
        # for strata: if some are to be complete, so are all.
        for wide in (TRIPLES, TYPES):
            if any(covers(wide, p) for p in self.complete) and any(
                home(rule.head) is wide for rule in self.result.rules
            ):
                for predicate in by_predicate:
                    if covers(wide, predicate):
                        self.complete.setdefault(predicate)
        return len(self.wider) + len(self.complete) > self._known

    def _unfold(self, goal: Goal, rule: Rule) -> Unfolding:
        known: set[Term] = set()
        prefix: list[Atom] = []
        if not goal.is_free:
            guard = goal.guard(rule.head)
            known.update(guard.variables())
            prefix.append(guard)
            self.result.rules.setdefault(Rule(rule.head, (guard, *rule.body), rule.name, rule.span))
        else:
            self.result.rules.setdefault(rule)
        filters = [part for part in rule.body if isinstance(part, Filter)]
        atoms = [part for part in rule.body if isinstance(part, Atom)]
        calls = []
        while atoms:
            atom = min(atoms, key=lambda a: self._cost(a, known))
            atoms.remove(atom)
            asked = None
            if self._is_derived(atom):
                asked = self.ask(goal_of(atom, known, self.rules.apart(home(atom))))
                self._pass(asked, atom, prefix, filters, guarded=not goal.is_free)
            calls.append(Call(atom, asked))
            prefix.append(atom)
            known.update(atom.variables())
        return Unfolding(rule, tuple(calls), self._whole(rule))

    def _whole(self, rule: Rule) -> tuple[Call, ...]:
        """What the rule negates or aggregates is asked for completely."""
        read = []
        for atom, reading in rule.atoms():
            if reading != "positive":
                asked = None
                if self._is_derived(atom):
                    self.complete.setdefault(home(atom))
                    asked = self.ask(free(home(atom), atom))
                read.append(Call(atom, asked))
        return tuple(read)

    def _complete(self, goal: Goal, rule: Rule) -> Unfolding:
        """All facts of a predicate that is negated or aggregated somewhere above."""
        self.result.rules.setdefault(rule)
        calls = []
        for atom, reading in rule.atoms():
            if reading == "positive":
                asked = None
                if self._is_derived(atom):
                    self.complete.setdefault(home(atom))
                    asked = self.ask(free(home(atom), atom))
                calls.append(Call(atom, asked))
        return Unfolding(rule, tuple(calls), self._whole(rule))

    def _is_derived(self, atom: Atom) -> bool:
        return self.rules.derives(home(atom)) and not self.prematerialized.cover(atom)

    def _cost(self, atom: Atom, known: set[Term]) -> tuple[int, int, float]:
        """What is looked up by known values comes first, then what is derived from them.

        Without known values the smallest predicate is next; pre-materialized ones are small.
        """
        predicate = home(atom)
        terms = open_terms(atom, predicate)
        given = sum(not isinstance(term, Variable) or term in known for term in terms)
        derived = self._is_derived(atom)
        if not given and terms:
            return 4, 0, self.size(predicate)
        full = given == len(terms)
        return 2 * derived + (not full), -given, self.size(predicate)

    def _pass(
        self, asked: Goal, atom: Atom, prefix: list[Atom], filters: list[Filter], *, guarded: bool
    ) -> None:
        """Pass the admissible values of an atom on to its goal."""
        if asked.is_free:
            return
        head = asked.guard(atom)
        chosen = _connected(head, prefix, guarded)
        if head in chosen:
            return
        if not chosen:
            self.result.seeds.setdefault(head)
            return
        bound = {variable for part in chosen for variable in part.variables()}
        tests = [part for part in filters if bound.issuperset(part.variables())]
        body: tuple[BodyLiteral, ...] = (*chosen, *tests)
        self.result.rules.setdefault(Rule(head, body))


def _connected(head: Atom, prefix: list[Atom], guarded: bool) -> list[Atom]:
    """The guard, and the atoms that have to do with the variables of the head."""
    variables = set(head.variables())
    left = prefix[1:] if guarded else list(prefix)
    if guarded:
        variables.update(prefix[0].variables())
    found: list[Atom] = []
    while True:
        near = [atom for atom in left if variables.intersection(atom.variables())]
        if not near:
            break
        left = [atom for atom in left if atom not in near]
        found += near
        for atom in near:
            variables.update(atom.variables())
    kept = [atom for atom in prefix if atom in found]
    return [prefix[0], *kept] if guarded else kept
