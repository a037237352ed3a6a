"""The datatypes of OWL 2 RL: well-formedness and values of literals.

A *value* is a pair of a value space and an identifier of the value in it: two literals have the
same value if and only if the pairs are equal. Integers and decimals share one space; `xsd:float`
and `xsd:double` have spaces of their own, as in XML Schema. Values are compared by identity, not
equality: 0 and -0 differ, and so do times with different offsets.

Differs from XML Schema 1.1: white space around a literal makes it ill-formed (as RDF 1.1 has it),
and so does a float or double that is beyond all finite ones or below the smallest (as the OWL 2
test cases have it).
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from xml.etree import ElementTree

from corollary.lang import xsd
from corollary.lang.syntax import RDF, XSD, Constant, Literal

RDFS_LITERAL = "http://www.w3.org/2000/01/rdf-schema#Literal"

Value = tuple[str, object]

_TAG = r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*"
_START = "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
_START += "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
_PART = _START + r"0-9.\-" + "\u00b7\u0300-\u036f\u203f\u2040"

# The values of string types.
_STRINGS = {
    XSD + "string": re.compile(r".*", re.DOTALL),
    XSD + "normalizedString": re.compile(r"[^\t\n\r]*"),
    XSD + "token": re.compile(r"(?:[^\t\n\r ]+(?: [^\t\n\r ]+)*)?"),
    XSD + "language": re.compile(_TAG),
    XSD + "Name": re.compile(rf"[{_START}:][{_PART}:]*"),
    XSD + "NCName": re.compile(rf"[{_START}][{_PART}]*"),
    XSD + "NMTOKEN": re.compile(rf"[{_PART}:]+"),
}
_NONZERO = re.compile(r"[^eE]*[1-9]")
_BASE64 = re.compile(
    r"(?:(?:[A-Za-z0-9+/] ?){4})*+(?:(?:[A-Za-z0-9+/] ?){3}[A-Za-z0-9+/]"
    r"|(?:[A-Za-z0-9+/] ?){2}[AEIMQUYcgkosw048] ?=|[A-Za-z0-9+/] ?[AQgw] ?= ?=)?"
)
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*+")
# A reference of RFC 3987: in the first segment, a colon ends a scheme.
_URI = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.\-]*:|(?![^/?#]*:))(?:[^\s<>\"{}|\\^`%]++|%[0-9A-Fa-f]{2})*+"
)
_PLAIN = re.compile(rf"(.*)@({_TAG})?", re.DOTALL)


@lru_cache(maxsize=1 << 16)
def data_value(literal: Constant) -> Value | None:
    """The value of a literal; None if it is ill-formed or of an unknown datatype.

    >>> data_value(Literal("+01", XSD + "byte")) == data_value(Literal("1.0", XSD + "decimal"))
    True
    >>> data_value(Literal("256", XSD + "byte")) is None
    True
    """
    if not isinstance(literal, Literal):
        return None
    if literal.language is not None:
        return "tagged", (literal.lexical, literal.language.lower())
    read = _READ.get(literal.datatype)
    return None if read is None else read(literal.lexical)


def well_formed(literal: Constant) -> bool | None:
    """Whether a literal has a value; None if its datatype is unknown."""
    if not isinstance(literal, Literal) or not _is_known(literal):
        return None
    return data_value(literal) is not None


def _is_known(literal: Literal) -> bool:
    return literal.datatype in _READ or literal.language is not None


def same_value(one: Constant, two: Constant) -> bool | None:
    """Whether two literals have the same value; None if one of them has none.

    >>> same_value(Literal("1", XSD + "integer"), Literal("1", XSD + "double"))
    False
    """
    left, right = data_value(one), data_value(two)
    return None if left is None or right is None else left == right


def has_datatype(literal: Literal, datatype: str) -> bool | None:
    """Whether a datatype has the value of a literal; None if one of the datatypes is unknown.

    >>> has_datatype(Literal("7", XSD + "integer"), XSD + "byte")
    True
    >>> has_datatype(Literal("x", XSD + "byte"), XSD + "byte")
    False
    """
    holds = _HOLDS.get(datatype)
    if holds is None or not _is_known(literal):
        return None
    value = data_value(literal)
    return value is not None and holds(value)


# -- lexical forms to values ---------------------------------------------------------------------


def _matching(
    space: str, pattern: re.Pattern[str], canonical: Callable[[str], str] = str
) -> Callable[[str], Value | None]:
    return lambda text: (space, canonical(text)) if pattern.fullmatch(text) else None


def _read_integer(datatype: str) -> Callable[[str], Value | None]:
    def read(text: str) -> Value | None:
        value = _read_number(text, datatype)
        return value if value is not None and _HOLDS[datatype](value) else None

    return read


def _read_number(text: str, datatype: str = xsd.DECIMAL) -> Value | None:
    number = xsd.read_number(text, datatype)
    return None if number is None else ("number", Fraction(number))


def _read_floating(space: str) -> Callable[[str], Value | None]:
    def read(text: str) -> Value | None:
        number = xsd.read_number(text, XSD + space)
        if number is None:
            return None
        lost = math.isinf(number) or (number == 0 and _NONZERO.match(text))
        return None if lost and text not in xsd.SPECIAL else (space, repr(float(number)))

    return read


def _read_boolean(text: str) -> Value | None:
    return ("boolean", xsd.BOOLEANS[text]) if text in xsd.BOOLEANS else None


def _read_time(text: str) -> Value | None:
    value = xsd.read_date_time(text, xsd.DATE_TIME)
    if value is None:
        return None
    year, month, day, hour, minute, second, _ = value
    if hour == 24:
        hour, day = 0, day + 1
        if day > monthrange(year, month)[1]:
            day, month = 1, month + 1
        if month > 12:
            month, year = 1, year + 1
    return "time", (year, month, day, hour, minute, Fraction(second), value.offset)


def _read_stamp(text: str) -> Value | None:
    value = _read_time(text)
    return value if value is not None and _has_offset(value) else None


def _read_plain(text: str) -> Value | None:
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    return ("tagged", (match[1], match[2].lower())) if match[2] else ("string", match[1])


def _read_xml(text: str) -> Value | None:
    try:  # an element cannot declare entities, which could make a short text long
        return "xml", ElementTree.canonicalize(f"<x>{text}</x>")
    except (ElementTree.ParseError, ValueError):
        return None


_READ: dict[str, Callable[[str], Value | None]] = {
    **{datatype: _matching("string", pattern) for datatype, pattern in _STRINGS.items()},
    **{datatype: _read_integer(datatype) for datatype in xsd.INTEGERS},
    xsd.DECIMAL: _read_number,
    xsd.DOUBLE: _read_floating("double"),
    xsd.FLOAT: _read_floating("float"),
    xsd.BOOLEAN: _read_boolean,
    XSD + "base64Binary": _matching("base64", _BASE64, lambda text: text.replace(" ", "")),
    XSD + "hexBinary": _matching("hex", _HEX, str.upper),
    XSD + "anyURI": _matching("uri", _URI),
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
    least, greatest = xsd.INTEGERS[datatype]

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
    **{datatype: _integers_of(datatype) for datatype in xsd.INTEGERS},
    xsd.DECIMAL: _of("number"),
    xsd.DOUBLE: _of("double"),
    xsd.FLOAT: _of("float"),
    xsd.BOOLEAN: _of("boolean"),
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

# For matching many strings at once: the datatypes of some strings, and those of all.
STRING_PATTERNS = {name: pattern.pattern for name, pattern in _STRINGS.items()}
OF_ALL_STRINGS = (RDF + "PlainLiteral", RDFS_LITERAL)


def datatypes_of(literal: Literal) -> list[str]:
    """The known datatypes that have the value of a literal (`has_datatype`).

    >>> [name.rpartition("#")[2] for name in datatypes_of(Literal("-7", XSD + "byte"))][:3]
    ['integer', 'nonPositiveInteger', 'negativeInteger']
    """
    if literal.language is None and literal.datatype == XSD + "string":
        # Most literals, which have string types only.
        text = literal.lexical
        found = [name for name, pattern in _STRINGS.items() if pattern.fullmatch(text)]
        return [*found, *OF_ALL_STRINGS] if XSD + "string" in found else []
    return [name for name in DATATYPES if has_datatype(literal, name)]
