"""What filters ask of literals, found out once for each term: its kind, and its datatypes.

OWL 2 RL gives every literal each of 32 datatypes that has its value. Asked one by one, a hundred
thousand literals take ten seconds; as the bits of a number, found together, half a second, once.
The id of a term never changes, so what is known of it holds forever.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.terms import term_of
from corollary.lang.datatypes import DATATYPES, datatypes_of
from corollary.lang.syntax import IRI, XSD, Constant, Literal

Mask = npt.NDArray[np.bool_]

_BITS = {name: np.uint64(1 << place) for place, name in enumerate(DATATYPES)}
_LITERAL, _SEEN = np.uint64(1 << 62), np.uint64(1 << 63)
_PLACES = {name: 1 << place for place, name in enumerate(DATATYPES)}
_NONE = np.uint64(0)

_known: WeakKeyDictionary[Dictionary, Literals] = WeakKeyDictionary()


class Literals:
    """The kinds and datatypes of a dictionary's terms, as far as somebody asked."""

    def __init__(self) -> None:
        self._bits = np.zeros(0, np.uint64)

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
        return (self._of(ids, dictionary) & _LITERAL) != _NONE

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
        return (self._of(ids, dictionary) & _BITS[name]) != _NONE

    def _of(self, ids: Ids, dictionary: Dictionary) -> npt.NDArray[np.uint64]:
        if len(self._bits) < len(dictionary):
            more = np.zeros(len(dictionary) + len(self._bits) // 2, np.uint64)
            more[: len(self._bits)] = self._bits
            self._bits = more
        bits = self._bits[ids]
        new = ids[bits == _NONE]
        if not len(new):
            return bits
        new = np.unique(new)
        texts = dictionary.texts(new).to_pylist()
        self._bits[new] = np.fromiter(map(_look, texts), np.uint64, len(texts))
        return self._bits[ids]


def _look(text: str) -> int:
    if not text.startswith('"'):
        return 1 << 63
    plain = text.endswith('"') and "\\" not in text
    term = Literal(text[1:-1]) if plain else term_of(text)
    assert isinstance(term, Literal), "nothing else begins with a quotation mark"
    return 3 << 62 | sum(_PLACES[name] for name in datatypes_of(term))
