"""Embedded DuckDB: one table per property and class, loaded when a query first reads it."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from inspect import Parameter, Signature
from typing import Any, Generic, Protocol, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.kinds import Kinds
from corollary.core.match import triple_columns
from corollary.engines.columnar.budget import Budget, format_bytes, resident_memory
from corollary.errors import CorollaryError, OperationFailed
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Constant
from corollary.query.columns import Evaluator, Lookup
from corollary.query.connection import Connection
from corollary.query.dialect import TEXT_OF, Dialect, DuckDBDialect, source_table, table_name
from corollary.query.parse import too_deep
from corollary.query.plan import Call, Plan, Scan, Source

_TYPES = {"id": "BIGINT", "text": "VARCHAR", "bool": "BOOLEAN", "row": "BIGINT"}

_BATCH = 1 << 16  # rows per fetched batch of a result
_LARGE = 1 << 16  # results above this many rows are charged to the memory budget

R = TypeVar("R")


class AnswerSource(Protocol):
    """Where the answers of a database come from."""

    @property
    def dictionary(self) -> Dictionary:
        """The dictionary of the terms."""

    def labels(self) -> Collection[Constant]:
        """Terms that answers may have and the dictionary may lack."""

    def stamp(self) -> Hashable:
        """A version stamp; it changes whenever an answer may change."""

    def graph_rows(self, source: Source) -> Ids:
        """All quads, or the triples of a pseudo-graph, one per row."""

    def graphs(self) -> Sequence[int]:
        """The named graphs."""

    def has_unread(self) -> bool:
        """Whether there may be graphs that rules do not read."""


class TripleSource(AnswerSource, Protocol):
    """Triples partitioned by property, and rdf:type triples by class."""

    def predicates(self) -> Collection[Predicate]:
        """The predicates that have triples."""

    def rows(self, predicate: Predicate) -> Ids:
        """Subjects and objects of a property, or members of a class, one row per triple."""

    def stamp(self, predicate: Predicate | None = None) -> Hashable:
        """A version stamp; it changes with the rows of a predicate (None: of any)."""


S = TypeVar("S", bound=AnswerSource, covariant=True)


class DuckDBRunner(ABC, Generic[S]):
    """Runs plans in DuckDB; subclasses load the tables that the plans read."""

    def __init__(self, source: S, *, threads: int = 1, limit_memory: int | None = None) -> None:
        self._source = source
        self._dictionary = dictionary = source.dictionary
        self._threads, self._budget = threads, Budget(limit_memory)
        self._kinds = Kinds.of_dictionary(dictionary)
        self._lookup = Lookup(dictionary, ())
        self._functions: set[str] = set()
        self._inline: set[str] = set()  # loaded tables of VALUES
        self._stamps: dict[Hashable, Hashable] = {}  # of the loaded tables
        self._raised: list[CorollaryError] = []  # by functions; DuckDB passes on only their text
        self._refreshed_stamp: tuple[Hashable, ...] = ()
        self.limit_rows: int | None = None
        """The most rows of a result; a query with more is stopped and fails."""
        self._connection = self._connect()

    @property
    @abstractmethod
    def dialect(self) -> Dialect:
        """The SQL dialect of this database."""

    @abstractmethod
    def describing(self, subjects: Sequence[int]) -> Sequence[Scan]:
        """The patterns that together match all triples of subjects."""

    @abstractmethod
    def _prepare(self, plan: Plan) -> None:
        """Load the tables that a plan reads if they are missing or stale."""

    def _connect(self) -> Connection:
        """Open a connection without tables."""
        limit = self._budget.limit
        connection = Connection(self._threads, None if limit is None else limit - resident_memory())
        connection.execute("CREATE TABLE nothing (s BIGINT, o BIGINT)")
        database = weakref.ref(self)
        text_of = partial(_texts_of, database)
        _register(connection, TEXT_OF, text_of, ["BIGINT"], "VARCHAR", self._raised)
        return connection

    def _reconnect(self) -> None:
        """Open a new connection; that of a parent process, or one that is stuck, is abandoned."""
        self._connection.abandon()
        self._functions, self._inline, self._stamps = set(), set(), {}
        self._connection = self._connect()

    def refresh(self) -> None:
        """Assign ids to all terms that answers may have; the dictionary may lack them."""
        if not self._connection.is_usable():
            self._reconnect()
        stamp = (self._source.stamp(),)
        if self._refreshed_stamp != stamp:
            self._dictionary.encode(self._source.labels())
            self._refreshed_stamp = stamp

    def graphs(self) -> Sequence[int]:
        """The named graphs."""
        return self._source.graphs()

    def has_unread(self) -> bool:
        """Whether there may be graphs that rules do not read."""
        return self._source.has_unread()

    def run(self, plan: Plan) -> pa.Table:
        """Run a plan; the result has its columns, as ids or texts."""
        self._prepare(plan)
        self._load_graphs(plan)
        self._load_inline(plan)
        self._lookup = Lookup(self._dictionary, [*plan.constants])
        for call in plan.calls:
            if call.name not in self._functions:
                self._define(call)
        return self._table(plan.sql)

    def explain(self, plan: Plan) -> str:
        """DuckDB's physical plan."""
        self.run(plan)
        connection = self._connection
        rows = connection.run(lambda: connection.duckdb.execute(f"EXPLAIN {plan.sql}").fetchall())
        return "\n".join(str(row[1]) for row in rows)

    def texts(self, ids: pa.Array) -> pa.Array:
        """The texts of ids in a result."""
        if len(ids) > _LARGE:
            text = self._dictionary.texts_from(0)
            length = text.nbytes / max(1, len(text))
            self._budget.reserve(int(len(ids) * (8 + length)), f"an answer of {len(ids):,} terms")
        return self._lookup.texts(ids)

    def forget(self, plan: Plan) -> None:
        """Drop the functions and tables of an evicted plan."""
        for call in plan.calls:
            if call.name in self._functions:
                self._connection.duckdb.remove_function(call.name)
                self._functions.discard(call.name)
        for table in plan.inline:
            self._drop(table.name)
            self._inline.discard(table.name)

    # -- tables ----------------------------------------------------------------------------------

    def _load(self, name: str, columns: Mapping[str, Ids]) -> None:
        self._create(name, {n: pa.array(np.ascontiguousarray(c)) for n, c in columns.items()})

    def _create(self, name: str, columns: Mapping[str, pa.Array]) -> None:
        """Create a table of ids."""
        listed = ", ".join(f"CAST({column} AS BIGINT) AS {column}" for column in columns)
        statement = f"CREATE OR REPLACE TABLE {name} AS SELECT {listed} FROM loaded"
        database = self._connection.duckdb
        database.register("loaded", pa.table(dict(columns)))
        try:
            self._run(lambda: database.execute(statement))
        finally:
            database.unregister("loaded")

    def _load_graphs(self, plan: Plan) -> None:
        """Load the tables of graphs that a plan reads, if they are missing or stale."""
        for scan in plan.scans:
            if scan.source == "union":
                continue
            name, columns = source_table(scan)
            stamp = self._source.stamp()
            if self._stamps.get(name, self) != stamp:
                rows = self._source.graph_rows(scan.source)
                self._load(name, {column: rows[:, place] for place, column in columns.items()})
                self._stamps[name] = stamp

    def _load_inline(self, plan: Plan) -> None:
        """Load the inline solutions of a plan, once."""
        for table in plan.inline:
            if table.name not in self._inline:
                columns = {n: pa.array(ids, pa.int64()) for n, ids in table.columns.items()}
                self._create(table.name, columns)
                self._inline.add(table.name)

    def _drop(self, name: str) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS {name}")

    # -- functions -------------------------------------------------------------------------------

    def _define(self, call: Call) -> None:
        kinds = [_TYPES[kind] for kind in call.kinds]
        if call.result == "aggregate":
            kinds = [f"{kind}[]" for kind in kinds]
        result = "BOOLEAN" if call.result == "condition" else "VARCHAR"
        function = Evaluator(call, self._lookup, self._kinds)
        _register(
            self._connection,
            call.name,
            function,
            kinds,
            result,
            self._raised,
            volatile=call.volatile,
        )
        self._functions.add(call.name)

    # -- running ---------------------------------------------------------------------------------

    def _table(self, sql: str) -> pa.Table:
        """Run a query.

        DuckDB's memory limit does not cover results. So with a limit the result is fetched in
        batches, and each is charged to the memory budget.
        """
        database = self._connection.duckdb
        if self._budget.limit is None and self.limit_rows is None:
            return self._run(lambda: database.sql(sql).to_arrow_table())
        return self._run(lambda: self._fetch_batches(database.sql(sql)))

    def _fetch_batches(self, relation: duckdb.DuckDBPyRelation) -> pa.Table:
        reader = relation.to_arrow_reader(_BATCH)
        batches: list[pa.RecordBatch] = []
        try:
            rows = 0
            for batch in reader:
                rows += batch.num_rows
                refuse_rows(rows, self.limit_rows)
                if rows > _LARGE:
                    self._budget.reserve(batch.nbytes, f"an answer of at least {rows:,} rows")
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)
        finally:
            reader.close()  # otherwise the query stays open

    def _run(self, work: Callable[[], R]) -> R:
        try:
            return self._connection.run(work)
        except (duckdb.Error, OSError) as error:  # an Arrow reader raises OSError
            raise self._translate_error(error) from None

    def _translate_error(self, error: Exception) -> CorollaryError:
        if self._raised:
            reason = self._raised[0]
            self._raised.clear()
            return reason
        message = str(error).partition("\n")[0]
        if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory" in message:
            limit = self._budget.limit
            allowed = (
                "" if limit is None else f" than --limit-memory ({format_bytes(limit)}) allows"
            )
            hint = "narrow the query, or raise --limit-memory"
            return OperationFailed("E406", f"the query needs more memory{allowed}: {message}", hint)
        if "Maximum tree depth" in message:
            return too_deep()
        return OperationFailed("E563", f"query execution failed: {message}")


class Database(DuckDBRunner[TripleSource]):
    """Runs plans over the triples of a source: one table per property and class."""

    @property
    def dialect(self) -> Dialect:
        """One table per property and class."""
        return DuckDBDialect(self._dictionary.find(TYPE))

    def describing(self, subjects: Sequence[int]) -> Sequence[Scan]:
        """Scan all triples."""
        return [Scan(None, None, None)]

    def _prepare(self, plan: Plan) -> None:
        type_id = self._dictionary.find(TYPE)
        for scan in plan.scans:
            name = table_name(scan, type_id)
            if name == "nothing" or scan.source != "union":
                continue
            predicate = self._predicate(name, scan)
            stamp = self._source.stamp(predicate)
            if name not in self._stamps or self._stamps[name] != stamp:
                self._load(name, self._columns(name, predicate))
                self._stamps[name] = stamp

    def _predicate(self, name: str, scan: Scan) -> Predicate | None:
        """The predicate of a table; None for tables of several predicates."""
        if name in ("triples", "types"):
            return None
        term = self._dictionary.term
        assert scan.property is not None, "only the table of all triples has no property"
        if name.startswith("class_"):
            assert scan.object is not None, "a class table has an object"
            return Predicate(TRIPLE, TYPE, term(scan.object))
        return Predicate(TRIPLE, term(scan.property))

    def _columns(self, name: str, predicate: Predicate | None) -> dict[str, Ids]:
        if predicate is None:
            predicates = self._source.predicates()
            if name == "types":
                predicates = [stored for stored in predicates if stored.member_of is not None]
            s, p, o = triple_columns(self._source, predicates, self._dictionary)
            return {"s": s, "o": o} if name == "types" else {"s": s, "p": p, "o": o}
        rows = self._source.rows(predicate)
        names = ("s",) if predicate.member_of is not None else ("s", "o")
        if not len(rows):
            return {n: np.zeros(0, np.uint32) for n in names}
        return {n: rows[:, place] for place, n in enumerate(names)}


def refuse_rows(rows: int, limit: int | None) -> None:
    """Fail if an answer has more rows than the limit.

    >>> refuse_rows(10, None), refuse_rows(10, 10)
    (None, None)
    """
    if limit is not None and rows > limit:
        raise OperationFailed(
            "E607",
            f"the answer has more than {limit:,} rows",
            "narrow the query, or ask for a part of the answer with LIMIT and OFFSET",
        )


def _register(
    connection: Connection,
    name: str,
    function: Callable[..., pa.Array],
    parameter_types: list[Any],  # as DuckDB takes them
    result_type: str,
    raised: list[CorollaryError],
    *,
    volatile: bool = False,
) -> None:
    """Register a function with DuckDB; its Corollary errors are appended to `raised`."""

    def wrapper(*columns: pa.ChunkedArray) -> pa.Array:
        try:
            return function(*columns)
        except CorollaryError as error:
            raised.append(error)
            raise

    # DuckDB reads the number of parameters from the signature.
    parameters = [
        Parameter(f"c{n}", Parameter.POSITIONAL_ONLY) for n in range(len(parameter_types))
    ]
    wrapper.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    connection.duckdb.create_function(
        name,
        wrapper,
        parameter_types,
        result_type,
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
        side_effects=volatile,
    )


def _texts_of(database: weakref.ref[DuckDBRunner[S]], ids: pa.ChunkedArray) -> pa.Array:
    live = database()
    assert live is not None, "a live connection has a live database"
    return live.texts(ids.combine_chunks()).cast(pa.string())
