"""Properties of literals that filters use, computed once per term: kind, datatypes, value.

OWL 2 RL assigns to every literal those of 32 datatypes whose value space contains its value. One
test after another takes ten seconds for a hundred thousand literals; as the bits of one number,
computed together, a second; and for strings without escapes, nearly all literals, in columns, a
tenth of that. The id of a term never changes, so cached results remain valid.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.ids import missing_in
from corollary.core.terms import term_of, text_of
from corollary.lang.datatypes import (
    DATATYPES,
    OF_ALL_STRINGS,
    STRING_PATTERNS,
    Value,
    data_value,
    datatypes_of,
)
from corollary.lang.functions import FUNCTIONS
from corollary.lang.operands import Fault
from corollary.lang.syntax import IRI, Constant, Literal

if TYPE_CHECKING:
    import pyarrow as pa

Mask = npt.NDArray[np.bool_]

_BITS = {name: np.uint64(1 << place) for place, name in enumerate(DATATYPES)}
_DATATYPES = np.uint64((1 << len(DATATYPES)) - 1)
_LITERAL = np.uint64(1 << 62)  # the next bit marks all terms that were examined
# The patterns for quoted texts, in Arrow's syntax.
_QUOTED = {name: rf'\A"(?s:{text})"\z' for name, text in STRING_PATTERNS.items()}
_NONE = np.uint64(0)
_FALSE, _TRUE = 1, 2  # or an error; 0: not evaluated yet

NO_VALUE = -1

_Values = npt.NDArray[Any]
_Places = npt.NDArray[np.int64]
_Compute = Callable[[Ids, Dictionary], _Values]


@dataclass
class _Column:
    values: npt.NDArray[Any]  # by id, 0 if not computed yet; or by position in `ids`
    ids: Ids = field(default_factory=lambda: np.zeros(0, np.uint32))  # if few terms are known


_known: WeakKeyDictionary[Dictionary, Literals] = WeakKeyDictionary()


class Literals:
    """The kinds and datatypes of a dictionary's terms, computed on demand."""

    def __init__(self) -> None:
        self._bits = _Column(np.zeros(0, np.uint64))
        self._values = _Column(np.zeros(0, np.int64))
        self._numbers: dict[Value, int] = {}
        self._strings: dict[str, int] = {}  # that no term without escapes stood for
        self._functions: dict[str, _Column] = {}
        self._lock = Lock()

    @classmethod
    def of(cls, dictionary: Dictionary) -> Literals:
        """The cache of a dictionary."""
        found = _known.get(dictionary)
        if found is None:
            found = _known[dictionary] = cls()
        return found

    def is_literal(self, ids: Ids, dictionary: Dictionary) -> Mask:
        """Test which of the terms are literals.

        >>> from corollary.lang.syntax import XSD
        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode([Literal("7", XSD + "byte"), IRI("a"), Literal("x")])
        >>> Literals().is_literal(ids, dictionary)
        array([ True, False,  True])
        """
        return np.asarray((self._of(ids, dictionary) & _LITERAL) != _NONE)

    def has_datatype(self, ids: Ids, datatype: Constant, dictionary: Dictionary) -> Mask:
        """Test which terms are literals whose value is in a datatype's value space.

        >>> from corollary.lang.syntax import XSD
        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode([Literal("7", XSD + "byte"), IRI("a"), Literal("x")])
        >>> Literals().has_datatype(ids, IRI(XSD + "integer"), dictionary)
        array([ True, False, False])
        """
        name = datatype.value if isinstance(datatype, IRI) else None
        if name not in _BITS:
            return np.zeros(len(ids), bool)
        return np.asarray((self._of(ids, dictionary) & _BITS[name]) != _NONE)

    def datatypes(self, ids: Ids, dictionary: Dictionary) -> npt.NDArray[np.int64]:
        """For each term, the datatypes that contain its value, as bits in the order of `DATATYPES`.

        >>> from corollary.lang.syntax import XSD
        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode([Literal("x", XSD + "byte"), IRI("a"), Literal("x")])
        >>> (Literals().datatypes(ids, dictionary) != 0).tolist()
        [False, False, True]
        """
        return (self._of(ids, dictionary) & _DATATYPES).astype(np.int64)

    def values(self, ids: Ids, dictionary: Dictionary) -> npt.NDArray[np.int64]:
        """Numbers that are equal where values are, and `NO_VALUE` for terms without one.

        >>> from corollary.lang.syntax import XSD
        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode(
        ...     [Literal("07", XSD + "int"), IRI("a"), Literal("7", XSD + "byte")]
        ... )
        >>> Literals().values(ids, dictionary)
        array([ 1, -1,  1])
        """
        return self._cached(self._values, ids, dictionary, self._numbered)

    def is_true_of(self, name: str, ids: Ids, dictionary: Dictionary) -> Mask:
        """Test for which terms a function of one term is true.

        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode([IRI("a"), Literal("x"), IRI("a")])
        >>> Literals().is_true_of("isIRI", ids, dictionary)
        array([ True, False,  True])
        """
        known = self._functions.setdefault(name, _Column(np.zeros(0, np.uint8)))
        call = FUNCTIONS[name].call

        def evaluate(new: Ids, dictionary: Dictionary) -> _Values:
            found = np.full(len(new), _FALSE, np.uint8)
            for at, term in enumerate(dictionary.terms(new.tolist())):
                with suppress(Fault):
                    if call(term):
                        found[at] = _TRUE
            return found

        return np.asarray(self._cached(known, ids, dictionary, evaluate) == _TRUE)

    def _of(self, ids: Ids, dictionary: Dictionary) -> npt.NDArray[np.uint64]:
        return self._cached(self._bits, ids, dictionary, _bits_of)

    def _cached(
        self, known: _Column, ids: Ids, dictionary: Dictionary, compute: _Compute
    ) -> _Values:
        if dictionary.partial:
            return self._cached_of_few(known, ids, dictionary, compute)
        values = known.values
        if len(values) >= len(dictionary):
            found = values[ids]
            if found.all():
                return found
        with self._lock:  # joins may call this from several threads
            if len(known.values) < len(dictionary):
                more = np.zeros(len(dictionary) + len(known.values) // 2, values.dtype)
                more[: len(known.values)] = known.values
                known.values = more
            values = known.values
            new = np.unique(ids[values[ids] == 0])
            values[new] = compute(new, dictionary)
            return values[ids]

    def _cached_of_few(
        self, known: _Column, ids: Ids, dictionary: Dictionary, compute: _Compute
    ) -> _Values:
        """Like `_cached`, for a partial dictionary: without arrays over all ids."""
        with self._lock:
            new = missing_in(known.ids, ids)
            if len(new):
                every = np.concatenate([known.ids, new])
                order = np.argsort(every, kind="stable")
                values = np.concatenate([known.values, compute(new, dictionary)])
                known.ids, known.values = every[order], values[order]
            return known.values[np.searchsorted(known.ids, ids)]

    def _numbered(self, ids: Ids, dictionary: Dictionary) -> _Values:
        """Numbers of values: even ones for strings, by the ids of their own terms."""
        import pyarrow as pa

        found = np.full(len(ids), NO_VALUE, np.int64)
        texts = dictionary.texts(ids)
        plain, other = _kinds(texts)
        found[plain] = 2 * (ids[plain].astype(np.int64) + 1)
        if self._strings:  # values of terms that existed before
            for place, text in zip(plain, texts.take(pa.array(plain)).to_pylist(), strict=True):
                found[place] = self._strings.get(text[1:-1], found[place])
        for place, text in zip(other, texts.take(pa.array(other)).to_pylist(), strict=True):
            value = data_value(_literal(text))
            if value is not None:
                found[place] = self._number(value, dictionary)
        return found

    def _number(self, value: Value, dictionary: Dictionary) -> int:
        if value[0] == "string" and isinstance(value[1], str):
            text = value[1]
            if text not in self._strings:
                known = dictionary.find(Literal(text))
                if known is not None and _is_plain(text):
                    return 2 * (known + 1)
                self._strings[text] = 2 * len(self._strings) + 1 + (1 << 40)
            return self._strings[text]
        return self._numbers.setdefault(value, 2 * len(self._numbers) + 1)


def value_texts(texts: pa.LargeStringArray) -> tuple[_Places, pa.LargeStringArray]:
    """Which of the terms are literals with a value, and texts that are equal where values are.

    >>> import pyarrow as pa
    >>> texts = pa.array(
    ...     [
    ...         '"7"^^<http://www.w3.org/2001/XMLSchema#byte>',
    ...         "<a>",
    ...         '"x"',
    ...         '"07"^^<http://www.w3.org/2001/XMLSchema#int>',
    ...     ],
    ...     pa.large_string(),
    ... )
    >>> places, keys = value_texts(texts)
    >>> places.tolist(), keys[0] == keys[2]
    ([0, 2, 3], True)
    """
    import pyarrow as pa

    plain, other = _kinds(texts)
    found = dict(zip(plain.tolist(), texts.take(pa.array(plain)).to_pylist(), strict=True))
    for place, text in zip(other.tolist(), texts.take(pa.array(other)).to_pylist(), strict=True):
        value = data_value(_literal(text))
        if value is None:
            continue
        if value[0] == "string" and isinstance(value[1], str) and _is_plain(value[1]):
            found[place] = f'"{value[1]}"'
        else:
            found[place] = repr(value)  # begins with a parenthesis, not with a quotation mark
    places = sorted(found)
    keys = pa.array([found[place] for place in places], pa.large_string())
    return np.array(places, np.int64), keys


def _kinds(texts: pa.LargeStringArray) -> tuple[_Places, _Places]:
    """Find the positions of strings without escapes, and those of all other literals."""
    import pyarrow.compute as pc

    literal = _mask(pc.starts_with(texts, '"'))
    plain = literal & _mask(pc.ends_with(texts, '"'))
    plain &= ~_mask(pc.match_substring(texts, "\\"))
    return np.flatnonzero(plain), np.flatnonzero(literal & ~plain)


def _bits_of(ids: Ids, dictionary: Dictionary) -> _Values:
    """Compute the kinds and datatypes of terms, as bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = dictionary.texts(ids)
    plain, other = _kinds(texts)
    found = np.full(len(ids), 1 << 63, np.uint64)
    strings = texts.take(pa.array(plain))
    bits = np.full(len(plain), _LITERAL, np.uint64)
    for name in OF_ALL_STRINGS:
        bits |= _BITS[name]
    for name, pattern in _QUOTED.items():
        bits[_mask(pc.match_substring_regex(strings, pattern))] |= _BITS[name]
    found[plain] |= bits
    for place, text in zip(other, texts.take(pa.array(other)).to_pylist(), strict=True):
        found[place] |= _LITERAL
        for name in datatypes_of(_literal(text)):
            found[place] |= _BITS[name]
    return found


def _mask(found: Any) -> Mask:
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _is_plain(text: str) -> bool:
    return text_of(Literal(text)) == f'"{text}"'


def _literal(text: str) -> Literal:
    term = term_of(text)
    assert isinstance(term, Literal), "nothing else begins with a quotation mark"
    return term
