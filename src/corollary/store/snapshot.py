"""`Snapshot`: one version of a store, read lazily."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.object_store import StorePath
from corollary.errors import OperationFailed
from corollary.lang.program import Program
from corollary.store import parquet, programs
from corollary.store.commits import Commit, Statistics
from corollary.store.delta import Table, damage
from corollary.store.layout import TERMS_SCHEMA, arguments, facts_schema, width_of
from corollary.store.manifest import DataFile
from corollary.store.rows import live

if TYPE_CHECKING:
    from corollary.store.store import Store


class Snapshot:
    """An immutable version of a store; it owns the parsed commit."""

    def __init__(self, store: Store, commit: Commit) -> None:
        self.store = store
        self.commit = commit

    @property
    def version(self) -> int:
        """The number of the version."""
        return self.commit.version

    @property
    def mode(self) -> str:
        """`materialized` or `hybrid`."""
        return self.commit.mode

    @property
    def statistics(self) -> Statistics:
        """Fact counts, and how the version was computed."""
        return self.commit.statistics

    @cached_property
    def program(self) -> Program:
        """The rules, constraints and axioms, with the prefixes of the data."""
        commit = self.commit
        stored = programs.read(self.store.rules, commit.program, commit.rules + commit.axioms)
        declarations = Program.parse(commit.declarations).declarations
        return replace(stored, prefixes=dict(commit.prefixes), declarations=declarations)

    @cached_property
    def fact_data(self) -> list[DataFile]:
        """The files of the facts."""
        return self.store.facts.files(self.version)

    @cached_property
    def term_data(self) -> list[DataFile]:
        """The files of the terms, an append-only table.

        The newest version includes the terms of failed writers; an older version ignores terms
        that were added later.
        """
        table, last = self.store.terms, self.commit.terms - 1
        if self.version == self.store.latest():
            return table.files()
        try:
            return table.files_between(0, last)
        except OperationFailed:  # the damage may be in a later log entry
            for version in range(table.latest() - 1, -1, -1):
                with suppress(OperationFailed):
                    files = table.files_between(0, last, version)
                    if sum(file.rows for file in files) > last:
                        return files
            raise

    def fact_files(self) -> list[StorePath]:
        """The Parquet files of the facts, tombstones included, for external readers."""
        return _paths(self.store.facts, self.fact_data)

    def term_files(self) -> list[StorePath]:
        """The Parquet files of the terms, for external readers."""
        return _paths(self.store.terms, self.term_data)

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the facts table at this version."""
        names = self.store.facts.columns(self.version)
        return facts_schema(width_of(names))

    def terms(self) -> pa.Table:
        """`id`, `term` and `hash`, sorted by id: 0, 1, 2, …"""
        terms = parquet.read(self.store.terms, self.term_data, TERMS_SCHEMA)
        if len(self.term_data) > 1:
            terms = terms.sort_by("id")
        ids = terms["id"].to_numpy()
        if len(ids) < self.commit.terms or (len(ids) and (ids[0], ids[-1]) != (0, len(ids) - 1)):
            raise damage(self.store.terms.folder, f"ids are missing among its {len(ids):,} terms")
        return terms

    def facts(self, relation: str | None = None) -> pa.Table:
        """All facts or those of one relation: `relation`, `arg0`, `arg1`, … and `explicit`."""
        rows = parquet.read(self.store.facts, self.fact_data, self.schema)
        if relation is not None:
            rows = rows.filter(pc.equal(rows["relation"], relation))
        names = ["relation", *arguments(width_of(self.schema.names)), "explicit"]
        return live(rows).select(names)

    def __repr__(self) -> str:
        return f"<Snapshot: version {self.version}, {self.statistics.facts:,} facts>"


def _paths(table: Table, files: list[DataFile]) -> list[StorePath]:
    """The paths of files: local ones are verified, remote ones by those who download them."""
    paths = [table.folder / file.path for file in files]
    for path, file in zip(paths, files, strict=True):
        if isinstance(path, Path):
            parquet.check(path, file)
    return paths
