"""Evaluate filters over several terms in tasks: the driver broadcasts the distinct terms, if few.

The terms that a filter may compare are those of a column of a relation that the rule reads. They
are collected in one list for all tasks, and the embedded engine evaluates the filter as part of the
join. (A filter over one term becomes a relation of the terms that satisfy it. One that compares too
many terms to broadcast becomes a query about rows of terms, see `values`.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from corollary.core.compile import Condition
from corollary.core.dictionary import MAX_TERMS, Dictionary, Ids
from corollary.core.ids import in_order
from corollary.core.partial import PartialDictionary
from corollary.engines.spark.base import SparkRun
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import DERIVED, NONE, ChunkBuffer, Key, iter_tables
from corollary.engines.spark.plan import Plan, Source
from corollary.engines.spark.task import Batches

Column = tuple[Source, int]

_TERMS: Key = (NONE, 0, NONE, 1)


@dataclass(frozen=True, eq=False)
class BroadcastTerms:
    """Terms that tasks may compare: sorted ids, and texts."""

    ids: Ids
    texts: pa.LargeStringArray

    @classmethod
    def of(cls, ids: Ids, dictionary: Dictionary) -> BroadcastTerms:
        """Read terms from a dictionary.

        >>> from corollary.lang.syntax import Literal
        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode([Literal("a"), Literal("b"), Literal("c")])
        >>> partial = BroadcastTerms.of(ids[1:], dictionary).dictionary()
        >>> partial.term(2).lexical
        'c'
        """
        distinct = in_order(ids)
        return cls(distinct, dictionary.texts(distinct))

    def dictionary(self) -> Dictionary:
        """Create a dictionary with only these terms."""
        return PartialDictionary({}, MAX_TERMS, self._fetch)

    def _fetch(self, ids: list[int]) -> list[str]:
        wanted = np.array(ids, np.uint32)
        places = np.searchsorted(self.ids, wanted)
        known = places < len(self.ids)
        known[known] = self.ids[places[known]] == wanted[known]
        # A filter may run before the atom that checks that a term was broadcast: any text will do.
        texts = np.full(len(ids), "_:unknown", object)
        texts[known] = self.texts.take(pa.array(places[known])).to_pylist()
        found: list[str] = texts.tolist()
        return found


def compared_variables(conditions: Iterable[Condition]) -> list[int]:
    """Find the variables whose terms must be known; equality is decided by ids alone."""
    found: dict[int, None] = {}
    for condition in conditions:
        match condition.expression:
            case ("!", (("sameTerm", (int(), int())),)):
                continue
        found |= dict.fromkeys(condition.variables)
    return list(found)


def column_ids(
    run: SparkRun,
    plan: Plan,
    operands: Sequence[tuple[str, SparkFacts, int]],
    columns: Iterable[Column],
) -> Ids:
    """Collect the ids in some columns of the operands of a plan; at most one job."""
    wanted: dict[str, dict[Source, set[int]]] = {}
    for source, column in columns:
        wanted.setdefault(source.operand, {}).setdefault(source, set()).add(column)
    found = [np.zeros(0, np.uint32)]
    frames = []
    for operand, facts, _ in operands:
        if operand not in wanted:
            continue
        column_ids = CollectColumnIds(plan, operand, wanted[operand])
        for key, rows in run.tables_of(facts.small).items():
            found += column_ids.of(key, rows)
        if facts.base is not None:
            frames.append(run.map_chunks(facts.base.chunks(), column_ids))
    if frames:
        found += [rows[:, 0] for rows in run.collect(run.union(frames)).values()]
    return in_order(np.concatenate(found))


@dataclass(frozen=True)
class CollectColumnIds:
    """Collect the distinct ids of some columns in each task."""

    plan: Plan
    operand: str
    wanted: Mapping[Source, set[int]]

    def __call__(self, batches: Batches) -> Batches:
        found = np.zeros(0, np.uint32)
        for _, _, key, rows in iter_tables(batches):
            for ids in self.of(key, rows):
                found = in_order(np.concatenate([found, ids]))
        out = ChunkBuffer()
        out.add(0, DERIVED, _TERMS, found[:, None])
        yield from out.drain()

    def of(self, key: Key, rows: Ids) -> list[Ids]:
        """Collect the ids of one table."""
        return [
            part[:, column]
            for source, part in self.plan.readers(self.operand, key, rows)
            for column in self.wanted.get(source, ())
        ]
