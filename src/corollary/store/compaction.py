"""Fewer files: small ones written as one, and files that no version needs removed.

Of the rows of a fact in the files that are merged, the newest stays, with its version, so that what
counts is the same whichever files are merged. A tombstone can go if all files are.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.syntax import TYPE
from corollary.store import cache, chunk_files, parquet
from corollary.store.chunk_files import is_older
from corollary.store.columns import columns
from corollary.store.commits import Commit, Statistics
from corollary.store.delta import LOG, Conflict, Table, pause, unwritable
from corollary.store.layout import CHUNKS, TERMS_SCHEMA, changes_schema, width_of
from corollary.store.manifest import DataFile
from corollary.store.opening import open_terms
from corollary.store.rows import current

if TYPE_CHECKING:
    from corollary.store.store import Store

ATTEMPTS = 20  # to commit beside other writers
SMALL_FILES = 48  # of the facts, from which on they are merged after a commit
_SHARE = 8  # a file is small if all files have so many times its rows
_OURS = re.compile(r"[0-9a-f]{32}(-[0-9a-f]{8})?(\.parquet)?")  # what writers leave in a table
_DEAD = 4  # all files are merged if one row of so many does not count any more

_Result = TypeVar("_Result")


def needed(files: Sequence[DataFile]) -> bool:
    """Whether small files have piled up."""
    return len(_small(files)) > SMALL_FILES


def compact(
    store: Store, *, full: bool = False, author: str | None = None, attempts: int = ATTEMPTS
) -> Commit | None:
    """Merge small files, or all; returns the commit, or None if there was nothing to do.

    With `full`, or when many rows do not count any more, all files of facts are merged. If other
    writers commit meanwhile, it begins again, up to so many times.
    """
    return _retried(lambda: _compact(store, full=full, author=author), attempts)


def _retried(work: Callable[[], _Result], attempts: int = ATTEMPTS) -> _Result:
    """The result of what changes no fact, and may thus be done again after another writer."""
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
    rows = sum(file.rows for file in files)
    full = full or _DEAD * (rows - base.statistics.facts) > rows
    chosen = files if full else _small(files)
    _compact_terms(store)
    _compact_changes(store)
    if len(chosen) < 2 and not (full and rows > base.statistics.facts):
        return None
    started = time.perf_counter()
    found = current(parquet.read(store.facts, chosen, store.snapshot(base.version).schema))
    settles = len(chosen) == len(files)
    if settles:
        found = found.filter(pc.invert(found["deleted"]))
    writer.replace_files(chosen, settles=settles)
    writer.add_facts(found)
    version = writer.commit(
        statistics=Statistics(
            base.statistics.relations,
            algorithm="compaction",
            reason=f"{len(chosen)} files merged",
            engine="columnar",
            seconds={"compact": round(time.perf_counter() - started, 6)},
        ),
        kind="compact",
        message=f"{len(chosen)} files merged",
    )
    if settles:  # what lies over an older cache cannot be told any more
        dictionary = open_terms(store.snapshot(version))
        made = columns(found, dictionary.find(TYPE))
        cache.write(store, version, [made], dictionary.arrays())
    return store.commit(version)


def _small(files: Sequence[DataFile]) -> list[DataFile]:
    total = sum(file.rows for file in files)
    return [file for file in files if _SHARE * file.rows < total]


def _compact_terms(store: Store) -> None:
    """The small files of the terms as one, in the order of their ids."""
    version = store.terms.latest()
    files = _small(store.terms.files(version))
    if len(files) > SMALL_FILES:
        rows = parquet.read(store.terms, files, TERMS_SCHEMA).sort_by("id")
        new = parquet.write(store.terms, rows, TERMS_SCHEMA)
        _rewrite(store.terms, new, files, TERMS_SCHEMA, version)


def _compact_changes(store: Store) -> None:
    """The files of the changes as one, without rows of attempts that became no version."""
    version = store.changes.latest()
    files = store.changes.files(version)
    if len(files) <= SMALL_FILES:
        return
    newest = store.latest()
    names = store.changes.columns(version)
    schema = changes_schema(width_of(names))
    rows = parquet.read(store.changes, files, schema)
    made = pa.array([commit.id for commit in store.log()])
    kept = pc.or_(pc.is_in(rows["commit"], made), pc.greater(rows["version"], newest))
    new = parquet.write(store.changes, rows.filter(kept).sort_by("version"), schema)
    _rewrite(store.changes, new, files, schema, version)


def _rewrite(
    table: Table, new: DataFile, files: Sequence[DataFile], schema: pa.Schema, version: int
) -> None:
    try:
        table.commit([new], schema, removed=files, base=version, rewrites=True)
    except Conflict:  # a writer was faster; there is another time
        (table.folder / new.path).unlink(missing_ok=True)


def vacuum(
    store: Store, *, keep: int | None = None, older_than: float = 24.0, dry_run: bool = False
) -> list[Path]:
    """Remove files that no version needs; returns them.

    All versions stay, or the last `keep` ones: the others cannot be read afterwards, and a commit
    says so. Files that no version ever had, such as those of a writer that was killed, are removed
    when they are older than so many hours, as a writer may be at work.
    """
    if keep is not None and keep < 1:
        raise InvalidInput("E507", "at least one version must be kept")
    newest = store.commit()
    oldest = newest.oldest if keep is None else max(newest.oldest, newest.version - keep + 1)
    if oldest > newest.oldest and not dry_run:
        newest = _retried(lambda: _set_oldest(store, oldest))
    limit = time.time() - older_than * 3600
    gone: list[Path] = []
    for table, first in ((store.facts, oldest), (store.terms, None), (store.changes, None)):
        gone += _unneeded(table, first, limit)
    gone += _unneeded(store.rules, None, limit)
    gone += cache.unfinished(store, limit)
    gone += chunk_files.unneeded(store.path / CHUNKS, newest.id, limit)
    if not dry_run:
        for path in gone:
            with unwritable(path):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
    return gone


def _set_oldest(store: Store, oldest: int) -> Commit:
    """Commit that versions before one cannot be read any more."""
    newest = store.commit()
    version = store.writer(newest.version).commit(
        statistics=replace(newest.statistics, inserted=0, deleted=0, algorithm="", reason=""),
        kind="vacuum",
        message=f"versions before {oldest} removed",
        oldest=max(oldest, newest.oldest),
    )
    return store.commit(version)


def _unneeded(table: Table, oldest: int | None, limit: float) -> list[Path]:
    """The files of a table that no version from `oldest` on has, the newest alone if None."""
    first = table.latest() if oldest is None else oldest
    needed = {file.path for file in table.files(first)}
    known: set[str] = set()
    for version in range(table.latest() + 1):
        for action in table.actions(version):
            if "add" in action:
                known.add(action["add"]["path"])
                if version >= first:
                    needed.add(action["add"]["path"])
    found = []
    for path in sorted(table.folder.rglob("*")):
        parts = path.relative_to(table.folder).parts
        name = "/".join(parts)
        if name in needed or parts[0] == LOG or not path.is_file():
            continue
        if name in known or (_OURS.fullmatch(parts[0]) and is_older(path, limit)):
            found.append(path)
    return found
