"""Sets of facts: a large base in Spark, and small sets of added and removed facts on the driver.

A small set has no base: its facts are on the driver, in the embedded engine, like the facts added
to a base and removed from it. Set operations of a small update therefore need no job, and no set
operation needs more than one, whatever the number of predicates.

Invariants: `removed` ⊆ base, `small` ∩ base = ∅.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from corollary.core.compile import TRIPLES, TYPES, covers
from corollary.core.dictionary import Ids
from corollary.core.ids import contains
from corollary.engines.spark.base import Base, SparkRun
from corollary.engines.spark.packing import Key
from corollary.lang.stratify import Predicate


class SparkFacts:
    """An immutable set of facts."""

    def __init__(
        self, run: SparkRun, small: Any, base: Base | None = None, removed: Any = None
    ) -> None:
        self.run = run
        self.small = small
        self.base = base if base is not None and base.counts else None
        self.removed = run.nothing if removed is None or self.base is None else removed
        # Known relations to other sets, by token, so that no set holds a reference to another.
        self._token = object()
        self._subsets: frozenset[object] = frozenset([self._token])  # sets that it contains
        self._disjoint: frozenset[object] = frozenset()  # sets that are disjoint from it
        self._supersets: frozenset[object] = frozenset()  # sets that contain it

    @classmethod
    def of(cls, base: Base) -> SparkFacts:
        """Create a set from a base."""
        return cls(base.run, base.run.nothing, base)

    def __len__(self) -> int:
        base = 0 if self.base is None else len(self.base) - len(self.removed)
        return base + len(self.small)

    def predicates(self) -> Collection[Predicate]:
        """Return the narrow predicates that have facts."""
        predicates = dict.fromkeys(self.small.predicates())
        if self.base is not None:
            removed_counts = {p: len(self.removed.only([p])) for p in self.removed.predicates()}
            predicates |= dict.fromkeys(
                p for p, n in self.base.counts.items() if n > removed_counts.get(p, 0)
            )
        return predicates.keys()

    def counts_by_key(self) -> dict[Key, int]:
        """Count the facts of each predicate; an upper bound."""
        counts = {key: len(rows) for key, rows in self.run.tables_of(self.small).items()}
        if self.base is not None:
            for key, predicate in self.base.keys().items():
                counts[key] = counts.get(key, 0) + self.base.counts[predicate]
        return counts

    def rows(self, predicate: Predicate) -> Ids:
        """Return the facts of a narrow predicate as an array, one sorted row per fact."""
        rows: Ids = self.only([predicate]).local().rows(predicate)
        return rows

    def columns(self, predicate: Predicate) -> Sequence[Ids]:
        """Return the facts of a narrow predicate as columns."""
        return list(self.rows(predicate).T)

    def local(self) -> Any:
        """Collect all facts on the driver."""
        if self.base is None:
            return self.small
        wanted = list(self.base.counts)
        if len(self.base) <= self.run.small or self.base.is_known:
            facts = self.base.fetch(dict.fromkeys(wanted)).only(wanted)
        else:  # too many to cache
            facts = self.run.facts_of(self.run.collect(self.base.chunks()))
        return facts.difference(self.removed).union(self.small)

    def chunks(self) -> Any:
        """Emit all facts as a frame of partitioned chunks; the set must not be empty."""
        small_chunks = self.run.partitioned(self.run.tables_of(self.small))
        parts = [] if small_chunks is None else [small_chunks]
        if self.base is not None:
            parts.append(self.base.chunks(removed=self.run.tables_of(self.removed)))
        return self.run.union(parts)

    def collect_if_small(self) -> SparkFacts:
        """Collect the set on the driver if it is small enough."""
        if self.base is None or len(self) > self.run.small:
            return self
        return SparkFacts(self.run, self.local())

    # -- set operations --------------------------------------------------------------------------

    def union(self, other: SparkFacts) -> SparkFacts:
        if not len(other):
            return self
        if not len(self):
            return other
        result = self._union(other)
        result._subsets |= self._subsets | other._subsets
        result._disjoint = self._disjoint & other._disjoint
        return result

    def _union(self, other: SparkFacts) -> SparkFacts:
        if self.base is None and other.base is None:
            return wrap(self.run, self.small.union(other.small))
        if self.base is None:
            return other._union(self)
        if other.base is None:
            return self._union_small(other)
        split = self._split_bases(other, disjoint=self._is_disjoint(other))
        if split is None and (result := self._by_parts(other, SparkFacts._union)) is not None:
            return result
        if split is None:
            small = self.small.union(other.small)
            if len(self.removed):
                base = self._combine("union", other)
            else:
                # Keep the chunks of this base, which other sets share.
                more = other._combine("difference", self)
                base = Base(self.run, (*self.base.parts, *more.parts))
            return SparkFacts(self.run, small.difference(base.probe(small)), base)
        mine, common, theirs = split
        ours, others = self._removed_in(common, mine), other._removed_in(common, theirs)
        removed = self.removed.difference(ours).union(other.removed.difference(others))
        removed = removed.union(ours.intersection(others))
        small = self.small.union(other.small)
        if not self._is_disjoint(other):
            small = small.difference(theirs.probe(self.small)).difference(mine.probe(other.small))
        restored = removed.intersection(self.small.union(other.small))
        base = Base(self.run, (*mine.parts, *common.parts, *theirs.parts))
        return SparkFacts(self.run, small.difference(restored), base, removed.difference(restored))

    def difference(self, other: SparkFacts) -> SparkFacts:
        if not len(self) or not len(other):
            return self
        if self.base is None:
            hidden = other.probe(self.small)
            return self._as_difference(SparkFacts(self.run, self.small.difference(hidden)), other)
        if other.base is None:
            known = self._token in other._supersets
            inside = other.small if known else self.base.probe(other.small)
            removed = self.removed.union(inside.difference(self.small))
            small = self.small.difference(other.small)
            return self._as_difference(SparkFacts(self.run, small, self.base, removed), other)
        split = self._split_bases(other)
        if split is None and (result := self._by_parts(other, SparkFacts.difference)) is not None:
            return self._as_difference(result, other)
        if split is None:
            base = self._combine("difference", other)
            small = self.small.difference(other.probe(self.small))
            hidden = base.probe(other.small)
            return self._as_difference(
                SparkFacts(self.run, small, base, hidden).collect_if_small(), other
            )
        mine, common, theirs = split
        hidden = other._removed_in(common, theirs)
        small = self.small.difference(other.probe(self.small))
        small = small.union(hidden.difference(self.removed).difference(other.small))
        removed = self.removed.difference(self._removed_in(common, mine))
        removed = removed.union(mine.probe(other.small))
        return self._as_difference(SparkFacts(self.run, small, mine, removed), other)

    def intersection(self, other: SparkFacts) -> SparkFacts:
        if self.base is None:
            return SparkFacts(self.run, other.probe(self.small))._as_subset(other)
        if other.base is None:
            return SparkFacts(self.run, self.probe(other.small))._as_subset(other)
        split = self._split_bases(other)
        if split is None and (result := self._by_parts(other, SparkFacts.intersection)) is not None:
            return result._as_subset(self)._as_subset(other)
        small = other.probe(self.small).union(self.probe(other.small))
        if split is None:
            base = self._combine("intersection", other)
            return SparkFacts(
                self.run, small.difference(base.probe(small)), base
            ).collect_if_small()
        mine, common, theirs = split
        hidden = self._removed_in(common, mine).union(other._removed_in(common, theirs))
        small = small.difference(common.probe(small).difference(hidden))
        restored = small.intersection(hidden)
        return SparkFacts(
            self.run, small.difference(restored), common, hidden.difference(restored)
        ).collect_if_small()

    def changed(
        self, deleted: SparkFacts, inserted: SparkFacts
    ) -> tuple[SparkFacts, SparkFacts, SparkFacts]:
        """Return (self \\ deleted) ∪ inserted, the facts lost, and the facts gained."""
        lost = deleted.intersection(self).difference(inserted)
        gained = inserted.difference(self)
        return self.replaced(lost, gained), lost, gained

    def replaced(
        self, lost: SparkFacts, gained: SparkFacts, *, shared: SparkFacts | None = None
    ) -> SparkFacts:
        """Remove `lost` and add `gained`. Precondition: `lost ⊆ self`, `gained ∩ self = ∅`."""
        left = self.difference(lost)
        return left.union(gained.assume_disjoint(left))

    def only(self, predicates: Collection[Predicate]) -> SparkFacts:
        """Keep the facts of these predicates; a wide predicate covers its narrow ones."""
        if self.base is None:
            return SparkFacts(self.run, self.small.only(predicates))
        named = frozenset(predicates)
        wide = named & {TRIPLES, TYPES}
        chosen = [p for p in self.base.counts if p in named or any(covers(w, p) for w in wide)]
        return SparkFacts(
            self.run,
            self.small.only(predicates),
            self.base.only(chosen),
            self.removed.only(predicates),
        )

    def without(self, predicates: Collection[Predicate]) -> SparkFacts:
        """Keep the facts of all other predicates."""
        if self.base is None:
            return SparkFacts(self.run, self.small.without(predicates))
        left_out = self.only(predicates)
        dropped = left_out.base.counts if left_out.base is not None else {}
        return SparkFacts(
            self.run,
            self.small.without(predicates),
            self.base.only([p for p in self.base.counts if p not in dropped]),
            self.removed.without(predicates),
        )

    def renamed(self, predicate: Predicate, new: Predicate) -> SparkFacts:
        """Rename a predicate."""
        own = self.only([predicate]).collect_if_small()
        if own.base is None:
            return SparkFacts(self.run, own.small.renamed(predicate, new))
        return SparkFacts(
            self.run,
            own.small.renamed(predicate, new),
            own.base.renamed(predicate, new),
            own.removed.renamed(predicate, new),
        )

    def probe(self, facts: Any) -> Any:
        """Keep the driver facts that are in the set (semi-join)."""
        members = facts.intersection(self.small)
        if self.base is not None:
            members = members.union(self.base.probe(facts).difference(self.removed))
        return members

    # -- known relations between sets ------------------------------------------------------------

    def _as_difference(self, result: SparkFacts, other: SparkFacts) -> SparkFacts:
        """Record that `result` is `self` without `other`."""
        result._disjoint = result._disjoint | self._disjoint | other._subsets
        result._supersets = result._supersets | self._supersets | {self._token}
        return result

    def _as_subset(self, other: SparkFacts) -> SparkFacts:
        self._supersets |= other._supersets | {other._token}
        return self

    def assume_disjoint(self, other: SparkFacts) -> SparkFacts:
        """Record that the set and `other` are disjoint. Precondition, not checked."""
        same = SparkFacts(self.run, self.small, self.base, self.removed)
        same._disjoint = self._disjoint | other._subsets
        return same

    def _is_disjoint(self, other: SparkFacts) -> bool:
        """Whether the sets are known to be disjoint and neither removes facts of its base."""
        known = other._token in self._disjoint or self._token in other._disjoint
        return known and not (len(self.removed) or len(other.removed))

    def _by_parts(
        self, other: SparkFacts, operation: Callable[[SparkFacts, SparkFacts], SparkFacts]
    ) -> SparkFacts | None:
        """Apply an operation separately to conflicting predicates, or with a small operand.

        None if both sets are large and all predicates conflict. Usually few predicates conflict,
        for example axioms: one set has the explicit ones, the other set all.
        """
        assert self.base is not None
        assert other.base is not None
        shared = self._conflicting(other)
        if shared >= self.base.counts.keys() | other.base.counts.keys():
            if min(len(self), len(other)) <= self.run.small:
                return operation(self.collect_if_small(), other.collect_if_small())
            return None
        inside = operation(self.only(shared), other.only(shared))
        return operation(self.without(shared), other.without(shared))._union(inside)

    def _conflicting(self, other: SparkFacts) -> set[Predicate]:
        """Find the predicates of which each set has facts in chunks that are not shared."""
        assert self.base is not None
        assert other.base is not None
        mine, theirs = dict(self.base.parts), dict(other.base.parts)
        nothing: frozenset[Predicate] = frozenset()
        left = {p for cached, named in mine.items() for p in named - theirs.get(cached, nothing)}
        right = {p for cached, named in theirs.items() for p in named - mine.get(cached, nothing)}
        return left & right

    def _split_bases(
        self, other: SparkFacts, *, disjoint: bool = False
    ) -> tuple[Base, Base, Base] | None:
        """Split two bases into left only, common, and right only.

        None if the split takes a job: both sets have facts of a predicate in different chunks, and
        are not known to be disjoint.
        """
        assert self.base is not None
        assert other.base is not None
        if not disjoint and self._conflicting(other):
            return None
        mine, theirs = dict(self.base.parts), dict(other.base.parts)
        nothing: frozenset[Predicate] = frozenset()
        run = self.run
        left, common, right = (
            Base(run, parts)
            for parts in (
                tuple((h, named - theirs.get(h, nothing)) for h, named in mine.items()),
                tuple((h, named & theirs.get(h, nothing)) for h, named in mine.items()),
                tuple((h, named - mine.get(h, nothing)) for h, named in theirs.items()),
            )
        )
        return left, common, right

    def _removed_in(self, part: Base, rest: Base) -> Any:
        """Select the removed facts of one of two parts of the base; probe only where ambiguous.

        The result is usually cached, because removed facts have been probed before.
        """
        unclear = [p for p in self.removed.predicates() if p in part.counts and p in rest.counts]
        clear = [p for p in self.removed.predicates() if p in part.counts and p not in rest.counts]
        removed = self.removed.only(clear)
        return removed.union(part.probe(self.removed.only(unclear))) if unclear else removed

    # -- jobs ------------------------------------------------------------------------------------

    def _union_small(self, other: SparkFacts) -> SparkFacts:
        """Compute the union with a small set."""
        assert self.base is not None
        new = other.small.difference(self.small)
        if other._token not in self._disjoint and self._token not in other._disjoint:
            new = new.difference(self.base.probe(new).difference(self.removed))
        restored = new.intersection(self.removed)
        small = self.small.union(new.difference(restored))
        if len(small) > self.run.small:
            return self._fold(small, self.removed.difference(restored))
        return SparkFacts(self.run, small, self.base, self.removed.difference(restored))

    def _fold(self, small: Any, removed: Any) -> SparkFacts:
        """Merge a large set of added facts into the base."""
        assert self.base is not None
        more = wrap(self.run, small)
        whole = SparkFacts(self.run, self.run.nothing, self.base, removed)
        if not len(removed):
            return whole._union(more.assume_disjoint(whole))
        return SparkFacts.of(whole._combine("union", more))

    def _combine(self, operation: str, other: SparkFacts) -> Base:
        assert self.base is not None
        assert other.base is not None
        packed = self.run.tables_of
        return self.base.combine(operation, other.base, packed(self.removed), packed(other.removed))


def wrap(run: SparkRun, facts: Any) -> SparkFacts:
    """Wrap driver facts; above the driver limit, operations on them are jobs."""
    if len(facts) <= run.small:
        return SparkFacts(run, facts)
    if len(facts) <= run.looked_up_limit:  # keeping them costs less than looking them up
        return SparkFacts.of(Base.known(run, facts))
    tables = run.tables_of(facts)
    frame = run.partitioned(tables)
    assert frame is not None, "there are facts"
    return SparkFacts.of(Base.of(run, frame, {key: len(rows) for key, rows in tables.items()}))


def look_up(facts: SparkFacts, wanted: Mapping[Predicate, Mapping[int, Ids]]) -> Any:
    """Fetch the facts of these predicates with any of the ids in any of the columns.

    Raises `TooManyFacts` if they are too many for the driver.
    """
    candidates = facts.small.only(list(wanted))
    if facts.base is not None:
        fetched = facts.base.fetch(wanted, limit=facts.run.looked_up_limit)
        candidates = candidates.union(fetched.difference(facts.removed))
    tables = {}
    for predicate, places in wanted.items():
        rows = candidates.rows(predicate)
        if len(rows):
            chosen = np.zeros(len(rows), bool)
            for column, ids in places.items():
                chosen |= contains(ids, rows[:, column])
            tables[predicate] = rows[chosen]
    return facts.run.embedded.facts(tables)
