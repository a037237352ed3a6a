"""What can go wrong with a disk, and with two writers: a clear error, and the store as it was."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corollary import KnowledgeBase
from corollary.core.checksum import checksum, seal, unseal
from corollary.errors import OperationFailed
from corollary.knowledge_base.verify import verify_store
from corollary.store import Store
from corollary.store.compaction import compact, vacuum
from corollary.store.layout import TABLES
from corollary.store.repair import repair
from tests.cli.calls import call

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "corollary.cli.main")
PATHS = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."


def begun(path: Path) -> KnowledgeBase:
    kb = KnowledgeBase(PATHS)
    with kb.transaction() as tx:
        tx.insert("edge(0, 1) . edge(1, 2) .")
    kb.save(path)
    return kb


def insert(kb: KnowledgeBase, text: str) -> None:
    with kb.transaction() as tx:
        tx.insert(text)


def test_files_that_cannot_grow(tmp_path: Path) -> None:
    """No file may become larger than some blocks, as on a disk that is full."""
    kb = begun(tmp_path / "s")
    facts = "".join(f'edge(2, "{os.urandom(24).hex()}") .\n' for _ in range(1000))
    insert(begun(tmp_path / "other"), facts)  # loops are compiled, and kept in files
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, hard))
    try:
        with pytest.raises(OperationFailed) as caught:
            insert(kb, facts)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.code == "E504"
    assert str(caught.value.file).startswith(str(tmp_path / "s"))
    assert "too large" in caught.value.message
    assert (kb.count(), kb.version) == (5, 1)
    assert verify_store(tmp_path / "s").problems == []
    insert(kb, facts)
    assert KnowledgeBase.open(tmp_path / "s").count() == kb.count() == 5 + 4 * 1000


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with little room."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a file system is not permitted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)  # files are mapped


def test_a_file_system_without_room(small: Path) -> None:
    kb = begun(small / "s")
    before = kb.count()
    facts = "".join(f'edge({n}, "{os.urandom(400).hex()}") .\n' for n in range(2000))
    with pytest.raises(OperationFailed, match="No space left") as caught:
        insert(kb, facts)
    assert caught.value.code == "E504"
    assert (kb.count(), kb.version) == (before, 1)
    assert verify_store(small / "s").problems == []
    kb = KnowledgeBase.open(small / "s")  # without the terms that there was no room for
    insert(kb, "edge(2, 3) .")
    assert KnowledgeBase.open(small / "s").count() == kb.count()


def test_a_file_system_that_is_read_only(small: Path) -> None:
    kb = begun(small / "s")
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    assert KnowledgeBase.open(small / "s").count() == 5  # reading needs no right to write
    with pytest.raises(OperationFailed, match="Read-only") as caught:
        insert(kb, "edge(2, 3) .")
    assert caught.value.code == "E504"
    assert (kb.count(), kb.version) == (5, 1)
    assert verify_store(small / "s").problems == []


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    kb = begun(tmp_path / "s")
    folders = [tmp_path / "s" / table for table in TABLES]
    folders += [folder / "_delta_log" for folder in folders]
    for folder in folders:
        folder.chmod(stat.S_IREAD | stat.S_IEXEC)
    try:
        if os.access(folders[0], os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(OperationFailed) as caught:
            insert(kb, "edge(2, 3) .")
    finally:
        for folder in folders:
            folder.chmod(stat.S_IRWXU)
    assert caught.value.code == "E504"
    assert kb.count() == 5
    assert verify_store(tmp_path / "s").problems == []


@pytest.mark.parametrize("table", TABLES)
def test_a_table_in_whose_place_a_file_stands(tmp_path: Path, table: str) -> None:
    """Nobody, not even root, can write into it."""
    kb = begun(tmp_path / "s")
    place, aside = tmp_path / "s" / table, tmp_path / "aside"
    place.rename(aside)
    place.write_text("in the way")
    with pytest.raises(OperationFailed) as caught:
        insert_with_rule(kb)
    assert caught.value.code in ("E503", "E504")
    assert str(caught.value.file).startswith(str(place))
    place.unlink()
    aside.rename(place)
    assert (kb.count(), kb.version) == (5, 1)
    assert verify_store(tmp_path / "s").problems == []
    insert_with_rule(kb)
    assert KnowledgeBase.open(tmp_path / "s").count() == kb.count()


def insert_with_rule(kb: KnowledgeBase) -> None:
    with kb.transaction() as tx:
        tx.insert("edge(2, new) .")
        tx.add_rules("node(?x) :- edge(?x, ?y) .")


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    """Both succeed, as the command tries again, and no change is lost or mixed."""
    begun(tmp_path / "s")
    for number in range(2):
        (tmp_path / f"{number}.dl").write_text(f"edge(2, new{number}) .", "utf-8")
    running = [
        subprocess.Popen(
            [*COMMAND, "update", "s", "--quiet", "--retries", "20", "--insert", f"{number}.dl"],
            cwd=tmp_path,
            env=dict(os.environ, PYTHONPATH=str(ROOT / "src")),
        )
        for number in range(2)
    ]
    assert [process.wait(120) for process in running] == [0, 0]
    kb = KnowledgeBase.open(tmp_path / "s")
    assert kb.version == 3
    assert kb.count("edge") == 4
    assert kb.count("path") == 3 + 2 * 3
    assert verify_store(tmp_path / "s").problems == []


def test_what_verify_finds(tmp_path: Path) -> None:
    kb = begun(tmp_path / "s")
    writer = Store.open(tmp_path / "s").writer()
    import pyarrow as pa

    writer.add_facts(pa.table({"relation": ["path"], "arg0": [0], "arg1": [0]}))
    counts = dict(writer.base.statistics.relations)
    counts["path"] = counts["path"]._replace(facts=counts["path"].facts + 1)
    from dataclasses import replace

    writer.commit(statistics=replace(writer.base.statistics, relations=counts))
    found = verify_store(tmp_path / "s")
    assert [problem.code for problem in found.problems] == ["E509"]
    assert "0 facts are missing, 1 do not follow" in found.problems[0].message
    assert verify_store(tmp_path / "s", version=1).problems == []
    assert kb.count() == 5
    done = call("verify", "s", "--json", folder=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"][0]["code"] == "E509"


def test_a_cache_that_lies_is_found(tmp_path: Path) -> None:
    """Its checksums are right, so that only a comparison with the tables tells."""
    begun(tmp_path / "s")
    [path] = (tmp_path / "s" / "cache").rglob("facts.bin")
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    directory = path.with_name("directory.json")
    content = unseal(directory.read_bytes())
    content["files"]["facts.bin"][2] = checksum(path)
    directory.write_text(seal(content))
    found = verify_store(tmp_path / "s")
    assert any("column cache" in problem.message for problem in found.problems)
    assert repair(tmp_path / "s").repaired == ["cache"]
    assert verify_store(tmp_path / "s").problems == []


@pytest.mark.parametrize("name", ["texts.bin", "offsets.bin", "slots.bin", "facts.bin"])
def test_a_flipped_byte_in_the_cache_is_never_believed(tmp_path: Path, name: str) -> None:
    """Neither by an answer nor by an update, which would write a term twice."""
    begun(tmp_path / "s")
    [path] = (tmp_path / "s" / "cache").rglob(name)
    data = bytearray(path.read_bytes())
    data[next(place for place, byte in enumerate(data) if byte)] ^= 1
    path.write_bytes(data)
    found = verify_store(tmp_path / "s")
    assert [(problem.code, problem.file) for problem in found.problems] == [("E503", str(path))]
    kb = KnowledgeBase.open(tmp_path / "s")
    edges = {(row["arg0"], row["arg1"]) for row in kb.facts("edge").to_pylist()}
    assert edges == {("0", "1"), ("1", "2")}
    insert(kb, "edge(2, 0) . edge(0, 1) .")
    for version in (1, 2):
        assert KnowledgeBase.open(tmp_path / "s", at_version=version).count("edge") == version + 1
    assert verify_store(tmp_path / "s").problems == []


@pytest.mark.parametrize("how", ["another store", "another size", "no directory", "other format"])
def test_a_cache_that_does_not_belong_is_not_used(tmp_path: Path, how: str) -> None:
    begun(tmp_path / "s")
    other = KnowledgeBase("path(7, 8) . edge(9, 9) . edge(8, 8) .")
    other.save(tmp_path / "other")
    cache = tmp_path / "s" / "cache"
    [directory] = cache.glob("*/directory.json")
    if how == "another store":
        for path in cache.iterdir():
            path.rename(tmp_path / "gone")
        for path in (tmp_path / "other" / "cache").iterdir():
            path.rename(cache / path.name)
    elif how == "another size":
        (directory.parent / "facts.bin").write_bytes(b"")
    elif how == "no directory":
        directory.unlink()
    else:
        directory.write_text(seal(unseal(directory.read_bytes()) | {"format": 7}))
    assert KnowledgeBase.open(tmp_path / "s").count() == 5


def test_compaction_and_vacuum_beside_writers(tmp_path: Path) -> None:
    """They begin again when a writer was faster, and in the end all have succeeded."""
    path = tmp_path / "s"
    begun(path)
    (tmp_path / "loop.py").write_text(
        "import sys\n"
        "from corollary import KnowledgeBase\n"
        "from corollary.errors import OperationFailed\n"
        "for number in range(12):\n"
        "    while True:\n"
        "        try:\n"
        "            with KnowledgeBase.open(sys.argv[1]).transaction() as tx:\n"
        "                tx.insert(f'edge(2, \"new {number}\") .')\n"
        "            break\n"
        "        except OperationFailed as error:\n"
        "            assert error.code == 'E502', error\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "src"))
    writer = subprocess.Popen([sys.executable, tmp_path / "loop.py", path], env=environment)
    rounds = 0
    while writer.poll() is None:
        compact(Store.open(path), full=True)
        vacuum(Store.open(path), keep=3)
        rounds += 1
    assert writer.returncode == 0
    assert rounds
    assert KnowledgeBase.open(path).count("edge") == 14
    assert verify_store(path).problems == []
