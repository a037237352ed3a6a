"""Queries of an engine to the terms table: texts by id, and numbers of the values of literals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from corollary.core.dictionary import Ids
from corollary.core.ids import in_order
from corollary.core.literals import value_texts
from corollary.core.partial import CreatedTerms, PartialDictionary
from corollary.core.terms import term_of
from corollary.engines.spark.answers import (
    VALUES,
    NumberValues,
    PartitionByHash,
    PartitionByValue,
    PartitionTexts,
)
from corollary.engines.spark.packing import SCHEMA, STATE
from corollary.engines.spark.stored import with_new_terms
from corollary.engines.spark.task import Fetch, OverArrow
from corollary.engines.spark.tuning import tuning

if TYPE_CHECKING:
    from corollary.engines.spark.base import SparkRun


class TermTable:
    """The columns `id` and `term` of a store; Spark persists the results of queries."""

    def __init__(self, run: SparkRun, terms: DataFrame) -> None:
        self._run = run
        self._terms = terms.select("id", "term")
        # By partitioning function, whether literals only, and the number of a table of terms.
        self._blocks: dict[tuple[OverArrow, bool, int], DataFrame] = {}
        self._values: dict[int, DataFrame] = {}  # by the size of the dictionary

    def texts(self, *, literals: bool) -> DataFrame:
        """Return blocks of terms by id, of all terms or of literals only."""
        return self._partitioned(PartitionTexts(self._run.partitions), literals=literals)

    @property
    def by_hash(self) -> DataFrame:
        """Blocks of all terms by a hash of their texts."""
        return self._partitioned(PartitionByHash(self._run.partitions), literals=False)

    def _partitioned(self, work: OverArrow, *, literals: bool) -> DataFrame:
        """Partition all terms, each table of terms once, however many terms rules add."""
        run, frames = self._run, []
        for number, table in enumerate([self._terms, *(part.table for part in self._created)]):
            key = work, literals, number
            if key not in self._blocks:
                blocks = _selected(table, literals=literals).mapInArrow(work, SCHEMA)
                self._blocks[key] = run.frames.persist(blocks)
            frames.append(self._blocks[key])
        if new := self._new_terms:
            rows = _selected(with_new_terms(self._terms.limit(0), new), literals=literals)
            frames.append(rows.mapInArrow(work, SCHEMA))
        return run.union(frames)

    @property
    def values(self) -> DataFrame:
        """Chunks of literals with the numbers of their values, by id."""
        run, key = self._run, len(self._run.dictionary)
        if key not in self._values:
            keys = self._partitioned(PartitionByValue(run.partitions), literals=True)
            found = run.map_chunks(run.shuffle(keys), NumberValues(run.partitions))
            self._values[key] = run.frames.persist(found)
        return self._values[key]

    def values_of(self, ids: Ids) -> Ids:
        """Number the values of terms on the driver; terms without a value are dropped."""
        fetch = Fetch(STATE, {VALUES: {0: in_order(ids)}})
        found = self._run.collect(self._run.map_chunks(self.values, fetch))
        return found.get(VALUES, np.zeros((0, 2), np.uint32))

    def same_values(self, ids: Ids) -> Ids | None:
        """Find a superset of the terms with the values of given terms; None if that takes long.

        A string without escapes has a single term, so only other literals are searched, if they are
        few.
        """
        others = self._others
        if others is None:
            return None
        dictionary = self._run.dictionary
        written = {*dictionary.texts(ids).to_pylist()}
        _, keys = value_texts(pa.array(written, pa.large_string()))
        wanted = {*keys.to_pylist()}
        if new := self._new_terms:
            others = others + _keys(*zip(*new, strict=True))
        found = [number for number, key in others if key in wanted]
        # Plain strings that are values of the given terms, which are spelled differently.
        strings = [term_of(key) for key in wanted if key.startswith('"') and key not in written]
        if strings:
            if isinstance(dictionary, PartialDictionary):
                dictionary.remember(strings)
            found += [i for i in map(dictionary.find, strings) if i is not None]
        return in_order(np.concatenate([ids, np.array(found, np.uint32)]))

    @property
    def _new_terms(self) -> list[tuple[int, str]]:
        dictionary = self._run.dictionary
        return dictionary.new_terms if isinstance(dictionary, PartialDictionary) else []

    @property
    def _created(self) -> list[CreatedTerms]:
        dictionary = self._run.dictionary
        return dictionary.created if isinstance(dictionary, PartialDictionary) else []

    @cached_property
    def _others(self) -> list[tuple[int, str]] | None:
        """Literals other than strings without escapes, and texts that represent their values."""
        is_string = f.col("term").endswith('"') & ~f.col("term").contains("\\")
        rows = self._terms.where(f.col("term").startswith('"') & ~is_string)
        few = rows.limit(tuning.driver_literals_limit + 1).toArrow()
        if few.num_rows > tuning.driver_literals_limit:
            return None
        return _keys(few["id"].to_pylist(), few["term"].to_pylist())


def _selected(terms: DataFrame, *, literals: bool) -> DataFrame:
    return terms.where(f.col("term").startswith('"')) if literals else terms


def _keys(ids: Sequence[int], texts: Sequence[str]) -> list[tuple[int, str]]:
    """Pair the terms that have values with texts that are equal if the values are."""
    places, keys = value_texts(pa.array(texts, pa.large_string()))
    return [(ids[at], key) for at, key in zip(places.tolist(), keys.to_pylist(), strict=True)]
