"""What filters ask of literals, found out once for each term: its kind, and its datatypes.

OWL 2 RL gives every literal each of 32 datatypes that has its value. Asked one by one, a hundred
thousand literals take ten seconds; as the bits of a number, found together, half a second, once.
The id of a term never changes, so what is known of it holds forever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.terms import term_of
from corollary.lang.datatypes import DATATYPES, Value, data_value, datatypes_of
from corollary.lang.syntax import IRI, XSD, Constant, Literal

Mask = npt.NDArray[np.bool_]

_BITS = {name: np.uint64(1 << place) for place, name in enumerate(DATATYPES)}
_LITERAL = np.uint64(1 << 62)  # the bit above is of all terms that were looked at
_PLACES = {name: 1 << place for place, name in enumerate(DATATYPES)}
_NONE = np.uint64(0)

NO_VALUE = -1


@dataclass
class _Column:
    values: npt.NDArray[Any]  # by id, 0 for terms that nobody asked about


_known: WeakKeyDictionary[Dictionary, Literals] = WeakKeyDictionary()


class Literals:
    """The kinds and datatypes of a dictionary's terms, as far as somebody asked."""

    def __init__(self) -> None:
        self._bits = _Column(np.zeros(0, np.uint64))
        self._values = _Column(np.zeros(0, np.int64))
        self._numbers: dict[Value, int] = {}
        self._lock = Lock()

    @classmethod
    def of(cls, dictionary: Dictionary) -> Literals:
        """Those of a dictionary."""
        found = _known.get(dictionary)
        if found is None:
            found = _known[dictionary] = cls()
        return found

    def is_literal(self, ids: Ids, dictionary: Dictionary) -> Mask:
        """Which of the terms are literals.

        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode([Literal("7", XSD + "byte"), IRI("a"), Literal("x")])
        >>> Literals().is_literal(ids, dictionary)
        array([ True, False,  True])
        """
        return np.asarray((self._of(ids, dictionary) & _LITERAL) != _NONE)

    def has_datatype(self, ids: Ids, datatype: Constant, dictionary: Dictionary) -> Mask:
        """Which of the terms are literals whose value is one of a datatype's.

        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode([Literal("7", XSD + "byte"), IRI("a"), Literal("x")])
        >>> Literals().has_datatype(ids, IRI(XSD + "integer"), dictionary)
        array([ True, False, False])
        """
        name = datatype.value if isinstance(datatype, IRI) else None
        if name not in _BITS:
            return np.zeros(len(ids), bool)
        return np.asarray((self._of(ids, dictionary) & _BITS[name]) != _NONE)

    def values(self, ids: Ids, dictionary: Dictionary) -> npt.NDArray[np.int64]:
        """Numbers that are equal where values are, and `NO_VALUE` for terms without one.

        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode(
        ...     [Literal("07", XSD + "int"), IRI("a"), Literal("7", XSD + "byte")]
        ... )
        >>> Literals().values(ids, dictionary)
        array([ 1, -1,  1])
        """
        return self._looked_up(self._values, ids, dictionary, self._number)

    def _of(self, ids: Ids, dictionary: Dictionary) -> npt.NDArray[np.uint64]:
        return self._looked_up(self._bits, ids, dictionary, _look)

    def _looked_up(
        self, known: _Column, ids: Ids, dictionary: Dictionary, look: Callable[[str], int]
    ) -> npt.NDArray[Any]:
        values = known.values
        if len(values) >= len(dictionary):
            found = values[ids]
            if found.all():
                return found
        with self._lock:  # joins may ask from several threads
            if len(known.values) < len(dictionary):
                more = np.zeros(len(dictionary) + len(known.values) // 2, values.dtype)
                more[: len(known.values)] = known.values
                known.values = more
            values = known.values
            new = np.unique(ids[values[ids] == 0])
            texts = dictionary.texts(new).to_pylist()
            values[new] = np.fromiter(map(look, texts), values.dtype, len(texts))
            return values[ids]

    def _number(self, text: str) -> int:
        if not text.startswith('"'):
            return NO_VALUE
        literal = _literal(text)
        plain = literal.datatype == XSD + "string" and literal.language is None
        value = ("string", literal.lexical) if plain else data_value(literal)
        return (
            NO_VALUE if value is None else self._numbers.setdefault(value, 1 + len(self._numbers))
        )


def _look(text: str) -> int:
    if not text.startswith('"'):
        return 1 << 63
    return 3 << 62 | sum(_PLACES[name] for name in datatypes_of(_literal(text)))


def _literal(text: str) -> Literal:
    plain = text.endswith('"') and "\\" not in text
    term = Literal(text[1:-1]) if plain else term_of(text)
    assert isinstance(term, Literal), "nothing else begins with a quotation mark"
    return term
