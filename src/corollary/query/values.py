"""What SPARQL's operators see: terms as values, their equality, their order.

A value is a term, or what an operator made: `bool`, `int` (xsd:integer), `Decimal` (xsd:decimal),
`Single` (xsd:float), `float` (xsd:double) and `str` (xsd:string) stand for literals of their
datatype. A term stays as it was written until an operator needs its value, so that "01" comes out
of a query as it went in. Errors of SPARQL's expressions are `Fault`s.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Context, Decimal
from functools import lru_cache
from typing import NamedTuple

from corollary.core.terms import LANG_STRING, text_of
from corollary.lang.syntax import IRI, XSD, BlankNode, Constant, Literal


class Fault(Exception):
    """An expression without a value: SPARQL's type error, or an unbound variable."""


class Single(float):
    """A value of xsd:float."""


class Moment(NamedTuple):
    """A dateTime, date or time: seconds, as if in UTC where it has no offset."""

    kind: str
    seconds: Decimal
    offset: int | None  # minutes


class Duration(NamedTuple):
    """A duration."""

    months: int
    seconds: Decimal


Number = int | Decimal | float
Value = Constant | Number | str  # bool is an int

INTEGER, DECIMAL, FLOAT, DOUBLE = (XSD + n for n in ("integer", "decimal", "float", "double"))
STRING, BOOLEAN, DATE_TIME = XSD + "string", XSD + "boolean", XSD + "dateTime"
DAY_TIME = XSD + "dayTimeDuration"
INTEGERS = frozenset(
    XSD + name
    for name in (
        *("integer", "long", "int", "short", "byte", "negativeInteger", "nonPositiveInteger"),
        *("positiveInteger", "nonNegativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
NUMERIC = INTEGERS | {DECIMAL, FLOAT, DOUBLE}
_MOMENTS = {DATE_TIME: "dateTime", XSD + "date": "date", XSD + "time": "time"}
_DURATIONS = {XSD + "duration", DAY_TIME, XSD + "yearMonthDuration"}

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_MOMENT = re.compile(
    r"(?:(-?[0-9]{4,})-([0-9]{2})-([0-9]{2}))?"
    r"(T?)(?:([0-9]{2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]+)?))?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_DURATION = re.compile(
    r"(-)?P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
)
_UNSURE = 14 * 3600  # seconds by which a time without an offset may be another one in UTC
EXACT = Context(prec=60)  # decimals have as many digits as anybody writes
_MAX_DIGITS = 4_000  # of an integer; Python refuses to read longer ones


# -- terms to values -----------------------------------------------------------------------------


def number(value: Value) -> Number:
    """The number that a value is; a `Fault` if it is none.

    >>> number(Literal("01", INTEGER)), number(Literal("1.50", DECIMAL))
    (1, Decimal('1.50'))
    """
    if isinstance(value, Literal):
        found = literal_number(value.lexical, value.datatype)
        if found is not None:
            return found
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return value
    raise Fault


@lru_cache(maxsize=1 << 14)
def literal_number(lexical: str, datatype: str) -> Number | None:
    """The number of a literal, None if it is none or ill-formed."""
    if datatype not in NUMERIC:
        return None
    lexical = lexical.strip(" \t\r\n")
    if datatype in INTEGERS:
        fits = _INTEGER.fullmatch(lexical) and len(lexical) < _MAX_DIGITS
        return int(lexical) if fits else None
    if datatype == DECIMAL:
        return Decimal(lexical) if _DECIMAL.fullmatch(lexical) else None
    if not _DOUBLE.fullmatch(lexical):
        return None
    found = float(lexical.replace("INF", "inf"))
    return Single(_rounded(found)) if datatype == FLOAT else found


def truth(value: Value) -> bool:
    """The effective boolean value.

    >>> truth(Literal("0", INTEGER)), truth("x"), truth(Literal("x", BOOLEAN))
    (False, True, False)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return bool(value)
    if isinstance(value, Literal):
        if value.datatype in (STRING, LANG_STRING):
            return bool(value.lexical)
        if value.datatype == BOOLEAN:
            return value.lexical in ("true", "1")
        if value.datatype in NUMERIC:
            found = literal_number(value.lexical, value.datatype)
            return bool(found) and found == found
    if isinstance(value, int | float | Decimal):
        return bool(value) and value == value
    raise Fault


def boolean(value: Value) -> bool:
    """The value of a literal of xsd:boolean."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Literal) and value.datatype == BOOLEAN:
        if value.lexical in ("true", "1"):
            return True
        if value.lexical in ("false", "0"):
            return False
    raise Fault


def string(value: Value) -> tuple[str, str | None]:
    """The text and the language of a string literal."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, Literal) and value.datatype in (STRING, LANG_STRING):
        return value.lexical, value.language
    raise Fault


def moment(value: Value) -> Moment:
    """The time that a literal names."""
    if isinstance(value, Literal) and value.datatype in _MOMENTS:
        found = _read_moment(value.lexical, _MOMENTS[value.datatype])
        if found is not None:
            return found[0]
    raise Fault


def fields(value: Value) -> tuple[int, int, int, int, int, Decimal, str]:
    """Year, month, day, hours, minutes, seconds and offset of a time, as they are written."""
    if isinstance(value, Literal) and value.datatype in _MOMENTS:
        found = _read_moment(value.lexical, _MOMENTS[value.datatype])
        if found is not None:
            return found[1]
    raise Fault


@lru_cache(maxsize=1 << 12)
def _read_moment(
    text: str, kind: str
) -> tuple[Moment, tuple[int, int, int, int, int, Decimal, str]] | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, separator, hours, minutes, seconds, zone = match.groups()
    has = {"dateTime": (True, True), "date": (True, False), "time": (False, True)}[kind]
    if has != (year is not None, hours is not None) or (separator == "T") != all(has):
        return None
    y, m, d = (int(year), int(month), int(day)) if year is not None else (1970, 1, 1)
    h, n, s = (int(hours), int(minutes), Decimal(seconds)) if hours else (0, 0, Decimal(0))
    if not (1 <= m <= 12 and 1 <= d <= _days_in(y, m) and h <= 24 and n < 60 and s < 60):
        return None
    offset = None
    if zone is not None:
        sign = -1 if zone[0] == "-" else 1
        offset = 0 if zone == "Z" else sign * (int(zone[1:3]) * 60 + int(zone[4:6]))
    total = Decimal(_days(y, m, d) * 86400 + h * 3600 + n * 60 - (offset or 0) * 60) + s
    return Moment(kind, total, offset), (y, m, d, h, n, s, zone or "")


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01, in the Gregorian calendar before its time too."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def duration(value: Value) -> Duration:
    """The duration that a literal names."""
    if isinstance(value, Literal) and value.datatype in _DURATIONS:
        match = _DURATION.fullmatch(value.lexical)
        if match is not None and any(match.groups()[1:]):
            sign, years, months, days, hours, minutes, seconds = match.groups()
            total = Decimal(int(days or 0) * 86400 + int(hours or 0) * 3600)
            total += int(minutes or 0) * 60 + Decimal(seconds or 0)
            factor = -1 if sign else 1
            return Duration(factor * (int(years or 0) * 12 + int(months or 0)), factor * total)
    raise Fault


# -- values to terms -----------------------------------------------------------------------------


def term(value: Value) -> Constant:
    """The term of a value."""
    if isinstance(value, str):
        return Literal(value)
    if isinstance(value, bool):
        return Literal("true" if value else "false", BOOLEAN)
    if isinstance(value, int):
        return Literal(str(value), INTEGER)
    if isinstance(value, Decimal):
        return Literal(decimal_text(value), DECIMAL)
    if isinstance(value, float):
        return Literal(double_text(value), FLOAT if isinstance(value, Single) else DOUBLE)
    return value


def text(value: Value) -> str:
    """The canonical text of a value's term.

    >>> text(3), text(Decimal("2.50")), text(1e10)[:8], text("a")
    ('"3"^^<http://www.w3.org/2001/XMLSchema#integer>', \
'"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"1.0E10"', '"a"')
    """
    return text_of(term(value))


def decimal_text(value: Decimal) -> str:
    """A decimal without exponent and superfluous zeros.

    >>> decimal_text(Decimal("1E+2")), decimal_text(Decimal("0.10"))
    ('100.0', '0.1')
    """
    found = f"{value:f}"
    if "." in found:
        found = found.rstrip("0")
        return found + "0" if found.endswith(".") else found
    return found + ".0"


def double_text(value: float) -> str:
    """A double as XML Schema's canonical form has it.

    >>> double_text(0.5), double_text(float("-inf"))
    ('5.0E-1', '-INF')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    shortest = _shortest_single(value) if isinstance(value, Single) else repr(float(value))
    sign, digits, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int), "it is finite"
    figures = "".join(map(str, digits)).lstrip("0") or "0"
    power = exponent + len(figures) - 1 if figures != "0" else 0
    figures = figures.rstrip("0") or "0"
    return f"{'-' if sign else ''}{figures[0]}.{figures[1:] or '0'}E{power}"


def _rounded(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def single(value: float) -> Single:
    """The nearest value of xsd:float."""
    return Single(_rounded(value))


def _shortest_single(value: float) -> str:
    return next(t for t in (f"{value:.{n}g}" for n in range(1, 18)) if _rounded(float(t)) == value)


# -- comparison ----------------------------------------------------------------------------------


def equal(one: Value, two: Value) -> bool:
    """SPARQL's `=`: by value where there are values, else by term.

    >>> equal(Literal("01", INTEGER), 1.0), equal(IRI("a"), IRI("b"))
    (True, False)
    """
    if isinstance(one, IRI | BlankNode) or isinstance(two, IRI | BlankNode):
        return one == two
    kind, other = _kind(one), _kind(two)
    if kind == other and kind is not None:
        if kind == "number":
            left, right = promoted(number(one), number(two))
            return left == right
        if kind == "string":
            (a, left_tag), (b, right_tag) = string(one), string(two)
            return a == b and (left_tag or "").lower() == (right_tag or "").lower()
        if kind == "boolean":
            return boolean(one) == boolean(two)
        if kind == "duration":
            return duration(one) == duration(two)
        return _moment_order(one, two) == 0
    if term(one) == term(two):
        return True
    if kind is None or other is None:
        raise Fault  # two literals of which nobody knows whether they mean the same
    return False


def less(one: Value, two: Value) -> bool:
    """SPARQL's `<`."""
    kind = _kind(one)
    if kind is None or kind != _kind(two):
        raise Fault
    if kind == "number":
        left, right = promoted(number(one), number(two))
        return left < right
    if kind == "string":
        (a, tag), (b, other_tag) = string(one), string(two)
        if (tag or "").lower() != (other_tag or "").lower():
            raise Fault
        return a < b
    if kind == "boolean":
        return boolean(one) < boolean(two)
    if kind == "duration":
        left_, right_ = duration(one), duration(two)
        if left_.months == right_.months:
            return left_.seconds < right_.seconds
        if left_.seconds == right_.seconds:
            return left_.months < right_.months
        raise Fault
    return _moment_order(one, two) < 0


def _kind(value: Value) -> str | None:
    """The space that a value belongs to, None where it has none."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float | Decimal):
        return "number"
    if not isinstance(value, Literal):
        return None
    datatype = value.datatype
    if datatype in (STRING, LANG_STRING):
        return "string"
    if datatype in NUMERIC:
        return None if literal_number(value.lexical, datatype) is None else "number"
    try:
        if datatype == BOOLEAN:
            boolean(value)
            return "boolean"
        if datatype in _MOMENTS:
            return moment(value).kind
        if datatype in _DURATIONS:
            duration(value)
            return "duration"
    except Fault:
        pass
    return None


def _moment_order(one: Value, two: Value) -> Decimal:
    left, right = moment(one), moment(two)
    difference = left.seconds - right.seconds
    if (left.offset is None) != (right.offset is None) and abs(difference) <= _UNSURE:
        raise Fault
    return difference


def promoted(one: Number, two: Number) -> tuple[Number, Number]:
    """Two numbers as values of one type."""
    if isinstance(one, float) or isinstance(two, float):
        double = any(isinstance(n, float) and not isinstance(n, Single) for n in (one, two))
        return (as_float(one), as_float(two)) if double else (_as_single(one), _as_single(two))
    if isinstance(one, Decimal) or isinstance(two, Decimal):
        return Decimal(one), Decimal(two)
    return one, two


def as_float(value: Number) -> float:
    """A number as a double."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _as_single(value: Number) -> Single:
    return value if isinstance(value, Single) else single(as_float(value))


# -- order -----------------------------------------------------------------------------------------


def sort_key(value: Value) -> str:
    """A text whose order is that of ORDER BY: blank nodes, IRIs, literals by value.

    >>> sort_key(IRI("b")) < sort_key(2) < sort_key(10.5) < sort_key("a")
    True
    """
    if isinstance(value, BlankNode):
        return "1" + value.label
    if isinstance(value, IRI):
        return "2" + value.value
    kind = _kind(value)
    if kind == "number":
        return f"3b{_sortable(as_float(number(value)))}"
    if kind == "string":
        found, tag = string(value)
        return f"3f{found}" if tag is None else f"3f{found}\0{tag.lower()}"
    if kind == "boolean":
        return f"3a{boolean(value):d}"
    if kind == "duration":
        found_ = duration(value)
        return f"3d{_sortable(float(found_.months * 2629746 + found_.seconds))}"
    if kind is not None:
        return f"3c{kind}{_sortable(float(moment(value).seconds))}"
    return "3z" + text(value)


def _sortable(value: float) -> str:
    if math.isnan(value):
        return "0" * 16
    bits = struct.unpack(">Q", struct.pack(">d", value + 0.0))[0]
    return f"{bits ^ 0xFFFFFFFFFFFFFFFF if bits >> 63 else bits | 1 << 63:016x}"
