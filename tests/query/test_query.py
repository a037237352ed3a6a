"""`KnowledgeBase.query`: forms of queries, updates, prefixes, equality, errors."""

from __future__ import annotations

import json
from typing import Any

import polars
import pyarrow.parquet as pq
import pytest

import corollary
from corollary import KnowledgeBase
from corollary.core.dictionary import Ids
from corollary.errors import InvalidInput, InvalidProgram
from corollary.knowledge_base.queries import Materialized
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI
from corollary.query.results import Solutions, TripleTable
from corollary.query.write import encoded

RULES = "@prefix : <http://e/> . [?x, :knows, ?y] :- [?y, :knows, ?x] ."


@pytest.fixture
def kb() -> KnowledgeBase:
    kb = KnowledgeBase(RULES)
    with kb.transaction() as tx:
        tx.insert('@prefix : <http://e/> . :ann :knows :bob ; :age 21 ; :name "Ann", "Anne"@fr .')
    return kb


def found(kb: KnowledgeBase, query: str) -> list[tuple[str | None, ...]]:
    answer = kb.query(query)
    assert isinstance(answer, Solutions | TripleTable)
    return sorted(tuple(row.values()) for row in answer.to_pylist())


def test_derived_triples_are_found(kb: KnowledgeBase) -> None:
    assert found(kb, "SELECT ?x { ?x :knows :ann }") == [("<http://e/bob>",)]
    assert kb.query("ASK { :bob :knows ?x }") is True


def test_answers_follow_updates(kb: KnowledgeBase) -> None:
    query = "SELECT ?x ?y { ?x :knows ?y }"
    everything = "SELECT ?p { ?x ?p ?y }"
    assert len(found(kb, query)) == 2
    assert len(found(kb, everything)) == 5
    with kb.transaction() as tx:
        tx.insert("<http://e/bob> <http://e/knows> <http://e/cid> .")
    assert len(found(kb, query)) == 4
    assert len(found(kb, everything)) == 7
    with kb.transaction() as tx:
        tx.delete("<http://e/ann> <http://e/knows> <http://e/bob> .")
    assert found(kb, query) == [
        ("<http://e/bob>", "<http://e/cid>"),
        ("<http://e/cid>", "<http://e/bob>"),
    ]
    with kb.transaction() as tx:
        tx.remove_rules(RULES)
    assert found(kb, query) == [("<http://e/bob>", "<http://e/cid>")]


def test_only_tables_that_changed_are_made_anew(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT * { ?x :knows ?y ; :age ?n }"
    kb.query(query)
    made: list[str] = []
    rows = Materialized.rows

    def recorded(source: Materialized, predicate: Predicate) -> Ids:
        made.append(str(predicate.property))
        return rows(source, predicate)

    monkeypatch.setattr(Materialized, "rows", recorded)
    kb.query(query)
    assert made == []
    with kb.transaction() as tx:
        tx.insert("<http://e/bob> <http://e/age> 30 .")
    kb.query(query)
    assert made == [str(IRI("http://e/age"))]


def test_a_constant_may_become_known(kb: KnowledgeBase) -> None:
    query = "SELECT ?x { ?x :knows :new FILTER(?x != :other) }"
    assert found(kb, query) == []
    with kb.transaction() as tx:
        tx.insert("<http://e/ann> <http://e/knows> <http://e/new> .")
    assert found(kb, query) == [("<http://e/ann>",)]


def test_variables_differ_by_case(kb: KnowledgeBase) -> None:
    assert found(kb, "SELECT ?x ?X { ?x :age ?X }") == [
        ("<http://e/ann>", '"21"^^<http://www.w3.org/2001/XMLSchema#integer>')
    ]


def test_terms_are_as_they_were_written() -> None:
    kb = KnowledgeBase()
    with kb.transaction() as tx:
        tx.insert('<http://e/a> <http://e/p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .')
    written = '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert found(kb, "SELECT ?v { ?x ?p ?v FILTER(?v = 1) }") == [(written,)]
    assert found(kb, "SELECT ?v { ?x ?p ?v . ?x ?p 1 }") == []
    assert found(kb, 'SELECT ?v { ?x ?p ?v VALUES ?v { "01"^^xsd:integer } }') == [(written,)]


def test_plain_relations_are_no_triples() -> None:
    kb = KnowledgeBase("edge(1, 2) . [<http://e/a>, <http://e/p>, 1] .")
    assert len(found(kb, "SELECT * { ?s ?p ?o }")) == 1


@pytest.mark.parametrize("equality", ["rules", "rewrite"])
def test_equal_terms(equality: str) -> None:
    kb = KnowledgeBase(corollary.rules("owl-rl"), equality=equality)
    with kb.transaction() as tx:
        tx.insert(
            "@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
            " :a :p :b . :b owl:sameAs :c . :a a :C . :a owl:sameAs :d ."
        )
    query = "PREFIX : <http://e/> SELECT ?x ?y { ?x :p ?y ; a :C }"
    pairs = [(f"<http://e/{x}>", f"<http://e/{y}>") for x in "ad" for y in "bc"]
    assert found(kb, query) == pairs
    assert kb.query("SELECT * { ?s ?p ?o }") is not None
    with kb.transaction() as tx:
        tx.delete("<http://e/b> <http://www.w3.org/2002/07/owl#sameAs> <http://e/c> .")
    assert found(kb, query) == pairs[::2]


def test_describe_follows_blank_nodes() -> None:
    kb = KnowledgeBase()
    with kb.transaction() as tx:
        tx.insert(
            "<http://e/a> <http://e/p> _:x . _:x <http://e/q> [ <http://e/r> 1 ] ."
            " <http://e/b> <http://e/p> 2 ."
        )
    answer = kb.query("DESCRIBE <http://e/a> <http://e/unknown>")
    assert isinstance(answer, TripleTable)
    assert len(answer) == 3


def test_what_the_database_nests_too_deeply() -> None:
    """Each MINUS is a level for the database, which allows 1,000 of its own."""
    parts = " ".join(f"MINUS {{ ?x <urn:q{n}> ?y }}" for n in range(400))
    with pytest.raises(InvalidInput) as caught:
        KnowledgeBase().query(f"SELECT * {{ ?x <urn:p> ?y {parts} }}")
    assert caught.value.code == "E560"


@pytest.mark.parametrize("mode", ["materialized", "hybrid"])
def test_many_alternatives(mode: str) -> None:
    """Known properties and unknown ones, twice, inverse, repeated: solutions are counted."""
    kb = KnowledgeBase(mode=mode)
    kb.insert("".join(f"[<http://e/a>, <http://e/p{n}>, <http://e/b{n % 3}>] ." for n in range(40)))
    parts = [f"<http://e/p{n}>" for n in (*range(50), 7, 7, 45)]
    path = "|".join([*parts, "^<http://e/p1>", "<http://e/p2>?"])
    union = " UNION ".join(f"{{ ?x {part} ?y }}" for part in [*parts, "^<http://e/p1>"])
    every = found(kb, f"SELECT * {{ ?x {'|'.join([*parts, '^<http://e/p1>'])} ?y }}")
    assert every == found(kb, f"SELECT * {{ {union} }}")
    assert len(every) == 43
    assert len(found(kb, f"SELECT * {{ <http://e/a> {path} ?y }}")) == 42 + 2
    assert len(found(kb, f"SELECT DISTINCT ?y {{ <http://e/a> ({path})+ ?y }}")) == 4
    assert found(kb, "SELECT * { ?x <http://e/q1>|<http://e/q2> ?y }") == []


def test_frames_and_files(kb: KnowledgeBase, tmp_path: Any) -> None:
    answer = kb.query("SELECT ?n ?z { :ann :name ?n } ORDER BY ?n")
    assert isinstance(answer, Solutions)
    assert answer.variables == ("n", "z")
    assert answer.to_pandas()["n"].tolist() == ['"Ann"', '"Anne"@fr']
    assert isinstance(answer.to_polars(), polars.DataFrame)
    path = tmp_path / "answer.parquet"
    path.write_bytes(encoded(answer, "parquet"))
    assert pq.read_table(path).to_pylist() == answer.to_pylist()
    bindings = json.loads(encoded(answer, "json"))["results"]["bindings"]
    assert bindings[1] == {"n": {"type": "literal", "value": "Anne", "xml:lang": "fr"}}
    assert encoded(answer, "csv") == b"n,z\r\nAnn,\r\nAnne,\r\n"


def test_construct_makes_triples_only(kb: KnowledgeBase) -> None:
    # A literal is no subject, and what is unbound is nothing.
    assert (
        found(kb, "CONSTRUCT { ?n :of ?x . ?x :is ?z } { ?x :name ?n OPTIONAL { ?x :q ?z } }") == []
    )
    made = kb.query("CONSTRUCT { ?x :named [ :is ?n ] } { ?x :name ?n }")
    assert isinstance(made, TripleTable)
    assert len(made) == 4
    assert len({row["object"] for row in made.to_pylist()}) == 4


@pytest.mark.parametrize(
    ("query", "code", "column"),
    [
        ("SELECT ?x { ?x :p }", "E560", 19),
        ("SELECT ?x { ?x nowhere:p ?y }", "E560", 16),
        ("SELECT ?x ?y { ?x :p ?y } GROUP BY ?x", "E560", 11),
        ("SELECT * { ?x :p ?y BIND(1 AS ?y) }", "E560", 31),
        ("SELECT * { SERVICE <http://e/> { ?x ?p ?y } }", "E561", 12),
        ("INSERT DATA { <a> <b> <c> }", "E568", 1),
    ],
)
def test_mistakes_have_a_place(kb: KnowledgeBase, query: str, code: str, column: int) -> None:
    with pytest.raises(InvalidProgram) as caught:
        kb.query(query)
    assert (caught.value.code, caught.value.line, caught.value.column) == (code, 1, column)


@pytest.mark.parametrize(
    "query", ["SELECT (<http://e/f>(1) AS ?x) {}", "SELECT * { FILTER(COUNT(*) > 1) }"]
)
def test_mistakes_in_expressions(kb: KnowledgeBase, query: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        kb.query(query)
    assert caught.value.code in ("E560", "E561")


def test_deep_queries(kb: KnowledgeBase) -> None:
    deep = "(" * 500 + "1" + ")" * 500
    with pytest.raises(InvalidInput):
        kb.query(f"SELECT * {{ FILTER({deep} = 1) }}")


def test_many_queries_are_forgotten(kb: KnowledgeBase) -> None:
    for number in range(300):
        kb.query(f"ASK {{ ?x :age ?n FILTER(?n > {number}) }}")
    engine: Any = kb.state.query_engine()
    assert len(engine._plans) == 256
    assert len(engine._runner._functions) == 256
