"""Open a version for the embedded engine: its terms and facts, from the cache if possible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.dictionary import Dictionary
from corollary.lang.syntax import TYPE
from corollary.store import cache, parquet
from corollary.store.columns import Columns, Label, Part, columns
from corollary.store.delta import damage
from corollary.store.layout import TERMS_SCHEMA
from corollary.store.rows import current, live
from corollary.store.slices import slices
from corollary.store.snapshot import Snapshot

# A new cache pays above this many rows newer than the cache, or this fraction of all facts.
_NEWER_ROWS_LIMIT = 100_000
_NEWER_ROWS_SHARE = 10


class OpenedVersion(NamedTuple):
    """The facts of a version: cached `columns`, overridden by `newer_rows`.

    There is one newer row per fact, with `explicit` and `deleted`.
    """

    dictionary: Dictionary
    columns: Columns
    newer_rows: pa.Table

    def split(self) -> tuple[Columns, Columns]:
        """The newer facts, and those deleted since the cache was written."""
        type_id = self.dictionary.find(TYPE)
        deleted = self.newer_rows["deleted"]
        return (
            columns(self.newer_rows.filter(pc.invert(deleted)), type_id),
            columns(self.newer_rows.filter(deleted), type_id),
        )


def open_columns(snapshot: Snapshot, *, keep: bool = True) -> OpenedVersion:
    """Read the terms and facts of a version; with `keep`, write a cache where it pays."""
    cached = _read_cache(snapshot)
    newer = _rows_after(snapshot, cached.version) if cached is not None else None
    if cached is not None and newer is not None:
        dictionary = Dictionary.of(cached.terms)
        _add_terms(dictionary, snapshot)
        opened = OpenedVersion(dictionary, cached.columns, current(newer))
        if newer.num_rows <= max(_NEWER_ROWS_LIMIT, snapshot.statistics.facts // _NEWER_ROWS_SHARE):
            return opened
    dictionary = Dictionary()
    _add_terms(dictionary, snapshot)
    no_rows = snapshot.schema.empty_table()
    arrays = dictionary.arrays()
    if keep and cache.write(snapshot.store, snapshot.version, _parts(snapshot, dictionary), arrays):
        cached = cache.read(snapshot.store, snapshot.version)
        if cached is not None and cached.version == snapshot.version:
            return OpenedVersion(dictionary, cached.columns, no_rows)
    facts: dict[Label, Part] = {}
    explicit: dict[Label, Part] = {}
    for part in _parts(snapshot, dictionary):
        facts |= part.facts
        explicit |= part.explicit
    return OpenedVersion(dictionary, Columns(facts, explicit), no_rows)


def open_newer(snapshot: Snapshot, dictionary: Dictionary, version: int) -> OpenedVersion | None:
    """Read what is newer than a version, whose terms the dictionary has, and add the new terms.

    None if deletions since then are unknown, or if there is so much that opening all is faster.
    """
    newer = _rows_after(snapshot, version)
    if newer is None or newer.num_rows > _NEWER_ROWS_LIMIT:
        return None
    _add_terms(dictionary, snapshot)
    return OpenedVersion(dictionary, Columns({}, {}), current(newer))


def _parts(snapshot: Snapshot, dictionary: Dictionary) -> Iterator[Columns]:
    """The facts of a version as arrays, slice by slice."""
    type_id = dictionary.find(TYPE)
    for rows in slices(snapshot):
        yield columns(live(rows), type_id)


def open_terms(snapshot: Snapshot) -> Dictionary:
    """Read only the terms of a version."""
    cached = _read_cache(snapshot, facts=False)
    dictionary = Dictionary.of(cached.terms) if cached is not None else Dictionary()
    _add_terms(dictionary, snapshot)
    return dictionary


def _read_cache(snapshot: Snapshot, *, facts: bool = True) -> cache.CachedColumns | None:
    """The cache, unless it has terms that the table lacks."""
    cached = cache.read(snapshot.store, snapshot.version, facts=facts)
    if cached is None or snapshot.version != snapshot.store.latest():
        return cached
    return cached if cached.terms.terms <= sum(f.rows for f in snapshot.term_data) else None


def _add_terms(dictionary: Dictionary, snapshot: Snapshot) -> None:
    """Add the terms that the dictionary lacks."""
    table, known = snapshot.store.terms, len(dictionary)
    data = snapshot.term_data
    wanted = sum(file.rows for file in data)
    if wanted < snapshot.commit.terms:
        raise damage(table.folder, f"it has {wanted:,} terms instead of {snapshot.commit.terms:,}")
    if snapshot.version < snapshot.store.latest():  # later terms are neither needed nor trusted
        wanted = snapshot.commit.terms
        if known >= wanted:
            return
    if wanted == known:
        return
    # Files are appended in id order, so most of them can be skipped.
    new = [file for file in data if file.high is None or file.high >= known]
    rows = parquet.read(table, new, TERMS_SCHEMA, ["id", "term"])
    chosen = pc.and_(pc.greater_equal(rows["id"], known), pc.less(rows["id"], wanted))
    rows = rows.filter(chosen).sort_by("id")
    ids = rows["id"].to_numpy()
    if len(ids) != wanted - known or not np.array_equal(ids, np.arange(known, wanted)):
        raise damage(table.folder, f"terms are missing between ids {known:,} and {wanted:,}")
    for chunk in rows["term"].chunks:
        first = len(dictionary)
        ids = dictionary.encode_texts(chunk)
        if not np.array_equal(ids, np.arange(first, first + len(chunk))):
            raise damage(table.folder, "duplicate term")


def _rows_after(snapshot: Snapshot, version: int) -> pa.Table | None:
    """The rows newer than a version; None if deletions since then are unknown."""
    if snapshot.commit.settled > version:
        return None
    table = snapshot.store.facts
    files = table.files_between(version + 1, snapshot.version, snapshot.version)
    rows = parquet.read(table, files, snapshot.schema)
    return rows.filter(pc.greater(rows["version"], version))
