"""A dictionary of which most terms are elsewhere, in a table that no process holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.dictionary import MAX_TERMS, Dictionary
from corollary.core.terms import text_of
from corollary.lang.syntax import Constant


class PartialDictionary(Dictionary):
    """Knows the terms of a program, and fetches the texts of other ids when somebody asks.

    `known` must have every term that is asked for by name and that the table has; a term that is
    not among them is new and gets an id from `next_id` on.

    >>> from corollary.lang.syntax import IRI
    >>> table = {7: "<http://example.org/seven>"}
    >>> dictionary = PartialDictionary({IRI("a"): 3}, 8, lambda ids: [table[i] for i in ids])
    >>> dictionary.id(IRI("a")), dictionary.id(IRI("new"))
    (3, 8)
    >>> dictionary.term(7)
    IRI(value='http://example.org/seven')
    >>> dictionary.new_terms
    [(8, '<new>')]
    """

    def __init__(
        self,
        known: Mapping[Constant, int],
        next_id: int,
        fetch: Callable[[list[int]], Sequence[str]],
        *,
        max_terms: int = MAX_TERMS,
    ) -> None:
        super().__init__(max_terms=max_terms)
        self._ids.update(known)
        self._terms.update((term_id, term) for term, term_id in known.items())
        self._first = self._count = next_id
        self._fetch = fetch

    @property
    def new_terms(self) -> list[tuple[int, str]]:
        """The ids and texts of terms that the table does not have."""
        return [
            (term_id, text_of(self._terms[term_id])) for term_id in range(self._first, self._count)
        ]

    def texts(self, ids: Sequence[int] | npt.NDArray[np.integer]) -> pa.LargeStringArray:
        """The canonical texts of ids: those of the table are fetched."""
        wanted = [int(term_id) for term_id in ids]
        missing = [term_id for term_id in wanted if term_id not in self._terms]
        fetched = dict(zip(missing, self._fetch(missing), strict=True)) if missing else {}
        return pa.array(
            [fetched.get(i) or text_of(self._terms[i]) for i in wanted], pa.large_string()
        )
