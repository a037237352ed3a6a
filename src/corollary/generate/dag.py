"""DAG-R: a random acyclic graph.

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §7: 10,000 nodes
and 100,000 random edges, under a program that makes the path relation transitive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from corollary.generate.columns import CLOSURE, Columns, Numbers, edges
from corollary.generate.datasets import Dataset, File

EDGES = 100_000  # at scale 1
EDGES_PER_NODE = 10


class Dag(NamedTuple):
    """Edges twice: in the numbers of an order that they follow, sorted; and as they are given."""

    nodes: int
    ordered: Numbers
    edges: Numbers


def random_dag(size: int, seed: int = 0) -> Dag:
    """Distinct random edges over a tenth as many nodes, at least ten.

    >>> graph = random_dag(200)
    >>> graph.nodes, graph.edges.shape, bool((graph.ordered[:, 0] < graph.ordered[:, 1]).all())
    (20, (95, 2), True)
    """
    rng = np.random.default_rng(seed)
    nodes = max(EDGES_PER_NODE, size // EDGES_PER_NODE)
    size = min(size, nodes * (nodes - 1) // 4)  # half of all possible edges
    keys = np.zeros(0, np.int64)
    while len(keys) < size:
        ends = np.sort(rng.integers(0, nodes, (2 * size, 2)), axis=1)
        ends = ends[ends[:, 0] < ends[:, 1]]
        keys = np.unique(np.concatenate([keys, ends[:, 0] * nodes + ends[:, 1]]))
    chosen = np.sort(rng.permutation(keys)[:size])
    ordered = np.stack([chosen // nodes, chosen % nodes], axis=1)
    # The numbers of the nodes must not give the order away.
    return Dag(nodes, ordered, rng.permutation(nodes)[rng.permutation(ordered)])


def facts(scale: float, seed: int = 0) -> Iterator[Columns]:
    """The edges of the graph of a scale.

    >>> sum(map(len, facts(0.01)))
    1000
    """
    yield edges(random_dag(round(EDGES * scale), seed).edges)


DATASET = Dataset(
    "dag",
    "a random acyclic graph and its closure (DAG-R of Hu, Motik, Horrocks 2019)",
    unit="10,000 nodes and 100,000 edges",
    make=lambda scale, seed: (
        File("edge.facts", lambda: facts(scale, seed)),
        File("program.dl", text=CLOSURE),
    ),
    least=0.0001,  # ten edges
    most=1_000,  # 100 million edges, in memory
)
