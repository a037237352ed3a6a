"""Repair: make again what the tables of a store determine, and name what is lost.

Caches, chunks, checkpoints, the marker and the statistics of the newest version follow from the log
entries and the data files. Those are never changed: if one is damaged, the versions that need it
cannot be read, and all others can.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.compute as pc

from corollary.errors import CorollaryError, OperationFailed
from corollary.store import cache, changes, chunk_files, parquet
from corollary.store.check import cache_differs, count_facts
from corollary.store.delta import LOG, Table, damaged
from corollary.store.layout import CHUNKS, MARKER
from corollary.store.manifest import DataFile
from corollary.store.marker import is_marked, mark
from corollary.store.opening import open_columns
from corollary.store.places import local_path
from corollary.store.rows import current
from corollary.store.snapshot import Snapshot
from corollary.store.store import Store

_WITHOUT_CHANGES = (
    "versions can be read and compared without it, updates may need it: restore it from a copy of"
    " the store, or build another one from a version that can be read"
)


@dataclass
class Repaired:
    """What was made again, what cannot be, and which versions can be read."""

    version: int
    repaired: list[str] = field(default_factory=list)
    problems: list[CorollaryError] = field(default_factory=list)
    readable: list[int] = field(default_factory=list)


def repair(path: str | Path, on_progress: Callable[[str], None] | None = None) -> Repaired:
    """Make again what can be, and say what cannot."""
    tell = on_progress or (lambda _: None)
    folder = local_path(path)
    done: list[str] = []
    for table in _tables(folder):
        tell(f"{table.name}/{LOG}")
        done += _repair_checkpoints(table)
    store = Store.open(folder)
    found = Repaired(store.latest(), done)
    if not is_marked(folder):
        mark(folder)
        done.append(MARKER)
    done += _remove_damaged(store)
    found.readable = _readable(store, found, tell)
    _check_other_tables(store, found, tell)
    if found.version in found.readable:
        tell("cache")
        found.version = _repair_statistics(store, done)
        if found.version not in found.readable:
            found.readable.append(found.version)
        done += _repair_cache(store.snapshot())
    return found


def _tables(folder: Path) -> list[Table]:
    store = Store(folder)
    return [t for t in (store.facts, store.terms, store.changes, store.rules) if _has_log(t)]


def _has_log(table: Table) -> bool:
    return any((table.folder / LOG).glob("*.json"))


def _repair_checkpoints(table: Table) -> list[str]:
    """Remove checkpoints that are damaged, if the log entries tell everything without them."""
    log = table.folder / LOG
    checkpoints = [*log.glob("*.checkpoint*.parquet"), *log.glob("_last_checkpoint")]
    if not checkpoints or _opens(table):
        return []
    with tempfile.TemporaryDirectory(prefix="corollary-") as place:
        copy = Path(place) / table.name
        shutil.copytree(log, copy / LOG, ignore=shutil.ignore_patterns("*checkpoint*"))
        if not _opens(Table(copy)):
            return []
    for checkpoint in checkpoints:
        checkpoint.unlink()
    fresh = Table(table.folder)
    with damaged(log):
        fresh.open().create_checkpoint()
    return [f"{table.name}/{LOG}: {len(checkpoints)} files of checkpoints"]


def _opens(table: Table) -> bool:
    try:
        Table(table.folder).state()
    except OperationFailed:
        return False
    return True


def _remove_damaged(store: Store) -> list[str]:
    """Remove caches and chunks with a wrong byte; the next update on Spark makes new chunks."""
    done = []
    for folder in {path.parent for path, _ in cache.problems(store)}:
        shutil.rmtree(folder, ignore_errors=True)
        done.append(f"cache/{folder.name}")
    chunks = store.path / CHUNKS
    if any(chunk_files.problems(chunks)):
        for entry in chunk_files.entries(chunks):
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        done.append(f"{CHUNKS}: the next update on Spark makes them")
    return done


def _readable(store: Store, found: Repaired, tell: Callable[[str], None]) -> list[int]:
    """The versions whose files are all whole; what is wrong with the others is a problem."""
    readable = []
    states: dict[Path, OperationFailed | None] = {}
    seen = {error.file for error in found.problems}
    newest = store.latest()
    for version in range(newest + 1):
        tell(f"version {version}")
        try:
            snapshot = store.snapshot(version)
            errors = [_state(states, t, f) for t, f in _needed(snapshot)]
            for error in filter(None, errors):
                raise error
            _ = snapshot.program
            readable.append(version)
        except CorollaryError as error:
            if error.code == "E505":  # removed by a vacuum
                continue
            if error.file not in seen:  # one message for each file, not for each version
                seen.add(error.file)
                found.problems.append(error)
    return readable


def _check_other_tables(store: Store, found: Repaired, tell: Callable[[str], None]) -> None:
    """Add what is wrong with `changes` and `rules`, whether or not a version needs it."""
    for table in (store.changes, store.rules):
        tell(table.name)
        errors = _problems(table)
        if table is store.changes:
            if not errors and found.readable:
                errors = _missing_changes(store, max(found.readable))
            for problem in errors:
                problem.hint = _WITHOUT_CHANGES
        seen = {error.file for error in found.problems}
        found.problems += [error for error in errors if error.file not in seen]


def _problems(table: Table) -> list[OperationFailed]:
    """What is wrong with the log and the files of the newest version of a table."""
    try:
        files = table.files()
    except OperationFailed as error:
        return [error]
    return [*filter(None, (_state({}, table, file) for file in files))]


def _missing_changes(store: Store, until: int) -> list[OperationFailed]:
    try:
        changes.check(store, until)
    except OperationFailed as error:
        return [error]
    return []


def _needed(snapshot: Snapshot) -> list[tuple[Table, DataFile]]:
    store = snapshot.store
    facts = [(store.facts, file) for file in snapshot.fact_data]
    return [*facts, *((store.terms, file) for file in snapshot.term_data)]


def _state(
    states: dict[Path, OperationFailed | None], table: Table, file: DataFile
) -> OperationFailed | None:
    path = table.folder / file.path
    if path not in states:
        try:
            parquet.check(path, file)
            states[path] = None
        except OperationFailed as error:
            states[path] = error
    return states[path]


def _repair_statistics(store: Store, done: list[str]) -> int:
    """Commit the right counts if those of the newest version are wrong; the newest version."""
    snapshot = store.snapshot()
    rows = current(parquet.read(store.facts, snapshot.fact_data, snapshot.schema))
    counts = count_facts(rows.filter(pc.invert(rows["deleted"])))
    known = snapshot.statistics.relations
    stated = {name: count[1:] for name, count in known.items() if count.facts}
    if {name: count[1:] for name, count in counts.items()} == stated:
        return snapshot.version
    done.append("statistics")
    statistics = replace(snapshot.statistics, relations=counts, inserted=0, deleted=0)
    writer = store.writer(snapshot.version)
    return writer.commit(statistics=statistics, kind="repair", message="facts counted again")


def _repair_cache(snapshot: Snapshot) -> list[str]:
    """Make a cache of the newest version if there is none that fits."""
    store = snapshot.store
    opened = open_columns(snapshot, keep=False)
    if cache.read(store, snapshot.version) is not None and not cache_differs(
        snapshot, opened.dictionary
    ):
        return []
    for folder in cache.folders(store):
        shutil.rmtree(folder, ignore_errors=True)
    open_columns(snapshot)
    return ["cache"]
