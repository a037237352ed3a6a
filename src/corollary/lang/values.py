"""Literals to Python values and back.

Integers are `int`, decimals exact `Fraction`s, floats and doubles `float`, strings `str`, booleans
`bool`. Other terms and ill-formed literals have no value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Literal as OneOf

from corollary.lang import xsd
from corollary.lang.syntax import Literal, Term
from corollary.lang.xsd import as_double

__all__ = ["Kind", "Number", "Value", "as_double", "kind_of", "literal_of", "sum_of", "value_of"]

Number = int | Fraction | float
Value = Number | str | bool
Kind = OneOf["number", "string", "boolean"]

_QUOTIENT = Context(prec=28)  # digits of a decimal that does not end, such as an average of thirds


def value_of(term: Term) -> Value | None:
    """The value of a literal, None if it has none.

    >>> value_of(Literal("01", xsd.INTEGER)), value_of(Literal("x", xsd.INTEGER))
    (1, None)
    """
    if not isinstance(term, Literal) or term.language is not None:
        return None
    datatype = term.datatype
    if datatype == xsd.STRING:
        return term.lexical
    lexical = term.lexical.strip(" \t\r\n")
    if datatype == xsd.BOOLEAN:
        return xsd.BOOLEANS.get(lexical)
    # The rule language computes with doubles only.
    value = xsd.read_number(lexical, xsd.DOUBLE if datatype == xsd.FLOAT else datatype)
    return Fraction(value) if isinstance(value, Decimal) else value


def kind_of(value: Value | None) -> Kind | None:
    """The kind of a value; values of the same kind are comparable.

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


def sum_of(numbers: Sequence[Number]) -> Number:
    """The sum, a double if one of the numbers is; rounded once, so the order does not matter.

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


def literal_of(value: Value) -> Literal:
    """The canonical literal of a value.

    >>> literal_of(Fraction(5, 2)).lexical, literal_of(0.5).lexical
    ('2.5', '5.0E-1')
    """
    match value:
        case bool():
            return Literal("true" if value else "false", xsd.BOOLEAN)
        case int():
            return Literal(xsd.integer_text(value), xsd.INTEGER)
        case Fraction():
            return Literal(xsd.decimal_text(_quotient(value)), xsd.DECIMAL)
        case float():
            return Literal(xsd.double_text(value), xsd.DOUBLE)
        case str():
            return Literal(value)


def _quotient(value: Fraction) -> Decimal:
    """The decimal that equals a fraction, or 28 digits of one that does not end."""
    # A fraction that ends has as many decimals as its denominator has factors 2 or 5.
    digits = value.numerator.bit_length() // 3 + value.denominator.bit_length() + 2
    numerator, denominator = Decimal(value.numerator), Decimal(value.denominator)
    quotient = Context(prec=max(28, digits)).divide(numerator, denominator)
    return quotient if Fraction(quotient) == value else _QUOTIENT.divide(numerator, denominator)
