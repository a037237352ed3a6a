"""Compaction merges small files; vacuum removes files that no version needs.

A merge keeps the newest row of each fact with its version, so that the current rows do not depend
on which files are merged. Tombstones can be dropped only if all files are merged.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.object_store import StorePath, remove_tree
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.syntax import TYPE
from corollary.store import cache, chunk_files, parquet
from corollary.store.chunk_files import is_older
from corollary.store.columns import columns
from corollary.store.commits import Commit, Statistics
from corollary.store.delta import LOG, Conflict, Table, pause, translate_write_errors
from corollary.store.layout import TERMS_SCHEMA, changes_schema, width_of
from corollary.store.manifest import DataFile
from corollary.store.opening import open_terms
from corollary.store.places import name_within
from corollary.store.rows import current, live
from corollary.store.snapshot import Snapshot

if TYPE_CHECKING:
    from corollary.store.store import Store

ATTEMPTS = 20  # to commit beside other writers
SMALL_FILES = 48  # above this many, a commit is followed by a compaction
_SMALL_SHARE = 8  # a file is small if it has less than this fraction of all rows
_WRITER_FILE = re.compile(r"[0-9a-f]{32}(-[0-9a-f]{8})?(\.parquet)?")  # names that writers choose
_OBSOLETE_SHARE = 4  # merge all files if more than this fraction of the rows is obsolete

_Result = TypeVar("_Result")


def needed(files: Sequence[DataFile]) -> bool:
    """Whether there are enough small files to merge."""
    return len(_small(files)) > SMALL_FILES


def compact(
    store: Store, *, full: bool = False, author: str | None = None, attempts: int = ATTEMPTS
) -> Commit | None:
    """Merge small files or all files; returns the commit, or None if there was nothing to merge.

    With `full`, or if many rows are obsolete, all fact files are merged. Retries up to `attempts`
    times if other writers commit meanwhile.
    """
    return _retry(lambda: _compact(store, full=full, author=author), attempts)


def _retry(work: Callable[[], _Result], attempts: int = ATTEMPTS) -> _Result:
    """Retry after conflicts with other writers; `work` must not change facts."""
    for attempt in range(attempts):
        try:
            return work()
        except OperationFailed as error:
            if error.code != "E502" or attempt + 1 == attempts:
                raise
            pause(attempt)
    raise AssertionError("there is at least one attempt")


def _compact(store: Store, *, full: bool, author: str | None) -> Commit | None:
    writer = store.writer(author=author)
    base = writer.base
    files = store.facts.files(base.version)
    row_count = sum(file.rows for file in files)
    full = full or _OBSOLETE_SHARE * (row_count - base.statistics.facts) > row_count
    chosen = files if full else _small(files)
    _compact_terms(store)
    _compact_changes(store)
    if len(chosen) < 2 and not (full and row_count > base.statistics.facts):
        return None
    started = time.perf_counter()
    merges_all = len(chosen) == len(files)
    newest = live if merges_all else current
    rows = newest(parquet.read(store.facts, chosen, Snapshot(store, base).schema))
    writer.replace_files(chosen, drops_tombstones=merges_all)
    writer.add_facts(rows)
    version = writer.commit(
        statistics=Statistics(
            base.statistics.relations,
            algorithm="compaction",
            reason=f"merged {len(chosen)} files",
            engine="columnar",
            seconds={"compact": round(time.perf_counter() - started, 6)},
        ),
        kind="compact",
        message=f"merged {len(chosen)} files",
    )
    if merges_all:  # without tombstones, an older cache cannot be brought up to date
        dictionary = open_terms(store.snapshot(version))
        arrays = columns(rows, dictionary.find(TYPE))
        cache.write(store, version, [arrays], dictionary.arrays())
    return store.commit(version)


def _small(files: Sequence[DataFile]) -> list[DataFile]:
    total = sum(file.rows for file in files)
    return [file for file in files if _SMALL_SHARE * file.rows < total]


def _compact_terms(store: Store) -> None:
    """Merge the small files of the terms, sorted by id."""
    version = store.terms.latest()
    files = _small(store.terms.files(version))
    if len(files) > SMALL_FILES:
        rows = parquet.read(store.terms, files, TERMS_SCHEMA).sort_by("id")
        new = parquet.write(store.terms, rows, TERMS_SCHEMA)
        _rewrite(store.terms, new, files, TERMS_SCHEMA, version)


def _compact_changes(store: Store) -> None:
    """Merge the files of the changes, without the rows of failed commit attempts."""
    version = store.changes.latest()
    files = store.changes.files(version)
    if len(files) <= SMALL_FILES:
        return
    newest = store.latest()
    names = store.changes.columns(version)
    schema = changes_schema(width_of(names))
    rows = parquet.read(store.changes, files, schema)
    commits = pa.array([commit.id for commit in store.log()])
    needed = pc.or_(pc.is_in(rows["commit"], commits), pc.greater(rows["version"], newest))
    new = parquet.write(store.changes, rows.filter(needed).sort_by("version"), schema)
    _rewrite(store.changes, new, files, schema, version)


def _rewrite(
    table: Table, new: DataFile, files: Sequence[DataFile], schema: pa.Schema, version: int
) -> None:
    try:
        table.commit([new], schema, removed=files, base=version, rewrites=True)
    except Conflict:  # another writer was faster; a later compaction will merge them
        (table.folder / new.path).unlink(missing_ok=True)


def vacuum(
    store: Store, *, keep: int | None = None, older_than: float = 24.0, dry_run: bool = False
) -> list[StorePath]:
    """Remove files that no version needs; returns their paths.

    All versions stay readable, or the last `keep` ones; a commit records the oldest of them.
    Files that no version ever had, such as those of a killed writer, are removed once they are
    `older_than` hours old, as younger ones may belong to a running writer.
    """
    if keep is not None and keep < 1:
        raise InvalidInput("E507", "cannot remove all versions", "keep at least one")
    newest = store.commit()
    oldest = newest.oldest if keep is None else max(newest.oldest, newest.version - keep + 1)
    if oldest > newest.oldest and not dry_run:
        newest = _retry(lambda: _set_oldest(store, oldest))
    limit = time.time() - older_than * 3600
    unneeded: list[StorePath] = []
    for table, first in ((store.facts, oldest), (store.terms, None), (store.changes, None)):
        unneeded += _unneeded(table, first, limit)
    unneeded += _unneeded(store.rules, None, limit)
    unneeded += cache.abandoned(store, limit)
    unneeded += chunk_files.unneeded(store.chunks_folder, newest.id, limit)
    if not dry_run:
        for path in unneeded:
            with translate_write_errors(path):
                if path.is_dir():
                    remove_tree(path)
                else:
                    path.unlink(missing_ok=True)
    return unneeded


def _set_oldest(store: Store, oldest: int) -> Commit:
    """Commit the oldest version that stays readable."""
    newest = store.commit()
    version = store.writer(newest.version).commit(
        statistics=replace(newest.statistics, inserted=0, deleted=0, algorithm="", reason=""),
        kind="vacuum",
        message=f"removed versions before {oldest}",
        oldest=max(oldest, newest.oldest),
    )
    return store.commit(version)


def _unneeded(table: Table, oldest: int | None, limit: float) -> Iterator[StorePath]:
    """Files that no version of a table from `oldest` on needs; None: only the newest counts."""
    start = table.latest() if oldest is None else oldest
    needed = {file.path for file in table.files(start)}
    known: set[str] = set()
    for version in range(table.latest() + 1):
        for action in table.actions(version):
            if "add" in action:
                known.add(action["add"]["path"])
                if version >= start:
                    needed.add(action["add"]["path"])
    files: list[StorePath] = [*table.folder.rglob("*")]
    for path in sorted(files, key=str):
        name = name_within(path, table.folder)
        first = name.partition("/")[0]
        if name in needed or first == LOG or not path.is_file():
            continue
        if name in known or (_WRITER_FILE.fullmatch(first) and is_older(path, limit)):
            yield path
