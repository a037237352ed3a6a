"""Sets of keys without some keys and with others, in one pass."""

from __future__ import annotations

import numpy as np

from corollary.core.jit import compiled
from corollary.engines.columnar.kernels import Keys, gallop


@compiled
def change_few(
    first: Keys,
    last: Keys,
    dead: Keys,
    gone: Keys,
    new: Keys,
    last_out: Keys,
    dead_out: Keys,
    went: Keys,
    came: Keys,
) -> tuple[int, int, int, int]:
    """Write the last run and the dead keys of a changed relation, and by what it differs.

    The relation are the keys of two disjoint runs that are not dead. Keys that are both gone and
    new are new. Gives how many keys were written.
    """
    one = np.uint64(1)
    f, i, j, g, n = 0, np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    lasts, deads = np.uint64(len(last)), np.uint64(len(dead))
    gones, news = np.uint64(len(gone)), np.uint64(len(new))
    t = d = w = c = np.uint64(0)
    while i < lasts or j < deads or g < gones or n < news:
        key = np.uint64(0xFFFFFFFFFFFFFFFF)
        if i < lasts:
            key = min(key, last[i])
        if j < deads:
            key = min(key, dead[j])
        if g < gones:
            key = min(key, gone[g])
        if n < news:
            key = min(key, new[n])
        in_last = i < lasts and last[i] == key
        is_dead = j < deads and dead[j] == key
        is_gone = g < gones and gone[g] == key
        is_new = n < news and new[n] == key
        i += np.uint64(in_last)
        j += np.uint64(is_dead)
        g += np.uint64(is_gone)
        n += np.uint64(is_new)
        if is_gone or is_new:
            f = gallop(first, key, f)
            known = in_last or (f < len(first) and first[f] == key)
            if is_new and (is_dead or not known):
                came[c] = key
                c += one
                in_last = in_last or not known
                is_dead = False
            elif is_gone and not is_new and known and not is_dead:
                went[w] = key
                w += one
                is_dead = not in_last  # what came last goes without a tombstone
                in_last = False
        if in_last:
            last_out[t] = key
            t += one
        if is_dead:
            dead_out[d] = key
            d += one
    return int(t), int(d), int(w), int(c)


@compiled
def change_many(
    a: Keys, gone: Keys, new: Keys, out: Keys, went: Keys, came: Keys
) -> tuple[int, int, int]:
    """Write a changed set, and by what it differs; keys that are both gone and new are new."""
    one = np.uint64(1)
    i = j = k = n = w = c = np.uint64(0)
    size, gones, news = np.uint64(len(a)), np.uint64(len(gone)), np.uint64(len(new))
    while i < size:
        key = a[i]
        i += one
        while k < news and new[k] < key:
            came[c] = out[n] = new[k]
            c += one
            n += one
            k += one
        while j < gones and gone[j] < key:
            j += one
        is_new = k < news and new[k] == key
        goes = np.uint64(not is_new and j < gones and gone[j] == key)
        k += np.uint64(is_new)
        # without a branch: which keys go is hard to predict
        went[w] = out[n] = key
        w += goes
        n += one - goes
    while k < news:
        came[c] = out[n] = new[k]
        c += one
        n += one
        k += one
    return int(n), int(w), int(c)
