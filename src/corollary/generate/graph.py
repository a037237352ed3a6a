"""Graphs as tables of edges, with the program of their closure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.generate.columns import Columns

BATCH = 1 << 20  # facts that become text at once

CLOSURE = """\
% The transitive closure of the edges.
path(?x, ?y) :- edge(?x, ?y) .
path(?x, ?z) :- path(?x, ?y), path(?y, ?z) .
"""


def edge_columns(edges: npt.NDArray[np.integer]) -> Iterator[Columns]:
    """Pairs of numbers as facts of `edge`, in pieces.

    >>> [columns.text() for columns in edge_columns(np.array([[1, 2]]))]
    ['1\\t2\\n']
    """
    columns = [pa.array(np.ascontiguousarray(edges[:, end])) for end in (0, 1)]
    yield from Columns("edge", tuple(columns)).slices(BATCH)
