"""Settings of Spark: those of a user's session stay as they are, and jobs are labelled."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from corollary import spark as corollary_spark
from corollary.cli.main import main
from corollary.engines.spark import session as sessions
from corollary.engines.spark.jobs import JobLabels
from corollary.errors import InvalidInput
from corollary.knowledge_base.base import KnowledgeBase
from corollary.lang.program import Program
from tests.spark.data import held, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RULES = "path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) . path(?x, ?y) :- edge(?x, ?y) ."
EDGES = {"predicate": ["edge"] * 3, "arg0": ["1", "2", "3"], "arg1": ["2", "3", "4"]}


def descriptions(session: SparkSession) -> list[str]:
    """The descriptions of all jobs."""
    context: Any = session.sparkContext
    jobs = context._jsc.sc().statusStore().jobsList(None)
    found = (jobs.apply(number).description() for number in range(jobs.size()))
    return [str(text.get()) for text in found if text.isDefined()]


def test_a_build_keeps_settings_and_labels_jobs(spark: SparkSession, tmp_path: Path) -> None:
    mine = spark.newSession()
    mine.conf.set("spark.sql.adaptive.enabled", "true")
    mine.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    before = dict(mine.conf.getAll.items())
    frame = mine.createDataFrame(pa.table(EDGES))
    store = tmp_path / "store"
    seen: list[dict[str, str]] = []

    mine.sparkContext.setLocalProperty("spark.job.description", "my own work")
    corollary_spark.build(
        store,
        [frame],
        rules=Program.parse(RULES),
        session=mine,
        config={"spark.sql.shuffle.partitions": "7"},
        on_progress=lambda _: seen.append(dict(mine.conf.getAll.items())),
    )
    facts = "edge(1, 2) . edge(2, 3) . edge(3, 4) ."
    assert stored(store) == held(KnowledgeBase(Program.parse(RULES + facts)))
    assert all(settings == before for settings in seen)
    assert dict(mine.conf.getAll.items()) == before
    assert mine.sparkContext.getLocalProperty("spark.job.description") == "my own work"
    assert mine.sparkContext.getLocalProperty("spark.jobGroup.id") is None
    context: Any = mine.sparkContext
    context.setLocalProperty("spark.job.description", None)
    own = [text for text in descriptions(spark) if text.startswith(f"corollary build {store}: ")]
    stages = {text.rpartition(": ")[2].split(", ")[0] for text in own}
    assert {"parse", "encode", "commit"} <= stages


def test_descriptions_name_stage_stratum_and_round(spark: SparkSession) -> None:
    from corollary.algorithms.seminaive import materialize
    from corollary.core.dictionary import Dictionary
    from corollary.core.tables import encode
    from tests.engines.factories import spark as spark_engine

    labels = JobLabels("test")
    program = Program.parse("s(?x) :- r(?x, ?y), NOT t(?y) . r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .")
    dictionary = Dictionary()
    engine = spark_engine(dictionary, small=0, labels=labels, finish=0, edges=0)
    explicit = engine.facts(encode(Program.parse("r(1, 2) . r(2, 3) . t(3) .").facts, dictionary))
    with labels.grouped(spark), labels.stage("materialize"):
        assert len(materialize(program, explicit, engine, modules=False).facts) == 5
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None
    own = [text for text in descriptions(spark) if text.startswith("corollary test: ")]
    assert "corollary test: materialize, stratum 1 of 2, round 1" in own
    assert any(text.startswith("corollary test: materialize, stratum 2 of 2") for text in own)


def test_a_group_of_the_caller_is_kept(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    context.setLocalProperty("spark.jobGroup.id", "mine")
    with JobLabels("x").grouped(spark):
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
        assert context.getLocalProperty("spark.job.description") == "corollary x"
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    context.setLocalProperty("spark.jobGroup.id", None)


def test_results_belong_to_the_session_of_the_frame(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.table(EDGES))
    found = corollary_spark.materialize(frame, Program.parse(RULES))
    found.createOrReplaceTempView("closed")
    try:
        assert spark.sql("SELECT * FROM closed WHERE predicate = 'path'").count() == 6
    finally:
        spark.catalog.dropTempView("closed")


def test_settings_that_are_fixed(spark: SparkSession, tmp_path: Path) -> None:
    for config in ({"spark.executor.memory": "9g"}, {"spark.ui.enabled": "maybe"}):
        with pytest.raises(InvalidInput) as caught:
            corollary_spark.build(tmp_path / "s", [], session=spark, config=config)
        assert caught.value.code == "E550"
    assert not (tmp_path / "s").exists()
    # What it has already is no change.
    same = {"spark.ui.enabled": str(spark.conf.get("spark.ui.enabled"))}
    with pytest.raises(InvalidInput) as caught:
        corollary_spark.query(tmp_path / "none", "ASK {}", session=spark, config=same)
    assert caught.value.code == "E500"


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", "s", "p.dl", "--engine", "columnar"],
        ["run", "p.dl"],
        ["update", "old", "--insert", "p.dl"],
        ["apply", "p.dl", "--updates", "u.updates"],
    ],
)
@pytest.mark.parametrize("flag", [["--conf", "spark.ui.enabled=true"], ["--master", "local[2]"]])
def test_settings_are_for_spark(
    arguments: list[str],
    flag: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text("p(1) .")
    Path("u.updates").write_text("commit ;")
    assert main(["build", "old", "p.dl", "--quiet"]) == 0
    assert main([*arguments, *flag]) == 2
    assert f"E313: {flag[0]} is for --engine spark" in capsys.readouterr().err


def test_the_python_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    for master, config, expected in (
        ("local[2]", {}, sys.executable),
        ("spark://host:7077", {}, sys.executable),
        ("yarn", {}, None),
        ("k8s://host", {"spark.pyspark.python": "/env/bin/python"}, "/env/bin/python"),
    ):
        monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
        sessions._choose_python(master, config)
        assert os.environ.get("PYSPARK_PYTHON") == expected
    monkeypatch.setenv("PYSPARK_PYTHON", "/mine")
    sessions._choose_python("local[2]", {})
    assert os.environ["PYSPARK_PYTHON"] == "/mine"
