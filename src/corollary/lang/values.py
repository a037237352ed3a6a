"""Literals as Python values and back.

Integers are `int`, decimals exact `Fraction`s, floats and doubles `float`, strings `str`, booleans
`bool`. Other terms, and literals whose text does not fit their datatype, have no value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Literal as OneOf

from corollary.lang.syntax import XSD, Literal, Term

Number = int | Fraction | float
Value = Number | str | bool
Kind = OneOf["number", "string", "boolean"]

_INTEGERS = frozenset(
    XSD + name
    for name in (
        *("integer", "long", "int", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_INTEGER = re.compile(r"[+-]?\d+\Z", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)\Z", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_QUOTIENT = Context(prec=28)  # digits of a decimal that does not end, such as an average of thirds


def value_of(term: Term) -> Value | None:
    """The value of a literal, None where it has none.

    >>> value_of(Literal("01", XSD + "integer")), value_of(Literal("x", XSD + "integer"))
    (1, None)
    """
    if not isinstance(term, Literal) or term.language is not None:
        return None
    lexical, datatype = term.lexical, term.datatype
    if datatype == XSD + "string":
        return lexical
    lexical = lexical.strip(" \t\r\n")
    if datatype in _INTEGERS:
        return _integer(lexical) if _INTEGER.match(lexical) else None
    if datatype == XSD + "decimal":
        return _decimal(lexical) if _DECIMAL.match(lexical) else None
    if datatype in (XSD + "double", XSD + "float"):
        return float(lexical) if _DOUBLE.match(lexical) else _SPECIAL.get(lexical)
    if datatype == XSD + "boolean":
        return _BOOLEANS.get(lexical)
    return None


def kind_of(value: Value | None) -> Kind | None:
    """Values of one kind can be compared with each other.

    >>> kind_of(1), kind_of(0.5), kind_of(True)
    ('number', 'number', 'boolean')
    """
    match value:
        case None:
            return None
        case bool():
            return "boolean"
        case str():
            return "string"
        case _:
            return "number"


def as_double(number: Number) -> float:
    """The nearest double; numbers beyond all doubles become infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def sum_of(numbers: Sequence[Number]) -> Number:
    """The sum, a double if one of the numbers is; rounded once, so that no order matters.

    >>> sum_of([1, Fraction(1, 2)]), sum_of([0.1] * 10)
    (Fraction(3, 2), 1.0)
    """
    if not any(isinstance(number, float) for number in numbers):
        return sum(numbers)
    doubles = sorted(map(as_double, numbers))
    try:
        return math.fsum(doubles)
    except (OverflowError, ValueError):  # beyond the doubles on the way, or INF and -INF together
        return sum(doubles)


def _integer(digits: str) -> int:
    # int() refuses more than 4,300 digits to bound its quadratic cost; such numbers are real here.
    return int(digits) if len(digits) <= 4000 else int(Decimal(digits))


def _decimal(digits: str) -> Fraction:
    return Fraction(Decimal(digits))


def literal_of(value: Value) -> Literal:
    """The canonical literal of a value.

    >>> literal_of(Fraction(5, 2)).lexical, literal_of(0.5).lexical
    ('2.5', '5.0E-1')
    """
    match value:
        case bool():
            return Literal("true" if value else "false", XSD + "boolean")
        case int():
            return Literal(format(Decimal(value), "f"), XSD + "integer")
        case Fraction():
            return Literal(_decimal_text(value), XSD + "decimal")
        case float():
            return Literal(_double_text(value), XSD + "double")
        case str():
            return Literal(value)


def _decimal_text(value: Fraction) -> str:
    # A fraction that ends has as many decimals as its denominator has factors 2 or 5.
    digits = value.numerator.bit_length() // 3 + value.denominator.bit_length() + 2
    exact = Context(prec=max(28, digits))
    quotient = exact.divide(Decimal(value.numerator), Decimal(value.denominator))
    if Fraction(quotient) != value:
        quotient = _QUOTIENT.divide(Decimal(value.numerator), Decimal(value.denominator))
    text = format(quotient, "f")
    if "." not in text:
        return text + ".0"
    text = text.rstrip("0")
    return text + "0" if text.endswith(".") else text


def _double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int), "finite"
    text = "".join(map(str, digits)).rstrip("0") or "0"
    exponent = exponent + len(digits) - 1 if value else 0
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{exponent}"
