"""A clique: every two nodes are connected, in both directions, so every path has many proofs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from corollary.generate.columns import BATCH, CLOSURE, Columns
from corollary.generate.datasets import Dataset, File


def facts(scale: int, seed: int = 0) -> Iterator[Columns]:
    """All edges between as many nodes; the seed gives them their order.

    >>> sorted(next(facts(3)).text().splitlines())
    ['0\\t1', '0\\t2', '1\\t0', '1\\t2', '2\\t0', '2\\t1']
    """
    nodes = np.random.default_rng(seed).permutation(scale)
    step = max(1, BATCH // scale)
    for first in range(0, scale, step):
        rows = np.arange(first, min(scale, first + step))
        one, other = (end.ravel() for end in np.meshgrid(rows, np.arange(scale), indexing="ij"))
        apart = one != other
        yield Columns("edge", (pa.array(nodes[one[apart]]), pa.array(nodes[other[apart]])))


DATASET = Dataset(
    "clique",
    "all edges between nodes, in both directions, and their closure",
    unit="nodes",
    make=lambda scale, seed: (
        File("edge.facts", lambda: facts(int(scale), seed)),
        File("program.dl", text=CLOSURE),
    ),
    whole=True,
    least=2,
    most=100_000,
)
