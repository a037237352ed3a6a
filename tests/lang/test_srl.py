"""The SHACL Rules language: what documents mean, compared with rules and with SPARQL."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary import CorollaryError, KnowledgeBase
from corollary.core.terms import term_of, text_of
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.syntax import IRI, TRIPLE, Atom, BlankNode, Constant
from corollary.lang.values import literal_of
from tests.cli.calls import call

PREFIX = "PREFIX : <http://example/>\n"
DL_PREFIX = "@prefix : <http://example/> .\n"

# What a document means, in the rule language.
MEANINGS = [
    ("RULE { ?x :q ?y } WHERE { ?x :p ?y }", "[?x, :q, ?y] :- [?x, :p, ?y] ."),
    ("rule { $x a :C } where { $x :p [] . }", "[?x, a, :C] :- [?x, :p, ?y] ."),
    ("IF { ?x :p ?y } THEN { ?x :q ?y . }", "[?x, :q, ?y] :- [?x, :p, ?y] ."),
    ("RULE { ?x :q ?y ; :r ?x , 1 } WHERE { ?x ?p ?y }",
     "[?x, :q, ?y], [?x, :r, ?x], [?x, :r, 1] :- [?x, ?p, ?y] ."),
    ("RULE { ?x :q ?y } WHERE { ?x :p/^:r/:s ?y }",
     "[?x, :q, ?y] :- [?x, :p, ?a], [?b, :r, ?a], [?b, :s, ?y] ."),
    ("RULE { ?x :q ?y } WHERE { ?x ^(:p/a) ?y }", "[?x, :q, ?y] :- [?a, a, ?x], [?y, :p, ?a] ."),
    ("RULE { ?x :q ?y } WHERE { ?x :p _:n . _:n :p ?y }",
     "[?x, :q, ?y] :- [?x, :p, ?n], [?n, :p, ?y] ."),
    ("RULE { ?x :q ?y } WHERE { [ :p ?x ; :r ?y ] }",
     "[?x, :q, ?y] :- [?n, :p, ?x], [?n, :r, ?y] ."),
    ("RULE { ?x :q 1 } WHERE { ?x :p ( ?x ) }",
     "[?x, :q, 1] :- [?n, rdf:first, ?x], [?n, rdf:rest, rdf:nil], [?x, :p, ?n] ."),
    ("RULE { ?x :q ?m } WHERE { ?x :p ?n FILTER(?n > 1 && isNumeric(?n)) SET(?m := ?n * 2) }",
     "[?x, :q, ?m] :- [?x, :p, ?n], FILTER(?n > 1 && isNumeric(?n)), BIND(?n * 2 AS ?m) ."),
    ("RULE { ?x :q 1 } WHERE { ?x :p ?n FILTER STRSTARTS(?n, 'a') . FILTER (?n NOT IN ('ab')) }",
     "[?x, :q, 1] :- [?x, :p, ?n], FILTER(STRSTARTS(?n, 'a')), FILTER(?n NOT IN ('ab')) ."),
    ("RULE { ?x :q 1 } WHERE { ?x :p ?n NOT { ?n :p ?any } NOT DATA { ?x :r ?z } }",
     "[?x, :q, 1] :- [?x, :p, ?n], NOT [?n, :p, ?any], NOT [?x, :r, ?z] ."),
    ("RULE { ?x :q 1 } WHERE DATA { ?x :p ?n }", "[?x, :q, 1] :- [?x, :p, ?n] ."),
    ("DATA { :a :p 1, 'x'@en ; a :C . } DATA { } DATA { :b :p '''two\n\"lines\"''' }",
     '[:a, :p, 1] . [:a, :p, "x"@en] . [:a, a, :C] . [:b, :p, "two\\n\\"lines\\""] .'),
    ("RULE { :a :p :b } WHERE { }", "[:a, :p, :b] ."),
    ("RULE { } WHERE { ?x :p ?y }", ""),
    ("VERSION '1.2' PREFIX e: <http://example/> BASE <http://example/x/y> DATA { <a> e:p <../b> }",
     "[<http://example/x/a>, :p, :b] ."),
    ("RULE { ?s :q 1 } WHERE { NOT { :a :r ?c } ?s :p ?o }",
     "[?s, :q, 1] :- NOT [:a, :r, ?c], [?s, :p, ?o] ."),
    ("RULE { :s :p -123.5 , -1.5e-10 , 'abc'@en--ltr } WHERE { }",
     '[:s, :p, -123.5] . [:s, :p, -1.5e-10] . [:s, :p, "abc"@en--ltr] .'),
    ("RULE { ?s :q 1 } WHERE { ?s :p [ :r 1 ; a :T ] ; } PREFIX n: <http://example/n#>\n"
     "RULE { ?s n:q 1 } WHERE { ?s n:p ?o }",
     "[?s, :q, 1] :- [?n, :r, 1], [?n, a, :T], [?s, :p, ?n] ."
     "[?s, <http://example/n#q>, 1] :- [?s, <http://example/n#p>, ?o] ."),
    ("RULE { ?s :q 1 } WHERE { (1 ?s) :p :z }",
     "[?s, :q, 1] :- [?b, rdf:first, ?s], [?b, rdf:rest, rdf:nil], [?a, rdf:first, 1],"
     " [?a, rdf:rest, ?b], [?a, :p, :z] ."),
    ("# comment\nRULE :name { ?x :q ?y } WHERE { ?x :p ?y } # RULE { }",
     "[?x, :q, ?y] :- [?x, :p, ?y] ."),
]  # fmt: skip


@pytest.mark.parametrize(("document", "rules"), MEANINGS)
def test_meaning(document: str, rules: str) -> None:
    program = Program.parse(PREFIX + document, syntax="srl")
    assert program == Program.parse(DL_PREFIX + rules)
    assert Program.parse(str(program)) == program


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        ("?x <urn:q> ?y", "[?x, <urn:q>, ?y]"),
        ("?x <urn:q>/<urn:r> 1", "[?x, <urn:q>, ?_1], [?_1, <urn:r>, 1]"),
        ("?x <urn:q> ?y FILTER(?x<?y&&?y>3)", "[?x, <urn:q>, ?y], FILTER(?x < ?y && ?y > 3)"),
        ("?x <urn:q> ?y FILTER(?x <=3&&?y>3)", "[?x, <urn:q>, ?y], FILTER(?x <= 3 && ?y > 3)"),
    ],
)
def test_iris_and_signs_after_a_variable(body: str, rules: str) -> None:
    read = Program.parse(f"RULE {{ ?x <urn:p> 1 }} WHERE {{ {body} }}", syntax="srl")
    assert read == Program.parse(f"[?x, <urn:p>, 1] :- {rules} .")


def test_names_of_rules() -> None:
    heads = ["RULE :a {", "RULE <http://example/rules#b-1> {", "RULE <urn:x> {", "RULE {"]
    text = "\n".join(f"{head} ?x :q {n} }} WHERE {{ ?x :p {n} }}" for n, head in enumerate(heads))
    names = [rule.name for rule in Program.parse(PREFIX + text, syntax="srl").rules]
    assert names == ["a", "b-1", "urn:x", None]


def test_new_blank_nodes_in_a_head() -> None:
    text = (
        PREFIX + "RULE { ?x :q _:n . _:n :of ?y ; :list ( 1 ) } WHERE { ?x :p ?y }\n"
        "DATA { :a :p :b, :c . [] :r [] }"
    )
    program = Program.parse(text, syntax="srl")
    facts = reference.materialize(program, {*program.facts})
    new = {
        atom.terms[2]
        for atom in facts
        if atom.terms[1] == IRI("http://example/q") and isinstance(atom.terms[2], BlankNode)
    }
    assert len(new) == 2
    assert len([atom for atom in facts if atom.terms[1] == IRI("http://example/of")]) == 2
    [two] = [atom for atom in facts if atom.terms[1] == IRI("http://example/r")]
    assert two.terms[0] != two.terms[2]
    assert Program.parse(str(program)) == program


# -- SPARQL as an independent meaning of a body ----------------------------------------------------

# Rules that do not recurse, with the same head and body in SPARQL.
IN_SPARQL = [
    ("?x :r ?y", "?x :p/^:q ?y", "?x :p/^:q ?y"),
    ("?x :r ?m ; a ?y", "?x :p ?y . ?y :q ?n . SET(?m := ?n + 1)",
     "?x :p ?y . ?y :q ?n . BIND(?n + 1 AS ?m) FILTER(BOUND(?m))"),
    ("?x :r 1", "?x :p ?y . NOT { ?y :q ?z . ?z :p ?w }",
     "?x :p ?y . FILTER NOT EXISTS { ?y :q ?z . ?z :p ?w }"),
    ("?x :r ?y", "?x :p ?y . NOT { ?y :q ?z . FILTER(?z = ?x) } FILTER(?y != ?x)",
     "?x :p ?y . FILTER NOT EXISTS { ?y :q ?z . FILTER(?z = ?x) } FILTER(?y != ?x)"),
    ("?x :r ?y", "?x :p ?y . NOT { FILTER(?x = ?y) } NOT { :a :q 1 . :a :p :b }",
     "?x :p ?y . FILTER(!(?x = ?y)) FILTER NOT EXISTS { :a :q 1 . :a :p :b }"),
    ("?x :r _:n", "?x :p _:n . _:n :q/:p [ :q ?any ]", None),
]  # fmt: skip

IRIS = [IRI(f"http://example/{name}") for name in "abc"]
TRIPLES = st.sets(
    st.tuples(
        st.sampled_from(IRIS),
        st.sampled_from([IRI("http://example/p"), IRI("http://example/q")]),
        st.sampled_from([*IRIS, literal_of(1), literal_of(2)]),
    ),
    max_size=12,
)


@given(TRIPLES, st.sampled_from([case for case in IN_SPARQL if case[2] is not None]))
def test_bodies_mean_what_sparql_says(
    triples: set[tuple[Constant, ...]], case: tuple[str, str, str]
) -> None:
    head, body, pattern = case
    program = Program.parse(f"{PREFIX}RULE {{ {head} }} WHERE {{ {body} }}", syntax="srl")
    explicit = {Atom(TRIPLE, triple) for triple in triples}
    derived = reference.materialize(program, explicit)
    store = ox.Store()
    lines = [" ".join(map(text_of, triple)) + " ." for triple in triples]
    store.load("\n".join(lines).encode(), ox.RdfFormat.N_TRIPLES)
    found = store.query(f"{PREFIX}CONSTRUCT {{ {head} }} WHERE {{ {pattern} }}")
    expected = {Atom(TRIPLE, tuple(term_of(str(term)) for term in triple)) for triple in found}  # type: ignore[union-attr]
    assert {atom for atom in derived if atom.relation == TRIPLE} - explicit == expected - explicit


# -- files -----------------------------------------------------------------------------------------


def test_imports(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "main.srl").write_text(
        f"{PREFIX}IMPORTS <deep/one%20more.srl>\nIMPORTS <rules.dl> RULE {{ ?x :q ?y }} WHERE "
        "{ ?x :p ?y }"
    )
    (tmp_path / "deep" / "one more.srl").write_text(
        f"{PREFIX}IMPORTS <../main.srl> RULE {{ ?x :p ?y }} WHERE {{ ?y :p ?x }} DATA {{ <> :p 1 }}"
    )
    (tmp_path / "rules.dl").write_text(DL_PREFIX + "[?x, :s, ?y] :- [?x, :q, ?y] .")
    program = Program.load(tmp_path / "main.srl")
    assert len(program.rules) == 3
    [fact] = program.facts
    assert fact.terms[0] == IRI((tmp_path / "deep" / "one more.srl").resolve().as_uri())
    (tmp_path / "main.srl").write_text("IMPORTS <missing.srl>")
    with pytest.raises(CorollaryError) as caught:
        Program.load(tmp_path / "main.srl")
    assert caught.value.code == "E301"


RULES = PREFIX + "RULE { ?x :far ?z } WHERE { ?x :near/:near ?z NOT { ?x :near ?z } }\n"


def test_wherever_dl_files_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.srl").write_text(RULES + "DATA { :a :near :b . :b :near :c }")
    Path("data.ttl").write_text("@prefix : <http://example/> . :c :near :d .")
    done = call("run", "rules.srl", "--data", "data.ttl", "--quiet")
    assert done.stdout.count(":far") == 2
    assert call("run", "--rules", "rules.srl", "--quiet").stdout.count(":far") == 1
    assert call("build", "s", "data.ttl", "rules.srl", "--engine", "columnar").returncode == 0
    assert KnowledgeBase.open("s").count("[?x, <http://example/far>, ?y]") == 2
    assert call("build", "t", "data.ttl", "--rules", "none", "--engine", "columnar").returncode == 0
    assert call("update", "t", "--add-rules", "rules.srl").returncode == 0
    kb = KnowledgeBase.open("t")
    assert kb.count("[?x, <http://example/far>, ?y]") == 2
    print(kb.explain("[:b, :far, :d]"))
    with kb.transaction() as tx:
        tx.remove_rules(Program.load("rules.srl"))
    assert kb.count("[?x, <http://example/far>, ?y]") == 0
    kb.load("rules.srl")
    assert kb.count("[?x, <http://example/far>, ?y]") == 2
    with pytest.raises(CorollaryError) as caught:
        Program.parse(RULES, syntax="n3")
    assert caught.value.code == "E314"


@given(st.data())
def test_hostile_documents_end_in_our_errors(data: st.DataObject) -> None:
    text = PREFIX + "\n".join(document for document, _ in MEANINGS)
    at = data.draw(st.integers(0, len(text)))
    signs = st.sampled_from(
        ["{", "}", "(", "[", "]", "<<", "~", "^", "NOT", "?x", ":p", '"', "\\", "."]
    )
    middle = data.draw(st.one_of(signs, st.text(max_size=3)))
    cut = text[:at] + middle + text[at + data.draw(st.integers(0, 5)) :]
    try:
        program = Program.parse(cut, syntax="srl")
    except CorollaryError:
        return
    assert Program.parse(str(program)) == program


@pytest.mark.parametrize("opening", ["[ :p ", "( ", "^("])
def test_deep_nesting(opening: str) -> None:
    text = f"{PREFIX}RULE {{ :a :b :c }} WHERE {{ ?x {':p ' if opening[0] != '^' else ''}"
    with pytest.raises(CorollaryError) as caught:
        Program.parse(text + opening * 5000, syntax="srl")
    assert caught.value.code == "E105"
