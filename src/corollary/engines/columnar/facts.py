"""Sets of facts: one relation for each narrow predicate, shared between versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol
from weakref import ReferenceType, ref

import numpy as np

from corollary.core.compile import TRIPLES, TYPES, Pattern, covers
from corollary.core.dictionary import Dictionary, Ids
from corollary.engines.columnar.budget import Budget
from corollary.engines.columnar.relation import EMPTY, Packing, Relation
from corollary.engines.columnar.workers import Workers, assisted
from corollary.lang.stratify import Predicate

_WIDE = (TRIPLES, TYPES)


class Space:
    """What the facts of one engine share: terms, the packing of rows, budget and threads."""

    def __init__(self, dictionary: Dictionary, budget: Budget, workers: Workers) -> None:
        self.dictionary = dictionary
        self.budget = budget
        self.workers = workers
        self.packing = Packing()

    def relation(self, rows: Ids) -> Relation:
        """A relation from rows, repetitions allowed."""
        arity = rows.shape[1]
        columns = [np.ascontiguousarray(rows[:, p], np.uint32) for p in range(arity)]
        return self.of_columns(columns, len(rows))

    def of_columns(self, columns: list[Ids], rows: int) -> Relation:
        """A relation from columns, repetitions allowed."""
        return Relation.of_any(len(columns), self.packing.pack(columns, rows))


class ColumnarFacts:
    """An immutable set of facts; implements `core.engine.Facts`."""

    def __init__(self, space: Space, relations: Mapping[Predicate, Relation]) -> None:
        self.space = space
        self.relations = {p: r for p, r in relations.items() if len(r)}
        self._size: int | None = None
        self._wide: dict[Predicate, Relation] = {}
        self._apart_from: ReferenceType[ColumnarFacts] | None = None

    @classmethod
    def _of(cls, space: Space, relations: dict[Predicate, Relation]) -> ColumnarFacts:
        """From relations that are known to have facts; the dictionary is kept."""
        facts = cls.__new__(cls)
        facts.space, facts.relations, facts._wide, facts._apart_from = space, relations, {}, None
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
        """The narrow predicates that have facts."""
        return list(self.relations)

    def rows(self, predicate: Predicate) -> Ids:
        """The facts of a predicate, one a row, in sorted order."""
        relation = self.relations.get(predicate)
        if relation is None or not len(relation):
            return np.zeros((0, 0), np.uint32)
        columns = self.space.packing.unpack(relation.keys(), relation.arity)
        if not columns:
            return np.zeros((1, 0), np.uint32)
        if relation.arity > 2:  # keys of longer rows are not in the order of the rows
            order = np.lexsort(columns[::-1])
            columns = [column[order] for column in columns]
        rows = np.empty((len(relation), relation.arity), np.uint32)
        for place, column in enumerate(columns):
            rows[:, place] = column
        return rows

    @assisted
    def union(self, other: ColumnarFacts) -> ColumnarFacts:
        """The facts of both."""
        if not other.relations:
            return self
        if not self.relations:
            return other  # with what it remembers
        apart = other._apart_from is not None and other._apart_from() is self
        relations, size = dict(self.relations), self._size
        for predicate, relation in other.relations.items():
            mine = relations.get(predicate)
            found = relation if mine is None else mine.union(relation, apart=apart)
            relations[predicate] = found
            if size is not None:  # counting all relations again would cost what there are
                size += len(found) - (0 if mine is None else len(mine))
        result = ColumnarFacts._of(self.space, relations)
        result._size = size
        for wide, relation in self._wide.items():
            result._wide[wide] = relation.union(other.wide(wide))
        return result

    def apart_from(self, other: ColumnarFacts) -> ColumnarFacts:
        """Remember that the other set has none of these facts, so that a union need not compare."""
        self._apart_from = ref(other)
        return self

    @assisted
    def difference(self, other: ColumnarFacts) -> ColumnarFacts:
        """The facts that the other set does not have."""
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

    @assisted
    def intersection(self, other: ColumnarFacts) -> ColumnarFacts:
        """The facts that both have."""
        if not self.relations or not other.relations:
            return self if not self.relations else other
        both = self.relations.keys() & other.relations.keys()
        return ColumnarFacts(
            self.space, {p: self.relations[p].intersection(other.relations[p]) for p in both}
        )

    @assisted
    def changed(
        self, deleted: ColumnarFacts, inserted: ColumnarFacts
    ) -> tuple[ColumnarFacts, ColumnarFacts, ColumnarFacts]:
        """(self \\ deleted) ∪ inserted, what was deleted of it, and what is new."""
        if not deleted.relations and not inserted.relations:
            return self, deleted, inserted
        relations = dict(self.relations)
        went: dict[Predicate, Relation] = {}
        came: dict[Predicate, Relation] = {}
        for predicate in {**inserted.relations, **deleted.relations}:
            old, new = deleted.relations.get(predicate), inserted.relations.get(predicate)
            mine = relations.get(predicate)
            if mine is None:
                if new is not None:
                    relations[predicate] = came[predicate] = new
                continue
            now, gone, fresh = mine.changed(
                EMPTY if old is None else old.keys(), EMPTY if new is None else new.keys()
            )
            if len(gone):
                went[predicate] = Relation.of(mine.arity, gone)
            if len(fresh):
                came[predicate] = Relation.of(mine.arity, fresh)
            if now.runs:
                relations[predicate] = now
            else:
                del relations[predicate]
        lost, gained = (ColumnarFacts._of(self.space, found) for found in (went, came))
        return self._with(relations, lost, gained), lost, gained

    @assisted
    def replaced(
        self, lost: ColumnarFacts, gained: ColumnarFacts, *, shared: ColumnarFacts | None = None
    ) -> ColumnarFacts:
        """Without some of its facts, and with some that it has not."""
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
        """Other relations, which differ by this; what was assembled follows."""
        result = ColumnarFacts._of(self.space, relations)
        if self._size is not None:
            result._size = self._size - len(lost) + len(gained)
        for wide, relation in self._wide.items():
            left = relation.difference(lost.wide(wide)) if lost.relations else relation
            result._wide[wide] = left.union(gained.wide(wide)) if gained.relations else left
        return result

    def only(self, predicates: Collection[Predicate]) -> ColumnarFacts:
        """The facts of these predicates; wide ones stand for all that they cover."""
        mine = self.relations
        if not mine:
            return self
        if len(mine) < len(predicates):
            predicates = frozenset(predicates)
            kept = {p: relation for p, relation in mine.items() if p in predicates}
        else:
            kept = {p: mine[p] for p in predicates if p in mine}
        for wide in _WIDE:
            if wide in predicates:
                kept |= {p: relation for p, relation in mine.items() if covers(wide, p)}
        return ColumnarFacts._of(self.space, kept)

    def without(self, predicates: Collection[Predicate]) -> ColumnarFacts:
        """The facts of all other predicates."""
        mine = self.relations
        if not mine:
            return self
        if len(mine) <= len(predicates):
            predicates = frozenset(predicates)
            kept = {p: relation for p, relation in mine.items() if p not in predicates}
        else:
            kept = dict(mine)
            for predicate in predicates:
                kept.pop(predicate, None)
        for wide in _WIDE:
            if wide in predicates:
                kept = {p: relation for p, relation in kept.items() if not covers(wide, p)}
        return ColumnarFacts._of(self.space, kept)

    def renamed(self, predicate: Predicate, new: Predicate) -> ColumnarFacts:
        """The facts of one predicate as facts of another one."""
        found = self.relations.get(predicate)
        return ColumnarFacts._of(self.space, {} if found is None else {new: found})

    def relation(self, pattern: Pattern) -> Relation:
        """What a pattern reads."""
        if pattern.wide:
            return self.wide(pattern.predicate)
        return self.relations.get(pattern.predicate) or Relation(len(pattern.arguments))

    def wide(self, predicate: Predicate) -> Relation:
        """All triples as (subject, property, object), or all types as (member, class)."""
        found = self._wide.get(predicate)
        if found is None:
            found = self._wide[predicate] = self._assemble(predicate)
        return found

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


class Readable(Protocol):
    """What a body atom can read."""

    def relation(self, pattern: Pattern) -> Relation:
        """What a pattern reads."""
        ...


class Less:
    """facts \\ part, made for a predicate when it is first read."""

    def __init__(self, facts: ColumnarFacts, part: ColumnarFacts) -> None:
        self._facts = facts
        self._part = part
        self._made: dict[Predicate, Relation] = {}

    def relation(self, pattern: Pattern) -> Relation:
        """What a pattern reads."""
        found = self._made.get(pattern.predicate)
        if found is None:
            found = self._facts.relation(pattern).difference(self._part.relation(pattern))
            self._made[pattern.predicate] = found
        return found


def appended(old: ColumnarFacts, delta: ColumnarFacts) -> ColumnarFacts:
    """old ∪ delta for disjoint sets, nothing merged."""
    relations = dict(old.relations)
    for predicate, relation in delta.relations.items():
        mine = relations.get(predicate, Relation(relation.arity))
        relations[predicate] = mine.appended(relation)
    full = ColumnarFacts._of(old.space, relations)
    for wide, relation in old._wide.items():
        full._wide[wide] = relation.union(delta.wide(wide))
    return full


def settled(full: ColumnarFacts, delta: ColumnarFacts) -> ColumnarFacts:
    relations = dict(full.relations)
    for predicate in delta.relations:
        relations[predicate] = relations[predicate].settled()
    settled = ColumnarFacts._of(full.space, relations)
    settled._wide.update(full._wide)
    return settled
