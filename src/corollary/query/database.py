"""DuckDB in this process: properties and classes as tables, made when a query first reads them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from inspect import Parameter, Signature
from typing import Any, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from corollary.core.dictionary import Ids
from corollary.engines.columnar.budget import Budget, readable, resident
from corollary.errors import CorollaryError, OperationFailed
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE
from corollary.query.columns import Evaluator, Kinds, Lookup
from corollary.query.connection import Connection
from corollary.query.dialect import TEXT_OF, Dialect, DuckDBDialect, table_name
from corollary.query.plan import Call, Plan, Scan
from corollary.query.source import Source

_TYPES = {"id": "BIGINT", "text": "VARCHAR", "bool": "BOOLEAN", "row": "BIGINT"}

_BATCH = 1 << 16  # rows of a result that are fetched at once
_LARGE = 1 << 16  # rows of a result from which on the memory is looked at

R = TypeVar("R")


class Database:
    """Tables of a source's triples, and plans run over them."""

    def __init__(
        self, source: Source, *, threads: int = 1, limit_memory: int | None = None
    ) -> None:
        self.source = source
        self._threads, self._budget = threads, Budget(limit_memory)
        self._stamps: dict[str, Hashable] = {}  # of the tables that there are
        self._kinds = Kinds(source.dictionary)
        self._lookup = Lookup(source.dictionary, ())
        self._functions: set[str] = set()
        self._inline: set[str] = set()  # tables of VALUES that are loaded
        self._raised: list[CorollaryError] = []  # by functions; DuckDB passes on their text only
        self._refreshed: tuple[Hashable, ...] = ()
        self._connection = self._connected()

    def _connected(self) -> Connection:
        """A connection that has no tables yet."""
        limit = self._budget.limit
        connection = Connection(self._threads, None if limit is None else limit - resident())
        connection.execute("CREATE TABLE nothing (s BIGINT, o BIGINT)")
        own = weakref.ref(self)
        text_of = partial(_text_of, own)
        _register(connection, TEXT_OF, text_of, ["BIGINT"], "VARCHAR", self._raised)
        return connection

    def _reconnect(self) -> None:
        """Begin again in a child process, which cannot use the connection of its parent."""
        self._connection.abandon()
        self._stamps, self._functions, self._inline = {}, set(), set()
        self._connection = self._connected()

    def refresh(self) -> None:
        """Give ids to the properties and classes of facts, which need not have any otherwise."""
        if not self._connection.is_usable():
            self._reconnect()
        stamp = self.source.stamp()
        if self._refreshed == (stamp,):
            return
        self.source.dictionary.encode(self.source.labels())
        self._refreshed = (stamp,)

    @property
    def dialect(self) -> Dialect:
        """How this database wants its SQL."""
        return DuckDBDialect(self.source.dictionary.find(TYPE))

    def run(self, plan: Plan) -> pa.Table:
        """The solutions of a plan: ids and texts, a column for each of its columns."""
        self._prepare(plan)
        self._load_inline(plan)
        self._lookup = Lookup(self.source.dictionary, plan.constants)
        for call in plan.calls:
            if call.name not in self._functions:
                self._define(call)
        return self._table(plan.sql)

    def explain(self, plan: Plan) -> str:
        """How DuckDB carries out a plan."""
        self.run(plan)
        connection = self._connection
        rows = connection.run(lambda: connection.duckdb.execute(f"EXPLAIN {plan.sql}").fetchall())
        return "\n".join(str(row[1]) for row in rows)

    def texts(self, ids: pa.Array) -> pa.Array:
        """The texts of ids that a plan has given."""
        if len(ids) > _LARGE:
            text = self.source.dictionary.texts_from(0)
            length = text.nbytes / max(1, len(text))
            self._budget.reserve(int(len(ids) * (8 + length)), f"an answer of {len(ids):,} terms")
        return self._lookup.texts(ids)

    def forget(self, plan: Plan) -> None:
        """Drop the functions of a plan that is not used any more."""
        for call in plan.calls:
            if call.name in self._functions:
                self._connection.duckdb.remove_function(call.name)
                self._functions.discard(call.name)
        for table in plan.inline:
            self._drop(table.name)
            self._inline.discard(table.name)

    def describing(self, subjects: Sequence[int]) -> Sequence[Scan]:
        """All triples."""
        return [Scan(None, None, None)]

    def _prepare(self, plan: Plan) -> None:
        """Make the tables that are read, where there are none or others now."""
        type_id = self.source.dictionary.find(TYPE)
        for scan in plan.scans:
            name = table_name(scan, type_id)
            if name == "nothing":
                continue
            predicate = self._predicate(name, scan)
            stamp = self.source.stamp(predicate)
            if self._stamps.get(name) == stamp and name in self._stamps:
                continue
            self._load(name, self._columns(name, predicate))
            self._stamps[name] = stamp

    # -- tables ----------------------------------------------------------------------------------

    def _predicate(self, name: str, scan: Scan) -> Predicate | None:
        """The predicate of a table, None for those of several."""
        if name in ("triples", "types"):
            return None
        term = self.source.dictionary.term
        assert scan.property is not None, "only all triples have no property"
        if name.startswith("class_"):
            assert scan.object is not None, "a class was named"
            return Predicate(TRIPLE, TYPE, term(scan.object))
        return Predicate(TRIPLE, term(scan.property))

    def _columns(self, name: str, predicate: Predicate | None) -> dict[str, Ids]:
        if predicate is not None:
            rows = self.source.rows(predicate)
            names = ("s",) if predicate.member_of is not None else ("s", "o")
            if not len(rows):
                return {n: np.zeros(0, np.uint32) for n in names}
            return {n: rows[:, place] for place, n in enumerate(names)}
        find = self.source.dictionary.id
        parts: list[tuple[Ids, Ids, Ids]] = []
        for known in self.source.predicates():
            if name == "types" and known.member_of is None:
                continue
            assert known.property is not None, "triples are kept by property"
            rows = self.source.rows(known)
            if not len(rows):
                continue
            number = len(rows)
            property_ = np.full(number, find(known.property), np.uint32)
            object_ = (
                rows[:, 1]
                if known.member_of is None
                else np.full(number, find(known.member_of), np.uint32)
            )
            parts.append((rows[:, 0], property_, object_))
        empty = np.zeros(0, np.uint32)
        s, p, o = (np.concatenate([empty, *(part[place] for part in parts)]) for place in range(3))
        return {"s": s, "o": o} if name == "types" else {"s": s, "p": p, "o": o}

    def _load(self, name: str, columns: Mapping[str, Ids]) -> None:
        self._create(name, {n: pa.array(np.ascontiguousarray(c)) for n, c in columns.items()})

    def _create(self, name: str, columns: Mapping[str, pa.Array]) -> None:
        """Make a table of ids."""
        listed = ", ".join(f"CAST({column} AS BIGINT) AS {column}" for column in columns)
        statement = f"CREATE OR REPLACE TABLE {name} AS SELECT {listed} FROM given"
        database = self._connection.duckdb
        database.register("given", pa.table(dict(columns)))
        try:
            self._run(lambda: database.execute(statement))
        finally:
            database.unregister("given")

    def _load_inline(self, plan: Plan) -> None:
        """Load the solutions that a plan lists, once."""
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
        if call.wanted == "aggregate":
            kinds = [f"{kind}[]" for kind in kinds]
        result = "BOOLEAN" if call.wanted == "condition" else "VARCHAR"
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
        """The result of a query.

        DuckDB's limit for memory does not hold for results. So with a limit the result is fetched
        batch by batch, and the memory of the process is looked at after each.
        """
        database = self._connection.duckdb
        if self._budget.limit is None:
            return self._run(lambda: database.sql(sql).to_arrow_table())
        return self._run(lambda: self._streamed(database.sql(sql)))

    def _streamed(self, relation: duckdb.DuckDBPyRelation) -> pa.Table:
        reader = relation.to_arrow_reader(_BATCH)
        batches: list[pa.RecordBatch] = []
        try:
            rows = 0
            for batch in reader:
                rows += batch.num_rows
                if rows > _LARGE:
                    self._budget.reserve(batch.nbytes, f"an answer of at least {rows:,} rows")
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)
        finally:
            reader.close()  # else the query behind it lives on

    def _run(self, work: Callable[[], R]) -> R:
        try:
            return self._connection.run(work)
        except (duckdb.Error, OSError) as error:  # a reader's errors are those of files
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> CorollaryError:
        if self._raised:
            reason = self._raised[0]
            self._raised.clear()
            return reason
        message = str(error).partition("\n")[0]
        if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory" in message:
            limit = self._budget.limit
            allowed = "" if limit is None else f" than --limit-memory ({readable(limit)}) allows"
            hint = "ask for less, or allow more memory"
            return OperationFailed("E406", f"the query needs more memory{allowed}: {message}", hint)
        return OperationFailed("E563", f"the query could not be carried out: {message}")


def _register(
    connection: Connection,
    name: str,
    function: Callable[..., Any],
    takes: list[Any],
    gives: str,
    raised: list[CorollaryError],
    *,
    volatile: bool = False,
) -> None:
    """Make a function known to DuckDB; its own errors are appended to `raised`."""

    def called(*columns: pa.ChunkedArray) -> pa.Array:
        try:
            return function(*columns)
        except CorollaryError as error:
            raised.append(error)
            raise

    # DuckDB counts the parameters by the signature.
    places = [Parameter(f"c{n}", Parameter.POSITIONAL_ONLY) for n in range(len(takes))]
    called.__signature__ = Signature(places)  # type: ignore[attr-defined]
    connection.duckdb.create_function(
        name,
        called,
        takes,
        gives,
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
        side_effects=volatile,
    )


def _text_of(database: weakref.ref[Database], ids: pa.ChunkedArray) -> pa.Array:
    own = database()
    assert own is not None, "a database that is gone runs nothing"
    return own.texts(ids.combine_chunks()).cast(pa.string())
