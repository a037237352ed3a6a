"""Sets of facts: one relation per narrow predicate, shared between versions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol
from weakref import ReferenceType, ref

import numpy as np

from corollary.core.compile import TRIPLES, TYPES, Pattern, covers
from corollary.core.dictionary import Dictionary, Ids
from corollary.engines.columnar.budget import Budget
from corollary.engines.columnar.relation import EMPTY, Packing, Relation
from corollary.engines.columnar.workers import Workers, with_workers
from corollary.lang.stratify import Predicate

_WIDE = (TRIPLES, TYPES)


class Space:
    """State shared by all facts of an engine: terms, the packing of rows, budget and threads."""

    def __init__(self, dictionary: Dictionary, budget: Budget, workers: Workers) -> None:
        self.dictionary = dictionary
        self.budget = budget
        self.workers = workers
        self.packing = Packing()

    def relation(self, rows: Ids) -> Relation:
        """Create a relation from rows, which may have duplicates."""
        arity = rows.shape[1]
        columns = [np.ascontiguousarray(rows[:, p], np.uint32) for p in range(arity)]
        return self.of_columns(columns, len(rows))

    def of_columns(self, columns: list[Ids], rows: int) -> Relation:
        """Create a relation from columns, which may have duplicates."""
        return Relation.of_any(len(columns), self.packing.pack(columns, rows))


class ColumnarFacts:
    """An immutable set of facts; implements `core.engine.Facts`."""

    def __init__(self, space: Space, relations: Mapping[Predicate, Relation]) -> None:
        self.space = space
        self.relations = {p: r for p, r in relations.items() if len(r)}
        self._size: int | None = None
        self._wide: dict[Predicate, Relation] = {}
        self._disjoint_from: ReferenceType[ColumnarFacts] | None = None

    @classmethod
    def _of(cls, space: Space, relations: dict[Predicate, Relation]) -> ColumnarFacts:
        """Create a set from nonempty relations; takes ownership of the dictionary."""
        facts = cls.__new__(cls)
        facts.space, facts.relations, facts._wide, facts._disjoint_from = space, relations, {}, None
        facts._size = None
        return facts

    @property
    def workers(self) -> Workers:
        """The threads of the engine."""
        return self.space.workers

    def __len__(self) -> int:
        if self._size is None:
            self._size = sum(map(len, self.relations.values())) if self.relations else 0
        return self._size

    def predicates(self) -> Collection[Predicate]:
        """List the narrow predicates that have facts."""
        return self.relations.keys()

    def rows(self, predicate: Predicate) -> Ids:
        """Return the facts of a predicate as sorted rows."""
        relation = self.relations.get(predicate)
        if relation is None or not len(relation):
            return np.zeros((0, 0), np.uint32)
        columns = self.space.packing.unpack(relation.keys(), relation.arity)
        if not columns:
            return np.zeros((1, 0), np.uint32)
        if relation.arity > 2:  # packed keys do not sort like their rows
            order = np.lexsort(columns[::-1])
            columns = [column[order] for column in columns]
        rows = np.empty((len(relation), relation.arity), np.uint32)
        for place, column in enumerate(columns):
            rows[:, place] = column
        return rows

    def columns(self, predicate: Predicate) -> Sequence[Ids]:
        """Return the facts of a predicate as columns, without sorting them."""
        relation = self.relations.get(predicate)
        if relation is None or not len(relation):
            return ()
        return self.space.packing.unpack(relation.keys(), relation.arity)

    @with_workers
    def union(self, other: ColumnarFacts) -> ColumnarFacts:
        """Unite two sets."""
        if not other.relations:
            return self
        if not self.relations:
            return other  # with its caches
        disjoint = other._disjoint_from is not None and other._disjoint_from() is self
        relations, size = dict(self.relations), self._size
        for predicate, relation in other.relations.items():
            mine = relations.get(predicate)
            both = relation if mine is None else mine.union(relation, disjoint=disjoint)
            relations[predicate] = both
            if size is not None:  # recounting would touch all relations
                size += len(both) - (0 if mine is None else len(mine))
        result = ColumnarFacts._of(self.space, relations)
        result._size = size
        for wide, relation in self._wide.items():
            result._wide[wide] = relation.union(other.wide(wide))
        return result

    def mark_disjoint(self, other: ColumnarFacts) -> ColumnarFacts:
        """Record that the sets are disjoint, so that their union skips membership tests."""
        self._disjoint_from = ref(other)
        return self

    @with_workers
    def difference(self, other: ColumnarFacts) -> ColumnarFacts:
        """Remove the facts of `other`."""
        if not other.relations or not self.relations:
            return self
        relations, size = dict(self.relations), self._size
        fewer = min(self.relations, other.relations, key=len)
        for predicate in fewer:
            if predicate in self.relations and predicate in other.relations:
                mine = self.relations[predicate]
                left = mine.difference(other.relations[predicate])
                if left.runs:
                    relations[predicate] = left
                else:
                    del relations[predicate]
                if size is not None:
                    size += len(left) - len(mine)
        result = ColumnarFacts._of(self.space, relations)
        result._size = size
        for wide, relation in self._wide.items():
            result._wide[wide] = relation.difference(other.wide(wide))
        return result

    @with_workers
    def intersection(self, other: ColumnarFacts) -> ColumnarFacts:
        """Intersect two sets."""
        if not self.relations or not other.relations:
            return self if not self.relations else other
        both = self.relations.keys() & other.relations.keys()
        return ColumnarFacts(
            self.space, {p: self.relations[p].intersection(other.relations[p]) for p in both}
        )

    @with_workers
    def changed(
        self, deleted: ColumnarFacts, inserted: ColumnarFacts
    ) -> tuple[ColumnarFacts, ColumnarFacts, ColumnarFacts]:
        """(self \\ deleted) ∪ inserted, and the facts lost and gained."""
        if not deleted.relations and not inserted.relations:
            return self, deleted, inserted
        relations = dict(self.relations)
        lost_relations: dict[Predicate, Relation] = {}
        gained_relations: dict[Predicate, Relation] = {}
        for predicate in {**inserted.relations, **deleted.relations}:
            old, new = deleted.relations.get(predicate), inserted.relations.get(predicate)
            mine = relations.get(predicate)
            if mine is None:
                if new is not None:
                    relations[predicate] = gained_relations[predicate] = new
                continue
            now, lost_keys, gained_keys = mine.changed(
                EMPTY if old is None else old.keys(), EMPTY if new is None else new.keys()
            )
            if len(lost_keys):
                lost_relations[predicate] = Relation.of(mine.arity, lost_keys)
            if len(gained_keys):
                gained_relations[predicate] = Relation.of(mine.arity, gained_keys)
            if now.runs:
                relations[predicate] = now
            else:
                del relations[predicate]
        lost = ColumnarFacts._of(self.space, lost_relations)
        gained = ColumnarFacts._of(self.space, gained_relations)
        return self._with(relations, lost, gained), lost, gained

    @with_workers
    def replaced(
        self, lost: ColumnarFacts, gained: ColumnarFacts, *, shared: ColumnarFacts | None = None
    ) -> ColumnarFacts:
        """Remove `lost` and add `gained`, or take the relations that change from `shared`.

        Precondition, not checked: `lost ⊆ self`, `gained ∩ self = ∅`.
        """
        if not lost.relations and not gained.relations:
            return self
        relations = dict(self.relations)
        for predicate in {**lost.relations, **gained.relations}:
            now: Relation | None
            if shared is not None:
                now = shared.relations.get(predicate)
            else:
                old, new = lost.relations.get(predicate), gained.relations.get(predicate)
                mine = relations.get(predicate)
                if mine is None:
                    now = new
                else:
                    now = mine.replaced(
                        EMPTY if old is None else old.keys(), EMPTY if new is None else new.keys()
                    )
            if now is not None and now.runs:
                relations[predicate] = now
            else:
                relations.pop(predicate, None)
        return self._with(relations, lost, gained)

    def _with(
        self, relations: dict[Predicate, Relation], lost: ColumnarFacts, gained: ColumnarFacts
    ) -> ColumnarFacts:
        """Replace these relations; update the size and the wide relations incrementally."""
        result = ColumnarFacts._of(self.space, relations)
        result._size = len(self) - len(lost) + len(gained)
        for wide, relation in self._wide.items():
            left = relation.difference(lost.wide(wide)) if lost.relations else relation
            result._wide[wide] = left.union(gained.wide(wide)) if gained.relations else left
        return result

    def only(self, predicates: Collection[Predicate]) -> ColumnarFacts:
        """Select the facts of these predicates; a wide one covers all of its narrow ones."""
        mine = self.relations
        if not mine:
            return self
        if len(mine) < len(predicates):
            predicates = frozenset(predicates)
            selected = {p: relation for p, relation in mine.items() if p in predicates}
        else:
            selected = {p: mine[p] for p in predicates if p in mine}
        for wide in _WIDE:
            if wide in predicates:
                selected |= {p: relation for p, relation in mine.items() if covers(wide, p)}
        return ColumnarFacts._of(self.space, selected)

    def without(self, predicates: Collection[Predicate]) -> ColumnarFacts:
        """Drop the facts of these predicates."""
        mine, wide = self.relations, [p for p in _WIDE if p in predicates]
        if not mine:
            return self
        dropped = mine.keys() & predicates
        if wide:
            dropped |= {p for p in mine if any(covers(each, p) for each in wide)}
        if not dropped:
            return self
        relations, size = dict(mine), self._size
        for predicate in dropped:
            relation = relations.pop(predicate)
            if size is not None:
                size -= len(relation)
        result = ColumnarFacts._of(self.space, relations)
        result._size = size
        return result

    def renamed(self, predicate: Predicate, new: Predicate) -> ColumnarFacts:
        """Rename the predicate of facts."""
        relation = self.relations.get(predicate)
        return ColumnarFacts._of(self.space, {} if relation is None else {new: relation})

    def relation(self, pattern: Pattern) -> Relation:
        """Return the relation that a pattern reads."""
        if pattern.wide:
            return self.wide(pattern.predicate)
        return self.relations.get(pattern.predicate) or Relation(len(pattern.arguments))

    def wide(self, predicate: Predicate) -> Relation:
        """Return all triples as (subject, property, object), or all types as (member, class)."""
        relation = self._wide.get(predicate)
        if relation is None:
            relation = self._wide[predicate] = self._assemble(predicate)
        return relation

    def _assemble(self, wide: Predicate) -> Relation:
        constant, packing = self.space.dictionary.id, self.space.packing
        parts: list[list[Ids]] = []
        for predicate, relation in self.relations.items():
            if not covers(wide, predicate):
                continue
            columns = packing.unpack(relation.keys(), relation.arity)
            rows = len(columns[0])
            if predicate.member_of is not None:
                columns.append(np.full(rows, constant(predicate.member_of), np.uint32))
            if wide == TRIPLES:
                assert predicate.property is not None, "triples are kept by property"
                columns.insert(1, np.full(rows, constant(predicate.property), np.uint32))
            parts.append(columns)
        arity = 3 if wide == TRIPLES else 2
        if not parts:
            return Relation(arity)
        columns = [np.concatenate([part[p] for part in parts]) for p in range(arity)]
        return self.space.of_columns(columns, len(columns[0]))


class PatternSource(Protocol):
    """Facts that body atoms can read."""

    def relation(self, pattern: Pattern) -> Relation:
        """Return the relation that a pattern reads."""
        ...


class LazySet:
    """The difference or union of two sets of facts, computed for a pattern on first read."""

    def __init__(
        self,
        operation: Callable[[Relation, Relation], Relation],
        facts: ColumnarFacts,
        other: ColumnarFacts,
    ) -> None:
        self._operation = operation
        self._facts = facts
        self._other = other
        self._relations: dict[Predicate, Relation] = {}

    def relation(self, pattern: Pattern) -> Relation:
        """Return the relation that a pattern reads."""
        relation = self._relations.get(pattern.predicate)
        if relation is None:
            relation = self._operation(self._facts.relation(pattern), self._other.relation(pattern))
            self._relations[pattern.predicate] = relation
        return relation


def appended(old: ColumnarFacts, delta: ColumnarFacts) -> ColumnarFacts:
    """old ∪ delta for disjoint sets, without merging runs."""
    relations = dict(old.relations)
    for predicate, relation in delta.relations.items():
        mine = relations.get(predicate, Relation(relation.arity))
        relations[predicate] = mine.appended(relation)
    full = ColumnarFacts._of(old.space, relations)
    for wide, relation in old._wide.items():
        full._wide[wide] = relation.union(delta.wide(wide))
    return full


def consolidated(full: ColumnarFacts, delta: ColumnarFacts) -> ColumnarFacts:
    """Merge the runs of the relations to which `delta` was appended."""
    relations = dict(full.relations)
    for predicate in delta.relations:
        relations[predicate] = relations[predicate].consolidated()
    result = ColumnarFacts._of(full.space, relations)
    result._wide.update(full._wide)
    return result
