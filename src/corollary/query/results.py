"""Answers: solutions of SELECT as a table, triples of CONSTRUCT and DESCRIBE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.core.terms import term_of
from corollary.lang.syntax import Constant

if TYPE_CHECKING:
    import polars as pl

TRIPLE_COLUMNS = ("subject", "predicate", "object")


@dataclass(frozen=True)
class Answer:
    """A table of terms, each as N-Triples writes it; null is unbound.

    >>> Answer(pa.table({"x": ['"a"', None]})).to_pylist()
    [{'x': '"a"'}, {'x': None}]
    """

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[tuple[Constant | None, ...]]:
        """The rows, as terms."""
        columns = [column.to_pylist() for column in self.table.columns]
        for row in zip(*columns, strict=True) if columns else [()] * len(self):
            yield tuple(None if cell is None else term_of(cell) for cell in row)

    def to_arrow(self) -> pa.Table:
        """The table."""
        return self.table

    def to_pandas(self) -> Any:
        """The table as a pandas frame."""
        return self.table.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The table as a Polars frame."""
        import polars

        found: Any = polars.from_arrow(self.table)
        assert isinstance(found, polars.DataFrame), "a table becomes a frame"
        return found

    def to_pylist(self) -> list[dict[str, str | None]]:
        """The rows as dictionaries of texts."""
        found: list[dict[str, str | None]] = self.table.to_pylist()
        return found


@dataclass(frozen=True)
class Solutions(Answer):
    """What a SELECT found: a column for each variable that it names."""

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables, in the order of the query."""
        return tuple(self.table.column_names)

    def __repr__(self) -> str:
        return f"<Solutions: {len(self):,} of {', '.join('?' + v for v in self.variables)}>"


@dataclass(frozen=True)
class TripleTable(Answer):
    """What a CONSTRUCT or DESCRIBE made: the columns subject, predicate and object."""

    def __repr__(self) -> str:
        return f"<TripleTable: {len(self):,} triples>"
