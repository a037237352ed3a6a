"""Nothing is removed that Corollary did not write, and an interrupted build can begin again."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from corollary import KnowledgeBase
from corollary.cli.main import main
from corollary.errors import CorollaryError, InvalidInput, OperationFailed
from corollary.knowledge_base.stores import is_empty
from corollary.knowledge_base.verify import verify_store
from corollary.lang.program import Program
from corollary.store import Statistics, Store
from corollary.store.commits import Count
from corollary.store.compaction import compact, vacuum
from corollary.store.layout import CACHE, CHUNKS, MARKER, TABLES
from corollary.store.marker import remove_store
from tests.store.killing import PATHS, begin

_OLD = time.time() - 100 * 24 * 3600


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_build_leaves_folders_alone_that_are_named_like_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "proj"
    for name in ("facts", "rules"):
        (project / name).mkdir(parents=True)
    (project / "facts" / "edge.facts").write_text("1\t2\n2\t3\n")
    (project / "rules" / "p.dl").write_text(PATHS)
    before = snapshot(project)
    monkeypatch.chdir(tmp_path)
    arguments = ["build", "proj", "proj/rules/p.dl", "proj/facts/edge.facts"]
    assert main([*arguments, "--engine", "columnar", "--quiet"]) == 2
    assert "E506" in capsys.readouterr().err
    assert snapshot(project) == before


@pytest.mark.parametrize("names", [*((name,) for name in (*TABLES, CACHE, CHUNKS)), TABLES])
def test_a_folder_without_a_marker_is_left_alone(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / "s" / name).mkdir(parents=True)
        (tmp_path / "s" / name / "mine.txt").write_text("mine")
    before = snapshot(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        Store.create(tmp_path / "s")
    assert caught.value.code == "E506"
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("content", ["", "{}", "mine"])
def test_a_marker_that_is_not_ours(tmp_path: Path, content: str) -> None:
    (tmp_path / "s" / "facts").mkdir(parents=True)
    (tmp_path / "s" / MARKER).write_text(content)
    with pytest.raises(InvalidInput) as caught:
        begin(tmp_path / "s")
    assert caught.value.code == "E506"
    assert (tmp_path / "s" / "facts").is_dir()


def test_an_interrupted_build_begins_again(tmp_path: Path) -> None:
    """Before the first log entry of the facts, and as the marker was being written."""
    path = tmp_path / "s"
    Store.create(path)
    shutil.rmtree(path / "facts" / "_delta_log")
    (path / "rules" / "_delta_log" / "_commit_1.json.tmp").touch()
    begin(path)
    assert KnowledgeBase.open(path).count() == 5
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / MARKER).touch()
    begin(tmp_path / "t")
    assert verify_store(tmp_path / "t").problems == []


@pytest.mark.parametrize("width", [3, 5])
def test_restarted_build_may_be_interrupted_again(tmp_path: Path, width: int) -> None:
    """After its terms are committed, and columns are added; a restart removes these terms."""
    path = tmp_path / "s"
    Store.create(path)
    for number in range(3):
        assert is_empty(path)
        store = Store.open(path)
        store.discard_orphaned_terms()
        assert is_empty(path)
        writer = store.writer()
        writer.reserve(width)
        writer.add_terms(pa.array([f'"{number}"']))
        writer._commit_terms()
        if width > 3 and not number:
            writer._widen_facts()
    begin(path)
    assert KnowledgeBase.open(path).count() == 5
    assert verify_store(path).problems == []


def test_an_interrupted_build_beside_which_something_lies(tmp_path: Path) -> None:
    path = tmp_path / "s"
    Store.create(path)
    shutil.rmtree(path / "facts" / "_delta_log")
    (path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput) as caught:
        begin(path)
    assert caught.value.code == "E506"
    assert (path / "terms").is_dir()


@pytest.mark.parametrize("folder", [*TABLES, CACHE, CHUNKS])
def test_an_interrupted_build_with_something_in_its_folders(tmp_path: Path, folder: str) -> None:
    path = tmp_path / "s"
    Store.create(path)
    shutil.rmtree(path / "facts" / "_delta_log")
    (path / folder).mkdir(exist_ok=True)
    (path / folder / "edge.facts").write_text("1\t2\n")
    before = snapshot(path)
    with pytest.raises(InvalidInput, match=r"edge\.facts does not belong to Corollary") as caught:
        begin(path)
    assert caught.value.code == "E506"
    assert snapshot(path) == before


@pytest.mark.parametrize("lost", ["facts", "facts/_delta_log", "facts/_delta_log/*.json"])
@pytest.mark.parametrize("marker", [True, False])
def test_a_store_without_the_log_of_its_facts(
    tmp_path: Path, lost: str, marker: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is damaged, and no build takes its place."""
    path = tmp_path / "s"
    begin(path)
    if not marker:
        (path / MARKER).unlink()
    for entry in path.glob(lost):
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    before = snapshot(path)
    for command in ("info", "verify", "repair"):
        assert main([command, str(path)]) == 1
        assert f"{path}/facts/_delta_log: E503: the store is damaged" in capsys.readouterr().err
    (tmp_path / "p.dl").write_text("p(1) .")
    build = ["build", str(path), str(tmp_path / "p.dl"), "--engine", "columnar"]
    assert main(build) == (1 if marker else 2)
    assert ("E503" if marker else "E506") in capsys.readouterr().err
    with pytest.raises(CorollaryError):
        Store.create(path)
    assert {name: data for name, data in snapshot(path).items() if name != MARKER} == {
        name: data for name, data in before.items() if name != MARKER
    }


@pytest.mark.parametrize("table", ["terms", "rules", "changes"])
def test_a_commit_to_another_table_is_no_creation(tmp_path: Path, table: str) -> None:
    path = tmp_path / "s"
    Store.create(path)
    shutil.rmtree(path / "facts")
    log = path / table / "_delta_log"
    shutil.copy(log / f"{0:020d}.json", log / f"{1:020d}.json")
    with pytest.raises(OperationFailed, match=f"but {table}/_delta_log/0*1.json exists") as caught:
        begin(path)
    assert caught.value.code == "E503"


@pytest.mark.parametrize("cached", [True, False])
def test_a_store_that_has_lost_all_log_entries_but_the_first(tmp_path: Path, cached: bool) -> None:
    path = tmp_path / "s"
    begin(path)
    with KnowledgeBase.open(path).transaction() as tx:
        tx.insert("edge(2, 3) .")
    for number in (1, 2):
        (path / "facts" / "_delta_log" / f"{number:020d}.json").unlink()
    if not cached:
        shutil.rmtree(path / "cache")
    before = snapshot(path)
    with pytest.raises(OperationFailed, match=r"0*1\.json: the log entry is missing"):
        begin(path)
    assert snapshot(path) == before


def test_the_removal_of_a_failed_build_may_be_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever file it has come to, another build succeeds."""
    for number in range(100):
        path = tmp_path / str(number)
        writer = Store.create(path).writer()
        writer.add_terms(pa.array(['"a"']))
        rows = pa.table({"relation": ["p"], "arg0": [0], "arg1": [0]})
        writer.add_facts(rows, explicit=True)
        monkeypatch.setattr(writer.store.facts, "commit", _killed)
        with pytest.raises(KeyboardInterrupt):
            writer.commit(
                statistics=Statistics({"p": Count(2, 1, 1)}),
                program=Program.parse("p(?x) :- q(?x) ."),
            )
        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", _limited(number))
            try:
                remove_store(path)
            except KeyboardInterrupt:
                pass
            else:
                break
        begin(path)
        assert KnowledgeBase.open(path).count() == 5
    assert number > 8
    assert [*path.iterdir()] == []


def _limited(count: int) -> Callable[..., None]:
    """Remove so many files, no more."""
    left, unlink = iter(range(count)), os.unlink

    def limited(*args: Any, **options: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        unlink(*args, **options)

    return limited


def _killed(*_: Any, **__: Any) -> int:
    raise KeyboardInterrupt


def test_a_store_without_a_marker_opens_and_is_updated(tmp_path: Path) -> None:
    path = tmp_path / "s"
    begin(path)
    (path / MARKER).unlink()
    kb = KnowledgeBase.open(path)
    with kb.transaction() as tx:
        tx.insert("edge(2, 3) .")
    assert KnowledgeBase.open(path).count() == kb.count() == 9


def test_foreign_files_in_a_store_survive(tmp_path: Path) -> None:
    """A compaction, a new cache and a vacuum remove files of ours only."""
    path = tmp_path / "s"
    begin(path)
    foreign = [path / folder / "notes.parquet" for folder in (*TABLES, CACHE)]
    foreign += [path / CACHE / "9-mine" / "a", path / CHUNKS / "mine", path / "facts" / "x" / "y"]
    foreign += [path / CACHE / ".mine" / "b"]
    for file in foreign:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
        os.utime(file, (_OLD, _OLD))
        os.utime(file.parent, (_OLD, _OLD))
    kb = KnowledgeBase.open(path)
    with kb.transaction() as tx:
        tx.insert("edge(2, 3) .")
    compact(Store.open(path), full=True)
    assert vacuum(Store.open(path), keep=1, older_than=0.0)
    assert [file.read_text() for file in foreign] == ["mine"] * len(foreign)
    assert verify_store(path).problems == []


def test_a_run_does_not_remove_triples_that_it_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text("q(?x) :- p(?x) .")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "p.facts").write_text("1\n")
    (tmp_path / "d" / "triples.nt").write_text("<urn:a> <urn:b> <urn:c> .\n")
    folder = str(tmp_path / "d")
    assert main(["run", str(tmp_path / "p.dl"), "--facts", folder, "--out", folder]) == 0
    assert (tmp_path / "d" / "triples.nt").read_text() == "<urn:a> <urn:b> <urn:c> .\n"
