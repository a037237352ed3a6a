"""Random data and random SPARQL queries."""

from __future__ import annotations

import re

import pyoxigraph as ox
from hypothesis import strategies as st

PREFIXES = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
_XSD = "http://www.w3.org/2001/XMLSchema#"
VARIABLES = ("?a", "?b", "?c", "?d")

iris = st.sampled_from([f":n{number}" for number in range(5)])
properties = st.sampled_from([":p", ":q", ":r"])
_LITERALS = (
    *("1", "2", "10", "1.0", "1.5", "2e0", "-3", "-1.5", "+2", "-1e0"),
    *('"01"^^xsd:integer', '"1"^^xsd:int', '"9007199254740993"^^xsd:integer'),
    *('"9007199254740992.0"^^xsd:decimal', '"0.1"^^xsd:decimal', '"0.1"^^xsd:double'),
    *('"a"', '"b"', '"1"', '""', '"a"@en', '"a"@EN', '"a"@fr', '"B"@EN', '"x"@eN-Us'),
    *("true", "false", '"x"^^xsd:integer', '"x"^^:unknown', '"y"^^:unknown'),
    *('"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T01:00:00+01:00"^^xsd:dateTime'),
)


def _is_kept(literal: str) -> bool:
    """Whether pyoxigraph's store keeps a literal as it is written."""
    store = ox.Store()
    turtle = f"{PREFIXES} :s :p {literal} ."
    (triple,) = ox.parse(turtle.encode(), format=ox.RdfFormat.TURTLE)
    store.add(triple)
    return [quad.object for quad in store] == [triple.object]


literals = st.sampled_from(_LITERALS)
# In queries terms are compared as they are written.
_CONSTANTS = [literal for literal in _LITERALS if _is_kept(literal)]
constants = st.sampled_from(_CONSTANTS)
# Whether a path of no length begins at a term that no triple has, pyoxigraph decides otherwise.
ALL_NODES = f":n0 :z {', '.join([*(f':n{n}' for n in range(5)), ':C', *_CONSTANTS])} .\n"
nodes = st.one_of(iris, iris, st.sampled_from(["_:x", "_:y"]))
objects = st.one_of(nodes, literals)


@st.composite
def data(draw: st.DrawFn) -> str:
    """Turtle."""
    triples = draw(
        st.lists(
            st.one_of(
                st.tuples(nodes, properties, objects),
                st.tuples(nodes, st.just("a"), st.sampled_from([":C", ":D"])),
            ),
            max_size=14,
        )
    )
    return "".join(" ".join(triple) + " .\n" for triple in triples)


variables = st.sampled_from(VARIABLES)


@st.composite
def paths(draw: st.DrawFn, depth: int = 2) -> str:
    """Property paths."""
    if depth == 0:
        return draw(properties)
    part = paths(depth - 1)
    found: str = draw(
        st.one_of(
            properties,
            st.tuples(part, part).map(lambda p: f"({p[0]}/{p[1]})"),
            st.tuples(part, part).map(lambda p: f"({p[0]}|{p[1]})"),
            part.map(lambda p: f"(^{p})"),
            part.map(lambda p: f"({p})*"),
            part.map(lambda p: f"({p})+"),
            part.map(lambda p: f"({p})?"),
            st.just("!(:p|^:q)"),
            st.just("!:p"),
        )
    )
    return found


@st.composite
def triple_patterns(draw: st.DrawFn, predicates: st.SearchStrategy[str] = properties) -> str:
    """Triple patterns."""
    subject = draw(st.one_of(variables, variables, iris))
    predicate = draw(st.one_of(properties, predicates, variables, st.just("a")))
    object_ = draw(st.one_of(variables, variables, iris, constants, st.just(":C")))
    return f"{subject} {predicate} {object_} ."


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2, exists: bool = True) -> str:
    """Conditions."""
    operand = st.one_of(variables, variables, literals, iris)
    leaf: st.SearchStrategy[str] = st.one_of(
        st.tuples(operand, st.sampled_from(["=", "!="]), operand).map(" ".join),
        st.tuples(variables, st.sampled_from(["<", ">"]), variables).map(" ".join),
        st.tuples(
            variables,
            st.sampled_from(["<", ">", "<=", ">="]),
            st.sampled_from(["1", "1.5", '"a"', "2e0"]),
        ).map(" ".join),
        variables.map(lambda v: f"BOUND({v})"),
        variables.map(lambda v: f"isIRI({v})"),
        variables.map(lambda v: f"isLiteral({v})"),
        variables.map(lambda v: f"STRLEN(STR({v})) > 8"),
        st.tuples(variables, st.one_of(variables, iris, constants)).map(
            lambda p: f"sameTerm({p[0]}, {p[1]})"
        ),
        st.tuples(variables, operand, operand).map(lambda p: f"{p[0]} IN ({p[1]}, {p[2]})"),
        st.tuples(variables, iris, iris).map(lambda p: f"{p[0]} NOT IN ({p[1]}, {p[2]})"),
        st.tuples(variables, variables).map(lambda p: f"{p[0]} + 1 < {p[1]} * 2"),
        st.tuples(variables, variables).map(lambda p: f"COALESCE({p[0]}, {p[1]}) = 1"),
        variables,
    )
    if depth == 0:
        return draw(leaf)
    part = expressions(depth - 1, exists)
    choices: list[st.SearchStrategy[str]] = [
        leaf,
        leaf,
        st.tuples(part, part).map(lambda p: f"({p[0]} && {p[1]})"),
        st.tuples(part, part).map(lambda p: f"({p[0]} || {p[1]})"),
        part.map(lambda p: f"!({p})"),
    ]
    if exists:
        inner = st.lists(triple_patterns(), min_size=1, max_size=2).map(" ".join)
        choices += [
            inner.map(lambda p: f"EXISTS {{ {p} }}"),
            inner.map(lambda p: f"NOT EXISTS {{ {p} }}"),
        ]
    return draw(st.one_of(choices))


@st.composite
def values_blocks(draw: st.DrawFn) -> str:
    """VALUES with any number of variables and rows, none included."""
    names = draw(st.lists(variables, unique=True, max_size=3))
    cell = st.one_of(iris, constants, st.just("UNDEF"))
    rows = draw(st.lists(st.tuples(*[cell] * len(names)), max_size=3))
    if len(names) == 1 and draw(st.booleans()):
        return f"VALUES {names[0]} {{ {' '.join(row[0] for row in rows)} }}"
    listed = " ".join(f"({' '.join(row)})" for row in rows)
    return f"VALUES ({' '.join(names)}) {{ {listed} }}"


@st.composite
def patterns(
    draw: st.DrawFn, depth: int = 2, predicates: st.SearchStrategy[str] = properties
) -> str:
    """Groups, without their braces."""
    triples = draw(st.lists(triple_patterns(predicates), max_size=2))
    parts = [*triples]
    if depth:
        for _ in range(draw(st.integers(0, 2))):
            inner = draw(patterns(depth - 1, predicates))
            kind = draw(
                st.sampled_from(["optional", "union", "minus", "group", "values", "select"])
            )
            if kind == "optional":
                condition = draw(expressions(1, exists=False)) if draw(st.booleans()) else None
                inner += f" FILTER({condition})" if condition else ""
                parts.append(f"OPTIONAL {{ {inner} }}")
            elif kind == "union":
                parts.append(f"{{ {inner} }} UNION {{ {draw(patterns(depth - 1, predicates))} }}")
            elif kind == "minus":
                parts.append(f"MINUS {{ {inner} }}")
            elif kind == "group":
                parts.append(f"{{ {inner} }}")
            elif kind == "values":
                parts.append(draw(values_blocks()))
            else:
                chosen = " ".join(draw(st.sets(variables, min_size=1)))
                parts.append(f"{{ SELECT DISTINCT {chosen} {{ {inner} }} }}")
    if draw(st.booleans()):
        parts.append(f"FILTER({draw(expressions())})")
    return " ".join(parts)


# Names that SQL would not take, or not tell apart; `x` is theirs too.
_NAMES = (
    "1",
    "9lives",
    "_",
    "_1",
    "x",
    "X",
    "v0",
    "V0",
    "r1",
    "select",
    "unit",
    "\u00e9",
    "n" * 80,
)


@st.composite
def renamings(draw: st.DrawFn) -> dict[str, str]:
    """Other names for the variables."""
    chosen = draw(st.permutations(_NAMES))
    return dict(zip(VARIABLES, (f"?{name}" for name in chosen), strict=False))


def renamed(text: str, names: dict[str, str]) -> str:
    """A query with its variables renamed."""
    return re.sub(r"\?[a-d]\b", lambda match: names[match[0]], text)
