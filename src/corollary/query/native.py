"""Terms as Python values: numbers, booleans, dates, and texts of everything else."""

from __future__ import annotations

import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from corollary.core.terms import term_of
from corollary.lang import xsd
from corollary.lang.syntax import IRI, XSD, BlankNode, Constant, Literal
from corollary.lang.values import value_of


def native_value(term: Constant | None) -> Any:
    """Convert a term: an IRI to its text, a literal to the value of its datatype.

    A literal whose datatype has no Python type, or whose text is malformed, becomes its text.

    >>> native_value(Literal("2.50", XSD + "decimal")), native_value(IRI("urn:a"))
    (Decimal('2.50'), 'urn:a')
    >>> native_value(Literal("2026-02-30", XSD + "date"))
    '2026-02-30'
    """
    match term:
        case None:
            return None
        case IRI(value):
            return value
        case BlankNode(label):
            return f"_:{label}"
        case Literal(lexical, _, str()):
            return lexical
        case Literal(lexical, datatype):
            try:
                if datatype == xsd.DECIMAL:
                    return Decimal(lexical.strip())
                if datatype == XSD + "dateTime" or datatype == XSD + "dateTimeStamp":
                    return datetime.datetime.fromisoformat(lexical.strip())
                if datatype == XSD + "date":
                    return datetime.date.fromisoformat(lexical.strip())
                if datatype == XSD + "time":
                    return datetime.time.fromisoformat(lexical.strip())
            except (ValueError, InvalidOperation):
                return lexical
            known = value_of(term)
            return lexical if known is None else known


def native_values(column: pa.ChunkedArray) -> list[Any]:
    """Convert a column of terms in N-Triples syntax; every distinct term is converted once.

    >>> native_values(pa.chunked_array([['"a"', None, '"a"']]))
    ['a', None, 'a']
    """
    encoded = column.combine_chunks().dictionary_encode()
    values = [native_value(term_of(text)) for text in encoded.dictionary.to_pylist()]
    places = encoded.indices.to_pylist()
    return [None if place is None else values[place] for place in places]
