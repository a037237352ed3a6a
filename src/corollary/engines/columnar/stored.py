"""Facts over existing arrays, such as memory-mapped ones, read lazily.

Unary and binary facts are stored as keys. Longer ones are packed on first use, as the numbers that
`Packing` assigns are local to this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from corollary.core.dictionary import Ids
from corollary.engines.columnar.facts import ColumnarFacts, Space
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import Packing, Relation, Run, as_set
from corollary.lang.stratify import Predicate

Stored = tuple[int, Keys | Ids]  # arity; sorted keys, or rows of more than two columns


def stored_facts(space: Space, relations: Mapping[Predicate, Stored]) -> ColumnarFacts:
    """A set of facts over arrays, without copying them.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> space = ColumnarEngine(Dictionary()).space
    >>> rows = np.array([[1, 2, 3], [1, 2, 4]], np.uint32)
    >>> facts = stored_facts(space, {Predicate("p"): (3, rows)})
    >>> len(facts), facts.rows(Predicate("p")).tolist()
    (2, [[1, 2, 3], [1, 2, 4]])
    """
    return ColumnarFacts(
        space,
        {p: _relation(arity, values, space.packing) for p, (arity, values) in relations.items()},
    )


def _relation(arity: int, values: Any, packing: Packing) -> Relation:
    if not len(values):
        return Relation(arity)
    return Relation(arity, (_LazyRun(values, packing) if arity > 2 else Run(values),))


class _LazyRun(Run):
    """A run that packs its keys on first use."""

    def __init__(self, rows: Ids, packing: Packing) -> None:
        super().__init__(np.zeros(0, np.uint64))
        del self.__dict__["keys"]
        self._rows, self._packing = rows, packing

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def keys(self) -> Keys:  # type: ignore[override]
        """The packed keys."""
        columns = [np.ascontiguousarray(self._rows[:, p]) for p in range(self._rows.shape[1])]
        return as_set(self._packing.pack(columns, len(self._rows)))
