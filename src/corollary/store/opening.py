"""What an engine in process begins with: terms and facts of a version, from the cache if it can."""

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
from corollary.store.rows import current
from corollary.store.slices import slices
from corollary.store.snapshot import Snapshot

_MANY = 100_000  # rows after the cache, or
_SHARE = 10  # one for so many facts: a new cache pays


class Opened(NamedTuple):
    """The facts of a version: those of `columns`, changed by rows that came `later`.

    These are one for each fact, with `explicit` and `deleted`.
    """

    dictionary: Dictionary
    columns: Columns
    later: pa.Table

    def split(self) -> tuple[Columns, Columns]:
        """What came later, and what is gone since."""
        type_id = self.dictionary.find(TYPE)
        gone = self.later["deleted"]
        return (
            columns(self.later.filter(pc.invert(gone)), type_id),
            columns(self.later.filter(gone), type_id),
        )


def open_columns(snapshot: Snapshot, *, keep: bool = True) -> Opened:
    """The terms and facts of a version; with `keep`, a cache is written where it pays."""
    found = _cached(snapshot)
    later = _later(snapshot, found.version) if found is not None else None
    if found is not None and later is not None:
        dictionary = Dictionary.of(found.terms)
        _add_terms(dictionary, snapshot)
        opened = Opened(dictionary, found.columns, current(later))
        if later.num_rows <= max(_MANY, snapshot.statistics.facts // _SHARE):
            return opened
    dictionary = Dictionary()
    _add_terms(dictionary, snapshot)
    nothing = snapshot.schema.empty_table()
    arrays = dictionary.arrays()
    if keep and cache.write(snapshot.store, snapshot.version, _parts(snapshot, dictionary), arrays):
        made = cache.read(snapshot.store, snapshot.version)
        if made is not None and made.version == snapshot.version:
            return Opened(dictionary, made.columns, nothing)
    facts: dict[Label, Part] = {}
    explicit: dict[Label, Part] = {}
    for part in _parts(snapshot, dictionary):
        facts |= part.facts
        explicit |= part.explicit
    return Opened(dictionary, Columns(facts, explicit), nothing)


def _parts(snapshot: Snapshot, dictionary: Dictionary) -> Iterator[Columns]:
    """The facts of a version as arrays, slice by slice."""
    type_id = dictionary.find(TYPE)
    for rows in slices(snapshot):
        found = current(rows)
        yield columns(found.filter(pc.invert(found["deleted"])), type_id)


def open_terms(snapshot: Snapshot) -> Dictionary:
    """The terms alone."""
    found = _cached(snapshot, facts=False)
    dictionary = Dictionary.of(found.terms) if found is not None else Dictionary()
    _add_terms(dictionary, snapshot)
    return dictionary


def _cached(snapshot: Snapshot, *, facts: bool = True) -> cache.Cached | None:
    """A cache, unless it has terms that the table does not have."""
    found = cache.read(snapshot.store, snapshot.version, facts=facts)
    newest = snapshot.version == snapshot.store.latest()
    if found is not None and newest and found.terms.terms > sum(f.rows for f in snapshot.term_data):
        return None
    return found


def _add_terms(dictionary: Dictionary, snapshot: Snapshot) -> None:
    """The terms that the dictionary does not have."""
    table, known = snapshot.store.terms, len(dictionary)
    data = snapshot.term_data
    wanted = sum(file.rows for file in data)
    if wanted < snapshot.commit.terms:
        raise damage(table.folder, f"it has {wanted:,} terms instead of {snapshot.commit.terms:,}")
    if snapshot.version < snapshot.store.latest():  # later terms are not needed, nor trusted
        wanted = snapshot.commit.terms
        if known >= wanted:
            return
    if wanted == known:
        return
    # Files are appended in the order of ids; of most of them nothing is needed.
    new = [file for file in data if file.high is None or file.high >= known]
    rows = parquet.read(table, new, TERMS_SCHEMA, ["id", "term"])
    chosen = pc.and_(pc.greater_equal(rows["id"], known), pc.less(rows["id"], wanted))
    rows = rows.filter(chosen).sort_by("id")
    ids = rows["id"].to_numpy()
    if len(ids) != wanted - known or not np.array_equal(ids, np.arange(known, wanted)):
        raise damage(table.folder, f"it does not have all terms from {known:,} to {wanted:,}")
    for chunk in rows["term"].chunks:
        first = len(dictionary)
        found = dictionary.encode_texts(chunk)
        if not np.array_equal(found, np.arange(first, first + len(chunk))):
            raise damage(table.folder, "a term is there twice")


def _later(snapshot: Snapshot, version: int) -> pa.Table | None:
    """The rows that came after a version; None if what is gone since cannot be told."""
    if snapshot.commit.settled > version:
        return None
    table = snapshot.store.facts
    files = table.files_between(version + 1, snapshot.version, snapshot.version)
    rows = parquet.read(table, files, snapshot.schema)
    return rows.filter(pc.greater(rows["version"], version))
