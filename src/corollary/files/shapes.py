"""Shapes of tables: which columns of a file or frame hold the arguments of a relation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from corollary.errors import InvalidInput, nearest
from corollary.lang.declarations import COLUMN_TYPES, ColumnType, Relation

# Names that number columns rather than name them: of our own files, and of other tools.
_NUMBERED = re.compile(r"(?:arg|argument |column_?|col_?|f|_c)?\d+")
SAMPLES = 100  # malformed rows that are remembered


class MalformedRow(NamedTuple):
    """The place of a row that was skipped, and the reason."""

    file: str
    line: int | None
    column: int | None
    message: str


@dataclass(eq=False)
class MalformedRows:
    """Counts rows that do not fit their declaration, or rejects the first.

    >>> rows = MalformedRows(skip=True)
    >>> rows.add(MalformedRow("edge.csv", 3, 2, "expected a decimal"))
    >>> rows.count, rows.samples[0].line
    (1, 3)
    """

    skip: bool = False
    count: int = 0
    samples: list[MalformedRow] = field(default_factory=list)

    def add(self, row: MalformedRow, hint: str | None = None) -> None:
        """Count a row, or raise an error."""
        if not self.skip:
            raise InvalidInput(
                "E350", row.message, hint, file=row.file, line=row.line, column=row.column
            )
        self.count += 1
        if len(self.samples) < SAMPLES:
            self.samples.append(row)


@dataclass(frozen=True)
class Shape:
    """A relation whose facts are read, with its declaration, if any.

    With `header`, the first row of a text file names its columns.
    """

    relation: str
    arity: int
    declared: Relation | None = None
    header: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether rows are read by position, and all of them are facts."""
        return self.declared is None and not self.header

    @property
    def types(self) -> Sequence[ColumnType]:
        """The types of the columns."""
        if self.declared is None:
            return [COLUMN_TYPES[-1]] * self.arity  # any
        return [column.type for column in self.declared.columns]

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns, for messages."""
        if self.declared is None:
            return [f"argument {number}" for number in range(1, self.arity + 1)]
        return self.declared.names

    def is_header(self, cells: Sequence[str]) -> bool:
        """Whether the cells of a first row name all declared columns."""
        return self.declared is not None and {*self.names} <= {*map(str.strip, cells)}

    def places(self, names: Sequence[str], file: str) -> list[int]:
        """The position of each argument among named columns; others are ignored.

        >>> from corollary.lang.declarations import Column
        >>> edge = Relation("edge", (Column("from"), Column("to")))
        >>> Shape("edge", 2, edge).places(["to", "note", "from"], "edges.csv")
        [2, 0]
        """
        names = [name.strip() for name in names]
        numbered = all(map(_NUMBERED.fullmatch, names))
        if self.declared is None or (numbered and not self.is_header(names)):
            if len(names) != self.arity:
                raise InvalidInput(
                    "E351",
                    f"expected {self.arity} columns for '{self.relation}', found {len(names)}",
                    f"a declaration chooses columns by name: @relation {self.relation}(…) .",
                    file=file,
                )
            return list(range(self.arity))
        for name in self.names:
            if name not in names:
                close = nearest(name, names)
                found = ", ".join(names[:20])
                raise InvalidInput(
                    "E351",
                    f"there is no column '{name}' for '{self.relation}', only {found}",
                    f"did you mean {close}?" if close else f"its declaration is {self.declared}",
                    file=file,
                )
        return [names.index(name) for name in self.names]
