"""The datatypes of OWL 2 RL: which literals are well-formed, and what their values are.

A *value* is a pair of a value space and something that identifies the value in it, so that two
literals have the same value if and only if the pairs are equal. Integers and decimals share one
space; `xsd:float` and `xsd:double` have spaces of their own, as XML Schema says. Values are
identical, not just equal: 0 and -0 differ, and so do times with different offsets.

Differs from XML Schema 1.1: white space around a literal makes it ill-formed (as RDF 1.1 has it),
and so does a float or double that is beyond all finite ones or below the smallest (as the OWL 2
test cases have it).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from xml.etree import ElementTree

from corollary.lang.syntax import RDF, XSD, Literal

RDFS_LITERAL = "http://www.w3.org/2000/01/rdf-schema#Literal"

Value = tuple[str, object]

_TAG = r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*"
_START = "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
_START += "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
_PART = _START + r"0-9.\-" + "\u00b7\u0300-\u036f\u203f\u2040"

# Strings: which values the derived types hold.
_STRINGS = {
    XSD + "string": re.compile(r".*", re.DOTALL),
    XSD + "normalizedString": re.compile(r"[^\t\n\r]*"),
    XSD + "token": re.compile(r"(?:[^\t\n\r ]+(?: [^\t\n\r ]+)*)?"),
    XSD + "language": re.compile(_TAG),
    XSD + "Name": re.compile(rf"[{_START}:][{_PART}:]*"),
    XSD + "NCName": re.compile(rf"[{_START}][{_PART}]*"),
    XSD + "NMTOKEN": re.compile(rf"[{_PART}:]+"),
}
# Integers: the least and the greatest value.
_INTEGERS: dict[str, tuple[int | None, int | None]] = {
    XSD + "integer": (None, None),
    XSD + "nonNegativeInteger": (0, None),
    XSD + "nonPositiveInteger": (None, 0),
    XSD + "positiveInteger": (1, None),
    XSD + "negativeInteger": (None, -1),
    **{XSD + name: (-(2**bits), 2**bits - 1) for name, bits in
       (("long", 63), ("int", 31), ("short", 15), ("byte", 7))},
    **{XSD + name: (0, 2**bits - 1) for name, bits in
       (("unsignedLong", 64), ("unsignedInt", 32), ("unsignedShort", 16), ("unsignedByte", 8))},
}  # fmt: skip
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NONZERO = re.compile(r"[^eE]*[1-9]")
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_BASE64 = re.compile(
    r"(?:(?:[A-Za-z0-9+/] ?){4})*+(?:(?:[A-Za-z0-9+/] ?){3}[A-Za-z0-9+/]"
    r"|(?:[A-Za-z0-9+/] ?){2}[AEIMQUYcgkosw048] ?=|[A-Za-z0-9+/] ?[AQgw] ?= ?=)?"
)
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*+")
# A reference of RFC 3987: what stands before a colon in the first segment is a scheme.
_URI = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.\-]*:|(?![^/?#]*:))(?:[^\s<>\"{}|\\^`%]++|%[0-9A-Fa-f]{2})*+"
)
_TIME = re.compile(  # with digits enough for anyone; Python's int refuses more than 4,300
    r"(-?(?:[1-9][0-9]{3,999}|0[0-9]{3}))-([0-9]{2})-([0-9]{2})"
    r"T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,999})?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_PLAIN = re.compile(rf"(.*)@({_TAG})?", re.DOTALL)


@lru_cache(maxsize=1 << 16)
def data_value(literal: Literal) -> Value | None:
    """The value of a literal, None where it is ill-formed or its datatype is not known.

    >>> data_value(Literal("+01", XSD + "byte")) == data_value(Literal("1.0", XSD + "decimal"))
    True
    >>> data_value(Literal("256", XSD + "byte")) is None
    True
    """
    if literal.language is not None:
        return "tagged", (literal.lexical, literal.language.lower())
    read = _READ.get(literal.datatype)
    return None if read is None else read(literal.lexical)


def well_formed(literal: Literal) -> bool | None:
    """Whether the literal has a value; None where its datatype is not known."""
    if literal.datatype not in _READ and literal.language is None:
        return None
    return data_value(literal) is not None


def same_value(one: Literal, two: Literal) -> bool | None:
    """Whether two literals have the same value; None where one of them has none.

    >>> same_value(Literal("1", XSD + "integer"), Literal("1", XSD + "double"))
    False
    """
    left, right = data_value(one), data_value(two)
    return None if left is None or right is None else left == right


def has_datatype(literal: Literal, datatype: str) -> bool | None:
    """Whether the literal's value is one of a datatype's; None where one is not known.

    >>> has_datatype(Literal("7", XSD + "integer"), XSD + "byte")
    True
    >>> has_datatype(Literal("x", XSD + "byte"), XSD + "byte")
    False
    """
    holds = _HOLDS.get(datatype)
    if holds is None or (literal.datatype not in _READ and literal.language is None):
        return None
    value = data_value(literal)
    return value is not None and holds(value)


# -- lexical forms to values ---------------------------------------------------------------------


def _read_string(datatype: str) -> Callable[[str], Value | None]:
    pattern = _STRINGS[datatype]
    return lambda text: ("string", text) if pattern.fullmatch(text) else None


def _read_integer(datatype: str) -> Callable[[str], Value | None]:
    def read(text: str) -> Value | None:
        if not _INTEGER.fullmatch(text):
            return None
        value: Value = ("number", Fraction(Decimal(text)))
        return value if _HOLDS[datatype](value) else None

    return read


def _read_decimal(text: str) -> Value | None:
    return ("number", Fraction(Decimal(text))) if _DECIMAL.fullmatch(text) else None


def _read_double(text: str) -> Value | None:
    return _floating("double", text, lambda number: number)


def _read_float(text: str) -> Value | None:
    return _floating(
        "float", text, lambda number: float(struct.unpack("f", struct.pack("f", number))[0])
    )


def _floating(space: str, text: str, narrow: Callable[[float], float]) -> Value | None:
    if text in _SPECIAL:
        return space, repr(_SPECIAL[text])
    if not _DOUBLE.fullmatch(text):
        return None
    try:
        number = narrow(float(text))
    except OverflowError:
        return None
    lost = number == 0 and _NONZERO.match(text)
    return None if math.isinf(number) or lost else (space, repr(number))


def _read_boolean(text: str) -> Value | None:
    return {"true": ("boolean", True), "1": ("boolean", True),
            "false": ("boolean", False), "0": ("boolean", False)}.get(text)  # fmt: skip


def _read_base64(text: str) -> Value | None:
    return ("base64", text.replace(" ", "")) if _BASE64.fullmatch(text) else None


def _read_hex(text: str) -> Value | None:
    return ("hex", text.upper()) if _HEX.fullmatch(text) else None


def _read_uri(text: str) -> Value | None:
    return ("uri", text) if _URI.fullmatch(text) else None


def _read_time(text: str) -> Value | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction = Fraction(match[7] or "0")
    if not (1 <= month <= 12 and 1 <= day <= _days(year, month) and minute < 60 and second < 60):
        return None
    if hour == 24 and minute == second == fraction == 0:  # midnight at the end of the day
        hour, day = 0, day + 1
        if day > _days(year, month):
            day, month = 1, month + 1
        if month > 12:
            month, year = 1, year + 1
    offset = None
    if match[8] is not None:
        zone = "+00:00" if match[8] == "Z" else match[8]
        offset = int(zone[1:3]) * 60 + int(zone[4:])
        if offset > 14 * 60 or int(zone[4:]) > 59:
            return None
        offset = -offset if zone[0] == "-" else offset
    if hour > 23:
        return None
    return "time", (year, month, day, hour, minute, second + fraction, offset)


def _days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _read_stamp(text: str) -> Value | None:
    value = _read_time(text)
    return value if value is not None and _has_offset(value) else None


def _read_plain(text: str) -> Value | None:
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    return ("tagged", (match[1], match[2].lower())) if match[2] else ("string", match[1])


def _read_xml(text: str) -> Value | None:
    try:  # inside an element nothing can declare entities, which could make a short text long
        return "xml", ElementTree.canonicalize(f"<x>{text}</x>")
    except (ElementTree.ParseError, ValueError):
        return None


_READ: dict[str, Callable[[str], Value | None]] = {
    **{datatype: _read_string(datatype) for datatype in _STRINGS},
    **{datatype: _read_integer(datatype) for datatype in _INTEGERS},
    XSD + "decimal": _read_decimal,
    XSD + "double": _read_double,
    XSD + "float": _read_float,
    XSD + "boolean": _read_boolean,
    XSD + "base64Binary": _read_base64,
    XSD + "hexBinary": _read_hex,
    XSD + "anyURI": _read_uri,
    XSD + "dateTime": _read_time,
    XSD + "dateTimeStamp": _read_stamp,
    RDF + "PlainLiteral": _read_plain,
    RDF + "XMLLiteral": _read_xml,
}


# -- value spaces --------------------------------------------------------------------------------


def _strings_of(datatype: str) -> Callable[[Value], bool]:
    pattern = _STRINGS[datatype]
    return lambda value: value[0] == "string" and pattern.fullmatch(str(value[1])) is not None


def _integers_of(datatype: str) -> Callable[[Value], bool]:
    least, greatest = _INTEGERS[datatype]

    def holds(value: Value) -> bool:
        number = value[1]
        return (
            isinstance(number, Fraction)
            and number.denominator == 1
            and (least is None or number >= least)
            and (greatest is None or number <= greatest)
        )

    return holds


def _of(*spaces: str) -> Callable[[Value], bool]:
    return lambda value: value[0] in spaces


def _has_offset(value: Value) -> bool:
    return value[0] == "time" and isinstance(value[1], tuple) and value[1][-1] is not None


_HOLDS: dict[str, Callable[[Value], bool]] = {
    **{datatype: _strings_of(datatype) for datatype in _STRINGS},
    **{datatype: _integers_of(datatype) for datatype in _INTEGERS},
    XSD + "decimal": _of("number"),
    XSD + "double": _of("double"),
    XSD + "float": _of("float"),
    XSD + "boolean": _of("boolean"),
    XSD + "base64Binary": _of("base64"),
    XSD + "hexBinary": _of("hex"),
    XSD + "anyURI": _of("uri"),
    XSD + "dateTime": _of("time"),
    XSD + "dateTimeStamp": _has_offset,
    RDF + "PlainLiteral": _of("string", "tagged"),
    RDF + "langString": _of("tagged"),
    RDF + "XMLLiteral": _of("xml"),
    RDFS_LITERAL: lambda value: True,
}

DATATYPES = tuple(_HOLDS)

_OF_STRINGS = (RDF + "PlainLiteral", RDFS_LITERAL)


# The datatypes of strings and the patterns of what they hold, for whoever matches many at once.
STRING_PATTERNS = {name: pattern.pattern for name, pattern in _STRINGS.items()}
OF_ALL_STRINGS = _OF_STRINGS


def datatypes_of(literal: Literal) -> list[str]:
    """The known datatypes that have the literal's value: where `has_datatype` is true.

    >>> [name.rpartition("#")[2] for name in datatypes_of(Literal("-7", XSD + "byte"))][:3]
    ['integer', 'nonPositiveInteger', 'negativeInteger']
    """
    if literal.language is None and literal.datatype == XSD + "string":
        # By far the most, and of no datatype but those of strings.
        text = literal.lexical
        found = [name for name, pattern in _STRINGS.items() if pattern.fullmatch(text)]
        return [*found, *_OF_STRINGS] if XSD + "string" in found else []
    return [name for name in DATATYPES if has_datatype(literal, name)]
