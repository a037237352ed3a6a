"""The texts of many terms, numbered: one array of bytes, the offsets in it, a hash table.

Texts are canonical (`core.terms`). Nothing that was added is ever moved or changed, only copied
into larger arrays, so that views stay valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core import hashing
from corollary.core.hashing import SLACK, Bytes, Hashes, Ids, Places, Slots

if TYPE_CHECKING:
    import pyarrow as pa

_FIRST = 1 << 10  # slots to begin with


class Spans(NamedTuple):
    """Texts inside an array of bytes that goes on for SLACK bytes after the last one."""

    data: Bytes
    starts: Places
    ends: Places

    def hashes(self) -> Hashes:
        """The hash of each text."""
        out = np.empty(len(self.starts), np.uint32)
        hashing.hash_spans(self.data, self.starts, self.ends, out)
        return out


class TermArrays(NamedTuple):
    """The texts of terms one after the other, where each begins, the hash table, how many."""

    texts: Bytes  # with room for SLACK bytes after the last text
    offsets: Places
    slots: Slots  # a power of two, at least twice as many as terms
    terms: int


class TermStore:
    """Gives texts numbers in the order in which they are first seen.

    >>> store = TermStore()
    >>> store.encode(spans_of_texts([b"<a>", b"<b>", b"<a>"]), limit=10)
    array([0, 1, 0], dtype=uint32)
    >>> store.array().to_pylist()
    ['<a>', '<b>']
    """

    def __init__(self) -> None:
        self._texts: Bytes = np.empty(1 << 12, np.uint8)
        self._offsets: Places = np.zeros(_FIRST, np.int64)
        self._slots = np.zeros(_FIRST, np.uint64)
        self._count = 0

    @classmethod
    def of(cls, arrays: TermArrays) -> TermStore:
        """A store whose texts are arrays that another one gave; they are its own from now on."""
        store = cls()
        store._texts, store._offsets, store._slots, store._count = arrays
        return store

    def arrays(self) -> TermArrays:
        """What the store consists of, for `of`; not to be changed."""
        return TermArrays(self._texts, self._offsets, self._slots, self._count)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """The memory that is held."""
        return self._texts.nbytes + self._offsets.nbytes + self._slots.nbytes

    def encode(self, spans: Spans, *, limit: int, hashes: Hashes | None = None) -> Ids:
        """The ids of texts, new ones for new texts while there are fewer than `limit`.

        A text that is not known and not added gets `hashing.NO_ID`.
        """
        if hashes is None:
            hashes = spans.hashes()
        if limit > self._count:
            new = min(len(spans.starts), limit - self._count)
            self._reserve(new, int(np.sum(spans.ends - spans.starts)))
        ids = np.empty(len(spans.starts), np.uint32)
        self._count = hashing.encode_spans(
            *spans, hashes, limit, self._slots, self._texts, self._offsets, self._count, ids
        )
        return ids

    def array(self) -> pa.LargeStringArray:
        """All texts, by id, without copying them."""
        import pyarrow as pa

        offsets = self._offsets[: self._count + 1]
        texts = self._texts[: offsets[-1]]
        return pa.LargeStringArray.from_buffers(
            self._count, pa.py_buffer(offsets), pa.py_buffer(texts)
        )

    def _reserve(self, terms: int, size: int) -> None:
        """Make room for so many more terms of so many bytes altogether."""
        self._texts = _grown(self._texts, int(self._offsets[self._count]) + size + SLACK)
        self._offsets = _grown(self._offsets, self._count + terms + 1)
        if len(self._slots) < 2 * (self._count + terms):  # at least half of the slots are free
            slots = np.zeros(_power_of_two(2 * (self._count + terms)), np.uint64)
            hashing.rehash(self._slots, slots)
            self._slots = slots


def spans_of_texts(texts: list[bytes]) -> Spans:
    """Texts as spans of one array."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    ends = np.cumsum(lengths)
    # A bytearray, because loops are compiled once more for arrays that cannot be written to.
    data = np.frombuffer(bytearray(b"".join([*texts, b"\0" * SLACK])), np.uint8)
    return Spans(data, ends - lengths, ends)


def spans_of_array(array: pa.Array) -> Spans:
    """The texts of an Arrow array of strings or bytes; the bytes are copied, for the slack.

    >>> import pyarrow as pa
    >>> spans_of_array(pa.array(["ab", "c"]).slice(1)).starts
    array([0])
    """
    import pyarrow as pa

    if array.null_count:
        raise ValueError("a term cannot be null")
    array = array.cast(pa.large_binary())
    _, offsets_buffer, bytes_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset :][: len(array) + 1]
    first, last = (int(offsets[0]), int(offsets[-1])) if len(array) else (0, 0)
    data = np.empty(last - first + SLACK, np.uint8)
    if last > first:
        data[: last - first] = np.frombuffer(bytes_buffer, np.uint8)[first:last]
    return Spans(data, offsets[:-1] - first, offsets[1:] - first)


def _grown(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    if size <= len(array):
        return array
    larger = np.empty(max(size, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()
