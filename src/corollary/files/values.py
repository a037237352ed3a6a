"""Values of tables as terms, by the declared types of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.errors import InvalidInput, Source
from corollary.files import typed
from corollary.files.cells import read_cell
from corollary.lang.declarations import ColumnType, Relation, has_type, of_number, read_value
from corollary.lang.parser import Parser
from corollary.lang.syntax import XSD, Atom, Constant, Literal
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
    """The terms of distinct values; the number of the term of each value, -1 if it does not fit.

    Values such as `1` and `1.0` may have the same term, which then occurs twice.
    """
    found = [term_of_value(value, kind, quoted=quoted) for value in values]
    fits = np.fromiter((term is not None for term in found), bool, len(found))
    numbers = np.where(fits, np.cumsum(fits) - 1, _NULL)
    return [term for term in found if term is not None], numbers


def check_types(fact: Atom, declared: Relation | None) -> None:
    """Refuse a fact with a term of another type than its column.

    >>> from corollary.lang.program import Program
    >>> program = Program.parse("@relation age(who: string, years: integer) .")
    >>> check_types(
    ...     Atom("age", (literal_of(1), literal_of(2))), program.declarations.relations["age"]
    ... )
    Traceback (most recent call last):
    corollary.errors.InvalidInput: E350: expected a string in 'who', found '1'
      hint: its declaration is @relation age(who: string, years: integer) .
    """
    for term, column in zip(fact.constants(), declared.columns if declared else (), strict=False):
        if not has_type(term, column.type):
            value = term if isinstance(term, Literal) else str(term)
            message = expected(column.type, column.name, value)
            raise InvalidInput("E350", message, f"its declaration is {declared}")


def expected(kind: ColumnType, name: str, value: object) -> str:
    """The message for a value that does not fit.

    >>> expected("decimal", "weight", "heavy")
    "expected a decimal in 'weight', found 'heavy'"
    """
    found = value.lexical if isinstance(value, Literal) else value
    shown = "nothing" if value is None or value == "" else repr(found)[:80]
    return f"expected {_ARTICLES.get(kind, f'a {kind}')} in '{name}', found {shown}"
