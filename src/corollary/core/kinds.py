"""Kinds and numeric values of terms, for operators over whole columns of them."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.dictionary import Dictionary
from corollary.lang.operands import literal_number
from corollary.lang.syntax import XSD
from corollary.lang.xsd import DECIMAL, DOUBLE, FLOAT, INTEGER, INTEGERS

# Kinds of terms that comparisons distinguish; 0: not computed yet.
NODE, STRING, NUMBER, OTHER, INTEGER_NUMBER = 1, 2, 3, 4, 5

_TYPED = re.compile(r'"([^"\\]*)"\^\^<(' + re.escape(XSD) + r"[A-Za-z]+)>")
_EXACT_DIGITS = 15  # doubles distinguish all decimals of this many digits
# The most frequent literals; Arrow parses them in bulk.
_PLAIN_INTEGER = rf'^"(?P<digits>-?[0-9]{{1,15}})"\^\^<{re.escape(XSD)}integer>$'

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
        if len(self._kinds) < len(dictionary):
            room = len(dictionary) + len(self._kinds) // 2
            self._kinds = np.concatenate([self._kinds, np.zeros(room - len(self._kinds), np.int8)])
            self._numbers = np.concatenate([self._numbers, np.zeros(room - len(self._numbers))])
        kinds = self._kinds[ids]
        if not kinds.all():
            self._classify(_distinct(ids[kinds == 0], len(dictionary)), dictionary)
            kinds = self._kinds[ids]
        return kinds, self._numbers[ids]

    def _classify(self, ids: npt.NDArray[np.integer], dictionary: Dictionary) -> None:
        texts = dictionary.texts(ids)
        digits = pc.struct_field(pc.extract_regex(texts, _PLAIN_INTEGER), "digits")
        plain = pc.is_valid(digits).to_numpy(zero_copy_only=False)
        self._kinds[ids[plain]] = INTEGER_NUMBER
        self._numbers[ids[plain]] = digits.drop_null().cast(pa.int64()).to_numpy()
        others = texts.filter(pc.invert(pa.array(plain))).to_pylist()
        described = [kind_of(text) for text in others]
        self._kinds[ids[~plain]] = [kind for kind, _ in described]
        self._numbers[ids[~plain]] = [number for _, number in described]


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
