"""Kernels over several ranges at once, with threads that stay awake for a moment.

A step of a closure takes some 100 µs, and waking a thread that sleeps takes 50. So a thread that
has helped once waits for the next step awake, for half a millisecond, and then finds it within a
microsecond. It waits in compiled code: to get Python's lock would mean to sleep and to be woken.

Work is handed out by one number, the *ticket*: generation << 32 | parts << 16 | parts taken. Who
changes it from n to n + 1 has got part n. The thread that asks takes parts like any other, and
waits at the end only for those that others have begun; so nobody has to come, and if all cores are
busy it does everything itself. Begin and end are one call of compiled code: no signal that Python
handles can come between, and arrays live as long as somebody works on them.

Waiting must not take a core from others. A helper gives way (`sched_yield`) each time that it finds
nothing; if it then is away for long, others are using the cores, and it goes to sleep and is left
alone for a while.

Invariants: what is written about a job is written before its ticket, and not changed before all of
its parts are done; a ticket is never used twice.

Measured: to hand over a part that does nothing takes 1 µs to a helper that is awake, 50 µs through
a pool of Python's threads. OpenMP's threads, which wait without giving way, made a closure of 54 ms
take 1,100 ms while others used the cores.
"""

from __future__ import annotations

import os
import threading
import time
from functools import cache
from queue import SimpleQueue
from typing import Any, cast

import numba
import numpy as np
import numpy.typing as npt

from corollary.core.atomic import (
    AVAILABLE,
    Numbers,
    add,
    clock,
    exchange,
    give_way,
    load,
    pointer,
    store,
)
from corollary.core.jit import compiled
from corollary.engines.columnar import kernels
from corollary.engines.columnar.kernels import Array, Keys

carray = cast(Any, numba).carray

_AWAKE_NS = 500_000  # how long a helper waits awake: longer than most steps on one thread
_AWAY_NS = (
    1_000_000  # to give way takes a microsecond, unless somebody else gets the core for a while
)
_ALONE_NS = 20_000_000  # how long helpers are then left alone

# Places in the slot, each in a line of the cache of its own.
_TICKET, _DONE, _TAKEN, _AWAKE, _BUSY, _JOB = 0, 8, 16, 24, 32, 40
_SLOT = 48
_WIDTH = 10  # numbers of a part: three arrays by address and length, three more, and the result
_RESULT = 9
_MERGE, _SELECT, _DISTINCT, _COUNT, _MOVE, _LARGEST = range(6)
_MARK, _MARK_IDS, _ONES, _LIST, _LOOK, _LOOK_IDS, _BITS, _PAIRS, _DIFFERENT, _CLEAR = range(6, 16)


class Crew:
    """Threads that help; see `crew`."""

    def __init__(self, helpers: int) -> None:
        self.slot: Numbers = np.zeros(_SLOT, np.int64)
        self._helpers = helpers
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._beginning = threading.Lock()

    def awake(self) -> bool:
        """Whether somebody would come at once."""
        return bool(self.slot[_AWAKE])

    def call(self) -> None:
        """Wake the helpers, unless others use the cores."""
        if self.slot[_AWAKE] or not self._calls.empty():
            return
        if self.slot[_BUSY] > time.monotonic_ns():
            return
        with self._beginning:
            while len(self._threads) < self._helpers:
                thread = threading.Thread(target=self._help, name="corollary", daemon=True)
                thread.start()
                self._threads.append(thread)
        for _ in range(self._helpers):
            self._calls.put(None)

    def _help(self) -> None:
        while True:
            self._calls.get()
            serve(self.slot, _AWAKE_NS, _AWAY_NS, _ALONE_NS)


@cache
def crew(helpers: int) -> Crew | None:
    """The helpers of this process; None where they cannot wait as they should."""
    return Crew(helpers) if AVAILABLE and helpers > 0 else None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=crew.cache_clear)  # threads do not come along


@compiled
def serve(slot: Numbers, awake: int, away: int, alone: int) -> None:
    """Take parts until there was nothing to do for some time."""
    add(slot, _AWAKE, 1)
    before = clock()
    last = before
    while True:
        ticket = load(slot, _TICKET)
        if (ticket & 0xFFFF) < ((ticket >> 16) & 0xFFFF):
            if exchange(slot, _TICKET, ticket, ticket + 1):
                perform(slot[_JOB], slot[_JOB + 1], np.int64(ticket & 0xFFFF))
                add(slot, _DONE, 1)
                before = clock()
                last = before
            continue
        now = clock()
        if now - before > away:
            store(slot, _BUSY, now + alone)
            break
        if now - last > awake:
            break
        before = now
        give_way()
    add(slot, _AWAKE, -1)


@compiled
def share(slot: Numbers, kind: np.int64, rows: npt.NDArray[np.int64]) -> None:
    """Do all parts of a job, with whoever comes."""
    parts, begin = len(rows), np.int64(rows.ctypes.data)
    if parts >= 0x8000 or not exchange(slot, _TAKEN, 0, 1):  # somebody else has a job
        for part in range(parts):
            perform(kind, begin, np.int64(part))
        return
    slot[_JOB], slot[_JOB + 1] = kind, begin
    store(slot, _DONE, 0)
    generation = ((load(slot, _TICKET) >> 32) + 1) & 0x7FFFFFFF
    store(slot, _TICKET, (generation << 32) | (parts << 16))
    mine = 0
    while True:
        ticket = load(slot, _TICKET)
        part = ticket & 0xFFFF
        if part == parts:
            break
        if exchange(slot, _TICKET, ticket, ticket + 1):
            perform(kind, begin, np.int64(part))
            mine += 1
    while load(slot, _DONE) + mine < parts:
        give_way()
    store(slot, _TAKEN, 0)


@compiled
def perform(kind: np.int64, rows: np.int64, part: np.int64) -> None:
    """Do one part; `rows` is where the parts begin."""
    row = carray(pointer(rows + 8 * _WIDTH * part), _WIDTH, np.int64)
    a = carray(pointer(row[0]), row[1], np.uint64)
    b = carray(pointer(row[2]), row[3], np.uint64)
    c = carray(pointer(row[4]), row[5], np.uint64)
    if kind == _MERGE:
        row[_RESULT] = kernels.merge(a, b, c)
    elif kind == _SELECT:
        row[_RESULT] = kernels.select(a, b, row[6] != 0, c)
    elif kind == _DISTINCT:
        row[_RESULT] = kernels.distinct(a, np.uint64(row[6]), c)
    elif kind == _DIFFERENT:
        row[_RESULT] = kernels.count_distinct(a, np.uint64(row[6]))
    elif kind == _COUNT:
        kernels.count_digits(a, np.uint64(row[6]), row[7] != 0, b)
    elif kind == _MOVE:
        kernels.move_digits(a, np.uint64(row[6]), row[7] != 0, b, c)
    elif kind == _LARGEST:
        row[_RESULT] = kernels.largest_low(a)
    elif kind == _MARK:
        kernels.mark(carray(pointer(row[2]), row[3], np.uint8), a, np.uint64(row[6]))
    elif kind == _MARK_IDS:
        ids = carray(pointer(row[0]), row[1], np.uint32)
        kernels.mark(carray(pointer(row[2]), row[3], np.uint8), ids, np.uint64(0))
    elif kind == _CLEAR:
        kernels.clear(carray(pointer(row[2]), 8 * row[3], np.uint8), a)
    elif kind == _ONES:
        row[_RESULT] = kernels.count_bits(a)
    elif kind == _LIST:
        kernels.list_marked(a, row[6], c)
    elif kind == _PAIRS:
        row[_RESULT] = kernels.select_pairs(a, b, c, carray(pointer(row[6]), row[7], np.uint64))
    elif kind == _BITS:
        kernels.set_bits(a, b)
    elif kind == _LOOK:
        kernels.member_bitmap(a, b, carray(pointer(row[4]), row[5], np.bool_))
    elif kind == _LOOK_IDS:
        ids = carray(pointer(row[0]), row[1], np.uint32)
        kernels.member_bitmap(ids, b, carray(pointer(row[4]), row[5], np.bool_))


@compiled
def put(row: Numbers, at: int, array: Array, begin: int, end: int) -> None:
    """A stretch of an array as an argument."""
    row[at] = array.ctypes.data + array.itemsize * begin
    row[at + 1] = end - begin


@compiled
def merge(slot: Numbers, a: Keys, b: Keys, out: Keys, i: Numbers, j: Numbers) -> Numbers:
    """`kernels.merge` of ranges that begin and end at i and j; gives the size of each."""
    rows = np.zeros((len(i) - 1, _WIDTH), np.int64)
    for p in range(len(rows)):
        put(rows[p], 0, a, i[p], i[p + 1])
        put(rows[p], 2, b, j[p], j[p + 1])
        put(rows[p], 4, out, i[p] + j[p], i[p + 1] + j[p + 1])
    share(slot, np.int64(_MERGE), rows)
    return rows[:, _RESULT].copy()


@compiled
def select(
    slot: Numbers, a: Keys, b: Keys, keep: bool, out: Keys, i: Numbers, j: Numbers
) -> Numbers:
    """`kernels.select` of ranges that begin and end at i and j; gives the size of each."""
    rows = np.zeros((len(i) - 1, _WIDTH), np.int64)
    for p in range(len(rows)):
        put(rows[p], 0, a, i[p], i[p + 1])
        put(rows[p], 2, b, j[p], j[p + 1])
        put(rows[p], 4, out, i[p], i[p + 1])
        rows[p, 6] = keep
    share(slot, np.int64(_SELECT), rows)
    return rows[:, _RESULT].copy()


@compiled
def select_pairs(
    slot: Numbers, a: Keys, subjects: Keys, objects: Keys, out: Keys, i: Numbers
) -> Numbers:
    """`kernels.select_pairs` of ranges that begin and end at i; gives the size of each."""
    rows = np.zeros((len(i) - 1, _WIDTH), np.int64)
    for p in range(len(rows)):
        put(rows[p], 0, a, i[p], i[p + 1])
        put(rows[p], 2, subjects, 0, len(subjects))
        put(rows[p], 4, objects, 0, len(objects))
        put(rows[p], 6, out, i[p], i[p + 1])
    share(slot, np.int64(_PAIRS), rows)
    return rows[:, _RESULT].copy()


@compiled
def distinct(slot: Numbers, a: Keys, shift: np.uint64, i: Numbers) -> Keys:
    """`kernels.distinct` of ranges that begin and end at i, which share no result.

    They are counted first, so that all are written to their places.
    """
    rows = np.zeros((len(i) - 1, _WIDTH), np.int64)
    for p in range(len(rows)):
        put(rows[p], 0, a, i[p], i[p + 1])
        rows[p, 6] = np.int64(shift)
    share(slot, np.int64(_DIFFERENT), rows)
    out = np.empty(rows[:, _RESULT].sum(), np.uint64)
    size = 0
    for p in range(len(rows)):
        put(rows[p], 4, out, size, size + rows[p, _RESULT])
        size += rows[p, _RESULT]
    share(slot, np.int64(_DISTINCT), rows)
    return out


@compiled
def sort_by_digit(
    slot: Numbers,
    keys: Keys,
    i: Numbers,
    shift: np.uint64,
    first: bool,
    counts: npt.NDArray[np.uint64],
    target: Keys,
) -> None:
    """`kernels.count_digits` and `kernels.move_digits` of ranges that begin and end at i."""
    rows = np.zeros((len(i) - 1, _WIDTH), np.int64)
    for p in range(len(rows)):
        put(rows[p], 0, keys, i[p], i[p + 1])
        put(rows[p], 2, counts[p], 0, counts.shape[1])
        put(rows[p], 4, target, 0, len(target))
        rows[p, 6] = np.int64(shift)
        rows[p, 7] = first
    share(slot, np.int64(_COUNT), rows)
    kernels.add_up(counts)
    share(slot, np.int64(_MOVE), rows)


@compiled
def largest_low(slot: Numbers, a: Keys, i: Numbers) -> int:
    """`kernels.largest_low` by ranges that begin and end at i."""
    rows = np.zeros((len(i) - 1, _WIDTH), np.int64)
    for p in range(len(rows)):
        put(rows[p], 0, a, i[p], i[p + 1])
    share(slot, np.int64(_LARGEST), rows)
    return int(rows[:, _RESULT].max())


@compiled
def mark(slot: Numbers, keys: Array, words: Keys, shift: np.uint64, parts: int) -> None:
    """`kernels.mark` of keys or ids, a byte for each number."""
    rows = np.zeros((parts, _WIDTH), np.int64)
    for p in range(parts):
        put(rows[p], 0, keys, len(keys) * p // parts, len(keys) * (p + 1) // parts)
        put(rows[p], 2, words, 0, len(words))
        rows[p, 3] *= 8
        rows[p, 6] = np.int64(shift)
    share(slot, np.int64(_MARK if keys.itemsize == 8 else _MARK_IDS), rows)


@compiled
def over(a: Keys, whole: Keys, i: Numbers) -> Numbers:
    """Parts that read ranges of a, which begin and end at i, and write to all of another array."""
    rows = np.zeros((len(i) - 1, _WIDTH), np.int64)
    for p in range(len(rows)):
        put(rows[p], 0, a, i[p], i[p + 1])
        put(rows[p], 2, whole, 0, len(whole))
    return rows


@compiled
def clear(slot: Numbers, keys: Keys, words: Keys, i: Numbers) -> None:
    """`kernels.clear` of ranges that begin and end at i."""
    share(slot, np.int64(_CLEAR), over(keys, words, i))


@compiled
def count_bits(slot: Numbers, words: Keys, i: Numbers) -> Numbers:
    """`kernels.count_bits` of ranges that begin and end at i."""
    rows = np.zeros((len(i) - 1, _WIDTH), np.int64)
    for p in range(len(rows)):
        put(rows[p], 0, words, i[p], i[p + 1])
    share(slot, np.int64(_ONES), rows)
    return rows[:, _RESULT].copy()


@compiled
def list_marked(slot: Numbers, words: Keys, i: Numbers, out: Keys, k: Numbers) -> None:
    """`kernels.list_marked` of ranges that begin and end at i, written to those of k."""
    rows = np.zeros((len(i) - 1, _WIDTH), np.int64)
    for p in range(len(rows)):
        put(rows[p], 0, words, i[p], i[p + 1])
        put(rows[p], 4, out, k[p], k[p + 1])
        rows[p, 6] = 8 * i[p]
    share(slot, np.int64(_LIST), rows)


@compiled
def set_bits(slot: Numbers, a: Keys, bits: Keys, i: Numbers) -> None:
    """`kernels.set_bits` of ranges that begin and end at i, and share no word."""
    share(slot, np.int64(_BITS), over(a, bits, i))


@compiled
def look_up(
    slot: Numbers, probes: Array, bits: Keys, mask: npt.NDArray[np.bool_], i: Numbers
) -> None:
    """`kernels.member_bitmap` of ranges that begin and end at i."""
    rows = np.zeros((len(i) - 1, _WIDTH), np.int64)
    for p in range(len(rows)):
        put(rows[p], 0, probes, i[p], i[p + 1])
        put(rows[p], 2, bits, 0, len(bits))
        put(rows[p], 4, mask, i[p], i[p + 1])
    share(slot, np.int64(_LOOK if probes.itemsize == 8 else _LOOK_IDS), rows)
