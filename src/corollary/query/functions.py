"""SPARQL 1.1's function library, over values.

Each function takes the values of its arguments and gives a value, or raises `Fault`. What looks at
its arguments lazily (`IF`, `COALESCE`, `BOUND`, `&&`, `||`, `IN`) is in `expressions`.
"""

from __future__ import annotations

import hashlib
import math
import operator
import random
import re
import uuid
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact
from functools import lru_cache
from urllib.parse import quote

from corollary.core.terms import LANG_STRING
from corollary.errors import OperationFailed
from corollary.lang.syntax import IRI, XSD, BlankNode, Literal
from corollary.query.values import (
    BOOLEAN,
    DATE_TIME,
    DAY_TIME,
    DECIMAL,
    DOUBLE,
    EXACT,
    FLOAT,
    INTEGER,
    MAX_CHARACTERS,
    MAX_DIGITS,
    STRING,
    Fault,
    Number,
    Single,
    Value,
    as_float,
    boolean,
    decimal_text,
    double_text,
    fields,
    integer_text,
    literal_number,
    moment,
    number,
    promoted,
    single,
    string,
    term,
    truth,
)

_MAX_BITS = MAX_DIGITS * 10 // 3  # a little more than so many digits have
_QUOTIENT = Decimal(1).scaleb(-18)  # decimals of a quotient that does not end
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")


# -- arithmetic ------------------------------------------------------------------------------------


def arithmetic(sign: str, one: Value, two: Value) -> Value:
    """`+`, `-`, `*` or `/`.

    >>> arithmetic("/", 1, 4), arithmetic("+", 1, 0.5)
    (Decimal('0.25'), 1.5)
    """
    left, right = promoted(number(one), number(two))
    if sign == "/":
        return _divided(left, right)
    if isinstance(left, Decimal):
        assert isinstance(right, Decimal), "both were promoted"
        try:
            return _DECIMAL[sign](left, right)
        except Inexact:
            raise _too_large() from None
    if isinstance(left, int) and isinstance(right, int):
        bits, more = left.bit_length(), right.bit_length()
        if (bits + more if sign == "*" else max(bits, more)) > _MAX_BITS:
            raise _too_large()
    found: Number = _BINARY[sign](left, right)
    return single(as_float(found)) if isinstance(left, Single) else found


_DECIMAL = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}
_BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def _too_large() -> OperationFailed:
    return OperationFailed(
        "E567",
        f"an expression makes a number of more than {MAX_DIGITS:,} digits",
        "compute with xsd:double where numbers may become this large",
    )


def check_length(characters: int) -> None:
    """Raise if an expression would make a text of more characters than terms may have."""
    if characters > MAX_CHARACTERS:
        raise OperationFailed(
            "E567",
            f"an expression makes a text of more than {MAX_CHARACTERS >> 20} Mi characters",
            "texts that are joined or replaced again and again grow exponentially",
        )


def _divided(left: Number, right: Number) -> Number:
    if isinstance(left, float):
        if right:
            found = left / float(right)
        else:
            signs = math.copysign(1, left) * math.copysign(1, float(right))
            found = math.nan if left == 0 or left != left else signs * math.inf
        return single(found) if isinstance(left, Single) else found
    if not right:
        raise Fault
    dividend, divisor = Decimal(left), Decimal(right)
    # All digits before the point, and as many after it as decides the last one that stays.
    digits = max(60, dividend.adjusted() - divisor.adjusted() + 60)
    if digits > MAX_DIGITS:
        raise _too_large()
    context = Context(prec=digits)
    quotient = context.divide(dividend, divisor)
    exponent = quotient.as_tuple().exponent
    return quotient.quantize(_QUOTIENT, context=context) if int(exponent) < -18 else quotient


def negated(value: Value) -> Value:
    found = number(value)
    if isinstance(found, float):
        return Single(-found) if isinstance(found, Single) else -found
    return EXACT.minus(found) if isinstance(found, Decimal) else -found


def _absolute(value: Value) -> Value:
    found = number(value)
    return negated(found) if found < 0 else found


def _to_whole(
    decimal: Callable[[Decimal], Decimal], double: Callable[[float], float]
) -> Callable[[Value], Value]:
    def whole(value: Value) -> Value:
        found = number(value)
        if isinstance(found, float):
            result = double(found) if math.isfinite(found) else float(found)
            return Single(result) if isinstance(found, Single) else result
        return decimal(found) if isinstance(found, Decimal) else found

    return whole


# -- strings ---------------------------------------------------------------------------------------


def text_of_value(value: Value) -> str:
    """STR."""
    if isinstance(value, str):
        return value
    if isinstance(value, IRI):
        return value.value
    if isinstance(value, BlankNode):
        raise Fault
    found = term(value)
    assert isinstance(found, Literal), "no other term is left"
    return found.lexical


def _tagged(found: str, language: str | None) -> Value:
    return found if language is None else Literal(found, LANG_STRING, language)


def _compatible(one: Value, two: Value) -> tuple[str, str, str | None]:
    """Two strings of which the second has no language, or that of the first."""
    (left, language), (right, other) = string(one), string(two)
    if other is not None and other.lower() != (language or "").lower():
        raise Fault
    return left, right, language


def _mapped(change: Callable[[str], str]) -> Callable[[Value], Value]:
    def mapped(value: Value) -> Value:
        found, language = string(value)
        return _tagged(change(found), language)

    return mapped


def _concat(*values: Value) -> Value:
    parts = [string(value) for value in values]
    languages = {language for _, language in parts}
    check_length(sum(len(part) for part, _ in parts))
    joined = "".join(part for part, _ in parts)
    return _tagged(joined, languages.pop() if len(languages) == 1 else None)


def _substr(value: Value, start: Value, length: Value | None = None) -> Value:
    found, language = string(value)
    first = as_float(_round(number(start)))
    last = math.inf if length is None else first + as_float(_round(number(length)))
    chosen = (c for place, c in enumerate(found, 1) if first <= place < last)
    return _tagged("".join(chosen), language)


def _round(value: Number) -> Number:
    return number(_ROUND(value))


def _strbefore(one: Value, two: Value) -> Value:
    left, right, language = _compatible(one, two)
    before, found, _ = left.partition(right) if right else ("", True, "")
    return _tagged(before, language) if found else ""


def _strafter(one: Value, two: Value) -> Value:
    left, right, language = _compatible(one, two)
    _, found, after = left.partition(right) if right else ("", True, left)
    return _tagged(after, language) if found else ""


def _test(check: Callable[[str, str], bool]) -> Callable[[Value, Value], Value]:
    def test(one: Value, two: Value) -> Value:
        left, right, _ = _compatible(one, two)
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
    """The text of a string without a language."""
    found, language = string(value)
    if language is not None:
        raise Fault
    return found


def _regex(value: Value, pattern: Value, flags: Value = "") -> Value:
    return _pattern(simple(pattern), simple(flags)).search(string(value)[0]) is not None


def _replace(value: Value, pattern: Value, replacement: Value, flags: Value = "") -> Value:
    found, language = string(value)
    compiled = _pattern(simple(pattern), simple(flags))
    if compiled.search("") is not None:
        raise Fault  # XPath forbids patterns that match nothing at all
    by = re.sub(r"\\(?![\\$])", r"\\\\", simple(replacement)).replace("\\$", "\0")
    by = re.sub(r"\$(\d)", r"\\g<\1>", by).replace("\0", "$")
    try:
        return _tagged(_substituted(compiled, by, found), language)
    except (re.error, IndexError):
        raise Fault from None


def _substituted(pattern: re.Pattern[str], by: str, found: str) -> str:
    """As `pattern.sub`, unless the result is too long."""
    # A match has at least one character, and a group is a part of its match.
    if len(found) * (1 + len(by)) <= MAX_CHARACTERS:
        return pattern.sub(by, found)
    length = len(found)

    def replaced(match: re.Match[str]) -> str:
        nonlocal length
        text = match.expand(by)
        length += len(text) - len(match[0])
        check_length(length)
        return text

    return pattern.sub(replaced, found)


def _langmatches(one: Value, two: Value) -> Value:
    language, wanted = simple(one).lower(), simple(two).lower()
    if wanted == "*":
        return bool(language)
    return language == wanted or language.startswith(wanted + "-")


def _lang(value: Value) -> Value:
    found = term(value)
    if not isinstance(found, Literal):
        raise Fault
    return found.language or ""


def _datatype(value: Value) -> Value:
    found = term(value)
    if not isinstance(found, Literal):
        raise Fault
    return IRI(found.datatype)


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


# -- kinds of terms ----------------------------------------------------------------------------


def _is_numeric(value: Value) -> Value:
    if isinstance(value, Literal):
        return literal_number(value.lexical, value.datatype) is not None
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_literal(value: Value) -> Value:
    return not isinstance(value, IRI | BlankNode)


def _same_term(one: Value, two: Value) -> Value:
    return term(one) == term(two)


# -- times ---------------------------------------------------------------------------------------


def _field(place: int) -> Callable[[Value], Value]:
    def field(value: Value) -> Value:
        if moment(value).kind == ("time" if place < 3 else "date"):
            raise Fault
        found: Value = fields(value)[place]
        return found

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


def _tz(value: Value) -> Value:
    return fields(value)[6]


# -- casts -----------------------------------------------------------------------------------------


def _cast_boolean(value: Value) -> Value:
    if isinstance(value, IRI | BlankNode):
        raise Fault
    try:
        return boolean(value)
    except Fault:
        pass
    try:
        return truth(number(value))
    except Fault:
        return boolean(Literal(text_of_value(value).strip(), BOOLEAN))


def _cast_number(datatype: str) -> Callable[[Value], Value]:
    def cast(value: Value) -> Value:
        if isinstance(value, IRI | BlankNode):
            raise Fault
        found: Number | None
        try:
            found = int(boolean(value))
        except Fault:
            try:
                found = number(value)
            except Fault:
                _cast_from_text(value)
                found = literal_number(text_of_value(value), datatype)
        if found is None:
            raise Fault
        if datatype == DOUBLE:
            return as_float(found)
        if datatype == FLOAT:
            return single(as_float(found))
        if isinstance(found, float) and not math.isfinite(found):
            raise Fault
        return int(found) if datatype == INTEGER else Decimal(found)

    return cast


def _cast_from_text(value: Value) -> None:
    if string(value)[1] is not None:
        raise Fault


def _cast_string(value: Value) -> Value:
    if isinstance(value, BlankNode):
        raise Fault
    try:
        return "true" if boolean(value) else "false"
    except Fault:
        pass
    try:
        found = number(value)
    except Fault:
        return text_of_value(value)
    if isinstance(found, float):
        if not found or 1e-6 <= abs(found) < 1e6:  # XPath writes others with exponents
            return decimal_text(Decimal(repr(float(found)))).removesuffix(".0")
        return double_text(found)
    return integer_text(found) if isinstance(found, int) else decimal_text(found).removesuffix(".0")


def _cast_date_time(value: Value) -> Value:
    if isinstance(value, Literal) and value.datatype == XSD + "date":
        y, m, d, *_, zone = fields(value)
        return Literal(f"{y:04}-{m:02}-{d:02}T00:00:00{zone}", DATE_TIME)
    if isinstance(value, IRI | BlankNode):
        raise Fault
    found = Literal(text_of_value(value).strip(), DATE_TIME)
    moment(found)
    return found


CASTS: dict[str, Callable[[Value], Value]] = {
    BOOLEAN: _cast_boolean,
    INTEGER: _cast_number(INTEGER),
    DECIMAL: _cast_number(DECIMAL),
    FLOAT: _cast_number(FLOAT),
    DOUBLE: _cast_number(DOUBLE),
    STRING: _cast_string,
    DATE_TIME: _cast_date_time,
}
_ROUND = _to_whole(
    lambda d: EXACT.add(d, Decimal("0.5")).to_integral_value(ROUND_FLOOR),
    lambda f: float(math.floor(f + 0.5)),
)

# What a query may call, by name; those of which the value differs from call to call stand apart.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "STR": text_of_value,
    "LANG": _lang,
    "LANGMATCHES": _langmatches,
    "DATATYPE": _datatype,
    "ABS": _absolute,
    "CEIL": _to_whole(lambda d: d.to_integral_value(ROUND_CEILING), lambda f: float(math.ceil(f))),
    "FLOOR": _to_whole(lambda d: d.to_integral_value(ROUND_FLOOR), lambda f: float(math.floor(f))),
    "ROUND": _ROUND,
    "CONCAT": _concat,
    "STRLEN": lambda value: len(string(value)[0]),
    "UCASE": _mapped(str.upper),
    "LCASE": _mapped(str.lower),
    "ENCODE_FOR_URI": lambda value: quote(string(value)[0], safe="~"),
    "CONTAINS": _test(lambda left, right: right in left),
    "STRSTARTS": _test(str.startswith),
    "STRENDS": _test(str.endswith),
    "STRBEFORE": _strbefore,
    "STRAFTER": _strafter,
    "SUBSTR": _substr,
    "REGEX": _regex,
    "REPLACE": _replace,
    "YEAR": _field(0),
    "MONTH": _field(1),
    "DAY": _field(2),
    "HOURS": _field(3),
    "MINUTES": _field(4),
    "SECONDS": _field(5),
    "TIMEZONE": _timezone,
    "TZ": _tz,
    "MD5": _hash("md5"),
    "SHA1": _hash("sha1"),
    "SHA256": _hash("sha256"),
    "SHA384": _hash("sha384"),
    "SHA512": _hash("sha512"),
    "STRLANG": _strlang,
    "STRDT": _strdt,
    "SAMETERM": _same_term,
    "ISIRI": lambda value: isinstance(value, IRI),
    "ISURI": lambda value: isinstance(value, IRI),
    "ISBLANK": lambda value: isinstance(value, BlankNode),
    "ISLITERAL": _is_literal,
    "ISNUMERIC": _is_numeric,
}
VOLATILE: dict[str, Callable[[], Value]] = {
    "RAND": random.random,
    "UUID": lambda: IRI(f"urn:uuid:{uuid.uuid4()}"),
    "STRUUID": lambda: str(uuid.uuid4()),
}
