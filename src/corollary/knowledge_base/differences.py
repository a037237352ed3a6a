"""What versions of a store differ by, for people and for other programs."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corollary.core.dictionary import Dictionary
from corollary.errors import OperationFailed
from corollary.files.facts import replace_file
from corollary.knowledge_base.results import cells_of
from corollary.lang.printer import Printer
from corollary.lang.syntax import TRIPLE, Atom
from corollary.rdf.patch import write_patch
from corollary.store import Store
from corollary.store.changes import between, feed
from corollary.store.commits import Commit
from corollary.store.layout import (
    DELETED,
    INSERTED,
    MADE_DERIVED,
    MADE_EXPLICIT,
    TRIPLES,
    arguments,
    width_of,
)
from corollary.store.opening import open_terms
from corollary.store.rows import columns_of

_SIGNS = {INSERTED: "+", DELETED: "-", MADE_EXPLICIT: "!", MADE_DERIVED: "~"}


class Differences:
    """Facts that came and went, explicit and derived ones apart."""

    def __init__(
        self, rows: pa.Table, dictionary: Dictionary, prefixes: Mapping[str, str], title: str
    ) -> None:
        self._rows = rows
        self._dictionary = dictionary
        self._prefixes = prefixes
        self.title = title

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    @cached_property
    def table(self) -> pa.Table:
        """`change`, `relation`, `arg0`, `arg1`, … as cells of facts files have them, `explicit`.

        A change is inserted, deleted, explicit (it was derived) or derived (it was explicit).
        """
        columns = columns_of(self._rows)
        cells = {f"arg{n}": cells_of(ids, self._dictionary) for n, ids in enumerate(columns)}
        names = {name: self._rows[name] for name in ("change", "relation")}
        return pa.table(names | cells | {"explicit": self._rows["explicit"]})

    @property
    def inserted(self) -> pa.Table:
        """The facts that are new."""
        return self._only(INSERTED)

    @property
    def deleted(self) -> pa.Table:
        """The facts that are gone; `explicit` tells what they were."""
        return self._only(DELETED)

    def counts(self) -> dict[str, int]:
        """How many facts came and went, explicit and derived ones apart."""
        change, explicit = self._rows["change"], self._rows["explicit"]
        found = {}
        for name, kind, flag in (
            ("inserted_explicit", INSERTED, True),
            ("inserted_derived", INSERTED, False),
            ("deleted_explicit", DELETED, True),
            ("deleted_derived", DELETED, False),
            ("made_explicit", MADE_EXPLICIT, True),
            ("made_derived", MADE_DERIVED, False),
        ):
            mask = pc.and_(pc.equal(change, kind), pc.equal(explicit, flag))
            found[name] = pc.sum(mask).as_py() or 0
        return found

    def lines(self, which: str = "all") -> Iterator[str]:
        """One line a fact: + and - as `corollary apply` prints them, with what is derived told."""
        printer = Printer(self._prefixes)
        rows = self._which(which)
        names = arguments(width_of(rows.column_names))
        found = []
        for row in rows.to_pylist():
            change, relation, explicit = row["change"], row["relation"], row["explicit"]
            ids = [row[name] for name in names if row[name] is not None]
            terms = tuple(self._dictionary.terms(ids))
            atom = Atom(TRIPLE if relation == TRIPLES else relation, terms)
            mark = "" if explicit else "   derived"
            if change in (MADE_EXPLICIT, MADE_DERIVED):
                mark = f"   {change} now"
            found.append((printer.atom(atom), f"{_SIGNS[change]} {printer.atom(atom)}{mark}"))
        return (line for _, line in sorted(found))

    def triples(self, which: str = "explicit") -> tuple[list[str], list[str]]:
        """Deleted and inserted triples as lines of N-Triples.

        Of explicit triples, those that were derived before are among the inserted ones, and those
        that still are derived among the deleted ones.
        """
        rows = self._rows.filter(pc.equal(self._rows["relation"], TRIPLES))
        change, explicit = rows["change"], rows["explicit"]
        gone, new = pc.equal(change, DELETED), pc.equal(change, INSERTED)
        if which == "explicit":
            gone = pc.or_(pc.and_(gone, explicit), pc.equal(change, MADE_DERIVED))
            new = pc.or_(pc.and_(new, explicit), pc.equal(change, MADE_EXPLICIT))
        elif which == "derived":
            gone, new = (pc.and_(mask, pc.invert(explicit)) for mask in (gone, new))
        return self._statements(rows.filter(gone)), self._statements(rows.filter(new))

    def write(self, path: str | Path, format_: str, which: str) -> None:
        """Write a file, or for `nt` a folder of four files, whole or not at all."""
        path = Path(path)
        if format_ in ("arrow", "parquet"):
            replace_file(path, lambda part: self._write_table(part, format_, which))
        elif format_ == "rdfp":
            with _text(path) as file:
                write_patch(file, iter([({"title": self.title}, *self.triples(which))]))
        elif format_ == "nt":
            for kind in ("explicit", "derived"):
                for name, lines in zip(("deleted", "inserted"), self.triples(kind), strict=True):
                    with _text(path / f"{name}-{kind}.nt") as file:
                        file.writelines(f"{line}\n" for line in lines)
        else:
            with _text(path) as file:
                file.writelines(f"{line}\n" for line in self.lines(which))

    def _write_table(self, path: Path, format_: str, which: str) -> None:
        table = self.table
        if which != "all":
            table = table.filter(pc.equal(table["explicit"], which == "explicit"))
        with pa.OSFile(str(path), "wb") as file:  # not by its name: it may look like an address
            if format_ == "parquet":
                pq.write_table(table, file)
                return
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)

    def _only(self, change: str) -> pa.Table:
        mask = pc.equal(self.table["change"], change)
        return self.table.filter(mask).drop(["change"])

    def _which(self, which: str) -> pa.Table:
        if which == "all":
            return self._rows
        return self._rows.filter(pc.equal(self._rows["explicit"], which == "explicit"))

    def _statements(self, rows: pa.Table) -> list[str]:
        texts = [self._dictionary.texts(column).to_pylist() for column in columns_of(rows)[:3]]
        return sorted(f"{s} {p} {o} ." for s, p, o in zip(*texts, strict=True))


def diff(store: Store, first: int, second: int) -> Differences:
    """By what the second version differs from the first one."""
    rows = between(store, first, second)
    title = f"version {first} to {second}"
    try:
        snapshot = store.snapshot()
        dictionary = open_terms(snapshot)
    except OperationFailed:  # later versions are not needed; but a vacuum may have removed these
        snapshot = store.snapshot(max(first, second))
        dictionary = open_terms(snapshot)
    return Differences(rows, dictionary, snapshot.commit.prefixes, title)


def changes_since(store: Store, version: int) -> Iterator[tuple[Commit, Differences]]:
    """The versions after one, each with what it changed."""
    snapshot = store.snapshot()
    dictionary = open_terms(snapshot)
    for commit, rows in feed(store, version):
        title = f"version {commit.version}"
        yield commit, Differences(rows, dictionary, commit.prefixes, title)


def write_feed(found: Iterator[tuple[Commit, Differences]], file: IO[str], which: str) -> None:
    """A feed as RDF Patch: one transaction a version that changes something."""

    def transactions() -> Iterator[tuple[dict[str, str], list[str], list[str]]]:
        for commit, differences in found:
            deleted, added = differences.triples(which)
            if deleted or added:
                yield {"version": str(commit.version), "time": commit.time}, deleted, added

    write_patch(file, transactions())


@contextmanager
def _text(path: Path) -> Iterator[IO[str]]:
    """A text file, compressed if its name ends with .gz, which is there when it is complete."""
    buffer = io.StringIO()
    yield buffer
    data = buffer.getvalue().encode()
    if path.suffix == ".gz":
        data = gzip.compress(data)
    replace_file(path, lambda part: _write(part, data))


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
