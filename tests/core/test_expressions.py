"""Filters over columns agree with the oracle, term by term."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.compile import CompiledExpression, compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.expressions import holds
from corollary.lang import reference_expressions
from corollary.lang.datatypes import DATATYPES
from corollary.lang.functions import FUNCTIONS
from corollary.lang.syntax import (
    IRI,
    LANG_STRING,
    RDF,
    XSD,
    Atom,
    BlankNode,
    Constant,
    Expression,
    Filter,
    Literal,
    Operation,
    Rule,
    Variable,
)

VARIABLES = [Variable("x"), Variable("y")]

_integers = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, 10**400]),
).map(lambda number: Literal(str(number), XSD + "integer"))
_decimals = st.one_of(
    st.decimals(-5, 5, places=1),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**25), max_value=10**25),
).map(lambda number: Literal(format(number, "f"), XSD + "decimal"))
_doubles = st.one_of(
    st.sampled_from(["NaN", "INF", "-INF", "-0.0", "0.0", "1.0", "1e308", "5e-324", "1e19", "0.1"]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-3, 3).map(str),
).map(lambda text: Literal(text, XSD + "double"))
_others: st.SearchStrategy[Constant] = st.one_of(
    st.sampled_from(["", "a", "b", "é", "\U0001f600", "\uffff", "1"]).map(Literal),
    st.sampled_from(["true", "false", "1", "0"]).map(lambda text: Literal(text, XSD + "boolean")),
    st.sampled_from(["integer", "decimal", "double", "boolean", "date"]).map(
        lambda name: Literal("no number", XSD + name)
    ),
    st.sampled_from([IRI("http://example.org/a"), IRI("http://example.org/b"), BlankNode("b")]),
    st.just(Literal("a", LANG_STRING, "en")),
    st.sampled_from(["1.5", "0.1", "1e39"]).map(lambda text: Literal(text, XSD + "float")),
    st.sampled_from(["2020-01-01", "2021-01-01Z"]).map(lambda t: Literal(t, XSD + "date")),
)
constants: st.SearchStrategy[Constant] = st.one_of(_integers, _decimals, _doubles, _others)
numbers: st.SearchStrategy[Constant] = st.one_of(_integers, _decimals, _doubles)

_ARITHMETIC = ["+", "-", "*", "/"]
_COMPARISONS = ["=", "!=", "<", "<=", ">", ">="]


def _operations(
    signs: list[str], inner: st.SearchStrategy[Expression], most: int = 2
) -> st.SearchStrategy[Expression]:
    arguments = st.lists(inner, min_size=2, max_size=most).map(tuple)
    return st.builds(Operation, st.sampled_from(signs), arguments)


_leaves: st.SearchStrategy[Expression] = st.one_of(
    st.sampled_from(VARIABLES), st.sampled_from(VARIABLES), constants
)
_values: st.SearchStrategy[Expression] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        _operations(_ARITHMETIC, inner),
        inner.map(lambda argument: Operation("-", (argument,))),
        inner.map(lambda argument: Operation("+", (argument,))),
    ),
    max_leaves=4,
)


def _calls(name: str) -> st.SearchStrategy[Expression]:
    term: st.SearchStrategy[Expression] = st.one_of(_leaves, _leaves, st.sampled_from(_DATATYPES))
    function = FUNCTIONS[name]
    return st.lists(term, min_size=function.least, max_size=min(function.most, 4)).map(
        lambda terms: Operation(name, tuple(terms))
    )


_DATATYPES = [IRI(XSD + name) for name in ("integer", "byte", "decimal", "double", "string")]
_functions = st.sampled_from(sorted(FUNCTIONS)).flatmap(_calls)

# Also operations that a validated program has none of, such as an order of truth values.
conditions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(
        _operations(_COMPARISONS, _values), _operations(_COMPARISONS, _values), _leaves, _functions
    ),
    lambda inner: st.one_of(
        _operations(["&&", "||"], inner, most=3),
        inner.map(lambda argument: Operation("!", (argument,))),
        _operations(_COMPARISONS, inner),
    ),
    max_leaves=4,
)
rows = st.lists(
    st.one_of(st.tuples(numbers, numbers), st.tuples(constants, constants)), min_size=1, max_size=6
)


def compiled(condition: Expression, dictionary: Dictionary) -> CompiledExpression:
    rule = Rule(Atom("p", tuple(VARIABLES)), (Atom("q", tuple(VARIABLES)), Filter(condition)))
    return compile_rule(rule, dictionary).conditions[0].expression


@given(conditions, rows)
def test_oracle_holds(condition: Expression, rows: list[tuple[Constant, Constant]]) -> None:
    dictionary = Dictionary()
    columns = {n: dictionary.encode([row[n] for row in rows]) for n in range(2)}
    found = holds(compiled(condition, dictionary), columns, len(rows), dictionary)
    expected = [
        reference_expressions.holds(condition, dict(zip(VARIABLES, row, strict=True)))
        for row in rows
    ]
    assert found.tolist() == expected


def test_what_is_known_of_literals_is_what_the_functions_say() -> None:
    """The short ways of `holds` against the functions, for every datatype and pair."""
    lexical = (
        "7",
        "-1",
        "300",
        "x",
        "a b",
        " a",
        "en",
        "1.5",
        "INF",
        "true",
        "a\\b\n",
        "",
        "a:b",
        "é",
    )
    names = [*DATATYPES, "urn:unknown", XSD + "date"]
    terms: list[Constant] = [Literal(text, name) for text in lexical for name in names]
    terms += [Literal("x", RDF + "langString", "en"), IRI("x"), BlankNode("x")]
    dictionary = Dictionary()
    ids = dictionary.encode(terms)

    def tested(name: str) -> Callable[..., bool]:
        def test(*arguments: Constant) -> bool:
            return reference_expressions.holds(Operation(name, arguments), {})

        return test

    functions = {name: tested(name) for name in ("isLiteral", "hasDatatype", "sameValue")}
    found = holds(("isLiteral", (0,)), {0: ids}, len(ids), dictionary)
    assert found.tolist() == [functions["isLiteral"](term) for term in terms]
    for name in names:
        found = holds(("hasDatatype", (0, IRI(name))), {0: ids}, len(ids), dictionary)
        assert found.tolist() == [functions["hasDatatype"](t, IRI(name)) for t in terms]
    for shift in range(len(ids)):
        columns = {0: ids, 1: np.roll(ids, shift)}
        pairs = list(zip(terms, np.roll(np.arange(len(ids)), shift).tolist(), strict=True))
        found = holds(("sameValue", (0, 1)), columns, len(ids), dictionary)
        assert found.tolist() == [functions["sameValue"](t, terms[o]) for t, o in pairs]
        found = holds(("!", (("sameTerm", (0, 1)),)), columns, len(ids), dictionary)
        assert found.tolist() == [t != terms[other] for t, other in pairs]
