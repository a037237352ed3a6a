"""Differences between versions of a store, as tables, text and RDF Patch."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corollary.core.dictionary import Dictionary
from corollary.core.files import replace_file
from corollary.core.graphs import DEFAULTS, REASON_OVER, RECORDS
from corollary.core.html import SHOWN, html_table, left_out, windows
from corollary.core.trivial import is_trivial
from corollary.errors import OperationFailed
from corollary.knowledge_base.graphs import has_graphs
from corollary.knowledge_base.persistence import Committed
from corollary.knowledge_base.results import cells_of, texts_of
from corollary.knowledge_base.state import KnowledgeState
from corollary.knowledge_base.stored import change_rows, with_auxiliary
from corollary.knowledge_base.version_facts import VersionFacts
from corollary.lang.printer import Printer
from corollary.lang.syntax import QUADS, TRIPLE, TRIPLE_COLUMNS, Atom
from corollary.rdf.patch import write_patch
from corollary.rdf.triples import Triples
from corollary.store import Store
from corollary.store.changes import between, compose, feed
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

if TYPE_CHECKING:
    from corollary.query.results import TripleTable

_BATCH = 1 << 12  # rows that are decoded at a time

_SIGNS = {INSERTED: "+", DELETED: "-", MADE_EXPLICIT: "!", MADE_DERIVED: "~"}


def _mark(change: str, explicit: bool) -> str:
    """What is said behind a fact."""
    if change in (MADE_EXPLICIT, MADE_DERIVED):
        return f"{change} now"
    return "" if explicit else "derived"


def _says_little(change: str, fact: Atom, explicit: bool) -> bool:
    """Whether a change is left out of what people read: what was asserted never is."""
    return change in (INSERTED, DELETED) and not explicit and is_trivial(fact)


class Differences:
    """Inserted and deleted facts, separated into explicit and derived ones."""

    def __init__(
        self,
        rows: pa.Table,
        dictionary: Dictionary,
        prefixes: Mapping[str, str],
        title: str,
        after: Callable[[], VersionFacts] | None = None,
    ) -> None:
        """With named graphs, `after` returns the facts that the changes lead to."""
        self.rows = rows
        self._after = after
        self._dictionary = dictionary
        self._prefixes = prefixes
        self.title = title

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __repr__(self) -> str:
        return f"<Differences: {len(self):,} of {self.title}>"

    @cached_property
    def table(self) -> pa.Table:
        """All changes, with the columns `change`, `relation`, `arg0`, `arg1`, … and `explicit`.

        Terms are formatted like the cells of facts files.
        A `change` is `inserted`, `deleted`, `explicit` (a derived fact became explicit) or
        `derived` (an explicit fact is now only derived).
        """
        columns = columns_of(self.rows)
        cells = {f"arg{n}": cells_of(ids, self._dictionary) for n, ids in enumerate(columns)}
        names = {name: self.rows[name] for name in ("change", "relation")}
        return pa.table(names | cells | {"explicit": self.rows["explicit"]})

    def of_relation(self, name: str, columns: Sequence[str]) -> pa.Table:
        """The changes of one relation, or of `triples`, with terms as in `KnowledgeBase.facts`."""
        rows = self.rows.filter(pc.equal(self.rows["relation"], name))
        ids = [rows[f"arg{number}"].to_numpy() for number in range(len(columns))]
        cells = texts_of(ids, self._dictionary, are_triples=name == TRIPLES)
        texts = {c: text.cast(pa.string()) for c, text in zip(columns, cells, strict=True)}
        return pa.table({"change": rows["change"]} | texts | {"explicit": rows["explicit"]})

    @property
    def inserted(self) -> pa.Table:
        """The inserted facts."""
        return self._only(INSERTED)

    @property
    def deleted(self) -> pa.Table:
        """The deleted facts; `explicit` is their state before the deletion."""
        return self._only(DELETED)

    @property
    def inserted_triples(self) -> TripleTable:
        """The inserted triples, which convert to rdflib graphs, frames and RDF syntaxes."""
        return self._triples(INSERTED)

    @property
    def deleted_triples(self) -> TripleTable:
        """The deleted triples."""
        return self._triples(DELETED)

    def _triples(self, change: str) -> TripleTable:
        from corollary.query.results import TripleTable  # loads queries

        table = self.of_relation(TRIPLES, TRIPLE_COLUMNS)
        kept = table.filter(pc.equal(table["change"], change)).select(list(TRIPLE_COLUMNS))
        return TripleTable(kept, self._prefixes)

    def _repr_html_(self) -> str:
        """The first changes, and how many there are."""
        printer = Printer(self._prefixes)
        rows: list[tuple[str, str, str]] = []
        trivial = 0
        for window in windows(self.rows):
            part = Differences(window, self._dictionary, self._prefixes, self.title)
            for change, atom, explicit in part.facts():
                if len(rows) == SHOWN:
                    break
                if _says_little(change, atom, explicit):
                    trivial += 1
                else:
                    rows.append((_SIGNS[change], printer.atom(atom), _mark(change, explicit)))
        note = left_out(len(rows), len(self), "changes", trivial)
        return html_table(["", "fact", ""], rows, title=self.title, note=note)

    def counts(self) -> dict[str, int]:
        """Count the changes by kind, with explicit and derived facts counted separately."""
        change, explicit = self.rows["change"], self.rows["explicit"]
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

    def count(self, which: str = "all") -> int:
        """Count the changes of explicit facts, of derived ones, or of all."""
        return int(self._which(which).num_rows)

    def lines(self, which: str = "all", *, trivial: bool = True) -> Iterator[str]:
        """Format one fact per line, with + or - as in `corollary apply`; mark derived facts.

        With `trivial=False`, derived facts such as `[:a, owl:sameAs, :a]` are left out
        (`core.trivial`); what was asserted or retracted is always shown.
        """
        printer = Printer(self._prefixes)
        found = []
        for change, atom, explicit in self.facts(which):
            if not trivial and _says_little(change, atom, explicit):
                continue
            mark = _mark(change, explicit)
            mark = f"   {mark}" if mark else ""
            found.append((printer.atom(atom), f"{_SIGNS[change]} {printer.atom(atom)}{mark}"))
        return (line for _, line in sorted(found))

    def facts(self, which: str = "all") -> Iterator[tuple[str, Atom, bool]]:
        """Iterate over the changes: the kind of change, the fact, and whether it is explicit."""
        rows = self._which(which)
        names = arguments(width_of(rows.column_names))
        for batch in rows.to_batches(max_chunksize=_BATCH):
            for row in batch.to_pylist():
                ids = [row[name] for name in names if row[name] is not None]
                relation = TRIPLE if row["relation"] == TRIPLES else row["relation"]
                terms = tuple(self._dictionary.terms(ids))
                yield row["change"], Atom(relation, terms), row["explicit"]

    def facts_after(self) -> VersionFacts | None:
        """The facts that the changes lead to; None if there are no named graphs."""
        return None if self._after is None else self._after()

    def statements(
        self, which: str = "explicit", after: VersionFacts | None = None
    ) -> tuple[list[str], list[str]]:
        """Return deleted and inserted statements, each in its graph, as lines of N-Quads.

        `after` are the facts that the changes lead to, if they are known already.
        """
        after = after or self.facts_after()
        if after is None:
            return self.triples(which)
        deleted, new = after.statement_changes(self.rows, which)
        return self._lines_of(deleted), self._lines_of(new)

    def _lines_of(self, found: Triples) -> list[str]:
        """The statements that RDF has, as an export writes them: no literal is a subject."""
        found = found.where(found.are_rdf(self._dictionary))
        found = replace(found, quads=found.quads[found.quads_are_rdf(self._dictionary)])
        lines = []
        for columns in (found.columns, [*found.quads.T]):
            texts = [self._dictionary.texts(column).to_pylist() for column in columns]
            lines += [f"{' '.join(terms)} ." for terms in zip(*texts, strict=True)]
        return sorted(lines)

    def triples(self, which: str = "explicit") -> tuple[list[str], list[str]]:
        """Return deleted and inserted triples, whatever their graphs, as lines of N-Triples.

        With `which="explicit"`, a derived triple that became explicit counts as inserted, and an
        explicit one that is now only derived counts as deleted.
        """
        rows = self.rows.filter(pc.equal(self.rows["relation"], TRIPLES))
        change, explicit = rows["change"], rows["explicit"]
        deleted, new = pc.equal(change, DELETED), pc.equal(change, INSERTED)
        if which == "explicit":
            deleted = pc.or_(pc.and_(deleted, explicit), pc.equal(change, MADE_DERIVED))
            new = pc.or_(pc.and_(new, explicit), pc.equal(change, MADE_EXPLICIT))
        elif which == "derived":
            deleted, new = (pc.and_(mask, pc.invert(explicit)) for mask in (deleted, new))
        return self._triples_of(rows.filter(deleted)), self._triples_of(rows.filter(new))

    def omitted(self, format_: str, which: str) -> int:
        """Count the changes that a format leaves out: RDF has no plain relations."""
        if format_ not in ("nt", "rdfp"):
            return 0
        rows = self.rows if format_ == "nt" else self._which(which)
        written = [TRIPLES, DEFAULTS.relation, REASON_OVER.relation]
        if format_ == "rdfp":
            written.append(QUADS)
        is_written = pc.is_in(rows["relation"], pa.array(written, pa.string()))
        return pc.sum(pc.invert(is_written)).as_py() or 0

    def write(self, path: str | Path, format_: str, which: str) -> None:
        """Write a file, or for `nt` a folder of four files; each file is replaced atomically."""
        path = Path(path)
        if format_ in ("arrow", "parquet"):
            replace_file(path, lambda part: self._write_table(part, format_, which))
        elif format_ == "nt":
            for kind in ("explicit", "derived"):
                for name, lines in zip(("deleted", "inserted"), self.triples(kind), strict=True):
                    with _text(path / f"{name}-{kind}.nt") as file:
                        file.writelines(f"{line}\n" for line in lines)
        else:
            with _text(path) as file:
                self.print(file, format_, which)

    def print(self, file: IO[str], format_: str, which: str) -> None:
        """Write lines of text, or an RDF Patch (`rdfp`), to an open file."""
        if format_ == "rdfp":
            write_patch(file, iter([({"title": self.title}, *self.statements(which))]))
        else:
            file.writelines(f"{line}\n" for line in self.lines(which))

    def _write_table(self, path: Path, format_: str, which: str) -> None:
        table = self.table
        if which != "all":
            table = table.filter(pc.equal(table["explicit"], which == "explicit"))
        with pa.OSFile(str(path), "wb") as file:  # by handle: the name may look like a URI
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
            return self.rows
        return self.rows.filter(pc.equal(self.rows["explicit"], which == "explicit"))

    def _triples_of(self, rows: pa.Table) -> list[str]:
        subject, predicate, object_ = (c.astype(np.uint32) for c in columns_of(rows)[:3])
        return self._lines_of(Triples(subject, predicate, object_))


def committed_differences(
    state: KnowledgeState, committed: Sequence[Committed], since: int
) -> Differences:
    """Compose the changes of versions committed after `since`, without reading the store."""
    parts = []
    for one in committed:
        rows = change_rows(one.changes, state.dictionary)
        if rows is not None:
            version = pa.repeat(pa.scalar(one.version, pa.int64()), len(rows))
            parts.append(rows.append_column("version", version))
    title = f"version {since} to {committed[-1].version}"

    def after() -> VersionFacts:
        explicit = state.reasoner.explicit
        return VersionFacts(state.engine, with_auxiliary(state.reasoner.facts, explicit), explicit)

    rows = compose(parts)
    known = after if has_graphs(state.reasoner.explicit) or _has_records(rows) else None
    return Differences(rows, state.dictionary, state.prefixes, title, known)


def _has_records(rows: pa.Table) -> bool:
    """Whether rows of changes concern named graphs."""
    names = pa.array([predicate.relation for predicate in RECORDS])
    return bool(pc.any(pc.is_in(rows["relation"], names)).as_py())


def _may_have_graphs(commit: Commit) -> bool:
    """Whether a version records graphs."""
    relations = commit.statistics.relations
    return any(predicate.relation in relations for predicate in RECORDS)


def diff(store: Store, first: int, second: int) -> Differences:
    """Compute the changes from the first to the second version of a store."""
    rows = between(store, first, second)
    title = f"version {first} to {second}"
    try:
        snapshot = store.snapshot()
        dictionary = open_terms(snapshot)
    except OperationFailed:  # older terms suffice, but a vacuum may have removed them
        snapshot = store.snapshot(max(first, second))
        dictionary = open_terms(snapshot)
    after = None
    if any(_may_have_graphs(store.commit(version)) for version in (first, second)):
        after = partial(VersionFacts.of, store, second)
    return Differences(rows, dictionary, snapshot.commit.prefixes, title, after)


def changes_since(store: Store, version: int) -> Iterator[tuple[Commit, Differences]]:
    """Iterate over the commits after a version, each with its changes."""
    snapshot = store.snapshot()
    dictionary = open_terms(snapshot)
    had_graphs = _may_have_graphs(store.commit(version))
    for commit, rows in feed(store, version):
        title = f"version {commit.version}"
        has_graphs_now = _may_have_graphs(commit)
        after = partial(VersionFacts.of, store, commit.version)
        known = after if had_graphs or has_graphs_now else None
        yield commit, Differences(rows, dictionary, commit.prefixes, title, known)
        had_graphs = has_graphs_now


def write_feed(store: Store, since: int, file: IO[str], which: str) -> int:
    """Write a change feed as RDF Patch: one transaction per version that changes statements.

    Returns the number of changes that a patch cannot have.
    """
    omitted = 0

    def transactions() -> Iterator[tuple[dict[str, str], list[str], list[str]]]:
        nonlocal omitted
        facts: VersionFacts | None = None  # once there are named graphs
        for commit, differences in changes_since(store, since):
            omitted += differences.omitted("rdfp", which)
            facts = (
                facts.after(differences.rows) if facts is not None else differences.facts_after()
            )
            deleted, added = differences.statements(which, facts)
            if deleted or added:
                yield {"version": str(commit.version), "time": commit.time}, deleted, added

    write_patch(file, transactions())
    return omitted


@contextmanager
def _text(path: Path) -> Iterator[IO[str]]:
    """Write a text file atomically, compressed if its name ends with .gz."""
    buffer = io.StringIO()
    yield buffer
    data = buffer.getvalue().encode()
    if path.suffix == ".gz":
        data = gzip.compress(data)
    replace_file(path, lambda part: part.write_bytes(data))
