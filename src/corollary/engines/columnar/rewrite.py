"""Remove keys from a sorted set and add others, in one pass."""

from __future__ import annotations

import numpy as np

from corollary.core.jit import compiled
from corollary.engines.columnar.kernels import Keys, gallop


@compiled
def rewrite_short(
    first: Keys,
    last: Keys,
    tombstones: Keys,
    removed: Keys,
    added: Keys,
    last_out: Keys,
    dead_out: Keys,
    lost: Keys,
    gained: Keys,
) -> tuple[int, int, int, int]:
    """Write the last run and the tombstones of a changed relation, and the keys lost and gained.

    The relation consists of two disjoint runs without the tombstones. Keys that are both removed
    and added are added. Returns how many keys were written to each array.
    """
    one = np.uint64(1)
    f, i, j, g, n = 0, np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    last_size, dead_size = np.uint64(len(last)), np.uint64(len(tombstones))
    removed_size, added_size = np.uint64(len(removed)), np.uint64(len(added))
    t = d = w = c = np.uint64(0)
    while i < last_size or j < dead_size or g < removed_size or n < added_size:
        key = np.uint64(0xFFFFFFFFFFFFFFFF)
        if i < last_size:
            key = min(key, last[i])
        if j < dead_size:
            key = min(key, tombstones[j])
        if g < removed_size:
            key = min(key, removed[g])
        if n < added_size:
            key = min(key, added[n])
        in_last = i < last_size and last[i] == key
        is_dead = j < dead_size and tombstones[j] == key
        is_removed = g < removed_size and removed[g] == key
        is_added = n < added_size and added[n] == key
        i += np.uint64(in_last)
        j += np.uint64(is_dead)
        g += np.uint64(is_removed)
        n += np.uint64(is_added)
        if is_removed or is_added:
            f = gallop(first, key, f)
            known = in_last or (f < len(first) and first[f] == key)
            if is_added and (is_dead or not known):
                gained[c] = key
                c += one
                in_last = in_last or not known
                is_dead = False
            elif is_removed and not is_added and known and not is_dead:
                lost[w] = key
                w += one
                is_dead = not in_last  # keys of the last run need no tombstone
                in_last = False
        if in_last:
            last_out[t] = key
            t += one
        if is_dead:
            dead_out[d] = key
            d += one
    return int(t), int(d), int(w), int(c)


@compiled
def rewrite_run(
    a: Keys, removed: Keys, added: Keys, out: Keys, lost: Keys, gained: Keys
) -> tuple[int, int, int]:
    """Write a changed set and the keys lost and gained; keys both removed and added are added."""
    one = np.uint64(1)
    i = j = k = n = w = c = np.uint64(0)
    size, removed_size, added_size = (
        np.uint64(len(a)),
        np.uint64(len(removed)),
        np.uint64(len(added)),
    )
    while i < size:
        key = a[i]
        i += one
        while k < added_size and added[k] < key:
            gained[c] = out[n] = added[k]
            c += one
            n += one
            k += one
        while j < removed_size and removed[j] < key:
            j += one
        is_added = k < added_size and added[k] == key
        drop = np.uint64(not is_added and j < removed_size and removed[j] == key)
        k += np.uint64(is_added)
        # branch-free: which keys are removed is hard to predict
        lost[w] = out[n] = key
        w += drop
        n += one - drop
    while k < added_size:
        gained[c] = out[n] = added[k]
        c += one
        n += one
        k += one
    return int(n), int(w), int(c)
