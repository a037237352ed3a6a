"""A partial dictionary: a cache of a terms table, for a driver.

Ids are those of the terms table. The terms of the rules are known from the start; others are
fetched on demand, and terms missing from the table get new ids beyond its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import MAX_TERMS, Dictionary, Ids
from corollary.core.terms import canonical, term_of, text_of
from corollary.core.tuning import tuning
from corollary.lang.syntax import Constant

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.core.term_store import Spans

Fetch = Callable[[list[int]], list[str]]  # the texts of ids
LookUp = Callable[[list[str]], Sequence[int | None]]  # the ids of texts, None for unknown ones


class CreatedTerms(NamedTuple):
    """A table of terms that tasks have created and numbered: their first id, their number."""

    first: int
    size: int
    table: Any


class PartialDictionary(Dictionary):
    """Some terms of a table, and new terms.

    >>> from corollary.lang.syntax import Literal
    >>> table = ['"a"', '"b"', '"c"']
    >>> dictionary = PartialDictionary(
    ...     {Literal("a"): 0},
    ...     len(table),
    ...     fetch=lambda ids: [table[number] for number in ids],
    ...     look_up=lambda texts: [table.index(text) if text in table else None for text in texts],
    ... )
    >>> dictionary.encode([Literal("c"), Literal("new"), Literal("a")])
    array([2, 3, 0], dtype=uint32)
    >>> dictionary.term(1).lexical, dictionary.new_terms
    ('b', [(3, '"new"')])
    """

    partial = True

    def __init__(
        self,
        known: Mapping[Constant, int],
        next_id: int,
        fetch: Fetch,
        look_up: LookUp | None = None,
        *,
        max_terms: int = MAX_TERMS,
        extensible: bool = False,
    ) -> None:
        """`next_id` is the first free id.

        If the dictionary is `extensible`, `fetch` and `look_up` read the tables in `created` too.
        Without `look_up`, `known` must hold all terms of the table that will be encoded.
        """
        super().__init__(max_terms=max_terms)
        self._ids.update(known)
        self._terms.update((term_id, term) for term, term_id in known.items())
        self._count = self._first = next_id
        self._fetch = fetch
        self._texts: dict[int, str] = {}
        self._look_up = look_up
        self.extensible = extensible
        self.created: list[CreatedTerms] = []
        if next_id > max_terms:
            raise self._too_many()

    @property
    def new_terms(self) -> list[tuple[int, str]]:
        """The terms that this dictionary has added to the table: ascending ids, and texts."""
        found, first = [], self._first
        for part in [*self.created, CreatedTerms(self._count, 0, None)]:
            found += [(number, text_of(self._terms[number])) for number in range(first, part.first)]
            first = part.first + part.size
        return found

    def extend(self, count: int, table: Any) -> None:
        """Give the next ids to terms that tasks have numbered; `table` holds them.

        >>> from corollary.lang.syntax import Literal
        >>> dictionary = PartialDictionary({}, 5, fetch=lambda ids: [], extensible=True)
        >>> dictionary.extend(3, None)
        >>> dictionary.id(Literal("a")), dictionary.new_terms
        (8, [(8, '"a"')])
        """
        if self._count + count > self._max_terms:
            raise self._too_many()
        self.created.append(CreatedTerms(self._count, count, table))
        self._count += count

    def encode(self, terms: Iterable[Constant]) -> Ids:
        """Encode terms; terms missing from this dictionary and the table get new ids."""
        wanted = [canonical(term) for term in terms]
        self._find_all(wanted)
        out = []
        for term in wanted:
            term_id = self._ids.get(term)
            if term_id is None:
                term_id = self._count
                if term_id >= self._max_terms:
                    raise self._too_many()
                self._ids[term] = term_id
                self._terms[term_id] = term
                self._count += 1
            out.append(term_id)
        return np.array(out, np.uint32)

    def find(self, term: Constant) -> int | None:
        """The id of a term, None if it is in neither this dictionary nor the table."""
        term = canonical(term)
        self._find_all([term])
        return self._ids.get(term)

    def remember(self, terms: Iterable[Constant]) -> None:
        """Look up terms in one batch and cache them."""
        self._find_all([canonical(term) for term in terms])

    def known(self, most: int) -> dict[int, str]:
        """The texts of cached terms, if at most `most`, for another dictionary to `learn`.

        >>> from corollary.lang.syntax import Literal
        >>> one = PartialDictionary({Literal("a"): 0}, 2, fetch=lambda ids: [])
        >>> two = PartialDictionary({}, 2, fetch=lambda ids: [])
        >>> two.learn(one.known(10))
        >>> two.term(0).lexical
        'a'
        """
        if len(self._terms) > most:
            return {}
        return {number: text_of(term) for number, term in self._terms.items()}

    def learn(self, texts: Mapping[int, str]) -> None:
        """Add terms of the same table to the cache."""
        for number, text in texts.items():
            if number < self._first and number not in self._terms:
                term = self._terms[number] = term_of(text)
                self._ids[term] = number

    def terms(self, ids: Iterable[int]) -> Sequence[Constant]:
        """Decode ids; missing terms are fetched in one batch."""
        wanted = list(ids)
        missing = list(dict.fromkeys(number for number in wanted if number not in self._terms))
        if not missing:
            return [self._terms[number] for number in wanted]
        found = dict(zip(missing, map(term_of, self._fetched(missing)), strict=True))
        if len(self._terms) + len(found) <= tuning.remembered_terms_limit:
            self._terms.update(found)
            self._ids.update((term, number) for number, term in found.items())
        return [self._terms.get(number) or found[number] for number in wanted]

    def texts(self, ids: Sequence[int] | npt.NDArray[np.integer]) -> pa.LargeStringArray:
        """The canonical texts of ids, as Arrow."""
        import pyarrow as pa

        distinct, places = np.unique(np.asarray(ids, np.int64), return_inverse=True)
        wanted = distinct.tolist()
        known = self._texts
        here = {n: known.get(n) or text_of(self._terms[n]) for n in wanted if self._has(n)}
        missing = [number for number in wanted if number not in here]
        found = dict(zip(missing, self._fetched(missing), strict=True))
        if len(known) + len(found) <= tuning.remembered_texts_limit:
            known.update(found)
        texts = pa.array([here.get(n) or found[n] for n in wanted], pa.large_string())
        return texts.take(pa.array(places))

    def prefetch(self, ids: npt.NDArray[np.integer]) -> None:
        """Prefetch texts, if the cache has room for them."""
        missing = [number for number in ids.tolist() if not self._has(number)]
        if len(self._texts) + len(missing) <= tuning.remembered_texts_limit:
            self._texts.update(zip(missing, self._fetched(missing), strict=True))

    def keep(self, texts: Mapping[int, str]) -> None:
        """Cache texts of terms of the table that the caller has, if there is room.

        >>> dictionary = PartialDictionary({}, 2, fetch=lambda ids: [])
        >>> dictionary.keep({1: "<urn:a>"})
        >>> dictionary.texts([1]).to_pylist()
        ['<urn:a>']
        """
        if len(self._texts) + len(texts) <= tuning.remembered_texts_limit:
            self._texts.update(texts)

    def _has(self, number: int) -> bool:
        return number in self._texts or number in self._terms

    def encode_spans(self, spans: Spans, hashes: npt.NDArray[np.uint32] | None = None) -> Ids:
        """Encode terms given as canonical texts in an array of bytes."""
        data = spans.data.tobytes()
        texts = [
            data[start:end].decode()
            for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)
        ]
        return self.encode(map(term_of, texts))

    def texts_from(self, first: int) -> pa.LargeStringArray:
        """The texts of all terms from an id on, which must be new."""
        import pyarrow as pa

        assert first >= self._first, "the table has the others"
        chosen = [text for number, text in self.new_terms if number >= first]
        return pa.array(chosen, pa.large_string())

    def _find_all(self, terms: Iterable[Constant]) -> None:
        """Cache the ids of the terms that are in the table."""
        if self._look_up is None:
            return
        missing = list(dict.fromkeys(term for term in terms if term not in self._ids))
        if missing:
            found = self._look_up([text_of(term) for term in missing])
            for term, term_id in zip(missing, found, strict=True):
                if term_id is not None:
                    self._ids[term] = term_id
                    self._terms[term_id] = term

    def _fetched(self, ids: list[int]) -> list[str]:
        if ids and max(ids) >= self._count:
            raise IndexError(f"no term has the id {max(ids)}")
        missing = [number for number in ids if number not in self._texts]
        found = dict(zip(missing, self._fetch(missing), strict=True)) if missing else {}
        return [found.get(number) or self._texts[number] for number in ids]
