"""Generated facts as columns, and as lines of a file.

A relation whose name is an IRI is a property: its facts are triples, with two columns of terms in
N-Triples syntax. Any other relation is a table of numbers or texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

from corollary.core.strings import string_bytes
from corollary.lang.syntax import TYPE

Numbers = npt.NDArray[np.int64]

BATCH = 1 << 20  # facts formatted at once
CLOSURE = """\
% The transitive closure of the edges.
path(?x, ?y) :- edge(?x, ?y) .
path(?x, ?z) :- path(?x, ?y), path(?y, ?z) .
"""


@dataclass(frozen=True)
class Columns:
    """Facts of one relation, one column per argument.

    >>> edges = Columns("edge", (pa.array([1, 2]), pa.array([2, 3])))
    >>> len(edges), edges.text()
    (2, '1\\t2\\n2\\t3\\n')
    >>> Columns("http://e/p", (pa.array(["<http://e/a>"]), pa.array(['"b"']))).text()
    '<http://e/a> <http://e/p> "b" .\\n'
    """

    relation: str
    arguments: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.arguments[0])

    @property
    def is_triples(self) -> bool:
        """Whether the relation is a property."""
        return ":" in self.relation

    def lines(self) -> memoryview:
        """The facts as lines of an N-Triples or tab-separated file."""
        if self.is_triples:
            subjects, objects = self.arguments
            lines = join(subjects, f" <{self.relation}> ", objects, " .\n")
        else:
            cells = [
                piece
                for argument in self.arguments
                for piece in ("\t", compute.cast(argument, pa.string()))
            ]
            lines = join(*cells[1:], "\n")
        return string_bytes(lines)[1].data

    def text(self) -> str:
        """The lines as text."""
        return bytes(self.lines()).decode()

    def slices(self, size: int) -> Iterable[Columns]:
        """The facts in pieces of bounded size."""
        for start in range(0, len(self), size):
            yield Columns(self.relation, tuple(a.slice(start, size) for a in self.arguments))


def join(*pieces: pa.Array | str) -> pa.Array:
    """Concatenate texts row by row; a piece is a column or one text for all rows.

    >>> join("<", pa.array(["a", "b"]), ">").to_pylist()
    ['<a>', '<b>']
    """
    return compute.binary_join_element_wise(*pieces, "")


def digits(numbers: Numbers) -> pa.Array:
    """Numbers as texts.

    >>> digits(np.array([7, 10])).to_pylist()
    ['7', '10']
    """
    return compute.cast(pa.array(numbers), pa.string())


def numbered(prefix: str, numbers: Numbers, suffix: str = "") -> pa.Array:
    """Numbers between two texts, such as IRIs.

    >>> numbered("<http://e/n", np.array([3]), ">").to_pylist()
    ['<http://e/n3>']
    """
    return join(prefix, digits(numbers), suffix)


def pick(texts: pa.Array, rows: Numbers) -> pa.Array:
    """The texts at these places."""
    return texts.take(pa.array(rows))


def members(class_: str, of: pa.Array) -> Columns:
    """The rdf:type triples of a class.

    >>> members("http://e/C", pa.array(["<http://e/a>"])).text().split()[2]
    '<http://e/C>'
    """
    return Columns(TYPE.value, (of, pa.repeat(f"<{class_}>", len(of))))


def triples(property_: str, subjects: pa.Array, objects: pa.Array) -> Columns:
    """The triples of a property."""
    return Columns(property_, (subjects, objects))


def edges(pairs: npt.NDArray[np.integer]) -> Columns:
    """Pairs of numbers as facts of `edge`.

    >>> edges(np.array([[1, 2]])).text()
    '1\\t2\\n'
    """
    return Columns("edge", tuple(pa.array(np.ascontiguousarray(pairs[:, end])) for end in (0, 1)))
