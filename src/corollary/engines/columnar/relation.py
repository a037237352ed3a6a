"""Sets of facts of one predicate: immutable sorted runs of 64-bit keys.

A relation is a few disjoint runs and a set of tombstones. Inserting facts adds a run and shares
the others, deleting facts adds tombstones. Runs of similar size are merged, so the cost of an
update is proportional to the change. Indexes belong to runs: they are built on first use and live
as long as their run.

Facts with more than two arguments are stored as pairs, too: `Packing` interns the pair of the first
two arguments as one number and repeats this until two numbers are left.

Runs and relations share this long file: an operation of a relation is a few lines over operations
of its runs, and the two are read side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import pairwise, repeat
from weakref import ReferenceType, ref

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Ids
from corollary.engines.columnar import kernels, rewrite, sets
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.tuning import tuning

EMPTY: Keys = np.zeros(0, np.uint64)
HIGH, NONE = np.uint64(32), np.uint64(0)
LOW = np.uint64(2**32 - 1)


class Packing:
    """Convert between columns of ids and keys, for facts of any arity."""

    def __init__(self) -> None:
        self._table = np.full(1 << 10, -1, np.int64)
        self._known: Keys = np.zeros(1 << 9, np.uint64)
        self._count = 0

    def pack(self, columns: Sequence[Ids], rows: int) -> Keys:
        """Pack each row into a key; equal rows have equal keys."""
        if not columns:
            return np.zeros(rows, np.uint64)
        if len(columns) == 1:
            return columns[0].astype(np.uint64, copy=False)
        first = columns[0]
        for column in columns[1:-1]:
            first = self._number(kernels.pack(first, column))
        return kernels.pack(np.ascontiguousarray(first), np.ascontiguousarray(columns[-1]))

    def unpack(self, keys: Keys, arity: int) -> list[Ids]:
        """Unpack keys into columns."""
        if arity == 0:
            return []
        if arity == 1:
            return [keys.astype(np.uint32)]
        columns: list[Ids] = []
        while True:
            high, low = kernels.halves(keys)
            columns.insert(0, low)
            arity -= 1
            if arity == 1:
                return [high, *columns]
            keys = self._known[high]

    def _number(self, keys: Keys) -> Ids:
        room = self._count + len(keys)
        if room > len(self._known):
            size = 1 << (2 * room - 1).bit_length()
            known = np.zeros(size // 2, np.uint64)
            known[: self._count] = self._known[: self._count]
            self._known = known
            self._table = np.full(size, -1, np.int64)
            numbers = np.empty(self._count, np.uint32)
            kernels.intern(self._table, known.copy(), 0, known[: self._count], numbers)
        ids = np.empty(len(keys), np.uint32)
        self._count = kernels.intern(self._table, self._known, self._count, keys, ids)
        return ids


class Run:
    """A sorted, duplicate-free array of keys and its indexes."""

    # Built on demand; two threads may build the same one, and either result is valid. They are
    # class attributes first: most runs of an update hold few keys and are short-lived.
    _transposed: Run | None = None
    _transpose: Callable[[], Keys] | None = None  # computes it from an older index
    _subjects: Run | None = None
    _objects: Run | None = None
    _offsets: npt.NDArray[np.int64] | None = None
    _bitmap: Keys | None = None
    _columns: list[Ids] | None = None
    _largest = -1
    _by: dict[tuple[int, ...], tuple[Run, npt.NDArray[np.int64]]] | None = None
    _rewrite: tuple[Keys, Keys, ReferenceType[Run]] | None = None
    _rewritten_from: tuple[ReferenceType[Keys], ReferenceType[Keys]] | None = None

    def __init__(self, keys: Keys) -> None:
        self.keys = keys

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def transposed(self) -> Run:
        """The pairs with the two columns exchanged."""
        if self._transposed is None:
            # Keys that were added or removed are merged into an existing index: this is cheaper
            # than sorting, and free if the index is never read.
            compute, self._transpose = self._transpose, None
            run = Run(compute() if compute is not None else sets.transpose(self.keys))
            run._transposed = self
            self._transposed = run
        return self._transposed

    @property
    def has_transposed(self) -> bool:
        """Whether the pairs are indexed by object, or are so few that this takes no time."""
        return self._transposed is not None or len(self) <= tuning.transposed_pairs_limit

    @property
    def subjects(self) -> Run:
        """The subjects of the pairs."""
        if self._subjects is None:
            self._subjects = Run(sets.unique(self.keys, HIGH))
        return self._subjects

    @property
    def objects(self) -> Run:
        """The objects of the pairs."""
        if self._transposed is not None:
            return self._transposed.subjects
        if self._objects is None:
            largest = sets.largest(self.keys)
            if largest > tuning.object_bitmap_sparsity_limit * len(self):
                self._objects = Run(as_set(self.keys & LOW))
            else:
                self._objects = Run(sets.numbers([self.keys], largest) if len(self) else EMPTY)
        return self._objects

    @property
    def largest(self) -> int:
        """The largest subject or object of the pairs, 0 without pairs."""
        if self._largest < 0:
            self._largest = largest_node(self.keys)
        return self._largest

    @property
    def known_subjects(self) -> Run | None:
        """The subjects, if they have been computed."""
        return self._subjects

    @property
    def known_objects(self) -> Run | None:
        """The objects, if they have been computed."""
        if self._objects is None and self._transposed is not None:
            return self._transposed._subjects
        return self._objects

    def restricted_to(self, keys: Keys) -> Run:
        """Return a subset of the run; the run itself, with its indexes, if `keys` are all of it."""
        return self if len(keys) == len(self) else Run(keys)

    def cached_rewrite(self, removed: Keys, added: Keys) -> Run | None:
        """Return the cached result of removing and adding these keys, if there is one."""
        if self._rewrite is None:
            return None
        lost, gained, result = self._rewrite
        same = np.array_equal(lost, removed) and np.array_equal(gained, added)
        return result() if same else None

    def cache_rewrite(self, lost: Keys, gained: Keys, result: Run) -> None:
        """Cache a rewrite of this run; the reference to the result is weak."""
        self._rewrite = (lost, gained, ref(result))
        result._rewritten_from = (ref(lost), ref(gained))

    def contains_all_or_none(self, keys: Keys) -> bool | None:
        """Test whether the run contains all of the keys (True) or none (False); None if unknown.

        Known for the arrays of a cached rewrite, compared by identity.
        """
        if self._rewrite is not None:
            lost, gained, _ = self._rewrite
            if keys is lost or keys is gained:
                return keys is lost
        if self._rewritten_from is not None:
            old_lost, old_gained = (array() for array in self._rewritten_from)
            if keys is old_lost or keys is old_gained:
                return keys is old_gained
        return None

    def sliced_by_subject(self, parts: int) -> list[Run]:
        """Split the run into parts of about equal length that share no subject."""
        cuts = {0, len(self)}
        for place in np.linspace(0, len(self), parts + 1).astype(np.int64)[1:-1].tolist():
            head = self.keys[place] >> HIGH << HIGH
            cuts.add(int(np.searchsorted(self.keys, head)))
        return [Run(self.keys[a:b]) for a, b in pairwise(sorted(cuts))]

    def sliced_at(self, bounds: Keys) -> list[Run]:
        """Split the run before each of the sorted `bounds`; the parts have no indexes."""
        places = np.searchsorted(self.keys, bounds).tolist()
        return [Run(self.keys[a:b]) for a, b in pairwise((0, *places, len(self)))]

    def offsets(self) -> npt.NDArray[np.int64]:
        """Return the offset of the first pair of each subject."""
        if self._offsets is None:
            size = int(self.keys[-1] >> HIGH) + 1 if len(self) else 0
            self._offsets = kernels.offsets(self.keys, HIGH, size)
        return self._offsets

    def bits(self, probes: int) -> Keys | None:
        """Return the run as a bitmap, if that pays off for this many probes."""
        if self._bitmap is None and self._worth_indexing(probes, NONE, tuning.bitmap_index_ratio):
            self._bitmap = sets.bitmap(self.keys)
        return self._bitmap

    def contains(self, probes: Keys | Ids, mask: npt.NDArray[np.bool_]) -> None:
        """Set mask[i] where probes[i] is in the run."""
        bits = self.bits(len(probes))
        if bits is not None:
            sets.look_up(probes, bits, mask)
        else:
            kernels.member(probes, self.keys, mask)

    def ranges(
        self, probes: Keys, shift: np.uint64
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """For each probe the range of keys that equal it after shifting."""
        low = np.empty(len(probes), np.int64)
        high = np.empty(len(probes), np.int64)
        if shift and (
            self._offsets is not None
            or self._worth_indexing(len(probes), HIGH, tuning.offset_index_ratio)
        ):
            kernels.ranges_by_offsets(self.offsets(), probes, low, high)
        else:
            kernels.ranges(self.keys, shift, probes, low, high)
        return low, high

    def _worth_indexing(self, probes: int, shift: np.uint64, ratio: int) -> bool:
        return (
            probes > tuning.index_probes_limit
            and len(self) > 0
            and probes * ratio > len(self)
            and int(self.keys[-1] >> shift) < tuning.index_sparsity_limit * len(self)
        )

    def columns(self, arity: int, packing: Packing) -> list[Ids]:
        """Unpack the facts into columns."""
        if self._columns is None:
            columns = packing.unpack(self.keys, arity)
            if arity <= 2:
                return columns
            self._columns = columns
        return self._columns

    def by(
        self, positions: tuple[int, ...], arity: int, packing: Packing
    ) -> tuple[Run, npt.NDArray[np.int64]]:
        """Index facts with more than two arguments: sorted keys of some columns, and their rows.

        The keys are a run with duplicates: only its `ranges` are valid.
        """
        if self._by is None:
            self._by = {}
        index = self._by.get(positions)
        if index is None:
            columns = self.columns(arity, packing)
            keys = packing.pack([columns[p] for p in positions], len(self))
            order = np.argsort(keys, kind="stable")
            index = self._by[positions] = (Run(keys[order]), order)
        return index


class Relation:
    """The facts of one predicate."""

    __slots__ = ("_size", "arity", "runs", "tombstones")

    def __init__(
        self, arity: int, runs: tuple[Run, ...] = (), tombstones: tuple[Run, ...] = ()
    ) -> None:
        self.arity = arity
        self.runs = runs
        self.tombstones = tombstones  # disjoint runs; each key is in one of `runs`
        self._size = -1

    @classmethod
    def of(cls, arity: int, keys: Keys) -> Relation:
        """Create a relation from sorted, duplicate-free keys."""
        return cls(arity, (Run(keys),) if len(keys) else ())

    @classmethod
    def of_run(cls, arity: int, run: Run) -> Relation:
        """Create a relation from a run."""
        return cls(arity, (run,) if len(run) else ())

    @classmethod
    def of_any(cls, arity: int, keys: Keys) -> Relation:
        """Create a relation from unsorted keys, which may have duplicates."""
        return cls.of(arity, as_set(keys))

    def __len__(self) -> int:
        if self._size < 0:
            self._size = sum(map(len, self.runs)) - sum(map(len, self.tombstones))
        return self._size

    def keys(self) -> Keys:
        """Return all facts in one sorted array."""
        if len(self.runs) == 1 and not self.tombstones:
            return self.runs[0].keys
        return self.run().keys

    def run(self) -> Run:
        """Return all facts in one run."""
        if len(self.runs) == 1 and not self.tombstones:
            return self.runs[0]
        keys = merge_keys(self.runs)
        return Run(
            sets.select(keys, merge_keys(self.tombstones), False) if self.tombstones else keys
        )

    def live_runs(self) -> tuple[Run, ...]:
        """Return the facts as runs without tombstones."""
        return (self.run(),) if self.tombstones else self.runs

    def sliced(self, parts: int) -> list[Relation]:
        """Split the relation into at most `parts` key ranges of about equal size.

        Runs and tombstones are split at the same keys: a slice has only its own tombstones.
        """
        longest = max((run.keys for run in self.runs), key=len, default=EMPTY)
        places = np.linspace(0, len(longest), parts + 1).astype(np.int64)[1:-1]
        bounds = longest[places] if len(longest) else EMPTY
        runs = zip(*(run.sliced_at(bounds) for run in self.runs), strict=True)
        tombstones = (
            zip(*(run.sliced_at(bounds) for run in self.tombstones), strict=True)
            if self.tombstones
            else repeat(())
        )
        slices = (
            Relation(self.arity, _nonempty(part), _nonempty(dead))
            for part, dead in zip(runs, tombstones, strict=False)
        )
        return [part for part in slices if len(part)]

    def contains(self, probes: Keys | Ids) -> npt.NDArray[np.bool_]:
        """Test which probes are facts; ids are keys of unary facts."""
        mask = np.zeros(len(probes), bool)
        for run in self.runs:
            if len(probes) <= tuning.probe_keys_limit:
                kernels.member(probes, run.keys, mask)
            else:
                run.contains(probes, mask)
        if self.tombstones and np.count_nonzero(mask):
            mask &= ~self.is_tombstone(probes)
        return mask

    def bits(self, probes: int) -> Keys | None:
        """Unary facts as a bitmap, if they are in one run and it pays off."""
        if len(self.runs) != 1 or self.tombstones:
            return None
        return self.runs[0].bits(probes)

    def is_tombstone(self, probes: Keys | Ids) -> npt.NDArray[np.bool_]:
        """Test which probes are tombstones."""
        mask = np.zeros(len(probes), bool)
        for run in self.tombstones:
            run.contains(probes, mask)
        return mask

    def union(self, other: Relation, *, disjoint: bool = False) -> Relation:
        """Unite two relations; `disjoint` ones need no membership tests."""
        if not self.runs or self is other:
            return other
        if not other.runs:
            return self
        if len(other) > len(self):
            self, other = other, self
        if disjoint and not self.tombstones:
            return Relation(self.arity, _consolidate((*self.runs, other.run())))
        added = self.missing(other.keys())
        if not len(added):
            return self
        tombstones, added = self._revive(added)
        runs = _consolidate((*self.runs, Run(added))) if len(added) else self.runs
        return Relation(self.arity, runs, tombstones)

    def _revive(self, keys: Keys) -> tuple[tuple[Run, ...], Keys]:
        """Return the tombstones of other keys, and the keys without one: these are in no run.

        Precondition, not checked: no key is a fact.
        """
        if not self.tombstones or not (mask := self.is_tombstone(keys)).any():
            return self.tombstones, keys
        rest = (Run(sets.select(run.keys, keys[mask], False)) for run in self.tombstones)
        return _nonempty(rest), keys[~mask]

    def missing(self, keys: Keys) -> Keys:
        """Anti-join: the keys that are not facts, in order."""
        if self.tombstones or len(keys) <= tuning.probe_keys_limit:
            known = self.contains(keys)
            return keys[~known] if np.count_nonzero(known) else keys
        for run in self.runs:
            keys = sets.select(keys, run.keys, False)
        return keys

    def appended(self, other: Relation) -> Relation:
        """Add new facts without merging runs (`consolidated` does that)."""
        if self.tombstones or other.tombstones:
            return self.union(other)  # new facts may revive tombstones
        return Relation(self.arity, (*self.runs, *other.runs))

    def consolidated(self) -> Relation:
        """Merge runs of similar size."""
        return Relation(self.arity, _consolidate(self.runs), self.tombstones)

    def difference(self, other: Relation) -> Relation:
        """Remove the facts of `other`."""
        if self is other or not self.runs:
            return Relation(self.arity)
        if not other.runs:
            return self
        if not other.tombstones and not self.tombstones:
            shared = {id(run) for run in other.runs}
            if all(any(run is mine for mine in self.runs) for run in other.runs):
                return Relation(self.arity, tuple(r for r in self.runs if id(r) not in shared))
        if len(self.runs) == len(other.runs) == 1 and not self.tombstones and not other.tombstones:
            all_or_none = other.runs[0].contains_all_or_none(self.runs[0].keys)
            if all_or_none is not None:
                return Relation(self.arity) if all_or_none else self
        if len(self) <= tuning.tombstone_ratio * len(other) and (
            len(self) < len(other) or all(run._transposed is None for run in self.runs)
        ):
            if len(self.runs) > 1 and not self.tombstones and not other.tombstones:
                # run by run: merging them would cost more
                rest = (run.restricted_to(other.missing(run.keys)) for run in self.runs)
                return Relation(self.arity, _nonempty(rest))
            return self._restricted_to(other.missing(self.keys()))
        removed = other.keys()
        removed = removed[self.contains(removed)]
        if not len(removed):
            return self
        tombstones = _consolidate((*self.tombstones, Run(removed)), first=0)
        return self._with(self.runs, tombstones)

    def _with(self, runs: tuple[Run, ...], tombstones: tuple[Run, ...]) -> Relation:
        """Create a relation with these runs, compacted if it has many tombstones."""
        dead = sum(map(len, tombstones))
        if dead and tuning.tombstone_ratio * dead >= sum(map(len, runs)):
            return Relation(self.arity, _compact(runs, tombstones))
        return Relation(self.arity, runs, tombstones)

    def changed(self, removed: Keys, added: Keys) -> tuple[Relation, Keys, Keys]:
        """Remove and add keys; returns the relation and the keys lost and gained.

        Keys in both arrays are added.
        """
        if self._is_short_change(removed, added):
            return self._changed_short(removed, added)
        if self._needs_rewrite(removed, added):
            return self._rewritten(removed, added)
        if len(removed):
            removed = removed[self.contains(removed)]
            if len(removed) and len(added):
                removed = sets.select(removed, added, False)
        if len(added):
            added = self.missing(added)
        return self.replaced(removed, added), removed, added

    def replaced(self, removed: Keys, added: Keys) -> Relation:
        """Remove and add keys.

        Precondition, not checked: `removed ⊆ self`, `added ∩ self = ∅`.
        """
        if self._is_short_change(removed, added):
            return self._changed_short(removed, added)[0]
        if self._needs_rewrite(removed, added):
            return self._rewritten(removed, added)[0]
        if not len(removed) and not len(added):
            return self
        runs, (tombstones, added) = self.runs, self._revive(added)
        if len(added):
            runs = _consolidate((*runs, Run(added)))
        if len(removed):
            tombstones = _consolidate((*tombstones, Run(removed)), first=0)
        return self._with(runs, tombstones)

    def _needs_rewrite(self, removed: Keys, added: Keys) -> bool:
        """Test whether the change is so large that a single run is rewritten."""
        single = len(self.runs) == 1 and not self.tombstones
        return single and tuning.run_merge_ratio * (len(removed) + len(added)) > len(
            self.runs[0].keys
        )

    def _rewritten(self, removed: Keys, added: Keys) -> tuple[Relation, Keys, Keys]:
        """`changed` in one pass over a single run; relations that share it share the result."""
        run = self.runs[0]
        cached = run.cached_rewrite(removed, added)
        if cached is not None:
            return Relation.of_run(self.arity, cached), removed, added
        out = np.empty(len(run) + len(added), np.uint64)
        lost, gained = np.empty(len(removed) + 1, np.uint64), np.empty(len(added), np.uint64)
        size, lost_size, gained_size = rewrite.rewrite_run(
            run.keys, removed, added, out, lost, gained
        )
        if not lost_size and not gained_size:
            return self, EMPTY, EMPTY
        result, lost, gained = Run(out[:size]), lost[:lost_size], gained[:gained_size]
        run.cache_rewrite(lost, gained, result)
        return Relation.of_run(self.arity, result), lost, gained

    def _is_short_change(self, removed: Keys, added: Keys) -> bool:
        """Test whether the change, and everything but the first run, are cheap to rewrite."""
        runs, tombstones, limit = self.runs, self.tombstones, tuning.short_run_keys_limit
        return (
            0 < len(runs) < 3
            and len(tombstones) < 2
            and (len(runs) == 1 or len(runs[1].keys) < limit)
            and (not tombstones or len(tombstones[0].keys) < limit)
            and len(removed) < limit
            and len(added) < limit
        )

    def _changed_short(self, removed: Keys, added: Keys) -> tuple[Relation, Keys, Keys]:
        """`changed` in one call, for an `_is_short_change`."""
        first = self.runs[0]
        last = self.runs[1].keys if len(self.runs) > 1 else EMPTY
        tombstones = self.tombstones[0].keys if self.tombstones else EMPTY
        last_out = np.empty(len(last) + len(added), np.uint64)
        dead_out = np.empty(len(tombstones) + len(removed), np.uint64)
        lost, gained = np.empty(len(removed), np.uint64), np.empty(len(added), np.uint64)
        last_size, dead_size, lost_size, gained_size = rewrite.rewrite_short(
            first.keys, last, tombstones, removed, added, last_out, dead_out, lost, gained
        )
        if not lost_size and not gained_size:
            return self, EMPTY, EMPTY
        runs: tuple[Run, ...] = self.runs[:1]
        if last_size:
            runs = _consolidate((first, Run(last_out[:last_size])))
        dead_runs = (Run(dead_out[:dead_size]),) if dead_size else ()
        return self._with(runs, dead_runs), lost[:lost_size], gained[:gained_size]

    def intersection(self, other: Relation) -> Relation:
        """Intersect two relations."""
        if len(other) < len(self):
            self, other = other, self
        keys = self.keys()
        are_many = len(keys) > tuning.probe_keys_limit
        if are_many and len(other.runs) == 1 and not other.tombstones:
            all_or_none = other.runs[0].contains_all_or_none(keys)
            if all_or_none is not None:
                return self if all_or_none else Relation(self.arity)
            return self._restricted_to(sets.select(keys, other.runs[0].keys, True))
        return self._restricted_to(keys[other.contains(keys)])

    def _restricted_to(self, keys: Keys) -> Relation:
        """Select a subset of facts; the relation itself, with its indexes, if `keys` are all."""
        return self if len(keys) == len(self) else Relation.of(self.arity, keys)


def _nonempty(runs: Iterable[Run]) -> tuple[Run, ...]:
    return tuple(run for run in runs if len(run))


def largest_node(keys: Keys) -> int:
    """Return the largest subject or object of sorted pairs, 0 without pairs."""
    return max(int(keys[-1] >> HIGH), kernels.largest_low(keys)) if len(keys) else 0


def nodes_of(runs: Sequence[Run]) -> Ids:
    """Return the subjects and objects of the pairs of runs, sorted."""
    marks = np.zeros(1 + max((run.largest for run in runs), default=0), np.uint8)
    for run in runs:
        kernels.mark(marks, run.keys, NONE)
        kernels.mark(marks, run.keys, HIGH)
    return np.flatnonzero(marks).astype(np.uint32)


def as_set(keys: Keys) -> Keys:
    """Sort keys and remove duplicates."""
    order = kernels.order(keys)
    if order < 0:
        keys = np.sort(keys)
    return keys if order == 1 else sets.unique(keys)


def _consolidate(runs: tuple[Run, ...], *, first: int = 1) -> tuple[Run, ...]:
    """Merge runs of similar size, and short ones; the first `first` runs keep their indexes."""
    while len(runs) > 1 and (
        len(runs[-2]) < tuning.run_merge_ratio * len(runs[-1])
        or (len(runs) > 1 + first and len(runs[-2]) < tuning.short_run_keys_limit)
    ):
        runs = (*runs[:-2], merge_runs(runs[-2], runs[-1]))
    return runs


def merge_runs(larger: Run, smaller: Run) -> Run:
    """Merge two disjoint runs; an index of the larger one is carried over."""
    run = Run(sets.merge(larger.keys, smaller.keys))
    index = larger._transposed
    if index is not None:
        run._transpose = lambda: sets.merge(index.keys, smaller.transposed.keys)
    return run


def merge_keys(runs: Sequence[Run]) -> Keys:
    """Merge the keys of disjoint runs."""
    keys = EMPTY
    for run in reversed(runs):
        keys = sets.merge(keys, run.keys) if len(keys) else run.keys
    return keys


def _compact(runs: Sequence[Run], tombstones: Sequence[Run]) -> tuple[Run, ...]:
    """Merge all runs into one without the tombstones."""
    run = reduce(merge_runs, runs)
    removed = Run(merge_keys(tombstones))
    live = Run(sets.select(run.keys, removed.keys, False))
    if not len(live):
        return ()
    index = run._transposed
    if index is not None:
        live._transpose = lambda: sets.select(index.keys, removed.transposed.keys, False)
    return (live,)
