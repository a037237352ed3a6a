"""Repair: rebuild what the tables of a store determine, and report what is lost.

Caches, chunks, checkpoints, the marker and the statistics of the newest version follow from the log
entries and the data files. These are never changed: if one is damaged, only the versions that need
it become unreadable.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from corollary.core.files import remove
from corollary.core.object_store import StorePath, fresh_copies
from corollary.errors import CorollaryError, OperationFailed
from corollary.store import cache, changes, chunk_files, parquet
from corollary.store.check import cache_differs, count_facts, totals
from corollary.store.delta import LOG, Table, damage, translate_write_errors
from corollary.store.layout import CHUNKS, MARKER
from corollary.store.manifest import DataFile
from corollary.store.marker import is_marked, mark
from corollary.store.opening import open_columns
from corollary.store.places import Place, copy_files, store_path
from corollary.store.rows import live
from corollary.store.snapshot import Snapshot
from corollary.store.store import Store

_CHECKPOINT = re.compile(r"[0-9]{20}\.checkpoint.*\.parquet|_last_checkpoint")
_WITHOUT_CHANGES = (
    "versions can be read and compared without it, but updates may need it: restore it from a copy"
    " of the store, or build a new store from a readable version"
)


@dataclass
class RepairReport:
    """What was repaired, what cannot be, and which versions are readable."""

    version: int
    repaired: list[str] = field(default_factory=list)
    problems: list[CorollaryError] = field(default_factory=list)
    readable: list[int] = field(default_factory=list)


def repair(path: Place, on_progress: Callable[[str], None] | None = None) -> RepairReport:
    """Repair what the tables determine, and report the rest."""
    with fresh_copies(store_path(path)) as folder:
        return _repair(folder, on_progress or (lambda _: None))


def _repair(folder: StorePath, notify: Callable[[str], None]) -> RepairReport:
    repaired: list[str] = []
    for table in _tables(folder):
        notify(f"{table.name}/{LOG}")
        repaired += _repair_checkpoints(table)
    store = Store.open(folder)
    report = RepairReport(store.latest(), repaired)
    marker = folder / MARKER
    if isinstance(marker, Path) and os.path.lexists(marker) and not marker.is_file():
        report.problems.append(damage(marker, "it is not a file"))
    elif not is_marked(folder):
        with translate_write_errors(folder / MARKER):
            mark(folder)
        repaired.append(MARKER)
    repaired += _remove_damaged(store)
    report.readable = _readable_versions(store, report, notify)
    _check_other_tables(store, report, notify)
    if report.version in report.readable:
        notify("cache")
        report.version = _repair_statistics(store, repaired)
        if report.version not in report.readable:
            report.readable.append(report.version)
        repaired += _repair_cache(store.snapshot())
    return report


def _tables(folder: StorePath) -> list[Table]:
    store = Store(folder)
    tables = (store.facts, store.terms, store.changes, store.rules)
    return [table for table in tables if any((table.folder / LOG).glob("*.json"))]


def _repair_checkpoints(table: Table) -> list[str]:
    """Recreate damaged checkpoints if the log entries are complete without them."""
    log = table.folder / LOG
    checkpoints = [
        path
        for path in log.iterdir()
        if _CHECKPOINT.fullmatch(path.name) and (path.is_symlink() or path.is_file())
    ]
    if not checkpoints or _opens(table):
        return []
    with tempfile.TemporaryDirectory(prefix="corollary-") as temporary:
        copy = Path(temporary) / table.name
        try:
            copy_files(log, copy / LOG, without="checkpoint")
        except OSError:  # an entry that cannot be read
            return []
        if not _opens(Table(copy)):
            return []
    for checkpoint in checkpoints:
        with translate_write_errors(checkpoint):
            checkpoint.unlink()
    if not _opens(table):
        return []
    with translate_write_errors(log):
        table.open().create_checkpoint()
    return [f"{table.name}/{LOG}: {len(checkpoints)} checkpoint files"]


def _opens(table: Table) -> bool:
    try:
        Table(table.folder).state()
    except OperationFailed:
        return False
    return True


def _remove_damaged(store: Store) -> list[str]:
    """Remove damaged caches and chunks; the next update on Spark rebuilds chunks."""
    removed = []
    for folder in {path.parent for path, _ in cache.problems(store)}:
        shutil.rmtree(folder, ignore_errors=True)
        removed.append(f"cache/{folder.name}")
    chunks = store.chunks_folder
    if any(chunk_files.problems(chunks)):
        for entry in chunk_files.entries(chunks):
            remove(entry)
        removed.append(f"{CHUNKS}: the next update on Spark rebuilds them")
    return removed


def _readable_versions(
    store: Store, report: RepairReport, notify: Callable[[str], None]
) -> list[int]:
    """The versions whose files are all intact; damage in the others is added to the report."""
    readable = []
    file_errors: dict[StorePath, OperationFailed | None] = {}
    seen = {error.file for error in report.problems}
    newest = store.latest()
    for version in range(newest + 1):
        notify(f"version {version}")
        try:
            snapshot = store.snapshot(version)
            errors = [_file_error(file_errors, t, f) for t, f in _needed(snapshot)]
            for error in filter(None, errors):
                raise error
            _ = snapshot.program
            readable.append(version)
        except CorollaryError as error:
            if error.code == "E505":  # removed by a vacuum
                continue
            if error.file not in seen:  # one message per file, not per version
                seen.add(error.file)
                report.problems.append(error)
    return readable


def _check_other_tables(store: Store, report: RepairReport, notify: Callable[[str], None]) -> None:
    """Report damage in `changes` and `rules`, whether or not a version needs it."""
    for table in (store.changes, store.rules):
        notify(table.name)
        errors = _problems(table)
        if table is store.changes:
            if not errors and report.readable:
                errors = _missing_changes(store, max(report.readable))
            for problem in errors:
                problem.hint = _WITHOUT_CHANGES
        seen = {error.file for error in report.problems}
        report.problems += [error for error in errors if error.file not in seen]


def _problems(table: Table) -> list[OperationFailed]:
    """Damage in the log and the files of the newest version of a table."""
    try:
        files = table.files()
    except OperationFailed as error:
        return [error]
    return [*filter(None, (_file_error({}, table, file) for file in files))]


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


def _file_error(
    file_errors: dict[StorePath, OperationFailed | None], table: Table, file: DataFile
) -> OperationFailed | None:
    path = table.folder / file.path
    if path not in file_errors:
        try:
            parquet.check(path, file)
            file_errors[path] = None
        except OperationFailed as error:
            file_errors[path] = error
    return file_errors[path]


def _repair_statistics(store: Store, repaired: list[str]) -> int:
    """Commit correct counts if those of the newest version are wrong; the newest version."""
    snapshot = store.snapshot()
    rows = live(parquet.read(store.facts, snapshot.fact_data, snapshot.schema))
    counts = count_facts(rows)
    if totals(counts) == totals(snapshot.statistics.relations):
        return snapshot.version
    repaired.append("statistics")
    statistics = replace(snapshot.statistics, relations=counts, inserted=0, deleted=0)
    writer = store.writer(snapshot.version)
    return writer.commit(statistics=statistics, kind="repair", message="recount facts")


def _repair_cache(snapshot: Snapshot) -> list[str]:
    """Write a cache of the newest version unless an intact one exists."""
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
