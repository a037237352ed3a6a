"""Plan rules as steps that each partition evaluates locally.

A *placement* is a relation hash-partitioned by one of its columns; a relation has one placement for
each column that some rule joins on. If all atoms of a rule share a variable, the rule is local:
with the atoms placed by that variable, the partition of a term holds every fact that an instance
with this term can use, and no other partition derives the instance. Without a shared variable, the
body is split: atoms that share one become an auxiliary relation, which is shuffled by the next key.
Small relations are replicated to all partitions.

Invariants: exactly one partition derives an instance, once; auxiliary relations keep all variables,
so the instances of a rule are those of its last step. Plans contain no terms: relations, properties
and classes are numbers, like ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from corollary.core.compile import Argument, Condition
from corollary.core.dictionary import Ids
from corollary.engines.spark.packing import NONE, ChunkBuffer, Key

if TYPE_CHECKING:
    from corollary.engines.spark.answers import TermQuery

TRIPLE_NUMBER = 0  # the relation of triples
AUXILIARY = "x"  # operand of auxiliary relations
QUERIES = "q"  # operand of queries about terms
RESULTS = "r"  # operand of the results of a plan without recursion

_FACT_OPERANDS = "fndobhpe"  # operands that are sets of facts

REPLICATED = -1  # instead of a column: all partitions have the relation
DRIVER = -1  # instead of a partition


@dataclass(frozen=True)
class Source:
    """A relation of one operand."""

    operand: str
    key: Key


@dataclass(frozen=True)
class SourceAtom:
    """An atom that reads a source."""

    source: Source
    arguments: tuple[Argument, ...]

    @property
    def variables(self) -> frozenset[int]:
        return frozenset(a for a in self.arguments if a >= 0)


# An empty body reads this fact, which always holds.
UNIT = SourceAtom(Source("u", (1, NONE, NONE, 0)), ())


@dataclass(frozen=True)
class Clause:
    """A rule over sources; variables of negated atoms from `bound` on are existential."""

    head: SourceAtom
    body: tuple[SourceAtom, ...]
    negated: tuple[SourceAtom, ...]
    bound: int
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Placement:
    """A source and the column that it is partitioned by, or `REPLICATED`."""

    source: Source
    column: int


@dataclass(frozen=True)
class Step:
    """A local rule: body and negated atoms read placements, by number."""

    head: int  # a target
    arguments: tuple[Argument, ...]
    body: tuple[tuple[int, tuple[Argument, ...]], ...]
    negated: tuple[tuple[int, tuple[Argument, ...]], ...]
    bound: int
    auxiliary: bool  # it derives an auxiliary relation; its instances are not those of a rule
    conditions: tuple[Condition, ...] = ()


@dataclass
class Plan:
    """Steps, the placements that they read, and the sources that they derive."""

    type_id: int  # the id of rdf:type
    steps: list[Step] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    targets: list[Source] = field(default_factory=list)
    primary: dict[Source, int] = field(default_factory=dict)  # the placement that reports facts
    _numbers: dict[Placement, int] = field(default_factory=dict)
    _by_source: dict[Source, list[int]] = field(default_factory=dict)
    _operands: dict[str, list[Source]] = field(default_factory=dict)

    def place(self, source: Source, column: int) -> int:
        """Number a placement, adding it if it is new."""
        placement = Placement(source, column)
        number = self._numbers.get(placement)
        if number is None:
            number = self._numbers[placement] = len(self.placements)
            self.placements.append(placement)
            if source not in self._by_source:
                self._operands.setdefault(source.operand, []).append(source)
            self._by_source.setdefault(source, []).append(number)
        return number

    def is_placed(self, source: Source, column: int) -> bool:
        return Placement(source, column) in self._numbers

    def target(self, source: Source) -> int:
        """Number a source that steps derive."""
        if source not in self.targets:
            self.targets.append(source)
        return self.targets.index(source)

    def placements_of(self, source: Source) -> Sequence[int]:
        """Return the numbers of the placements of a source."""
        return self._by_source.get(source, ())

    def key_of(self, placement: int) -> Key:
        """Return the key of the tables of a placement, by number."""
        return (placement, NONE, NONE, self.placements[placement].source.key[3])

    def send(self, out: ChunkBuffer, kind: int, placement: int, rows: Ids, partitions: int) -> None:
        """Route rows to the partitions of a placement."""
        column = self.placements[placement].column
        place = None if column == REPLICATED else column
        out.send(kind, self.key_of(placement), rows, place, partitions)

    def readers(self, operand: str, key: Key, rows: Ids) -> Iterator[tuple[Source, Ids]]:
        """Yield each source of an operand that contains these facts, with their rows there."""
        if key[0] != TRIPLE_NUMBER:
            if (source := Source(operand, key)) in self._by_source:
                yield source, rows
            return
        if key[1] != NONE and (source := Source(operand, key)) in self._by_source:
            yield source, rows
        types, triples = self.wide(operand)
        if key == types.key:
            yield from self._members(operand, rows)
        elif key[2] != NONE and types in self._by_source:
            yield types, _filled(rows, [None, key[2]])
        if key == triples.key:
            yield from self._narrow(operand, rows)
        if triples in self._by_source:
            if key == types.key:
                yield triples, np.insert(rows, 1, key[1], axis=1)
            elif key == triples.key:
                yield triples, rows
            elif key[2] != NONE:
                yield triples, _filled(rows, [None, key[1], key[2]])
            else:
                yield triples, _filled(rows, [None, key[1], None])

    def wide(self, operand: str) -> tuple[Source, Source]:
        """Return the sources of all types and of all triples of an operand."""
        return (
            Source(operand, (TRIPLE_NUMBER, self.type_id, NONE, 2)),
            Source(operand, (TRIPLE_NUMBER, NONE, NONE, 3)),
        )

    def _members(self, operand: str, rows: Ids) -> Iterator[tuple[Source, Ids]]:
        """Split type facts by class, for the classes that are sources."""
        for source in self._operands.get(operand, ()):
            if source.key[0] == TRIPLE_NUMBER and source.key[2] != NONE:
                yield source, rows[rows[:, 1] == source.key[2]][:, :1]

    def _narrow(self, operand: str, rows: Ids) -> Iterator[tuple[Source, Ids]]:
        """Split triples by property, for the properties that are sources."""
        is_type = rows[:, 1] == self.type_id
        members = rows[is_type][:, [0, 2]]
        types, _ = self.wide(operand)
        if types in self._by_source:
            yield types, members
        yield from self._members(operand, members)
        for source in self._operands.get(operand, ()):
            relation, property_, member_of, _ = source.key
            wide = property_ in (NONE, self.type_id)
            if relation == TRIPLE_NUMBER and member_of == NONE and not wide:
                yield source, rows[rows[:, 1] == property_][:, [0, 2]]


def last_round(plan: Plan, queries: Mapping[Key, TermQuery]) -> int | None:
    """Return the round in which the last results are derived; None if the plan is recursive.

    What a step derives for other steps, and the answers to its queries, enter the next round.
    """
    if any(source.operand in _FACT_OPERANDS for source in plan.targets):
        return None
    first: dict[Source, int] = {}  # the round that a source enters, if it is not the first one
    last = 1
    for _ in plan.steps:  # at most as many steps follow each other
        for step in plan.steps:
            read = [plan.placements[n].source for n, _ in (*step.body, *step.negated)]
            number = max((first.get(source, 1) for source in read), default=1)
            target = plan.targets[step.head]
            if target.operand == QUERIES:
                target = queries[target.key].answers
            if target.operand == RESULTS:
                last = max(last, number)
            else:
                first[target] = max(first.get(target, 1), number + 1)
    return last


def _filled(rows: Ids, columns: list[int | None]) -> Ids:
    """Insert constant columns between those of the rows."""
    out = np.empty((len(rows), len(columns)), np.uint32)
    own_columns = iter(rows.T)
    for place, constant in enumerate(columns):
        out[:, place] = next(own_columns) if constant is None else constant
    return out


class Planner:
    """Splits clauses into local steps; `size` estimates the number of facts of a source."""

    def __init__(
        self,
        plan: Plan,
        size: Callable[[Source], int],
        *,
        broadcast_limit: int,
        derived: set[Source],
        replicated: Collection[tuple[int, ...]] = (),
    ) -> None:
        """`replicated` holds the keys, without the arity, of relations to replicate."""
        self.plan = plan
        self._size = size
        self._broadcast_limit = broadcast_limit
        self.derived = derived  # sources that steps add to
        self._replicated = frozenset(replicated)
        self._auxiliary = 0

    def add(self, clause: Clause, *, auxiliary: bool = False) -> None:
        """Add the steps of one clause."""
        body, negated = list(clause.body) or [UNIT], list(clause.negated)
        replicated: set[SourceAtom] = set()  # atoms that must be replicated
        while True:
            keyed = [a for a in body if a not in replicated and not self._reads_replicated(a)]
            if not keyed:
                keyed = [max(body, key=lambda a: (bool(a.variables), self._size(a.source)))]
                replicated.discard(keyed[0])
            shared = frozenset.intersection(*(a.variables for a in keyed))
            bound = [n for n in negated if not self._negated_is_replicated(n, clause)]
            common = [v for v in shared if all(v in n.variables for n in bound)]
            if common or not (shared or any(a.variables for a in keyed)):
                key = min(common, key=lambda v: (self._cost(keyed, v), v)) if common else None
                if (wide_atom := self._semijoin_candidate(body, keyed, keyed, key)) is not None:
                    body = self._semijoin(clause, body, keyed, wide_atom)
                    continue
                self._emit(clause, clause.head, body, negated, keyed, key, auxiliary)
                return
            variables = {v for a in keyed for v in a.variables}
            key_variable = max(variables, key=lambda v: (*self._gain(keyed, bound, v), -v))
            group = [a for a in keyed if key_variable in a.variables]
            if (
                wide_atom := self._semijoin_candidate(body, keyed, group, key_variable)
            ) is not None:
                body = self._semijoin(clause, body, keyed, wide_atom)
                continue
            if len(group) == 1 and len(keyed) > 1:
                # a cross product: replicate the smallest relation
                replicated.add(min(keyed, key=lambda a: self._size(a.source)))
                continue
            variables_inside = frozenset[int]().union(*(a.variables for a in group))
            checked = [
                n
                for n in bound
                if key_variable in n.variables
                and self._bound_variables(n, clause) <= variables_inside
            ]
            if len(group) == len(keyed) == 1 and not checked:
                # the variables of negated atoms are bound by replicated relations
                variables_inside = frozenset[int]().union(*(a.variables for a in body))
                auxiliary_atom = self.new_auxiliary(sorted(variables_inside))
                self._emit(clause, auxiliary_atom, body, [], keyed, key_variable, True)
                body = [auxiliary_atom]
                continue
            auxiliary_atom = self.new_auxiliary(sorted(variables_inside))
            self._emit(clause, auxiliary_atom, group, checked, group, key_variable, True)
            body = [auxiliary_atom, *(a for a in body if a not in group)]
            negated = [n for n in negated if n not in checked]

    def _semijoin_candidate(
        self,
        body: list[SourceAtom],
        keyed: list[SourceAtom],
        group: list[SourceAtom],
        key: int | None,
    ) -> SourceAtom | None:
        """Find an atom over all triples to semi-join before it is shuffled by its object.

        That pays off if replicated relations restrict its property.
        """
        for atom in group:
            if self.plan.wide(atom.source.operand)[1] != atom.source or key is None:
                continue
            if key in atom.arguments[:1] or key not in atom.variables:
                continue
            if self._property_filters(body, keyed, atom):
                return atom
        return None

    @staticmethod
    def _property_filters(
        body: list[SourceAtom], keyed: list[SourceAtom], atom: SourceAtom
    ) -> list[SourceAtom]:
        """Find the replicated atoms that restrict the property of an atom over all triples."""
        property_ = atom.arguments[1]
        return [a for a in body if a not in keyed and property_ >= 0 and property_ in a.variables]

    def _semijoin(
        self, clause: Clause, body: list[SourceAtom], keyed: list[SourceAtom], atom: SourceAtom
    ) -> list[SourceAtom]:
        """Replace an atom of the body by its semi-join, computed where the triples are."""
        filters = self._property_filters(body, keyed, atom)
        variables = atom.variables.union(*(a.variables for a in filters))
        auxiliary_atom = self.new_auxiliary(sorted(variables))
        self._emit(clause, auxiliary_atom, [atom, *filters], [], [atom], None, True)
        return [auxiliary_atom if a is atom else a for a in body]

    def _reads_replicated(self, atom: SourceAtom) -> bool:
        """Whether an atom reads a replicated relation."""
        if not atom.variables or self._is_replicated(atom.source):
            return True
        return atom.source not in self.derived and self._size(atom.source) <= self._broadcast_limit

    def _is_replicated(self, source: Source) -> bool:
        return source.operand in _FACT_OPERANDS and source.key[:3] in self._replicated

    def _negated_is_replicated(self, atom: SourceAtom, clause: Clause) -> bool:
        """Whether a negated atom reads a replicated relation."""
        return (
            not self._bound_variables(atom, clause)
            or self._size(atom.source) <= self._broadcast_limit
        )

    @staticmethod
    def _bound_variables(atom: SourceAtom, clause: Clause) -> frozenset[int]:
        return frozenset(v for v in atom.variables if v < clause.bound)

    def _gain(
        self, keyed: list[SourceAtom], bound: list[SourceAtom], v: int
    ) -> tuple[int, int, int]:
        atoms = sum(v in a.variables for a in keyed)
        return atoms, sum(v in n.variables for n in bound), -self._cost(keyed, v)

    def _cost(self, atoms: Sequence[SourceAtom], variable: int) -> int:
        """Estimate the cost of partitioning atoms by a variable: the facts not yet so placed."""
        total = 0
        for atom in atoms:
            if variable not in atom.variables:
                continue
            column = atom.arguments.index(variable)
            if not self.plan.is_placed(atom.source, column):
                # Skew: a few properties and classes have most of the facts.
                wide = atom.source.key[0] == TRIPLE_NUMBER and atom.source.key[1] == NONE
                skewed = (wide and column > 0) or (
                    atom.source.key[1] == self.plan.type_id and column == 1
                )
                total += (self._size(atom.source) + 1) * (100 if skewed else 1 + (column > 0))
        return total

    def new_auxiliary(self, variables: list[int]) -> SourceAtom:
        """Create an atom of a new auxiliary relation."""
        self._auxiliary += 1
        key = (self._auxiliary, NONE, NONE, len(variables))
        source = Source(AUXILIARY, key)
        self.derived.add(source)
        return SourceAtom(source, tuple(variables))

    def _emit(
        self,
        clause: Clause,
        head: SourceAtom,
        body: Sequence[SourceAtom],
        negated: Sequence[SourceAtom],
        keyed: Sequence[SourceAtom],
        key: int | None,
        auxiliary: bool,
    ) -> None:
        numbers: dict[int, int] = {}

        def renumbered(arguments: Sequence[Argument], scope: dict[int, int]) -> tuple[int, ...]:
            return tuple(a if a < 0 else scope.setdefault(a, len(scope)) for a in arguments)

        def place(atom: SourceAtom, replicated: bool) -> int:
            if replicated:
                return self.plan.place(atom.source, REPLICATED)
            column = 0 if key is None else atom.arguments.index(key)
            return self.plan.place(atom.source, column)

        atoms = [(place(a, a not in keyed), renumbered(a.arguments, numbers)) for a in body]
        bound = len(numbers)
        arguments = renumbered(head.arguments, numbers)
        assert len(numbers) == bound, "every head variable occurs in the body"
        absent = [
            (
                place(
                    n,
                    key is None or key not in n.variables or self._negated_is_replicated(n, clause),
                ),
                renumbered(n.arguments, dict(numbers)),
            )
            for n in negated
        ]
        target = self.plan.target(head.source)
        # Only the last step of a clause binds all variables.
        conditions_of_rule = clause.conditions if head is clause.head else ()
        conditions = tuple(condition.renumbered(numbers) for condition in conditions_of_rule)
        self.plan.steps.append(
            Step(target, arguments, tuple(atoms), tuple(absent), bound, auxiliary, conditions)
        )
