"""Sets of facts in Spark: a base of many, and by which few facts the set differs from it.

A small set has no base: its facts are on the driver, with the embedded engine, and so are the facts
that were added to a base or removed from it. An update of some facts costs no job for each
set operation then, and none of them costs more than one, whatever the number of predicates.

Invariants: `removed` is part of the base, `small` has nothing in common with it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from weakref import ref

from corollary.core.compile import TRIPLES, TYPES, covers
from corollary.core.dictionary import Ids
from corollary.engines.spark.base import Base, Workspace, selected
from corollary.engines.spark.packing import DERIVED
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
        self._apart_from: ref[SparkFacts] | None = None
        self._within: ref[SparkFacts] | None = None

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
            tables = self.workspace.collected(selected(self.base, DERIVED, {}))
            found = self.workspace.unpacked(tables)
        return found.difference(self.removed).union(self.small)

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
        if self.base is None and other.base is None:
            return self._spilled(self.small.union(other.small))
        if self.base is None:
            return other.union(self)
        if other.base is None:
            return self._with_few(other)
        if (same := self._same(other)) is not None:
            both = same
            removed = self.removed.without(both).union(other.removed.without(both))
            removed = removed.union(self.removed.only(both).intersection(other.removed))
            base = Base(
                self.workspace, self.base.held, {**self.base.counts, **other.base.counts}
            )
            return SparkFacts(self.workspace, self.small.union(other.small), base, removed)
        if not len(self.removed) and not len(other.removed) and self._disjoint(other):
            held, others = self.base.held, other.base.held
            counts = dict(self.base.counts)
            for predicate, count in other.base.counts.items():
                counts[predicate] = counts.get(predicate, 0) + count
            chosen = [_whole(self.base), _whole(other.base)]
            if all(chosen) or not self.base.counts.keys() & other.base.counts.keys():
                frames = [*_frames(self.base), *_frames(other.base)]
                base = Base.of(self.workspace, frames, counts, held.columns | others.columns)
                return SparkFacts(self.workspace, self.small.union(other.small), base)
        base = self._combined("union", other)
        few = self.small.union(other.small)
        return SparkFacts(self.workspace, few.difference(base.present(few)), base)

    def difference(self, other: SparkFacts) -> SparkFacts:
        if not len(self) or not len(other):
            return self
        if self.base is None:
            gone = other.present(self.small)
            return SparkFacts(self.workspace, self.small.difference(gone))._apart(other)
        if other.base is None:
            inside = other.small if other.is_within(self) else self.base.present(other.small)
            return SparkFacts(
                self.workspace,
                self.small.difference(other.small),
                self.base,
                self.removed.union(inside.difference(self.small)),
            )
        if (same := self._same(other)) is not None:
            few = self.small.difference(other.small)
            few = few.union(other.removed.only(same).difference(self.removed))
            base = self.base.only([p for p in self.base.counts if p not in other.base.counts])
            return SparkFacts(self.workspace, few, base, self.removed.without(same))._apart(other)
        base = self._combined("difference", other)
        few = self.small.difference(other.present(self.small))
        gone = base.present(other.small)
        return SparkFacts(self.workspace, few, base, gone).settled()._apart(other)

    def intersection(self, other: SparkFacts) -> SparkFacts:
        if self.base is None:
            return SparkFacts(self.workspace, other.present(self.small))._inside(other)
        if other.base is None:
            return other.intersection(self)._inside(other)
        if (same := self._same(other)) is not None:
            base = self.base.only(same)
            gone = self.removed.union(other.removed).only(same)
            few = self.small.intersection(other.small)
            return SparkFacts(self.workspace, few, base, gone).settled()
        base = self._combined("intersection", other)
        few = self.small.intersection(other.small)
        few = few.union(other.base.present(self.small).difference(other.removed))
        few = few.union(self.base.present(other.small).difference(self.removed))
        return SparkFacts(self.workspace, few, base).settled()

    def only(self, predicates: Collection[Predicate]) -> SparkFacts:
        """The facts of these predicates; wide ones stand for all that they cover."""
        if self.base is None:
            return SparkFacts(self.workspace, self.small.only(predicates))
        named = frozenset(predicates)
        wide = named & {TRIPLES, TYPES}
        chosen = [
            p for p in self.base.counts if p in named or any(covers(w, p) for w in wide)
        ]
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
        own = self.only([predicate])
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

    def is_within(self, other: SparkFacts) -> bool:
        """Whether the set was made as a part of the other one."""
        return self._within is not None and self._within() is other

    def _apart(self, other: SparkFacts) -> SparkFacts:
        self._apart_from = ref(other)
        return self

    def _inside(self, other: SparkFacts) -> SparkFacts:
        self._within = ref(other)
        return self

    def apart_from(self, other: SparkFacts) -> SparkFacts:
        """The set, which is known to have nothing in common with the other one."""
        return SparkFacts(self.workspace, self.small, self.base, self.removed)._apart(other)

    def _disjoint(self, other: SparkFacts) -> bool:
        assert self.base is not None and other.base is not None
        for one, two in ((self, other), (other, self)):
            if one._apart_from is not None and one._apart_from() is two:
                return True
        return not self.base.counts.keys() & other.base.counts.keys() and not (
            {*self.small.predicates()} & other.base.counts.keys()
            or {*other.small.predicates()} & self.base.counts.keys()
        )

    def _same(self, other: SparkFacts) -> list[Predicate] | None:
        """The predicates of both, if they are views of the same chunks, and nothing is in between.

        A fact that one of the two has on the driver must not be in the part of the chunks that
        only the other one shows.
        """
        assert self.base is not None and other.base is not None
        if self.base.held is not other.base.held:
            return None
        mine, theirs = self.base.counts.keys(), other.base.counts.keys()
        if any(p in theirs and p not in mine for p in self.small.predicates()):
            return None
        if any(p in mine and p not in theirs for p in other.small.predicates()):
            return None
        return [p for p in mine if p in theirs]

    # -- jobs ------------------------------------------------------------------------------------

    def _with_few(self, other: SparkFacts) -> SparkFacts:
        """The union with a small set."""
        assert self.base is not None
        new = other.small.difference(self.small)
        if not (other._apart_from is not None and other._apart_from() is self):
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
            return whole.union(more._apart(whole))
        return SparkFacts(
            self.workspace, self.workspace.embedded.facts({}), whole._combined("union", more)
        )

    def _combined(self, operation: str, other: SparkFacts) -> Base:
        assert self.base is not None and other.base is not None
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


def _whole(base: Base) -> bool:
    """Whether a view shows all predicates of its chunks."""
    return base.counts.keys() == base.held.columns.keys()


def _frames(base: Base) -> list[Any]:
    """The chunks of a view alone."""
    if _whole(base):
        return list(base.held.frames)
    return [selected(base, DERIVED, {})]

