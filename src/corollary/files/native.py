"""Columns of terms as Arrow arrays of native types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.errors import InvalidInput
from corollary.lang import xsd
from corollary.lang.declarations import COLUMN_TYPES, ColumnType, Relation, has_type
from corollary.lang.syntax import IRI, BlankNode, Constant, Literal
from corollary.lang.values import literal_of, value_of

Indices = npt.NDArray[np.int64]
_INT64 = range(-(1 << 63), 1 << 63)
_MAX_DIGITS = 76  # of Arrow's widest decimal
# From narrow to wide, so that a column of integers is not one of doubles.
_INFERRED: tuple[ColumnType, ...] = ("string", "integer", "boolean", "date", "dateTime")
_EXACT = ("integer", "double", "boolean", "date")  # read back as equal terms


def column_type(terms: Iterable[Constant]) -> ColumnType | None:
    """The type that all terms have; None if there is none, or no term.

    >>> column_type([literal_of(1), literal_of(2)]), column_type([literal_of(1), literal_of("a")])
    ('integer', None)
    """
    terms = list(terms)
    datatypes = {term.datatype if isinstance(term, Literal) else None for term in terms}
    if not terms or None in datatypes:
        return None
    found: ColumnType | None
    if datatypes == {xsd.DECIMAL}:
        found = "decimal"
    elif datatypes <= {xsd.DOUBLE, xsd.FLOAT}:
        found = "double"
    else:
        found = next((t for t in _INFERRED if all(has_type(term, t) for term in terms)), None)
    return found if found is not None and native_values(terms, found) is not None else None


def native_array(terms: Sequence[Constant], indices: Indices, kind: ColumnType) -> pa.Array | None:
    """An array of a declared type; None if a term has no value of this type.

    >>> native_array([literal_of(7)], np.zeros(2, np.int64), "integer").type
    DataType(int64)
    """
    values = native_values(terms, kind)
    return None if values is None else values.take(pa.array(indices))


def exact_array(terms: Sequence[Constant], indices: Indices) -> pa.Array | None:
    """An array of numbers, booleans or dates that is read back as the same terms, if there is one.

    >>> exact_array([Literal("01", xsd.INTEGER)], np.zeros(1, np.int64)) is None
    True
    """
    kind = column_type(terms)
    if kind not in _EXACT:
        return None
    for term in terms:
        assert isinstance(term, Literal), "terms with a type are literals"
        value = value_of(term)
        if kind == "date":
            if len(term.lexical) != 10:
                return None
        elif value is None or literal_of(value) != term:
            return None
    return native_array(terms, indices, kind)


def declared_array(
    terms: Sequence[Constant], indices: Indices, relation: Relation, place: int
) -> pa.Array:
    """The array of a declared column; a term of another type is an error."""
    column = relation.columns[place]
    found = native_array(terms, indices, column.type)
    if found is not None:
        return found
    used = (terms[index] for index in np.unique(indices).tolist())
    wrong = next((term for term in used if native_values([term], column.type) is None), None)
    raise _another_type(wrong, relation, place)


def check_declared(
    terms: Sequence[Constant], indices: Indices, relation: Relation, place: int
) -> None:
    """Refuse a term of another type than a declared column has, as `declared_array` does."""
    kind = relation.columns[place].type
    wrong = {number for number, term in enumerate(terms) if not _may_hold(kind, term)}
    if wrong and (used := wrong & {*np.unique(indices).tolist()}):
        raise _another_type(terms[min(used)], relation, place)


def _may_hold(kind: ColumnType, term: Constant) -> bool:
    return has_type(term, kind) or (kind == "iri" and isinstance(term, BlankNode))


def _another_type(wrong: Constant | None, relation: Relation, place: int) -> InvalidInput:
    from corollary.files.cells import write_cell

    column = relation.columns[place]
    shown = "the values together" if wrong is None else write_cell(wrong)[:80]
    return InvalidInput(
        "E352",
        f"'{relation.name}' holds {shown} in '{column.name}', which is declared as {column.type}",
        "correct the rules, or declare the column as any",
    )


def native_values(terms: Sequence[Constant], kind: ColumnType) -> pa.Array | None:
    """The values of distinct terms in a column of a type; None if a term has none."""
    assert kind in COLUMN_TYPES
    if kind == "any":
        from corollary.files.cells import write_cell

        return pa.array([write_cell(term) for term in terms], pa.string())
    if kind == "iri":
        texts = [term.value if isinstance(term, IRI) else None for term in terms]
        blank = [f"_:{term.label}" if isinstance(term, BlankNode) else None for term in terms]
        found = [one or other for one, other in zip(texts, blank, strict=True)]
        return None if None in found else pa.array(found, pa.string())
    if not all(has_type(term, kind) for term in terms):
        return None
    literals = [term for term in terms if isinstance(term, Literal)]
    if kind == "string":
        return pa.array([literal.lexical for literal in literals], pa.string())
    if kind in ("date", "dateTime"):
        return _dates(literals) if kind == "date" else _times(literals)
    values: list[Any] = [value_of(literal) for literal in literals]
    match kind:
        case "integer":
            fits = all(value in _INT64 for value in values)
            return pa.array(values, pa.int64()) if fits else None
        case "double":
            return pa.array([xsd.as_double(value) for value in values], pa.float64())
        case "boolean":
            return pa.array(values, pa.bool_())
    return _decimals(literals)


def _decimals(literals: Sequence[Literal]) -> pa.Array | None:
    texts = [literal.lexical.strip() for literal in literals]
    if any(len(text) > _MAX_DIGITS + 2 for text in texts):
        return None
    values = [Decimal(text) for text in texts]
    scale = max((-int(value.as_tuple().exponent) for value in values), default=0)
    whole = max((value.adjusted() + 1 for value in values), default=1)
    digits = max(whole, 1) + scale
    if digits > _MAX_DIGITS:
        return None
    kind = pa.decimal128(38, scale) if digits <= 38 else pa.decimal256(_MAX_DIGITS, scale)
    return pa.array(values, kind)


def _dates(literals: Sequence[Literal]) -> pa.Array | None:
    found = []
    for literal in literals:
        parsed = xsd.read_date_time(literal.lexical, xsd.DATE)
        if parsed is None or parsed.zone or not 1 <= parsed.year <= 9999:
            return None
        found.append(date(parsed.year, parsed.month, parsed.day))
    return pa.array(found, pa.date32())


def _times(literals: Sequence[Literal]) -> pa.Array | None:
    """Timestamps in microseconds: in UTC if all have a time zone, local if none has one."""
    found: list[datetime] = []
    zoned: set[bool] = set()
    for literal in literals:
        parsed = xsd.read_date_time(literal.lexical, xsd.DATE_TIME)
        if parsed is None or not 2 <= parsed.year <= 9998:
            return None
        micros = parsed.second * 1_000_000
        if micros != int(micros):
            return None
        moment = datetime(parsed.year, parsed.month, parsed.day)
        moment += timedelta(
            hours=parsed.hour,
            minutes=parsed.minute - (parsed.offset or 0),
            microseconds=int(micros),
        )
        zoned.add(parsed.offset is not None)
        found.append(moment.replace(tzinfo=UTC) if parsed.offset is not None else moment)
    if len(zoned) > 1:
        return None
    return pa.array(found, pa.timestamp("us", "UTC" if True in zoned else None))
