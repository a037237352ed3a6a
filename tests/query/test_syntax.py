"""SPARQL's grammar and its rules about scopes, names and nesting."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from corollary import KnowledgeBase
from corollary.errors import InvalidInput, InvalidProgram
from corollary.lang.iris import resolve
from corollary.lang.syntax import IRI, Literal, Variable
from corollary.query.parse import check_syntax, parse
from corollary.query.results import Solutions

PREFIXES = {"": "http://e/", "xsd": "http://www.w3.org/2001/XMLSchema#"}


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    kb = KnowledgeBase()
    with kb.transaction() as tx:
        tx.insert(
            "@prefix : <http://e/> . :a :p 1, -1, -1.0, -2.5e0, +3 ; :q :b . :b :q :c ; :r :a ."
            ' :c :s "x"@EN-us .'
        )
    return kb


def solutions(kb: KnowledgeBase, query: str) -> Solutions:
    found = kb.query(f"PREFIX : <http://e/> {query}")
    assert isinstance(found, Solutions)
    return found


# -- scopes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "variables"),
    [
        ("?b :q ?a", "b a"),
        ("?s :q ?o MINUS { ?s :r ?m }", "s o"),
        ("?s :q ?o FILTER(?f = 1)", "s o"),
        ("FILTER(?s != ?f) ?s :q ?o", "s o"),
        ("?s :q ?o FILTER EXISTS { ?o :q ?e }", "s o"),
        ("?s :q ?o FILTER NOT EXISTS { ?o :q ?e MINUS { ?e :q ?m } }", "s o"),
        ("?s :q ?o BIND(EXISTS { ?o :q ?e } AS ?x)", "s o x"),
        ("?s :q ?o BIND(?u AS ?x)", "s o x"),
        ("?s :q ?o OPTIONAL { ?o :q ?x FILTER(?y) }", "s o x"),
        ("{ ?s :q ?o } UNION { ?s :r ?x MINUS { ?m :q ?s } }", "s o x"),
        ("{ SELECT ?s (COUNT(?o) AS ?n) { ?s :q ?o } GROUP BY ?s }", "s n"),
        ("{ SELECT ?s { ?s :q ?o } }", "s"),
        ("{ SELECT * { ?s :q ?o MINUS { ?x :r ?o } } }", "s o"),
        ("VALUES (?x ?y) { (1 UNDEF) }", "x y"),
        ("VALUES ?x { }", "x"),
        ("_:b :q ?o . [] :q _:b", "o"),
        ("?s ?p (1 ?x [ :q ?y ])", "s p x y"),
        ("?s :q/:q ?o ; ^:q* ?x", "s o x"),
        ("", ""),
    ],
)
def test_select_star_shows_variables_in_scope(
    kb: KnowledgeBase, pattern: str, variables: str
) -> None:
    assert solutions(kb, f"SELECT * {{ {pattern} }}").variables == tuple(variables.split())
    described = parse(f"DESCRIBE * {{ {pattern} }}", PREFIXES).algebra.variables
    assert described == variables.split()


def test_trailing_values_are_in_scope(kb: KnowledgeBase) -> None:
    found = solutions(kb, "SELECT * { ?s :q :b } VALUES (?s ?z) { (:a 1) (:b 2) }")
    assert found.variables == ("s", "z")
    assert len(found) == 1


def test_filters_of_an_inner_group_are_not_conditions_of_optional(kb: KnowledgeBase) -> None:
    # ?s is not bound where the filter is evaluated, so that nothing is joined.
    (row,) = solutions(kb, "SELECT * { ?s :q :b OPTIONAL { { ?x :r ?y FILTER(?s = :a) } } }")
    assert row[1:] == (None, None)
    (row,) = solutions(kb, "SELECT * { ?s :q :b OPTIONAL { ?x :r ?y FILTER(?s = :a) } }")
    assert None not in row


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["1", "9lives", "_", "_1", "1_2_3_", "x", "select", "v0", "r1", "unit", "text", "é", "名前",
     "a\u0301", "\U00010400", "n" * 500],
)  # fmt: skip
def test_any_name_of_the_grammar_is_a_variable(kb: KnowledgeBase, name: str) -> None:
    found = solutions(
        kb,
        f"SELECT ?{name} (COUNT(*) AS ?{name}_0) {{ _:{name} :q ?{name} . ?{name} :q ?{name}2"
        f" OPTIONAL {{ ?{name} :none ?{name}3 FILTER(?{name}3 > 1) }} }}"
        f" GROUP BY ?{name} ORDER BY ?{name}",
    )
    assert found.variables == (name, f"{name}_0")
    assert found.to_pylist()[0][name] == "<http://e/b>"


def test_names_differ_by_case_and_underscores(kb: KnowledgeBase) -> None:
    found = solutions(kb, "SELECT * { VALUES (?x ?X ?_x ?x_ ?x_0 ?V0 ?v0) { (1 2 3 4 5 6 7) } }")
    (row,) = found
    assert [term.lexical for term in row if isinstance(term, Literal)] == [*"1234567"]


def test_blank_node_labels_of_the_grammar(kb: KnowledgeBase) -> None:
    for label in ("1", "1_2_3_", "_", "a.b", "a-b", "é"):
        assert len(solutions(kb, f"SELECT * {{ ?s :q _:{label} . _:{label} :q ?o }}")) == 1
    assert len(solutions(kb, "SELECT * { ?s :q _:x . _:X :q ?o }")) == 4


# -- terms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "datatype"),
    [("-1", "integer"), ("-1.0", "decimal"), ("-2.5e0", "double"), ("+3", "integer")],
)
def test_signed_numbers_are_terms(kb: KnowledgeBase, number: str, datatype: str) -> None:
    expected = Literal(number, PREFIXES["xsd"] + datatype)
    for query in (
        f"SELECT ?o {{ :a :p {number} . :a :p ?o FILTER(sameTerm(?o, {number})) }}",
        f"SELECT ?x {{ VALUES ?x {{ {number} }} }}",
        f"SELECT ?x {{ VALUES (?y ?x) {{ (1 {number}) }} }}",
        f"SELECT ?x {{ BIND({number} AS ?x) }}",
        f"SELECT ?x {{ :a :p {number}, ?x ; :p {number} FILTER(?x IN ({number})"
        f" && sameTerm(?x, {number})) }}",
    ):
        assert list(solutions(kb, query)) == [(expected,)]
    parsed = parse(f"CONSTRUCT {{ <urn:a> <urn:b> {number} }} WHERE {{}}", {})
    assert parsed.algebra.template == [(IRI("urn:a"), IRI("urn:b"), expected)]


def test_signs_in_expressions(kb: KnowledgeBase) -> None:
    query = (
        "SELECT (1 -2 AS ?a) (1-2*3 AS ?b) (-2*-3 AS ?c) (1--1 AS ?d) (- 1 AS ?e) (-(-1) AS ?f) {}"
    )
    (row,) = solutions(kb, query)
    assert [term.lexical for term in row if isinstance(term, Literal)] == [
        *("-1", "-5", "6", "2", "-1", "1")
    ]
    # `+1` is an object, `+ 1` the end of a path.
    assert parse("ASK { ?s :p +1 }", PREFIXES).algebra.p.triples[0][1] == IRI("http://e/p")
    assert parse("ASK { ?s :p+ 1 }", PREFIXES).algebra.p.triples[0][1].mod == "+"


def test_language_tags_in_any_case(kb: KnowledgeBase) -> None:
    for tag in ("en-us", "EN-US", "eN-Us"):
        assert kb.query(f'ASK {{ ?s ?p "x"@{tag} FILTER(sameTerm("x"@{tag}, "x"@EN-us)) }}') is True
        assert len(solutions(kb, f'SELECT * {{ ?s ?p ?o VALUES ?o {{ "x"@{tag} }} }}')) == 1
        query = (
            f'SELECT (LANG("x"@{tag}) AS ?l) ("x"@{tag} AS ?x) (STRLANG("x", "{tag}") AS ?y) {{}}'
        )
        (row,) = solutions(kb, query)
        assert row[0] == Literal("en-us")
        assert row[1] == row[2]


@pytest.mark.parametrize(
    ("rows", "number"),
    [("", 0), ("()", 1), ("() ()", 2), ("( )\n(\t)", 2)],
)
def test_values_without_variables(kb: KnowledgeBase, rows: str, number: int) -> None:
    for query in (
        f"SELECT * {{ VALUES () {{ {rows} }} }}",
        f"SELECT * {{ }} VALUES () {{ {rows} }}",
        f"SELECT ?x {{ {{ VALUES () {{ {rows} }} }} }}",
    ):
        assert len(solutions(kb, query)) == number
    assert len(solutions(kb, f"SELECT * {{ ?s :q ?o VALUES () {{ {rows} }} }}")) == 2 * number
    assert kb.query(f"ASK {{ VALUES () {{ {rows} }} }}") is (number > 0)


def test_values_that_are_undefined(kb: KnowledgeBase) -> None:
    found = solutions(kb, "SELECT * { ?s :q ?o VALUES (?s ?z) { (UNDEF 1) (:a UNDEF) } }")
    assert len(found) == 3
    assert list(solutions(kb, "SELECT * { VALUES ?x { UNDEF } }")) == [(None,)]


def test_references_are_resolved() -> None:
    base = "http://a/b/c/d;p?q"
    for reference, expected in (
        *(("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("/g", "http://a/g")),
        *(("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("#s", base + "#s"), ("", base)),
        *((".", "http://a/b/c/"), ("..", "http://a/b/"), ("../../../g", "http://a/g")),
        *(("g/../h", "http://a/b/c/h"), ("g?y/../x", "http://a/b/c/g?y/../x")),
    ):
        assert resolve(base, reference) == expected
    algebra = parse("BASE <http://e/x/> PREFIX p: <y#> ASK { <z> p:q ?o }", {}).algebra
    assert algebra.p.triples == [(IRI("http://e/x/z"), IRI("http://e/x/y#q"), Variable("o"))]


# -- mistakes --------------------------------------------------------------------------------------

INVALID = """
SELECT
SELECT *
SELECT * {
SELECT * { ?s ?p }
SELECT * { ?s ?p ?o } }
SELECT * { . }
SELECT * { . ?s ?p ?o }
SELECT * { ?s ?p ?o . . }
SELECT * { ?s ?p ?o .. ?s ?p ?o }
SELECT * { ?s ?p ?o ; ?s ?p ?o . }
SELECT * { ; FILTER(?x) }
SELECT * { :s ; :p :o }
SELECT * { :s :p ; }
SELECT * { :s :p , :o }
SELECT * { :s :p :o , }
SELECT * { :s :p1 :o1 , :p2 :o2 }
SELECT * { :s :p :o . ; }
SELECT * { () }
SELECT * { ?s () () }
SELECT * { [] }
SELECT * { [] . }
SELECT * { <a> }
SELECT * { [,] :p [;] }
SELECT * { :x [] :q }
SELECT * { :x _:a :q }
SELECT * { "a" "b" "c" }
SELECT * { ?s ?p ?o FILTER ?x }
SELECT * { ?s ?p ?o FILTER(_:x) }
SELECT * { OPTIONAL FILTER(?x) }
SELECT * { ?s ?p ?o UNION ?s ?p ?o }
SELECT * { GRAPH [] { } }
SELECT * { FILTER(?x<?a&&?b>?y) }
SELECT * { FILTER(1 < 2 < 3) }
SELECT * { FILTER(?x = ) }
SELECT * { FILTER(?x NOT 1) }
SELECT * { BIND(1 AS ?x) BIND(2 AS ?x) }
SELECT * { ?x ?p ?o BIND(1 AS ?x) }
SELECT * { { ?x ?p ?o } UNION { ?y ?p ?o } BIND(1 AS ?y) }
SELECT * { BIND(1 ?x) }
SELECT ?x { BIND(COUNT(*) AS ?x) }
SELECT * { FILTER(SUM(?x) > 1) }
SELECT (SUM(COUNT(?x)) AS ?y) { }
SELECT (1 AS ?x) (2 AS ?x) { }
SELECT (1 AS ?x) { ?x ?p ?o }
SELECT (1 AS ?x) { } VALUES ?x { 2 }
SELECT (1 AS ?x) { { SELECT (2 AS ?x) { } } }
SELECT (?x + ?y) { }
SELECT COUNT(*) { }
SELECT * { ?s ?p ?o } GROUP BY ?s
SELECT * { ?s ?p ?o } HAVING(COUNT(*) > 1)
SELECT ?o { ?s ?p ?o } GROUP BY ?s
SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o }
SELECT (?o AS ?x) { ?s ?p ?o } GROUP BY ?s
SELECT ?p { ?s ?p ?o } GROUP BY (?s AS ?o)
SELECT * { } LIMIT -1
SELECT * { } LIMIT 1 LIMIT 2
SELECT * { } OFFSET 1 OFFSET 2
SELECT * { } LIMIT 1 ORDER BY ?x
SELECT * { } ORDER BY
SELECT * { VALUES ?x { ?y } }
SELECT * { VALUES ?x { _:b } }
SELECT * { VALUES ?x { (1) } }
SELECT * { VALUES (?x ?y) { (1) } }
SELECT * { VALUES (?x) { (1 2) } }
SELECT * { VALUES (?x) { 1 } }
SELECT * { VALUES () { (1) } }
SELECT * { VALUES (?x ?x) { (1 2) } }
SELECT * { VALUES ?x { - 1 } }
SELECT * { ?s ?p - 1 }
SELECT * { ?s ?p --1 }
SELECT * { _:a ?p ?v OPTIONAL { _:a ?q 1 } }
SELECT * { _:a ?p ?v OPTIONAL { ?s ?p ?v } _:a ?q 1 }
SELECT * { _:a ?p ?v { _:a ?q 1 } }
SELECT * { { _:a ?p ?v } _:a ?q 1 }
SELECT * { { _:a ?p ?v } UNION { _:a ?q 1 } }
SELECT * { _:a ?p ?v MINUS { _:a ?q 1 } }
SELECT * { _:a ?p ?v MINUS { ?s ?p ?v } _:a ?q 1 }
SELECT * { _:a ?p ?v BIND(1 AS ?x) _:a ?q 1 }
SELECT * { _:a ?p ?v VALUES ?x { 1 } _:a ?q 1 }
SELECT * { _:a ?p ?v FILTER EXISTS { _:a ?q 1 } }
SELECT * { _:a ?p ?v GRAPH ?g { ?s ?p ?v } _:a ?q 1 }
SELECT * { _:a ?p ?v { SELECT * { _:a ?q 1 } } }
SELECT * { ?s :p** ?o }
SELECT * { ?s !:p/ ?o }
SELECT * { ?s !(:p/:q) ?o }
SELECT * { ?s ^?p ?o }
CONSTRUCT
CONSTRUCT { ?s :p* ?o } { }
CONSTRUCT { ?s ?p ?o FILTER(true) } { }
CONSTRUCT WHERE { ?s ?p ?o FILTER(true) }
CONSTRUCT WHERE { { ?s ?p ?o } }
CONSTRUCT WHERE { ?s :p/:q ?o }
DESCRIBE
ASK { ?s ?p ?o } GROUP
ASK { ?s ?p "unclosed }
ASK { ?s ?p "a
b" }
ASK { ?s ?p "\\q" }
ASK { ?s ?p <a b> }
ASK { ?s ?p <a{b> }
ASK { ?s ?p 'a"''' }
ASK { ?s ?p :a%1 }
ASK { ?s ?p :a\\b }
ASK { ?s ?p :a. b }
ASK { ?s ?p "\\ud800" }
ASK { ?s ?p "\\U00110000" }
ASK { ?s ?p ?- }
ASK { ?s ?p @en }
ASK { ?s ?p "x"@ en }
ASK { ?s ?p ?o FILTER(REGEX("a")) }
ASK { ?s ?p ?o FILTER(STR()) }
ASK { ?s ?p ?o FILTER(IF(1, 2)) }
ASK { ?s ?p ?o FILTER(BOUND(1)) }
ASK { ?s ?p ?o FILTER(NOW(1)) }
PREFIX a:b <http://e/> ASK { }
PREFIX <http://e/> ASK { }
BASE ASK { }
ASK { } ASK { }
"""
_LINES = INVALID.strip().replace('"a\nb"', '"a\\x0ab"').splitlines()


@pytest.mark.parametrize("query", [line.replace("\\x0a", "\n") for line in _LINES])
def test_invalid_queries_are_refused(query: str) -> None:
    with pytest.raises(InvalidProgram) as caught:
        parse(query, PREFIXES)
    assert caught.value.code == "E560"
    assert caught.value.line is not None
    with pytest.raises(InvalidInput):
        check_syntax(query)


VALID = """
ASK { }
ask where { ?s a ?o }
SELECT REDUCED ?x ?y WHERE { ?x ?y ?z }
SELECT ?x{?x?y?z}
SELECT * { _:a ?p ?v . FILTER(true) . [] ?q _:a }
SELECT * { _:a ?p ?v FILTER EXISTS { ?v ?q 1 } _:a ?q 2 }
SELECT * { { _:a ?p _:a } UNION { _:b ?q _:c } }
SELECT * { ?s ?p ?o ; . }
SELECT * { ?s ?p ?o ;; ?q ?r ;; }
SELECT * { [ ?p ?o ] }
SELECT * { [ ?p ?o ] ?q ?r . ( 1 2 ) . (1) ?p [] }
SELECT * { OPTIONAL { } . ?s ?p ?o }
SELECT * { ?s :p ?o. ?s :p 1. ?s :p 1.0. ?s :p 1e0. }
SELECT * { ?s :p ?o FILTER(?o<3) FILTER(?o <= 3 && ?s>:a) }
SELECT * { ?s a/^a|!(a|^a)|!a?|(:p/:q)*/:r+ ?o }
SELECT (COUNT(DISTINCT *) AS ?n) (GROUP_CONCAT(?o ; SEPARATOR = "'") AS ?g) { ?s ?p ?o }
SELECT ?k { ?s ?p ?o } GROUP BY (STR(?s) AS ?k) STR(?o) HAVING(COUNT(*) > 1) (?k) ORDER BY ?k
SELECT ?x { } ORDER BY DESC(?x) STR(?x) (?x + 1) OFFSET 1 LIMIT 2
SELECT ?x { ?x ?p ?o } VALUES ?x { 1 TRUE False UNDEF "a"@en 'b'^^:c :d <e> -1 }
CONSTRUCT { _:a ?p _:a } WHERE { _:a ?p ?o }
CONSTRUCT WHERE { ?s ?p (1 [ ?q ?r ]) }
CONSTRUCT { } { }
DESCRIBE :a ?x <b> WHERE { ?x ?p ?o } LIMIT 1
DESCRIBE *
ASK { ?s :a.b:c%20\\~\\, :1, : }
ASK { ?s ?p '''a'b''c\\'''', \"\"\"x"y""z\"\"\", "", '' }
ASK { ?s ?p "\\u00e9\\U0001F600\\t\\"", '\\\\u0041' }
ASK { ?\\u0061 ?p <http://e/\\u00e9> }
ASK { ?s ?p ?o FILTER(!!true && - -1 < +(2) && ?o NOT IN () && :f() IN (1)) }
ASK { FILTER NOT EXISTS { SELECT * { } } FILTER :f(1) FILTER BOUND(?x) }
ASK { { SELECT (1 AS ?x) { } } SERVICE SILENT ?g { ?s ?p ?o } GRAPH :g { } }
"""


@pytest.mark.parametrize("query", VALID.strip().splitlines())
def test_valid_queries_are_accepted(query: str) -> None:
    parse(query, PREFIXES)
    check_syntax(query)


def test_escapes_keep_the_places_of_mistakes() -> None:
    with pytest.raises(InvalidProgram) as caught:
        parse('ASK { ?\\u0078 ?p "\\u0041\\U00000041" . \\u003fy ?p }', {})
    assert caught.value.column == 50


# -- size and depth --------------------------------------------------------------------------------

NESTED = {
    "brackets": ("SELECT * { FILTER(", "(", "1", ")", ") }"),
    "signs": ("SELECT * { FILTER(", "!", "true", "", ") }"),
    "minus": ("SELECT (", "- ", "1", "", " AS ?x) { }"),
    "groups": ("SELECT * { ", "{ ", "?s ?p ?o", " }", " }"),
    "optional": ("SELECT * { ", "OPTIONAL { ?s ?p ?o ", "", " }", " }"),
    "exists": ("SELECT * { ", "?s ?p ?o FILTER EXISTS { ", "?s ?p ?o", " }", " }"),
    "subqueries": ("SELECT * { ", "{ SELECT * { ", "?s ?p ?o", " } }", " }"),
    "lists": ("SELECT * { ?s ?p ", "(", "1", ")", " }"),
    "blank nodes": ("SELECT * { ?s ?p ", "[ ?p ", "1", "]", " }"),
    "paths": ("SELECT * { ?s ", "(", "<urn:p>", ")", " ?o }"),
    "inverse paths": ("SELECT * { ?s ", "^(", "<urn:p>", ")", " ?o }"),
    "calls": ("SELECT (", "STR(", "1", ")", " AS ?x) { }"),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("depth", [10, 200, 20_000])
def test_nested_queries(kb: KnowledgeBase, kind: str, depth: int) -> None:
    start, opening, middle, closing, end = NESTED[kind]
    query = f"{start}{opening * depth}{middle}{closing * depth}{end}"
    if depth == 10:
        kb.query(query)
        return
    with pytest.raises(InvalidInput) as caught:
        kb.query(query)
    assert caught.value.code == "E560"


@pytest.mark.parametrize("part", ["OPTIONAL { ?s :q ?x }", "BIND(1 AS ?x)", "MINUS { ?s :r ?x }"])
def test_long_groups_end_or_are_refused(kb: KnowledgeBase, part: str) -> None:
    members = " ".join(part.replace("?x", f"?x{number}") for number in range(3_000))
    with pytest.raises(InvalidInput) as caught:
        solutions(kb, f"SELECT * {{ ?s :q ?o {members} }}")
    assert caught.value.code == "E560"


def test_long_values(kb: KnowledgeBase) -> None:
    number = 20_000
    rows = " ".join(f"(<http://e/{n}> {n} UNDEF)" for n in range(number))
    query = f"SELECT * {{ VALUES (?x ?y ?z) {{ (:a 1 -1) {rows} }} OPTIONAL {{ ?x :p ?z }} }}"
    found = solutions(kb, query)
    assert len(found) == number + 1
    assert len(solutions(kb, query)) == number + 1  # from the plan that is kept
    bound = [row["z"] for row in found.to_pylist() if row["z"] is not None]
    assert bound == ['"-1"^^<http://www.w3.org/2001/XMLSchema#integer>']


LONG = {
    "or": lambda n: " || ".join(f"?o = {i}" for i in range(1, n)),
    "or with constants first": lambda n: " || ".join(f"{i} = ?o" for i in range(1, n)),
    "or of IRIs": lambda n: "?o = 1 || " + " || ".join(f"?s = <http://e/{i}>" for i in range(n)),
    "or of expressions": lambda n: " || ".join(f"?o * 2 = {i}" for i in range(2, 2 * n)),
    "or with EXISTS": lambda n: (
        "EXISTS { ?o :q ?x } || " + " || ".join(f"?o + 0 = {i}" for i in range(1, n))
    ),
    "in": lambda n: f"?o IN ({', '.join(map(str, range(1, n)))})",
    "not in": lambda n: f"!(?o NOT IN ({', '.join(map(str, range(1, n)))}))",
    "and": lambda n: "!(" + " && ".join(f"?o != {i}" for i in range(1, n)) + ")",
    "sum": lambda n: f"?o {'+ 1 ' * n}>= {n + 1}",
}


@pytest.mark.parametrize("kind", LONG)
def test_long_chains(kb: KnowledgeBase, kind: str) -> None:
    """Of the numbers 1, -1, -1.0, -2.5 and 3, and of IRIs, two satisfy each condition."""
    found = solutions(kb, f"SELECT ?o {{ ?s ?p ?o FILTER({LONG[kind](5_000)}) }}")
    lexical = sorted(o.lexical for (o,) in found if isinstance(o, Literal))
    if kind == "or of IRIs":
        assert lexical == ["1"]
    else:
        assert lexical == ["+3", "1"]


def test_chains_keep_the_errors_of_their_operands(kb: KnowledgeBase) -> None:
    """An operand that is an error counts only if no other decides."""
    error = '?x = "a"^^<http://e/unknown>'
    many = " || ".join(f"?x = {n}" for n in range(20))
    none = " && ".join(f"?x != {n}" for n in range(20))
    query = (
        f"SELECT ?x (({error} || {many}) AS ?a) (({none} && !({error})) AS ?b)"
        " { VALUES ?x { 5 50 :i } } ORDER BY DESC(isIRI(?x)) ?x"
    )
    true, false = (f'"{word}"^^<{PREFIXES["xsd"]}boolean>' for word in ("true", "false"))
    rows = [(row["a"], row["b"]) for row in solutions(kb, query).to_pylist()]
    assert rows == [(false, true), (true, false), (None, None)]


def test_deep_queries_do_not_end_the_process() -> None:
    """In a thread of its own, whose stack is small."""
    code = (
        "import threading, corollary as co\n"
        "def run():\n"
        "    kb = co.KnowledgeBase()\n"
        "    for text in ('SELECT * {' + '{' * 100000, 'ASK { FILTER(' + '(' * 127 + '1'"
        " + ')' * 127 + ') }'):\n"
        "        try:\n"
        "            kb.query(text)\n"
        "        except co.InvalidInput as error:\n"
        "            print(error.code)\n"
        "threading.stack_size(256 * 1024)\n"
        "thread = threading.Thread(target=run)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert set(done.stdout.split()) <= {"E560"}
    assert done.stdout


def test_long_tokens() -> None:
    """A subprocess with a generous limit: quadratic time would take far longer."""
    texts = [
        *("9" * 200_000, "a" * 200_000, "'" + "a" * 200_000, "<" + "a" * 200_000, "#" * 200_000),
        *(":a" + "." * 200_000, ":" + "a." * 100_000, "_:" + "a." * 100_000),
        "'" + "\\u0041" * 30_000 + "'",
    ]
    code = (
        "import json, sys, corollary as co\n"
        "from corollary.query.parse import check_syntax\n"
        "for text in json.load(sys.stdin):\n"
        "    try:\n"
        "        check_syntax(f'ASK {{ ?s ?p {text} }}')\n"
        "    except co.InvalidInput as error:\n"
        "        assert error.code == 'E560'\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(texts), text=True, timeout=60, check=True
    )
