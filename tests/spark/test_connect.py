"""The pipeline in a session of Spark Connect, which has no context and no Java in its process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# A process of its own: a Connect client and a classic session exclude each other.
SCRIPT = """
import json, os, sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from corollary import spark
from corollary.engines.spark import hadoop
from corollary.engines.spark.java import find_java
from corollary.engines.spark.remote import is_remote
from corollary.errors import InvalidInput

os.environ.setdefault("JAVA_HOME", str(find_java().home))
os.environ["PYSPARK_PYTHON"] = sys.executable
session = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
found = {"remote": is_remote(session)}
built = spark.build("store", ["data.nt"], rules="rules.dl", session=session)
updated = spark.update("store", insert=["more.nt"], delete=["gone.nt"], session=session)
found["facts"] = [built.facts, updated.facts, updated.inserted, updated.deleted]
rows = {"predicate": ["edge"] * 2, "arg0": ["1", "2"], "arg1": ["2", "3"]}
facts = spark.materialize(session.createDataFrame(pa.table(rows)), "paths.dl")
found["paths"] = sorted(row.arg0 + row.arg1 for row in facts.where("NOT explicit").collect())
answer = spark.query("store", "SELECT ?x { ?x <urn:p> <urn:d> }", session=session).collect()
found["answer"] = sorted(row.x for row in answer)
folder = Path.cwd().as_uri()
found["listed"] = [Path(one.path).name for one in hadoop.find(session, f"{folder}/m*.nt")]
found["exists"] = [hadoop.exists(session, f"{folder}/{n}") for n in ("more.nt", "none.nt")]
try:
    spark.build("never", [], session=session, config={"spark.sql.shuffle.partitions": "77"})
except InvalidInput as error:
    found["code"] = error.code
print(json.dumps(found))
session.stop()
"""


@pytest.mark.long
def test_build_update_materialize_and_query(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="the client of Spark Connect needs it")
    (tmp_path / "data.nt").write_text("<urn:a> <urn:p> <urn:b> .\n<urn:b> <urn:p> <urn:c> .\n")
    (tmp_path / "more.nt").write_text("<urn:c> <urn:p> <urn:d> .\n")
    (tmp_path / "gone.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    (tmp_path / "rules.dl").write_text(
        "[?x, <urn:p>, ?z] :- [?x, <urn:p>, ?y], [?y, <urn:p>, ?z] ."
    )
    (tmp_path / "paths.dl").write_text(
        "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
    )
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "remote": True,
        "facts": [3, 3, 2, 2],
        "paths": ["12", "13", "23"],
        "answer": ["<urn:b>", "<urn:c>"],
        "listed": ["more.nt"],
        "exists": [True, False],
        "code": "E550",
    }
