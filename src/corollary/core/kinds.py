"""Kinds and numeric values of terms, for operators over whole columns of them."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from corollary.core import interning
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.hashing import SLACK
from corollary.core.jit import for_work
from corollary.core.term_store import bytes_of
from corollary.lang.operands import literal_number
from corollary.lang.syntax import XSD
from corollary.lang.xsd import DECIMAL, DOUBLE, FLOAT, INTEGER, INTEGERS

# Kinds of terms that comparisons distinguish; 0: not computed yet.
NODE, STRING, NUMBER, OTHER, INTEGER_NUMBER = 1, 2, 3, 4, 5

_TYPED = re.compile(r'"([^"\\]*)"\^\^<(' + re.escape(XSD) + r"[A-Za-z]+)>")
_EXACT_DIGITS = 15  # doubles distinguish all decimals of this many digits
_SUFFIX = bytes_of(f'"^^<{INTEGER}>')
_BYTES = 64  # of a term, roughly, that a loop looks at
assert (interning.NODE, interning.STRING, interning.INTEGER) == (NODE, STRING, INTEGER_NUMBER)

_known: WeakKeyDictionary[Dictionary, Kinds] = WeakKeyDictionary()


class Kinds:
    """Kinds and numeric values of dictionary terms, computed once per term.

    >>> import pyarrow as pa
    >>> dictionary = Dictionary()
    >>> ids = dictionary.encode_texts(pa.array(['"7"^^<http://www.w3.org/2001/XMLSchema#integer>']))
    >>> kinds, numbers = Kinds.of_dictionary(dictionary).of(ids, dictionary)
    >>> kinds.tolist() == [INTEGER_NUMBER], numbers.tolist()
    (True, [7.0])
    """

    def __init__(self) -> None:
        self._kinds = np.zeros(0, np.int8)
        self._numbers = np.zeros(0, np.float64)

    @classmethod
    def of_dictionary(cls, dictionary: Dictionary) -> Kinds:
        """The kinds of the terms of a dictionary, shared by all that ask for them."""
        found = _known.get(dictionary)
        if found is None:
            found = _known[dictionary] = cls()
        return found

    def of(
        self, ids: npt.NDArray[np.integer], dictionary: Dictionary
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]:
        """The kinds of terms, and the values of those that are numbers."""
        return self.kinds(ids, dictionary), self._numbers[ids]

    def kinds(self, ids: npt.NDArray[np.integer], dictionary: Dictionary) -> npt.NDArray[np.int8]:
        """The kinds of terms."""
        if len(self._kinds) < len(dictionary):
            room = len(dictionary) + len(self._kinds) // 2
            self._kinds = np.concatenate([self._kinds, np.zeros(room - len(self._kinds), np.int8)])
            self._numbers = np.concatenate([self._numbers, np.zeros(room - len(self._numbers))])
        kinds: npt.NDArray[np.int8] = self._kinds[ids]
        if not kinds.all():
            self._classify(_distinct(ids[kinds == 0], len(dictionary)), dictionary)
            kinds = self._kinds[ids]
        return kinds

    def integers(
        self, ids: Ids, dictionary: Dictionary, valid: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], int]:
        """The values of integers, and the largest size of one; clears `valid` for other terms."""
        self.kinds(ids, dictionary)
        values = np.empty(len(ids), np.int64)
        loop = for_work(interning.integers_of, len(ids))
        return values, loop(ids, self._kinds, self._numbers, values, valid)

    def _classify(self, ids: npt.NDArray[np.int64], dictionary: Dictionary) -> None:
        if not dictionary.partial:
            texts, offsets, _, _ = dictionary.arrays()
            loop = for_work(interning.classify, _BYTES * len(ids))
            length = len(_SUFFIX) - SLACK
            loop(texts, offsets, _SUFFIX, length, ids, self._kinds, self._numbers)
            ids = ids[self._kinds[ids] == 0]
        if len(ids):
            described = [kind_of(text) for text in dictionary.texts(ids).to_pylist()]
            self._kinds[ids] = [kind for kind, _ in described]
            self._numbers[ids] = [number for _, number in described]


def _distinct(ids: npt.NDArray[np.integer], terms: int) -> npt.NDArray[np.int64]:
    """The distinct ids; many of them are marked, which costs less than sorting or hashing."""
    if len(ids) < terms // 64:
        return np.unique(ids).astype(np.int64)
    seen = np.zeros(terms, bool)
    seen[ids] = True
    return np.flatnonzero(seen)


def kind_of(text: str) -> tuple[int, float]:
    """The kind of a term, and its numeric value if a double represents it uniquely.

    >>> kind_of("<a>"), kind_of('"x"'), kind_of('"x"@en')
    ((1, 0.0), (2, 0.0), (4, 0.0))
    >>> kind_of('"07"^^<http://www.w3.org/2001/XMLSchema#integer>')
    (5, 7.0)
    """
    if text[0] != '"':
        return NODE, 0.0
    if text[-1] == '"':
        return STRING, 0.0
    match = _TYPED.fullmatch(text)
    if match is not None and match[2] != FLOAT:
        number = literal_number(*match.groups())
        exact = match[2] in INTEGERS or match[2] == DECIMAL
        if number is not None and number == number and (
            match[2] == DOUBLE or (exact and len(match[1]) <= _EXACT_DIGITS)
        ):  # fmt: skip
            return INTEGER_NUMBER if match[2] == INTEGER else NUMBER, float(number)
    return OTHER, 0.0
