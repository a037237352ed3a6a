"""Reading, printing and comparing programs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.errors import InvalidInput, InvalidProgram
from corollary.lang import reference
from corollary.lang.parser import MAX_NESTING, parse_atom
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.reference import materialize
from corollary.lang.script import parse_script
from corollary.lang.syntax import IRI, TRIPLE, TYPE, XSD, Atom, Literal, Rule, Variable
from tests.computing import computing_program
from tests.strategies import programs, wild_programs

EX = "http://example.org/"


@given(programs())
def test_parse_of_print_is_the_program(program: Program) -> None:
    assert Program.parse(str(program)) == program


@given(wild_programs())
def test_parse_of_print_with_any_text(program: Program) -> None:
    again = Program.parse(str(program))
    assert again == program
    assert [rule.name for rule in again.rules] == [rule.name for rule in program.rules]
    assert str(again) == str(program)


def only_fact(text: str) -> Atom:
    [fact] = Program.parse(text).facts
    return fact


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("p(1, -2, +3, 007)", [Literal(t, XSD + "integer") for t in ("1", "-2", "+3", "007")]),
        ("p(1.5, -.5)", [Literal(t, XSD + "decimal") for t in ("1.5", "-.5")]),
        ("p(1e3, 1.5E-3, .5e0)", [Literal(t, XSD + "double") for t in ("1e3", "1.5E-3", ".5e0")]),
        ("p(true, false)", [Literal(t, XSD + "boolean") for t in ("true", "false")]),
        ("p(abc, größe, 日本)", [Literal("abc"), Literal("größe"), Literal("日本")]),
        (r'p("a\"b\\\n\t\u00e9\U0001F600")', [Literal('a"b\\\n\té😀')]),
        ("p('it is \"so\"')", [Literal('it is "so"')]),
        ('p("x"^^xsd:date)', [Literal("x", XSD + "date")]),
        ('p("x"^^<http://example.org/t>)', [Literal("x", EX + "t")]),
        (
            "p(<http://example.org/a>, ex:a, ex:a.b-c, ex:)",
            [IRI(EX + t) for t in ("a", "a", "a.b-c", "")],
        ),
        (r"p(ex:a\,b, ex:a%20b)", [IRI(EX + "a,b"), IRI(EX + "a%20b")]),
        ("p()", []),
        ("p", []),
    ],
)
def test_terms(text: str, terms: list[Literal | IRI]) -> None:
    assert only_fact(f"@prefix ex: <{EX}> . {text} .") == Atom("p", tuple(terms))


def test_language_tags_and_blank_nodes() -> None:
    fact = only_fact('p("chat"@fr-CA, _:b1) .')
    literal, blank = fact.terms
    assert isinstance(literal, Literal)
    assert literal.language == "fr-ca"
    assert repr(blank) == "BlankNode(label='b1')"


def test_iri_predicates_are_triples() -> None:
    written = Program.parse(f"PREFIX ex: <{EX}> ex:C(?x) :- ex:p(?x, ?y), <{EX}D>(?y) .")
    plain = Program.parse(f"[?x, a, <{EX}C>] :- [?x, <{EX}p>, ?y], [?y, a, <{EX}D>] .")
    assert written == plain
    assert written.rules[0].head == Atom(TRIPLE, (Variable("x"), TYPE, IRI(EX + "C")))


def test_comments_and_line_ends() -> None:
    text = "\ufeff% one\r\n# two\r\np(1) . // three\r\n  # four\r\nq(2) . % five"
    assert Program.parse(text) == Program.parse("p(1) . q(2) .")


def test_less_than_is_no_iri_after_a_variable() -> None:
    tight = Program.parse("p(?x) :- q(?x, ?y), FILTER(?x<?y&&?y>1&&?x-1<=?y) .")
    assert tight == Program.parse(
        "p(?x) :- q(?x, ?y), FILTER(?x < ?y && ?y > 1 && (?x - 1) <= ?y) ."
    )


def test_precedence() -> None:
    loose = Program.parse("p(?x) :- q(?x), FILTER(?x + 2 * 3 - 1 = 4 && ?x > 1 || !(?x = 2)) .")
    strict = "p(?x) :- q(?x), FILTER((((?x + (2 * 3)) - 1) = 4 && (?x > 1)) || (!(?x = 2))) ."
    assert loose == Program.parse(strict)


def test_rules_are_equal_up_to_renaming() -> None:
    [first] = Program.parse("[one] p(?x, ?y) :- q(?x, ?z), NOT r(?z, ?y1), q(?y, ?x) .").rules
    [second] = Program.parse("[two] p(?a, ?b) :- q(?a, ?c), NOT r(?c, ?d), q(?b, ?a) .").rules
    [third] = Program.parse("p(?a, ?b) :- q(?a, ?c), NOT r(?c, ?a), q(?b, ?a) .").rules
    assert first == second
    assert hash(first) == hash(second)
    assert first != third


def test_set_operations() -> None:
    left = Program.parse("p(?x) :- q(?x) . q(1) .")
    right = Program.parse("r(?x) :- p(?x) . q(1) . q(2) .")
    assert left | right == Program.parse("q(2) . q(1) . r(?x) :- p(?x) . p(?y) :- q(?y) .")
    assert (left | right) - right == Program.parse("p(?x) :- q(?x) .")
    [rule] = right.rules
    assert left.added(rule).removed(rule) == left
    assert len(left.added(rule).strata) == 2
    with pytest.raises(InvalidInput, match=r"no rule r\(\?x\)"):
        left.removed(rule)


def test_added_rules_are_validated() -> None:
    win = Program.parse("win(?x) :- move(?x, ?y), lost(?y) .")
    [lost] = Program.parse("lost(?x) :- move(?y, ?x), NOT win(?x) .").rules
    with pytest.raises(InvalidProgram) as caught:
        win.added(lost)
    assert caught.value.code == "E205"


def test_values_without_text_are_validated_too() -> None:
    with pytest.raises(InvalidProgram) as caught:
        Program.of([Rule(Atom("p", (Variable("x"),)), (Atom("q", (Variable("y"),)),))])
    assert "p(?x) :- q(?y) ." in caught.value.render()


def test_spans_tell_where() -> None:
    rule = Program.parse("p(1) .\n  q(?x) :-\n p(?x) .").rules[0]
    assert rule.span is not None
    assert (rule.span.line, rule.span.column) == (2, 3)
    [atom] = [atom for atom, _ in rule.atoms()]
    assert atom.span is not None
    assert atom.span.text == "p(?x)"


def test_long_conditions_are_not_deep() -> None:
    many = " || ".join(f"?x = {number}" for number in range(10 * MAX_NESTING))
    program = Program.parse(f"p(?x) :- q(?x), FILTER({many}) .")
    assert Program.parse(str(program)) == program


def test_prefixes_with_escapes_print() -> None:
    program = Program.parse("@prefix e: <http://e/\\u0020> . e:a(<x>).")
    assert Program.parse(str(program)) == program


def test_averages_of_huge_integers_have_a_text() -> None:
    huge = "9" * 5000
    program = Program.parse(f"n({huge}) . a(?m) :- AGGREGATE(n(?x) ON BIND avg(?x) AS ?m) .")
    assert Program.parse(f"a({huge}.0) .").facts[0] in materialize(program)


def test_the_oracle_stays_small() -> None:
    source = Path(reference.__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 150


@given(st.integers(0, 2**32 - 1).map(computing_program))
def test_parse_of_print_of_what_computes(program: Program) -> None:
    for rule in program.rules:
        atoms = [rule.head, *(atom for atom, _ in rule.atoms())]
        properties = [atom.terms[1] for atom in atoms if atom.relation == TRIPLE]
        if all(isinstance(term, IRI | Variable) for term in properties):
            assert Program.parse(Printer().rule(rule)).rules == (rule,)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("concat(?x, 'a')", 'CONCAT(?x, "a")'),
        ("isiri(?x) || ?x in (1, 2)", "isIRI(?x) || (?x IN (1, 2))"),
        ("?x not in ()", "?x NOT IN ()"),
        ("-strlen(str(?x)) + +2", "(-(STRLEN(STR(?x)))) + +2"),
        ("xsd:integer(?x) * 2", "xsd:integer(?x) * 2"),
        ("<http://www.w3.org/2001/XMLSchema#date>", "xsd:date"),
        ("if(?x < 1, coalesce(?x / 0, 1), 2)", "IF(?x < 1, COALESCE(?x / 0, 1), 2)"),
    ],
)
def test_expressions(written: str, printed: str) -> None:
    [rule] = Program.parse(f"p(?y) :- q(?x), BIND({written} AS ?y) .").rules
    assert str(Program.of([rule])) == f"p(?y) :- q(?x), BIND({printed} AS ?y) .\n"


def test_several_heads_are_several_rules() -> None:
    program = Program.parse("[both] p(?x), [?x, a, <C>] :- q(?x, _), NOT r(_, ?x) .")
    assert [rule.name for rule in program.rules] == ["both", "both"]
    assert program == Program.parse(
        "p(?x) :- q(?x, ?y), NOT r(?z, ?x) . [?x, a, <C>] :- q(?x, ?y), NOT r(?z, ?x) ."
    )
    [commit] = parse_script("remove rule p(?x), [?x, a, <C>] :- q(?x, _), NOT r(_, ?x) . commit ;")
    assert not program.removed(*commit.removed).rules


def test_anonymous_variables_have_names_of_their_own() -> None:
    """However the variables of a text are named, `_` is none of them."""
    program = Program.parse("p(?_1, ?__1) :- q(_, ?_1, _), q(?__1, _, _) .")
    assert len({*program.rules[0].bound_variables()}) == 6
    assert Program.parse(str(program)) == program
    with pytest.raises(InvalidProgram, match="a pattern needs one") as caught:
        parse_atom("p(_, 3)", {})
    assert caught.value.diagnostics[0].code == "E214"
