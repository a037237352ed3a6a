"""Export the facts of a knowledge base: RDF files, Parquet files, or Delta tables of terms.

Tables have decoded terms, one table per relation and one for all triples, so that any reader of
Parquet or Delta understands them without Corollary. A Delta table remembers which version of which
store it shows; a later export merges only what has changed since.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.dictionary import Ids
from corollary.core.engine import Facts
from corollary.core.files import replace_file
from corollary.core.graphs import DEFAULT
from corollary.core.object_store import ObjectPath, StorePath, is_service_error, refused_request
from corollary.core.tables import argument_columns
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.differences import Differences, diff
from corollary.knowledge_base.graphs import (
    has_graphs,
    outside_of_graphs,
    quads_of,
    statements_of,
)
from corollary.knowledge_base.results import split, texts_of, triples_of
from corollary.knowledge_base.state import KnowledgeState
from corollary.lang.syntax import (
    QUAD_COLUMNS,
    QUADS,
    TRIPLE,
    TRIPLE_COLUMNS,
    TRIPLES_NAME,
    Atom,
    Constant,
    Variable,
    is_auxiliary,
)
from corollary.rdf import formats
from corollary.store.layout import DELETED, MADE_DERIVED, MADE_EXPLICIT, WHICH, arguments
from corollary.store.places import Place, storage_options, store_path, table_uri

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

RDF_FORMATS = ("nt", "nq", "ttl", "trig", "jsonld")  # triples only
_WITH_GRAPHS = ("nq", "trig", "jsonld")
TABLE_FORMATS = ("parquet", "delta")  # a folder of tables
EXPORT_FORMATS = (*RDF_FORMATS, *TABLE_FORMATS)

_BATCH_ROWS = 1 << 18  # decoded at once
_APPLICATION = "corollary"  # which records versions in Delta tables
_DESCRIPTION = "Exported by Corollary: "  # of a Delta table, before the origin

Which = Literal["all", "explicit", "derived"]


@dataclass(frozen=True)
class Exported:
    """The result of an export: rows per table, and what RDF could not express."""

    version: int
    rows: dict[str, int]  # of every table, or of `triples` in an RDF file
    changed: dict[str, int]  # rows written or removed by a merge
    generalized: int = 0  # triples that RDF does not have, such as those about literals
    omitted: int = 0  # facts of plain relations, which are no triples


def export(
    state: KnowledgeState,
    target: Place | IO[bytes],
    format_: str,
    which: Which = "all",
    *,
    graph: Constant | None = None,
) -> Exported:
    """Write the facts to a file, a stream or a folder, or the statements of one `graph`.

    N-Quads, TriG and JSON-LD have each statement in its graphs, and derived triples in the default
    graph. The other syntaxes have each triple once.

    >>> from corollary.knowledge_base.base import KnowledgeBase
    >>> kb = KnowledgeBase("path(?x, ?y) :- edge(?x, ?y) . edge(1, 2) .")
    >>> folder = tempfile.mkdtemp()
    >>> export(kb.state, folder, "parquet", "derived").rows
    {'edge': 0, 'path': 1}
    >>> pa.parquet.read_table(f"{folder}/path.parquet").to_pylist()
    [{'arg0': '1', 'arg1': '2', 'explicit': False}]
    """
    if format_ not in EXPORT_FORMATS:
        raise InvalidInput(
            "E314", f"unknown format {format_!r}", f"choose one of {', '.join(EXPORT_FORMATS)}"
        )
    if which not in WHICH:
        raise InvalidInput("E314", f"unknown facts {which!r}", f"choose one of {', '.join(WHICH)}")
    relations = list(_relations(state, which, graph))
    if format_ in RDF_FORMATS:
        return _write_rdf(state, relations, target, format_, which, graph)
    if not isinstance(target, str | StorePath):
        raise OperationFailed("E401", f"{format_} is written to a folder", "name a folder")
    folder = store_path(target)
    if format_ == "delta":
        return _write_delta(state, relations, folder, which)
    if not isinstance(folder, Path):
        raise OperationFailed(
            "E401", "Parquet files are written to local folders", "use --format delta"
        )
    rows = {}
    for relation in relations:
        replace_file(folder / f"{relation.name}.parquet", partial(_write_parquet, relation))
        rows[relation.name] = len(relation)
    return Exported(state.version, rows, {})


@dataclass(frozen=True)
class _Relation:
    """The facts of a relation to export, or all triples."""

    state: KnowledgeState
    name: str
    columns: tuple[str, ...]
    explicit: Facts
    derived: Facts

    def __len__(self) -> int:
        return len(self.explicit) + len(self.derived)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its table."""
        fields = [pa.field(name, pa.string()) for name in self.columns]
        return pa.schema([*fields, pa.field("explicit", pa.bool_())])

    def texts(self, ids: Sequence[Ids]) -> list[pa.Array]:
        """Decode columns of ids as `KnowledgeBase.facts` does."""
        are_rdf = self.name in (TRIPLES_NAME, QUADS)
        cells = texts_of(ids, self.state.dictionary, are_triples=are_rdf)
        return [column.cast(pa.string()) for column in cells]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Decode the rows, a bounded number at a time."""
        for facts, is_explicit in ((self.explicit, True), (self.derived, False)):
            for predicate in facts.predicates():
                rows = facts.rows(predicate)
                for start in range(0, len(rows), _BATCH_ROWS):
                    part = rows[start : start + _BATCH_ROWS]
                    ids = argument_columns(predicate, part, self.state.dictionary)
                    flags = pa.array(np.full(len(part), is_explicit))
                    yield pa.RecordBatch.from_arrays([*self.texts(ids), flags], schema=self.schema)

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())


def _relations(state: KnowledgeState, which: Which, graph: Constant | None) -> Iterator[_Relation]:
    """The triples, if there may be any, and the plain relations by name."""
    patterns = {
        name: state.pattern(name)
        for name in sorted(state.arities)
        if not is_auxiliary(name) and graph is None
    }
    variables = tuple(Variable(name) for name in TRIPLE_COLUMNS)
    patterns[QUADS] = state.pattern(QUADS)
    patterns[TRIPLES_NAME] = Atom(TRIPLE, variables)
    for name, atom in patterns.items():
        if graph is not None:
            explicit, derived = statements_of(state, graph)[name]
        else:
            explicit, derived = split(state.reasoner.match(atom), state.reasoner.explicit)
        nothing = explicit.only(())
        is_rdf = name in (TRIPLES_NAME, QUADS)
        may_exist = name == TRIPLES_NAME and state.program.has_triples
        if is_rdf and not (len(explicit) or len(derived) or may_exist):
            continue
        yield _Relation(
            state,
            name,
            _columns(name, atom),
            nothing if which == "derived" else explicit,
            nothing if which == "explicit" else derived,
        )


def _columns(name: str, atom: Atom) -> tuple[str, ...]:
    known = {TRIPLES_NAME: TRIPLE_COLUMNS, QUADS: QUAD_COLUMNS}
    return known.get(name) or tuple(arguments(len(atom.terms)))


def _write_parquet(relation: _Relation, path: Path) -> None:
    import pyarrow.parquet as pq

    with pa.OSFile(str(path), "wb") as file, pq.ParquetWriter(file, relation.schema) as writer:
        for batch in relation.batches():
            writer.write_batch(batch)


# -- RDF -------------------------------------------------------------------------------------------


def _write_rdf(
    state: KnowledgeState,
    relations: Sequence[_Relation],
    target: Place | IO[bytes],
    format_: str,
    which: Which,
    graph: Constant | None,
) -> Exported:
    """Write the triples, sorted; those that RDF does not have are counted."""
    omitted = sum(len(r) for r in relations if r.name not in (TRIPLES_NAME, QUADS))
    own = {r.name: r.explicit.union(r.derived) for r in relations}
    nothing = state.reasoner.explicit.only(())
    facts, quads = own.get(TRIPLES_NAME, nothing), quads_of(own.get(QUADS, nothing))
    # Rules may not read the default graph, so that its triples are recorded beside the others.
    if format_ in _WITH_GRAPHS and (len(quads) or has_graphs(state.reasoner.explicit)):
        if graph is None:
            facts = outside_of_graphs(state, which)
        elif graph != DEFAULT:
            facts = nothing
    elif graph is None or format_ not in _WITH_GRAPHS:
        quads = quads[:0]
    triples = triples_of(facts, state.dictionary)
    triples = replace(triples, quads=quads).in_order(state.dictionary)
    is_rdf, is_quad = triples.are_rdf(state.dictionary), triples.quads_are_rdf(state.dictionary)
    generalized = int((~is_rdf).sum() + (~is_quad).sum())
    triples = replace(triples.where(is_rdf), quads=triples.quads[is_quad])

    def write(path: Path) -> None:
        if format_ in ("nt", "nq"):  # triples of the default graph read the same in both
            formats.write(path, triples, state.dictionary)
            return
        with tempfile.TemporaryDirectory() as folder:
            lines = Path(folder, "statements.nq")
            formats.write(lines, triples, state.dictionary)
            _write_document(lines, path, format_, state)

    if isinstance(target, str | StorePath):
        path = store_path(target)
        if not isinstance(path, Path):
            raise OperationFailed(
                "E401", "RDF files are written to local files", "name a file, or use --format delta"
            )
        replace_file(path, write)
    else:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, f"triples.{format_}")
            write(copy)
            with copy.open("rb") as file:
                shutil.copyfileobj(file, target)
    rows = {TRIPLES_NAME: len(triples)}
    if len(triples.quads):
        rows[QUADS] = len(triples.quads)
    return Exported(state.version, rows, {}, generalized, omitted)


def _write_document(lines: Path, path: Path, format_: str, state: KnowledgeState) -> None:
    """Rewrite sorted N-Quads as Turtle, TriG or JSON-LD, with the prefixes in use."""
    import pyoxigraph

    quads = pyoxigraph.parse(path=str(lines), format=pyoxigraph.RdfFormat.N_QUADS)
    with path.open("wb") as output:
        pyoxigraph.serialize(
            quads if format_ in _WITH_GRAPHS else (quad.triple for quad in quads),
            output=output,
            format=pyoxigraph.RdfFormat.from_extension(format_),
            prefixes=dict(state.all_prefixes),
        )


# -- Delta -----------------------------------------------------------------------------------------


def _write_delta(
    state: KnowledgeState, relations: Sequence[_Relation], folder: StorePath, which: Which
) -> Exported:
    """Write every relation to a Delta table of its own; merge into the tables that are there."""
    origin = "memory"
    if state.store is not None:
        origin = f"store {state.opened_store.facts.open().metadata().id}"
    differences: dict[int, Differences] = {}
    rows, changed = {}, {}
    for relation in relations:
        target = _DeltaTarget(folder / relation.name, f"{which} facts of {origin}", state.version)
        since = target.shown_version()
        rows[relation.name] = len(relation)
        # The diffs of a hybrid store know of materialized facts only.
        if since is None or state.store is None or state.settings.mode == "hybrid":
            changed[relation.name] = target.replace(relation)
            continue
        if since not in differences:
            differences[since] = diff(state.opened_store, since, state.version)
        changes = differences[since].of_relation(relation.name, relation.columns)
        changed[relation.name] = target.merge(_relevant(changes, which), relation)
    return Exported(state.version, rows, changed)


def _relevant(changes: pa.Table, which: Which) -> pa.Table:
    """The rows to write (`deleted` is false) and to remove, for one kind of facts."""
    kind, explicit = changes["change"], changes["explicit"]
    leaves = pc.equal(kind, DELETED)
    if which != "all":
        leaves_as = MADE_DERIVED if which == "explicit" else MADE_EXPLICIT
        concerned = pc.equal(explicit, which == "explicit")
        crosses = pc.equal(kind, leaves_as)
        changes = changes.append_column(DELETED, pc.or_(leaves, crosses))
        return changes.filter(pc.or_(concerned, crosses)).drop(["change"])
    return changes.append_column(DELETED, leaves).drop(["change"])


class _DeltaTarget:
    """A Delta table of a relation, which records the version of the store that it shows."""

    def __init__(self, path: StorePath, origin: str, version: int) -> None:
        """`origin` says which facts of which store the table shows."""
        if isinstance(path, Path) and {*"%\\"} & {*str(path.resolve())}:
            raise InvalidInput(
                "E510", f"no Delta table can be in {path}", "use a path without % and backslashes"
            )
        self._path = path
        self._description = f"{_DESCRIPTION}{origin}"
        self._version = version
        self._options = storage_options(path)

    def shown_version(self) -> int | None:
        """The version that the table shows; None if there is no table, or none is recorded."""
        from deltalake import DeltaTable

        with _failures(self._path):
            if not DeltaTable.is_deltatable(table_uri(self._path), self._options):
                return None
            table = self._table()
            if table.metadata().description != self._description:
                raise OperationFailed(
                    "E430",
                    f"{self._path} is a Delta table of something else",
                    "export to another folder: a table shows one kind of facts of one store",
                )
            return table.transaction_version(_APPLICATION)

    def replace(self, relation: _Relation) -> int:
        """Write all rows; returns their number."""
        from deltalake import write_deltalake

        with _failures(self._path):
            write_deltalake(
                table_uri(self._path),
                relation.reader(),
                mode="overwrite",
                name=relation.name,
                description=self._description,
                storage_options=self._options,
                commit_properties=self._commit(),
            )
        return len(relation)

    def merge(self, changes: pa.Table, relation: _Relation) -> int:
        """Apply changes since the version that the table shows; returns their number."""
        if not len(changes):
            return 0
        same = " AND ".join(f"shown.{name} = changed.{name}" for name in relation.columns)
        rows = {name: f"changed.{name}" for name in relation.schema.names}
        with _failures(self._path):
            (
                self._table()
                .merge(
                    changes, same or "true", "changed", "shown", commit_properties=self._commit()
                )
                .when_matched_delete(f"changed.{DELETED}")
                .when_matched_update({"explicit": "changed.explicit"}, f"NOT changed.{DELETED}")
                .when_not_matched_insert(rows, f"NOT changed.{DELETED}")
                .execute()
            )
        return len(changes)

    def _table(self) -> DeltaTable:
        from deltalake import DeltaTable

        return DeltaTable(table_uri(self._path), storage_options=self._options)

    def _commit(self) -> CommitProperties:
        """A commit that records the version, atomically with the rows."""
        from deltalake import CommitProperties, Transaction

        return CommitProperties(app_transactions=[Transaction(_APPLICATION, self._version)])


@contextmanager
def _failures(path: StorePath) -> Iterator[None]:
    """Translate errors of deltalake."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, pa.ArrowException, OSError) as error:
        if isinstance(path, ObjectPath) and is_service_error(error):
            raise refused_request(path, error) from None
        reason = str(error).partition("\n")[0]
        raise OperationFailed("E401", f"cannot write {path}: {reason}") from None
