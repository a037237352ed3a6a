"""Term ↔ dense number, append-only.

Engines see numbers only. Ids are assigned in the order in which terms are first seen and never
change.

A few terms, those of a program, arrive as `Constant` values and are stored in a Python dictionary.
Many arrive as texts (`core.terms`) in arrays of bytes and are stored as bytes in a `TermStore`,
which is created, and its compiled loops loaded, when the first of them arrive. Every term has an id
in one of the two. The store holds the lowest ids; before it is used, the others move into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from corollary.core.terms import canonical, term_of, text_of
from corollary.core.tuning import tuning
from corollary.errors import OperationFailed
from corollary.lang.syntax import Constant, Literal
from corollary.lang.xsd import INTEGER

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.core.term_store import Spans, TermArrays, TermStore

Ids = npt.NDArray[np.uint32]

MAX_TERMS = 2**32 - 1  # ids are 32-bit, and the last one is reserved


class Dictionary:
    """Assigns a number to every term.

    >>> from corollary.lang.syntax import Literal
    >>> dictionary = Dictionary()
    >>> dictionary.encode([Literal("a"), Literal("b"), Literal("a")])
    array([0, 1, 0], dtype=uint32)
    >>> dictionary.term(1)
    Literal(lexical='b', datatype='http://www.w3.org/2001/XMLSchema#string', language=None)

    In bulk, terms are texts in Arrow arrays:

    >>> import pyarrow as pa
    >>> dictionary.encode_texts(pa.array(['"b"', "<http://example.org/c>"]))
    array([1, 2], dtype=uint32)
    >>> dictionary.texts([2, 0]).to_pylist()
    ['<http://example.org/c>', '"a"']
    """

    partial = False  # whether it holds a subset of a table's terms, with arbitrary ids

    def __init__(self, *, max_terms: int = MAX_TERMS) -> None:
        # Terms as values: all that the store lacks, and some that it has. The two dictionaries are
        # inverse to each other.
        self._ids: dict[Constant, int] = {}
        self._terms: dict[int, Constant] = {}
        self._store: TermStore | None = None
        self._count = 0
        self._max_terms = max_terms

    @classmethod
    def of(cls, arrays: TermArrays) -> Dictionary:
        """Create a dictionary from the `arrays` of another one."""
        from corollary.core.term_store import TermStore

        dictionary = cls()
        dictionary._store = TermStore.of(arrays)
        dictionary._count = arrays.terms
        return dictionary

    def arrays(self) -> TermArrays:
        """All terms as arrays, for `of`; read-only."""
        return self._flushed().arrays()

    def __len__(self) -> int:
        return self._count

    def encode(self, terms: Iterable[Constant]) -> Ids:
        """The ids of terms, new ones for terms not seen before."""
        ids = self._ids
        if len(self._terms) < self._count:
            terms = list(terms)
            self._recall([term for term in terms if term not in ids])
        out = []
        for term in terms:
            term_id = ids.get(term)
            if term_id is None:
                term_id = (
                    self._tagged(term)
                    if type(term) is Literal and term.language is not None
                    else None
                )
                if term_id is None:
                    term_id = self._count
                    if term_id >= self._max_terms:
                        raise self._too_many()
                    ids[term] = term_id
                    self._terms[term_id] = term
                    self._count += 1
            out.append(term_id)
        return np.array(out, np.uint32)

    def id(self, term: Constant) -> int:
        """The id of a term; a new one if it was not seen before."""
        term_id = self._ids.get(term)
        return int(self.encode([term])[0]) if term_id is None else term_id

    def find(self, term: Constant) -> int | None:
        """The id of a term, None if it was never seen; adds nothing.

        >>> dictionary = Dictionary()
        >>> dictionary.find(Literal("a")), len(dictionary), dictionary.id(Literal("a"))
        (None, 0, 0)
        >>> dictionary.find(Literal("a"))
        0
        """
        term_id = self._ids.get(term)
        if term_id is None:
            term = canonical(term)
            if term not in self._ids and len(self._terms) < self._count:
                self._recall([term])
            term_id = self._ids.get(term)
        return term_id

    def term(self, term_id: int) -> Constant:
        """The term of an id."""
        term = self._terms.get(term_id)
        return self.terms([term_id])[0] if term is None else term

    def terms(self, ids: Iterable[int]) -> Sequence[Constant]:
        """The terms of ids."""
        terms = self._terms
        if len(terms) == self._count:
            try:
                return [terms[term_id] for term_id in ids]
            except KeyError as error:
                raise IndexError(f"no term has the id {error}") from None
        wanted = list(ids)
        missing = list({term_id for term_id in wanted if term_id not in terms})
        if missing:
            found = dict(zip(missing, map(term_of, self.texts(missing).to_pylist()), strict=True))
            if len(terms) + len(found) > tuning.remembered_terms_limit:
                return [terms.get(term_id) or found[term_id] for term_id in wanted]
            terms.update(found)
            self._ids.update((term, term_id) for term_id, term in found.items())
        return [terms[term_id] for term_id in wanted]

    def encode_texts(self, texts: pa.Array | pa.ChunkedArray) -> Ids:
        """The ids of terms given as canonical texts in an array of strings or bytes."""
        import pyarrow as pa

        from corollary.core.term_store import spans_of_array

        if isinstance(texts, pa.ChunkedArray):
            parts = [self.encode_texts(chunk) for chunk in texts.chunks]
            return np.concatenate([np.empty(0, np.uint32), *parts])
        return self.encode_spans(spans_of_array(texts))

    def encode_spans(self, spans: Spans, hashes: npt.NDArray[np.uint32] | None = None) -> Ids:
        """The ids of terms given as canonical texts in an array of bytes.

        `hashes`, if already computed, are those of `Spans.hashes`.
        """
        return self._encoded(lambda store, limit: store.encode(spans, limit=limit, hashes=hashes))

    def encode_integers(self, values: npt.NDArray[np.int64]) -> Ids:
        """The ids of terms given as values of xsd:integer.

        >>> dictionary = Dictionary()
        >>> dictionary.encode_integers(np.array([5, -1, 5]))
        array([0, 1, 0], dtype=uint32)
        >>> dictionary.term(1).lexical
        '-1'
        """
        return self._encoded(
            lambda store, limit: store.encode_integers(values, INTEGER, limit=limit)
        )

    def encode_joined(self, columns: Sequence[Ids], constants: list[str]) -> Ids:
        """The ids of concatenations of plain strings; see `TermStore.encode_joined`."""
        return self._encoded(
            lambda store, limit: store.encode_joined(np.stack(columns), constants, limit=limit)
        )

    def _encoded(self, encode: Callable[[TermStore, int], Ids]) -> Ids:
        """Encode terms by the store, which has all terms."""
        store = self._flushed()
        if len(self._ids) > tuning.remembered_terms_limit:
            self._ids.clear()
            self._terms.clear()
        try:
            ids = encode(store, self._max_terms)
        finally:
            self._count = len(store)
        if self._count >= self._max_terms and len(ids) and ids.max() >= self._max_terms:
            raise self._too_many()
        return ids

    def texts(self, ids: Sequence[int] | npt.NDArray[np.integer]) -> pa.LargeStringArray:
        """The canonical texts of ids, as Arrow."""
        import pyarrow as pa

        wanted = np.asarray(ids, np.int64)
        return self._flushed().array().take(pa.array(wanted))

    def texts_from(self, first: int) -> pa.LargeStringArray:
        """The canonical texts of all terms from an id on, in the order of their ids.

        `Dictionary().encode_texts(dictionary.texts_from(0))` assigns the same ids again.
        """
        return self._flushed().array().slice(first)

    def _tagged(self, term: Constant) -> int | None:
        """The id of a literal whose language tag is not canonical, or None."""
        alike = canonical(term)
        if alike is term:
            return None
        term_id = self._ids[term] = self.id(alike)
        return term_id

    def _recall(self, terms: Sequence[Constant]) -> None:
        """Cache the terms that the store holds."""
        if not terms or self._store is None:
            return
        from corollary.core.hashing import NO_ID
        from corollary.core.term_store import spans_of_texts

        alike = list(map(canonical, terms))
        ids = self._store.encode(spans_of_texts([text_of(t).encode() for t in alike]), limit=0)
        for term, term_id in zip(alike, ids.tolist(), strict=True):
            if term_id != NO_ID:
                self._ids[term] = term_id
                self._terms[term_id] = term

    def _flushed(self) -> TermStore:
        """The store, with all terms in it."""
        from corollary.core.term_store import TermStore, spans_of_texts

        if self._store is None:
            self._store = TermStore()
        stored = len(self._store)
        if stored < self._count:
            new = [text_of(self._terms[number]).encode() for number in range(stored, self._count)]
            self._store.encode(spans_of_texts(new), limit=self._max_terms)
            assert len(self._store) == self._count, "every term has a text of its own"
        return self._store

    def _too_many(self) -> OperationFailed:
        return OperationFailed(
            "E404",
            f"more than {self._max_terms:,} different terms: ids have 32 bits",
            "split the data, or leave out terms that no rule needs",
        )
