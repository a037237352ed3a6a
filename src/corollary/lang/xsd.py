"""XML Schema: names of datatypes, lexical forms of values, canonical forms.

An xsd:integer is an `int`, an xsd:decimal a `Decimal`, an xsd:float a `Single`, an xsd:double a
`float`. White space around a lexical form is the caller's business.
"""

from __future__ import annotations

import math
import re
import struct
from calendar import monthrange
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from corollary.lang.syntax import XSD

Number = int | Decimal | float

STRING, BOOLEAN = XSD + "string", XSD + "boolean"
DATE_TIME, DATE, TIME = XSD + "dateTime", XSD + "date", XSD + "time"
INTEGER, DECIMAL, FLOAT, DOUBLE = (XSD + n for n in ("integer", "decimal", "float", "double"))
# The integer types with their least and greatest values.
INTEGERS: dict[str, tuple[int | None, int | None]] = {
    INTEGER: (None, None),
    XSD + "nonNegativeInteger": (0, None),
    XSD + "nonPositiveInteger": (None, 0),
    XSD + "positiveInteger": (1, None),
    XSD + "negativeInteger": (None, -1),
    **{XSD + name: (-(2**bits), 2**bits - 1) for name, bits in
       (("long", 63), ("int", 31), ("short", 15), ("byte", 7))},
    **{XSD + name: (0, 2**bits - 1) for name, bits in
       (("unsignedLong", 64), ("unsignedInt", 32), ("unsignedShort", 16), ("unsignedByte", 8))},
}  # fmt: skip
NUMERIC = INTEGERS.keys() | {DECIMAL, FLOAT, DOUBLE}
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(rf"{_DECIMAL.pattern}(?:[eE][+-]?[0-9]+)?")
_SHORT = 4_000  # digits that `int` and `str` convert; Python refuses more than 4,300
_SHORT_BITS = 13_000  # every integer below this size has fewer digits than _SHORT
_DATE = r"(-?(?:[1-9][0-9]{3,999}|0[0-9]{3}))-([0-9]{2})-([0-9]{2})"  # `int` limits the digits
_TIME = r"([01][0-9]|2[0-4]):([0-5][0-9]):([0-5][0-9](?:\.[0-9]{1,999})?)"
_ZONE = r"Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00"
_DATE_TIME = re.compile(rf"(?:{_DATE})?(T?)(?:{_TIME})?({_ZONE})?")


class Single(float):
    """A value of xsd:float."""


def read_number(lexical: str, datatype: str) -> Number | None:
    """The value of a numeric lexical form; None for other datatypes and ill-formed ones.

    The ranges of the integer types are not checked; floats beyond all finite ones are infinite.

    >>> read_number("+01", INTEGER), read_number("1.50", DECIMAL), read_number("1e3", INTEGER)
    (1, Decimal('1.50'), None)
    """
    if datatype in INTEGERS:
        if not _INTEGER.fullmatch(lexical):
            return None
        return int(lexical) if len(lexical) <= _SHORT else int(Decimal(lexical))
    if datatype == DECIMAL:
        return unsigned_zero(Decimal(lexical)) if _DECIMAL.fullmatch(lexical) else None
    if datatype not in (DOUBLE, FLOAT):
        return None
    double = float(lexical) if _DOUBLE.fullmatch(lexical) else SPECIAL.get(lexical)
    return single(double) if datatype == FLOAT and double is not None else double


class DateTime(NamedTuple):
    """The components of a dateTime, date or time as written; a time has the date 1970-01-01."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: Decimal
    zone: str  # `Z`, such as `+01:00`, or empty

    @property
    def offset(self) -> int | None:
        """The offset from UTC in minutes; None if there is none."""
        if len(self.zone) < 2:
            return 0 if self.zone else None
        minutes = int(self.zone[1:3]) * 60 + int(self.zone[4:])
        return -minutes if self.zone[0] == "-" else minutes


def read_date_time(lexical: str, datatype: str) -> DateTime | None:
    """The components of a dateTime, date or time; None if it is ill-formed.

    >>> read_date_time("2024-02-29Z", DATE).day, read_date_time("2023-02-29", DATE)
    (29, None)
    """
    match = _DATE_TIME.fullmatch(lexical)
    if match is None:
        return None
    year, month, day, separator, hour, minute, second, zone = match.groups()
    parts = (year is not None, bool(separator), hour is not None)
    if parts != (datatype != TIME, datatype == DATE_TIME, datatype != DATE):
        return None
    date = (int(year), int(month), int(day)) if year else (1970, 1, 1)
    time = (int(hour), int(minute), Decimal(second)) if hour else (0, 0, Decimal(0))
    valid = 1 <= date[1] <= 12 and 1 <= date[2] <= monthrange(*date[:2])[1]
    # Hour 24 is midnight at the end of the day only.
    return DateTime(*date, *time, zone or "") if valid and time <= (24, 0, 0) else None


def single(value: float) -> Single:
    """The nearest value of xsd:float."""
    try:
        return Single(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return Single(math.copysign(math.inf, value))


def as_double(value: Number | Fraction) -> float:
    """The nearest double; numbers beyond all doubles become infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


# -- canonical forms -------------------------------------------------------------------------------


def integer_text(value: int) -> str:
    """The decimal digits of an integer of any size.

    >>> integer_text(10**5000) == "1" + "0" * 5000
    True
    """
    return str(value) if value.bit_length() < _SHORT_BITS else format(Decimal(value), "f")


def unsigned_zero(value: Decimal) -> Decimal:
    """A value of xsd:decimal: unlike Python's decimals, it has no negative zero.

    >>> unsigned_zero(Decimal("-0.0")), unsigned_zero(Decimal("-0.1"))
    (Decimal('0.0'), Decimal('-0.1'))
    """
    return value if value else value.copy_abs()


def decimal_text(value: Decimal) -> str:
    """A decimal without exponent or trailing zeros.

    >>> decimal_text(Decimal("1E+2")), decimal_text(Decimal("0.10"))
    ('100.0', '0.1')
    """
    whole, _, fraction = f"{value:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"


def double_text(value: float) -> str:
    """The canonical form of a float or double.

    >>> double_text(0.5), double_text(float("-inf"))
    ('5.0E-1', '-INF')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    shortest = _shortest_single(value) if isinstance(value, Single) else repr(float(value))
    sign, digits, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int), "the value is finite"
    power = exponent + len(digits) - 1 if value else 0
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    return f"{'-' if sign else ''}{figures[0]}.{figures[1:] or '0'}E{power}"


def _shortest_single(value: Single) -> str:
    """The shortest decimal whose nearest xsd:float is this one."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 18))
    return next(text for text in texts if single(float(text)) == value)
