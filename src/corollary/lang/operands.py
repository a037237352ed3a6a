"""RDF terms as SPARQL operands: their values, equality and order.

A value is a term or an operator's result: `bool`, `int` (xsd:integer), `Decimal` (xsd:decimal),
`Single` (xsd:float), `float` (xsd:double) and `str` (xsd:string) stand for literals of their
datatype. A term keeps its lexical form until an operator needs its value, so a query returns "01"
as it was loaded. Errors of SPARQL expressions are `Fault`s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation
from functools import lru_cache, partial
from typing import NamedTuple, TypeVar

from corollary.lang import xsd
from corollary.lang.syntax import IRI, LANG_STRING, XSD, BlankNode, Constant, Literal

T = TypeVar("T")


class Fault(Exception):
    """An expression without a value: SPARQL's type error, or an unbound variable."""


class Moment(NamedTuple):
    """A dateTime, date or time in seconds; without an offset, read as UTC."""

    kind: str
    seconds: Decimal
    offset: int | None  # minutes


class Duration(NamedTuple):
    """A duration."""

    months: int
    seconds: Decimal


Value = Constant | xsd.Number | str  # bool is an int

DAY_TIME = XSD + "dayTimeDuration"
_MOMENTS = {xsd.DATE_TIME: "dateTime", xsd.DATE: "date", xsd.TIME: "time"}
_DURATIONS = {XSD + "duration", DAY_TIME, XSD + "yearMonthDuration"}

_DURATION = re.compile(
    r"(-)?P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
)
_MAX_OFFSET = 14 * 3600  # seconds: the largest offset that a time without one may have
MAX_DIGITS = 100_000  # of an operator's result
MAX_CHARACTERS = 16 << 20  # of a function's result: the longest term that the readers accept
# A result with more digits would be rounded; it raises `Inexact` instead.
EXACT = Context(prec=MAX_DIGITS, traps=[Inexact, InvalidOperation, DivisionByZero])


# -- terms to values -----------------------------------------------------------------------------


def number(value: Value) -> xsd.Number:
    """The numeric value; raises `Fault` for anything else.

    >>> number(Literal("01", xsd.INTEGER)), number(Literal("1.50", xsd.DECIMAL))
    (1, Decimal('1.50'))
    """
    if isinstance(value, Literal):
        parsed = literal_number(value.lexical, value.datatype)
        if parsed is not None:
            return parsed
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return value
    raise Fault


@lru_cache(maxsize=1 << 14)
def literal_number(lexical: str, datatype: str) -> xsd.Number | None:
    """The value of a numeric literal; None for other datatypes and ill-formed literals."""
    return xsd.read_number(lexical.strip(" \t\r\n"), datatype)


def truth(value: Value) -> bool:
    """The effective boolean value.

    >>> truth(Literal("0", xsd.INTEGER)), truth("x"), truth(Literal("x", xsd.BOOLEAN))
    (False, True, False)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return bool(value)
    if isinstance(value, Literal):
        if value.datatype in (xsd.STRING, LANG_STRING):
            return bool(value.lexical)
        if value.datatype == xsd.BOOLEAN:
            return xsd.BOOLEANS.get(value.lexical, False)
        if value.datatype in xsd.NUMERIC:
            parsed = literal_number(value.lexical, value.datatype)
            return bool(parsed) and parsed == parsed
    if isinstance(value, int | float | Decimal):
        return bool(value) and value == value
    raise Fault


def boolean(value: Value) -> bool:
    """The value of a literal of xsd:boolean."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Literal) and value.datatype == xsd.BOOLEAN:
        parsed = xsd.BOOLEANS.get(value.lexical)
        if parsed is not None:
            return parsed
    raise Fault


def string(value: Value) -> tuple[str, str | None]:
    """The lexical form and the language tag of a string literal."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, Literal) and value.datatype in (xsd.STRING, LANG_STRING):
        return value.lexical, value.language
    raise Fault


def moment(value: Value) -> Moment:
    """The value of a dateTime, date or time literal."""
    return _parsed_moment(value)[0]


def fields(value: Value) -> xsd.DateTime:
    """The components of a dateTime, date or time literal."""
    return _parsed_moment(value)[1]


def _parsed_moment(value: Value) -> tuple[Moment, xsd.DateTime]:
    if isinstance(value, Literal) and value.datatype in _MOMENTS:
        parsed = _read_moment(value.lexical, value.datatype)
        if parsed is not None:
            return parsed
    raise Fault


@lru_cache(maxsize=1 << 12)
def _read_moment(lexical: str, datatype: str) -> tuple[Moment, xsd.DateTime] | None:
    value = xsd.read_date_time(lexical, datatype)
    if value is None:
        return None
    year, month, day, hour, minute, second, _ = value
    offset = value.offset
    whole = _days(year, month, day) * 86400 + hour * 3600 + (minute - (offset or 0)) * 60
    return Moment(_MOMENTS[datatype], EXACT.add(Decimal(whole), second), offset), value


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def duration(value: Value) -> Duration:
    """The value of a duration literal."""
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
    """The term that represents a value."""
    if isinstance(value, str):
        return Literal(value)
    if isinstance(value, bool):
        return Literal("true" if value else "false", xsd.BOOLEAN)
    if isinstance(value, int):
        return Literal(xsd.integer_text(value), xsd.INTEGER)
    if isinstance(value, Decimal):
        return Literal(xsd.decimal_text(value), xsd.DECIMAL)
    if isinstance(value, float):
        datatype = xsd.FLOAT if isinstance(value, xsd.Single) else xsd.DOUBLE
        return Literal(xsd.double_text(value), datatype)
    return value


# -- comparison ----------------------------------------------------------------------------------


def equal(one: Value, two: Value) -> bool:
    """SPARQL's `=`: by value if both have one, else by term.

    >>> equal(Literal("01", xsd.INTEGER), 1.0), equal(IRI("a"), IRI("b"))
    (True, False)
    """
    if isinstance(one, IRI | BlankNode) or isinstance(two, IRI | BlankNode):
        return one == two
    kind, other = kind_of(one), kind_of(two)
    if kind == other and kind is not None:
        if kind == "number":
            left, right = promote(number(one), number(two))
            return left == right
        if kind in _READERS:
            return _READERS[kind](one) == _READERS[kind](two)
        return _moment_order(one, two) == 0
    if term(one) == term(two):
        return True
    if (kind is None or other is None) and not (_is_tagged(one) or _is_tagged(two)):
        raise Fault  # a literal with an unknown value may equal any other
    return False  # no datatype has language-tagged strings as values


def _tagged(value: Value) -> tuple[str, str]:
    """The lexical form of a string, and its language tag in lower case."""
    lexical, tag = string(value)
    return lexical, (tag or "").lower()


# Values of these kinds are equal if what is read is.
_READERS: dict[str, Callable[[Value], object]] = {
    "string": _tagged,
    "boolean": boolean,
    "duration": duration,
}


def _is_tagged(value: Value) -> bool:
    return isinstance(value, Literal) and value.language is not None


def less(one: Value, two: Value) -> bool:
    """SPARQL's `<`."""
    kind = kind_of(one)
    if kind is None or kind != kind_of(two):
        raise Fault
    if kind == "number":
        left, right = promote(number(one), number(two))
        return left < right
    if kind == "string":
        (a, tag), (b, other_tag) = _tagged(one), _tagged(two)
        if tag != other_tag:
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
    """The value space of a value; None if it has none."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float | Decimal):
        return "number"
    if not isinstance(value, Literal):
        return None
    datatype = value.datatype
    if datatype in (xsd.STRING, LANG_STRING):
        return "string"
    if datatype in xsd.NUMERIC:
        return None if literal_number(value.lexical, datatype) is None else "number"
    try:
        if datatype == xsd.BOOLEAN:
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


def ordering(value: Value) -> tuple[str, object] | None:
    """A space in which all values are comparable, and a key in it; None if there is none.

    A time with an offset and one without are not always comparable, so their spaces differ; and so
    do those of strings in different languages, and of durations in months and in seconds.

    >>> ordering(Literal("1.0", xsd.DECIMAL)) == ordering(1), ordering("a")
    (True, ('string', 'a'))
    >>> ordering(float("nan")) is None
    True
    """
    kind = kind_of(value)
    if kind is None:
        return None
    if kind == "number":
        key = number(value)
        return None if key != key else (kind, key)
    if kind == "string":
        lexical, tag = _tagged(value)
        return f"string@{tag}" if tag else kind, lexical
    if kind == "boolean":
        return kind, boolean(value)
    if kind == "duration":
        months, seconds = duration(value)
        if months and seconds:
            return None
        return ("months", months) if months else ("seconds", seconds)
    at = moment(value)
    return kind if at.offset is None else f"{kind} with an offset", at.seconds


def _moment_order(one: Value, two: Value) -> Decimal:
    left, right = moment(one), moment(two)
    difference = EXACT.subtract(left.seconds, right.seconds)
    if (left.offset is None) != (right.offset is None) and abs(difference) <= _MAX_OFFSET:
        raise Fault
    return difference


def promote(one: xsd.Number, two: xsd.Number) -> tuple[xsd.Number, xsd.Number]:
    """Two numbers promoted to their common numeric type."""
    if isinstance(one, float) or isinstance(two, float):
        double = any(isinstance(n, float) and not isinstance(n, xsd.Single) for n in (one, two))
        convert = xsd.as_double if double else _as_single
        return convert(one), convert(two)
    if isinstance(one, Decimal) or isinstance(two, Decimal):
        return Decimal(one), Decimal(two)
    return one, two


def _as_single(value: xsd.Number) -> xsd.Single:
    return value if isinstance(value, xsd.Single) else xsd.single(xsd.as_double(value))


def disjunction(tests: Iterable[Callable[[T], bool]], argument: T) -> bool:
    """SPARQL's `||`: true if a test is; `Fault` if none is, but one is an error."""
    fault = False
    for test in tests:
        try:
            if test(argument):
                return True
        except Fault:
            fault = True
    if fault:
        raise Fault
    return False


_SCAN_LIMIT = 4  # up to this many constants, a scan is faster than hashing


class ConstantSet:
    """The constants of an IN, which values are compared with by `=`.

    Equal values have equal keys: the lexical form of strings, the nearest xsd:float of numbers of
    any type. Equality with a literal of unknown value may be an error, so all of them are compared.

    >>> from decimal import Decimal
    >>> numbers = ConstantSet([IRI("a"), *range(10)])
    >>> numbers.include(IRI("a")), numbers.include(Decimal("7.0")), numbers.include("7")
    (True, True, False)
    """

    def __init__(self, constants: Sequence[Constant]) -> None:
        distinct = list(dict.fromkeys(constants))
        self._tests: list[Callable[[Value], bool]] = [partial(equal, each) for each in distinct]
        self._by_key: dict[Hashable, list[Callable[[Value], bool]]] = {}
        self._unknown: list[Callable[[Value], bool]] = []  # literals of unknown value
        if len(distinct) > _SCAN_LIMIT:
            for constant, test in zip(distinct, self._tests, strict=True):
                key = _key(constant)
                tests = self._unknown if key is None else self._by_key.setdefault(key, [])
                tests.append(test)

    def include(self, value: Value) -> bool:
        """Whether a constant equals a value; `Fault` if no comparison decides."""
        tests = self._tests
        if len(tests) > _SCAN_LIMIT:
            key = _key(value)
            if key is not None:
                tests = [*self._by_key.get(key, ()), *self._unknown]
        return disjunction(tests, value)


def _key(value: Value) -> Hashable:
    if isinstance(value, IRI | BlankNode):
        return value
    kind = kind_of(value)
    if kind == "number":
        return kind, float(xsd.single(xsd.as_double(number(value))))
    if kind == "string":
        return kind, *_tagged(value)
    return kind
