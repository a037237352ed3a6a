"""HTML and SVG for notebooks: tables and trees that need neither JavaScript nor a network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pyarrow as pa

SHOWN = 20  # rows of a table
_LONGEST = 80  # characters of a cell
_LINE, _INDENT, _CHARACTER = 24, 22, 7.3  # pixels
_MOST_ROWS = 400  # of a tree
_EXAMINED = 1000  # rows of each part of a table among which a display looks

_TABLE = "border-collapse:collapse;font-size:90%"
_CELL = "text-align:left;padding:2px 10px 2px 0;border-bottom:1px solid rgba(128,128,128,.35)"
_NOTE = "opacity:.7;font-size:85%"


def html_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", note: str = ""
) -> str:
    """Format a table; long cells are cut, and show their text as a tooltip.

    >>> html_table(["x"], [["<urn:a>"]], note="1 row")[:6]
    '<div><'
    """
    parts = ["<div>"]
    if title:
        parts.append(f"<p><b>{escape(title)}</b></p>")
    parts.append(f'<table style="{_TABLE}">')
    if headers:
        cells = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in headers)
        parts.append(f"<thead><tr>{cells}</tr></thead>")
    parts.append("<tbody>")
    for row in rows:
        cells = "".join(_cell(text) for text in row)
        parts.append(f"<tr>{cells}</tr>")
    parts.append("</tbody></table>")
    if note:
        parts.append(f'<p style="{_NOTE}">{escape(note)}</p>')
    parts.append("</div>")
    return "".join(parts)


def _cell(text: str) -> str:
    if len(text) <= _LONGEST:
        return f'<td style="{_CELL}">{escape(text)}</td>'
    shown = escape(text[: _LONGEST - 1] + "…")
    return f'<td style="{_CELL}" title="{escape(text)}">{shown}</td>'


def html_text(text: str) -> str:
    """Format text whose lines and blanks matter.

    >>> html_text("a < b")
    '<pre>a &lt; b</pre>'
    """
    return f"<pre>{escape(text)}</pre>"


def left_out(shown: int, total: int, what: str, trivial: int = 0) -> str:
    """Say what a display leaves out.

    >>> left_out(20, 1000, "rows")
    '20 of 1,000 rows'
    """
    text = f"{shown:,} of {total:,} {what}" if shown < total else f"{total:,} {what}"
    hidden = "1 trivial one is" if trivial == 1 else f"{trivial:,} trivial ones are"
    return f"{text}; {hidden} not shown" if trivial else text


def windows(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the parts of a table among which a display looks for rows to show.

    These are its beginning and, in case that nothing there is worth it, rows all over the rest.

    >>> [part.num_rows for part in windows(pa.table({"x": range(1500)}))]
    [1000, 500]
    """
    yield table.slice(0, _EXAMINED)
    rest = table.num_rows - _EXAMINED
    if rest > 0:
        places = np.linspace(_EXAMINED, table.num_rows - 1, min(rest, _EXAMINED)).astype(np.int64)
        yield table.take(pa.array(places))


@dataclass(frozen=True)
class TreeRow:
    """A row of a tree: its depth, its text, a note beside it, and its kind, which colors it."""

    depth: int
    text: str
    note: str = ""
    kind: str = ""


_FILLS = {"explicit": "#e4f0e4", "absent": "#f6e6e6", "aggregate": "#ece6f6", "root": "#dde8f6"}


def svg_tree(rows: Iterable[TreeRow], title: str) -> str:
    """Draw a tree as SVG, one row below the other, with lines from parents to children.

    >>> svg_tree([TreeRow(0, "a"), TreeRow(1, "b", "by [r]")], "proof").startswith("<svg")
    True
    """
    listed = list(rows)
    shown = listed[:_MOST_ROWS]
    if len(listed) > len(shown):
        shown.append(TreeRow(0, f"… and {len(listed) - len(shown):,} more steps"))
    width, parts, parents = 0.0, [], dict[int, int]()
    for number, row in enumerate(shown):
        text = row.text if len(row.text) <= 2 * _LONGEST else row.text[: 2 * _LONGEST - 1] + "…"
        x, y = 8 + row.depth * _INDENT, 8 + number * _LINE
        box = len(text) * _CHARACTER + 12
        width = max(width, x + box + 12 + len(row.note) * _CHARACTER)
        if row.depth and row.depth - 1 in parents:
            above = 8 + parents[row.depth - 1] * _LINE + _LINE - 4
            left = x - _INDENT + 8
            parts.append(f'<path d="M{left} {above}V{y + 10}H{x}" fill="none" stroke="#999"/>')
        parents[row.depth] = number
        fill = _FILLS.get(row.kind, "#f4f4f4")
        parts.append(
            f'<g><title>{escape(row.text)}</title><rect x="{x}" y="{y}" width="{box:.0f}"'
            f' height="20" rx="4" fill="{fill}" stroke="#bbb"/>'
            f'<text x="{x + 6}" y="{y + 14}">{escape(text)}</text></g>'
        )
        if row.note:
            parts.append(
                f'<text x="{x + box + 8:.0f}" y="{y + 14}" fill="currentColor" opacity=".7">'
                f"{escape(row.note)}</text>"
            )
    height = 16 + len(shown) * _LINE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}"'
        f' width="{width + 8:.0f}" height="{height}" viewBox="0 0 {width + 8:.0f} {height}"'
        ' font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
