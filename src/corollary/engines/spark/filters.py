"""Filters over several terms, in tasks: the driver tells the terms that occur, each once.

Which terms a filter may compare is known before: those of a column of some relation that the rule
reads. They are gathered, one list for all tasks, and the embedded engine evaluates the filter where
the rule is joined. (A filter over one term is a relation of the terms for which it holds.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from corollary.core.compile import Condition
from corollary.core.dictionary import MAX_TERMS, Dictionary, Ids
from corollary.core.ids import in_order
from corollary.core.partial import PartialDictionary
from corollary.engines.spark.base import Workspace
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import DERIVED, NONE, Gathering, Key, chunks_of
from corollary.engines.spark.plan import Plan, Source

Batches = Iterator[pa.RecordBatch]
Column = tuple[Source, int]

_TERMS: Key = (NONE, 0, NONE, 1)


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms that tasks may compare: ids in order, and texts."""

    ids: Ids
    texts: pa.LargeStringArray

    @classmethod
    def of(cls, ids: Ids, dictionary: Dictionary) -> Terms:
        """The terms of a dictionary.

        >>> from corollary.lang.syntax import Literal
        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode([Literal("a"), Literal("b"), Literal("c")])
        >>> told = Terms.of(ids[1:], dictionary).dictionary()
        >>> told.term(2).lexical
        'c'
        """
        distinct = in_order(ids)
        return cls(distinct, dictionary.texts(distinct))

    def dictionary(self) -> Dictionary:
        """A dictionary that has these terms only."""
        return PartialDictionary({}, MAX_TERMS, self._fetch)

    def _fetch(self, ids: list[int]) -> list[str]:
        wanted = np.array(ids, np.uint32)
        places = np.searchsorted(self.ids, wanted)
        known = places < len(self.ids)
        known[known] = self.ids[places[known]] == wanted[known]
        # A filter may come before the atom that says that a term was told: then any will do.
        texts = np.full(len(ids), "_:untold", object)
        texts[known] = self.texts.take(pa.array(places[known])).to_pylist()
        found: list[str] = texts.tolist()
        return found


def compared(conditions: Iterable[Condition]) -> list[int]:
    """The variables whose terms must be known; whether two are the same their ids tell."""
    found: dict[int, None] = {}
    for condition in conditions:
        match condition.expression:
            case ("!", (("sameTerm", (int(), int())),)):
                continue
        found |= dict.fromkeys(condition.variables)
    return list(found)


def occurring(
    workspace: Workspace,
    plan: Plan,
    operands: Sequence[tuple[str, SparkFacts, int]],
    columns: Iterable[Column],
) -> Ids:
    """The ids in some columns of what a plan reads; one job at most."""
    wanted: dict[str, dict[Source, set[int]]] = {}
    for source, column in columns:
        wanted.setdefault(source.operand, {}).setdefault(source, set()).add(column)
    found = [np.zeros(0, np.uint32)]
    frames = []
    for operand, facts, _ in operands:
        if operand not in wanted:
            continue
        occurring = Occurring(plan, operand, wanted[operand])
        for key, rows in workspace.packed(facts.small).items():
            found += occurring.of(key, rows)
        if facts.base is not None:
            frames.append(workspace.over(facts.base.chunks(), occurring))
    if frames:
        found += [rows[:, 0] for rows in workspace.collected(workspace.united(frames)).values()]
    return in_order(np.concatenate(found))


@dataclass(frozen=True)
class Occurring:
    """The ids that occur in some columns, each once for a task."""

    plan: Plan
    operand: str
    wanted: Mapping[Source, set[int]]

    def __call__(self, batches: Batches) -> Batches:
        found = np.zeros(0, np.uint32)
        for _, _, key, rows in chunks_of(batches):
            for ids in self.of(key, rows):
                found = in_order(np.concatenate([found, ids]))
        out = Gathering()
        out.add(0, DERIVED, _TERMS, found[:, None])
        yield from out.take()

    def of(self, key: Key, rows: Ids) -> list[Ids]:
        """Those of one table."""
        return [
            part[:, column]
            for source, part in self.plan.readers(self.operand, key, rows)
            for column in self.wanted.get(source, ())
        ]
