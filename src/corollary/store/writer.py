"""`Writer`: one commit, prepared step by step, and then made at once or not at all."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.program import Program
from corollary.store import parquet, programs
from corollary.store.commits import Commit, Statistics
from corollary.store.delta import Conflict
from corollary.store.layout import (
    MODES,
    TERMS_SCHEMA,
    WIDTH,
    arguments,
    changes_schema,
    facts_schema,
    width_of,
)
from corollary.store.manifest import DataFile
from corollary.store.rows import in_order

if TYPE_CHECKING:
    from corollary.store.store import Store

__all__ = ["Statistics", "Writer"]


class Writer:
    """Collects the files of a version, and commits them.

    Rows of facts carry the number of the version that is made: `version`. New terms have the ids
    from `first_term` on, without gaps. Files may have been written already, by tasks of Spark say,
    into the folders of the tables: `add_fact_files`, `add_term_files`, `add_change_files`.
    """

    def __init__(self, store: Store, base: Commit, *, author: str) -> None:
        """Use `Store.writer`."""
        self.store = store
        self.base = base
        self.id = uuid.uuid4().hex
        self._author = author
        self._terms_version = store.terms.latest()
        known = store.terms.files(self._terms_version)
        self.first_term = sum(file.rows for file in known)
        self.stored_terms = self.first_term  # with those of this writer, once they are committed
        self._terms: list[DataFile] = []
        self._facts: list[DataFile] = []
        self._changes: list[DataFile] = []
        self._replaced: list[DataFile] = []
        self._rewrites = self._settles = False
        names = store.facts.columns(base.version)
        self._width = self._table_width = width_of(names)

    @property
    def version(self) -> int:
        """The version that rows must carry.

        A relation with more arguments than the table has so far costs a commit more: `reserve` them
        before this is asked for.
        """
        return self.base.version + 1 + (self._width > self._table_width)

    @property
    def width(self) -> int:
        """How many columns of arguments there will be."""
        return self._width

    def reserve(self, width: int) -> None:
        """Make room for facts with so many arguments."""
        if width > self._width and (self._facts or self._changes):
            raise InvalidInput("E507", "room for arguments is made before facts are added")
        self._width = max(self._width, width)

    # -- what is written ---------------------------------------------------------------------------

    def add_terms(self, texts: pa.Array | pa.ChunkedArray | Iterable[pa.Array]) -> None:
        """New terms, as canonical texts; the first one gets the id `first_term`, and so on."""
        from corollary.store import term_hash  # loads the compiler

        parts = [texts] if isinstance(texts, pa.Array | pa.ChunkedArray) else texts
        next_id = self.first_term + sum(file.rows for file in self._terms)

        def tables() -> Iterator[pa.Table]:
            at = next_id
            for part in parts:
                ids = pa.array(np.arange(at, at + len(part), dtype=np.int64))
                at += len(part)
                yield pa.table(
                    [ids, part.cast(pa.string()), term_hash.hashes(part)], names=TERMS_SCHEMA.names
                )

        file = parquet.write(self.store.terms, tables(), TERMS_SCHEMA)
        if file.rows:
            self._terms.append(file)

    def add_facts(
        self,
        rows: pa.Table | Iterable[pa.Table],
        *,
        explicit: bool = False,
        deleted: bool = False,
    ) -> None:
        """Rows with `relation`, `arg0`, `arg1`, … as one file.

        They may have columns `explicit` and `deleted`, else these are as given. Tables of an
        iterable are written in the order in which they come, a single table is put in order.
        """
        parts = [in_order(rows)] if isinstance(rows, pa.Table) else rows
        schema = facts_schema(self._width)
        file = parquet.write(
            self.store.facts, (self._filled(p, schema, explicit, deleted) for p in parts), schema
        )
        if file.rows:
            self._facts.append(file)

    def add_changes(self, rows: pa.Table) -> None:
        """What differs from the version before: `change`, `relation`, `arg0`, …, `explicit`."""
        schema = changes_schema(self._width)
        file = parquet.write(self.store.changes, self._filled(rows, schema, False, False), schema)
        if file.rows:
            self._changes.append(file)

    def add_term_files(self, names: Sequence[str]) -> None:
        """Files in the folder of `terms`: `id`, `term`, `hash` (`term_hash.hashes`)."""
        files = [parquet.described(self.store.terms, name) for name in names]
        self._terms += [file for file in files if file.rows]

    def add_fact_files(self, names: Sequence[str]) -> None:
        """Files in the folder of `facts`, all rows of which carry `version`."""
        files = [parquet.described(self.store.facts, name) for name in names]
        for file in files:
            self._refuse_other_version(file)
        self._facts += [file for file in files if file.rows]

    def add_change_files(self, names: Sequence[str]) -> None:
        """Files in the folder of `changes`, all rows of which carry `version` and `id`."""
        files = [parquet.described(self.store.changes, name) for name in names]
        for file in files:
            self._refuse_other_version(file)
        self._changes += [file for file in files if file.rows]

    def replace_facts(self) -> None:
        """Let the files that are added take the place of all that the version before has."""
        self._replaced, self._settles = self.store.facts.files(self.base.version), True

    def replace_files(self, files: Sequence[DataFile], *, settles: bool) -> None:
        """Let the files that are added say what these files say, as a compaction does.

        Without tombstones it `settles`: what the other files do not have was never there.
        """
        self._replaced, self._rewrites, self._settles = list(files), True, settles

    # -- the commit --------------------------------------------------------------------------------

    def commit(
        self,
        *,
        statistics: Statistics,
        program: Program | None = None,
        asserted: Sequence[str] | None = None,
        prefixes: Mapping[str, str] | None = None,
        mode: str | None = None,
        equality: str | None = None,
        materialize: Sequence[str] | None = None,
        kind: str = "update",
        message: str = "",
        batch: str | None = None,
        oldest: int | None = None,
    ) -> int:
        """Make the version. What is not given is as it was in the version before.

        Terms, changes and rules are committed first and do no harm alone; the commit of the facts
        makes the version, unless another writer has made one: that is an error, and nothing has
        changed. `batch` names what is committed, for those who must not do it twice. `asserted`
        are the axioms of the program that are data as well, as text.
        """
        if mode is not None and mode not in MODES:
            raise InvalidInput("E507", f"there is no mode {mode}", f"there are {', '.join(MODES)}")
        store, base = self.store, self.base
        if prefixes is None and program is not None:
            prefixes = program.prefixes
        rules = (base.program, base.rules, base.axioms)
        if program is not None:
            count = len(program.rules) + len(program.constraints)
            rules = programs.write(store.rules, program), count, len(program.axioms)
        try:
            terms = self._commit_terms()
            if self._changes:
                if self._width > WIDTH:
                    self._widen_changes()
                store.changes.commit(self._changes, changes_schema(self._width))
            changes = "table" if self._changes else "none"
            if not self._changes and self._facts and not self._rewrites:
                changes = "facts" if not base.statistics.facts else "diff"
            made = replace(
                base,
                id=self.id,
                kind=kind,
                message=message,
                author=self._author,
                program=rules[0],
                rules=rules[1],
                axioms=rules[2],
                asserted=list(base.asserted if asserted is None else asserted),
                mode=mode or base.mode,
                equality=equality or base.equality,
                materialize=list(base.materialize if materialize is None else materialize),
                terms=terms,
                batch=batch,
                oldest=base.oldest if oldest is None else oldest,
                settled=self.version if self._settles else base.settled,
                changes=changes,
                prefixes=dict(base.prefixes if prefixes is None else prefixes),
                statistics=statistics,
            )
            before = base.version
            if self._width > self._table_width:
                self._widen_facts()
                before += 1
            return store.facts.commit(
                self._facts,
                facts_schema(self._width),
                removed=self._replaced,
                info=made.info(),
                base=before,
                rewrites=self._rewrites,
            )
        except Conflict:
            raise self.conflict() from None

    def _commit_terms(self) -> int:
        if self._terms:
            self.store.terms.commit(self._terms, TERMS_SCHEMA, base=self._terms_version)
            self.stored_terms += sum(file.rows for file in self._terms)
        return self.stored_terms

    def _widen_facts(self) -> None:
        note = replace(
            self.base,
            id=uuid.uuid4().hex,
            kind="widen",
            message=f"room for {self._width} arguments",
            author=self._author,
            changes="none",
            batch=None,
        )
        self.store.facts.widen(facts_schema(self._width), note.info(), base=self.base.version)

    def _widen_changes(self) -> None:
        names = self.store.changes.columns()
        if width_of(names) < self._width:
            self.store.changes.widen(changes_schema(self._width))

    def _filled(self, rows: pa.Table, schema: pa.Schema, explicit: bool, deleted: bool) -> pa.Table:
        """Rows with all columns of a table."""
        count = rows.num_rows
        given = {
            "version": pa.array(np.full(count, self.version, np.int64)),
            "commit": pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(count, np.int32)), pa.array([self.id])
            ).cast(pa.string()),
            "explicit": pa.array(np.full(count, explicit)),
            "deleted": pa.array(np.full(count, deleted)),
        }
        known = {*rows.column_names}
        for name in known - {*schema.names}:
            if name in arguments(width_of(rows.column_names)):
                raise InvalidInput(
                    "E507", f"there are {self._width} columns of arguments, and no {name}"
                )
        columns = [
            rows.column(field.name).cast(field.type)
            if field.name in known
            else given.get(field.name, pa.nulls(count, field.type))
            for field in schema
        ]
        return pa.table(columns, schema=schema)

    def _refuse_other_version(self, file: DataFile) -> None:
        found = json.loads(file.stats)
        for values in (found["minValues"], found["maxValues"]):
            if values.get("version", self.version) != self.version:
                raise InvalidInput(
                    "E507",
                    f"rows of {file.path} carry version {values['version']},"
                    f" and version {self.version} is being made",
                )

    def conflict(self) -> OperationFailed:
        """The error that another writer was faster."""
        newest = self.store.latest()
        if newest > self.base.version:
            other = self.store.commit(newest)
            by = f" by {other.author}" if other.author else ""
            text = f"another writer has committed version {newest}{by}"
        else:
            text = "another writer has added terms"
        return OperationFailed(
            "E502",
            f"{text}; this change was made on version {self.base.version}",
            "open the store again and repeat the change",
            file=str(self.store.path),
        )
