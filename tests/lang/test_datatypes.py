"""Literals: which are well-formed, which have the same value, which datatypes have it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.lang.datatypes import data_value, has_datatype, same_value, well_formed
from corollary.lang.syntax import RDF, XSD, Literal

LITERAL = "http://www.w3.org/2000/01/rdf-schema#Literal"


def literal(text: str, datatype: str) -> Literal:
    return Literal(text, datatype if ":" in datatype else XSD + datatype)


WELL_FORMED = {
    "integer": "0 -0 +007 123456789012345678901234567890",
    "byte": "-128 127 +1",
    "unsignedLong": "0 18446744073709551615 -0",
    "nonPositiveInteger": "0 -1",
    "positiveInteger": "1 001",
    "decimal": "1 1. .5 -0.50",
    "double": "1 1e3 -.5E-7 INF +INF -INF NaN 5e-324 1.7976931348623157e308 0e-400 0.0e9999999999",
    "float": "1e38 1.4e-45 NaN",
    "boolean": "true false 0 1",
    "hexBinary": "00fF",
    "base64Binary": "TWFu TWE= TQ==",
    "anyURI": "http://a/b?c#d relative/a:b #x urn:a %20",
    "language": "en en-GB x-1234567",
    "Name": "a:b _a é",
    "NCName": "a-b.c _",
    "NMTOKEN": "-1.2:a",
    "dateTime": "2009-04-21T12:30:15 2009-04-21T12:30:15.25Z 2000-02-29T24:00:00"
    " -0044-03-15T00:00:00-14:00",
    "dateTimeStamp": "2009-04-21T12:30:15+05:30",
    RDF + "PlainLiteral": "abc@ abc@de a@b@en-US",
    RDF + "XMLLiteral": "<a/> text <a><b/></a> &amp;",
}
ILL_FORMED = {
    "integer": "1.0 one 1e3 ٣",
    "byte": "128 -129",
    "unsignedLong": "18446744073709551616 -1",
    "nonPositiveInteger": "1",
    "positiveInteger": "0",
    "decimal": "1e3 . INF",
    "double": "1e310 1e-330 1e-99999999999999999999 Infinity 1e",
    "float": "1e39 1e-50",
    "boolean": "TRUE 2",
    "hexBinary": "0 0g",
    "base64Binary": "TQ= T A=== TR==",
    "anyURI": ":abc %zz a<b",
    "language": "en- toolongtag",
    "Name": ".a 1 a/b",
    "NCName": "a:b",
    "NMTOKEN": "a/b",
    "dateTime": "2009-04-21 2009-02-29T00:00:00 2009-04-21T24:00:01 2009-04-21T25:00:00"
    " 09-04-21T00:00:00",
    "dateTimeStamp": "2009-04-21T12:30:15 2009-04-21T12:30:15+15:00",
    RDF + "PlainLiteral": "abc abc@12",
    RDF + "XMLLiteral": "<a> &nbsp; </x><x>",
}


@pytest.mark.parametrize("datatype", WELL_FORMED)
def test_well_formed(datatype: str) -> None:
    for text in WELL_FORMED[datatype].split():
        found = literal(text, datatype)
        assert well_formed(found), text
        assert has_datatype(found, found.datatype), text
        assert has_datatype(found, LITERAL), text
        assert same_value(found, found), text


@pytest.mark.parametrize("datatype", ILL_FORMED)
def test_ill_formed(datatype: str) -> None:
    texts = [*ILL_FORMED[datatype].split(), f" {WELL_FORMED[datatype].split()[0]}"]
    for text in texts if "Literal" not in datatype else texts[:-1]:
        found = literal(text, datatype)
        assert well_formed(found) is False, text
        assert has_datatype(found, found.datatype) is False, text
        assert same_value(found, found) is None, text


def test_strings_and_white_space() -> None:
    texts = {"string": " a\n", "normalizedString": " a  b", "token": "a b"}
    for datatype, text in texts.items():
        assert well_formed(literal(text, datatype))
    for datatype, text in (("normalizedString", "a\tb"), ("token", "a  b"), ("token", " a")):
        assert well_formed(literal(text, datatype)) is False


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (literal("1", "integer"), literal("1.00", "decimal"), True),
        (literal("1", "byte"), literal("+01", "unsignedLong"), True),
        (literal("1", "integer"), literal("1", "double"), False),
        (literal("0.1", "float"), literal("0.1", "double"), False),
        (literal("0", "double"), literal("-0", "double"), False),
        (literal("NaN", "double"), literal("NaN", "double"), True),
        (literal("16777217", "float"), literal("16777216", "float"), True),
        (literal("a", "string"), literal("a", "token"), True),
        (literal("a", "string"), literal("a@", RDF + "PlainLiteral"), True),
        (Literal("a", RDF + "langString", "de"), literal("a@DE", RDF + "PlainLiteral"), True),
        (literal("a", "string"), literal("a", "anyURI"), False),
        (literal("00", "hexBinary"), literal("AA==", "base64Binary"), False),
        (literal("ff", "hexBinary"), literal("FF", "hexBinary"), True),
        (literal("1", "boolean"), literal("true", "boolean"), True),
        (literal("1", "boolean"), literal("1", "integer"), False),
        (
            literal("2009-12-31T24:00:00", "dateTime"),
            literal("2010-01-01T00:00:00.0", "dateTime"),
            True,
        ),
        (
            literal("2009-04-21T12:00:00Z", "dateTime"),
            literal("2009-04-21T13:00:00+01:00", "dateTime"),
            False,
        ),
        (literal("<a></a>", RDF + "XMLLiteral"), literal("<a/>", RDF + "XMLLiteral"), True),
        (literal("1", "integer"), literal("1", "http://example.org/mine"), None),
        (literal("1", "integer"), literal("x", "integer"), None),
    ],
)
def test_same_value(one: Literal, two: Literal, same: bool | None) -> None:
    assert same_value(one, two) is same
    assert same_value(two, one) is same


def test_datatypes_of_a_value() -> None:
    names = ("byte", "unsignedByte", "decimal", "negativeInteger", "double", "string")
    found = {name for name in names if has_datatype(literal("-7", "long"), XSD + name)}
    assert found == {"byte", "decimal", "negativeInteger"}
    assert has_datatype(literal("7.0", "decimal"), XSD + "byte")
    assert has_datatype(Literal("en"), XSD + "language")
    assert has_datatype(Literal("a", RDF + "langString", "en"), XSD + "string") is False
    assert has_datatype(literal("7", "byte"), "http://example.org/mine") is None
    assert has_datatype(literal("7", "http://example.org/mine"), XSD + "byte") is None


@given(st.text(max_size=30), st.sampled_from(sorted(WELL_FORMED)))
def test_any_text_has_a_value_or_none(text: str, datatype: str) -> None:
    found = literal(text, datatype)
    assert well_formed(found) == (data_value(found) is not None)


@pytest.mark.parametrize("datatype", ["integer", "decimal", "double", "dateTime", "hexBinary"])
def test_very_long_literals(datatype: str) -> None:
    text = "9" * 10_000
    for written in (text, f"0.{text}", f"{text}-01-01T00:00:00", f"1e{text}", f"1e-{text}"):
        well_formed(literal(written, datatype))
