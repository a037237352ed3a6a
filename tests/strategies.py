"""Random programs that are valid by construction.

Relations are ranked: a rule for a relation reads relations of its own rank or lower ones
positively (so that recursion of every form arises), and lower ones only under NOT and AGGREGATE.
Few constants and few variables make joins and repeated variables likely.
"""

from hypothesis import strategies as st

from corollary.lang.functions import FUNCTIONS
from corollary.lang.program import Program
from corollary.lang.syntax import (
    AGGREGATE_FUNCTIONS,
    IRI,
    TRIPLE,
    TYPE,
    XSD,
    Aggregate,
    Atom,
    Binding,
    BlankNode,
    BodyLiteral,
    Constant,
    Expression,
    Filter,
    Literal,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
)

# Rank order; the triples stand in the middle.
ARITIES = {
    "nil": 0,
    "one": 1,
    "two": 2,
    TRIPLE: 3,
    "edge": 2,
    "path": 2,
    "three": 3,
    "four": 4,
    "top": 1,
}
RELATIONS = list(ARITIES)
VARIABLES = [Variable(name) for name in "xyzw"]
PROPERTIES = [IRI("http://example.org/p"), IRI("http://example.org/q"), TYPE]
CLASSES: list[Constant] = [IRI("http://example.org/C"), IRI("http://example.org/D")]
NUMBERS: list[Constant] = [
    Literal("0", XSD + "integer"),
    Literal("1", XSD + "integer"),
    Literal("2", XSD + "integer"),
    Literal("1.0", XSD + "decimal"),
    Literal("2.5", XSD + "decimal"),
    Literal("1.5E0", XSD + "double"),
]
CONSTANTS: list[Constant] = [
    *NUMBERS,
    Literal("a"),
    Literal("b"),
    Literal("true", XSD + "boolean"),
    Literal("x", XSD + "integer"),
    *CLASSES,
]

# Functions that are true or false.
TESTS = sorted(name for name, function in FUNCTIONS.items() if function.is_test)

variables = st.sampled_from(VARIABLES)
constants = st.sampled_from(CONSTANTS)
terms: st.SearchStrategy[Term] = st.one_of(variables, variables, variables, constants)


@st.composite
def atoms(draw: st.DrawFn, relations: list[str], term: st.SearchStrategy[Term] = terms) -> Atom:
    """An atom of one of the relations."""
    relation = draw(st.sampled_from(relations))
    arguments = [draw(term) for _ in range(ARITIES[relation])]
    if relation == TRIPLE:
        arguments[1] = draw(st.one_of(st.sampled_from(PROPERTIES), term.filter(_may_be_property)))
        if arguments[1] == TYPE:
            arguments[2] = draw(st.one_of(st.sampled_from(CLASSES), term))
    return Atom(relation, tuple(arguments))


def _may_be_property(term: Term) -> bool:
    return isinstance(term, Variable | IRI)


def facts(relations: list[str] = RELATIONS) -> st.SearchStrategy[Atom]:
    """A ground atom."""
    return atoms(relations, constants)


def _numeric(bound: list[Variable]) -> st.SearchStrategy[Expression]:
    leaves: list[Expression] = [*bound, *NUMBERS]
    return st.recursive(
        st.sampled_from(leaves),
        lambda inner: st.one_of(
            st.builds(lambda o, a, b: Operation(o, (a, b)), st.sampled_from("+-*/"), inner, inner),
            st.builds(lambda a: Operation("-", (a,)), inner),
        ),
        max_leaves=4,
    )


def conditions(bound: list[Variable]) -> st.SearchStrategy[Expression]:
    """A well-typed condition over variables."""
    anything: list[Expression] = [*bound, *CONSTANTS]
    compare = st.builds(
        lambda o, a, b: Operation(o, (a, b)),
        st.sampled_from(["<", "<=", ">", ">=", "=", "!="]),
        _numeric(bound),
        _numeric(bound),
    )
    same = st.builds(
        lambda o, a, b: Operation(o, (a, b)),
        st.sampled_from(["=", "!="]),
        st.sampled_from(anything),
        st.sampled_from(anything),
    )
    call = st.sampled_from(TESTS).flatmap(
        lambda name: st.builds(
            lambda *terms: Operation(name, terms),
            *[st.sampled_from([*anything, IRI(XSD + "integer")])] * FUNCTIONS[name].least,
        )
    )
    return st.recursive(
        st.one_of(compare, same, call),
        lambda inner: st.one_of(
            st.builds(
                lambda o, a: Operation(o, tuple(a)),
                st.sampled_from(["&&", "||"]),
                st.lists(inner, min_size=2, max_size=3),
            ),
            st.builds(lambda a: Operation("!", (a,)), inner),
        ),
        max_leaves=3,
    )


@st.composite
def aggregates(draw: st.DrawFn, relations: list[str]) -> Aggregate:
    """An aggregate whose local variables and results are its own."""
    local = {variable: Variable(variable.name + "1") for variable in VARIABLES}
    inner = [
        Atom(a.relation, tuple(local[t] if isinstance(t, Variable) else t for t in a.terms))
        for a in draw(st.lists(atoms(relations), min_size=1, max_size=2))
    ]
    found = sorted({v for atom in inner for v in atom.variables()}, key=lambda v: v.name)
    if not found:
        inner.append(Atom("one", (local[VARIABLES[0]],)))
        found = [local[VARIABLES[0]]]
    group = draw(st.lists(st.sampled_from(found), max_size=2, unique=True))
    bindings = [
        Binding(
            draw(st.sampled_from(AGGREGATE_FUNCTIONS)), draw(st.sampled_from(found)), Variable(name)
        )
        for name in draw(st.sampled_from((("n",), ("n", "m"))))
    ]
    # Group variables are those of the rule around, so that they join with its atoms.
    outer = {inside: outside for outside, inside in local.items() if inside in group}
    inner = [
        Atom(a.relation, tuple(outer.get(t, t) if isinstance(t, Variable) else t for t in a.terms))
        for a in inner
    ]
    return Aggregate(
        tuple(inner),
        tuple(outer[v] for v in group),
        tuple(Binding(b.function, outer.get(b.argument, b.argument), b.result) for b in bindings),
    )


@st.composite
def rules(draw: st.DrawFn, *, aggregation: bool = True) -> Rule:
    """A safe rule that keeps to the ranks."""
    rank = draw(st.integers(1, len(RELATIONS) - 1))
    head_relation, lower = RELATIONS[rank], RELATIONS[:rank]
    body: list[BodyLiteral] = list(draw(st.lists(atoms(RELATIONS[: rank + 1]), max_size=3)))
    if aggregation and rank > 1 and draw(st.integers(0, 4)) == 0:
        body.append(draw(aggregates(lower[1:])))
    bound = sorted(Rule(Atom("nil", ()), tuple(body)).bound_variables(), key=lambda v: v.name)
    if draw(st.integers(0, 3)) == 0 or not body:
        body.append(Negation(draw(atoms(lower))))
    if bound and draw(st.integers(0, 2)) == 0:
        body.append(Filter(draw(conditions(bound))))
    head_terms: st.SearchStrategy[Term] = (
        st.one_of(st.sampled_from(bound), st.sampled_from(bound), constants) if bound else constants
    )
    body = draw(st.permutations(body))
    return Rule(draw(atoms([head_relation], head_terms)), tuple(body))


@st.composite
def programs(draw: st.DrawFn, *, aggregation: bool = True) -> Program:
    """A valid program with facts."""
    return Program.of(
        draw(st.lists(rules(aggregation=aggregation), max_size=6)),
        draw(st.lists(facts(), max_size=20)),
    )


# -- terms with any text, for reading and printing ------------------------------------------------

_texts = st.text(max_size=8)
_names = st.from_regex(r"[^\W\d]\w{0,5}", fullmatch=True)
_iris = st.builds(
    IRI, st.one_of(_texts, st.builds("http://example.org/{}".format, _texts), st.just(TYPE.value))
)
_literals = st.one_of(
    st.builds(Literal, _texts),
    st.builds(lambda n: Literal(str(n), XSD + "integer"), st.integers()),
    st.builds(
        Literal,
        st.one_of(
            _texts, st.sampled_from(["1", "-.5", "+1.50", "1e3", "2.E-7", "true", "05", "١"])
        ),
        st.sampled_from([XSD + t for t in ("integer", "decimal", "double", "boolean", "date")]),
    ),
    st.builds(
        lambda text, tag: Literal(
            text, "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", tag
        ),
        _texts,
        st.sampled_from(["en", "de-AT", "x-klingon"]),
    ),
)
wild_constants: st.SearchStrategy[Constant] = st.one_of(
    _iris, st.builds(BlankNode, st.from_regex(r"\w([\w.-]{0,4}\w)?", fullmatch=True)), _literals
)


@st.composite
def wild_programs(draw: st.DrawFn) -> Program:
    """Programs with names, constants and prefixes of every kind."""
    prefixes = {"ex": "http://example.org/", "": "http://example.org/long/", "e.x-1": "urn:"}
    name = draw(_names)
    variable = Variable(draw(st.from_regex(r"\w{1,4}", fullmatch=True)))
    wild: st.SearchStrategy[Term] = wild_constants
    body: list[BodyLiteral] = [
        Atom(name, (variable, draw(wild))),
        Atom(TRIPLE, (variable, draw(_iris), draw(wild))),
        Filter(Operation("=", (variable, draw(wild)))),
    ]
    rule = Rule(
        Atom(name, (draw(wild), variable)),
        tuple(body),
        draw(st.sampled_from([None, "a-1", "eq.ref"])),
    )
    facts = [Atom(name, (draw(wild_constants), draw(wild_constants))) for _ in range(2)]
    return draw(programs()) | Program.of([rule], facts, prefixes)
