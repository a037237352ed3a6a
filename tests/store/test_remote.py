"""Stores in an object store: what a local store does, against an S3 server that may fail."""

from __future__ import annotations

import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from urllib.parse import quote

import pytest

from corollary import KnowledgeBase
from corollary.cli.main import main
from corollary.core import local_cache
from corollary.core.object_store import ObjectPath
from corollary.errors import CorollaryError, InvalidInput, OperationFailed
from corollary.knowledge_base.verify import verify_store
from corollary.store import Store
from corollary.store.compaction import compact, vacuum
from corollary.store.places import Place, store_path
from corollary.store.repair import repair
from tests.s3_server import BUCKET, S3
from tests.store.killing import Killer, begin, update
from tests.store.test_crashes import assert_whole, facts

RULES = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."


def remote(address: str) -> ObjectPath:
    path = store_path(address)
    assert isinstance(path, ObjectPath)
    return path


def insert(place: Place, text: str) -> int:
    """Insert facts in a commit; begin again if another writer was faster."""
    while True:
        kb = KnowledgeBase.open(place)
        try:
            with kb.transaction() as tx:
                tx.insert(text)
            return kb.version
        except OperationFailed as error:
            if error.code != "E502":
                raise


def put(s3: S3, path: ObjectPath, content: bytes) -> None:
    """Change an object behind the back of the store."""
    s3.request("PUT", quote(str(path).removeprefix("s3:/")), content)


# -- every command ---------------------------------------------------------------------------------


def replies(place: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """What the commands print for a store at a place."""
    data, more, schema = folder / "data.nt", folder / "more.nt", folder / "schema.nt"
    sub, kind = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "a"
    schema.write_text(f"<urn:A> {sub} <urn:B> .\n<urn:B> {sub} <urn:C> .\n")
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    data.write_text("".join(f"<urn:x{n}> {kind} <urn:A> .\n" for n in range(5)))
    more.write_text(f"<urn:y> {kind} <urn:B> .\n")
    found: dict[str, object] = {}

    def call(name: str, *words: str, status: int = 0) -> None:
        assert main([name, place, *words]) == status, capsys.readouterr().err
        found[f"{len(found)} {name}"] = capsys.readouterr().out

    def as_json(name: str, *words: str, keys: tuple[str, ...]) -> None:
        call(name, *words, "--json")
        key, text = found.popitem()
        report = json.loads(str(text))
        found[key] = {name: report[name] for name in keys}

    counts = ("version", "facts", "explicit", "inserted", "deleted")
    names = (str(schema), str(data), "--rules", "rdfs", "--engine", "columnar")
    as_json("build", *names, keys=counts)
    as_json("update", "--insert", str(more), "--message", "one more", keys=counts)
    as_json("update", "--delete", str(data), keys=counts)
    call("query", "SELECT ?x { ?x a <urn:C> } ORDER BY ?x", "--format", "csv", "--quiet")
    call("query", "[?x, a, <urn:C>]", "--at-version", "1", "--format", "csv", "--quiet")
    call("diff", "1", "2")
    call("diff", "1", "3", "--format", "rdfp")
    call("explain", "[<urn:y>, a, <urn:C>]")
    call("check", "--quiet")
    as_json("info", keys=("version", "facts", "explicit", "terms", "oldest"))
    as_json("compact", "--full", keys=("version", "compacted", "files"))
    call("verify")
    call("log", "--json")
    found.popitem()
    as_json("repair", keys=("version", "repaired", "readable"))
    call("vacuum", "--keep", "1", "--older-than", "0")
    removed = str(found.popitem()[1])
    assert removed.splitlines()[-1].endswith("files removed")
    call("query", "SELECT ?x { ?x a <urn:C> } ORDER BY ?x", "--format", "csv", "--quiet")
    call("query", "ASK { ?x ?y ?z }", "--at-version", "1", status=2)
    return found


def test_commands_do_the_same_for_an_address(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = replies(str(tmp_path / "store"), tmp_path, capsys)
    assert replies(address, tmp_path, capsys) == expected
    home = remote(address).store.home
    assert {entry.name for entry in home.iterdir()} == {"cache", "copies"}
    assert not [path for path in home.rglob(".*") if not path.is_dir()]


@pytest.mark.long
def test_options_replace_the_environment(
    address: str, s3: S3, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in s3.environment:
        monkeypatch.delenv(name)
    kb = KnowledgeBase(f"{RULES} edge(0, 1) .")
    kb.save(address.replace("s3:", "s3a:"), storage_options=s3.environment)
    assert KnowledgeBase.open(address, storage_options=s3.environment).count() == 2
    words = [f"--storage-option={name}={value}" for name, value in s3.environment.items()]
    assert main(["query", address, "path(0, ?x)", "--format", "csv", "--quiet", *words]) == 0
    assert capsys.readouterr().out.split() == ["x", "1"]


# -- the local cache -------------------------------------------------------------------------------


@pytest.mark.long
def test_nothing_but_the_cache_is_local(address: str) -> None:
    begin(address)
    for number in range(3):
        update(KnowledgeBase.open(address), number)
    expected = facts(address)
    shutil.rmtree(local_cache.root())
    assert facts(address) == expected
    assert KnowledgeBase.open(address).count() == len(expected)


def test_copies_are_read_without_requests_for_data(address: str, s3: S3) -> None:
    begin(address)
    KnowledgeBase.open(address)
    s3.faults()
    facts(address)
    names = {path.name for path in remote(address).store.copies.rglob("*.parquet")}
    assert len(names) == 3  # facts, terms, rules
    counts = s3.faults()
    assert counts.get("HEAD", 0) <= 2  # those of the log


def test_damaged_copies_are_fetched_again(address: str) -> None:
    begin(address)
    expected = facts(address)
    for copy in remote(address).store.copies.rglob("*.parquet"):
        data = copy.read_bytes()
        copy.write_bytes(data[:-40] + b"x" + data[-39:])
        os.utime(copy, (0, 0))
    assert facts(address) == expected
    assert verify_store(address).problems == []


@pytest.mark.parametrize(
    "table", ["facts", *(pytest.param(name, marks=pytest.mark.long) for name in ("terms", "rules"))]
)
def test_damaged_objects_are_found(address: str, s3: S3, table: str) -> None:
    begin(address)
    assert KnowledgeBase.open(address).count() == 5
    [file] = (remote(address) / table).glob("*.parquet")
    data = file.read_bytes()
    put(s3, file, data[:50] + b"x" + data[51:])
    # Copies are intact: queries do not notice, but a verification does.
    assert KnowledgeBase.open(address).count() == 5
    problems = verify_store(address).problems
    assert {(problem.code, problem.file) for problem in problems} == {("E503", str(file))}
    shutil.rmtree(local_cache.root())
    with pytest.raises(OperationFailed, match="checksum mismatch"):
        KnowledgeBase.open(address).count()
    report = repair(address)
    assert (report.readable, [error.file for error in report.problems]) != ([1], [])
    file.unlink()
    with pytest.raises(OperationFailed, match="missing") as caught:
        KnowledgeBase.open(address).count()
    assert caught.value.code == "E503"


@pytest.mark.long
def test_a_lost_log_entry_is_found(address: str) -> None:
    begin(address)
    update(KnowledgeBase.open(address), 0)
    Store.open(address).facts.log_file(1).unlink()
    with pytest.raises(OperationFailed) as caught:
        _ = Store.open(address).snapshot().fact_data
    assert caught.value.code == "E503"


def test_the_cache_is_bounded(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(address)
    other = local_cache.root() / "another" / "copies" / "facts"
    other.mkdir(parents=True)
    unused = [other / f"{number}.parquet" for number in range(4)]
    for age, file in enumerate(unused):
        file.write_bytes(b"x" * 100_000)
        os.utime(file, (1e9 - age, 1e9 - age))
    recent = other / "recent.parquet"
    recent.write_bytes(b"x" * 100_000)
    kept = {file for file in remote(address).store.home.rglob("*") if file.is_file()}
    rest = sum(file.stat().st_blocks * 512 for file in kept)
    monkeypatch.setenv(local_cache.SIZE, f"{(rest + 330_000) // 1024}K")
    monkeypatch.setattr(local_cache, "_added", {})  # as in a new process
    update(KnowledgeBase.open(address), 1)
    # The two that were not used for the longest time are gone; nothing that is in use.
    assert [file.exists() for file in [recent, *unused]] == [True, True, True, False, False]
    assert all(file.exists() for file in kept)


def test_settings_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(local_cache.SIZE, "3g")
    assert local_cache.capacity() == 3 << 30
    monkeypatch.setenv(local_cache.SIZE, "much")
    with pytest.raises(InvalidInput) as caught:
        local_cache.capacity()
    assert caught.value.code == "E513"
    monkeypatch.delenv(local_cache.FOLDER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert local_cache.root() == tmp_path / "corollary"


# -- a service that fails --------------------------------------------------------------------------


@pytest.mark.long
def test_refused_requests_are_repeated(address: str, s3: S3) -> None:
    s3.faults(refuse=15)
    begin(address)
    update(KnowledgeBase.open(address), 1)
    assert s3.faults()["all"] > 50
    assert verify_store(address).problems == []


@pytest.mark.long
def test_large_objects_arrive_whole(address: str, s3: S3) -> None:
    s3.faults(refuse=4)
    content = Random(1).randbytes(20 << 20)
    path = remote(address) / "facts" / "large.bin"
    path.copy.parent.mkdir(parents=True)
    path.copy.write_bytes(content)
    path.upload(path.copy)
    path.copy.unlink()
    assert path.fetch().read_bytes() == content
    assert path.stat().st_size == len(content)


def test_lost_answers_lose_no_commit(address: str, s3: S3) -> None:
    begin(address)
    s3.faults(lose=2)  # the request and its repetition
    kb = KnowledgeBase.open(address)
    for number in range(3):
        with kb.transaction() as tx:
            tx.insert(f"edge({number}, 10) .")
    s3.faults()
    assert kb.version == Store.open(address).latest() == 4
    assert KnowledgeBase.open(address).count() == kb.count() == 11
    assert verify_store(address).problems == []


def test_slow_listings_are_few(address: str, s3: S3) -> None:
    begin(address)
    s3.faults(list=0.1)
    assert KnowledgeBase.open(address).count() == 5
    assert s3.faults()["list"] <= 12


def test_an_unreachable_service_is_no_damage(address: str) -> None:
    options = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "max_retries": "0"}
    for work in (KnowledgeBase.open, Store.create, verify_store, repair):
        with pytest.raises(OperationFailed, match="does not serve") as caught:
            work(store_path(address, options))
        assert caught.value.code == "E512"
    missing = address.replace(BUCKET, "no-such-bucket")
    with pytest.raises(OperationFailed, match="NoSuchBucket") as caught:
        KnowledgeBase(RULES).save(missing)
    assert caught.value.code == "E512"


@pytest.mark.long
def test_what_belongs_to_others_stays(address: str, s3: S3) -> None:
    with pytest.raises(InvalidInput) as caught:
        KnowledgeBase.open(address)
    assert caught.value.code == "E500"
    put(s3, remote(address) / "notes.txt", b"mine")
    with pytest.raises(InvalidInput) as caught:
        begin(address)
    assert caught.value.code == "E506"
    assert (remote(address) / "notes.txt").read_bytes() == b"mine"
    begin(f"{address}/inside")
    with pytest.raises(InvalidInput) as caught:
        begin(f"{address}/inside")
    assert caught.value.code == "E506"


def test_a_version_stays_the_same_beside_a_writer(address: str) -> None:
    begin(address)
    expected = [file.path for file in Store.open(address).facts.files(1)]
    reader = Store.open(address)
    assert reader.facts.latest() == 1  # for a moment, the reader relies on this
    insert(address, "edge(5, 6) .")
    assert [file.path for file in reader.facts.files(1)] == expected


# -- several writers, and killed ones --------------------------------------------------------------


def race(address: str, writers: int, commits: int) -> None:
    """Let writers commit at the same time; every commit that succeeded must be there."""
    begin(address)
    ready = threading.Barrier(writers)

    def work(writer: int) -> list[int]:
        ready.wait()
        return [insert(address, f'edge("w{writer}", {n}) .') for n in range(commits)]

    with ThreadPoolExecutor(writers) as pool:
        made = [version for versions in pool.map(work, range(writers)) for version in versions]
    assert len({*made}) == writers * commits
    kb = KnowledgeBase.open(address)
    for writer in range(writers):
        assert kb.count(f'edge("w{writer}", ?n)') == commits
    assert verify_store(address).problems == []


def test_two_writers_lose_no_commit(address: str) -> None:
    race(address, writers=2, commits=3)


@pytest.mark.long
def test_many_writers_lose_no_commit(address: str, s3: S3) -> None:
    s3.faults(refuse=50, lose=9)
    race(address, writers=4, commits=8)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["update", "compact", "vacuum"])
def test_a_killed_writer_leaves_a_whole_store(address: str, kind: str) -> None:
    begin(address)
    chance = Random(5)
    for number in range(3):
        update(KnowledgeBase.open(address), number)
    news, kills, high = 0, 0, 0.3
    with Killer() as killer:
        for number in range(14):
            before, old = Store.open(address).latest(), facts(address)
            if killer.kill(address, kind, number + 100, seconds=chance.uniform(0.0, high)):
                kills += 1
                high *= 1.3
            else:
                high *= 0.8
            news += assert_whole(address, before, old)
            if kind != "update":
                update(KnowledgeBase.open(address), number)
    assert kills >= 3
    assert news > 0
    vacuum(Store.open(address), older_than=0.0)
    compact(Store.open(address), full=True)
    assert verify_store(address).problems == []


@pytest.mark.long
def test_a_build_begins_again_after_a_kill(address: str) -> None:
    with Killer() as killer:
        at = 1
        while killer.kill(f"{address}{at}", "create", 0, steps=at):
            if not [*(remote(f"{address}{at}") / "facts" / "_delta_log").glob("*1.json")]:
                begin(f"{address}{at}")
            assert verify_store(f"{address}{at}").problems == []
            assert KnowledgeBase.open(f"{address}{at}").count() == 5
            at += 1
    assert at > 8


# -- addresses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("s3://bucket/univ.store/", "s3://bucket/univ.store"),
        ("S3A://bucket/a/b", "s3://bucket/a/b"),
        ("gcs://bucket/store", "gs://bucket/store"),
        ("gs://bucket/store", "gs://bucket/store"),
        (
            "abfs://files@account.dfs.core.windows.net/store",
            "abfss://files@account.dfs.core.windows.net/store",
        ),
        ("hdfs://namenode:8020/user/ann/store", "hdfs://namenode:8020/user/ann/store"),
    ],
)
def test_addresses_of_object_stores(text: str, normal: str) -> None:
    path = remote(text)
    assert str(path) == normal
    assert str(path / "facts" / "x.parquet") == f"{normal}/facts/x.parquet"
    assert (path / "facts").parent == path
    assert path.store.home.parent == local_cache.root()
    assert path.store.home != remote(f"{text}2").store.home


@pytest.mark.parametrize(
    "text",
    [
        "https://host/store",
        "ftp://host/s",
        "s3://",
        "s3://b//x",
        "s3://b/../x",
        "s3://b/%20",
        "gs:///x",
    ],
)
def test_refused_addresses(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        KnowledgeBase.open(text)
    assert caught.value.code == "E510"


@pytest.mark.parametrize(
    ("address", "options"),
    [
        ("gs://bucket/store", {"GOOGLE_SERVICE_ACCOUNT_KEY": "no key"}),
        (
            "abfss://files@account.dfs.core.windows.net/store",
            {"AZURE_STORAGE_ACCOUNT_KEY": "not base64!"},
        ),
        ("hdfs://namenode.invalid/store", {}),
    ],
)
def test_refused_credentials(address: str, options: dict[str, str]) -> None:
    """No such service is at hand; their clients are made by the same code, and check these."""
    with pytest.raises(CorollaryError) as caught:
        KnowledgeBase.open(address, storage_options={**options, "max_retries": "0"})
    assert caught.value.code == "E512"
    assert "no key" not in caught.value.render()
