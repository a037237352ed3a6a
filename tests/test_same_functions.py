"""Rules and SPARQL give the same value for every function, over a table of edge cases."""

from __future__ import annotations

import pytest

from corollary import KnowledgeBase
from corollary.core.terms import term_of, text_of
from corollary.errors import InvalidProgram
from corollary.lang.functions import FUNCTIONS
from corollary.lang.program import Program
from corollary.lang.reference_expressions import evaluated, holds
from corollary.lang.syntax import XSD, Filter, Variable
from corollary.query.results import Solutions
from tests.query.sparql_strategies import PREFIXES
from tests.query.test_functions import listed

# Conditions that are no booleans are errors in rules, and statically known ones are refused.
_OWN = ("?x", "?u", "NOW()", "UUID()", "BNODE()", "RAND()", "EXISTS", "BOUND", '""', '"a" && 1')
SHARED = [expression for expression in listed() if not any(own in expression for own in _OWN)]

_NUMBERS = (
    *("0", "-1", "7", "9223372036854775808", "0.1", "-2.5", "1e0", "-0.0e0", "1e308"),
    *(f'"{special}"^^xsd:double' for special in ("INF", "-INF", "NaN")),
    *('"0.1"^^xsd:float', '"1e39"^^xsd:float', '"7"^^xsd:byte', '"x"^^xsd:integer'),
)
_STRINGS = ('""', '"a"', '"Ab c"', '"añ😀"', '"a"@en', '"A"@de-at', '"1"', '"true"')
_TIMES = (
    '"2020-02-29T23:59:60Z"^^xsd:dateTime',
    '"2020-02-29T23:30:00.25-05:00"^^xsd:dateTime',
    '"2020-03-01T04:30:00.25"^^xsd:dateTime',
    '"-0044-03-15T00:00:00Z"^^xsd:dateTime',
    '"2020-02-29+14:00"^^xsd:date',
    '"24:00:00"^^xsd:time',
    '"P1Y"^^xsd:yearMonthDuration',
    '"PT36H"^^xsd:dayTimeDuration',
)
_OTHERS = ("true", "false", '"1"^^xsd:boolean', ":a", '"x"^^:t')
OPERANDS = (*_NUMBERS, *_STRINGS, *_TIMES, *_OTHERS)


_ONLY_IN_RULES = {"SKOLEM", "isMembershipProperty", "isWellFormed", "hasDatatype", "sameValue"}
_NAMES = sorted(name for name in FUNCTIONS if name not in _ONLY_IN_RULES and ":" not in name)
UNARY = [f"{name}(?a)" for name in _NAMES if FUNCTIONS[name].least == 1]
UNARY += [f"xsd:{name.removeprefix(XSD)}(?a)" for name in FUNCTIONS if name.startswith(XSD)]
UNARY += ["-?a", "+?a", "COALESCE(?a + 1, ?a)", "IF(?a = 1, ?a, 2)", '?a IN (1, "a", :a, 7.0)']
BINARY = [f"?a {sign} ?b" for sign in ("+", "-", "*", "/", "=", "!=", "<", "<=", ">", ">=")]
BINARY += [
    f"{name}(?a, ?b)" for name in _NAMES if FUNCTIONS[name].least <= 2 <= FUNCTIONS[name].most
]
BINARY += [
    'REPLACE(?a, ?b, "x$0")',
    "?a NOT IN (?b, 1)",
    "SUBSTR(?a, ?b, 2)",
    "IF(?a < ?b, ?a, ?b)",
]


def texts(found: object) -> dict[tuple[str, ...], str]:
    """The last column by the others, where there is a value."""
    assert isinstance(found, Solutions)
    rows = zip(*(column.to_pylist() for column in found.table.columns), strict=True)
    return {tuple(row[:-1]): row[-1] for row in rows if row[-1] is not None}


@pytest.mark.parametrize("expression", [*UNARY, *BINARY])
def test_over_columns(expression: str) -> None:
    """`BIND` and `FILTER` over a relation give what SPARQL gives over VALUES."""
    second = OPERANDS[::2] if expression in BINARY else OPERANDS[:1]
    pairs = [(a, b) for a in OPERANDS for b in second]
    facts = " ".join(f"pair({a}, {b}) ." for a, b in pairs)
    # Other values than booleans are conditions in SPARQL only.
    condition = expression if is_test(expression) else f"({expression}) = ({expression})"
    program = Program.parse(
        f"{PREFIXES} value(?a, ?b, ?v) :- pair(?a, ?b), BIND({expression} AS ?v) ."
        f" true_of(?a, ?b) :- pair(?a, ?b), FILTER({condition}) . {facts}"
    )
    kb = KnowledgeBase(program)
    own = texts(kb.query("value(?a, ?b, ?v)"))
    values = " ".join(f"({a} {b})" for a, b in pairs)
    query = f"{PREFIXES} SELECT ?a ?b ({expression} AS ?v) {{ VALUES (?a ?b) {{ {values} }} }}"
    assert own == texts(kb.query(query))
    accepted = {(*row,) for row in _rows(kb.query("true_of(?a, ?b)"))}
    if is_test(expression):
        assert accepted == {pair for pair, value in own.items() if value == TRUE}
    # The oracle
    [bind] = program.rules[0].binds
    tested = program.rules[1].body[1]
    assert isinstance(tested, Filter)
    for fact in program.facts:
        terms = dict(zip((Variable("a"), Variable("b")), fact.constants(), strict=True))
        key = tuple(map(text_of, fact.constants()))
        expected = evaluated(bind.expression, terms)
        assert own.get(key) == (None if expected is None else text_of(expected)), key
        assert (key in accepted) == holds(tested.expression, terms)


def is_test(expression: str) -> bool:
    """Whether an expression is true, false or an error."""
    operators = (" = ", " != ", "<", ">", " IN ")
    name = expression.partition("(")[0]
    if name in FUNCTIONS:
        return FUNCTIONS[name].is_test
    return not expression.startswith(("IF", "COALESCE")) and any(o in expression for o in operators)


TRUE = f'"true"^^<{XSD}boolean>'


def _rows(found: object) -> list[tuple[str | None, ...]]:
    assert isinstance(found, Solutions)
    return list(zip(*(column.to_pylist() for column in found.table.columns), strict=True))


@pytest.mark.parametrize("expression", SHARED)
def test_constants(expression: str) -> None:
    """The expressions of the SPARQL tests, as they are."""
    text = f"{PREFIXES} v(?v) :- BIND({expression} AS ?v) ."
    try:
        program = Program.parse(text)
    except InvalidProgram:
        with pytest.raises(InvalidProgram, match="E209"):  # an error that needs no evaluation
            Program.parse(text)
        return
    kb = KnowledgeBase(program)
    [[own]] = _rows(kb.query("v(?v)")) or [(None,)]
    [[theirs]] = _rows(kb.query(f"{PREFIXES} SELECT ({expression} AS ?v) {{}}"))
    assert own == theirs
    if own is not None:
        assert text_of(term_of(own)) == own
