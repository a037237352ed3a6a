"""Builds on Spark: what the embedded engine makes of the same sources; nothing after a failure."""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from corollary import materialize
from corollary import spark as co
from corollary.errors import CorollaryError, InvalidInput, OperationFailed
from corollary.generate.lubm import DATASET
from corollary.generate.write import write
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.spark import sources
from corollary.lang.program import Program
from corollary.store import Store
from tests.spark.data import embedded, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


@pytest.fixture
def small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many splits that lines, blank nodes and terms of a file are in several."""
    monkeypatch.setattr(sources, "MIN_TASK_BYTES", 1 << 12)


@pytest.fixture(scope="module")
def lubm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ontology and a part of a university."""
    folder = tmp_path_factory.mktemp("lubm")
    write(DATASET, folder, scale=1, seed=3)
    path = folder / "University0.nt"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:6000]))
    return folder


@pytest.mark.usefixtures("small_splits")
def test_owl_rl_is_what_the_embedded_engine_derives(
    spark: SparkSession, lubm: Path, tmp_path: Path
) -> None:
    lines: list[str] = []
    built = co.build(
        tmp_path / "store",
        str(lubm / "*.nt"),
        rules="owl-rl",
        session=spark,
        on_progress=lines.append,
    )
    expected = embedded([str(lubm / "*.nt")], "owl-rl")
    assert stored(tmp_path / "store") == expected
    assert (built.version, built.facts, built.inserted) == (1, len(expected), len(expected))
    assert built.explicit == sum(1 for row in expected if row[0])
    names = [stage.name for stage in built.stages]
    assert names == ["session", "parse", "encode", "terms", "materialize", "commit"]
    assert [line.partition(":")[0] for line in lines if line.partition(":")[0] in names] == names
    assert sum(line.startswith("round") for line in lines) == built.rounds
    report = built.to_json()
    assert report["complete"]
    assert {"rows", "bytes", "seconds", "rounds", "skew"} <= {*report["stages"][1]}
    # The embedded engine goes on where Spark has ended.
    kb = KnowledgeBase.open(tmp_path / "store")
    kb.state.reasoner.verify()
    assert kb.count() == len(expected) or kb.program.facts == ()


def test_every_kind_of_source(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.nt").write_text("_:b <urn:p> <urn:a> .\n" * 2)
    (folder / "inner" / "b.nq.gz").write_bytes(
        gzip.compress(b"_:b <urn:p> <urn:b> <urn:g> .\n", mtime=0)
    )
    (folder / "c.ttl").write_text("@prefix ex: <urn:> . ex:c ex:p [ ex:q 3 ] .")
    (folder / "d.jsonld").write_text('{"@id": "urn:d", "urn:p": {"@id": "urn:a"}}')
    (folder / "edge.csv").write_text("1,2\n2,3\n")
    (folder / "quad.facts").write_text("a\tb\tc\t4\n")
    rules = tmp_path / "rules.dl"
    rules.write_text(
        "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
        "first(?x) :- quad(?x, ?y, ?z, ?n) . last(?n) :- AGGREGATE(edge(?x, ?y) ON BIND COUNT(?x)"
        " AS ?n) . end(?x) :- edge(?y, ?x), NOT edge(?x, ?z) . edge(3, 4) . ok() :- edge(1, 2) ."
    )
    table = pa.table({"subject": ["urn:t"], "predicate": ["urn:p"], "object": ['"x"@en']})
    frame = spark.createDataFrame(table).union(spark.createDataFrame(table))
    given: list[Any] = [str(folder), rules, table]
    co.build(tmp_path / "store", [*given, frame], rules="none", session=spark)
    found = stored(tmp_path / "store")
    assert found == embedded(given, "none")
    assert (True, "quad", '"a"', '"b"', '"c"', found_integer("4")) in found
    assert (False, "last", found_integer("3")) in found
    snapshot = Store.open(tmp_path / "store").snapshot()
    assert snapshot.program.prefixes["ex"] == "urn:"
    # The documents have blank nodes of their own.
    texts = snapshot.terms()["term"].to_pylist()
    assert len([text for text in texts if text.startswith("_:")]) == 3


def found_integer(text: str) -> str:
    return f'"{text}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_files_that_only_spark_can_open(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "far away"
    folder.mkdir()
    lines = "".join(f"<urn:s{n}> <urn:p> _:b .\n" for n in range(2000))
    (folder / "a.nt").write_text(lines)
    (folder / "b.nt.gz").write_bytes(gzip.compress(b"<urn:s> <urn:p> _:b .\n", mtime=0))
    (folder / "c.ttl").write_text("<urn:c> <urn:p> [] .")
    (folder / "bad.nt").write_text(lines + "oops\n")
    context: Any = spark.sparkContext
    hadoop = context._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.far.link./data", folder.as_uri())
    spark.conf.set("spark.sql.files.maxPartitionBytes", "16k")
    try:
        address = "viewfs://far/data"
        given = [f"{address}/a.nt", f"{address}/b.*", f"{address}/c.ttl"]
        co.build(tmp_path / "store", given, rules="none", session=spark)
        names = [str(folder / name) for name in ("a.nt", "b.nt.gz", "c.ttl")]
        found, expected = stored(tmp_path / "store"), embedded(names, "none")
        assert {row[2] for row in found} == {row[2] for row in expected}
        assert len(found) == len(expected) == 2002
        with pytest.raises(InvalidInput) as caught:
            co.build(tmp_path / "other", f"{address}/bad.nt", rules="none", session=spark)
        assert (caught.value.code, caught.value.line) == ("E320", 2001)
        for missing in (f"{address}/no/*.nt", f"{address}/no.nt"):
            with pytest.raises(InvalidInput) as caught:
                co.build(tmp_path / "other", missing, rules="none", session=spark)
            assert caught.value.code == "E541"
        with pytest.raises(CorollaryError) as failed:
            co.build(tmp_path / "other", "nosuch://host/a.nt", rules="none", session=spark)
        assert failed.value.code == "E543"
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert not (tmp_path / "other").exists()


@pytest.mark.usefixtures("small_splits")
def test_mistakes_have_their_place(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "data.nt"
    good = [f"<urn:s{n}> <urn:p> <urn:o> .\n" for n in range(1000)]
    bad = {300: "oops\n", 700: "<urn:a> <urn:p> .\n"}
    path.write_text("".join(bad.get(n, line) for n, line in enumerate(good, 1)))
    with pytest.raises(InvalidInput) as caught:
        co.build(tmp_path / "store", path, rules="none", session=spark)
    assert (caught.value.code, caught.value.file) == ("E320", str(path))
    assert caught.value.line == 300
    assert not (tmp_path / "store").exists()
    built = co.build(tmp_path / "store", path, rules="none", session=spark, on_error="skip")
    assert (built.explicit, built.skipped) == (998, 2)
    assert [(sample.file, sample.line) for sample in built.samples] == [
        (str(path), 300),
        (str(path), 700),
    ]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("no.nt", None, "E301"),
        ("damaged.nt.gz", gzip.compress(b"<urn:a> <urn:p> <urn:b> .\n" * 99, mtime=0)[:-9], "E306"),
        ("notes.txt", b"hello", "E341"),
        ("edge.csv", b"1,2\n1,2,3\n", "E305"),
    ],
)
def test_bad_sources_leave_nothing(
    spark: SparkSession, tmp_path: Path, name: str, content: bytes | None, code: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        co.build(tmp_path / "store", [path], rules="none", session=spark)
    assert (caught.value.code, caught.value.file) == (code, str(path))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("failure", ["full", "unseen", "elsewhere", "short"])
def test_a_stage_that_fails_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """A full disk; executors that do not see the store, or another folder; a file cut short."""
    from corollary.engines.spark import write as writing
    from corollary.engines.spark.parquet import WriteParquet

    path = tmp_path / "data.nt"
    path.write_text("<urn:a> <urn:p> <urn:b> .\n")
    store = tmp_path / "store"
    store.mkdir()  # an empty folder stays, and stays empty

    def failing(folder: str, compression: str) -> Any:
        def task(batches: Any) -> Any:
            if failure == "full":
                raise OSError("no room")
            target = Path(folder)
            if failure == "unseen":
                target = tmp_path / "missing"
            elif failure == "elsewhere":
                target = tmp_path / "elsewhere"
                target.mkdir(exist_ok=True)
            for report in WriteParquet(target, compression)(batches):
                if failure == "short":
                    (target / report.column("name")[0].as_py()).write_bytes(b"PAR1")
                yield report

        return task

    monkeypatch.setattr(writing, "WriteParquet", failing)
    with pytest.raises(OperationFailed) as caught:
        co.build(store, path, rules="rhodf", session=spark)
    assert caught.value.code == ("E540" if failure == "full" else "E549")
    expected = {
        "full": "no room",
        "unseen": "does not see",
        "elsewhere": "which the driver does not see",
        "short": "which the driver does not see",
    }
    assert expected[failure] in caught.value.message
    assert "\n" not in caught.value.message
    assert list(store.iterdir()) == []


def test_what_cannot_be_built_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        co.build(tmp_path / "store", [], materialize=["p"], session=spark)
    assert caught.value.code == "E582"
    frame = spark.createDataFrame(pa.table({"s": ["urn:a"]}))
    with pytest.raises(InvalidInput) as caught:
        co.materialize(frame, "rhodf")
    assert caught.value.code == "E546"


def test_frames_of_triples(spark: SparkSession) -> None:
    rows = [
        ("urn:ann", TYPE, "<urn:Student>"),
        ("urn:Student", SUB, "urn:Person"),
        ("_:b", TYPE, "urn:Student"),
    ]
    names = ["subject", "predicate", "object"]
    frame = spark.createDataFrame(
        pa.Table.from_pylist([dict(zip(names, r, strict=True)) for r in rows])
    )
    found = co.materialize(frame, "rhodf")
    assert found.columns == [*names, "explicit"]
    derived = {tuple(row)[:3] for row in found.where("NOT explicit").collect()}
    assert derived == {
        ("<urn:ann>", TYPE, "<urn:Person>"),
        ("_:b", TYPE, "<urn:Person>"),
    }
    assert found.where("explicit").count() == 3


def test_a_store_named_by_a_relative_path(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    assert co.build("store", "data.nt", rules="none", session=spark).facts == 1
    assert co.update("store", delete="data.nt", session=spark).facts == 0


def test_frames_of_relations(spark: SparkSession) -> None:
    rows = [("edge", "1", "2"), ("edge", "2", "three"), ("node", '"1"', None)]
    table = pa.Table.from_pylist(
        [dict(zip(("predicate", "arg0", "arg1"), row, strict=True)) for row in rows]
    )
    program = Program.parse(
        "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
    )
    found = co.materialize(spark.createDataFrame(table), program)
    facts = {(r["predicate"], r["arg0"], r["arg1"], r["explicit"]) for r in found.collect()}
    assert facts == {
        ("edge", "1", "2", True),
        ("edge", "2", "three", True),
        ("node", '"1"', None, True),
        ("path", "1", "2", False),
        ("path", "2", "three", False),
        ("path", "1", "three", False),
    }


def test_a_program_that_only_declares_relations(spark: SparkSession, tmp_path: Path) -> None:
    text = "@relation road(from: string, to: string, km: decimal) ."
    (tmp_path / "roads.dl").write_text(text)
    co.build(tmp_path / "store", tmp_path / "roads.dl", session=spark)
    kb = KnowledgeBase.open(tmp_path / "store")
    assert str(kb.state.declarations).strip() == text
    with pytest.raises(InvalidInput, match="E350"):
        kb.insert("road(a, b, far) .")


def test_relations_with_declared_columns(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("to,from,km\n007,c,1\n")
    program = Program.parse(
        f"""
        @relation edge(from: string, to: string, km: decimal) .
        @relation path(from: string, to: string) .
        @relation seen(node: string, day: date, at: dateTime, n: integer) .
        @relation same(node: string, day: date, at: dateTime, n: integer) .
        @input edge "{tmp_path / "more.csv"}" .
        path(?x, ?y) :- edge(?x, ?y, ?km) .
        path(?x, ?z) :- path(?x, ?y), edge(?y, ?z, ?km) .
        same(?x, ?day, ?at, ?n) :- seen(?x, ?day, ?at, ?n) .
        far(?x) :- edge(?x, ?y, ?km), FILTER(?km > 1) .
        """
    )
    edges = pa.table({"km": [1.5, 2.0], "to": ["b", "c"], "odd.name": [1, 2], "from": ["a", "b"]})
    day, moment = date(2026, 2, 28), datetime(2026, 2, 28, 12, 30, tzinfo=UTC)
    seen = pa.table({"node": ["1"], "at": [moment], "n": [7], "day": [day]})
    frames = {"edge": spark.createDataFrame(edges), "seen": spark.createDataFrame(seen)}
    found = co.materialize(frames, program)
    assert {*found} == {"path", "same", "far"}
    assert found["path"].columns == ["from", "to"]
    pairs = {tuple(row) for row in found["path"].collect()}
    assert pairs == {
        ("a", "b"), ("a", "c"), ("a", "007"), ("b", "c"), ("b", "007"), ("c", "007"),
    }  # fmt: skip
    same = found["same"].toArrow()
    assert same.column("n").to_pylist() == [7]
    assert same.column("day").to_pylist() == [day]
    assert same.column("at").to_pylist() == [moment]
    assert {tuple(row) for row in found["far"].collect()} == {("a",), ("b",)}
    local = materialize({"edge": edges, "seen": seen}, program)
    assert sorted(local["path"].to_pylist(), key=str) == sorted(
        ({"from": one, "to": two} for one, two in pairs), key=str
    )
    with pytest.raises(InvalidInput) as caught:
        co.materialize({"edge": frames["seen"]}, program)
    assert caught.value.code == "E351"
    wrong = spark.createDataFrame(edges.set_column(0, "km", pa.array(["1", "far"])))
    with pytest.raises(InvalidInput, match="expected a decimal in 'km', found 'far'") as caught:
        co.materialize({"edge": wrong}, program)
    assert caught.value.code == "E350"
    chosen = Program.parse(f'{program}\n@output path "unused.csv" .')
    skipped = co.materialize({"edge": wrong}, chosen, on_error="skip")
    assert {tuple(row) for row in skipped["path"].collect()} == {("a", "b"), ("c", "007")}


class Killed(BaseException):
    """Ends a build as a kill does: nothing is cleaned up."""


@pytest.mark.parametrize("all_steps", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_killed_build_begins_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_steps: bool
) -> None:
    """A build is killed after a step of its commit, up to twice."""
    from corollary.knowledge_base.spark import pipeline
    from corollary.store import steps

    path = tmp_path / "p.dl"
    path.write_text("path(?x, ?y, 1, 2, 3) :- edge(?x, ?y) . edge(1, 2) . [<urn:a>, a, <urn:C>] .")
    expected = embedded([path], "none")
    passed: list[str] = ["terms: committed"]
    monkeypatch.setattr(pipeline, "remove_store", lambda folder: None)
    if all_steps:
        monkeypatch.setattr(steps, "watch", passed.append)
        co.build(tmp_path / "whole", path, rules="none", session=spark)
        assert len({*passed}) > 5
    for number, last in enumerate(dict.fromkeys(passed)):
        store = tmp_path / str(number)

        def watch(step: str, last: str = last) -> None:
            if step == last:
                raise Killed

        kills = 0
        for attempt in range(3):
            monkeypatch.setattr(steps, "watch", watch if attempt < 2 else None)
            try:
                co.build(store, path, rules="none", session=spark)
                break  # tables that are created already are not created again
            except Killed:
                kills += 1
                if last == "facts: committed":
                    break  # the version is there
        assert kills, last
        assert stored(store) == expected, last
