"""Term ↔ dense number, append-only.

Engines see numbers only. Ids are given in the order in which terms are first seen and never change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from corollary.errors import OperationFailed
from corollary.lang.syntax import Constant

Ids = npt.NDArray[np.uint32]

MAX_TERMS = 2**32 - 1  # ids are 32-bit, and the last one is kept free


class Dictionary:
    """Gives every term a number.

    >>> from corollary.lang.syntax import Literal
    >>> dictionary = Dictionary()
    >>> dictionary.encode([Literal("a"), Literal("b"), Literal("a")])
    array([0, 1, 0], dtype=uint32)
    >>> dictionary.term(1)
    Literal(lexical='b', datatype='http://www.w3.org/2001/XMLSchema#string', language=None)
    """

    def __init__(self, *, max_terms: int = MAX_TERMS) -> None:
        self._ids: dict[Constant, int] = {}
        self._terms: list[Constant] = []
        self._max_terms = max_terms

    def __len__(self) -> int:
        return len(self._terms)

    def encode(self, terms: Iterable[Constant]) -> Ids:
        """The ids of terms, new ones for terms not seen before."""
        ids, known = self._ids, self._terms
        out = []
        for term in terms:
            term_id = ids.get(term)
            if term_id is None:
                term_id = len(known)
                if term_id >= self._max_terms:
                    raise OperationFailed(
                        "E404",
                        f"more than {self._max_terms:,} different terms: ids have 32 bits",
                        "split the data, or leave out terms that no rule needs",
                    )
                ids[term] = term_id
                known.append(term)
            out.append(term_id)
        return np.array(out, np.uint32)

    def id(self, term: Constant) -> int:
        """The id of one term, a new one if it was not seen before."""
        return int(self.encode([term])[0])

    def term(self, term_id: int) -> Constant:
        """The term of an id."""
        return self._terms[term_id]

    def terms(self, ids: Iterable[int]) -> Sequence[Constant]:
        """The terms of ids."""
        terms = self._terms
        return [terms[term_id] for term_id in ids]
