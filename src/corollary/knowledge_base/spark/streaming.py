"""Apply changes to a store exactly once: files from a folder, or rows of a streaming DataFrame.

The name of a file determines its kind: `*.insert.nt`, `*.delete.nt` (and the other syntaxes of
RDF), or `*.rdfp`, an RDF Patch; each also with .gz or .zst. Files that arrive together form a
batch, and consecutive files of the same kind form a commit. The rows of a batch form one commit.

Invariant: the commit of a change names the stream, the batch and the position in it. When a batch
is repeated, changes that the store has committed are skipped, so that processing is idempotent
wherever the process was interrupted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.inputs import is_compressed, suffix_of
from corollary.core.notices import Notices, gathering
from corollary.core.object_store import ObjectPath, StorePath
from corollary.errors import InvalidInput
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.spark.options import Options, ReadOptions, StreamOptions
from corollary.knowledge_base.spark.parts import RELATION, by_relation
from corollary.lang.syntax import QUAD_COLUMNS, TRIPLE_COLUMNS, TRIPLES_NAME
from corollary.rdf import formats
from corollary.rdf.files import format_of
from corollary.rdf.patch import read_patch
from corollary.rdf.triples import Triples
from corollary.store import Store
from corollary.store.places import Place, store_path

if TYPE_CHECKING:
    from corollary.engines.spark.stored import DataFrame
    from corollary.engines.spark.stream import ChangeColumns

_Tables = Sequence[tuple[str | None, pa.Table]]  # with their relations; None for triples

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
    source: str | Path | DataFrame,
    *,
    engine: str = "columnar",
    change_column: str | None = None,
    order_column: str | None = None,
    on_commit: OnCommit | None = None,
    on_begin: Callable[[Any], None] | None = None,
    **options: Unpack[StreamOptions],
) -> None:
    """Apply changes to a store as they arrive, each exactly once, until the stream is stopped.

    The source is a folder of files, or any streaming DataFrame with the columns of `build`:
    subject, predicate and object, or predicate, arg0, arg1, … Its `change_column` says what
    happens to a fact: insert or delete, as in Delta's change data feed; by default it is
    `_change_type` or `change`, and without one every row is inserted. If a batch has several
    changes of a fact, the one with the greatest `order_column` (by default `_commit_version`)
    wins, else an insertion.

    Spark looks for data every `seconds`, and reads at most `most` files of a folder at once; with
    `once`, it applies what there is and stops. `checkpoint` is the folder in which it records what
    it has read. `on_begin` receives the running stream, which has a method `stop()`. With
    `engine="spark"` tasks parse files and rows. Other options are those of `build`.

        changes = session.readStream.format("delta").option("readChangeFeed", True).load("edges")
        rows = changes.selectExpr("'edge' AS predicate", "src AS arg0", "dst AS arg1",
                                  "_change_type", "_commit_version")
        spark.stream("graph.store", rows, checkpoint="checkpoints/edges")
    """
    from corollary.engines.spark import stored
    from corollary.engines.spark import stream as streams
    from corollary.engines.spark.local import address
    from corollary.knowledge_base.spark.sessions import get_session

    place = store_path(path, options.pop("storage_options", None))
    store = Store.open(place)
    frame: Any = source if stored.is_frame(source) else None
    checkpoint = options.pop("checkpoint", None)
    if checkpoint is None:
        if isinstance(store.path, ObjectPath):
            raise InvalidInput(
                "E507",
                f"the stream needs a folder for its checkpoint: {store.path} is remote",
                "give --checkpoint DIR, a folder that restarts of the stream see",
            )
        checkpoint = store.path / CHECKPOINT
    recorded = str(checkpoint) if "://" in str(checkpoint) else address(Path(checkpoint))
    trigger = streams.Trigger(
        options.pop("seconds", 1.0), options.pop("once", False), options.pop("most", 1000)
    )
    common = Options(**cast("ReadOptions", options))
    changes = _Changes(place, engine, common, on_commit)
    if frame is not None:
        facts, columns = _columns_of(frame, change_column, order_column)
        running = streams.BatchStream(
            frame,
            recorded,
            lambda batch, number: changes.apply_rows(
                batch, facts, columns, f"{running.identity}/{number}"
            ),
            trigger,
        )
    else:
        folder = Path(str(source))
        if not folder.is_dir():
            raise InvalidInput("E541", f"there is no folder {folder} to watch", file=str(folder))
        running = streams.watch_folder(
            get_session(common.session, common.master or "local[2]", common.config),
            folder,
            recorded,
            lambda files, number: changes.apply(files, f"{running.identity}/{number}"),
            trigger,
        )
    if on_begin is not None:
        on_begin(running)
    running.wait()


def _columns_of(
    frame: Any, change: str | None, order: str | None
) -> tuple[list[str], ChangeColumns]:
    """Return the columns of facts in a streaming frame, and those of changes."""
    from corollary.engines.spark.stream import ChangeColumns

    names: list[str] = frame.columns
    if not frame.isStreaming:
        raise InvalidInput(
            "E554", "the DataFrame is not a stream", "corollary.spark.update applies it once"
        )
    for name in (change, order):
        if name is not None and name not in names:
            raise InvalidInput(
                "E554", f"the stream has no column {name}; it has {', '.join(names)}"
            )
    if change is None:
        change = next((name for name in ("_change_type", "change") if name in names), None)
    if order is None and "_commit_version" in names:
        order = "_commit_version"
    if {*TRIPLE_COLUMNS} <= {*names}:
        return [*TRIPLE_COLUMNS], ChangeColumns(change, order)
    count = next(n for n in itertools.count() if f"arg{n}" not in names)
    if RELATION not in names:
        raise InvalidInput(
            "E546",
            f"expected the columns subject, predicate and object, or {RELATION}, arg0, arg1, …;"
            f" found {', '.join(names)}",
            "rename the columns of the DataFrame",
        )
    return [RELATION, *(f"arg{n}" for n in range(count))], ChangeColumns(change, order)


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
            names = [file.name for file in group]
            message = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
            version, inserted_count, deleted_count = self._apply_files(
                group, f"{batch}/{place}", message
            )
            if self._on_commit is not None:
                self._on_commit(
                    Applied(batch, version, names, inserted_count, deleted_count, ignored)
                )
                ignored = []

    def apply_rows(
        self, frame: DataFrame, facts: list[str], columns: ChangeColumns, batch: str
    ) -> None:
        """Apply the rows of a batch, unless the store has committed them already."""
        from corollary.engines.spark.failures import explain_failures
        from corollary.engines.spark.persisted import PersistedFrames

        if self._done(batch) >= 0:
            return
        with explain_failures("the stream"), PersistedFrames() as frames:
            # A batch is read twice, and its source may be slow.
            inserted, deleted = columns.split(frames.persist(frame), facts)
            if inserted.isEmpty() and (deleted is None or deleted.isEmpty()):
                return
            message = f"batch {batch.rpartition('/')[2]}"
            if self._engine == "spark":
                own = [] if deleted is None else [deleted]
                done = self._update([inserted], own, f"{batch}/0", message, frame.sparkSession)
            else:
                done = self._transact(
                    list(_tables(inserted.toArrow())),
                    [] if deleted is None else list(_tables(deleted.toArrow())),
                    f"{batch}/0",
                    message,
                )
        if self._on_commit is not None:
            self._on_commit(Applied(batch, done[0], [], done[1], done[2]))

    def _done(self, batch: str) -> int:
        """Return the position of the last committed change of a batch; -1 if none is."""
        identity, _, number = batch.rpartition("/")
        for commit in Store.open(self._path).log():
            of_stream, _, rest = (commit.batch or "").partition("/")
            if of_stream == identity:
                known, place = map(int, rest.split("/"))
                return place if known == int(number) else -1
        return -1

    def _apply_files(self, group: list[Path], batch: str, message: str) -> tuple[int, int, int]:
        """Apply files of one kind; tasks of Spark parse those that are no patches."""
        kind = kind_of(group[0])
        if self._engine == "spark" and kind != "patch":
            files = ([*group], []) if kind == "insert" else ([], [*group])
            return self._update(*files, batch, message, self._options.session)
        with gathering(Notices()) as notices:
            inserted, deleted = self._read(group)
        notices.warn()
        if self._engine == "spark":
            parts = [[part] if len(part) else [] for part in (inserted, deleted)]
            return self._update(parts[0], parts[1], batch, message, self._options.session)
        return self._transact([(None, inserted)], [(None, deleted)], batch, message)

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
            graphs=True,
            limit_input_bytes=self._options.limit_input_bytes,
        )
        table = _table(found, dictionary)
        return (table, table.slice(0, 0)) if kind == "insert" else (table.slice(0, 0), table)

    def _update(
        self, inserted: Any, deleted: Any, batch: str, message: str, session: Any
    ) -> tuple[int, int, int]:
        """Commit a change on Spark."""
        from corollary.knowledge_base.spark import update

        built = update(
            self._path,
            insert=inserted,
            delete=deleted,
            message=message,
            batch=batch,
            keep_labels=True,
            session=session,
            on_error=self._options.on_error,
            limit_input_bytes=self._options.limit_input_bytes,
        )
        return built.version, built.inserted, built.deleted

    def _transact(
        self, inserted: _Tables, deleted: _Tables, batch: str, message: str
    ) -> tuple[int, int, int]:
        """Commit a change in process."""
        kb = self._kb
        if kb is None or kb.version != Store.open(self._path).latest():
            kb = self._kb = KnowledgeBase.open(self._path)
        with kb.transaction(message=message, batch=batch) as tx:
            for relation, table in deleted:
                if len(table):
                    tx.delete(table, relation=relation)
            for relation, table in inserted:
                if len(table):
                    tx.insert(table, relation=relation)
        changes = tx.changes
        return changes.version, changes.inserted.num_rows, changes.deleted.num_rows


def _tables(table: pa.Table) -> Iterator[tuple[str | None, pa.Table]]:
    """Group rows of facts by relation; None for triples."""
    if {*TRIPLE_COLUMNS} <= {*table.column_names}:
        yield None, table
        return
    for relation, rows in by_relation(table, "the stream"):
        yield None if relation == TRIPLES_NAME else relation, rows


def _net(path: Path, limit_input_bytes: int | None) -> tuple[pa.Table, pa.Table]:
    """Combine all transactions of a patch to net insertions and deletions: the last change wins."""
    dictionary = Dictionary()
    last: dict[tuple[str, ...], bool] = {}
    for transaction in read_patch(path, dictionary, limit_input_bytes=limit_input_bytes):
        for added, triples in transaction.requests:
            columns = [column.to_pylist() for column in _table(triples, dictionary).columns]
            last.update((row, added) for row in zip(*columns, strict=True))
    inserted, deleted = (
        pa.Table.from_pylist(
            [
                dict(zip(QUAD_COLUMNS, row, strict=True))
                for row, added in last.items()
                if added == wanted
            ],
            pa.schema([(name, pa.string()) for name in QUAD_COLUMNS]),
        )
        for wanted in (True, False)
    )
    return inserted, deleted


def _table(triples: Triples, dictionary: Dictionary) -> pa.Table:
    """The statements as texts; the graph is null for those of the default graph."""
    quads = [*triples.quads.T]
    columns = [np.concatenate(both) for both in zip(triples.columns, quads[:3], strict=True)]
    graphs = dictionary.texts(quads[3]).cast(pa.large_string())
    default = pa.nulls(len(triples), pa.large_string())
    texts = [dictionary.texts(column) for column in columns]
    return pa.table([*texts, pa.chunked_array([default, graphs])], names=QUAD_COLUMNS)


def _groups(files: list[Path]) -> Iterator[list[Path]]:
    """Group consecutive files of the same kind; a patch is a group of its own."""
    for kind, group in groupby(files, kind_of):
        found = list(group)
        yield from [[file] for file in found] if kind == "patch" else [found]
