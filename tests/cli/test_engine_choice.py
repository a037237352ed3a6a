"""Without --engine, a build runs on Spark, and small inputs are built in process."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from corollary.cli.engine_choice import IN_PROCESS_BYTES, choose_engine
from corollary.cli.main import main


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests leave a session in this process, which would decide."""
    monkeypatch.delitem(sys.modules, "pyspark.sql", raising=False)


def sparse(path: Path, size: int) -> str:
    """A file of some size without content."""
    with path.open("wb") as file:
        file.truncate(size)
    return str(path)


def test_the_size_of_the_text_decides(tmp_path: Path) -> None:
    most = sparse(tmp_path / "most.nt", IN_PROCESS_BYTES)
    assert choose_engine([most]).engine == "columnar"
    one_more = choose_engine([most, sparse(tmp_path / "one.ttl", 1)])
    assert one_more.engine == "spark"
    assert str(one_more) == (
        "building on Spark: 200.0 MB of text are more than 200 MB"
        " (--engine columnar builds in process)"
    )
    # Folders and patterns count as their files; compressed ones as what they may hold.
    assert choose_engine([str(tmp_path)]).engine == "spark"
    assert choose_engine([str(tmp_path / "mos*.nt")]).engine == "columnar"
    assert choose_engine([f"file://{most}"]).engine == "columnar"
    for name in ("small.nt.gz", "small.parquet"):
        small = sparse(tmp_path / name, IN_PROCESS_BYTES // 4)
        assert choose_engine([small]).engine == "spark"


def test_what_else_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = sparse(tmp_path / "tiny.nt", 10)
    assert choose_engine([tiny, "s3a://bucket/data"]).engine == "spark"
    assert choose_engine([tiny], master="local[2]").engine == "spark"
    assert choose_engine([str(tmp_path / "missing.nt")]).engine == "columnar"  # reported by it
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # as under spark-submit
    assert choose_engine([tiny]).engine == "spark"


def test_a_small_build_starts_no_spark(tmp_path: Path) -> None:
    data = tmp_path / "data.nt.gz"
    data.write_bytes(gzip.compress(b"<urn:a> <urn:p> <urn:b> .\n"))
    code = (
        "import sys; from corollary.cli.main import main;"
        f"status = main(['build', {str(tmp_path / 's')!r}, {str(data)!r}, '--rules', 'rhodf']);"
        "sys.exit(status or 'pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("building in process: ") == 1
    assert "(--engine spark builds on Spark)" in done.stderr


def test_quiet_builds_and_named_engines_say_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "p.dl"
    program.write_text("p(1) .\n")
    for name, flags in (("a", ["--quiet"]), ("b", ["--engine", "columnar"])):
        assert main(["build", str(tmp_path / name), str(program), *flags]) == 0
        assert "building" not in capsys.readouterr().err
