"""The 64-bit hashes of the terms table: XXH64 of a term's UTF-8 bytes with seed 42.

Spark's `xxhash64` computes the same hash of a string, so a join on the hash there needs no UDF.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.hashing import Bytes, Places, word
from corollary.core.jit import compiled
from corollary.core.term_store import spans_of_array

SEED = 42
_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_SIXTY_FOUR = np.uint64(64)


def hashes(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The hash of each text, as a signed integer.

    >>> hashes(pa.array(["", "<a>"])).to_pylist()
    [-7444071767201028348, 757387362766008017]
    """
    if isinstance(texts, pa.ChunkedArray):
        return pa.concat_arrays(
            [hashes(part) for part in texts.chunks] or [pa.array([], pa.int64())]
        )
    spans = spans_of_array(texts)
    out = np.empty(len(texts), np.uint64)
    _hash_spans(spans.data, spans.starts, spans.ends, out)
    return pa.array(out.view(np.int64))


@compiled
def _rotate(value: np.uint64, bits: np.uint64) -> np.uint64:
    return (value << bits) | (value >> (_SIXTY_FOUR - bits))


@compiled
def _round(state: np.uint64, value: np.uint64) -> np.uint64:
    return _rotate(state + value * _P2, np.uint64(31)) * _P1


@compiled
def _merge(state: np.uint64, part: np.uint64) -> np.uint64:
    return (state ^ _round(np.uint64(0), part)) * _P1 + _P4


@compiled
def _hash(data: Bytes, start: int, end: int) -> np.uint64:
    seed = np.uint64(SEED)
    at = start
    if end - start >= 32:
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + 32 <= end:
            a = _round(a, word(data, at))
            b = _round(b, word(data, at + 8))
            c = _round(c, word(data, at + 16))
            d = _round(d, word(data, at + 24))
            at += 32
        state = (
            _rotate(a, np.uint64(1))
            + _rotate(b, np.uint64(7))
            + _rotate(c, np.uint64(12))
            + _rotate(d, np.uint64(18))
        )
        state = _merge(_merge(_merge(_merge(state, a), b), c), d)
    else:
        state = seed + _P5
    state += np.uint64(end - start)
    while at + 8 <= end:
        state = _rotate(state ^ _round(np.uint64(0), word(data, at)), np.uint64(27)) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        half = word(data, at) & np.uint64(0xFFFFFFFF)
        state = _rotate(state ^ (half * _P1), np.uint64(23)) * _P2 + _P3
        at += 4
    while at < end:
        state = _rotate(state ^ (np.uint64(data[at]) * _P5), np.uint64(11)) * _P1
        at += 1
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    return state ^ (state >> np.uint64(32))


@compiled
def _hash_spans(data: Bytes, starts: Places, ends: Places, out: npt.NDArray[np.uint64]) -> None:
    for i in range(len(starts)):
        out[i] = _hash(data, starts[i], ends[i])
