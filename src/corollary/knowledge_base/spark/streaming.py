"""Apply files of changes from a folder to a store, exactly once.

The name of a file determines its kind: `*.insert.nt`, `*.delete.nt` (and the other syntaxes of
RDF), or `*.rdfp`, an RDF Patch; each also with .gz or .zst. Files that arrive together form a
batch, and consecutive files of the same kind form a commit.

Invariant: the commit of a change names the stream, the batch and the position in it. When a batch
is repeated, changes that the store has committed are skipped, so that processing is idempotent
wherever the process was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Unpack, cast

import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.inputs import is_compressed, suffix_of
from corollary.core.notices import Notices, gathering
from corollary.core.object_store import ObjectPath, StorePath
from corollary.errors import InvalidInput
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.spark.options import Options, ReadOptions, StreamOptions
from corollary.lang.syntax import TRIPLE_COLUMNS
from corollary.rdf import formats
from corollary.rdf.files import format_of
from corollary.rdf.patch import read_patch
from corollary.rdf.triples import Triples
from corollary.store import Store
from corollary.store.places import Place, store_path

CHECKPOINT = "stream"  # the folder of a store in which Spark records the files it has processed
_KINDS = ("insert", "delete")


@dataclass(frozen=True)
class Applied:
    """One commit of a stream."""

    batch: str
    version: int
    files: list[str]
    inserted: int
    deleted: int
    ignored: list[str] = field(default_factory=list)  # files that are not changes

    def to_json(self) -> dict[str, Any]:
        """Convert the report to the JSON that `--json` prints."""
        return self.__dict__.copy()


OnCommit = Callable[[Applied], None]


def stream(
    path: Place,
    folder: str | Path,
    *,
    engine: str = "columnar",
    on_commit: OnCommit | None = None,
    on_begin: Callable[[Any], None] | None = None,
    **options: Unpack[StreamOptions],
) -> None:
    """Apply files of changes to a store as they arrive, until the stream is stopped.

    Spark lists the folder every `seconds` and reads at most `most` files at once; with `once`, it
    applies the existing files and stops. `checkpoint` is the folder in which it records the files
    that it has seen. `on_begin` receives the running stream, which has a method `stop()`. Other
    options are those of `build`.
    """
    from corollary.engines.spark.stream import Trigger, Watch
    from corollary.knowledge_base.spark.sessions import get_session

    place = store_path(path, options.pop("storage_options", None))
    store = Store.open(place)
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidInput("E541", f"there is no folder {folder} to watch", file=str(folder))
    checkpoint = options.pop("checkpoint", None)
    if checkpoint is None:
        if isinstance(store.path, ObjectPath):
            raise InvalidInput(
                "E507",
                f"the stream needs a folder for its checkpoint: {store.path} is remote",
                "give --checkpoint DIR, a folder that restarts of the stream see",
            )
        checkpoint = store.path / CHECKPOINT
    trigger = Trigger(
        options.pop("seconds", 1.0), options.pop("once", False), options.pop("most", 1000)
    )
    common = Options(**cast("ReadOptions", options))
    changes = _Changes(place, engine, common, on_commit)
    watch = Watch(
        get_session(common.session, common.master or "local[2]", common.config),
        folder,
        Path(checkpoint),
        lambda files, number: changes.apply(files, f"{watch.identity}/{number}"),
        trigger,
    )
    if on_begin is not None:
        on_begin(watch)
    watch.wait()


def kind_of(path: Path) -> str | None:
    """Determine the kind of a file by its name: `insert`, `delete`, `patch`, or None.

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
    """Applies batches to a knowledge base that stays open between them."""

    def __init__(
        self, path: StorePath, engine: str, options: Options, on_commit: OnCommit | None
    ) -> None:
        self._path = path
        self._engine = engine
        self._options = options
        self._on_commit = on_commit
        self._kb: KnowledgeBase | None = None

    def apply(self, files: list[Path], batch: str) -> None:
        """Apply the changes of a batch that the store has not committed yet."""
        done = self._done(batch)
        known = [file for file in files if kind_of(file) is not None]
        ignored = [file.name for file in files if file not in known]
        for place, group in enumerate(_groups(known)):
            if place <= done:
                continue
            with gathering(Notices()) as notices:
                inserted, deleted = self._read(group)
            notices.warn()
            version, inserted_count, deleted_count = self._commit(
                inserted, deleted, f"{batch}/{place}", group
            )
            if self._on_commit is not None:
                names = [file.name for file in group]
                self._on_commit(
                    Applied(batch, version, names, inserted_count, deleted_count, ignored)
                )
                ignored = []

    def _done(self, batch: str) -> int:
        """Return the position of the last committed change of a batch; -1 if none is."""
        identity, _, number = batch.rpartition("/")
        for commit in Store.open(self._path).log():
            of_stream, _, rest = (commit.batch or "").partition("/")
            if of_stream == identity:
                known, place = map(int, rest.split("/"))
                return place if known == int(number) else -1
        return -1

    def _read(self, group: list[Path]) -> tuple[pa.Table, pa.Table]:
        """Read the insertions and deletions of files."""
        kind = kind_of(group[0])
        if kind == "patch":
            return _net(group[0], self._options.limit_input_bytes)
        dictionary = Dictionary()
        # Labels are kept, so that a file can delete blank nodes that another one inserted.
        found = formats.read(
            group,
            dictionary,
            on_error=self._options.on_error,
            keep_labels=True,
            limit_input_bytes=self._options.limit_input_bytes,
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
    """Combine all transactions of a patch to net insertions and deletions: the last change wins."""
    dictionary = Dictionary()
    last: dict[tuple[str, ...], bool] = {}
    for transaction in read_patch(path, dictionary, limit_input_bytes=limit_input_bytes):
        for added, triples in transaction.requests:
            columns = [dictionary.texts(column).to_pylist() for column in triples.columns]
            last.update((row, added) for row in zip(*columns, strict=True))
    inserted, deleted = (
        pa.Table.from_pylist(
            [
                dict(zip(TRIPLE_COLUMNS, row, strict=True))
                for row, added in last.items()
                if added == wanted
            ],
            pa.schema([(name, pa.string()) for name in TRIPLE_COLUMNS]),
        )
        for wanted in (True, False)
    )
    return inserted, deleted


def _table(triples: Triples, dictionary: Dictionary) -> pa.Table:
    return pa.table([dictionary.texts(column) for column in triples.columns], names=TRIPLE_COLUMNS)


def _groups(files: list[Path]) -> Iterator[list[Path]]:
    """Group consecutive files of the same kind; a patch is a group of its own."""
    for kind, group in groupby(files, kind_of):
        found = list(group)
        yield from [[file] for file in found] if kind == "patch" else [found]
