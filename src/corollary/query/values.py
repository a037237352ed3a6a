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
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation
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
MAX_DIGITS = 100_000  # of a number that an operator makes
MAX_CHARACTERS = 16 << 20  # of a text that a function makes: the longest term that is read
# What has more digits than that is no longer exact, and raises `Inexact`.
EXACT = Context(prec=MAX_DIGITS, traps=[Inexact, InvalidOperation, DivisionByZero])
_SHORT = 4_000  # digits that Python reads and writes directly; it refuses more than 4,300
_SHORT_BITS = 13_000  # of an integer with fewer digits than that
_EXACT_INTEGER = 2**53  # up to which doubles tell all integers apart


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
        if not _INTEGER.fullmatch(lexical):
            return None
        return int(lexical) if len(lexical) <= _SHORT else int(Decimal(lexical))
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
    y, m, d = (_whole(year), int(month), int(day)) if year is not None else (1970, 1, 1)
    h, n, s = (int(hours), int(minutes), Decimal(seconds)) if hours else (0, 0, Decimal(0))
    if not (1 <= m <= 12 and 1 <= d <= _days_in(y, m) and h <= 24 and n < 60 and s < 60):
        return None
    offset = None
    if zone is not None:
        sign = -1 if zone[0] == "-" else 1
        offset = 0 if zone == "Z" else sign * (int(zone[1:3]) * 60 + int(zone[4:6]))
    whole = _days(y, m, d) * 86400 + h * 3600 + n * 60 - (offset or 0) * 60
    total = EXACT.add(Decimal(whole), s)
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
            whole = _whole(days) * 86400 + _whole(hours) * 3600 + _whole(minutes) * 60
            total = EXACT.add(Decimal(whole), Decimal(seconds or 0))
            number_of_months = _whole(years) * 12 + _whole(months)
            if sign:
                return Duration(-number_of_months, EXACT.minus(total))
            return Duration(number_of_months, total)
    raise Fault


def _whole(digits: str | None) -> int:
    return int(Decimal(digits)) if digits else 0


# -- values to terms -----------------------------------------------------------------------------


def term(value: Value) -> Constant:
    """The term of a value."""
    if isinstance(value, str):
        return Literal(value)
    if isinstance(value, bool):
        return Literal("true" if value else "false", BOOLEAN)
    if isinstance(value, int):
        return Literal(integer_text(value), INTEGER)
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


def integer_text(value: int) -> str:
    """An integer of any size.

    >>> integer_text(10**5000) == "1" + "0" * 5000
    True
    """
    return str(value) if value.bit_length() < _SHORT_BITS else format(Decimal(value), "f")


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
    kind, other = kind_of(one), kind_of(two)
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
    if (kind is None or other is None) and not (_is_tagged(one) or _is_tagged(two)):
        raise Fault  # the values of two literals, one of them unknown, may be the same
    return False  # no datatype has a string with a language tag as a value


def _is_tagged(value: Value) -> bool:
    return isinstance(value, Literal) and value.language is not None


def less(one: Value, two: Value) -> bool:
    """SPARQL's `<`."""
    kind = kind_of(one)
    if kind is None or kind != kind_of(two):
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


def kind_of(value: Value) -> str | None:
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
    difference = EXACT.subtract(left.seconds, right.seconds)
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
        return math.inf if value > 0 else -math.inf


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
    kind = kind_of(value)
    if kind == "number":
        return f"3b{_sortable(number(value))}"
    if kind == "string":
        found, tag = string(value)
        return f"3f{found}" if tag is None else f"3f{found}\0{tag.lower()}"
    if kind == "boolean":
        return f"3a{boolean(value):d}"
    if kind == "duration":
        months, seconds = duration(value)
        return f"3d{_sortable(EXACT.add(Decimal(months * _MONTH), seconds))}"
    if kind is not None:
        return f"3c{kind}{_sortable(moment(value).seconds)}"
    return "3z" + text(value)


_MONTH = 2629746  # seconds of a month, on average


def _sortable(value: Number) -> str:
    """The nearest double; then how an exact number differs from it, so that no two are alike.

    >>> _sortable(2**53) < _sortable(2**53 + 1) < _sortable(Decimal(2**53 + 2))
    True
    """
    double = as_float(value)
    if math.isnan(double):
        return "0" * 16
    bits = struct.unpack(">Q", struct.pack(">d", double + 0.0))[0]
    key = f"{bits ^ 0xFFFFFFFFFFFFFFFF if bits >> 63 else bits | 1 << 63:016x}"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= _EXACT_INTEGER):
        return f"{key}1"
    exact = Decimal(value)
    if math.isinf(double):  # beyond all doubles, on the inner side of the infinite ones
        return f"{key}{'0' if double > 0 else '2'}{_sortable_digits(exact)}"
    rest = EXACT.subtract(exact, Decimal(double))
    if not rest:
        return f"{key}1"
    return f"{key}{'2' if rest > 0 else '0'}{_sortable_digits(rest)}"


def _sortable_digits(value: Decimal) -> str:
    """A number other than zero as sign, exponent and digits, in an order that texts have."""
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0")
    exponent = value.adjusted()
    if value > 0:
        return f"2{exponent + 10**9:010}{digits}"
    return f"0{10**9 - exponent:010}{digits.translate(_COMPLEMENT)}~"


_COMPLEMENT = str.maketrans("0123456789", "9876543210")
