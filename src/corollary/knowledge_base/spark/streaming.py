"""Files of changes that are dropped into a folder, each applied to a store exactly once.

A file is known by its name: `*.insert.nt`, `*.delete.nt` (and the other syntaxes of RDF), or
`*.rdfp`, an RDF Patch; each also with .gz or .zst. Files that came together are one batch, and
those of the same kind that follow each other are one commit.

Invariant: the commit of a change names the stream, the batch and the place in it. What the store
has committed is passed over when a batch comes again, so that a change is made once, wherever
the process ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.notices import Notices, gathering
from corollary.errors import InvalidInput
from corollary.knowledge_base.base import KnowledgeBase
from corollary.rdf import formats
from corollary.rdf.files import format_of, is_compressed, suffix_of
from corollary.rdf.patch import read_patch
from corollary.rdf.triples import OnError, Triples
from corollary.store import Store

CHECKPOINT = "stream"  # the folder of a store in which Spark remembers what it has seen
_KINDS = ("insert", "delete")
_COLUMNS = ["subject", "predicate", "object"]


@dataclass(frozen=True)
class Applied:
    """One commit of a stream."""

    batch: str
    version: int
    files: list[str]
    inserted: int
    deleted: int
    ignored: list[str] = field(default_factory=list)  # files that are no changes

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return self.__dict__.copy()


OnCommit = Callable[[Applied], None]


def stream(
    path: str | Path,
    folder: str | Path,
    *,
    engine: str = "columnar",
    master: str | None = None,
    session: Any = None,
    checkpoint: str | Path | None = None,
    seconds: float = 1.0,
    once: bool = False,
    most: int = 1000,
    on_error: OnError = "fail",
    limit_input_bytes: int | None = None,
    on_commit: OnCommit | None = None,
    on_begin: Callable[[Any], None] | None = None,
) -> None:
    """Apply files of changes to a store as they come, until it is stopped.

    With `once`, only those that are there. `on_begin` gets what `stop()` ends.
    """
    from corollary.engines.spark.stream import Watch
    from corollary.knowledge_base.spark.sessions import started

    store = Store.open(path)
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidInput("E541", f"there is no folder {folder} to watch", file=str(folder))
    changes = _Changes(Path(path), engine, on_error, limit_input_bytes, on_commit)
    watch = Watch(
        started(session, master or "local[2]"),
        folder,
        Path(checkpoint) if checkpoint is not None else store.path / CHECKPOINT,
        lambda files, number: changes.apply(files, f"{watch.identity}/{number}"),
        seconds=seconds,
        once=once,
        most=most,
    )
    if on_begin is not None:
        on_begin(watch)
    watch.wait()


def kind_of(path: Path) -> str | None:
    """What a file asks for, by its name: `insert`, `delete`, `patch`, or nothing.

    >>> kind_of(Path("a.insert.nt.gz")), kind_of(Path("a.rdfp")), kind_of(Path("a.nt"))
    ('insert', 'patch', None)
    """
    if suffix_of(path) == ".rdfp":
        return "patch"
    if format_of(path) is None:
        return None
    plain = Path(path.stem) if is_compressed(path) else path
    kind = Path(plain.stem).suffix[1:].lower()
    return kind if kind in _KINDS else None


class _Changes:
    """Applies batches; the knowledge base stays open between them."""

    def __init__(
        self,
        path: Path,
        engine: str,
        on_error: OnError,
        limit_input_bytes: int | None,
        on_commit: OnCommit | None,
    ) -> None:
        self._path = path
        self._engine = engine
        self._on_error = on_error
        self._limit = limit_input_bytes
        self._on_commit = on_commit
        self._kb: KnowledgeBase | None = None

    def apply(self, files: list[Path], batch: str) -> None:
        """Make the changes of a batch that the store does not have yet."""
        done = self._done(batch)
        known = [file for file in files if kind_of(file) is not None]
        ignored = [file.name for file in files if file not in known]
        for place, group in enumerate(_groups(known)):
            if place <= done:
                continue
            with gathering(Notices()) as notices:
                inserted, deleted = self._read(group)
            notices.warn()
            version, came, went = self._commit(inserted, deleted, f"{batch}/{place}", group)
            if self._on_commit is not None:
                names = [file.name for file in group]
                self._on_commit(Applied(batch, version, names, came, went, ignored))
                ignored = []

    def _done(self, batch: str) -> int:
        """The place of the last change of a batch that is committed, -1 if none is."""
        identity, _, number = batch.rpartition("/")
        for commit in Store.open(self._path).log():
            of_stream, _, rest = (commit.batch or "").partition("/")
            if of_stream == identity:
                known, place = map(int, rest.split("/"))
                return place if known == int(number) else -1
        return -1

    def _read(self, group: list[Path]) -> tuple[pa.Table, pa.Table]:
        """What is inserted and deleted."""
        kind = kind_of(group[0])
        if kind == "patch":
            return _net(group[0], self._limit)
        dictionary = Dictionary()
        # Labels are kept, so that a file can delete what another one inserted.
        found = formats.read(
            group,
            dictionary,
            on_error=self._on_error,
            keep_labels=True,
            limit_input_bytes=self._limit,
        )
        table = _table(found, dictionary)
        return (table, table.slice(0, 0)) if kind == "insert" else (table.slice(0, 0), table)

    def _commit(
        self, inserted: pa.Table, deleted: pa.Table, batch: str, group: list[Path]
    ) -> tuple[int, int, int]:
        message = ", ".join(file.name for file in group[:3]) + (" …" if len(group) > 3 else "")
        if self._engine == "spark":
            from corollary.knowledge_base.spark import update

            built = update(
                self._path,
                insert=[inserted] if len(inserted) else [],
                delete=[deleted] if len(deleted) else [],
                message=message,
                batch=batch,
            )
            return built.version, built.inserted, built.deleted
        kb = self._kb
        if kb is None or kb.version != Store.open(self._path).latest():
            kb = self._kb = KnowledgeBase.open(self._path)
        with kb.transaction(message=message, batch=batch) as tx:
            if len(deleted):
                tx.delete(deleted)
            if len(inserted):
                tx.insert(inserted)
        changes = tx.changes
        return changes.version, changes.inserted.num_rows, changes.deleted.num_rows


def _net(path: Path, limit_input_bytes: int | None) -> tuple[pa.Table, pa.Table]:
    """What a patch inserts and deletes, all its transactions together: the last word counts."""
    dictionary = Dictionary()
    last: dict[tuple[str, ...], bool] = {}
    for transaction in read_patch(path, dictionary, limit_input_bytes=limit_input_bytes):
        for added, triples in transaction.requests:
            columns = [dictionary.texts(column).to_pylist() for column in triples.columns]
            last.update((row, added) for row in zip(*columns, strict=True))
    inserted, deleted = (
        pa.Table.from_pylist(
            [
                dict(zip(_COLUMNS, row, strict=True))
                for row, added in last.items()
                if added == wanted
            ],
            pa.schema([(name, pa.string()) for name in _COLUMNS]),
        )
        for wanted in (True, False)
    )
    return inserted, deleted


def _table(triples: Triples, dictionary: Dictionary) -> pa.Table:
    return pa.table([dictionary.texts(column) for column in triples.columns], names=_COLUMNS)


def _groups(files: list[Path]) -> Iterator[list[Path]]:
    """Files of the same kind that follow each other; a patch is alone."""
    for kind, group in groupby(files, kind_of):
        found = list(group)
        yield from [[file] for file in found] if kind == "patch" else [found]
