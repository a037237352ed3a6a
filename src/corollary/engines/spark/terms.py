"""The terms table as an engine asks it: texts by id, and numbers for the values of literals."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from corollary.core.dictionary import Ids
from corollary.core.partial import PartialDictionary
from corollary.engines.spark.answers import ByValue, Number, Texts
from corollary.engines.spark.packing import SCHEMA, STATE
from corollary.engines.spark.task import Fetch

if TYPE_CHECKING:
    from corollary.engines.spark.base import Workspace

_VALUES = (0, 2**32 - 1, 2**32 - 1, 2)


class TermTable:
    """The columns `id` and `term` of a store; what was asked for once is kept by Spark."""

    def __init__(self, workspace: Workspace, terms: DataFrame) -> None:
        self._workspace = workspace
        self._terms = terms.select("id", "term")
        self._kept: list[DataFrame] = []

    def texts(self, *, literals: bool) -> DataFrame:
        """Blocks of terms by id, of all or of literals only."""
        return self._literal_texts if literals else self._all_texts

    @cached_property
    def values(self) -> DataFrame:
        """Chunks of literals with the numbers of their values, by id."""
        workspace = self._workspace
        keys = self._rows(literals=True).mapInArrow(ByValue(workspace.partitions), SCHEMA)
        found = workspace.over(workspace.exchanged(keys), Number(workspace.partitions))
        return self._keep(found)

    def values_of(self, ids: Ids) -> Ids:
        """Those of the terms that have a value, with its number, on the driver."""
        fetch = Fetch(STATE, {_VALUES: {0: np.unique(ids)}})
        found = self._workspace.collected(self._workspace.over(self.values, fetch))
        return found.get(_VALUES, np.zeros((0, 2), np.uint32))

    def release(self) -> None:
        """Let Spark forget what it has kept."""
        for frame in self._kept:
            frame.unpersist()

    @cached_property
    def _literal_texts(self) -> DataFrame:
        return self._keep(self._blocks(literals=True))

    @cached_property
    def _all_texts(self) -> DataFrame:
        return self._keep(self._blocks(literals=False))

    def _blocks(self, *, literals: bool) -> DataFrame:
        return self._rows(literals=literals).mapInArrow(Texts(self._workspace.partitions), SCHEMA)

    def _rows(self, *, literals: bool) -> DataFrame:
        """The rows of the table, and the terms that rules have made."""
        rows = self._terms
        dictionary: Any = self._workspace.dictionary
        if isinstance(dictionary, PartialDictionary) and (new := dictionary.new_terms):
            ids, texts = zip(*new, strict=True)
            made = pa.table({"id": pa.array(ids, pa.int64()), "term": pa.array(texts, pa.string())})
            rows = rows.union(self._workspace.session.createDataFrame(made))
        return rows.where(f.col("term").startswith('"')) if literals else rows

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._kept.append(kept)
        return kept
