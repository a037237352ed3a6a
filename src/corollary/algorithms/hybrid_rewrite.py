"""Rewrite a program for goals, restricting each rule to the bound values (magic sets).

The calls of Algorithm 1, *infer* for the body atoms from left to right, become rules:
for a goal G and a rule `H :- B₁, …, Bₙ` whose head it unifies with,

    H     :- asked G(head), B₁, …, Bₙ           the answers of the call
    asked Gᵢ(Bᵢ) :- asked G(head), B₁, …, Bᵢ₋₁  the call for Bᵢ, with its admissible values

so that a set-oriented engine answers all calls for a goal together, with sideways information
passing of sets of admissible values. Each goal is unfolded once (*PrevQueries*, for all paths of
the proof tree together), which ensures termination.

Invariants: the rewritten rules are sound, and complete for the bound values of each goal. Negated,
aggregated and extremal predicates, and all that they depend on, are goals without bound values, so
the strata of the program are preserved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from corollary.algorithms.hybrid_goals import (
    Goal,
    Patterns,
    free,
    goal_of,
    is_wide,
    may_overlap,
    unified,
)
from corollary.algorithms.strata import with_wide
from corollary.core.compile import TRIPLES, TYPES, covers, narrow_predicate, open_terms
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Atom, BodyLiteral, Filter, Rule, Term, Variable

Size = Callable[[Predicate], float]  # estimated number of facts

_ESTIMATE_ROUNDS = 4  # to estimate the sizes of derived predicates
_SIZE_LIMIT = 1e12
# A rule is mostly unfolded for one or two binding patterns. Rules that derive any property are
# unfolded for each property, and then so are all other rules; beyond this, rewriting gives up.
_UNFOLDINGS_PER_RULE, _UNFOLDINGS_MINIMUM = 3, 100


class Rules:
    """Rules indexed by head, without those that cannot have an instance.

    A rule is dropped if some body predicate has neither explicit facts nor a live rule: the paper's
    early failure, detected before any query.
    """

    def __init__(self, rules: Iterable[Rule], present: Collection[Predicate]) -> None:
        self.present = frozenset(present)
        self.tangled = False  # whether triples have too many goals to rewrite
        self._by_head: dict[Predicate, list[Rule]] = {}
        self._apart: dict[Predicate, frozenset[int]] = {}
        self.rules = tuple(self._live(list(rules)))
        for rule in self.rules:
            self._by_head.setdefault(narrow_predicate(rule.head), []).append(rule)

    def _live(self, rules: list[Rule]) -> Iterator[Rule]:
        """The rules whose body predicates are all live."""
        live: set[Predicate] = set()
        waiting: dict[Predicate, list[Rule]] = {}
        queue = deque(rules)

        def mark_live(predicate: Predicate, derived: bool) -> None:
            """Mark a predicate as live: it has facts, or (`derived`) a live rule."""
            new = {predicate}
            if predicate.relation == TRIPLE:
                new.add(TRIPLES)
                if predicate.property == TYPE or (derived and predicate is TRIPLES):
                    new.add(TYPES)
            for each in new - live:
                live.add(each)
                queue.extend(waiting.pop(each, ()))
            if derived and is_wide(predicate):  # any property or class may be derived
                live_wide.add(predicate)
                for other in [p for p in waiting if covers(predicate, p)]:
                    queue.extend(waiting.pop(other))

        live_wide: set[Predicate] = set()
        for predicate in self.present:
            mark_live(predicate, derived=False)
        while queue:
            rule = queue.popleft()
            needed = (narrow_predicate(part) for part in rule.body if isinstance(part, Atom))
            missing = next(
                (p for p in needed if p not in live and not any(covers(w, p) for w in live_wide)),
                None,
            )
            if missing is not None:
                waiting.setdefault(missing, []).append(rule)
            else:
                yield rule
                mark_live(narrow_predicate(rule.head), derived=True)

    def overlapping(self, predicate: Predicate) -> list[Rule]:
        """The rules that may derive facts of a predicate."""
        if is_wide(predicate):
            return [r for p, rs in self._by_head.items() if may_overlap(predicate, p) for r in rs]
        return [rule for p in with_wide(predicate) for rule in self._by_head.get(p, ())]

    def of(self, predicate: Predicate) -> Iterator[Rule]:
        """The rules that may derive facts of a predicate, instantiated for it (θₕ)."""
        for rule in self.overlapping(predicate):
            instance = unified(rule, predicate)
            if instance is not None:
                yield instance

    def derives(self, predicate: Predicate) -> bool:
        """Whether some rule may derive facts of a predicate."""
        if is_wide(predicate):
            return any(may_overlap(predicate, head) for head in self._by_head)
        return any(p in self._by_head for p in with_wide(predicate))

    def apart(self, predicate: Predicate) -> Collection[int]:
        """The places at which every rule for a plain relation has a constant in its head."""
        if predicate.relation == TRIPLE:
            return ()
        places = self._apart.get(predicate)
        if places is None:
            heads = [rule.head.terms for rule in self._by_head.get(predicate, ())]
            places = self._apart[predicate] = frozenset(
                at
                for at, terms in enumerate(zip(*heads, strict=True))
                if not any(isinstance(term, Variable) for term in terms)
            )
        return places

    @property
    def heads(self) -> Collection[Predicate]:
        """The predicates of rule heads."""
        return self._by_head.keys()

    def sizes(self, explicit: Size) -> Size:
        """Estimate the size of each predicate: a rule yields as many facts as its smallest atom."""
        sizes: dict[Predicate, float] = {}

        def size(predicate: Predicate) -> float:
            estimate = sizes.get(predicate)
            return float(explicit(predicate)) if estimate is None else estimate

        for _ in range(_ESTIMATE_ROUNDS):
            new: dict[Predicate, float] = {}
            for head, rules in self._by_head.items():
                total = float(explicit(head))
                for rule in rules:
                    atoms = [
                        size(narrow_predicate(part)) for part in rule.body if isinstance(part, Atom)
                    ]
                    total += min(atoms, default=1.0)
                new[head] = min(total, _SIZE_LIMIT)
            sizes.update(new)
        return size


@dataclass(frozen=True)
class Call:
    """*infer* for one body atom: its goal, or None for a look-up."""

    atom: Atom
    goal: Goal | None


@dataclass(frozen=True)
class Unfolding:
    """A rule that unfolds a goal, with the calls for its atoms in order."""

    rule: Rule
    calls: tuple[Call, ...]
    read: tuple[Call, ...]  # negated and aggregated atoms


@dataclass
class Rewriting:
    """The rules that answer goals, the initial bound values, and the goals."""

    rules: dict[Rule, None] = field(default_factory=dict)
    seeds: dict[Atom, None] = field(default_factory=dict)
    goals: dict[Goal, list[Unfolding]] = field(default_factory=dict)
    roots: dict[Goal, Goal] = field(default_factory=dict)  # with the goals that subsume them


def rewrite(
    rules: Rules, roots: Iterable[Goal], prematerialized: Patterns, size: Size
) -> Rewriting:
    """Rewrite rules to answer goals; pre-materialized atoms are look-ups.

    >>> from corollary.lang.program import Program
    >>> from corollary.lang.printer import Printer
    >>> program = Program.parse("p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- e(?x, ?y), p(?y, ?z) .")
    >>> goal = Goal(Predicate("p"), (True, False))
    >>> rules = Rules(program.rules, [Predicate("e")])
    >>> for rule in rewrite(rules, [goal], Patterns(), lambda p: 1).rules:
    ...     print(Printer().rule(rule))
    p(?x, ?y) :- ASKED p bf(?x), e(?x, ?y) .
    p(?x, ?z) :- ASKED p bf(?x), e(?x, ?y), p(?y, ?z) .
    ASKED p bf(?y) :- ASKED p bf(?x), e(?x, ?y) .
    """
    asked = tuple(roots)
    if rules.tangled and any(goal.predicate.relation == TRIPLE for goal in asked):
        return _whole(rules, asked, prematerialized)
    wider: dict[Goal, None] = {}
    # The best value of a group needs all of its candidates, and those of what they follow from.
    complete: dict[Predicate, None] = {
        narrow_predicate(rule.head): None for rule in rules.rules if rule.extremum is not None
    }
    while True:
        build = _Build(rules, prematerialized, size, wider, complete)
        for goal in asked:
            build.result.roots[goal] = build.ask(goal)
        if not build.run():
            # If a rule derives any property, the next query would fail as well.
            rules.tangled = TRIPLES in rules.heads
            return _whole(rules, asked, prematerialized)
        if not build.widen():
            return build.result


def _whole(rules: Rules, roots: Iterable[Goal], prematerialized: Patterns) -> Rewriting:
    """The unrewritten rules that the goals depend on, if bound values would not restrict them."""
    result = Rewriting()
    queue: deque[Goal] = deque()

    def ask(goal: Goal) -> Goal:
        if goal.whole not in result.goals:
            result.goals[goal.whole] = []
            queue.append(goal.whole)
        return goal.whole

    def call(atom: Atom) -> Call:
        derived = rules.derives(narrow_predicate(atom)) and not prematerialized.cover(atom)
        return Call(atom, ask(goal_of(atom)) if derived else None)

    for root in roots:
        result.roots[root] = ask(root)
    while queue:
        goal = queue.popleft()
        for rule in rules.overlapping(goal.predicate):
            if rule not in result.rules:
                result.rules[rule] = None
                atoms = list(rule.atoms())
                calls = tuple(call(atom) for atom, reading in atoms if reading == "positive")
                read = tuple(call(atom) for atom, reading in atoms if reading != "positive")
                result.goals[goal].append(Unfolding(rule, calls, read))
    return result


class _Build:
    """One attempt to rewrite; it passes on to the next one which goals subsume others."""

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
        """Queue a goal, or one that subsumes it; return the queued one."""
        for predicate in self.complete:
            if may_overlap(predicate, goal.predicate):
                if not covers(predicate, goal.predicate):
                    # Its facts must not depend on a negation of some of them.
                    self.complete.setdefault(goal.predicate)
                goal = goal.whole
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
        """Unfold all goals; return False if they are too many for the number of rules."""
        remaining = _UNFOLDINGS_PER_RULE * len(self.rules.rules) + _UNFOLDINGS_MINIMUM
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
                remaining -= 1
                if remaining < 0:
                    return False
        return True

    def widen(self) -> bool:
        """Record the goals that subsume others; return whether there are new ones."""
        goals = self.result.goals
        by_predicate: dict[Predicate, list[Goal]] = {}
        for goal in goals:
            by_predicate.setdefault(goal.predicate, []).append(goal)
        for group in by_predicate.values():
            for one in group:
                if any(one is not other and one.subsumes(other) for other in group):
                    self.wider.setdefault(one)
        for wide in (TRIPLES, TYPES):
            for one in by_predicate.get(wide, ()):
                if one.is_free and any(one is not o and one.subsumes(o) for o in goals):
                    self.wider.setdefault(one)
        # With a variable property or class in a head, all triples or all types form one stratum:
        # if some must be complete, all must be.
        for wide in (TRIPLES, TYPES):
            if any(covers(wide, p) for p in self.complete) and any(
                narrow_predicate(rule.head) is wide for rule in self.result.rules
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
                asked = self.ask(goal_of(atom, known, self.rules.apart(narrow_predicate(atom))))
                self._pass(asked, atom, prefix, filters, guarded=not goal.is_free)
            calls.append(Call(atom, asked))
            prefix.append(atom)
            known.update(atom.variables())
        return Unfolding(rule, tuple(calls), self._call_all(rule, read=True))

    def _complete(self, goal: Goal, rule: Rule) -> Unfolding:
        """Unfold a goal for all facts of a predicate that some rule negates or aggregates."""
        self.result.rules.setdefault(rule)
        return Unfolding(rule, self._call_all(rule, read=False), self._call_all(rule, read=True))

    def _call_all(self, rule: Rule, *, read: bool) -> tuple[Call, ...]:
        """Call for all facts of the positive atoms, or of those that the rule `read`s as a whole.

        Negated and aggregated atoms are read as a whole: they need complete predicates.
        """
        calls = []
        for atom, reading in rule.atoms():
            if (reading != "positive") is read:
                asked = None
                if self._is_derived(atom):
                    self.complete.setdefault(narrow_predicate(atom))
                    asked = self.ask(free(narrow_predicate(atom), atom))
                calls.append(Call(atom, asked))
        return tuple(calls)

    def _is_derived(self, atom: Atom) -> bool:
        return self.rules.derives(narrow_predicate(atom)) and not self.prematerialized.cover(atom)

    def _cost(self, atom: Atom, known: set[Term]) -> tuple[int, int, float]:
        """Order atoms: look-ups with known values first, then derived atoms with known values.

        Without known values, the smallest predicate is next; pre-materialized ones are small.
        """
        predicate = narrow_predicate(atom)
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
        """Add the rule or seed that passes the admissible values of an atom to its goal."""
        if asked.is_free:
            return
        head = asked.guard(atom)
        relevant = _connected(head, prefix, guarded)
        if head in relevant:
            return
        if not relevant:
            self.result.seeds.setdefault(head)
            return
        bound = {variable for part in relevant for variable in part.variables()}
        tests = [part for part in filters if bound.issuperset(part.variables())]
        body: tuple[BodyLiteral, ...] = (*relevant, *tests)
        self.result.rules.setdefault(Rule(head, body))


def _connected(head: Atom, prefix: list[Atom], guarded: bool) -> list[Atom]:
    """The guard, and the atoms connected to the variables of the head."""
    variables = set(head.variables())
    remaining = prefix[1:] if guarded else list(prefix)
    if guarded:
        variables.update(prefix[0].variables())
    connected: list[Atom] = []
    while True:
        near = [atom for atom in remaining if variables.intersection(atom.variables())]
        if not near:
            break
        remaining = [atom for atom in remaining if atom not in near]
        connected += near
        for atom in near:
            variables.update(atom.variables())
    ordered = [atom for atom in prefix if atom in connected]
    return [prefix[0], *ordered] if guarded else ordered
