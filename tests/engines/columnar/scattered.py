"""An embedded engine whose sets of facts look as if they had a long history.

Sets that tests make of a few rows are a single run each. Here they are several runs with tombstones
among them, as after many commits, so that whatever reads a relation meets both.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np

from corollary.core.dictionary import Ids
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import EMPTY, Relation, Run, as_set
from corollary.lang.stratify import Predicate


class ScatteredEngine(ColumnarEngine):
    """Makes sets of facts of several runs, with facts in them that were deleted again."""

    def facts(self, tables: Mapping[Predicate, Ids]) -> ColumnarFacts:
        """A set of facts from rows."""
        whole = super().facts(tables)
        known = np.unique(np.concatenate([EMPTY, *(rows.ravel() for rows in tables.values())]))
        relations = {
            predicate: self._scattered(relation, known.astype(np.uint32))
            for predicate, relation in whole.relations.items()
        }
        return ColumnarFacts(self.space, relations)

    def _scattered(self, relation: Relation, ids: Ids) -> Relation:
        keys = relation.keys()
        if not relation.arity:
            return relation
        random = Random(f"{len(keys)} {len(ids)}")
        columns = [
            np.array(random.choices(ids.tolist(), k=len(keys) + 2), np.uint32)
            for _ in range(relation.arity)
        ]
        others = as_set(self.space.packing.pack(columns, len(keys) + 2))
        tombstones = others[~np.isin(others, keys)]
        runs = _parts(as_set(np.concatenate([keys, tombstones])), random)
        return Relation(relation.arity, runs, _parts(tombstones, random))


def _parts(keys: Keys, random: Random) -> tuple[Run, ...]:
    """Keys in up to three runs."""
    places = np.array([random.randrange(3) for _ in keys], int)
    return tuple(Run(keys[places == part]) for part in range(3) if (places == part).any())
