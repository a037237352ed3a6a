"""DuckDB in this process: properties and classes as tables, made when a query first reads them."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Hashable, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from corollary.core.dictionary import Ids
from corollary.errors import OperationFailed
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE
from corollary.query.columns import Evaluator, Kinds, Lookup
from corollary.query.dialect import TEXT_OF, Dialect, DuckDBDialect, table_name
from corollary.query.plan import Call, Plan, Scan
from corollary.query.source import Source

_TYPES = {"id": "BIGINT", "text": "VARCHAR", "bool": "BOOLEAN", "row": "BIGINT"}


class Database:
    """Tables of a source's triples, and plans run over them."""

    def __init__(
        self, source: Source, *, threads: int = 1, limit_memory: int | None = None
    ) -> None:
        self.source = source
        # What does not fit goes to files there, which end with the connection.
        folder = Path(tempfile.gettempdir()) / f"corollary-queries-{os.getpid()}"
        config: dict[str, Any] = {"threads": threads, "temp_directory": str(folder)}
        if limit_memory is not None:
            config["memory_limit"] = f"{limit_memory}B"
        self._connection = duckdb.connect(":memory:", config=config)
        weakref.finalize(self, self._connection.close)
        self._stamps: dict[str, Hashable] = {}  # of the tables that there are
        self._kinds = Kinds(source.dictionary)
        self._lookup = Lookup(source.dictionary, ())
        self._functions: set[str] = set()
        self._refreshed: tuple[Hashable, ...] = ()
        self._connection.execute("CREATE TABLE nothing (s BIGINT, o BIGINT)")
        own = weakref.ref(self)
        self._register(TEXT_OF, lambda ids: _text_of(own, ids), ["BIGINT"], "VARCHAR")

    def refresh(self) -> None:
        """Give ids to the properties and classes of facts, which need not have any otherwise."""
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
        self._lookup = Lookup(self.source.dictionary, plan.constants)
        for call in plan.calls:
            if call.name not in self._functions:
                self._define(call)
        return self._table(plan.sql)

    def explain(self, plan: Plan) -> str:
        """How DuckDB carries out a plan."""
        self.run(plan)
        rows = self._connection.execute(f"EXPLAIN {plan.sql}").fetchall()
        return "\n".join(str(row[1]) for row in rows)

    def texts(self, ids: pa.Array) -> pa.Array:
        """The texts of ids that a plan has given."""
        return self._lookup.texts(ids)

    def forget(self, plan: Plan) -> None:
        """Drop the functions of a plan that is not used any more."""
        for call in plan.calls:
            if call.name in self._functions:
                self._connection.remove_function(call.name)
                self._functions.discard(call.name)

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

    def _load(self, name: str, columns: dict[str, Ids]) -> None:
        arrays = {n: pa.array(np.ascontiguousarray(ids)) for n, ids in columns.items()}
        self._connection.register("given", pa.table(arrays))
        listed = ", ".join(f"CAST({column} AS BIGINT) AS {column}" for column in columns)
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT {listed} FROM given")
        self._connection.unregister("given")

    def _drop(self, name: str) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS {name}")

    # -- functions -------------------------------------------------------------------------------

    def _define(self, call: Call) -> None:
        kinds = [_TYPES[kind] for kind in call.kinds]
        if call.wanted == "aggregate":
            kinds = [f"{kind}[]" for kind in kinds]
        result = "BOOLEAN" if call.wanted == "condition" else "VARCHAR"
        function = Evaluator(call, self._lookup, self._kinds)
        self._register(call.name, function, kinds, result, volatile=call.volatile)
        self._functions.add(call.name)

    def _register(
        self,
        name: str,
        function: Callable[..., Any],
        takes: list[Any],
        gives: str,
        *,
        volatile: bool = False,
    ) -> None:

        def called(*columns: pa.ChunkedArray) -> pa.Array:
            return function(*columns)

        # DuckDB counts the parameters by the signature.
        places = [Parameter(f"c{n}", Parameter.POSITIONAL_ONLY) for n in range(len(takes))]
        called.__signature__ = Signature(places)  # type: ignore[attr-defined]
        self._connection.create_function(
            name,
            called,
            takes,
            gives,
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=volatile,
        )

    def _table(self, sql: str) -> pa.Table:
        try:
            return self._connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise _failed(error) from None


def _text_of(database: weakref.ref[Database], ids: pa.ChunkedArray) -> pa.Array:
    own = database()
    assert own is not None, "a database that is gone runs nothing"
    return own.texts(ids.combine_chunks()).cast(pa.string())


def _failed(error: duckdb.Error) -> OperationFailed:
    message = str(error).partition("\n")[0]
    if isinstance(error, duckdb.OutOfMemoryException):
        hint = "ask for less, or allow more memory"
        return OperationFailed("E406", f"the query needs more memory: {message}", hint)
    return OperationFailed("E563", f"the query could not be carried out: {message}")
