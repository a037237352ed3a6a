"""Cases that several benchmarks share: materialize a program over tables with one engine.

Every repetition reloads the facts, so none uses indexes built by an earlier one; only the
materialization is timed. A run over the tables of `warm_up` comes first and compiles code on first
use. `bytes_per_fact` is the peak memory during the materialization, minus that of the process
before loading any data, divided by the number of facts of the materialization.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from benchmarks import sql, tables
from benchmarks.isolate import isolated
from benchmarks.measure import Time, forget_peak, least, peak_bytes, timed
from benchmarks.report import Row
from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary, Ids
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate

Tables = Mapping[Predicate, Ids]


def ours(wanted: Mapping[str, int] | None, *, threads: int = 1, **arguments: Any) -> Row:
    """A row for the columnar engine; see `checked`."""
    row = isolated(columnar, threads=threads, **arguments)
    return {"engine": "columnar", "threads": threads, **checked(row, wanted)}


def peer(
    engine: str,
    case: Callable[..., Row],
    absent: str | None,
    compared: Row,
    wanted: Mapping[str, int] | None = None,
    *,
    threads: int = 1,
    **arguments: Any,
) -> Row:
    """A row for a peer, unless it is absent, with its speedup; see `checked`."""
    if absent is not None:
        return {"engine": engine, "skipped": absent}
    row = isolated(case, **({"threads": threads} if threads > 1 else {}), **arguments)
    time = "cpu_seconds" if threads == 1 else "seconds"
    gained = speedup(compared, row, time)
    return {"engine": engine, "threads": threads, **checked(row, wanted), **gained}


def checked(row: Row, wanted: Mapping[str, int] | None) -> Row:
    """Add `correct`: whether the counts per predicate are as expected; None if unknown."""
    if "counts" not in row:
        return row
    return row | {"correct": None if wanted is None else row["counts"] == wanted}


def speedup(ours: Row, peer: Row, time: str = "cpu_seconds") -> Row:
    """The ratio of the rate of the columnar engine to that of the peer."""
    if not ours.get(time) or not peer.get(time) or not peer.get("derived"):
        return {}
    rate, peers = (row["derived"] / row[time] for row in (ours, peer))
    return {"speedup": rate / peers}


def shown(row: Row) -> Row:
    """The row without the counts of each predicate."""
    return {key: value for key, value in row.items() if key != "counts"}


class Case(Protocol):
    """Loaded facts, and the operation to measure."""

    def run(self) -> None: ...

    def describe(self) -> Row:
        """`explicit`, `counts` of facts by predicate, and more."""
        ...


class Columnar:
    """The materialization by the columnar engine."""

    def __init__(self, program: Program, threads: int, modules: bool, explicit: Tables) -> None:
        self.program = program
        self.modules = modules
        self.engine = ColumnarEngine(Dictionary(), threads=threads)
        self.explicit = self.engine.facts(explicit)

    def run(self) -> None:
        self.done = materialize(self.program, self.explicit, self.engine, modules=self.modules)

    def describe(self) -> Row:
        facts, statistics = self.done.facts, self.done.statistics
        # Reading all rows includes deferred work.
        counts, time = timed(
            lambda: {tables.label(p): len(facts.rows(p)) for p in facts.predicates()}
        )
        return {
            "explicit": len(self.explicit),
            "counts": counts,
            "read_seconds": time.seconds,
            "rounds": statistics.rounds,
            "instances": sum(statistics.derivations.values()),
        }


class Rounds:
    """The same semi-naive rounds as SQL in DuckDB."""

    def __init__(self, program: Program, threads: int, explicit: Tables) -> None:
        self.facts = sql.SemiNaive(program, explicit, threads)
        self.explicit = sum(self.facts.counts().values())

    def run(self) -> None:
        self.facts.materialize()

    def describe(self) -> Row:
        counts = {tables.label(p): count for p, count in self.facts.counts().items()}
        return {"explicit": self.explicit, "counts": counts}


class Recursive:
    """The closure of `edge` by a recursive query in DuckDB."""

    def __init__(self, threads: int, explicit: Tables) -> None:
        edges = explicit[Predicate("edge")]
        self.explicit = len(edges)
        self.connection = sql.connect(threads)
        self.connection.execute("CREATE TABLE edge (c0 UINTEGER, c1 UINTEGER)")
        sql.insert(self.connection, "edge", edges)

    def run(self) -> None:
        answer = self.connection.execute(sql.CLOSURE).fetchone()
        self.pairs = int(answer[0]) if answer else 0

    def describe(self) -> Row:
        return {"explicit": self.explicit, "counts": {"edge": self.explicit, "path": self.pairs}}


def columnar(
    program: str,
    path: str,
    warm_up: str,
    threads: int = 1,
    repeat: int = 1,
    modules: bool = False,
) -> Row:
    """The columnar engine, without modules unless requested."""
    load = partial(Columnar, Program.parse(program), threads, modules)
    row = measured(load, path, warm_up, repeat)
    return row | {"instances_per_second": row["instances"] / row["seconds"]}


def duckdb_rounds(program: str, path: str, warm_up: str, threads: int = 1, repeat: int = 1) -> Row:
    """DuckDB with the rounds of the program."""
    return measured(partial(Rounds, Program.parse(program), threads), path, warm_up, repeat)


def duckdb_recursive(path: str, warm_up: str, threads: int = 1, repeat: int = 1) -> Row:
    """DuckDB with a recursive query for the closure of `edge`."""
    return measured(partial(Recursive, threads), path, warm_up, repeat)


def measured(load: Callable[[Tables], Case], path: str, warm_up: str, repeat: int) -> Row:
    """Run the case repeatedly, and describe it."""
    load(tables.load(warm_up)).run()
    gc.collect()
    forget_peak()
    before, peak = peak_bytes(), 0
    loading: list[Time] = []
    running: list[Time] = []
    found: Row = {}
    for _ in range(repeat):
        case, time = timed(partial(load, tables.load(path)))
        loading.append(time)
        gc.collect()
        forget_peak()
        _, time = timed(case.run)
        running.append(time)
        peak = max(peak, peak_bytes())
        found = case.describe()
        del case
    time = least(running)
    explicit, facts = found["explicit"], sum(found["counts"].values())
    derived = facts - explicit
    return {
        "explicit": explicit,
        "facts": facts,
        "derived": derived,
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "load_seconds": least(loading).seconds,
        "derived_per_second": derived / time.seconds,
        "seconds_per_fact": time.seconds / facts,
        "peak_bytes": peak,
        "bytes_per_fact": (peak - before) / facts,
        **found,
    }
