"""Queries on Spark over the tables of stores: the answers are those in process."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import corollary
import corollary.spark
from corollary import KnowledgeBase
from corollary.cli.main import main
from corollary.errors import CorollaryError, InvalidInput
from corollary.query.results import Answer
from corollary.query.write import encoded
from tests.effort import scaled
from tests.engines.factories import session

if TYPE_CHECKING:
    from corollary.knowledge_base.spark.querying import SparkStore

pytestmark = pytest.mark.spark

DATA = """
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Student rdfs:subClassOf :Person . :Professor rdfs:subClassOf :Person .
:headOf rdfs:subPropertyOf :worksFor . :worksFor rdfs:subPropertyOf :memberOf .
:worksFor rdfs:domain :Professor . :memberOf rdfs:range :Group .
:ann a :Student ; :age 21 ; :memberOf :lab . :bob :headOf :lab ; :age 35 ; :likes [ :age 3 ] .
:cyd :worksFor :lab . :lab :memberOf :school .
"""
MORE = "@prefix : <http://e/> . :dan :headOf :school ; :age 50 . :lab :memberOf :city ."
LESS = "@prefix : <http://e/> . :ann :age 21 ."
RULES = """
@prefix : <http://e/> .
above(?x, ?y) :- [?x, :memberOf, ?y] .
above(?x, ?z) :- above(?x, ?y), [?y, :memberOf, ?z] .
"""
QUERIES = {
    "order": "SELECT ?x ?n ?X { ?x a :Person ; :age ?n BIND(?x AS ?X) } ORDER BY DESC(?n)",
    "path": "SELECT ?y { :bob :memberOf+ ?y }",
    "ask": "ASK { :cyd a :Person ; :memberOf :lab }",
    "describe": "DESCRIBE :bob",
    "relation": "above(?x, :school)",
    "no fact": "[:ann, :headOf, :nowhere]",
}


@pytest.fixture(scope="module", params=["materialized", "hybrid"])
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, KnowledgeBase, SparkStore]:
    """A store of two versions, in process and on Spark; nothing is small to its engine."""
    folder = str(tmp_path_factory.mktemp("queries") / request.param)
    program = corollary.rules("rhodf") | corollary.Program.parse(RULES)
    kb = KnowledgeBase(program, mode=request.param)
    with kb.transaction() as tx:
        tx.insert(DATA)
    kb.save(folder)
    with kb.transaction() as tx:
        tx.insert(MORE)
        tx.delete(LESS)
    from corollary.knowledge_base.spark.querying import SparkStore

    return folder, kb, SparkStore(folder, session=session(), small=4, partitions=2)


@pytest.mark.scaled
def test_the_active_session_stays(stores: tuple[str, KnowledgeBase, SparkStore]) -> None:
    _, _, store = stores
    own = session()
    own.createDataFrame([], "nothing int")  # which makes it the active one
    for text in [*QUERIES.values()][: scaled(len(QUERIES))]:
        store.query(text)
        assert type(own).getActiveSession() is own


def rows(answer: Any) -> Counter[tuple[str | None, ...]] | bool:
    if isinstance(answer, bool):
        return answer
    assert isinstance(answer, Answer)
    return Counter(tuple(row.values()) for row in answer.to_pylist())


@pytest.mark.parametrize("name", QUERIES)
def test_equals_in_process(stores: tuple[str, KnowledgeBase, SparkStore], name: str) -> None:
    _, kb, store = stores
    expected, found = kb.query(QUERIES[name]), store.collect(QUERIES[name])
    assert rows(found) == rows(expected)
    if name == "order":
        assert isinstance(found, Answer)
        assert isinstance(expected, Answer)
        assert found.to_pylist() == expected.to_pylist()
        assert len(found) == 2


def test_an_older_version(stores: tuple[str, KnowledgeBase, SparkStore]) -> None:
    folder, kb, _ = stores
    spark = session()
    query = "SELECT ?x ?n { ?x :age ?n }"
    found: Any = corollary.spark.query(folder, query, session=spark, at_version=1)
    before = KnowledgeBase.open(folder, at_version=1)
    assert (
        Counter(map(tuple, found.collect())) == rows(before.query(query)) != rows(kb.query(query))
    )
    # Views and functions of queries are nobody else's.
    assert spark.catalog.listTables() == []
    with pytest.raises(InvalidInput) as caught:
        corollary.spark.query(folder, query, session=spark, at_version=9)
    assert caught.value.code == "E505"


def test_folders(stores: tuple[str, KnowledgeBase, SparkStore], tmp_path: Path) -> None:
    _, kb, store = stores
    query = "SELECT ?x ?n { ?x :age ?n } ORDER BY ?n"
    expected: Any = kb.query(query)
    assert store.write(query, tmp_path / "csv", "csv") == 3
    text = "".join(
        file.read_bytes().decode() for file in sorted((tmp_path / "csv").glob("part-*.csv"))
    )
    lines = [row for row in csv.reader(io.StringIO(text, newline="")) if row != ["x", "n"]]
    written = encoded(expected, "csv").decode()
    assert lines == list(csv.reader(io.StringIO(written, newline="")))[1:]
    assert store.write("CONSTRUCT WHERE { ?x :age ?n }", tmp_path / "nt", "nt") == 3
    text = "".join(file.read_text() for file in (tmp_path / "nt").iterdir())
    assert Counter(text.splitlines()) == Counter(
        encoded(kb.query("CONSTRUCT WHERE { ?x :age ?n }"), "nt").decode().splitlines()
    )
    assert store.write("SELECT * { ?x :never ?y }", tmp_path / "none", "tsv") == 0
    assert (tmp_path / "none" / "part-00000.tsv").read_text() == "?x\t?y\n"
    assert store.write("[?x, :age, ?n]", tmp_path / "deep" / "parquet") == 3
    assert pq.read_table(tmp_path / "deep" / "parquet").column_names == ["x", "n"]


@pytest.mark.parametrize(
    ("query", "format_", "code"),
    [
        ("SELECT * { ?x :age ?n }", "json", "E565"),
        ("SELECT * { ?x :age ?n }", "nt", "E562"),
        ("ASK { ?x :age ?n }", "csv", "E565"),
        ("SELECT * { ?x :age ?n", "csv", "E560"),
        ("SELECT * { SERVICE <http://e/> { ?x :age ?n } }", "csv", "E561"),
        ("below(?x)", "csv", "E344"),
        ("above(?x)", "csv", "E203"),
    ],
)
def test_mistakes(
    stores: tuple[str, KnowledgeBase, SparkStore],
    tmp_path: Path,
    query: str,
    format_: str,
    code: str,
) -> None:
    with pytest.raises(CorollaryError) as caught:
        stores[2].write(query, tmp_path / "out", format_)
    assert caught.value.code == code
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_left_alone(
    stores: tuple[str, KnowledgeBase, SparkStore], tmp_path: Path
) -> None:
    for folder in (str(tmp_path), tmp_path.as_uri()):
        with pytest.raises(InvalidInput) as caught:
            stores[2].write("SELECT * { ?x :age ?n }", folder, "csv")
        assert caught.value.code == "E566"


def test_numbers_that_are_too_large_are_an_error(
    stores: tuple[str, KnowledgeBase, SparkStore],
) -> None:
    steps = " ".join(f"BIND(?x{n} * ?x{n} AS ?x{n + 1})" for n in range(20))
    with pytest.raises(CorollaryError) as caught:
        stores[2].collect(f"SELECT * {{ ?s :age ?n BIND(?n * 1000 AS ?x0) {steps} }}")
    assert caught.value.code == "E567"
    assert "100,000 digits" in caught.value.message


def test_a_failure_leaves_nothing(
    stores: tuple[str, KnowledgeBase, SparkStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from corollary.knowledge_base.spark import querying

    def broken(table: Any) -> str:
        raise ValueError("no such text")

    monkeypatch.setattr(querying, "pieces", lambda *_: ("x", "\n", broken))
    with pytest.raises(CorollaryError) as caught:
        stores[2].write("SELECT ?x { ?x :age ?n }", tmp_path / "out", "csv")
    assert (caught.value.code, caught.value.hint) == ("E563", None)
    assert "no such text" in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_plans(stores: tuple[str, KnowledgeBase, SparkStore]) -> None:
    _, kb, store = stores
    shown = store.explain_query("SELECT ?x { ?x a :Person }")
    assert "Physical Plan" in shown
    assert ("unfolded" in shown) == (kb.mode == "hybrid")
    if kb.mode == "hybrid":
        tree = store.explain_query("above(?x, :school)")
        assert tree == kb.explain_query("above(?x, :school)")
    else:
        with pytest.raises(InvalidInput) as caught:
            store.explain_query("above(?x, :school)")
        assert caught.value.code == "E583"


# -- hybrid stores are built and updated on Spark --------------------------------------------------


@pytest.mark.usefixtures("spark")  # which the command line finds running
def test_hybrid_builds(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """What Spark builds, the embedded engine opens; what they answer and keep is the same."""
    (tmp_path / "data.ttl").write_text(DATA)
    (tmp_path / "rules.dl").write_text(RULES)
    axiom = "<http://e/Group> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://e/Set> ."
    (tmp_path / "more.ttl").write_text(f"{MORE} {axiom}")
    sources = [str(tmp_path / name) for name in ("data.ttl", "rules.dl")]
    pattern = "above(?x, <http://e/school>)"
    options = ["--rules", "rhodf", "--mode", "hybrid", "--materialize", pattern, "--quiet"]
    folders = {engine: str(tmp_path / engine) for engine in ("columnar", "spark")}
    for engine, folder in folders.items():
        assert main(["build", folder, *sources, *options, "--engine", engine]) == 0
    for again in (False, True):
        if again:
            for engine, folder in folders.items():
                more = ["update", folder, "--insert", str(tmp_path / "more.ttl"), "--quiet"]
                assert main([*more, "--engine", engine]) == 0
        one, two = (KnowledgeBase.open(folder) for folder in folders.values())
        assert (one.mode, two.mode, len(one.state.settings.materialize)) == ("hybrid", "hybrid", 1)
        assert one.state.settings.materialize == two.state.settings.materialize
        assert facts(one) == facts(two)
        assert one.count() == two.count()
        assert rows(one.query("[?x, a, :Set]")) == rows(two.query("[?x, a, :Set]"))
    reasoner: Any = KnowledgeBase.open(folders["spark"]).state.reasoner
    reasoner.verify()
    asked = ["query", folders["spark"], "--engine", "spark", "--mode", "hybrid", "--quiet"]
    capsysbinary.readouterr()
    assert main([*asked, "[?x, a, :Set]", "--format", "csv"]) == 0
    assert sorted(capsysbinary.readouterr().out.split()) == [
        b"http://e/city", b"http://e/lab", b"http://e/school", b"x",
    ]  # fmt: skip
    assert main([*asked, "SELECT ?x { ?x a :Set } ORDER BY ?x LIMIT 1", "--json"]) == 0
    found = json.loads(capsysbinary.readouterr().out)
    assert found["results"]["bindings"][0]["x"]["value"] == "http://e/city"
    out = tmp_path / "answers"
    assert main([*asked, "SELECT * { ?x a :Set }", "--out-folder", str(out)]) == 0
    assert pq.read_table(out).num_rows == 3


def facts(kb: KnowledgeBase) -> set[tuple[Any, ...]]:
    """What is kept, without blank nodes, whose labels differ."""
    texts = kb.state.dictionary.texts_from(0).to_pylist()
    found: Any = kb.state.reasoner.facts
    return {
        (predicate, *(texts[number] for number in row))
        for predicate in found.predicates()
        for row in found.rows(predicate).tolist()
        if not any(texts[number].startswith("_:") for number in row)
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "x.nt", "--engine", "spark"], "--engine spark queries stores"),
        (["--master", "local"], "--master is for --engine spark"),
        (["--out-folder", "x"], "--out-folder is for --engine spark"),
        (["--engine", "spark", "--out-folder", "x", "--json"], "exclude each other"),
        (["--materialize", "p"], "--materialize is for --data"),
    ],
)
def test_arguments_that_do_not_fit(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["ASK { ?s ?p ?o }"] if "--data" in arguments else ["store", "ASK { ?s ?p ?o }"]
    asked = ["query", *given, *arguments]
    assert main(asked) == 2
    err = capsys.readouterr().err
    assert "E564" in err
    assert message in err
