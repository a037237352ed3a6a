"""The Python surface: forms of facts, conversions, one-line changes, mistakes."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
import rdflib
from rdflib.compare import isomorphic

import corollary
from corollary import CorollaryError, KnowledgeBase, OperationFailed, Program
from corollary.knowledge_base.fact_forms import read_fact
from corollary.lang.syntax import IRI, TRIPLE, TYPE, Atom, Variable

EX = rdflib.Namespace("http://example.org/")
DATA = """
@prefix : <http://example.org/> .
:Student rdfs:subClassOf :Person . :ann a :Student ; :age 30 ; :name "Ann"@en .
"""


@pytest.fixture
def kb() -> KnowledgeBase:
    base = KnowledgeBase("rhodf")
    base.insert(DATA)
    return base


FORMS: list[Any] = [
    (EX.ann, rdflib.RDF.type, EX.Person),
    [EX.ann, rdflib.RDF.type, EX.Person],
    (":ann", "a", ":Person"),
    ("<http://example.org/ann>", "rdf:type", EX.Person),
    "[:ann, a, :Person]",
    "[:ann, a, :Person] .",
    ":Person(:ann)",
    ":ann a :Person",
    ":ann a :Person .",
    "@prefix e: <http://example.org/> . e:ann a e:Person .",
    Atom(TRIPLE, (IRI(str(EX.ann)), TYPE, IRI(str(EX.Person)))),
    pyoxigraph.Triple(
        *(pyoxigraph.NamedNode(str(term)) for term in (EX.ann, rdflib.RDF.type, EX.Person))
    ),
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_function_takes_every_form_of_a_triple(kb: KnowledgeBase, form: Any) -> None:
    size = len(kb.state.dictionary)
    assert form in kb
    assert kb.count(form) == 1
    assert kb.explain(form).height == 1
    assert kb.facts(form).num_rows == 1
    if isinstance(form, tuple | list):
        assert len(kb.match(form)) == len(kb.match(*form)) == 1
    assert len(kb.state.dictionary) == size  # a question adds no terms


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_hybrid_patterns_take_every_form(form: Any, tmp_path: Path) -> None:
    program = "@prefix : <http://example.org/> . [?x, a, :Person] :- [?x, a, :Student] ."
    kb = KnowledgeBase(program, mode="hybrid", materialize=[form])
    kb.insert("@prefix : <http://example.org/> . :ann a :Student . :bob a :Student .")
    person = (None, rdflib.RDF.type, EX.Person)
    assert kb.count() == 3
    assert kb.count(person) == 2
    kb.save(tmp_path / "s")
    opened = KnowledgeBase.open(tmp_path / "s")
    assert opened.explain_plan(form).root.kind == "pre-materialized"
    opened.insert((EX.cyd, rdflib.RDF.type, EX.Student))
    assert opened.count(person) == 3


@pytest.mark.parametrize(
    "pattern",
    [
        (None, "a", ":Person"),
        (None, rdflib.RDF.type, EX.Person),
        (rdflib.Variable("x"), rdflib.RDF.type, EX.Person),
        [Variable("x"), TYPE, IRI(str(EX.Person))],
        "[?x, a, :Person]",
        ":Person(?x)",
        Atom(TRIPLE, (Variable("x"), TYPE, IRI(str(EX.Person)))),
    ],
    ids=str,
)
def test_hybrid_patterns_take_every_form_of_variables(pattern: Any) -> None:
    program = "@prefix : <http://example.org/> . [?x, a, :Person] :- [?x, a, :Student] ."
    kb = KnowledgeBase(program, mode="hybrid", materialize=(pattern,))
    kb.insert("@prefix : <http://example.org/> . :ann a :Student . :bob a :Student .")
    assert kb.count() == 4


@pytest.mark.parametrize(
    "pattern", [None, 1, ("a", "b"), "?x a", {"s": 1}, ("p", "q", "r", "s", "t")]
)
def test_hybrid_patterns_of_no_form_are_refused(pattern: Any) -> None:
    with pytest.raises(CorollaryError) as error:
        KnowledgeBase("rhodf", mode="hybrid", materialize=[pattern])
    assert error.value.code.startswith("E")


QUADS_OF_ANN: list[Any] = [
    (EX.ann, rdflib.RDF.type, EX.Student, EX.g),
    (EX.ann, rdflib.RDF.type, EX.Student, rdflib.Graph(identifier=EX.g)),
    (":ann", "a", ":Student", ":g"),
    "[:ann, a, :Student] :g",
    pyoxigraph.Quad(
        *(pyoxigraph.NamedNode(str(t)) for t in (EX.ann, rdflib.RDF.type, EX.Student, EX.g))
    ),
]


@pytest.mark.parametrize("form", QUADS_OF_ANN, ids=str)
def test_every_function_takes_every_form_of_a_quad(form: Any) -> None:
    kb = KnowledgeBase("rhodf")
    kb.insert("@prefix : <http://example.org/> . :x :y :z .")
    assert form not in kb
    assert len(kb.insert(form)) == 2
    assert form in kb
    assert kb.count(form) == kb.facts(form).num_rows == 1
    assert kb.explain(form).height == 0
    assert (EX.ann, rdflib.RDF.type, EX.Student, EX.h) not in kb
    assert (EX.ann, rdflib.RDF.type, EX.Student, None) in kb
    assert kb.count((None, None, None, rdflib.Variable("g"))) == 1
    assert len(kb.delete(form)) == 2


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_changes_take_every_form_of_a_triple(form: Any) -> None:
    kb = KnowledgeBase()
    kb.insert("@prefix : <http://example.org/> . :x :y :z .")
    assert len(kb.insert(form)) == 1
    assert (EX.ann, rdflib.RDF.type, EX.Person) in kb
    assert len(kb.delete(form)) == 1
    assert (EX.ann, rdflib.RDF.type, EX.Person) not in kb


def test_patterns(kb: KnowledgeBase) -> None:
    assert len(kb.match()) == len(kb) == kb.count()
    assert len(kb.match(EX.ann)) == 4
    assert len(kb.match(EX.ann, which="derived")) == 1
    assert len(kb.match(EX.ann, which="explicit")) == 3
    assert kb.match(None, EX.age).to_pylist(native=True) == [
        {"subject": str(EX.ann), "predicate": str(EX.age), "object": 30}
    ]
    assert len(kb.match("[?x, a, ?y]")) == len(kb.match((None, "a", None))) == 2
    assert len(kb.match(rdflib.Variable("x"), "a", "?x")) == 0
    assert read_fact((None, "?p", None), {}, {}) == read_fact("[?subject, ?p, ?object]", {}, {})


def test_membership_and_size() -> None:
    kb = KnowledgeBase("p(?x) :- q(?x) .")
    assert kb  # although it is empty
    assert len(kb) == 0
    changes = kb.insert([(1,), (2,)], relation="q", message="two")
    assert len(changes) == len(kb) == 4
    assert "p(1)" in kb
    assert "p(3)" not in kb


# -- conversions ----------------------------------------------------------------------------------


def test_conversions_of_all_that_holds_triples(kb: KnowledgeBase, tmp_path: Path) -> None:
    graph = kb.to_rdflib()
    assert len(graph) == len(kb)
    assert (EX.ann, EX.age, rdflib.Literal(30)) in graph
    assert (EX.ann, EX.name, rdflib.Literal("Ann", lang="en")) in graph
    assert graph.qname(EX.ann) == "ann" or graph.qname(EX.ann).endswith(":ann")
    assert kb.to_arrow().num_rows == len(kb.to_pandas()) == kb.to_polars().height == len(kb)
    assert kb.match(None, EX.age).to_pandas(native=True)["object"].tolist() == [30]
    made: Any = kb.query("CONSTRUCT { ?x a :Human } WHERE { ?x a :Person }")
    assert (EX.ann, rdflib.RDF.type, EX.Human) in made.to_rdflib()
    changes = kb.delete(":ann a :Student")
    assert len(changes.deleted_triples.to_rdflib()) == 2
    assert len(changes.inserted_triples) == 0
    kb.save(tmp_path / "people.store")
    kb.insert(":bob a :Student")
    differences = kb.diff(1)
    assert len(differences.inserted_triples.to_rdflib()) == 2
    assert len(differences.deleted_triples) == 0


@pytest.mark.parametrize("format_", ["turtle", "nt", "nq", "trig", "xml", "json-ld", "ttl"])
def test_serializations_say_the_same(kb: KnowledgeBase, format_: str) -> None:
    names = {"ttl": "turtle", "nq": "nt", "trig": "turtle"}  # nothing is in named graphs
    for text in (kb.serialize(format_), kb.match().serialize(format_)):
        if format_ == "json-ld":  # rdflib's parser warns about itself
            read = pyoxigraph.parse(str(text), format=pyoxigraph.RdfFormat.JSON_LD)
            written = pyoxigraph.serialize(
                (quad.triple for quad in read), format=pyoxigraph.RdfFormat.N_TRIPLES
            )
            text = bytes(written or b"").decode()
        name = "nt" if format_ == "json-ld" else names.get(format_, format_)
        graph = rdflib.Graph().parse(data=text, format=name)
        assert isomorphic(graph, kb.to_rdflib())


def test_solutions(kb: KnowledgeBase) -> None:
    found: Any = kb.query("SELECT ?x ?age ?none { ?x :age ?age }")
    [row] = found.to_rdflib()
    assert (row.x, row.age.toPython(), row.none) == (EX.ann, 30, None)
    assert found.to_pylist(native=True) == [{"x": str(EX.ann), "age": 30, "none": None}]
    assert found.to_pandas(native=True)["age"].sum() == 30
    assert found.to_polars(native=True)["age"].to_list() == [30]
    assert found.serialize("csv").startswith("x,age,none")
    answer: Any = kb.query("SELECT ?o { :ann ?p ?o }")
    mixed = answer.to_polars(native=True)
    assert mixed["o"].dtype == mixed["o"].cast(str).dtype


def test_generalized_triples_are_left_out() -> None:
    kb = KnowledgeBase("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] . [<urn:a>, <urn:p>, 1] .")
    assert len(kb.match()) == 2
    assert len(kb.to_rdflib()) == 1
    assert len(rdflib.Graph().parse(data=kb.serialize("nt"), format="nt")) == 1


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch, kb: KnowledgeBase) -> None:
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(OperationFailed) as caught:
        kb.to_rdflib()
    assert caught.value.code == "E403"
    assert "pip install 'corollary[rdflib]'" in str(caught.value)


# -- mistakes --------------------------------------------------------------------------------------


def _open(change: Callable[[Any], object]) -> None:
    with KnowledgeBase().transaction() as tx:
        change(tx)


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "rules": (lambda: corollary.rules(5), "E345"),
    "text of a program": (lambda: Program.parse(5), "E345"),  # type: ignore[arg-type]
    "file of a program": (lambda: Program.load(5), "E345"),  # type: ignore[arg-type]
    "program": (lambda: KnowledgeBase(5), "E345"),  # type: ignore[arg-type]
    "no program": (lambda: KnowledgeBase(None), "E345"),  # type: ignore[arg-type]
    "programs": (lambda: KnowledgeBase(["rdfs", 5]), "E345"),  # type: ignore[list-item]
    "name of rules": (lambda: KnowledgeBase("owl-lr"), "E311"),
    "file of rules": (lambda: KnowledgeBase("no.dl"), "E301"),
    "pattern": (lambda: KnowledgeBase(mode="hybrid", materialize=[5]), "E345"),
    "store": (lambda: KnowledgeBase.open(5), "E345"),  # type: ignore[arg-type]
    "no store": (lambda: KnowledgeBase.open("no.store"), "E500"),
    "place": (lambda: KnowledgeBase().save(5), "E345"),  # type: ignore[arg-type]
    "log": (lambda: KnowledgeBase().log(), "E500"),
    "fact": (lambda: KnowledgeBase().explain(5), "E345"),
    "pair": (lambda: KnowledgeBase().explain(("<urn:a>", "<urn:b>")), "E345"),
    "two triples": (lambda: "<urn:a> <urn:p> 1, 2" in KnowledgeBase(), "E345"),
    "literal as predicate": (lambda: KnowledgeBase().match(None, 5), "E213"),
    "relation": (lambda: KnowledgeBase("p(1) .").match("p"), "E101"),
    "no term": (lambda: KnowledgeBase().match(object()), "E341"),
    "unknown fact": (lambda: KnowledgeBase().explain((EX.a, EX.b, EX.c)), "E340"),
    "which": (lambda: KnowledgeBase().match(which="some"), "E314"),  # type: ignore[arg-type]
    "query": (lambda: KnowledgeBase().query(5), "E345"),  # type: ignore[arg-type]
    "plan": (lambda: KnowledgeBase().explain_query(5), "E345"),  # type: ignore[arg-type]
    "data": (lambda: KnowledgeBase().insert(5), "E341"),
    "file": (lambda: KnowledgeBase().load("no.ttl"), "E301"),
    "added rules": (lambda: _open(lambda tx: tx.add_rules(5)), "E345"),
    "added rule": (lambda: _open(lambda tx: tx.add_rules([5])), "E345"),
    "removed rule": (lambda: _open(lambda tx: tx.remove_rules(["x"])), "E345"),
    "expanded": (lambda: corollary.expand(5), "E322"),  # type: ignore[arg-type]
    "rules to expand": (lambda: corollary.expand(rdflib.Graph(), 5), "E345"),  # type: ignore[arg-type]
    "format": (lambda: KnowledgeBase().serialize("word"), "E562"),
    "copy": (lambda: copy.copy(KnowledgeBase()), "E346"),
    "deep copy": (lambda: copy.deepcopy(KnowledgeBase()), "E346"),
    "pickle": (lambda: pickle.dumps(KnowledgeBase()), "E346"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_end_in_our_errors(mistake: str) -> None:
    call, code = MISTAKES[mistake]
    with pytest.raises(CorollaryError) as caught:
        call()
    error = caught.value
    assert error.code == code
    assert code in str(error)
    assert error.hint is None or f"hint: {error.hint}" in str(error)


def test_names_of_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.dl"
    file.write_text("q(?x) :- p(?x) . p(1) .", "utf-8")
    assert len(KnowledgeBase("owl-rl").program.rules) == len(corollary.rules("owl-rl").rules)
    assert len(KnowledgeBase(str(file))) == len(KnowledgeBase(file)) == 2
    assert len(KnowledgeBase(["rhodf", file]).program.rules) == 7
    assert len(KnowledgeBase("none")) == len(KnowledgeBase("")) == 0


def test_public_names() -> None:
    assert dir(corollary) == sorted(corollary.__all__)
    for name in dir(corollary):
        assert getattr(corollary, name) is not None
    code = "import corollary; print(*dir(corollary))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}
    )
    assert done.stdout.split() == sorted(corollary.__all__)


def test_a_copy_of_a_stored_one_says_how_to_open_it_again(tmp_path: Path) -> None:
    kb = KnowledgeBase("p(1) .")
    kb.save(tmp_path / "p.store")
    with pytest.raises(CorollaryError, match=r"KnowledgeBase\.open"):
        pickle.dumps(kb)
    assert len(KnowledgeBase.open(tmp_path / "p.store")) == 1


def test_values_can_be_copied_and_pickled(kb: KnowledgeBase) -> None:
    proof = kb.explain(":ann a :Person")
    assert str(pickle.loads(pickle.dumps(proof))) == str(copy.deepcopy(proof)) == str(proof)
    table = kb.match(EX.ann)
    assert pickle.loads(pickle.dumps(table)).to_pylist() == table.to_pylist()
