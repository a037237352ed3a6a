"""SPARQL 1.1's functions and aggregates, over values.

Each function maps the values of its arguments to a value or raises `Fault`. Forms that evaluate
their arguments lazily (`IF`, `COALESCE`, `&&`, `||`, `IN`) are in `forms`.
"""

from __future__ import annotations

import hashlib
import math
import operator
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact
from functools import lru_cache
from urllib.parse import quote

from corollary.errors import OperationFailed
from corollary.lang import xsd
from corollary.lang.operands import (
    DAY_TIME,
    EXACT,
    MAX_CHARACTERS,
    MAX_DIGITS,
    Fault,
    Value,
    boolean,
    fields,
    literal_number,
    moment,
    number,
    promote,
    string,
    term,
    truth,
)
from corollary.lang.syntax import IRI, LANG_STRING, BlankNode, Literal

_MAX_BITS = MAX_DIGITS * 10 // 3  # slightly more bits than MAX_DIGITS digits take
_QUOTIENT = Decimal(1).scaleb(-18)  # decimal places kept of a non-terminating quotient
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
UNLIMITED = 1 << 30
# The functions of SPARQL's grammar, with their minimum and maximum number of arguments.
ARITIES: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("STR", "LANG", "DATATYPE", "IRI", "URI", "ABS", "CEIL", "FLOOR"), (1, 1)),
    **dict.fromkeys(("ROUND", "STRLEN", "UCASE", "LCASE", "ENCODE_FOR_URI", "YEAR"), (1, 1)),
    **dict.fromkeys(("MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"), (1, 1)),
    **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA384", "SHA512", "ISIRI", "ISURI"), (1, 1)),
    **dict.fromkeys(("ISBLANK", "ISLITERAL", "ISNUMERIC"), (1, 1)),
    **dict.fromkeys(("LANGMATCHES", "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE"), (2, 2)),
    **dict.fromkeys(("STRAFTER", "STRLANG", "STRDT", "SAMETERM"), (2, 2)),
    **dict.fromkeys(("RAND", "NOW", "UUID", "STRUUID"), (0, 0)),
    **dict.fromkeys(("CONCAT", "COALESCE"), (0, UNLIMITED)),
    "BNODE": (0, 1),
    "IF": (3, 3),
    "REGEX": (2, 3),
    "SUBSTR": (2, 3),
    "REPLACE": (3, 4),
}


# -- arithmetic ------------------------------------------------------------------------------------


def arithmetic(sign: str, one: Value, two: Value) -> Value:
    """`+`, `-`, `*` or `/`.

    >>> arithmetic("/", 1, 4), arithmetic("+", 1, 0.5)
    (Decimal('0.25'), 1.5)
    """
    left, right = promote(number(one), number(two))
    if sign == "/":
        return _divide(left, right)
    if isinstance(left, Decimal):
        assert isinstance(right, Decimal), "both were promoted"
        try:
            return xsd.unsigned_zero(_DECIMAL[sign](left, right))
        except Inexact:
            raise _too_large() from None
    if isinstance(left, int) and isinstance(right, int):
        left_bits, right_bits = left.bit_length(), right.bit_length()
        if (left_bits + right_bits if sign == "*" else max(left_bits, right_bits)) > _MAX_BITS:
            raise _too_large()
    result: xsd.Number = _BINARY[sign](left, right)
    return xsd.single(xsd.as_double(result)) if isinstance(left, xsd.Single) else result


_DECIMAL = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}
_BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def _too_large() -> OperationFailed:
    return OperationFailed(
        "E567",
        f"an expression produces a number of more than {MAX_DIGITS:,} digits",
        "use xsd:double for numbers of this size",
    )


def check_length(characters: int) -> None:
    """Raise E567 if an expression would build a string longer than a term may be."""
    if characters > MAX_CHARACTERS:
        raise OperationFailed(
            "E567",
            f"an expression produces a string of more than {MAX_CHARACTERS >> 20} Mi characters",
            "repeated CONCAT or REPLACE makes strings grow exponentially",
        )


def _divide(left: xsd.Number, right: xsd.Number) -> xsd.Number:
    if isinstance(left, float):
        if right:
            quotient = left / float(right)
        else:
            signs = math.copysign(1, left) * math.copysign(1, float(right))
            quotient = math.nan if left == 0 or left != left else signs * math.inf
        return xsd.single(quotient) if isinstance(left, xsd.Single) else quotient
    if not right:
        raise Fault
    dividend, divisor = Decimal(left), Decimal(right)
    # Every digit before the point, and enough after it to round the last digit that is kept.
    digits = max(60, dividend.adjusted() - divisor.adjusted() + 60)
    if digits > MAX_DIGITS:
        raise _too_large()
    context = Context(prec=digits)
    exact = context.divide(dividend, divisor)
    exponent = exact.as_tuple().exponent
    rounded = exact.quantize(_QUOTIENT, context=context) if int(exponent) < -18 else exact
    return xsd.unsigned_zero(rounded)


def negate(value: Value) -> Value:
    operand = number(value)
    if isinstance(operand, float):
        return xsd.Single(-operand) if isinstance(operand, xsd.Single) else -operand
    return EXACT.minus(operand) if isinstance(operand, Decimal) else -operand


def _absolute(value: Value) -> Value:
    operand = number(value)
    return negate(operand) if operand < 0 else operand


def _to_whole(
    decimal: Callable[[Decimal], Decimal], double: Callable[[float], float]
) -> Callable[[Value], Value]:
    def whole(value: Value) -> Value:
        operand = number(value)
        if isinstance(operand, float):
            result = double(operand) if math.isfinite(operand) else float(operand)
            return xsd.Single(result) if isinstance(operand, xsd.Single) else result
        return xsd.unsigned_zero(decimal(operand)) if isinstance(operand, Decimal) else operand

    return whole


# -- strings ---------------------------------------------------------------------------------------


def text_of_value(value: Value) -> str:
    """STR."""
    if isinstance(value, str):
        return value
    return value.value if isinstance(value, IRI) else _literal(value).lexical


def _literal(value: Value) -> Literal:
    literal = term(value)
    if not isinstance(literal, Literal):
        raise Fault
    return literal


def _with_language(lexical: str, language: str | None) -> Value:
    return lexical if language is None else Literal(lexical, LANG_STRING, language)


def _argument_compatible(one: Value, two: Value) -> tuple[str, str, str | None]:
    """Argument-compatible strings: the second has no language tag, or that of the first."""
    (left, language), (right, other) = string(one), string(two)
    if other is not None and other.lower() != (language or "").lower():
        raise Fault
    return left, right, language


def _map_lexical(change: Callable[[str], str]) -> Callable[[Value], Value]:
    def mapped(value: Value) -> Value:
        lexical, language = string(value)
        return _with_language(change(lexical), language)

    return mapped


def _concat(*values: Value) -> Value:
    parts = [string(value) for value in values]
    languages = {language for _, language in parts}
    check_length(sum(len(part) for part, _ in parts))
    joined = "".join(part for part, _ in parts)
    return _with_language(joined, languages.pop() if len(languages) == 1 else None)


def _substr(value: Value, start: Value, length: Value | None = None) -> Value:
    lexical, language = string(value)
    first = xsd.as_double(_round(number(start)))
    last = math.inf if length is None else first + xsd.as_double(_round(number(length)))
    chosen = (c for position, c in enumerate(lexical, 1) if first <= position < last)
    return _with_language("".join(chosen), language)


def _round(value: xsd.Number) -> xsd.Number:
    return number(_ROUND(value))


def _strbefore(one: Value, two: Value) -> Value:
    left, right, language = _argument_compatible(one, two)
    before, separator, _ = left.partition(right) if right else ("", True, "")
    return _with_language(before, language) if separator else ""


def _strafter(one: Value, two: Value) -> Value:
    left, right, language = _argument_compatible(one, two)
    _, separator, after = left.partition(right) if right else ("", True, left)
    return _with_language(after, language) if separator else ""


def _test(check: Callable[[str, str], bool]) -> Callable[[Value, Value], Value]:
    def test(one: Value, two: Value) -> Value:
        left, right, _ = _argument_compatible(one, two)
        return check(left, right)

    return test


@lru_cache(maxsize=256)
def _pattern(pattern: str, flags: str) -> re.Pattern[str]:
    if not set(flags) <= set("smixq"):
        raise Fault
    if "q" in flags:
        pattern = re.escape(pattern)
    chosen = {"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE, "x": re.VERBOSE}
    option = re.RegexFlag(0)
    for flag in flags.replace("q", ""):
        option |= chosen[flag]
    try:
        return re.compile(pattern, option)
    except re.error:
        raise Fault from None


def simple(value: Value) -> str:
    """The lexical form of a string without a language tag."""
    lexical, language = string(value)
    if language is not None:
        raise Fault
    return lexical


def _regex(value: Value, pattern: Value, flags: Value = "") -> Value:
    return _pattern(simple(pattern), simple(flags)).search(string(value)[0]) is not None


def _replace(value: Value, pattern: Value, replacement: Value, flags: Value = "") -> Value:
    lexical, language = string(value)
    compiled = _pattern(simple(pattern), simple(flags))
    if compiled.search("") is not None:
        raise Fault  # XPath forbids patterns that match the empty string
    template = re.sub(r"\\(?![\\$])", r"\\\\", simple(replacement)).replace("\\$", "\0")
    template = re.sub(r"\$(\d)", r"\\g<\1>", template).replace("\0", "$")
    try:
        return _with_language(_substitute(compiled, template, lexical), language)
    except (re.error, IndexError):
        raise Fault from None


def _substitute(pattern: re.Pattern[str], template: str, lexical: str) -> str:
    """Like `pattern.sub`, but raise E567 if the result is too long."""
    # A match has at least one character, and a group is part of its match.
    if len(lexical) * (1 + len(template)) <= MAX_CHARACTERS:
        return pattern.sub(template, lexical)
    length = len(lexical)

    def expand(match: re.Match[str]) -> str:
        nonlocal length
        text = match.expand(template)
        length += len(text) - len(match[0])
        check_length(length)
        return text

    return pattern.sub(expand, lexical)


def _langmatches(one: Value, two: Value) -> Value:
    language, language_range = simple(one).lower(), simple(two).lower()
    if language_range == "*":
        return bool(language)
    return language == language_range or language.startswith(language_range + "-")


def _strdt(value: Value, datatype: Value) -> Value:
    if not isinstance(datatype, IRI):
        raise Fault
    return Literal(simple(value), datatype.value)


def _strlang(value: Value, language: Value) -> Value:
    tag = simple(language)
    if not _LANGUAGE.fullmatch(tag):
        raise Fault
    return Literal(simple(value), LANG_STRING, tag.lower())


def _hash(name: str) -> Callable[[Value], Value]:
    def digest(value: Value) -> Value:
        return hashlib.new(name, simple(value).encode(), usedforsecurity=False).hexdigest()

    return digest


# -- terms ----------------------------------------------------------------------------


def _is_numeric(value: Value) -> Value:
    if isinstance(value, Literal):
        return literal_number(value.lexical, value.datatype) is not None
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


# -- times ---------------------------------------------------------------------------------------


def _field(place: int) -> Callable[[Value], Value]:
    def field(value: Value) -> Value:
        if moment(value).kind == ("time" if place < 3 else "date"):
            raise Fault
        component: Value = fields(value)[place]
        return component

    return field


def _timezone(value: Value) -> Value:
    offset = moment(value).offset
    if offset is None:
        raise Fault
    if offset == 0:
        return Literal("PT0S", DAY_TIME)
    hours, minutes = divmod(abs(offset), 60)
    parts = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    return Literal(f"{'-' if offset < 0 else ''}PT{parts}", DAY_TIME)


# -- casts -----------------------------------------------------------------------------------------


def _cast_boolean(value: Value) -> Value:
    if isinstance(value, IRI | BlankNode):
        raise Fault
    for convert in (boolean, lambda value: truth(number(value))):
        with suppress(Fault):
            return convert(value)
    return boolean(Literal(text_of_value(value).strip(), xsd.BOOLEAN))


def _cast_number(datatype: str) -> Callable[[Value], Value]:
    def cast(value: Value) -> Value:
        if isinstance(value, IRI | BlankNode):
            raise Fault
        result: xsd.Number | None
        try:
            result = int(boolean(value))
        except Fault:
            try:
                result = number(value)
            except Fault:
                result = literal_number(simple(value), datatype)
        if result is None:
            raise Fault
        if datatype == xsd.DOUBLE:
            return xsd.as_double(result)
        if datatype == xsd.FLOAT:
            return xsd.single(xsd.as_double(result))
        if isinstance(result, float) and not math.isfinite(result):
            raise Fault
        return int(result) if datatype == xsd.INTEGER else xsd.unsigned_zero(Decimal(result))

    return cast


def _cast_string(value: Value) -> Value:
    if isinstance(value, BlankNode):
        raise Fault
    with suppress(Fault):
        return "true" if boolean(value) else "false"
    try:
        numeric = number(value)
    except Fault:
        return text_of_value(value)
    if isinstance(numeric, int):
        return xsd.integer_text(numeric)
    if isinstance(numeric, float):
        if numeric and not 1e-6 <= abs(numeric) < 1e6:  # XPath writes these with exponents
            return xsd.double_text(numeric)
        numeric = Decimal(repr(float(numeric)))
    return xsd.decimal_text(numeric).removesuffix(".0")


def _cast_date_time(value: Value) -> Value:
    if isinstance(value, Literal) and value.datatype == xsd.DATE:
        y, m, d, *_, zone = fields(value)
        return Literal(f"{y:04}-{m:02}-{d:02}T00:00:00{zone}", xsd.DATE_TIME)
    if isinstance(value, IRI | BlankNode):
        raise Fault
    literal = Literal(text_of_value(value).strip(), xsd.DATE_TIME)
    moment(literal)
    return literal


CASTS: dict[str, Callable[[Value], Value]] = {
    xsd.BOOLEAN: _cast_boolean,
    xsd.INTEGER: _cast_number(xsd.INTEGER),
    xsd.DECIMAL: _cast_number(xsd.DECIMAL),
    xsd.FLOAT: _cast_number(xsd.FLOAT),
    xsd.DOUBLE: _cast_number(xsd.DOUBLE),
    xsd.STRING: _cast_string,
    xsd.DATE_TIME: _cast_date_time,
}
_ROUND = _to_whole(
    lambda d: EXACT.add(d, Decimal("0.5")).to_integral_value(ROUND_FLOOR),
    lambda f: float(math.floor(f + 0.5)),
)

_FIELDS = ("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS")

# Functions of values, by name.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "STR": text_of_value,
    "LANG": lambda value: _literal(value).language or "",
    "LANGMATCHES": _langmatches,
    "DATATYPE": lambda value: IRI(_literal(value).datatype),
    "ABS": _absolute,
    "CEIL": _to_whole(lambda d: d.to_integral_value(ROUND_CEILING), lambda f: float(math.ceil(f))),
    "FLOOR": _to_whole(lambda d: d.to_integral_value(ROUND_FLOOR), lambda f: float(math.floor(f))),
    "ROUND": _ROUND,
    "CONCAT": _concat,
    "STRLEN": lambda value: len(string(value)[0]),
    "UCASE": _map_lexical(str.upper),
    "LCASE": _map_lexical(str.lower),
    "ENCODE_FOR_URI": lambda value: quote(string(value)[0], safe="~"),
    "CONTAINS": _test(lambda left, right: right in left),
    "STRSTARTS": _test(str.startswith),
    "STRENDS": _test(str.endswith),
    "STRBEFORE": _strbefore,
    "STRAFTER": _strafter,
    "SUBSTR": _substr,
    "REGEX": _regex,
    "REPLACE": _replace,
    **{name: _field(place) for place, name in enumerate(_FIELDS)},
    "TIMEZONE": _timezone,
    "TZ": lambda value: fields(value).zone,
    **{name.upper(): _hash(name) for name in ("md5", "sha1", "sha256", "sha384", "sha512")},
    "STRLANG": _strlang,
    "STRDT": _strdt,
    "SAMETERM": lambda one, two: term(one) == term(two),
    "ISIRI": lambda value: isinstance(value, IRI),
    "ISURI": lambda value: isinstance(value, IRI),
    "ISBLANK": lambda value: isinstance(value, BlankNode),
    "ISLITERAL": lambda value: not isinstance(value, IRI | BlankNode),
    "ISNUMERIC": _is_numeric,
}


# -- aggregates ------------------------------------------------------------------------------------


def _sum(values: Sequence[Value], separator: str) -> Value:
    numbers = [number(value) for value in values]
    integers = [each for each in numbers if isinstance(each, int)]
    if len(integers) == len(numbers):
        return sum(integers)
    total: Value = 0
    for each in numbers:
        total = arithmetic("+", total, each)
    return total


def _average(values: Sequence[Value], separator: str) -> Value:
    return arithmetic("/", _sum(values, separator), len(values)) if values else 0


def concatenated(values: Sequence[Value], separator: str) -> str:
    """The texts of values with a separator between them; `Fault` for a blank node."""
    texts = [text_of_value(value) for value in values]
    check_length(sum(map(len, texts)) + len(separator) * max(0, len(texts) - 1))
    return separator.join(texts)


# Each takes the values of a group and the separator of GROUP_CONCAT.
AGGREGATES: dict[str, Callable[[Sequence[Value], str], Value]] = {
    "SUM": _sum,
    "AVG": _average,
    "GROUP_CONCAT": concatenated,
}
