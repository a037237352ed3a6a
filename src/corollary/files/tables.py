"""Tables of facts: dictionary-encoded columns of terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.files import typed
from corollary.lang.syntax import Atom, Constant, Literal


@dataclass(frozen=True)
class Column:
    """A dictionary-encoded column of terms."""

    terms: Sequence[Constant]
    indices: npt.NDArray[np.int64]

    def __iter__(self) -> Iterator[Constant]:
        return (self.terms[index] for index in self.indices)


@dataclass(frozen=True)
class Table:
    """Facts of one relation; a relation without arguments has one column of ()."""

    relation: str
    columns: Sequence[Column]

    @classmethod
    def of(cls, relation: str, facts: Iterable[Atom]) -> Table:
        """A table of facts that have the same relation."""
        rows = [tuple(fact.constants()) or (UNIT,) for fact in facts]
        return cls(relation, [_numbered(column) for column in zip(*rows, strict=True)])

    def atoms(self) -> Iterator[Atom]:
        """Iterate over the facts."""
        for terms in zip(*self.columns, strict=True):
            yield Atom(self.relation, () if terms == (UNIT,) else terms)


UNIT = Literal("()")  # stands for no arguments


def term_column(column: pa.ChunkedArray) -> Column:
    """A column of Arrow values as terms."""
    encoded = column.combine_chunks().dictionary_encode()
    terms = typed.read_terms(encoded.dictionary)
    return Column(terms, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def merged(tables: Sequence[Table], width: int) -> list[Column]:
    """The columns of several tables, one after the other."""
    columns = []
    for place in range(width):
        terms: list[Constant] = []
        parts = [np.zeros(0, np.int64)]
        for table in tables:
            column = table.columns[place]
            parts.append(column.indices + len(terms))
            terms += column.terms
        columns.append(Column(terms, np.concatenate(parts)))
    return columns


def _numbered(terms: Iterable[Constant]) -> Column:
    numbers: dict[Constant, int] = {}
    indices = [numbers.setdefault(term, len(numbers)) for term in terms]
    return Column(list(numbers), np.array(indices, np.int64))
