"""Every way to compare two closures gives the same, whatever the sizes that choose it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.dictionary import Dictionary
from corollary.core.tuning import UNLIMITED
from corollary.engines.columnar import reach_lists
from corollary.engines.columnar.budget import Budget
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.workers import Workers
from corollary.testing import thresholds
from tests.engines import conformance

SEARCHES = {"closure_diff_edge_words": 0}
ROWS = {"closure_diff_edge_words": UNLIMITED}
FEW_SOURCES, ALL_SOURCES = {"closure_diff_all_ratio": 0}, {"closure_diff_all_ratio": UNLIMITED}
LISTS = {"parallel_pairs_minimum": 0} | ALL_SOURCES
WAYS: dict[str, dict[str, int]] = {
    "rows": ROWS,
    "lists": {"reach_list_room": 1} | LISTS | SEARCHES,
    "lists of many": {"closure_diff_nodes_limit": 0} | LISTS,
    "searches": SEARCHES,
    "few sources": {"closure_diff_lookup_ratio": 0} | SEARCHES | FEW_SOURCES,
    "rows of few sources": ROWS | FEW_SOURCES,
    "tombstones": {"tombstone_ratio": 1} | SEARCHES | FEW_SOURCES,
    "many edges": {"component_local_edges_limit": 0},
    "few edges": {"component_local_edges_limit": 1000, "tombstone_ratio": 1},
}
LAWS = [law for law in conformance.LAWS if "differ_as" in law.name]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("law", LAWS, ids=[law.name for law in LAWS])
@pytest.mark.parametrize("threads", [1, 2])
@given(data=st.data())
def test_ways_agree(way: str, law: conformance.Law, threads: int, data: st.DataObject) -> None:
    def engine(dictionary: Dictionary) -> ColumnarEngine:
        return ColumnarEngine(dictionary, threads=threads)

    example = data.draw(law.examples)
    with thresholds(**WAYS[way]):
        law.check(engine, example)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("edges", [40, 150, 300, 900])  # short lists, long ones, cycles
@pytest.mark.parametrize("room", [1, 64])  # the pool of lists grows, or does not
def test_lists_are_the_closure(threads: int, edges: int, room: int) -> None:
    rng, nodes = np.random.default_rng(edges), 200
    graph, closure = reached(rng.integers(0, nodes, (edges, 2)), nodes)
    with thresholds(parallel_pairs_minimum=0, reach_list_room=room, closure_block_pairs=1000):
        found = reach_lists.closure(keys(graph), nodes, Workers(threads), Budget(None))
    assert found is not None
    assert np.array_equal(found.pairs, keys(closure))


def reached(edges: Any, nodes: int) -> tuple[Any, Any]:
    """A graph and its closure, as matrices."""
    graph = np.zeros((nodes, nodes), bool)
    graph[edges[:, 0], edges[:, 1]] = True
    closure = graph
    while (more := closure | (closure @ graph)).sum() > closure.sum():
        closure = more
    return graph, closure


def keys(matrix: Any) -> Any:
    """The pairs of a matrix."""
    subjects, objects = np.nonzero(matrix)
    return subjects.astype(np.uint64) << np.uint64(32) | objects.astype(np.uint64)
