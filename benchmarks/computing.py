"""Rules that compute: arithmetic and `CONCAT` over a relation, and shortest paths.

Both sides compute a column of the same table, with one thread, and are measured in processor time.
Ours goes from ids of terms to ids of terms, with an empty dictionary of results; what DuckDB
computes is stored in a table of native types, once as it is and once as a set of rows, which is
what a rule derives. Of shortest paths, SciPy's time is that of the search alone, over a
graph in its own format.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.isolate import isolated
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.seminaive import materialize
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary, Ids
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.xsd import INTEGER

RULES = {
    "arithmetic": ("out(?x, ?v) :- t(?x, ?a, ?b), BIND(?a * 3 + ?b AS ?v) .", "a * 3 + b"),
    "concat": ("out(?x, ?v) :- t(?x, ?a, ?b), BIND(CONCAT(?a, ?b) AS ?v) .", "a || b"),
}
DISTANCES = """
    dist(?s, 0) :- source(?s) .
    dist(?z, MIN(?d + ?w)) :- dist(?y, ?d), edge(?y, ?z, ?w) .
"""
_EDGES_PER_NODE = 10
_HEAVIEST = 1_000
_CHANGES = 100
_WARM_UP = 20_000  # rows of the run that compiles


def run(options: Options) -> Iterator[Row]:
    """Each case at each scale."""
    for scale in options.scales:
        for name in RULES:
            yield {"case": name, "rows": scale, "peer": "duckdb"} | isolated(
                column, timeout=options.timeout, name=name, scale=scale, repeat=options.repeat
            )
        yield {"case": "distances", "rows": scale, "peer": "scipy"} | isolated(
            shortest, timeout=options.timeout, scale=scale, repeat=options.repeat
        )


def column(name: str, scale: int, repeat: int) -> Row:
    """Compute a column from two others."""
    import duckdb

    rule, sql = RULES[name]
    program = Program.parse(rule)
    random = np.random.default_rng(0)
    one, two = random.integers(0, scale, scale), random.integers(0, scale, scale)
    if name == "concat":  # every result is another one
        one = np.arange(scale)

    def ours(rows: int) -> tuple[float, list[str]]:
        engine = ColumnarEngine(Dictionary(), threads=1)
        keys = _integers(engine.dictionary, np.arange(rows))
        if name == "concat":
            values = [_strings(engine.dictionary, part[:rows]) for part in (one, two)]
        else:
            values = [_integers(engine.dictionary, part[:rows]) for part in (one, two)]
        table = np.stack([keys, *values], axis=1)
        explicit = engine.facts({Predicate("t"): table})
        seconds, done = _cpu(lambda: materialize(program, explicit, engine))
        # In the order of the keys, whose ids ascend.
        ids = done.facts.rows(Predicate("out"))[:, 1]
        return seconds, _lexical(engine.dictionary, ids)

    connection = duckdb.connect(config={"threads": 1})
    kind = "VARCHAR" if name == "concat" else "BIGINT"
    texts = {"x": np.arange(scale), "a": one, "b": two}
    frame = _arrow(texts)
    connection.register("frame", frame)
    connection.execute(f"CREATE TABLE t AS SELECT x, a::{kind} AS a, b::{kind} AS b FROM frame")

    def theirs(which: str) -> None:
        connection.execute(f"CREATE OR REPLACE TABLE o AS SELECT {which} x, {sql} AS v FROM t")

    ours(min(scale, _WARM_UP))
    times, peers, sets, found = [], [], [], list[str]()
    for _ in range(repeat):
        seconds, found = ours(scale)
        times.append(seconds)
        peers.append(_cpu(partial(theirs, ""))[0])
        sets.append(_cpu(partial(theirs, "DISTINCT"))[0])
    wanted = [str(v) for (v,) in connection.execute("SELECT v FROM o ORDER BY x").fetchall()]
    row = _compared(min(times), min(peers)) | {"peer_set_seconds": min(sets)}
    return row | {"correct": found == wanted}


def shortest(scale: int, repeat: int) -> Row:
    """Distances from one node, and changes of one edge."""
    random = np.random.default_rng(1)
    nodes = max(2, scale // _EDGES_PER_NODE)
    edges = random.integers(0, nodes, (scale, 2))
    weights = random.integers(1, _HEAVIEST, scale)

    def ours(rows: int) -> tuple[float, ColumnarEngine, Any, dict[str, float]]:
        engine = ColumnarEngine(Dictionary(), threads=1)
        ids = _integers(engine.dictionary, np.arange(max(nodes, _HEAVIEST)))
        table = np.stack([*ids[edges[:rows]].T, ids[weights[:rows]]], axis=1)
        tables = {Predicate("edge"): table, Predicate("source"): ids[:1].reshape(1, 1)}
        explicit = engine.facts(tables)
        program = Program.parse(DISTANCES)
        seconds, done = _cpu(lambda: materialize(program, explicit, engine))
        rows_found = done.facts.rows(Predicate("dist"))
        names, values = (_lexical(engine.dictionary, part) for part in rows_found.T)
        found = dict(zip(names, map(float, values), strict=True))
        return seconds, engine, explicit, found

    ours(min(scale, _WARM_UP))
    times = []
    for _ in range(repeat):
        seconds, engine, explicit, found = ours(scale)
        times.append(seconds)
    row: Row = {"seconds": min(times)}
    maintainer = Maintainer(Program.parse(DISTANCES), explicit, engine)
    table = explicit.rows(Predicate("edge"))
    nothing = engine.facts({})
    changes: list[float] = []
    for at in random.choice(len(table), min(_CHANGES, len(table)), replace=False):
        edge = engine.facts({Predicate("edge"): table[at : at + 1]})
        removal, insertion = Changes(nothing, edge), Changes(edge, nothing)
        changes.append(_cpu(partial(maintainer.update, removal))[0])
        changes.append(_cpu(partial(maintainer.update, insertion))[0])
    median = float(np.median(changes[2:]))  # the first ones build indexes
    row |= {"change_seconds": median, "change_ratio": min(times) / median}
    if importlib.util.find_spec("scipy") is None:
        return row | {"correct": None, "note": "scipy is not installed"}
    wanted, peers = _scipy(edges, weights, nodes, repeat)
    return _compared(min(times), peers) | row | {"correct": found == wanted}


def _scipy(edges: Any, weights: Any, nodes: int, repeat: int) -> tuple[dict[str, float], float]:
    from scipy.sparse import coo_matrix  # type: ignore[import-untyped]
    from scipy.sparse.csgraph import dijkstra  # type: ignore[import-untyped]

    # Of parallel edges, which a matrix would add, the lightest.
    order = np.lexsort((weights, edges[:, 1], edges[:, 0]))
    pairs = edges[order]
    first = np.ones(len(order), bool)
    first[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    kept = order[first]
    matrix = coo_matrix((weights[kept], edges[kept].T), shape=(nodes, nodes)).tocsr()
    times, found = [], np.zeros(0)
    for _ in range(repeat):
        seconds, found = _cpu(lambda: dijkstra(matrix, indices=0))
        times.append(seconds)
    reached = np.flatnonzero(np.isfinite(found))
    return {str(node): float(found[node]) for node in reached.tolist()}, min(times)


def _compared(ours: float, theirs: float) -> Row:
    return {"seconds": ours, "peer_seconds": theirs, "ratio": ours / theirs}


def _cpu(action: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


def _arrow(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table(columns)


def _integers(dictionary: Dictionary, numbers: Any) -> Ids:
    return _encoded(dictionary, numbers, f'"^^<{INTEGER}>')


def _strings(dictionary: Dictionary, numbers: Any) -> Ids:
    return _encoded(dictionary, numbers, '"')


def _encoded(dictionary: Dictionary, numbers: Any, end: str) -> Ids:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.large_string()
    digits = pa.array(numbers).cast(kind)
    parts = [pa.scalar('"', kind), digits, pa.scalar(end, kind), pa.scalar("", kind)]
    return dictionary.encode_texts(pc.binary_join_element_wise(*parts))


def _lexical(dictionary: Dictionary, ids: Ids) -> list[str]:
    return [text[1 : text.index('"', 1)] for text in dictionary.texts(ids).to_pylist()]


BENCHMARK = Benchmark(
    "computing",
    "computed columns and shortest paths; peers: DuckDB, SciPy",
    unit="rows",
    scales=(10**6,),
    small=(2_000,),
    run=run,
    plots=(Plot("Rules that compute", "case", "seconds", "peer", unit="seconds"),),
    views=(
        View(
            "Rules that compute, in processor time",
            (
                "case",
                "rows",
                "seconds",
                "peer",
                Column("peer_seconds", "peer: s"),
                Column("peer_set_seconds", "peer, as a set: s"),
                Column("ratio", "× the peer"),
                Column("change_seconds", "one edge: s"),
                Column("change_ratio", "× faster than all"),
                "correct",
            ),
        ),
    ),
)
