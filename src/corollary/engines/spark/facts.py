"""Sets of facts in Spark: a base of many, and by which few facts the set differs from it.

A small set has no base: its facts are on the driver, with the embedded engine, and so are the facts
that were added to a base or removed from it. An update of some facts costs no job for each
set operation then, and none of them costs more than one, whatever the number of predicates.

Invariants: `removed` is part of the base, `small` has nothing in common with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from corollary.core.compile import TRIPLES, TYPES, covers
from corollary.core.dictionary import Ids
from corollary.core.ids import contains
from corollary.engines.spark.base import Base, Workspace
from corollary.lang.stratify import Predicate


class SparkFacts:
    """An immutable set of facts."""

    def __init__(
        self, workspace: Workspace, small: Any, base: Base | None = None, removed: Any = None
    ) -> None:
        self.workspace = workspace
        self.small = small
        self.base = base if base is not None and base.counts else None
        self.removed = workspace.embedded.facts({}) if removed is None else removed
        if self.base is None:
            self.removed = workspace.embedded.facts({})
        # What is known without looking: by tokens, so that no set keeps another one alive.
        self._token = object()
        self._parts: frozenset[object] = frozenset([self._token])  # sets that it contains
        self._others: frozenset[object] = frozenset()  # sets that it has nothing in common with
        self._wholes: frozenset[object] = frozenset()  # sets that contain it

    def __len__(self) -> int:
        base = 0 if self.base is None else len(self.base) - len(self.removed)
        return base + len(self.small)

    def predicates(self) -> Collection[Predicate]:
        """The narrow predicates that have facts."""
        found = dict.fromkeys(self.small.predicates())
        if self.base is not None:
            gone = {p: len(self.removed.only([p])) for p in self.removed.predicates()}
            found |= dict.fromkeys(p for p, n in self.base.counts.items() if n > gone.get(p, 0))
        return found.keys()

    def rows(self, predicate: Predicate) -> Ids:
        """The facts of a narrow predicate as an array with one row a fact, in sorted order."""
        found: Ids = self.only([predicate]).local().rows(predicate)
        return found

    def local(self) -> Any:
        """All facts on the driver."""
        if self.base is None:
            return self.small
        wanted = list(self.base.counts)
        if len(self.base) <= self.workspace.small:
            found = self.base.fetch(dict.fromkeys(wanted)).only(wanted)
        else:  # too many to be remembered
            found = self.workspace.unpacked(self.workspace.collected(self.base.chunks()))
        return found.difference(self.removed).union(self.small)

    def chunks(self) -> Any:
        """All facts as a frame of chunks, at home; there are some."""
        few = self.workspace.at_home(self.workspace.packed(self.small))
        parts = [] if few is None else [few]
        if self.base is not None:
            parts.append(self.base.chunks(removed=self.workspace.packed(self.removed)))
        return self.workspace.united(parts)

    def settled(self) -> SparkFacts:
        """The same set, without a base if the facts are few."""
        if self.base is None or len(self) > self.workspace.small:
            return self
        return SparkFacts(self.workspace, self.local())

    # -- set operations --------------------------------------------------------------------------

    def union(self, other: SparkFacts) -> SparkFacts:
        if not len(other):
            return self
        if not len(self):
            return other
        found = self._union(other)
        found._parts |= self._parts | other._parts
        found._others = self._others & other._others
        return found

    def _union(self, other: SparkFacts) -> SparkFacts:
        if self.base is None and other.base is None:
            return self._spilled(self.small.union(other.small))
        if self.base is None:
            return other._union(self)
        if other.base is None:
            return self._with_few(other)
        cut = self._cut(other, apart=self._is_apart(other))
        if cut is None and (pair := self._few_of(other)) is not None:
            return pair[0]._union(pair[1])
        if cut is None and (found := self._by_parts(other, SparkFacts._union)) is not None:
            return found
        if cut is None:
            few = self.small.union(other.small)
            if len(self.removed):
                base = self._combined("union", other)
            else:
                # What this one has stays where it is, and other sets that have it know that.
                more = other._combined("difference", self)
                base = Base(self.workspace, (*self.base.parts, *more.parts))
            return SparkFacts(self.workspace, few.difference(base.present(few)), base)
        mine, common, theirs = cut
        ours, others = self._removed_of(common, mine), other._removed_of(common, theirs)
        removed = self.removed.difference(ours).union(other.removed.difference(others))
        removed = removed.union(ours.intersection(others))
        few = self.small.union(other.small)
        few = few.difference(theirs.present(self.small)).difference(mine.present(other.small))
        back = removed.intersection(self.small.union(other.small))
        base = Base(self.workspace, (*mine.parts, *common.parts, *theirs.parts))
        return SparkFacts(self.workspace, few.difference(back), base, removed.difference(back))

    def difference(self, other: SparkFacts) -> SparkFacts:
        if not len(self) or not len(other):
            return self
        if self.base is None:
            gone = other.present(self.small)
            return self._left(SparkFacts(self.workspace, self.small.difference(gone)), other)
        if other.base is None:
            known = self._token in other._wholes
            inside = other.small if known else self.base.present(other.small)
            removed = self.removed.union(inside.difference(self.small))
            few = self.small.difference(other.small)
            return self._left(SparkFacts(self.workspace, few, self.base, removed), other)
        cut = self._cut(other)
        if cut is None and (pair := self._few_of(other)) is not None:
            return self._left(pair[0].difference(pair[1]), other)
        if cut is None and (found := self._by_parts(other, SparkFacts.difference)) is not None:
            return self._left(found, other)
        if cut is None:
            base = self._combined("difference", other)
            few = self.small.difference(other.present(self.small))
            gone = base.present(other.small)
            return self._left(SparkFacts(self.workspace, few, base, gone).settled(), other)
        mine, common, theirs = cut
        gone = other._removed_of(common, theirs)
        few = self.small.difference(other.present(self.small))
        few = few.union(gone.difference(self.removed).difference(other.small))
        removed = self.removed.difference(self._removed_of(common, mine))
        removed = removed.union(mine.present(other.small))
        return self._left(SparkFacts(self.workspace, few, mine, removed), other)

    def intersection(self, other: SparkFacts) -> SparkFacts:
        if self.base is None:
            return SparkFacts(self.workspace, other.present(self.small))._inside(other)
        if other.base is None:
            return SparkFacts(self.workspace, self.present(other.small))._inside(other)
        cut = self._cut(other)
        if cut is None and (pair := self._few_of(other)) is not None:
            return pair[0].intersection(pair[1])._inside(self)._inside(other)
        if cut is None and (found := self._by_parts(other, SparkFacts.intersection)) is not None:
            return found._inside(self)._inside(other)
        few = other.present(self.small).union(self.present(other.small))
        if cut is None:
            base = self._combined("intersection", other)
            return SparkFacts(self.workspace, few.difference(base.present(few)), base).settled()
        mine, common, theirs = cut
        gone = self._removed_of(common, mine).union(other._removed_of(common, theirs))
        few = few.difference(common.present(few).difference(gone))
        back = few.intersection(gone)
        return SparkFacts(
            self.workspace, few.difference(back), common, gone.difference(back)
        ).settled()

    def changed(
        self, deleted: SparkFacts, inserted: SparkFacts
    ) -> tuple[SparkFacts, SparkFacts, SparkFacts]:
        """(self \\ deleted) ∪ inserted, what was deleted of it, and what is new."""
        lost = deleted.intersection(self).difference(inserted)
        gained = inserted.difference(self)
        return self.replaced(lost, gained), lost, gained

    def replaced(
        self, lost: SparkFacts, gained: SparkFacts, *, shared: SparkFacts | None = None
    ) -> SparkFacts:
        """Without some of its facts, and with some that it has not."""
        left = self.difference(lost)
        return left.union(gained.apart_from(left))

    def only(self, predicates: Collection[Predicate]) -> SparkFacts:
        """The facts of these predicates; wide ones stand for all that they cover."""
        if self.base is None:
            return SparkFacts(self.workspace, self.small.only(predicates))
        named = frozenset(predicates)
        wide = named & {TRIPLES, TYPES}
        chosen = [p for p in self.base.counts if p in named or any(covers(w, p) for w in wide)]
        return SparkFacts(
            self.workspace,
            self.small.only(predicates),
            self.base.only(chosen),
            self.removed.only(predicates),
        )

    def without(self, predicates: Collection[Predicate]) -> SparkFacts:
        """The facts of all other predicates."""
        if self.base is None:
            return SparkFacts(self.workspace, self.small.without(predicates))
        left_out = self.only(predicates)
        gone = left_out.base.counts if left_out.base is not None else {}
        return SparkFacts(
            self.workspace,
            self.small.without(predicates),
            self.base.only([p for p in self.base.counts if p not in gone]),
            self.removed.without(predicates),
        )

    def renamed(self, predicate: Predicate, new: Predicate) -> SparkFacts:
        """The facts of one predicate as facts of another one."""
        own = self.only([predicate]).settled()
        if own.base is None:
            return SparkFacts(self.workspace, own.small.renamed(predicate, new))
        return SparkFacts(
            self.workspace,
            own.small.renamed(predicate, new),
            own.base.renamed(predicate, new),
            own.removed.renamed(predicate, new),
        )

    def present(self, facts: Any) -> Any:
        """Those facts of the driver that the set has."""
        found = facts.intersection(self.small)
        if self.base is not None:
            found = found.union(self.base.present(facts).difference(self.removed))
        return found

    # -- what is known without looking -----------------------------------------------------------

    def _left(self, found: SparkFacts, other: SparkFacts) -> SparkFacts:
        """A difference."""
        found._others = found._others | self._others | other._parts
        found._wholes = found._wholes | self._wholes | {self._token}
        return found

    def _inside(self, other: SparkFacts) -> SparkFacts:
        self._wholes |= other._wholes | {other._token}
        return self

    def apart_from(self, other: SparkFacts) -> SparkFacts:
        """The set, which is known to have nothing in common with the other one."""
        found = SparkFacts(self.workspace, self.small, self.base, self.removed)
        found._others = self._others | other._parts
        return found

    def _is_apart(self, other: SparkFacts) -> bool:
        """Whether the two are known to have nothing in common, and no fact of a base is hidden."""
        known = other._token in self._others or self._token in other._others
        return known and not (len(self.removed) or len(other.removed))

    def _few_of(self, other: SparkFacts) -> tuple[SparkFacts, SparkFacts] | None:
        """The two sets, one of them without a base, if one is small."""
        if min(len(self), len(other)) > self.workspace.small:
            return None
        return self.settled(), other.settled()

    def _by_parts(
        self, other: SparkFacts, operation: Callable[[SparkFacts, SparkFacts], SparkFacts]
    ) -> SparkFacts | None:
        """An operation apart for the predicates that are in the way of a cut; None if all are.

        Such are the axioms, of which one set has those that were given, and another one all.
        """
        assert self.base is not None
        assert other.base is not None
        shared = self._in_the_way(other)
        if shared >= self.base.counts.keys() | other.base.counts.keys():
            return None
        inside = operation(self.only(shared), other.only(shared))
        return operation(self.without(shared), other.without(shared))._union(inside)

    def _in_the_way(self, other: SparkFacts) -> set[Predicate]:
        """The predicates of which both have facts in chunks that the other one has not."""
        assert self.base is not None
        assert other.base is not None
        mine, theirs = dict(self.base.parts), dict(other.base.parts)
        nothing: frozenset[Predicate] = frozenset()
        left = {p for held, named in mine.items() for p in named - theirs.get(held, nothing)}
        right = {p for held, named in theirs.items() for p in named - mine.get(held, nothing)}
        return left & right

    def _cut(self, other: SparkFacts, *, apart: bool = False) -> tuple[Base, Base, Base] | None:
        """What only the one base has, what both have, what only the other one has.

        None if that takes a job: where both have facts of a predicate in different chunks, unless
        the sets are known to be apart.
        """
        assert self.base is not None
        assert other.base is not None
        if not apart and self._in_the_way(other):
            return None
        mine, theirs = dict(self.base.parts), dict(other.base.parts)
        nothing: frozenset[Predicate] = frozenset()
        workspace = self.workspace
        left, common, right = (
            Base(workspace, parts)
            for parts in (
                tuple((h, named - theirs.get(h, nothing)) for h, named in mine.items()),
                tuple((h, named & theirs.get(h, nothing)) for h, named in mine.items()),
                tuple((h, named - mine.get(h, nothing)) for h, named in theirs.items()),
            )
        )
        return left, common, right

    def _removed_of(self, part: Base, rest: Base) -> Any:
        """The removed facts of one of the two parts of the base; they are looked for where needed.

        Who removed a fact has looked for it already, as a rule, and that is remembered.
        """
        unclear = [p for p in self.removed.predicates() if p in part.counts and p in rest.counts]
        clear = [p for p in self.removed.predicates() if p in part.counts and p not in rest.counts]
        found = self.removed.only(clear)
        return found.union(part.present(self.removed.only(unclear))) if unclear else found

    # -- jobs ------------------------------------------------------------------------------------

    def _with_few(self, other: SparkFacts) -> SparkFacts:
        """The union with a small set."""
        assert self.base is not None
        new = other.small.difference(self.small)
        if other._token not in self._others and self._token not in other._others:
            new = new.difference(self.base.present(new).difference(self.removed))
        back = new.intersection(self.removed)
        few = self.small.union(new.difference(back))
        if len(few) > self.workspace.small:
            return self._folded(few, self.removed.difference(back))
        return SparkFacts(self.workspace, few, self.base, self.removed.difference(back))

    def _folded(self, few: Any, removed: Any) -> SparkFacts:
        """Many facts beside a base become part of one."""
        assert self.base is not None
        more = self._spilled(few)
        whole = SparkFacts(self.workspace, self.workspace.embedded.facts({}), self.base, removed)
        if not len(removed):
            return whole._union(more.apart_from(whole))
        return SparkFacts(
            self.workspace, self.workspace.embedded.facts({}), whole._combined("union", more)
        )

    def _combined(self, operation: str, other: SparkFacts) -> Base:
        assert self.base is not None
        assert other.base is not None
        packed = self.workspace.packed
        return self.base.combined(
            operation, other.base, packed(self.removed), packed(other.removed)
        )

    def _spilled(self, small: Any) -> SparkFacts:
        """Facts of the driver, in Spark if they are many."""
        if len(small) <= self.workspace.small:
            return SparkFacts(self.workspace, small)
        return spilled(self.workspace, small)


def spilled(workspace: Workspace, small: Any) -> SparkFacts:
    """Facts of the driver as a base."""
    tables = workspace.packed(small)
    frame = workspace.at_home(tables)
    assert frame is not None, "there are facts"
    names = workspace.predicates(tables.keys())
    base = Base.of(
        workspace,
        [frame],
        {names[key]: len(rows) for key, rows in tables.items()},
        {names[key]: key[3] for key in tables},
    )
    return SparkFacts(workspace, workspace.embedded.facts({}), base)


def looked_up(facts: SparkFacts, wanted: Mapping[Predicate, Mapping[int, Ids]]) -> Any:
    """Facts of these predicates on the driver, with one of some ids in one of some columns."""
    found = facts.small.only(list(wanted))
    if facts.base is not None:
        found = found.union(facts.base.fetch(wanted).difference(facts.removed))
    tables = {}
    for predicate, places in wanted.items():
        rows = found.rows(predicate)
        if len(rows):
            chosen = np.zeros(len(rows), bool)
            for column, ids in places.items():
                chosen |= contains(ids, rows[:, column])
            tables[predicate] = rows[chosen]
    return facts.workspace.embedded.facts(tables)
