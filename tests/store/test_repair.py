"""`corollary repair`: what follows from the tables is made again, what does not is named."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from corollary import KnowledgeBase
from corollary.cli.main import main
from corollary.errors import OperationFailed
from corollary.knowledge_base.verify import verify_store
from corollary.store import Store
from corollary.store.layout import MARKER
from corollary.store.repair import repair
from tests.store.killing import begin, update


@pytest.fixture
def store(tmp_path: Path) -> Path:
    begin(tmp_path / "s")
    kb = KnowledgeBase.open(tmp_path / "s")
    for number in range(3):
        update(kb, number)
    return tmp_path / "s"


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)


def test_a_sound_store_needs_none(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    assert main(["repair", str(store), "--quiet"]) == 0
    assert capsys.readouterr().out == "version 4 needs no repair\n"
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["texts.bin", "offsets.bin", "facts.bin", "directory.json"])
def test_a_damaged_cache(store: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    [path] = (store / "cache").rglob(name)
    data = bytearray(path.read_bytes())
    data[1] ^= 1
    path.write_bytes(data)
    found = verify_store(store)
    assert [(problem.code, problem.file) for problem in found.problems] == [("E503", str(path))]
    assert main(["repair", str(store), "--json", "--quiet"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report == {
        "version": 4,
        "repaired": [f"cache/{path.parent.name}", "cache"],
        "problems": [],
        "readable": [0, 1, 2, 3, 4],
    }
    assert verify_store(store).problems == []


def test_no_cache_and_no_marker(store: Path) -> None:
    for path in (store / "cache").rglob("*.json"):
        path.unlink()
    (store / MARKER).unlink()
    done = repair(store).repaired
    assert MARKER in done
    assert "cache" in done
    assert (store / MARKER).is_file()
    assert verify_store(store).problems == []


def test_wrong_statistics(store: Path) -> None:
    writer = Store.open(store).writer()
    counts = dict(writer.base.statistics.relations)
    counts["edge"] = counts["edge"]._replace(facts=99)
    writer.commit(statistics=replace(writer.base.statistics, relations=counts))
    assert verify_store(store).problems
    found = repair(store)
    assert (found.version, found.repaired) == (6, ["statistics"])
    assert verify_store(store).problems == []
    assert KnowledgeBase.open(store).count() == KnowledgeBase.open(store, at_version=4).count()


def test_a_lost_file(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Versions that do not need it can be read, and a repair says which these are."""
    newest = Store.open(store).facts.files(4)
    older = {file.path for file in Store.open(store).facts.files(3)}
    [lost] = [store / "facts" / file.path for file in newest if file.path not in older]
    flip(lost)
    assert main(["repair", str(store), "--quiet"]) == 1
    printed = capsys.readouterr().out
    assert f"{lost}: E503: the store is damaged" in printed
    assert printed.endswith("versions that can be read: 0, 1, 2, 3\n")
    assert KnowledgeBase.open(store, at_version=3).count() > 5


def test_an_empty_log_entry(store: Path) -> None:
    """The versions before it can be read, later ones cannot, and the entry is named."""
    entry = store / "facts" / "_delta_log" / f"{3:020d}.json"
    entry.write_bytes(b"")
    found = repair(store)
    assert found.readable == [0, 1, 2]
    assert {problem.file for problem in found.problems} == {str(entry)}
    assert {problem.code for problem in found.problems} == {"E503"}


def damage_changes(store: Path, how: str) -> Path:
    """Damage the table `changes`; returns the file that an error names."""
    table = store / "changes"
    entry = table / "_delta_log" / f"{2:020d}.json"
    if how == "entry emptied":
        entry.write_bytes(b"")
    elif how == "newest entry removed":
        entry.unlink()
        return table
    elif how == "entry removed":
        entry = entry.with_name(f"{1:020d}.json")
        entry.unlink()
    elif how == "entry a folder":
        entry.unlink()
        entry.mkdir()
    elif how == "table removed":
        shutil.rmtree(table)
        return table / "_delta_log"
    else:
        entry = sorted(table.glob("*.parquet"))[0]
        flip(entry)
    return entry


CHANGES = ["entry emptied", "entry removed", "newest entry removed", "entry a folder"]
CHANGES += ["table removed", "flip"]


@pytest.mark.parametrize("how", CHANGES)
def test_damaged_changes(store: Path, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A repair names the file; versions are read and compared without the table."""
    assert main(["diff", str(store), "1", "3"]) == 0
    expected = capsys.readouterr().out
    lost = damage_changes(store, how)
    assert main(["repair", str(store), "--quiet"]) == 1
    printed = capsys.readouterr().out
    assert f"{lost}: E503: the store is damaged" in printed
    assert "compared without it" in printed
    assert printed.endswith("versions that can be read: 0, 1, 2, 3, 4\n")
    assert main(["diff", str(store), "1", "3"]) == 0
    assert capsys.readouterr().out == expected
    feed = KnowledgeBase.open(store).changes_since(2)
    assert [(commit.version, len(found) > 0) for commit, found in feed] == [(3, True), (4, True)]


def test_a_repair_names_damaged_rules_that_no_version_needs(tmp_path: Path) -> None:
    KnowledgeBase("p(1) .").save(tmp_path / "s")
    (tmp_path / "s" / "rules" / "_delta_log" / f"{0:020d}.json").write_bytes(b"")
    found = repair(tmp_path / "s")
    assert [problem.code for problem in found.problems] == ["E503"]


@pytest.mark.parametrize("table", ["facts", "terms", "changes"])
def test_an_update_names_a_log_entry_that_is_a_folder(store: Path, table: str) -> None:
    entry = sorted((store / table / "_delta_log").glob("*.json"))[-1]
    entry.unlink()
    entry.mkdir()
    with pytest.raises(OperationFailed) as caught:
        update(KnowledgeBase.open(store), 3)
    assert (caught.value.code, caught.value.file) == ("E503", str(entry))


@pytest.mark.parametrize("table", ["facts", "terms"])
def test_commands_on_versions_before_a_damaged_log_entry(
    store: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    older = [["info", "--at-version", "2"], ["diff", "1", "2"], ["log"], ["log", "--limit", "1"]]
    commands = [[name, str(store), *rest] for name, *rest in older]
    expected = []
    for arguments in commands:
        assert main(arguments) == 0
        expected.append(capsys.readouterr().out)
    entry = sorted((store / table / "_delta_log").glob("*.json"))[-1]
    entry.write_bytes(b"")
    for arguments, right in zip(commands[:2], expected, strict=False):
        assert main(arguments) == 0
        assert capsys.readouterr().out == right
    status = 1 if table == "facts" else 0  # versions are the commits of the facts
    for arguments, right in zip(commands[2:], expected[2:], strict=True):
        assert main(arguments) == status
        found = capsys.readouterr()
        lines = expected[2].splitlines()
        if status:
            lines = lines[1:]
            assert f"{entry}: E503" in found.err
        assert found.out.splitlines() == lines[: len(right.splitlines())]
    assert main(["log", str(store), "--json"]) == status
    assert len(json.loads(capsys.readouterr().out)) == 5 - status


def test_a_message_with_any_line_end(tmp_path: Path) -> None:
    """JSON strings may hold characters that end a line elsewhere."""
    kb = KnowledgeBase("p(1) .")
    kb.save(tmp_path / "s", message="a\u2028b\x85c\nd")
    assert KnowledgeBase.open(tmp_path / "s").log()[0].message == "a\u2028b\x85c\nd"
