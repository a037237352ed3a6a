"""The numbered texts of many terms: one array of bytes, offsets into it, a hash table.

Texts are canonical (`core.terms`). Added texts are never moved or changed, only copied into larger
arrays, so views stay valid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core import hashing, interning
from corollary.core.hashing import SLACK, Bytes, Hashes, Ids, Places, Slots

if TYPE_CHECKING:
    import pyarrow as pa

IdRows = npt.NDArray[np.uint32]  # a row of ids for each column
Encoding = Callable[..., tuple[int, int]]  # a loop of `interning`

_FIRST = 1 << 10  # initial number of slots
_PART = 1 << 16  # computed terms for which room is made at once


class Spans(NamedTuple):
    """Texts inside an array of bytes that extends SLACK bytes beyond the last one."""

    data: Bytes
    starts: Places
    ends: Places

    def hashes(self) -> Hashes:
        """The hash of each text."""
        out = np.empty(len(self.starts), np.uint32)
        hashing.hash_spans(self.data, self.starts, self.ends, out)
        return out


class TermArrays(NamedTuple):
    """The concatenated texts of terms, their offsets, the hash table, and the number of terms."""

    texts: Bytes  # with room for SLACK bytes after the last text
    offsets: Places
    slots: Slots  # a power of two, at least twice as many as terms
    terms: int


class TermStore:
    """Numbers texts in the order in which they are first seen.

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
        """Create a store from the arrays of another one, which it takes over."""
        store = cls()
        store._texts, store._offsets, store._slots, store._count = arrays
        return store

    def arrays(self) -> TermArrays:
        """The arrays of the store, for `of`; read-only."""
        return TermArrays(self._texts, self._offsets, self._slots, self._count)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """The memory in use."""
        return self._texts.nbytes + self._offsets.nbytes + self._slots.nbytes

    def encode(self, spans: Spans, *, limit: int, hashes: Hashes | None = None) -> Ids:
        """The ids of texts, new ones for new texts while there are fewer than `limit`.

        Unknown texts that are not added get `hashing.NO_ID`.
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

    def encode_integers(self, values: Places, datatype: str, *, limit: int) -> Ids:
        """The ids of integers in canonical form, given their values; like `encode`.

        >>> store = TermStore()
        >>> store.encode_integers(np.array([-7, 0, -7]), "urn:integer", limit=10)
        array([0, 1, 0], dtype=uint32)
        >>> store.array().to_pylist()
        ['"-7"^^<urn:integer>', '"0"^^<urn:integer>']
        """
        suffix = bytes_of(f'"^^<{datatype}>')
        length = len(suffix) - SLACK
        return self._encode_computed(
            len(values),
            lambda rows: (interning.encode_integers, (values[rows], suffix, length)),
            limit,
        )

    def encode_joined(self, columns: IdRows, constants: list[str], *, limit: int) -> Ids:
        """The ids of concatenations: a constant, a string of each column followed by a constant.

        Columns are ids of plain strings; constants are escaped as in texts of terms.

        >>> store = TermStore()
        >>> ids = store.encode(spans_of_texts([b'"a"', b'"bc"']), limit=10)
        >>> store.encode_joined(np.stack([ids, ids[::-1]]), ["", "-", "!"], limit=10)
        array([2, 3], dtype=uint32)
        >>> store.array().to_pylist()[2:]
        ['"a-bc!"', '"bc-a!"']
        """
        texts = [constant.encode() for constant in constants]
        ends = np.cumsum(np.array([len(text) for text in texts], np.int64))
        joined = bytes_of("".join(constants))
        return self._encode_computed(
            columns.shape[1],
            lambda rows: (
                interning.encode_joined,
                (np.ascontiguousarray(columns[:, rows]), joined, ends),
            ),
            limit,
        )

    def _encode_computed(
        self, rows: int, work: Callable[[slice], tuple[Encoding, tuple[Any, ...]]], limit: int
    ) -> Ids:
        """Number computed terms, in parts, with a loop of `interning` and its inputs for a part."""
        ids = np.empty(rows, np.uint32)
        first = 0
        while first < rows:
            last = min(rows, first + _PART)
            self._reserve(last - first, 0)
            encode, inputs = work(slice(first, last))
            self._count, done = encode(
                *inputs,
                limit,
                self._slots,
                self._texts,
                self._offsets,
                self._count,
                ids[first:last],
            )
            first += done
            if first < last:
                self._texts = _grown(self._texts, 2 * len(self._texts))
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
        """Make room for more terms, given their number and total bytes."""
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
    # A bytearray, because loops would be compiled again for read-only arrays.
    data = np.frombuffer(bytearray(b"".join([*texts, b"\0" * SLACK])), np.uint8)
    return Spans(data, ends - lengths, ends)


def bytes_of(text: str) -> Bytes:
    """A text as an array of bytes, with SLACK bytes after it."""
    return np.frombuffer(bytearray(text.encode() + b"\0" * SLACK), np.uint8)


def spans_of_array(array: pa.Array) -> Spans:
    """The texts of an Arrow array of strings or bytes; the bytes are copied, for the slack.

    >>> import pyarrow as pa
    >>> spans_of_array(pa.array(["ab", "c"]).slice(1)).starts
    array([0])
    """
    from corollary.core.strings import string_bytes  # loads pyarrow

    if array.null_count:
        raise ValueError("a term cannot be null")
    offsets, texts = string_bytes(array)
    data = np.empty(len(texts) + SLACK, np.uint8)
    data[: len(texts)] = texts
    return Spans(data, offsets[:-1], offsets[1:])


def _grown(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    if size <= len(array):
        return array
    larger = np.empty(max(size, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()
