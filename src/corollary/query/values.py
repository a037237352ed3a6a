"""Values as texts and as sort keys."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from corollary.core.terms import text_of
from corollary.lang import xsd
from corollary.lang.operands import (
    EXACT,
    Value,
    boolean,
    duration,
    kind_of,
    moment,
    number,
    string,
    term,
)
from corollary.lang.syntax import IRI, BlankNode

_EXACT_INTEGER = 2**53  # doubles represent every integer up to here


def text(value: Value) -> str:
    """The canonical text of a value's term.

    >>> text(3), text(Decimal("2.50")), text(1e10)[:8], text("a")
    ('"3"^^<http://www.w3.org/2001/XMLSchema#integer>', \
'"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"1.0E10"', '"a"')
    """
    return text_of(term(value))


def sort_key(value: Value) -> str:
    """A string that sorts in ORDER BY order: blank nodes, IRIs, literals by value.

    >>> sort_key(IRI("b")) < sort_key(2) < sort_key(10.5) < sort_key("a")
    True
    """
    if isinstance(value, BlankNode):
        return "1" + value.label
    if isinstance(value, IRI):
        return "2" + value.value
    kind = kind_of(value)
    if kind == "number":
        return f"3b{_sortable(number(value))}"
    if kind == "string":
        lexical, tag = string(value)
        return f"3f{lexical}" if tag is None else f"3f{lexical}\0{tag.lower()}"
    if kind == "boolean":
        return f"3a{boolean(value):d}"
    if kind == "duration":
        months, seconds = duration(value)
        return f"3d{_sortable(EXACT.add(Decimal(months * _MONTH), seconds))}"
    if kind is not None:
        return f"3c{kind}{_sortable(moment(value).seconds)}"
    return "3z" + text(value)


_MONTH = 2629746  # seconds of an average month


def _sortable(value: xsd.Number) -> str:
    """A sortable key: the nearest double, then the exact remainder as a tie-breaker.

    >>> _sortable(2**53) < _sortable(2**53 + 1) < _sortable(Decimal(2**53 + 2))
    True
    """
    double = xsd.as_double(value)
    if math.isnan(double):
        return "0" * 16
    bits = struct.unpack(">Q", struct.pack(">d", double + 0.0))[0]
    key = f"{bits ^ 0xFFFFFFFFFFFFFFFF if bits >> 63 else bits | 1 << 63:016x}"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= _EXACT_INTEGER):
        return f"{key}1"
    exact = Decimal(value)
    if math.isinf(double):  # too large for a double: sorts just inside the infinities
        return f"{key}{'0' if double > 0 else '2'}{_sortable_digits(exact)}"
    rest = EXACT.subtract(exact, Decimal(double))
    if not rest:
        return f"{key}1"
    return f"{key}{'2' if rest > 0 else '0'}{_sortable_digits(rest)}"


def _sortable_digits(value: Decimal) -> str:
    """A nonzero number as sign, exponent and digits, so that strings sort by value."""
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0")
    exponent = value.adjusted()
    if value > 0:
        return f"2{exponent + 10**9:010}{digits}"
    return f"0{10**9 - exponent:010}{digits.translate(_COMPLEMENT)}~"


_COMPLEMENT = str.maketrans("0123456789", "9876543210")
