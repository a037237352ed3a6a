"""Term properties for compiled loops, by id: conditions, values, datatypes, live lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.expressions import holds
from corollary.core.literals import Literals
from corollary.engines.tuples import layout as at
from corollary.engines.tuples.program import Numbers, RuleProgram
from corollary.lang.datatypes import DATATYPES
from corollary.lang.syntax import IRI

_LIVE_LISTS = (
    at.LIVE_PROPERTIES,
    at.LIVE_CLASSES,
    at.LIVE_HEAD_PROPERTIES,
    at.LIVE_HEAD_CLASSES,
)


class TermTables:
    """Arrays over all terms of a dictionary, whose addresses are in a control block."""

    def __init__(self, dictionary: Dictionary, control: Numbers) -> None:
        self._dictionary = dictionary
        self._control = control
        self._program: RuleProgram | None = None
        self._count = 0  # of terms that are known
        self._bitmaps: list[npt.NDArray[np.uint8]] = []  # by condition
        self._bitmap_addresses = np.zeros(1, np.int64)
        self._values: Numbers = np.zeros(0, np.int64)
        self._datatypes: Numbers = np.zeros(0, np.int64)
        self._datatype_ids: Ids = np.zeros(0, np.uint32)
        self._datatype_bits: Numbers = np.zeros(0, np.int64)
        self._live: list[Ids] = [np.zeros(0, np.uint32) for _ in _LIVE_LISTS]
        self._representatives: dict[int, int] = {}  # by value: the first term with it
        self._new_values = np.zeros((0, 4), np.uint32)

    def use(self, program: RuleProgram) -> None:
        """Set the term properties that a program needs; call `refresh` next."""
        before, self._program = self._program, program
        if before is not None and before.asks_same_of_terms(program):
            return
        if program.reads_datatypes:
            self._datatype_ids = self._dictionary.encode(IRI(name) for name in DATATYPES)
        self._count = 0
        self._bitmaps = [np.zeros(len(self._values), np.uint8) for _ in program.term_conditions]
        self._bitmap_addresses = np.zeros(max(1, len(self._bitmaps)), np.int64)
        self._set_addresses()

    def refresh(self) -> None:
        """Evaluate the conditions for new terms."""
        dictionary, program = self._dictionary, self._program
        known, count = self._count, len(dictionary)
        if known == count or program is None:
            return
        new = np.arange(known, count, dtype=np.uint32)
        if count > len(self._values):
            self._grow(count + count // 2)
        for condition, bitmap in zip(program.term_conditions, self._bitmaps, strict=True):
            bitmap[known:count] = holds(condition.expression, {0: new}, len(new), dictionary)
        literals = Literals.of(dictionary)
        if program.reads_values or program.value_relation is not None:
            self._values[known:count] = literals.values(new, dictionary)
        if program.reads_datatypes:
            self._datatypes[known:count] = literals.datatypes(new, dictionary)
            self._datatype_bits[self._datatype_ids] = 1 << np.arange(len(DATATYPES))
        self._count = count
        if program.value_relation is not None:
            self._add_new_values(new, program.value_relation)

    def take_new_values(self) -> npt.NDArray[np.uint32]:
        """The new value facts of literals, as rows, since the last call."""
        rows, self._new_values = self._new_values, self._new_values[:0]
        return rows

    def drop_live_lists(self) -> None:
        """Drop all live lists."""
        for places in self._live:
            places[:] = 0

    def _grow(self, capacity: int) -> None:
        self._bitmaps = [grown(bitmap, capacity) for bitmap in self._bitmaps]
        self._values = grown(self._values, capacity)
        self._datatypes = grown(self._datatypes, capacity)
        self._datatype_bits = grown(self._datatype_bits, capacity)
        self._live = [grown(places, capacity) for places in self._live]
        self._set_addresses()

    def _set_addresses(self) -> None:
        control = self._control
        for number, bitmap in enumerate(self._bitmaps):
            self._bitmap_addresses[number] = bitmap.ctypes.data
        control[at.BITMAPS] = self._bitmap_addresses.ctypes.data
        control[at.TERM_VALUES] = self._values.ctypes.data
        control[at.TERM_DATATYPES] = self._datatypes.ctypes.data
        control[at.DATATYPE_BITS] = self._datatype_bits.ctypes.data
        for place, places in zip(_LIVE_LISTS, self._live, strict=True):
            control[place] = places.ctypes.data

    def _add_new_values(self, terms: Ids, relation: int) -> None:
        """Record value facts; a value is represented by the first term that has it."""
        values: Numbers = self._values[terms]
        with_value = np.flatnonzero(values != at.NO_VALUE)
        rows = np.zeros((len(with_value), 4), np.uint32)
        rows[:, 0], rows[:, 1] = relation, terms[with_value]
        first = self._representatives.setdefault
        rows[:, 2] = [
            first(value, term)
            for value, term in zip(values[with_value].tolist(), rows[:, 1].tolist(), strict=True)
        ]
        self._new_values = np.concatenate([self._new_values, rows])


def grown(array: npt.NDArray[Any], capacity: int) -> npt.NDArray[Any]:
    """A larger copy of an array, filled with zeros."""
    result = np.zeros((capacity, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result
