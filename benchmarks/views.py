"""Views of rows: the tables shown in the terminal and in the documentation.

A report contains all figures; a view selects those that support its claim, with headings and units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.report import Row, aligned, is_number, written

Where = tuple[tuple[str, Any], ...]
Grid = list[list[str]]

_REASONS = ("skipped", "failed")


@dataclass(frozen=True)
class Column:
    """A key of the rows, its heading, and a factor for its values.

    A `new` column is left out where saved results are older than it, and the page says so.
    """

    key: str
    heading: str = ""
    factor: float = 1
    new: bool = False

    def title(self) -> str:
        return self.heading or self.key.replace("_", " ")

    def cell(self, row: Row) -> str:
        value = row.get(self.key)
        if isinstance(value, int | float) and self.factor != 1:
            value = value * self.factor
        return "" if value is None else written(value)


@dataclass(frozen=True)
class View:
    """A table: `columns` of the rows that satisfy `where`.

    Rows without the key `needs` are omitted, unless they give a reason why they were not measured.
    With `across`, rows that agree in `columns` are merged, and each value of that key becomes a
    group of the columns `values`. The last cell of a row that was not measured gives the reason.
    """

    title: str
    columns: tuple[Column | str, ...]
    across: str = ""
    values: tuple[Column | str, ...] = ()
    where: Where = ()
    needs: str = ""

    def grid(self, rows: Iterable[Row]) -> Grid:
        """Headings and cells; empty if there are no cells.

        >>> rows = [{"n": 1, "by": "a", "s": 0.5}, {"n": 1, "by": "b", "skipped": "no b"}]
        >>> View("", ("n",), across="by", values=(Column("s", "ms", 1e3),)).grid(rows)
        [['n', 'a', 'b'], ['1', '500', 'no b']]
        >>> View("", ("by", "s")).grid(rows)
        [['by', 's'], ['a', '0.5'], ['b', 'no b']]
        """
        kept = self._rows(rows)
        missing = self.missing(kept)
        columns = [column for column in _columns(self.columns) if column not in missing]
        values = [column for column in _columns(self.values) if column not in missing]
        if not self.across:
            shown = [row for row in kept if any(column.cell(row) for column in columns[1:])]
            cells = [_reasoned([c.cell(row) for c in columns], row) for row in kept]
            return [[c.title() for c in columns], *cells] if shown else []
        groups = list(
            dict.fromkeys(written(row[self.across]) for row in kept if self.across in row)
        )
        lines: dict[tuple[str, ...], dict[str, list[str]]] = {}
        for row in kept:
            if self.across in row and (_reason(row) or any(c.cell(row) for c in values)):
                line = lines.setdefault(tuple(c.cell(row) for c in columns), {})
                line[written(row[self.across])] = _reasoned([c.cell(row) for c in values], row)
        empty = [""] * len(values)
        headings = [
            f"{group}: {value.title()}" if len(values) > 1 else group
            for group in groups
            for value in values
        ]
        cells = [
            [*key, *(cell for group in groups for cell in line.get(group, empty))]
            for key, line in lines.items()
        ]
        return [[*(c.title() for c in columns), *headings], *cells] if lines else []

    def missing(self, rows: Iterable[Row]) -> list[Column]:
        """New columns of which the rows have no cell.

        >>> view = View("", ("n", Column("hash", new=True)))
        >>> [column.key for column in view.missing([{"n": 1}])], view.grid([{"n": 1}])
        (['hash'], [])
        """
        kept = self._rows(rows)
        columns = [*_columns(self.columns), *_columns(self.values)]
        return [c for c in columns if c.new and not any(c.cell(row) for row in kept)]

    def _rows(self, rows: Iterable[Row]) -> list[Row]:
        kept = [row for row in rows if matches(row, self.where)]
        if self.needs:
            kept = [row for row in kept if row.get(self.needs) is not None or _reason(row)]
        return kept


def matches(row: Row, where: Where) -> bool:
    """Whether a row has these values; a tuple matches any of its members.

    >>> matches({"case": "a"}, (("case", ("a", "b")),)), matches({}, (("case", "a"),))
    (True, False)
    """
    return all(
        row.get(key) in value if isinstance(value, tuple) else row.get(key) == value
        for key, value in where
    )


def plain(rows: Sequence[Row]) -> list[View]:
    """Default views: all columns, one view per kind of row.

    >>> [view.title for view in plain([{"case": "a", "n": 1}, {"case": "b", "n": 2}])]
    ['a', 'b']
    """
    kinds = dict.fromkeys(str(row.get("case", "rows")) for row in rows)
    found = {kind: [row for row in rows if str(row.get("case", "rows")) == kind] for kind in kinds}
    return [
        View(
            kind,
            tuple(dict.fromkeys(key for row in some for key in row)),
            where=(("case", some[0].get("case")),),
        )
        for kind, some in found.items()
    ]


def text(views: Sequence[View], rows: Sequence[Row]) -> str:
    """Format the views of a report for a terminal, each with its title."""
    grids = [(view.title, view.grid(rows)) for view in views]
    parts = [f"{title}\n\n{aligned(grid)}" for title, grid in grids if grid]
    wrong = [row for row in rows if row.get("correct") is False]
    parts += [f"wrong result: {written(row)}" for row in wrong]
    return "\n\n".join(parts)


def markdown(grid: Grid) -> str:
    """Format a table in Markdown; columns of numbers are right-aligned.

    >>> print(markdown([["a", "n"], ["x", "1"]]))
    | a | n |
    | --- | ---: |
    | x | 1 |
    """
    headings, *cells = [[cell.replace("|", "\\|") for cell in line] for line in grid]
    rules = [
        "---:" if at and all(is_number(line[at]) for line in cells) else "---"
        for at in range(len(headings))
    ]
    lines = [headings, rules, *cells]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def _columns(given: Iterable[Column | str]) -> list[Column]:
    return [Column(item) if isinstance(item, str) else item for item in given]


def _reason(row: Row) -> str:
    return next((str(row[name]) for name in _REASONS if row.get(name)), "")


def _reasoned(cells: list[str], row: Row) -> list[str]:
    reason = _reason(row)
    return [*cells[:-1], reason] if reason and not cells[-1] else cells
