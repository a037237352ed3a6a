"""The same translation by Spark SQL: what it answers is what DuckDB answers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from corollary import KnowledgeBase
from corollary.core.partial import PartialDictionary
from corollary.knowledge_base.results import triples_of
from corollary.query.results import Answer
from corollary.query.spark import SparkQueries, SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DATA = """
@prefix : <http://e/> .
:a :p :b . :b :p :c . :c :p :a . :d :p :d . :a :q "x" , "y"@en . :b :q 3 . :c :q 4.5 , "03"^^:z .
:a a :C . :b a :C . :d a :D . :d :age 30 . :a :age 7 . :a :r _:x . _:x :s [ :t _:x ] .
"""
LISTED = " ".join(f"({n} {-n})" if n % 3 else "(UNDEF UNDEF)" for n in range(400))
QUERIES = {
    "optional": "SELECT * { ?x :p ?y OPTIONAL { ?x :age ?n FILTER(?n > 10) } }",
    "union and filter": "SELECT * { { ?x :q ?v } UNION { ?x a ?v }"
    " FILTER(!isLiteral(?v) || ?v < 9) }",
    "minus and values": "SELECT * { VALUES (?x ?y) { (:a UNDEF) (:zz 1) (:d :d) } ?x :p ?y"
    " MINUS { ?x a :D } }",
    "exists": "SELECT ?x { ?x :p ?y FILTER(NOT EXISTS { ?x :age ?n } || EXISTS { ?y a :D }) }",
    "exists that sees outside": "SELECT ?x ?n { ?x :age ?n FILTER EXISTS { ?y :age ?m"
    " FILTER(?m > ?n) } }",
    "bound later": "SELECT ?x ?n ?t { ?x a ?t OPTIONAL { ?x :age ?n } OPTIONAL { ?y :age ?n } }",
    "bind and join": 'SELECT ?x ?z { ?x :p ?y BIND(IRI(CONCAT("http://e/", "a")) AS ?z) ?x :p ?z }',
    "paths": "SELECT DISTINCT ?x ?y { ?x (:p|^:q)+ ?y }",
    "from a node": "SELECT ?y { :a :p* ?y }",
    "to a node": "SELECT ?y { ?y (:p/:p)+ :a }",
    "zero or one": "SELECT ?x ?y { ?x :p? ?y }",
    "negated": "SELECT ?x ?y { ?x !(:p|^:q) ?y }",
    "groups": "SELECT ?t (COUNT(*) AS ?n) (SUM(?v) AS ?s) (MIN(?v) AS ?m) (AVG(?v) AS ?a)"
    ' (GROUP_CONCAT(DISTINCT ?v; separator="|") AS ?g) { ?x a ?t ; :age ?v } GROUP BY ?t'
    " HAVING(COUNT(?x) > 0)",
    "no groups": "SELECT (COUNT(DISTINCT ?x) AS ?n) (MAX(?w) AS ?m) { ?x :p ?y }",
    "sub-query": "SELECT ?x ?y { ?x :p ?y { SELECT ?x { ?x :age ?n } ORDER BY DESC(?n) LIMIT 1 } }",
    "distinct": "SELECT DISTINCT (STR(?v) AS ?s) { ?x :q ?v }",
    "names": "SELECT * { ?1 :p ?9lives . _:1_2 :p ?1 OPTIONAL { ?1 :age ?_1 FILTER(?_1 > 8) } }",
    "scopes": "SELECT * { ?x :p ?y MINUS { ?x a ?c } FILTER NOT EXISTS { ?x :age ?n } }",
    "tags": 'SELECT * { ?x :q "y"@EN ; :q ?v VALUES ?v { "y"@eN } FILTER(sameTerm(?v, "y"@En)) }',
    "signed numbers": "SELECT * { VALUES ?v { -1 -1.0 +2 } BIND(?v * -2 AS ?w) }",
    "values without variables": "SELECT * { ?x :p ?y VALUES () { () () } }",
    "no values": "SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z VALUES () { } } }",
    "many values": f"SELECT * {{ ?x :age ?n VALUES (?n ?m) {{ {LISTED} }} }}",
    "many alternatives": "SELECT * { ?x :age ?n FILTER("
    f"{' || '.join(f'?n = {n}' for n in range(300))}) }}",
    "many expressions": "SELECT * { ?x :age ?n FILTER("
    f"{' || '.join(f'?n + 1 = {n}' for n in range(300))}) }}",
    "unknown datatypes": 'SELECT ?v { ?x :q ?v FILTER(?v != "03"^^:z) }',
    "large numbers": f"SELECT (?n * {'9' * 5000} AS ?m) {{ ?x :age ?n }}",
    "large numbers in order": "SELECT (MAX(?n + 9007199254740992) AS ?m) { ?x :age ?n }",
}


@pytest.fixture(scope="module")
def engines(spark: SparkSession) -> tuple[KnowledgeBase, SparkQueries]:
    """A knowledge base, and its triples and terms in Spark."""
    kb = KnowledgeBase()
    with kb.transaction() as tx:
        tx.insert(DATA)
    dictionary = kb.state.dictionary
    facts: Any = kb.state.reasoner.facts
    columns = triples_of(facts, dictionary).columns
    rows = np.stack(columns, axis=1).astype(np.int64).tolist()
    texts = dictionary.texts_from(0).to_pylist()
    session = spark.newSession()
    triples = session.createDataFrame(rows, "s bigint, p bigint, o bigint").cache()
    terms = session.createDataFrame(list(enumerate(texts)), "id bigint, term string").cache()
    known = PartialDictionary(
        {},
        len(texts),
        lambda ids: [texts[i] for i in ids],
        lambda asked: [texts.index(text) if text in texts else None for text in asked],
    )
    return kb, SparkQueries(SparkRunner(session, triples, terms), known)


def rows(answer: Any) -> Counter[tuple[str | None, ...]]:
    if isinstance(answer, Answer):
        return Counter(tuple(row.values()) for row in answer.to_pylist())
    return Counter(tuple(row) for row in answer.collect())


@pytest.mark.parametrize("name", QUERIES)
def test_equals_duckdb(engines: tuple[KnowledgeBase, SparkQueries], name: str) -> None:
    kb, spark = engines
    expected = kb.query(QUERIES[name])
    assert rows(expected), "a query without answers shows nothing"
    assert rows(spark.query(QUERIES[name], kb.prefixes)) == rows(expected)


def test_order(engines: tuple[KnowledgeBase, SparkQueries]) -> None:
    kb, spark = engines
    query = "SELECT ?x ?v { ?x ?p ?v } ORDER BY DESC(?v) ?x ?p LIMIT 7 OFFSET 2"
    expected, found = kb.query(query), spark.query(query, kb.prefixes)
    assert isinstance(expected, Answer)
    assert not isinstance(found, bool)
    assert [row.asDict() for row in found.collect()] == expected.to_pylist()


def test_other_forms(engines: tuple[KnowledgeBase, SparkQueries]) -> None:
    kb, spark = engines
    assert spark.query("ASK { :a a :C }", kb.prefixes) is True
    assert spark.query("ASK { :c a :C }", kb.prefixes) is False
    for query in (
        "DESCRIBE :a",
        "DESCRIBE ?x ?z { ?x a :C BIND(IRI(CONCAT('http://e/', 'd')) AS ?z) }",
        "DESCRIBE :nobody",
        "CONSTRUCT { ?y :r ?x . ?x ?v 'it\\'s \\\\ \\n' } WHERE { ?x :p ?y OPTIONAL { ?x :q ?v } }",
        "CONSTRUCT {} WHERE { ?x :p ?y }",
    ):
        assert rows(spark.query(query, kb.prefixes)) == rows(kb.query(query)), query
    made: Any = spark.query("CONSTRUCT { _:n :of ?x . _:n a :N } WHERE { ?x a :C }", kb.prefixes)
    labels = [row.subject for row in made.collect()]
    assert sorted(Counter(labels).values()) == [2, 2]  # a node for each solution, with two triples
    nothing: Any = spark.query("SELECT * { :a :p :b }", kb.prefixes)
    assert (nothing.count(), nothing.columns) == (1, [])
    assert "Scan" in spark.explain("SELECT * { ?x :p ?y }", kb.prefixes)
