"""Sets of facts of one predicate: immutable sorted runs of 64-bit keys.

A relation is a few disjoint runs and a set of dead keys (tombstones). Adding facts adds a run and
shares the others, removing facts adds dead keys; runs are merged when they are of similar size, so
that an update costs what it touches. Indexes belong to runs and are made when first asked for, so
that they survive as long as their run.

Facts with more than two arguments are pairs as well: `Packing` numbers the pairs of their first
arguments, again and again, until two numbers are left.

Runs and relations share this file although it is long: an operation of a relation is a few lines
over operations of its runs, and the two are read side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import pairwise, repeat
from weakref import ReferenceType, ref

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Ids
from corollary.engines.columnar import changing, kernels, sets
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.tuning import tuning

EMPTY: Keys = np.zeros(0, np.uint64)
HIGH, NONE = np.uint64(32), np.uint64(0)
LOW = np.uint64(2**32 - 1)


class Packing:
    """Columns of ids ↔ keys, for facts of any number of arguments."""

    def __init__(self) -> None:
        self._table = np.full(1 << 10, -1, np.int64)
        self._known: Keys = np.zeros(1 << 9, np.uint64)
        self._count = 0

    def pack(self, columns: Sequence[Ids], rows: int) -> Keys:
        """One key for each row; equal rows have equal keys."""
        if not columns:
            return np.zeros(rows, np.uint64)
        if len(columns) == 1:
            return columns[0].astype(np.uint64, copy=False)
        first = columns[0]
        for column in columns[1:-1]:
            first = self._number(kernels.pack(first, column))
        return kernels.pack(np.ascontiguousarray(first), np.ascontiguousarray(columns[-1]))

    def unpack(self, keys: Keys, arity: int) -> list[Ids]:
        """The columns of keys."""
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
            again = np.empty(self._count, np.uint32)
            kernels.intern(self._table, known.copy(), 0, known[: self._count], again)
        ids = np.empty(len(keys), np.uint32)
        self._count = kernels.intern(self._table, self._known, self._count, keys, ids)
        return ids


class Run:
    """A sorted, duplicate-free array of keys with the indexes made for it."""

    # Made on demand. Two threads may both make one; either result serves. They are no attributes
    # of every run from the beginning: most runs of an update are a few keys, and soon gone.
    _swapped: Run | None = None
    _later: Callable[[], Keys] | None = None  # another way to make it
    _subjects: Run | None = None
    _objects: Run | None = None
    _offsets: npt.NDArray[np.int64] | None = None
    _bitmap: Keys | None = None
    _columns: list[Ids] | None = None
    _largest = -1
    _by: dict[tuple[int, ...], tuple[Run, npt.NDArray[np.int64]]] | None = None
    _became: tuple[Keys, Keys, ReferenceType[Run]] | None = None
    _was: tuple[ReferenceType[Keys], ReferenceType[Keys]] | None = None

    def __init__(self, keys: Keys) -> None:
        self.keys = keys

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def swapped(self) -> Run:
        """The pairs with subject and object exchanged."""
        if self._swapped is None:
            # Keys that came or went are put into, or taken from, an index that was there before:
            # that costs less than sorting, and nothing if nobody asks.
            later, self._later = self._later, None
            run = Run(later() if later is not None else sets.swap(self.keys))
            run._swapped = self
            self._swapped = run
        return self._swapped

    @property
    def subjects(self) -> Run:
        """The subjects of the pairs."""
        if self._subjects is None:
            self._subjects = Run(sets.unique(self.keys, HIGH))
        return self._subjects

    @property
    def objects(self) -> Run:
        """The objects of the pairs."""
        if self._swapped is not None:
            return self._swapped.subjects
        if self._objects is None:
            largest = sets.largest(self.keys)
            if largest > tuning.object_bitmap_sparsity_limit * len(self):
                self._objects = Run(as_set(self.keys & LOW))
            else:
                self._objects = Run(sets.numbers([self.keys], largest) if len(self) else EMPTY)
        return self._objects

    @property
    def largest(self) -> int:
        """The largest subject or object of the pairs, 0 if there is none."""
        if self._largest < 0:
            self._largest = largest_node(self.keys)
        return self._largest

    @property
    def known_subjects(self) -> Run | None:
        """The subjects, if somebody has asked for them."""
        return self._subjects

    @property
    def known_objects(self) -> Run | None:
        """The objects, if somebody has asked for them."""
        if self._objects is None and self._swapped is not None:
            return self._swapped._subjects
        return self._objects

    def with_left(self, keys: Keys) -> Run:
        """What is left of it: the run itself, with its indexes, if nothing has gone."""
        return self if len(keys) == len(self) else Run(keys)

    def rewritten(self, gone: Keys, new: Keys) -> Run | None:
        """What became of it without keys that it has and with keys that it has not, if known."""
        if self._became is None:
            return None
        went, came, result = self._became
        same = np.array_equal(went, gone) and np.array_equal(came, new)
        return result() if same else None

    def remember(self, went: Keys, came: Keys, result: Run) -> None:
        """What became of it; whoever keeps this run does not keep that one."""
        self._became = (went, came, ref(result))
        result._was = (ref(went), ref(came))

    def told(self, keys: Keys) -> bool | None:
        """Whether it has all of these keys, or none, if that was found out: when they changed."""
        if self._became is not None:
            went, came, _ = self._became
            if keys is went or keys is came:
                return keys is went
        if self._was is not None:
            before, since = (found() for found in self._was)
            if keys is before or keys is since:
                return keys is since
        return None

    def sliced_by_subject(self, parts: int) -> list[Run]:
        """The run cut into parts of about equal length that share no subject."""
        cuts = {0, len(self)}
        for place in np.linspace(0, len(self), parts + 1).astype(np.int64)[1:-1].tolist():
            head = self.keys[place] >> HIGH << HIGH
            cuts.add(int(np.searchsorted(self.keys, head)))
        return [Run(self.keys[a:b]) for a, b in pairwise(sorted(cuts))]

    def sliced_at(self, bounds: Keys) -> list[Run]:
        """The run cut before each of some keys in ascending order, without its indexes."""
        places = np.searchsorted(self.keys, bounds).tolist()
        return [Run(self.keys[a:b]) for a, b in pairwise((0, *places, len(self)))]

    def offsets(self) -> npt.NDArray[np.int64]:
        """Where the pairs of each subject begin."""
        if self._offsets is None:
            size = int(self.keys[-1] >> HIGH) + 1 if len(self) else 0
            self._offsets = kernels.offsets(self.keys, HIGH, size)
        return self._offsets

    def bits(self, probes: int) -> Keys | None:
        """The run as bits, if that pays for so many probes."""
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
        """For each probe the stretch of keys that equal it after shifting."""
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

    def _worth_indexing(self, probes: int, shift: np.uint64, fewer: int) -> bool:
        return (
            probes > tuning.index_probes_limit
            and len(self) > 0
            and probes * fewer > len(self)
            and int(self.keys[-1] >> shift) < tuning.index_sparsity_limit * len(self)
        )

    def columns(self, arity: int, packing: Packing) -> list[Ids]:
        """The facts as columns."""
        if self._columns is None:
            columns = packing.unpack(self.keys, arity)
            if arity <= 2:
                return columns
            self._columns = columns
        return self._columns

    def by(
        self, positions: tuple[int, ...], arity: int, packing: Packing
    ) -> tuple[Run, npt.NDArray[np.int64]]:
        """For facts with more than two arguments: the keys of some columns in order, and the rows.

        The first part is a run with repetitions: only its `ranges` are used.
        """
        if self._by is None:
            self._by = {}
        found = self._by.get(positions)
        if found is None:
            columns = self.columns(arity, packing)
            keys = packing.pack([columns[p] for p in positions], len(self))
            order = np.argsort(keys, kind="stable")
            found = self._by[positions] = (Run(keys[order]), order)
        return found


class Relation:
    """The facts of one predicate."""

    __slots__ = ("_size", "arity", "dead", "runs")

    def __init__(self, arity: int, runs: tuple[Run, ...] = (), dead: tuple[Run, ...] = ()) -> None:
        self.arity = arity
        self.runs = runs
        self.dead = dead  # disjoint, like the runs, and each key is in one of these
        self._size = -1

    @classmethod
    def of(cls, arity: int, keys: Keys) -> Relation:
        """A relation from sorted keys without repetitions."""
        return cls(arity, (Run(keys),) if len(keys) else ())

    @classmethod
    def of_run(cls, arity: int, run: Run) -> Relation:
        """A relation from a run."""
        return cls(arity, (run,) if len(run) else ())

    @classmethod
    def of_any(cls, arity: int, keys: Keys) -> Relation:
        """A relation from keys in any order, repetitions allowed."""
        return cls.of(arity, as_set(keys))

    def __len__(self) -> int:
        if self._size < 0:
            self._size = sum(map(len, self.runs)) - sum(map(len, self.dead))
        return self._size

    def keys(self) -> Keys:
        """All facts in one sorted array."""
        if len(self.runs) == 1 and not self.dead:
            return self.runs[0].keys
        return self.run().keys

    def run(self) -> Run:
        """All facts in one run."""
        if len(self.runs) == 1 and not self.dead:
            return self.runs[0]
        keys = merged_keys(self.runs)
        return Run(sets.select(keys, merged_keys(self.dead), False) if self.dead else keys)

    def alive(self) -> tuple[Run, ...]:
        """The facts in runs that hold no dead keys."""
        return (self.run(),) if self.dead else self.runs

    def sliced(self, parts: int) -> list[Relation]:
        """The relation cut into ranges of keys, at most as many as asked, of about equal size.

        Runs and dead keys are cut at the same keys: every slice has its own dead keys only.
        """
        longest = max((run.keys for run in self.runs), key=len, default=EMPTY)
        places = np.linspace(0, len(longest), parts + 1).astype(np.int64)[1:-1]
        bounds = longest[places] if len(longest) else EMPTY
        runs = zip(*(run.sliced_at(bounds) for run in self.runs), strict=True)
        dead = (
            zip(*(run.sliced_at(bounds) for run in self.dead), strict=True)
            if self.dead
            else repeat(())
        )
        slices = (
            Relation(self.arity, _nonempty(alive), _nonempty(gone))
            for alive, gone in zip(runs, dead, strict=False)
        )
        return [part for part in slices if len(part)]

    def contains(self, probes: Keys | Ids) -> npt.NDArray[np.bool_]:
        """Which probes are facts; ids are keys of facts with one argument."""
        mask = np.zeros(len(probes), bool)
        for run in self.runs:
            if len(probes) <= tuning.probe_keys_limit:
                kernels.member(probes, run.keys, mask)
            else:
                run.contains(probes, mask)
        if self.dead and np.count_nonzero(mask):
            mask &= ~self.died(probes)
        return mask

    def bits(self, probes: int) -> Keys | None:
        """Facts with one argument as bits, if they are in one run, and that pays."""
        if len(self.runs) != 1 or self.dead:
            return None
        return self.runs[0].bits(probes)

    def died(self, probes: Keys | Ids) -> npt.NDArray[np.bool_]:
        """Which probes are dead keys."""
        mask = np.zeros(len(probes), bool)
        for run in self.dead:
            run.contains(probes, mask)
        return mask

    def union(self, other: Relation, *, apart: bool = False) -> Relation:
        """The facts of both; if they are known to be apart, nothing is looked for in the other."""
        if not self.runs or self is other:
            return other
        if not other.runs:
            return self
        if len(other) > len(self):
            self, other = other, self
        dead = self.dead
        if apart and not dead:
            return Relation(self.arity, _settled((*self.runs, other.run())))
        new = self.missing(other.keys())
        if dead and len(new):
            # Keys that are dead in a run come back to life; what is left is new to every run.
            mask = self.died(new)
            if mask.any():
                revived, new = new[mask], new[~mask]
                kept = (Run(sets.select(run.keys, revived, False)) for run in dead)
                dead = tuple(run for run in kept if len(run))
        if not len(new):
            return self if dead is self.dead else Relation(self.arity, self.runs, dead)
        return Relation(self.arity, _settled((*self.runs, Run(new))), dead)

    def missing(self, keys: Keys) -> Keys:
        """Those of the keys that are not facts, in order."""
        if self.dead or len(keys) <= tuning.probe_keys_limit:
            known = self.contains(keys)
            return keys[~known] if np.count_nonzero(known) else keys
        for run in self.runs:
            keys = sets.select(keys, run.keys, False)
        return keys

    def appended(self, other: Relation) -> Relation:
        """With new facts, nothing merged yet (`settled` does that)."""
        if self.dead or other.dead:
            return self.union(other)  # what was removed may come back
        return Relation(self.arity, (*self.runs, *other.runs))

    def settled(self) -> Relation:
        """The same facts with runs of similar size merged."""
        return Relation(self.arity, _settled(self.runs), self.dead)

    def difference(self, other: Relation) -> Relation:
        """The facts that the other does not have."""
        if self is other or not self.runs:
            return Relation(self.arity)
        if not other.runs:
            return self
        if not other.dead and not self.dead:
            shared = {id(run) for run in other.runs}
            if all(any(run is mine for mine in self.runs) for run in other.runs):
                return Relation(self.arity, tuple(r for r in self.runs if id(r) not in shared))
        if len(self.runs) == len(other.runs) == 1 and not self.dead and not other.dead:
            told = other.runs[0].told(self.runs[0].keys)
            if told is not None:
                return Relation(self.arity) if told else self
        if len(self) <= tuning.tombstone_ratio * len(other) and (
            len(self) < len(other) or all(run._swapped is None for run in self.runs)
        ):
            if len(self.runs) > 1 and not self.dead and not other.dead:
                # run by run: merging them would cost more
                kept = (run.with_left(other.missing(run.keys)) for run in self.runs)
                return Relation(self.arity, tuple(run for run in kept if len(run)))
            return self._with_left(other.missing(self.keys()))
        gone = other.keys()
        gone = gone[self.contains(gone)]
        if not len(gone):
            return self
        dead = _settled((*self.dead, Run(gone)), first=0)
        if tuning.tombstone_ratio * sum(map(len, dead)) >= sum(map(len, self.runs)):
            return Relation(self.arity, _compacted(self.runs, dead))
        return Relation(self.arity, self.runs, dead)

    def changed(self, gone: Keys, new: Keys) -> tuple[Relation, Keys, Keys]:
        """Without some keys and with others, and by what that differs; keys in both are new."""
        if (
            self._is_short
            and len(gone) < tuning.short_run_keys_limit
            and len(new) < tuning.short_run_keys_limit
        ):
            return self._changed(gone, new)
        if self._is_rewritten(gone, new):
            return self._rewritten(gone, new)
        if len(gone):
            gone = gone[self.contains(gone)]
            if len(gone) and len(new):
                gone = sets.select(gone, new, False)
        if len(new):
            new = self.missing(new)
        return self.replaced(gone, new), gone, new

    def replaced(self, gone: Keys, new: Keys) -> Relation:
        """Without keys that are facts, and with keys that are none."""
        if (
            self._is_short
            and len(gone) < tuning.short_run_keys_limit
            and len(new) < tuning.short_run_keys_limit
        ):
            return self._changed(gone, new)[0]
        if self._is_rewritten(gone, new):
            return self._rewritten(gone, new)[0]
        runs, dead = self.runs, self.dead
        if len(new):
            if dead:
                # Keys that are dead in a run come back to life; the others are new to every run.
                mask = self.died(new)
                if np.count_nonzero(mask):
                    revived, new = new[mask], new[~mask]
                    kept = (Run(sets.select(run.keys, revived, False)) for run in dead)
                    dead = tuple(run for run in kept if len(run))
            if len(new):
                runs = _settled((*runs, Run(new)))
        if len(gone):
            dead = _settled((*dead, Run(gone)), first=0)
            if tuning.tombstone_ratio * sum(map(len, dead)) >= sum(map(len, runs)):
                runs, dead = _compacted(runs, dead), ()
        if runs is self.runs and dead is self.dead:
            return self
        return Relation(self.arity, runs, dead)

    def _is_rewritten(self, gone: Keys, new: Keys) -> bool:
        """Whether so much changes that a single run is written again."""
        alone = len(self.runs) == 1 and not self.dead
        return alone and tuning.run_merge_ratio * (len(gone) + len(new)) > len(self.runs[0].keys)

    def _rewritten(self, gone: Keys, new: Keys) -> tuple[Relation, Keys, Keys]:
        """As `changed`, in one pass; relations that share a run share what becomes of it."""
        run = self.runs[0]
        known = run.rewritten(gone, new)
        if known is not None:
            return Relation.of_run(self.arity, known), gone, new
        out = np.empty(len(run) + len(new), np.uint64)
        went, came = np.empty(len(gone) + 1, np.uint64), np.empty(len(new), np.uint64)
        size, lost, gained = changing.change_many(run.keys, gone, new, out, went, came)
        if not lost and not gained:
            return self, EMPTY, EMPTY
        result, went, came = Run(out[:size]), went[:lost], came[:gained]
        run.remember(went, came, result)
        return Relation.of_run(self.arity, result), went, came

    @property
    def _is_short(self) -> bool:
        """Whether all but the first run takes no time to write again."""
        runs, dead = self.runs, self.dead
        return (
            0 < len(runs) < 3
            and len(dead) < 2
            and (len(runs) == 1 or len(runs[1].keys) < tuning.short_run_keys_limit)
            and (not dead or len(dead[0].keys) < tuning.short_run_keys_limit)
        )

    def _changed(self, gone: Keys, new: Keys) -> tuple[Relation, Keys, Keys]:
        """As `changed`, at once."""
        first = self.runs[0]
        last = self.runs[1].keys if len(self.runs) > 1 else EMPTY
        dead = self.dead[0].keys if self.dead else EMPTY
        last_out = np.empty(len(last) + len(new), np.uint64)
        dead_out = np.empty(len(dead) + len(gone), np.uint64)
        went, came = np.empty(len(gone), np.uint64), np.empty(len(new), np.uint64)
        lasts, deads, lost, gained = changing.change_few(
            first.keys, last, dead, gone, new, last_out, dead_out, went, came
        )
        if not lost and not gained:
            return self, EMPTY, EMPTY
        runs: tuple[Run, ...] = self.runs[:1]
        tombs: tuple[Run, ...] = ()
        if lasts:
            runs = _settled((first, Run(last_out[:lasts])))
        if deads:
            tombs = (Run(dead_out[:deads]),)
            if tuning.tombstone_ratio * deads >= len(first) + lasts:
                runs, tombs = _compacted(runs, tombs), ()
        return Relation(self.arity, runs, tombs), went[:lost], came[:gained]

    def intersection(self, other: Relation) -> Relation:
        """The facts that both have."""
        if len(other) < len(self):
            self, other = other, self
        keys = self.keys()
        if len(other.runs) == 1 and not other.dead:
            told = other.runs[0].told(keys)
            if told is not None:
                return self if told else Relation(self.arity)
            return self._with_left(sets.select(keys, other.runs[0].keys, True))
        return self._with_left(keys[other.contains(keys)])

    def _with_left(self, keys: Keys) -> Relation:
        """What is left of it: the relation itself, with its indexes, if nothing has gone."""
        return self if len(keys) == len(self) else Relation.of(self.arity, keys)


def _nonempty(runs: Iterable[Run]) -> tuple[Run, ...]:
    return tuple(run for run in runs if len(run))


def largest_node(keys: Keys) -> int:
    """The largest subject or object of sorted pairs, 0 if there is none."""
    return max(int(keys[-1] >> HIGH), kernels.largest_low(keys)) if len(keys) else 0


def as_set(keys: Keys) -> Keys:
    """Keys in order and without repetitions."""
    order = kernels.order(keys)
    if order < 0:
        keys = np.sort(keys)
    return keys if order == 1 else sets.unique(keys)


def _settled(runs: tuple[Run, ...], *, first: int = 1) -> tuple[Run, ...]:
    """Runs of similar size merged, and short ones after the first, whose indexes are kept."""
    while len(runs) > 1 and (
        len(runs[-2]) < tuning.run_merge_ratio * len(runs[-1])
        or (len(runs) > 1 + first and len(runs[-2]) < tuning.short_run_keys_limit)
    ):
        runs = (*runs[:-2], merged(runs[-2], runs[-1]))
    return runs


def merged(larger: Run, smaller: Run) -> Run:
    """Both in one."""
    run = Run(sets.merge(larger.keys, smaller.keys))
    index = larger._swapped
    if index is not None:
        run._later = lambda: sets.merge(index.keys, smaller.swapped.keys)
    return run


def merged_keys(runs: Sequence[Run]) -> Keys:
    """The keys of disjoint runs in one sorted array."""
    keys = EMPTY
    for run in reversed(runs):
        keys = sets.merge(keys, run.keys) if len(keys) else run.keys
    return keys


def _compacted(runs: Sequence[Run], dead: Sequence[Run]) -> tuple[Run, ...]:
    """One run without the dead keys."""
    run = reduce(merged, runs)
    gone = Run(merged_keys(dead))
    kept = Run(sets.select(run.keys, gone.keys, False))
    if not len(kept):
        return ()
    index = run._swapped
    if index is not None:
        kept._later = lambda: sets.select(index.keys, gone.swapped.keys, False)
    return (kept,)
