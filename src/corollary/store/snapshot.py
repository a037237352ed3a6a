"""`Snapshot`: what a version of a store consists of; nothing is read before it is asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from corollary.lang.program import Program
from corollary.store import parquet, programs
from corollary.store.commits import Commit, Statistics
from corollary.store.delta import DataFile, damage
from corollary.store.layout import TERMS_SCHEMA, arguments, facts_schema, width_of
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
        """The rules, with the prefixes of the data as well."""
        found = programs.read(self.store.rules, self.commit.program, self.commit.rules)
        return Program(found.rules, (), dict(self.commit.prefixes), found.constraints)

    @cached_property
    def fact_data(self) -> list[DataFile]:
        """The files of the facts, with their sizes."""
        return self.store.facts.files(self.version)

    @cached_property
    def term_data(self) -> list[DataFile]:
        """The files of the terms: of all that the table has, as it is only appended to."""
        return self.store.terms.files()

    def fact_files(self) -> list[Path]:
        """The Parquet files of the facts, tombstones included."""
        return [self.store.facts.folder / file.path for file in self.fact_data]

    def term_files(self) -> list[Path]:
        """The Parquet files of the terms."""
        return [self.store.terms.folder / file.path for file in self.term_data]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the facts table, as many arguments as this version has."""
        names = [field.name for field in self.store.facts.open(self.version).schema().fields]
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
