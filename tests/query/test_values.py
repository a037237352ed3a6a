"""Values: equality where datatypes are unknown, numbers of any size, order."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary import KnowledgeBase
from corollary.core.terms import term_of
from corollary.errors import OperationFailed
from corollary.lang.operands import ConstantSet, Fault, Value, equal, literal_number, term
from corollary.lang.syntax import IRI, LANG_STRING, XSD, BlankNode, Constant, Literal
from corollary.query.results import Solutions
from corollary.query.values import sort_key

UNKNOWN = "http://e/unknown"


def values(query: str, kb: KnowledgeBase | None = None) -> list[Constant | None]:
    found = (kb or KnowledgeBase()).query(f"PREFIX : <http://e/> {query}")
    assert isinstance(found, Solutions)
    return [row[0] for row in found]


# -- equality --------------------------------------------------------------------------------------

# In the order of the rows and columns below; T true, F false, E error.
TERMS: dict[str, Constant] = {
    "plain": Literal("xyz"),
    "tagged": Literal("xyz", LANG_STRING, "en"),
    "ill-typed": Literal("xyz", XSD + "integer"),
    "unknown": Literal("xyz", UNKNOWN),
    "integer": Literal("1", XSD + "integer"),
    "IRI": IRI("http://e/xyz"),
    "blank": BlankNode("xyz"),
}
EQUAL = {
    "plain": "TFEEFFF",
    "tagged": "FTFFFFF",
    "ill-typed": "EFTEEFF",
    "unknown": "EFETEFF",
    "integer": "FFEETFF",
    "IRI": "FFFFFTF",
    "blank": "FFFFFFT",
}


@pytest.mark.parametrize("one", TERMS)
@pytest.mark.parametrize("two", TERMS)
def test_equality_of_terms(one: str, two: str) -> None:
    expected = {"T": True, "F": False, "E": None}[EQUAL[one][[*TERMS].index(two)]]
    assert _equal(TERMS[one], TERMS[two]) is expected


def _equal(one: Value, two: Value) -> bool | None:
    try:
        return equal(one, two)
    except Fault:
        return None


@pytest.mark.parametrize("other", [f'"xyz"^^<{UNKNOWN}>', '"xyz"^^xsd:integer', '"abc"^^:t', "1"])
def test_a_tagged_string_equals_nothing_with_a_datatype(other: str) -> None:
    true = [Literal("true", XSD + "boolean")]
    assert values(f'SELECT ("xyz"@en != {other} AS ?x) {{}}') == true
    assert values(f'SELECT (!("xyz"@en = {other}) AS ?x) {{}}') == true
    assert values(f'SELECT ({other} NOT IN ("xyz"@en, "abc"@de) AS ?x) {{}}') == true
    kb = KnowledgeBase(
        f'[<http://e/s>, <http://e/p>, "xyz"@EN] . p({other.replace(":t", f"<{UNKNOWN}>")}) .'
    )
    assert len(values(f"SELECT ?o {{ ?s :p ?o FILTER(?o != {other}) }}", kb)) == 1


terms = st.one_of(
    st.builds(IRI, st.sampled_from(["a", "b"])),
    st.builds(Literal, st.sampled_from(["", "1", "a"])),
    st.builds(
        Literal,
        st.sampled_from(["", "1", "01", "1.0", "0.1", "16777217", "a", "NaN", "INF", "true"]),
        st.sampled_from([XSD + n for n in ("integer", "decimal", "double", "float", "boolean")]),
    ),
    st.builds(Literal, st.sampled_from(["a", "1"]), st.just(UNKNOWN)),
    st.builds(Literal, st.sampled_from(["a", "1"]), st.just(LANG_STRING), st.just("en")),
    st.builds(
        Literal,
        st.sampled_from(["2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00", "2020-01-01"]),
        st.sampled_from([XSD + "dateTime", XSD + "date"]),
    ),
)


@given(terms, st.lists(terms, max_size=12))
def test_options_are_found_as_if_compared_one_by_one(
    value: Constant, listed: list[Constant]
) -> None:
    answers = [_equal(value, option) for option in listed]
    expected = True if True in answers else None if None in answers else False
    try:
        found: bool | None = ConstantSet(listed).include(value)
    except Fault:
        found = None
    assert found is expected


# -- large numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 15, 400, 3_999, 4_001, 4_301, 20_000])
def test_integers_of_any_size_are_exact(digits: int) -> None:
    kb = KnowledgeBase()
    large = "9" * digits
    with kb.transaction() as tx:
        tx.insert(f"<http://e/a> <http://e/p> {large} .")
    number = 10**digits - 1

    def one(expression: str) -> Any:
        (found,) = values(f"SELECT ({expression} AS ?x) {{ ?s ?p ?o }}", kb)
        assert isinstance(found, Literal)
        return literal_number(found.lexical, found.datatype) if found.lexical[-1] != "e" else found

    assert one("?o * ?o") == number * number
    assert one("?o + 1 - ?o") == 1
    assert one("(?o * ?o) / ?o") == number
    assert one("-?o") == -number
    assert one("?o + 0.5") == Decimal(large + ".5")
    assert one("xsd:integer(STR(?o * ?o))") == number * number
    assert one("SUM(?o * 2)") == 2 * number
    assert one("AVG(?o)") == number
    for condition in (f"?o = {large}", f"?o > {large[1:] or 0}", "?o * ?o >= ?o", "isNumeric(?o)",
                      "?o <= xsd:double('INF')", f"?o IN (1, 2, 3, 4, 5, {large})"):  # fmt: skip
        assert len(values(f"SELECT ?o {{ ?s ?p ?o FILTER({condition}) }}", kb)) == 1


def test_decimals_are_exact() -> None:
    precise = "123456789012345678901234567890.123456789012345678901234567890123456789"
    for expression, expected in (
        (f"-({precise})", f"-{precise}"),
        (f"ABS(-{precise})", precise),
        (f"{precise} + 0.0", precise),
        (f"ROUND({precise})", "123456789012345678901234567890.0"),
        (f"CEIL({precise})", "123456789012345678901234567891.0"),
        (f"{precise} * 10", precise.replace(".1", "1.")),
        (" * ".join(["0.1"] * 70), "0." + "0" * 69 + "1"),
    ):
        (found,) = values(f"SELECT ({expression} AS ?x) {{}}")
        assert isinstance(found, Literal)
        assert Decimal(found.lexical) == Decimal(expected)


def test_numbers_that_are_too_large_are_an_error() -> None:
    kb = KnowledgeBase()
    for first, sign in (("10", "*"), ("1.5", "*"), ("0.1", "*")):
        steps = " ".join(f"BIND(?x{n} {sign} ?x{n} AS ?x{n + 1})" for n in range(40))
        with pytest.raises(OperationFailed) as caught:
            kb.query(f"SELECT * {{ BIND({first} AS ?x0) {steps} }}")
        assert caught.value.code == "E567"
    assert kb.query("ASK {}") is True  # the database still answers


@pytest.mark.parametrize(
    "step",
    [
        "CONCAT({x}, {x}, {x}, {x})",
        pytest.param("REPLACE({x}, '.', '$0$0$0$0')", marks=pytest.mark.long),
        "REPLACE({x}, 'x', {x})",
    ],
)
def test_texts_that_grow_without_end(step: str) -> None:
    steps = " ".join(f"BIND({step.format(x=f'?x{n}')} AS ?x{n + 1})" for n in range(30))
    kb = KnowledgeBase()
    with pytest.raises(OperationFailed) as caught:
        kb.query(f"SELECT * {{ BIND('xxxxxxxxxx' AS ?x0) {steps} }}")
    assert caught.value.code == "E567"
    joined = "SELECT (GROUP_CONCAT(?long) AS ?all)"
    query = joined + " { ?s <urn:p> ?n . BIND(REPLACE(?x, 'x', ?x) AS ?long) }"
    with kb.transaction() as tx:
        tx.insert("".join(f"<urn:{n}> <urn:p> {n} ." for n in range(30)))
    with pytest.raises(OperationFailed) as caught:
        kb.query(query.replace("?x", f"'{'x' * 1000}'"))
    assert caught.value.code == "E567"


def test_long_texts() -> None:
    query = f"ASK {{ FILTER(STRLEN(REPLACE('{'ab' * 5000}', '(a)b', '$1$1b')) = 15000) }}"
    assert KnowledgeBase().query(query) is True


# -- order -----------------------------------------------------------------------------------------

numbers = st.one_of(
    st.integers(),
    st.integers(2**53 - 3, 2**53 + 3),
    st.integers(-(2**53) - 3, -(2**53) + 3),
    st.integers(10**400, 10**400 + 2),
    st.integers(-(10**400), -(10**400) + 2),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False),
)


@given(numbers, numbers)
def test_keys_have_the_order_of_numbers(one: Value, two: Value) -> None:
    left, right = (_exactly(value) for value in (one, two))
    keys = sort_key(term(one)), sort_key(term(two))
    assert (keys[0] < keys[1]) == (left < right)
    assert (keys[0] == keys[1]) == (left == right)


def _exactly(value: Any) -> Any:
    return value if value in (float("inf"), float("-inf")) else Fraction(value)


def test_the_largest_is_found_among_numbers_that_doubles_do_not_tell_apart() -> None:
    rows = " ".join(str(2**53 + n) for n in (1, 3, 0, 2))
    for function, expected in (("MAX", 2**53 + 3), ("MIN", 2**53)):
        query = f"SELECT ({function}(?x) AS ?y) {{ VALUES ?x {{ {rows} }} }}"
        assert values(query) == [term(expected)]
    found = values(f"SELECT ?x {{ VALUES ?x {{ {rows} }} }} ORDER BY DESC(?x)")
    assert found == [term(2**53 + n) for n in (3, 2, 1, 0)]


def test_times_are_ordered_by_all_their_digits() -> None:
    moments = [f'"2020-01-01T00:00:00.{n:012}Z"^^xsd:dateTime' for n in range(4)]
    shuffled = " ".join(moments[::-1])
    found = values(f"SELECT ?x {{ VALUES ?x {{ {shuffled} }} }} ORDER BY ?x")
    assert found == [term_of(m.replace("xsd:dateTime", f"<{XSD}dateTime>")) for m in moments]
