"""`Writer`: prepares the files of one version, then commits them atomically."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa

from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.program import Program
from corollary.store import layout, parquet, programs
from corollary.store.commits import Commit, Statistics
from corollary.store.delta import Conflict, Table
from corollary.store.manifest import DataFile
from corollary.store.rows import sort_rows

if TYPE_CHECKING:
    from corollary.store.store import Store

__all__ = ["Statistics", "Writer"]


class CommitFields(TypedDict, total=False):
    """Fields of a `Commit` that its writer may set.

    `batch` identifies the commit for idempotent retries. `asserted` lists, as text, the axioms of
    the program that are also data.
    """

    asserted: Sequence[str]
    prefixes: Mapping[str, str]
    declarations: str
    mode: str
    equality: str
    materialize: Sequence[str]
    kind: str
    message: str
    batch: str | None
    oldest: int


class Writer:
    """Collects the files of a version and commits them.

    Rows of facts carry the number of the new version: `version`. New terms get consecutive ids
    from `first_term` on. `add_fact_files`, `add_term_files` and `add_change_files` accept files
    that others, such as Spark tasks, have written into the folders of the tables.
    """

    def __init__(self, store: Store, base: Commit, *, author: str) -> None:
        """Use `Store.writer`."""
        self.store = store
        self.base = base
        self.id = uuid.uuid4().hex
        self._author = author
        self._terms_version = store.terms.latest()
        self.first_term = sum(file.rows for file in store.terms.files(self._terms_version))
        self.stored_terms = self.first_term  # with those of this writer once they are committed
        self._terms: list[DataFile] = []
        self._facts: list[DataFile] = []
        self._changes: list[DataFile] = []
        self._replaced: list[DataFile] = []
        self._rewrites = self._drops_tombstones = False
        names = store.facts.columns(base.version)
        self._width = self._table_width = layout.width_of(names)

    @property
    def version(self) -> int:
        """The version number that rows must carry.

        Widening the table takes a commit of its own: call `reserve` before reading this.
        """
        return self.base.version + 1 + (self._width > self._table_width)

    @property
    def width(self) -> int:
        """The number of argument columns after the commit."""
        return self._width

    def reserve(self, width: int) -> None:
        """Reserve columns for facts with `width` arguments."""
        if width > self._width and (self._facts or self._changes):
            raise InvalidInput("E507", "reserve argument columns before adding facts")
        self._width = max(self._width, width)

    # -- files -------------------------------------------------------------------------------------

    def add_terms(self, texts: pa.Array | pa.ChunkedArray | Iterable[pa.Array]) -> DataFile:
        """Add terms as canonical texts, with consecutive ids from `first_term` on, as one file."""
        from corollary.store import term_hash  # loads the compiler

        parts = [texts] if isinstance(texts, pa.Array | pa.ChunkedArray) else texts
        next_id = self.first_term + sum(file.rows for file in self._terms)

        def tables() -> Iterator[pa.Table]:
            at = next_id
            for part in parts:
                ids = pa.array(np.arange(at, at + len(part), dtype=np.int64))
                at += len(part)
                yield pa.table(
                    [ids, part.cast(pa.string()), term_hash.hashes(part)],
                    names=layout.TERMS_SCHEMA.names,
                )

        file = parquet.write(self.store.terms, tables(), layout.TERMS_SCHEMA)
        if file.rows:
            self._terms.append(file)
        return file

    def add_facts(
        self,
        rows: pa.Table | Iterable[pa.Table],
        *,
        explicit: bool = False,
        deleted: bool = False,
    ) -> None:
        """Add rows with `relation`, `arg0`, `arg1`, … as one file.

        Columns `explicit` and `deleted` of the rows override the parameters. A single table is
        sorted; the tables of an iterable are written in the given order.
        """
        parts = [sort_rows(rows)] if isinstance(rows, pa.Table) else rows
        schema = layout.facts_schema(self._width)
        file = parquet.write(
            self.store.facts, (self._complete(p, schema, explicit, deleted) for p in parts), schema
        )
        if file.rows:
            self._facts.append(file)

    def add_changes(self, rows: pa.Table) -> None:
        """Add changes since the previous version: `change`, `relation`, `arg0`, …, `explicit`."""
        schema = layout.changes_schema(self._width)
        file = parquet.write(self.store.changes, self._complete(rows, schema, False, False), schema)
        if file.rows:
            self._changes.append(file)

    def add_term_files(self, names: Sequence[str]) -> None:
        """Add files in the folder of `terms`: `id`, `term`, `hash` (`term_hash.hashes`)."""
        self._terms += _describe(self.store.terms, names)

    def add_fact_files(self, names: Sequence[str]) -> None:
        """Add files in the folder of `facts`; all their rows carry `version`."""
        self._facts += _describe(self.store.facts, names, self.version)

    def add_change_files(self, names: Sequence[str]) -> None:
        """Add files in the folder of `changes`; all their rows carry `version` and `id`."""
        self._changes += _describe(self.store.changes, names, self.version)

    def replace_files(self, files: Sequence[DataFile], *, drops_tombstones: bool) -> None:
        """Replace files by added ones with the same content, as a compaction does.

        `drops_tombstones` says that the new version has no tombstones left.
        """
        self._replaced, self._rewrites = list(files), True
        self._drops_tombstones = drops_tombstones

    # -- the commit --------------------------------------------------------------------------------

    def commit(
        self,
        *,
        statistics: Statistics,
        program: Program | None = None,
        **fields: Unpack[CommitFields],
    ) -> int:
        """Commit the version and return its number; omitted fields stay as in the previous version.

        Terms, changes and rules are committed first and are harmless on their own. The commit of
        the facts makes the version; if another writer was faster, it fails and no version is made.
        """
        layout.check_mode(fields.get("mode", self.base.mode))
        changed: dict[str, Any] = {"kind": "update", "message": "", "batch": None}
        if program is not None:
            changed |= {
                "prefixes": program.prefixes,
                "declarations": str(program.declarations.columns_only()),
                "program": programs.write(self.store.rules, program),
                "rules": len(program.rules) + len(program.constraints),
                "axioms": len(program.axioms),
            }
        changed |= fields
        try:
            terms = self._commit_terms()
            self._commit_changes()
            commit = replace(
                self.base,
                id=self.id,
                author=self._author,
                terms=terms,
                settled=self.version if self._drops_tombstones else self.base.settled,
                changes=self._recorded(),
                statistics=statistics,
                **changed,
            )
            before = self.base.version
            if self._width > self._table_width:
                self._widen_facts()
                before += 1
            return self.store.facts.commit(
                self._facts,
                layout.facts_schema(self._width),
                removed=self._replaced,
                info=commit.info(),
                base=before,
                rewrites=self._rewrites,
            )
        except Conflict:
            raise self.conflict() from None

    def _recorded(self) -> str:
        """Where the changes of this version are (`Commit.changes`)."""
        if self._changes:
            return "table"
        if not self._facts or self._rewrites:
            return "none"
        return "diff" if self.base.statistics.facts else "facts"

    def _commit_terms(self) -> int:
        if self._terms:
            self.store.terms.commit(self._terms, layout.TERMS_SCHEMA, base=self._terms_version)
            self.stored_terms += sum(file.rows for file in self._terms)
        return self.stored_terms

    def _widen_facts(self) -> None:
        commit = replace(
            self.base,
            id=uuid.uuid4().hex,
            kind="widen",
            message=f"widen facts to {self._width} arguments",
            author=self._author,
            changes="none",
            batch=None,
        )
        self.store.facts.widen(
            layout.facts_schema(self._width), commit.info(), base=self.base.version
        )

    def _commit_changes(self) -> None:
        if not self._changes:
            return
        table, schema = self.store.changes, layout.changes_schema(self._width)
        if self._width > layout.WIDTH and layout.width_of(table.columns()) < self._width:
            table.widen(schema)
        table.commit(self._changes, schema)

    def _complete(
        self, rows: pa.Table, schema: pa.Schema, explicit: bool, deleted: bool
    ) -> pa.Table:
        """Add missing columns: defaults for flags and version, nulls for arguments."""
        count = rows.num_rows
        defaults = {
            "version": pa.array(np.full(count, self.version, np.int64)),
            "commit": pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(count, np.int32)), pa.array([self.id])
            ).cast(pa.string()),
            "explicit": pa.array(np.full(count, explicit)),
            "deleted": pa.array(np.full(count, deleted)),
        }
        for name in {*rows.column_names} - {*schema.names}:
            if name in layout.arguments(layout.width_of(rows.column_names)):
                raise InvalidInput(
                    "E507", f"the table has {self._width} argument columns, and {name} is not one"
                )
        return parquet.conform(rows, schema, defaults)

    def conflict(self) -> OperationFailed:
        """The error for a commit that lost the race against another writer."""
        newest = self.store.latest()
        if newest > self.base.version:
            other = self.store.commit(newest)
            by = f" by {other.author}" if other.author else ""
            text = f"another writer has committed version {newest}{by}"
        else:
            text = "another writer has added terms"
        return OperationFailed(
            "E502",
            f"{text}; this change is based on version {self.base.version}",
            "reopen the store and repeat the change",
            file=str(self.store.path),
        )


def _describe(table: Table, names: Sequence[str], version: int | None = None) -> list[DataFile]:
    """The files that have rows; fail if they carry another version."""
    files = [parquet.describe(table, name) for name in names]
    for file in files:
        stats = json.loads(file.stats)
        for values in (stats["minValues"], stats["maxValues"]):
            if version is not None and values.get("version", version) != version:
                raise InvalidInput(
                    "E507",
                    f"rows of {file.path} carry version {values['version']},"
                    f" but this writer makes version {version}",
                )
    return [file for file in files if file.rows]
