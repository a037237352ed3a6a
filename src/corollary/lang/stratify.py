"""Strata: the strongly connected components of the predicate dependency graph, in order.

A *predicate* is a plain relation or, among triples, one property, and for `rdf:type` one class, so
negation between triples can be stratified. If some head has a variable class (or property), all
classes (all triples) are one predicate, because every rule that may derive a fact must belong to
the stratum of that fact. A body atom with a variable property or class reads every predicate that
it may match.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple
from typing import Literal as OneOf

from corollary.lang.printer import Printer
from corollary.lang.syntax import QUADS, TRIPLE, TYPE, Atom, Constant, Rule, Variable


class Predicate:
    """A relation, or the triples of one property, or the members of one class.

    Predicates are interned, so comparison and hashing use the identity: sets of facts look them up
    thousands of times per update.

    >>> Predicate("edge") is Predicate("edge")
    True
    """

    __slots__ = ("member_of", "property", "relation")
    __match_args__ = ("relation", "property", "member_of")
    _interned: ClassVar[dict[tuple[str, Constant | None, Constant | None], Predicate]] = {}

    relation: str
    property: Constant | None
    member_of: Constant | None

    def __new__(
        cls, relation: str, property: Constant | None = None, member_of: Constant | None = None
    ) -> Predicate:
        key = (relation, property, member_of)
        predicate = cls._interned.get(key)
        if predicate is None:
            predicate = super().__new__(cls)
            predicate.relation, predicate.property, predicate.member_of = key
            # Another thread may have inserted it meanwhile.
            predicate = cls._interned.setdefault(key, predicate)
        return predicate

    def __reduce__(self) -> tuple[type[Predicate], tuple[str, Constant | None, Constant | None]]:
        return Predicate, (self.relation, self.property, self.member_of)

    def __repr__(self) -> str:
        return f"Predicate({self.relation!r}, {self.property!r}, {self.member_of!r})"

    def describe(self, printer: Printer) -> str:
        """The predicate in messages."""
        if self.relation == QUADS:
            return "[?s, ?p, ?o] ?g"
        if self.relation != TRIPLE:
            return self.relation
        if self.property is None:
            return "[?s, ?p, ?o]"
        if self.property == TYPE:
            member_of = printer.term(self.member_of) if self.member_of is not None else "?c"
            return f"[?s, a, {member_of}]"
        return f"[?s, {printer.term(self.property)}, ?o]"


class Dependency(NamedTuple):
    """`head` depends on `body` by `atom` of `rule`."""

    head: Predicate
    body: Predicate
    rule: Rule
    atom: Atom
    reading: str  # "positive", "negated" or "aggregated"


class Dependencies(NamedTuple):
    """The predicate of a rule's head, and its dependencies."""

    head: Predicate
    each: tuple[Dependency, ...]


@dataclass(frozen=True)
class Stratum:
    """The rules of one component; `recursive` ones read a predicate that the component derives."""

    predicates: frozenset[Predicate]
    nonrecursive: tuple[Rule, ...]
    recursive: tuple[Rule, ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self.nonrecursive + self.recursive

    @cached_property
    def is_extremal(self) -> bool:
        """Whether its relations keep the least or greatest value of each group."""
        return any(rule.extremum is not None for rule in self.rules)


class Partition:
    """The granularity of predicates, which the heads of a program's rules determine."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.granularity: OneOf["all", "property", "class"] = "class"
        for rule in rules:
            if rule.head.relation == TRIPLE:
                _, property_, object_ = rule.head.terms
                if isinstance(property_, Variable):
                    self.granularity = "all"
                    break
                if property_ == TYPE and isinstance(object_, Variable):
                    self.granularity = "property"

    def predicate(self, atom: Atom) -> Predicate:
        """The predicate of a head or fact; for a body atom, the narrowest that covers it."""
        if atom.relation != TRIPLE:
            return Predicate(atom.relation)
        _, property_, object_ = atom.terms
        if self.granularity == "all" or isinstance(property_, Variable):
            return Predicate(TRIPLE)
        if property_ == TYPE and self.granularity == "class" and not isinstance(object_, Variable):
            return Predicate(TRIPLE, property_, object_)
        return Predicate(TRIPLE, property_)


class Graph:
    """The dependencies of a program's rules and their strongly connected components."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.partition = Partition(rules)
        found = [self._of(rule) for rule in rules]
        self.heads = [dependencies.head for dependencies in found]
        self.dependencies = [each for dependencies in found for each in dependencies.each]

    def _of(self, rule: Rule) -> Dependencies:
        """The dependencies of a rule, cached in it: similar programs share their rules."""
        granularity = self.partition.granularity
        found = rule.memory.get(granularity)
        if found is None:
            predicate = self.partition.predicate
            head = predicate(rule.head)
            found = rule.memory[granularity] = Dependencies(
                head,
                tuple(
                    Dependency(head, predicate(atom), rule, atom, reading)
                    for atom, reading in rule.atoms()
                ),
            )
        assert isinstance(found, Dependencies), "nothing else is kept under this name"
        return found

    @cached_property
    def edges(self) -> dict[Predicate, set[Predicate]]:
        """The predicates that each one depends on; a wide predicate depends on its parts."""
        edges: dict[Predicate, set[Predicate]] = {head: set() for head in self.heads}
        for dependency in self.dependencies:
            edges.setdefault(dependency.body, set())
            edges[dependency.head].add(dependency.body)
        triples, types = Predicate(TRIPLE), Predicate(TRIPLE, TYPE)
        for predicate in list(edges):
            if predicate.relation == TRIPLE and predicate.property is not None:
                if triples in edges and self.partition.granularity != "all":
                    edges[triples].add(predicate)
                if types in edges and predicate.member_of is not None:
                    edges[types].add(predicate)
        return edges

    @cached_property
    def component(self) -> dict[Predicate, int]:
        """The number of each predicate's component; dependencies have smaller numbers."""
        return components(self.edges)

    @cached_property
    def levels(self) -> dict[Predicate, int]:
        """The nesting depth of negations and aggregates below each predicate, doubled.

        Predicates that only aggregates derive have even numbers, the others odd ones.
        """
        readings: dict[Predicate, dict[Predicate, set[str]]] = {head: {} for head in self.heads}
        for dependency in self.dependencies:
            found = readings[dependency.head].setdefault(dependency.body, set())
            found.add(dependency.reading)
        members: dict[int, list[Predicate]] = {}
        for predicate, number in self.component.items():
            members.setdefault(number, []).append(predicate)
        level: dict[Predicate, int] = {}
        for number in sorted(members):
            deepest, pure = 0, True
            for predicate in members[number]:
                for body in self.edges[predicate]:
                    read = readings.get(predicate, {}).get(body, {"positive"})
                    pure &= read == {"aggregated"}
                    if self.component[body] != number:
                        deepest = max(deepest, level[body] // 2 + (read != {"positive"}))
                pure &= bool(self.edges[predicate])
            level.update(dict.fromkeys(members[number], 2 * deepest + (not pure)))
        return level

    def cycle(self, dependency: Dependency) -> list[Predicate] | None:
        """A path from the dependency's body to its head; None if there is none."""
        start, goal = dependency.body, dependency.head
        if self.component[start] != self.component[goal]:
            return None
        before: dict[Predicate, Predicate] = {start: start}
        queue = deque([start])
        while queue and goal not in before:
            at = queue.popleft()
            for following in sorted(self.edges[at], key=repr):
                if following not in before:
                    before[following] = at
                    queue.append(following)
        path = [goal]
        while path[-1] != start:
            path.append(before[path[-1]])
        return path[::-1]


def stratify(rules: Sequence[Rule], *, coarse: bool = False) -> tuple[Stratum, ...]:
    """The strata of the rules, dependencies first. The rules must be stratifiable (`validate`).

    With `coarse`, components are merged unless one negates or aggregates the other, which gives as
    few strata as possible.

    >>> from corollary.lang.program import Program
    >>> p = Program.parse("b(?x) :- a(?x). c(?x) :- d(?x), NOT b(?x). d(?x) :- a(?x), d(?x).")
    >>> [[rule.head.relation for rule in stratum.rules] for stratum in stratify(p.rules)]
    [['b'], ['d'], ['c']]
    >>> [[rule.head.relation for rule in s.rules] for s in stratify(p.rules, coarse=True)]
    [['b', 'd'], ['c']]
    """
    graph = Graph(rules)
    # What reads a minimum must wait for it, as for a negated relation.
    merges = coarse and all(rule.extremum is None for rule in rules)
    component = graph.levels if merges else graph.component
    members: dict[int, set[Predicate]] = {}
    for head in graph.heads:
        members.setdefault(component[head], set()).add(head)
    recursive = {
        dependency.rule
        for dependency in graph.dependencies
        if component[dependency.head] == (number := component[dependency.body])
        and (
            dependency.body in members[number]
            or any(_covers(dependency.body, head) for head in members[number])
        )
    }
    rules_of: dict[int, tuple[list[Rule], list[Rule]]] = {number: ([], []) for number in members}
    for head, rule in zip(graph.heads, rules, strict=True):
        rules_of[component[head]][rule in recursive].append(rule)
    return tuple(
        Stratum(frozenset(members[number]), tuple(rules_of[number][0]), tuple(rules_of[number][1]))
        for number in sorted(members)
    )


def components(edges: dict[Predicate, set[Predicate]]) -> dict[Predicate, int]:
    """Strongly connected components by Tarjan's algorithm, without recursion."""
    order: dict[Predicate, int] = {}
    low: dict[Predicate, int] = {}
    number: dict[Predicate, int] = {}
    open_: list[Predicate] = []
    found = 0
    for root in edges:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        open_.append(root)
        work = [(root, iter(edges[root]))]
        while work:
            at, following = work[-1]
            for after in following:
                if after not in order:
                    order[after] = low[after] = len(order)
                    open_.append(after)
                    work.append((after, iter(edges[after])))
                    break
                if after not in number:
                    low[at] = min(low[at], order[after])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == order[at]:
                    while True:
                        member = open_.pop()
                        number[member] = found
                        if member == at:
                            break
                    found += 1
    return number


def _covers(wide: Predicate, narrow: Predicate) -> bool:
    return wide.relation == narrow.relation == TRIPLE and (
        wide.property is None or (wide.member_of is None and wide.property == narrow.property)
    )
