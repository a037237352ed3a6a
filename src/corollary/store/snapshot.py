"""`Snapshot`: what a version of a store consists of; nothing is read before it is asked for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from corollary.errors import OperationFailed
from corollary.lang.program import Program
from corollary.store import parquet, programs
from corollary.store.commits import Commit, Statistics
from corollary.store.delta import Table, damage
from corollary.store.layout import TERMS_SCHEMA, arguments, facts_schema, width_of
from corollary.store.manifest import DataFile
from corollary.store.rows import current

if TYPE_CHECKING:
    from corollary.store.store import Store


class Snapshot:
    """A version, which nobody can change."""

    def __init__(self, store: Store, commit: Commit) -> None:
        self.store = store
        self.commit = commit

    @property
    def version(self) -> int:
        """Its number."""
        return self.commit.version

    @property
    def mode(self) -> str:
        """`materialized`, or `hybrid`."""
        return self.commit.mode

    @property
    def statistics(self) -> Statistics:
        """Counts, and how they came about."""
        return self.commit.statistics

    @cached_property
    def program(self) -> Program:
        """The rules, constraints and axioms, with the prefixes of the data as well."""
        commit = self.commit
        found = programs.read(self.store.rules, commit.program, commit.rules + commit.axioms)
        return replace(found, prefixes=dict(commit.prefixes))

    @cached_property
    def fact_data(self) -> list[DataFile]:
        """The files of the facts, with their sizes."""
        return self.store.facts.files(self.version)

    @cached_property
    def term_data(self) -> list[DataFile]:
        """The files of the terms, which are only ever appended to.

        The newest version has all of them, those of writers that did not succeed included; an
        older one needs none that came later.
        """
        table, last = self.store.terms, self.commit.terms - 1
        if self.version == self.store.latest():
            return table.files()
        try:
            return table.files_between(0, last)
        except OperationFailed:  # of a later entry of the log, perhaps
            for version in range(table.latest() - 1, -1, -1):
                with suppress(OperationFailed):
                    found = table.files_between(0, last, version)
                    if sum(file.rows for file in found) > last:
                        return found
            raise

    def fact_files(self) -> list[Path]:
        """The Parquet files of the facts, tombstones included, for readers that check nothing."""
        return _checked(self.store.facts, self.fact_data)

    def term_files(self) -> list[Path]:
        """The Parquet files of the terms, for readers that check nothing."""
        return _checked(self.store.terms, self.term_data)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the facts table, as many arguments as this version has."""
        names = self.store.facts.columns(self.version)
        return facts_schema(width_of(names))

    def terms(self) -> pa.Table:
        """`id`, `term` and `hash`, in the order of the ids, which are 0, 1, 2, …"""
        found = parquet.read(self.store.terms, self.term_data, TERMS_SCHEMA)
        if len(self.term_data) > 1:
            found = found.sort_by("id")
        ids = found["id"].to_numpy()
        if len(ids) < self.commit.terms or (len(ids) and (ids[0], ids[-1]) != (0, len(ids) - 1)):
            raise damage(self.store.terms.folder, f"it has {len(ids):,} terms, and not all ids")
        return found

    def facts(self, relation: str | None = None) -> pa.Table:
        """The facts, or those of a relation: `relation`, `arg0`, `arg1`, … and `explicit`."""
        rows = parquet.read(self.store.facts, self.fact_data, self.schema)
        if relation is not None:
            rows = rows.filter(pc.equal(rows["relation"], relation))
        alive = current(rows)
        names = ["relation", *arguments(width_of(self.schema.names)), "explicit"]
        return alive.filter(pc.invert(alive["deleted"])).select(names)

    def __repr__(self) -> str:
        return f"<Snapshot: version {self.version}, {self.statistics.facts:,} facts>"


def _checked(table: Table, files: list[DataFile]) -> list[Path]:
    paths = [table.folder / file.path for file in files]
    for path, file in zip(paths, files, strict=True):
        parquet.check(path, file)
    return paths
