"""Values of tables as terms, by the declared types of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.errors import Source
from corollary.files import typed
from corollary.files.cells import read_cell
from corollary.lang.declarations import ColumnType, of_number, read_value
from corollary.lang.parser import Parser
from corollary.lang.syntax import XSD, Constant, Literal
from corollary.lang.values import literal_of

Indices = npt.NDArray[np.int64]
_NULL = -1
_ARTICLES = {"integer": "an integer", "iri": "an IRI", "any": "a value"}
_DATES = {"date": XSD + "date", "dateTime": XSD + "dateTime"}


def distinct_values(column: pa.ChunkedArray | pa.Array) -> tuple[list[object], Indices]:
    """The distinct values of a column, and the number of that of each row; -1 is null."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.dictionary_encode()
    distinct = encoded.dictionary
    temporal = pa.types.is_temporal(distinct.type)
    values: list[object] = [*typed.read_terms(distinct)] if temporal else distinct.to_pylist()
    indices = encoded.indices.fill_null(_NULL).to_numpy(zero_copy_only=False).astype(np.int64)
    return values, indices


def term_of_value(value: object, kind: ColumnType, *, quoted: bool = False) -> Constant | None:
    """The term of a value in a column of a type; None if it does not fit.

    With `quoted`, as in tab-separated files, a text in double quotes is a string with escapes.

    >>> term_of_value("7", "string"), term_of_value("x", "decimal")
    (Literal(lexical='7', datatype='http://www.w3.org/2001/XMLSchema#string', language=None), None)
    """
    match value:
        case str():
            return _of_text(value, kind, quoted)
        case Literal():  # of Arrow's dates and times
            return value if kind == "any" or _DATES.get(kind) == value.datatype else None
        case bool():
            return literal_of(value) if kind in ("any", "boolean") else None
        case int() | float() | Decimal():
            if kind == "any":
                if isinstance(value, Decimal):
                    return Literal(format(value, "f"), XSD + "decimal")
                return literal_of(value)
            return of_number(value, kind) if kind in ("integer", "decimal", "double") else None
    return None


def _of_text(text: str, kind: ColumnType, quoted: bool) -> Constant | None:
    if kind == "any":
        return read_cell(text)
    if kind == "string" and quoted and text.startswith('"'):
        found = Parser(Source("cell", text)).read_whole(Parser.constant)
        if isinstance(found, Literal) and found == Literal(found.lexical):
            return found
    return read_value(text, kind)


def terms_of_values(
    values: Sequence[object], kind: ColumnType, *, quoted: bool = False
) -> tuple[list[Constant], Indices]:
    """The terms of distinct values; the number of the term of each value, -1 if it does not fit."""
    terms: dict[Constant, int] = {}
    numbers = np.full(len(values), _NULL, np.int64)
    for place, value in enumerate(values):
        term = term_of_value(value, kind, quoted=quoted)
        if term is not None:
            numbers[place] = terms.setdefault(term, len(terms))
    return list(terms), numbers


def expected(kind: ColumnType, name: str, value: object) -> str:
    """The message for a value that does not fit.

    >>> expected("decimal", "weight", "heavy")
    "expected a decimal in 'weight', found 'heavy'"
    """
    found = value.lexical if isinstance(value, Literal) else value
    shown = "nothing" if value is None or value == "" else repr(found)[:80]
    return f"expected {_ARTICLES.get(kind, f'a {kind}')} in '{name}', found {shown}"
