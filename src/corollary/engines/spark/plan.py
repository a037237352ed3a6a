"""Rules as steps that a partition can do alone.

A fact is sent to the partition of each term by which some rule finds it: that is a *placed*
relation, `p` by its first column, say. A rule whose atoms all have one variable in common is then
local: the partition of a term has every fact that an instance with this term can use, and no other
partition finds the instance. A body without such a variable is cut: atoms that share one become an
auxiliary relation, which is placed anew. Relations of few facts are sent everywhere.

Invariants: an instance of a rule is found by one partition, and once; auxiliary relations keep all
variables, so that the instances of a rule are those of its last step. Nothing here names a term:
relations, properties and classes are numbers, as ids are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from corollary.core.compile import Argument, Condition
from corollary.core.dictionary import Ids
from corollary.engines.spark.packing import NONE, Key
from corollary.engines.spark.tuning import tuning

TRIPLE_NUMBER = 0  # of the relation of triples
AUXILIARY = "x"  # the operand whose relations are auxiliary
ASKED = "q"  # the operand of what the driver is asked

_GIVEN = "fndobhpe"  # operands whose relations are those of facts

EVERYWHERE = -1  # a place: all partitions
DRIVER = -1  # a partition: the driver


@dataclass(frozen=True)
class Source:
    """A relation of one operand."""

    operand: str
    key: Key


@dataclass(frozen=True)
class AtomOf:
    """An atom that reads a source."""

    source: Source
    arguments: tuple[Argument, ...]

    @property
    def variables(self) -> frozenset[int]:
        return frozenset(a for a in self.arguments if a >= 0)


# A body without atoms reads one fact that there always is.
UNIT = AtomOf(Source("u", (1, NONE, NONE, 0)), ())


@dataclass(frozen=True)
class Clause:
    """A rule over sources; variables of negated atoms from `bound` on are existential."""

    head: AtomOf
    body: tuple[AtomOf, ...]
    negated: tuple[AtomOf, ...]
    bound: int
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Placed:
    """A source with the column that decides where its facts are, or `EVERYWHERE`."""

    source: Source
    place: int


@dataclass(frozen=True)
class Step:
    """A rule that is local: body and negated atoms read placed relations, by number."""

    head: int  # a target
    arguments: tuple[Argument, ...]
    body: tuple[tuple[int, tuple[Argument, ...]], ...]
    negated: tuple[tuple[int, tuple[Argument, ...]], ...]
    bound: int
    final: bool  # its instances are those of a rule
    cut: bool = False  # it makes an auxiliary relation of some atoms of a body
    conditions: tuple[Condition, ...] = ()


@dataclass
class Plan:
    """Steps, the placed relations that they read, and the sources that they derive."""

    type_id: int  # the id of rdf:type
    steps: list[Step] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    targets: list[Source] = field(default_factory=list)
    homes: dict[Source, int] = field(default_factory=dict)  # placed relations to know facts by
    _numbers: dict[Placed, int] = field(default_factory=dict)
    _by_source: dict[Source, list[int]] = field(default_factory=dict)
    _operands: dict[str, list[Source]] = field(default_factory=dict)

    def place(self, source: Source, column: int) -> int:
        """The number of a placed relation."""
        placed = Placed(source, column)
        number = self._numbers.get(placed)
        if number is None:
            number = self._numbers[placed] = len(self.placed)
            self.placed.append(placed)
            if source not in self._by_source:
                self._operands.setdefault(source.operand, []).append(source)
            self._by_source.setdefault(source, []).append(number)
        return number

    def is_placed(self, source: Source, column: int) -> bool:
        return Placed(source, column) in self._numbers

    def target(self, source: Source) -> int:
        """The number of a source that steps derive."""
        if source not in self.targets:
            self.targets.append(source)
        return self.targets.index(source)

    def numbers(self, source: Source) -> Sequence[int]:
        """The placed relations of a source."""
        return self._by_source.get(source, ())

    def readers(self, operand: str, key: Key, rows: Ids) -> Iterator[tuple[Source, Ids]]:
        """The sources of an operand that facts of a relation belong to, and their rows there."""
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
        """All types and all triples of an operand."""
        return (
            Source(operand, (TRIPLE_NUMBER, self.type_id, NONE, 2)),
            Source(operand, (TRIPLE_NUMBER, NONE, NONE, 3)),
        )

    def _members(self, operand: str, rows: Ids) -> Iterator[tuple[Source, Ids]]:
        """Facts about any class, by class where one is read alone."""
        for source in self._operands.get(operand, ()):
            if source.key[0] == TRIPLE_NUMBER and source.key[2] != NONE:
                yield source, rows[rows[:, 1] == source.key[2]][:, :1]

    def _narrow(self, operand: str, rows: Ids) -> Iterator[tuple[Source, Ids]]:
        """Triples of any property, by property where one is read alone."""
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


def _filled(rows: Ids, columns: list[int | None]) -> Ids:
    """Rows with constant columns between their own."""
    out = np.empty((len(rows), len(columns)), np.uint32)
    given = iter(rows.T)
    for place, constant in enumerate(columns):
        out[:, place] = next(given) if constant is None else constant
    return out


class Planner:
    """Cuts clauses into steps; `size` estimates how many facts a source has."""

    def __init__(
        self,
        plan: Plan,
        size: Callable[[Source], int],
        *,
        tiny: int | None = None,
        derived: set[Source],
        replicated: Collection[tuple[int, ...]] = (),
    ) -> None:
        """`replicated` are keys, without columns, of relations that every partition has."""
        self.plan = plan
        self._size = size
        self._tiny = tuning.broadcast_facts_limit if tiny is None else tiny
        self._derived = derived  # sources that steps add to
        self._replicated = frozenset(replicated)
        self._auxiliary = 0

    def add(self, clause: Clause, *, final: bool = True, cut: bool = False) -> None:
        """The steps of one clause."""
        body, negated = list(clause.body) or [UNIT], list(clause.negated)
        spread: set[AtomOf] = set()  # atoms that must be everywhere
        while True:
            keyed = [a for a in body if a not in spread and not self._anywhere(a)]
            if not keyed:
                keyed = [max(body, key=lambda a: (bool(a.variables), self._size(a.source)))]
                spread.discard(keyed[0])
            shared = frozenset.intersection(*(a.variables for a in keyed))
            bound = [n for n in negated if not self._free(n, clause)]
            common = [v for v in shared if all(v in n.variables for n in bound)]
            if common or not (shared or any(a.variables for a in keyed)):
                key = min(common, key=lambda v: (self._cost(keyed, v), v)) if common else None
                if (wide := self._to_reduce(body, keyed, keyed, key)) is not None:
                    body = self._reduced(clause, body, keyed, wide)
                    continue
                self._emit(clause, clause.head, body, negated, keyed, key, final, cut)
                return
            variables = {v for a in keyed for v in a.variables}
            most = max(variables, key=lambda v: (*self._gain(keyed, bound, v), -v))
            group = [a for a in keyed if most in a.variables]
            if (wide := self._to_reduce(body, keyed, group, most)) is not None:
                body = self._reduced(clause, body, keyed, wide)
                continue
            if len(group) == 1 and len(keyed) > 1:
                # nothing joins: the smallest relation is sent everywhere
                spread.add(min(keyed, key=lambda a: self._size(a.source)))
                continue
            inside = frozenset[int]().union(*(a.variables for a in group))
            checked = [n for n in bound if most in n.variables and self._seen(n, clause) <= inside]
            if len(group) == len(keyed) == 1 and not checked:
                # what is negated has its variables from relations that are everywhere
                inside = frozenset[int]().union(*(a.variables for a in body))
                made = self._aux(sorted(inside))
                self._emit(clause, made, body, [], keyed, most, False, True)
                body = [made]
                continue
            made = self._aux(sorted(inside))
            self._emit(clause, made, group, checked, group, most, False, True)
            body = [made, *(a for a in body if a not in group)]
            negated = [n for n in negated if n not in checked]

    def _to_reduce(
        self, body: list[AtomOf], keyed: list[AtomOf], group: list[AtomOf], key: int | None
    ) -> AtomOf | None:
        """An atom over all triples that would be shuffled by its object, where few need to be.

        That is where relations which are everywhere tell the properties.
        """
        for atom in group:
            if self.plan.wide(atom.source.operand)[1] != atom.source or key is None:
                continue
            if key in atom.arguments[:1] or key not in atom.variables:
                continue
            if self._telling(body, keyed, atom):
                return atom
        return None

    @staticmethod
    def _telling(body: list[AtomOf], keyed: list[AtomOf], atom: AtomOf) -> list[AtomOf]:
        """The relations everywhere that tell which properties an atom over all triples has."""
        property_ = atom.arguments[1]
        return [a for a in body if a not in keyed and property_ >= 0 and property_ in a.variables]

    def _reduced(
        self, clause: Clause, body: list[AtomOf], keyed: list[AtomOf], atom: AtomOf
    ) -> list[AtomOf]:
        """Replace an atom of the body by its semi-join, made where the triples are."""
        telling = self._telling(body, keyed, atom)
        inside = atom.variables.union(*(a.variables for a in telling))
        made = self._aux(sorted(inside))
        self._emit(clause, made, [atom, *telling], [], [atom], None, False, True)
        return [made if a is atom else a for a in body]

    def _anywhere(self, atom: AtomOf) -> bool:
        """Whether an atom is better read from a relation that every partition has."""
        if not atom.variables or self._is_replicated(atom.source):
            return True
        return atom.source not in self._derived and self._size(atom.source) <= self._tiny

    def _is_replicated(self, source: Source) -> bool:
        return source.operand in _GIVEN and source.key[:3] in self._replicated

    def _free(self, atom: AtomOf, clause: Clause) -> bool:
        """Whether a negated atom is read from a relation that every partition has."""
        return not self._seen(atom, clause) or self._size(atom.source) <= self._tiny

    @staticmethod
    def _seen(atom: AtomOf, clause: Clause) -> frozenset[int]:
        return frozenset(v for v in atom.variables if v < clause.bound)

    def _gain(self, keyed: list[AtomOf], bound: list[AtomOf], v: int) -> tuple[int, int, int]:
        atoms = sum(v in a.variables for a in keyed)
        return atoms, sum(v in n.variables for n in bound), -self._cost(keyed, v)

    def _cost(self, atoms: Sequence[AtomOf], variable: int) -> int:
        """What it costs to place atoms by a variable: facts that are not there already."""
        total = 0
        for atom in atoms:
            if variable not in atom.variables:
                continue
            column = atom.arguments.index(variable)
            if not self.plan.is_placed(atom.source, column):
                # Few properties and classes have most of the facts.
                wide = atom.source.key[0] == TRIPLE_NUMBER and atom.source.key[1] == NONE
                skewed = (wide and column > 0) or (
                    atom.source.key[1] == self.plan.type_id and column == 1
                )
                total += (self._size(atom.source) + 1) * (100 if skewed else 1 + (column > 0))
        return total

    def _aux(self, variables: list[int]) -> AtomOf:
        self._auxiliary += 1
        key = (self._auxiliary, NONE, NONE, len(variables))
        source = Source(AUXILIARY, key)
        self._derived.add(source)
        return AtomOf(source, tuple(variables))

    def _emit(
        self,
        clause: Clause,
        head: AtomOf,
        body: Sequence[AtomOf],
        negated: Sequence[AtomOf],
        keyed: Sequence[AtomOf],
        key: int | None,
        final: bool,
        cut: bool = False,
    ) -> None:
        numbers: dict[int, int] = {}

        def renumbered(arguments: Sequence[Argument], scope: dict[int, int]) -> tuple[int, ...]:
            return tuple(a if a < 0 else scope.setdefault(a, len(scope)) for a in arguments)

        def placed(atom: AtomOf, everywhere: bool) -> int:
            if everywhere:
                return self.plan.place(atom.source, EVERYWHERE)
            column = 0 if key is None else atom.arguments.index(key)
            return self.plan.place(atom.source, column)

        atoms = [(placed(a, a not in keyed), renumbered(a.arguments, numbers)) for a in body]
        bound = len(numbers)
        arguments = renumbered(head.arguments, numbers)
        assert len(numbers) == bound, "the head has no variables of its own"
        absent = [
            (
                placed(n, key is None or key not in n.variables or self._free(n, clause)),
                renumbered(n.arguments, dict(numbers)),
            )
            for n in negated
        ]
        target = self.plan.target(head.source)
        # The last step of a clause has all variables.
        asked = clause.conditions if head is clause.head else ()
        conditions = tuple(condition.renumbered(numbers) for condition in asked)
        self.plan.steps.append(
            Step(target, arguments, tuple(atoms), tuple(absent), bound, final, cut, conditions)
        )
