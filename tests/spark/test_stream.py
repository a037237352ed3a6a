"""Files of changes in a folder are applied exactly once, wherever the process ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corollary.errors import InvalidInput
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.rules import read_rules
from corollary.knowledge_base.spark.streaming import Applied, stream
from corollary.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with an axiom and a fact."""
    kb = KnowledgeBase(read_rules("rhodf"))
    with kb.transaction() as tx:
        tx.insert(f"<urn:C> {SUB} <urn:D> . <urn:x0> {TYPE} <urn:C> .")
    kb.save(tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that is watched."""
    path = tmp_path / "changes"
    path.mkdir()
    return path


def drop(folder: Path, name: str, text: str, second: int) -> None:
    """Put a file into the folder that came at some second."""
    hidden = folder / f".{name}"
    hidden.write_text(text)
    os.utime(hidden, (1_700_000_000 + second,) * 2)
    hidden.rename(folder / name)


def members(store: Path, name: str = "D") -> list[str]:
    facts = KnowledgeBase.open(store).facts(f"[?x, a, <urn:{name}>]")
    return sorted(facts["subject"].to_pylist())


def batches(store: Path) -> list[str]:
    return [commit.batch for commit in Store.open(store).log() if commit.batch is not None]


def test_insertions_deletions_and_patches(spark: SparkSession, store: Path, folder: Path) -> None:
    drop(folder, "a.insert.nt", f"<urn:x1> {TYPE} <urn:C> .\n", 1)
    drop(folder, "b.insert.ttl", "<urn:x2> a <urn:C> .", 2)
    drop(folder, "c.delete.nt", f"<urn:x0> {TYPE} <urn:C> .\n<urn:x1> {TYPE} <urn:C> .\n", 3)
    patch = f"TX .\nA <urn:x3> {TYPE} <urn:C> .\nD <urn:C> {SUB} <urn:D> .\nTC .\n"
    drop(folder, "d.rdfp", patch, 4)
    drop(folder, "e.insert.nt", f"<urn:C> {SUB} <urn:D> .\n", 5)
    drop(folder, "notes.txt", "no change", 6)
    done: list[Applied] = []
    stream(store, folder, session=spark, once=True, on_commit=done.append)
    assert [one.files for one in done] == [
        ["a.insert.nt", "b.insert.ttl"],
        ["c.delete.nt"],
        ["d.rdfp"],
        ["e.insert.nt"],
    ]
    assert [(one.inserted, one.deleted) for one in done] == [(4, 0), (0, 4), (1, 2), (3, 0)]
    assert done[0].ignored == ["notes.txt"]
    assert members(store) == ["<urn:x2>", "<urn:x3>"]
    # A second run finds nothing new.
    stream(store, folder, session=spark, once=True, on_commit=done.append)
    assert len(done) == len(batches(store)) == 4
    KnowledgeBase.open(store).state.reasoner.verify()


def test_what_was_committed_before_a_crash_is_not_done_again(
    spark: SparkSession, store: Path, folder: Path
) -> None:
    drop(folder, "a.insert.nt", f"<urn:x1> {TYPE} <urn:C> .\n", 1)
    drop(folder, "b.delete.nt", f"<urn:x1> {TYPE} <urn:C> .\n", 2)
    drop(folder, "c.insert.nt", f"<urn:x2> {TYPE} <urn:C> .\n", 3)

    def fail(applied: Applied) -> None:
        if applied.files == ["b.delete.nt"]:
            raise RuntimeError("after the commit")

    with pytest.raises(RuntimeError, match="after the commit"):
        stream(store, folder, session=spark, once=True, on_commit=fail)
    assert len(batches(store)) == 2
    done: list[Applied] = []
    stream(store, folder, session=spark, once=True, on_commit=done.append)
    assert [one.files for one in done] == [["c.insert.nt"]]
    assert members(store) == ["<urn:x0>", "<urn:x2>"]


def test_mistakes_stop_the_stream_and_can_be_mended(
    spark: SparkSession, store: Path, folder: Path
) -> None:
    drop(folder, "a.insert.nt", f"<urn:x1> {TYPE} <urn:C> .\noops\n", 1)
    with pytest.raises(InvalidInput) as caught:
        stream(store, folder, session=spark, once=True)
    assert (caught.value.code, caught.value.line) == ("E320", 2)
    assert batches(store) == []
    drop(folder, "a.insert.nt", f"<urn:x1> {TYPE} <urn:C> .\n", 1)
    stream(store, folder, session=spark, once=True)
    assert members(store) == ["<urn:x0>", "<urn:x1>"]
    with pytest.raises(InvalidInput) as caught:
        stream(store, folder / "no", session=spark, once=True)
    assert caught.value.code == "E541"


@pytest.mark.long
def test_a_process_that_is_killed_goes_on_where_it_was(store: Path, folder: Path) -> None:
    count = 6
    for number in range(count):
        drop(folder, f"{number}.insert.nt", f"<urn:y{number}> {TYPE} <urn:C> .\n", number)
    command = [sys.executable, "-m", "corollary.cli.main", "stream", str(store), "--watch"]
    command += [str(folder), "--files-per-batch", "1", "--json", "--master", "local[1]"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    seen = [json.loads(first.stdout.readline()) for _ in range(2)]
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    assert [one["files"] for one in seen] == [["0.insert.nt"], ["1.insert.nt"]]
    subprocess.run([*command, "--once"], check=True, stdout=subprocess.PIPE)
    assert members(store) == ["<urn:x0>", *(f"<urn:y{number}>" for number in range(count))]
    # No batch is committed twice, and each commit has its own facts: two for a file. What is left
    # when the process starts again may come in fewer batches.
    found = [commit for commit in Store.open(store).log() if commit.batch is not None]
    assert len({commit.batch for commit in found}) == len(found)
    assert sum(commit.statistics.inserted for commit in found) == 2 * count
    assert 3 <= len(found) <= count
