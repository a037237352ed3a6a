"""Closures, components, aggregates and filters in tasks: every way gives what the oracle gives.

Thresholds are drawn with the graphs, so that each of the ways is taken; what reaches the driver is
counted. Streams of changes are those of `tests/streams.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.algorithms.maintain import ALGORITHMS, KINDS
from corollary.algorithms.seminaive import materialize
from corollary.core.compile import compile_rule
from corollary.core.connected import components, count_pairs, stars
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark import aggregates
from corollary.engines.spark.engine import SparkEngine
from corollary.knowledge_base import distributed
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from tests.algorithms.replay import replay, states
from tests.dense import composition, modular_program
from tests.engines.factories import spark
from tests.engines.spark.inline import InlineRun, inline
from tests.streams import Stream, stream

EDGE, PAIR, LEAST = Predicate("e"), Predicate("p"), Predicate("l")
SEEDS = st.integers(0, 2**32 - 1)
MANY = 10**6

OPTIONS = st.fixed_dictionaries(
    {
        "small": st.sampled_from((0, 3, 8)),
        "partitions": st.sampled_from((1, 2, 3)),
        "finish": st.sampled_from((0, 4)),
        "tiny": st.sampled_from((0, 2)),
        "edges": st.sampled_from((0, 3, MANY)),
    }
)


def random_graph(seed: int, nodes: int, edges: int) -> Ids:
    random = np.random.default_rng(seed)
    return random.integers(0, nodes, (edges, 2)).astype(np.uint32)


class Watched(InlineRun):
    """How many rows have been brought to the driver at most, for one purpose."""

    most = 0

    def collect(self, frame: Any) -> Any:
        found = super().collect(frame)
        self.most = max(self.most, sum(map(len, found.values())))
        return found


def watched(dictionary: Dictionary, **options: Any) -> tuple[SparkEngine, Watched]:
    engine: Any = inline(dictionary, **options)
    old = engine.run
    engine.run = Watched(old._start, dictionary, old.make_engine, old.options)
    return engine, engine.run


@settings(max_examples=30)
@given(SEEDS, st.integers(1, 60), st.integers(1, 5), st.sampled_from((0, 5, MANY)))
def test_components(seed: int, edges: int, partitions: int, limit: int) -> None:
    graph = random_graph(seed, 40, edges)
    wanted = ColumnarEngine(Dictionary())
    engine, run = watched(Dictionary(), small=0, partitions=partitions, edges=limit)
    found = engine.components(EDGE, LEAST, engine.facts({EDGE: graph}))
    assert run.most == 0
    phases = {report.phase for report in engine.reports}
    expected = wanted.components(EDGE, LEAST, wanted.facts({EDGE: graph}))
    assert found.rows(LEAST).tolist() == expected.rows(LEAST).tolist()
    assert ("contraction" in phases) == (edges > limit or len(engine.facts({EDGE: graph})) > limit)
    if limit == 0 and len(stars(graph)):
        assert "stars" in phases


def test_a_long_chain_takes_few_rounds() -> None:
    """Rounds grow with the logarithm of the diameter, not with it."""
    nodes = np.random.default_rng(1).permutation(2_000).astype(np.uint32)
    chain = np.column_stack([nodes[:-1], nodes[1:]])
    engine, _ = watched(Dictionary(), small=0, partitions=16, edges=0)
    # Facts that tasks have derived are in many partitions.
    copy = compile_rule(Program.parse("e(?x, ?y) :- f(?x, ?y) .").rules[0], engine.dictionary)
    facts = engine.derive([copy], engine.facts({Predicate("f"): chain})).facts
    found = engine.components(EDGE, LEAST, facts)
    assert not found.rows(LEAST)[:, 1].any()
    rounds = sum(report.phase == "stars" for report in engine.reports)
    assert 2 <= rounds <= 14


@pytest.mark.parametrize("limit", [0, MANY])
def test_only_components_that_differ_are_written(limit: int) -> None:
    engine, run = watched(Dictionary(), small=4, partitions=3, edges=limit)
    clique = [(a, b) for a in range(20) for b in range(a)]
    before = engine.facts({EDGE: np.array([*clique, (30, 31), (32, 33)], np.uint32)})
    after = engine.facts({EDGE: np.array([*clique[:-1], (31, 32), (32, 33)], np.uint32)})
    changed = before.difference(after).union(after.difference(before))
    embedded = ColumnarEngine(Dictionary())
    nothing, old, new, other = (
        embedded.facts({EDGE: f.rows(EDGE)} if f is not None else {})
        for f in (None, before, after, changed)
    )
    pairs = embedded.reconnect(EDGE, PAIR, nothing, old, changed=old, known=nothing).inserted
    wanted = embedded.reconnect(EDGE, PAIR, old, new, changed=other, known=pairs)
    known = engine.facts({PAIR: pairs.rows(PAIR)})
    run.most = 0
    found = engine.reconnect(EDGE, PAIR, before, after, changed=changed, known=known)
    most = run.most
    assert found.inserted.rows(PAIR).tolist() == wanted.inserted.rows(PAIR).tolist()
    assert found.deleted.rows(PAIR).tolist() == wanted.deleted.rows(PAIR).tolist()
    assert "pairs" in {report.phase for report in engine.reports}
    assert most <= len(found.inserted) + len(found.deleted), (
        "neither edges nor pairs come to the driver"
    )


@pytest.mark.parametrize(("edges", "phase"), [(MANY, "closure"), (0, "exchange")])
def test_a_closure_is_not_made_on_the_driver(edges: int, phase: str) -> None:
    """Few edges of a long path have many pairs."""
    text = "p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- p(?x, ?y), e(?y, ?z) ."
    engine, run = watched(Dictionary(), small=50, partitions=3, edges=edges)
    chain = np.array([(n, n + 1) for n in range(48)], np.uint32)
    facts = materialize(Program.parse(text), engine.facts({EDGE: chain}), engine).facts
    assert phase in {report.phase for report in engine.reports}
    assert run.most <= 50
    assert len(facts.only([PAIR])) == 48 * 49 // 2


AGGREGATES = """
    total(?g, ?n, ?s, ?a) :- AGGREGATE(v(?x, ?g, ?y) ON ?g
        BIND count(?x) AS ?n BIND sum(?y) AS ?s BIND avg(?y) AS ?a) .
    range(?g, ?a, ?b) :- AGGREGATE(v(?x, ?g, ?y) ON ?g BIND min(?y) AS ?a BIND max(?y) AS ?b) .
    all(?n, ?b) :- AGGREGATE(v(?x, ?g, ?y) ON BIND count(?x) AS ?n BIND max(?y) AS ?b) .
    close(?x, ?y) :- v(?x, ?g, ?n), v(?y, ?g, ?m), FILTER(?n < ?m && ?m - ?n <= 1) .
    near(?x, ?y) :- close(?x, ?y) .
    near(?x, ?z) :- near(?x, ?y), close(?y, ?z), FILTER(?x != ?z) .
"""
VALUES = ("1", "2", "3", "1.5", "-2", "9223372036854775807", '"a"', "2.5e0", '"b"')


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.sampled_from(VALUES)), max_size=14),
    OPTIONS,
)
def test_aggregates_and_filters(rows: list[tuple[int, int, str]], options: dict[str, int]) -> None:
    text = AGGREGATES + "".join(f"v({x}, {g}, {y}) ." for x, g, y in rows)
    program = Program.parse(text)
    dictionary = Dictionary()
    engine = inline(dictionary, **options)
    explicit = engine.facts(encode(program.facts, dictionary))
    found = materialize(program, explicit, engine).facts
    assert set(decode(found, dictionary)) == set(reference.materialize(program))


def test_the_driver_sees_values_and_results_once() -> None:
    """Not the instances, nor the groups of an aggregate, nor the pairs that a filter compares."""
    text = """
        total(?g, ?s) :- AGGREGATE(v(?x, ?g, ?y) ON ?g BIND sum(?y) AS ?s) .
        less(?g, ?x, ?y) :- v(?x, ?g, ?n), v(?y, ?g, ?m), FILTER(?n < ?m) .
    """
    facts = "".join(f"v({n}, {n % 40}, {n % 3}) ." for n in range(400))
    program, dictionary = Program.parse(text + facts), Dictionary()
    engine, run = watched(dictionary, small=10, partitions=3)
    explicit = engine.facts(encode(program.facts, dictionary))
    found = materialize(program, explicit, engine).facts
    assert run.most <= 3 * 3, "three values, from three tasks"
    totals = found.only([Predicate("total")])
    assert set(decode(totals, dictionary)) == {
        fact for fact in reference.materialize(program) if fact.relation == "total"
    }
    assert len(found.only([Predicate("less")])) == sum(
        a % 3 < b % 3 for a in range(400) for b in range(a % 40, 400, 40)
    )


COMPARED = """
    all(?x) :- v(?x) .
    all(?x) :- differ(?x, ?y) .
    some(?x) :- w(?x) .
    some(?x) :- differ(?x, ?y), w(?y) .
    differ(?x, ?y) :- some(?x), all(?y), FILTER(?x + ?y < 9) .
    differ(?x, ?y) :- all(?x), all(?y), n(?y), FILTER(?x - ?y > 5) .
"""


def test_nothing_is_told_where_nothing_is_compared() -> None:
    """All terms would be compared with some, of which there are none."""
    program = Program.parse(COMPARED + "".join(f"v({n}) ." for n in range(400)))
    dictionary = Dictionary()
    engine, run = watched(dictionary, small=10, partitions=3, finish=0)
    explicit = engine.facts(encode(program.facts, dictionary))
    found = materialize(program, explicit, engine).facts
    assert run.most == 0
    assert set(decode(found, dictionary)) == set(reference.materialize(program))


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("vwn"), st.integers(0, 12)), max_size=14), OPTIONS)
def test_what_is_compared_is_told(facts: list[tuple[str, int]], options: dict[str, int]) -> None:
    program = Program.parse(COMPARED + "".join(f"{name}({n}) ." for name, n in facts))
    dictionary = Dictionary()
    engine = inline(dictionary, **options)
    found = materialize(program, engine.facts(encode(program.facts, dictionary)), engine).facts
    assert set(decode(found, dictionary)) == set(reference.materialize(program))


def test_sums_of_partial_counts_are_exact() -> None:
    """A number that does not fit into 32 bits, and one value very often."""
    rows = np.array([[1, 7]] * 3 + [[2, 7]], np.uint32)
    groups, values, numbers = aggregates._added(rows, np.array([2**33, 1, 2, 5]))
    assert (groups.tolist(), values.tolist()) == ([[1], [2]], [7, 7])
    assert numbers.tolist() == [2**33 + 3, 5]


def _played(found: Stream, make: Any, seed: int) -> None:
    algorithm = ALGORITHMS[seed % len(ALGORITHMS)]
    modules = KINDS[algorithm].modular is not None and seed % 4 > 0
    wanted = states(found)
    for player in replay(make, found, algorithm, wanted, coarse=bool(seed & 8), modules=modules):
        player.maintainer.verify()


def _stream(seed: int, commits: int) -> Stream:
    program = (composition(seed), modular_program(seed), modular_program(seed), None)[seed % 4]
    return stream(seed, program, commits)


@settings(max_examples=12)
@given(SEEDS, OPTIONS)
def test_streams(seed: int, options: dict[str, int]) -> None:
    """Negation, aggregates, filters, modules, changes of facts and rules."""
    _played(_stream(seed, 4), lambda dictionary: inline(dictionary, **options), seed)


@pytest.mark.spark
def test_streams_on_spark() -> None:
    def make(dictionary: Dictionary) -> Any:
        return spark(dictionary, small=3, partitions=2, tiny=1, edges=3)

    _played(_stream(5, 1), make, 5)


@pytest.mark.long
@pytest.mark.spark
def test_the_peers_of_the_benchmark_find_the_same() -> None:
    """Joins of DataFrames, and the functions that they are compared with, over one frame."""
    from benchmarks import dag, spark_graphs
    from tests.engines.factories import session

    graph = spark_graphs.random_edges(12, nodes=14)
    columns = [graph[:, at].astype(np.int64) for at in (0, 1)]
    rows = {"relation": ["edge"] * len(graph), "arg0": columns[0], "arg1": columns[1]}
    frame = session().createDataFrame(pa.table(rows))
    later = float("inf")
    nodes, first = components(graph)
    assert spark_graphs.labels_by_joins(frame, later) == len(np.unique(first))
    assert spark_graphs.connected_by_joins(frame, later) == count_pairs(graph)
    edge = Predicate("edge")
    found = distributed.components(frame, edge, Dictionary(), small=3, partitions=2, edges=4)
    table = found.toArrow().to_pylist()
    wanted = dict(zip(nodes.tolist(), nodes[first].tolist(), strict=True))
    assert {row["node"]: row["least"] for row in table} == wanted
    closed = materialize(
        Program.parse(dag.LINEAR),
        (engine := ColumnarEngine(Dictionary())).facts({edge: graph}),
        engine,
    )
    assert spark_graphs.closed_by_joins(frame, later) == len(closed.facts.only([Predicate("path")]))
