"""The terms table as an engine asks it: texts by id, and numbers for the values of literals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from corollary.core.dictionary import Ids
from corollary.core.ids import in_order
from corollary.core.literals import value_texts
from corollary.core.partial import PartialDictionary
from corollary.core.terms import term_of
from corollary.engines.spark.answers import ByValue, Number, Texts
from corollary.engines.spark.packing import SCHEMA, STATE
from corollary.engines.spark.task import Fetch
from corollary.engines.spark.tuning import tuning

if TYPE_CHECKING:
    from corollary.engines.spark.base import Workspace

_VALUES = (0, 2**32 - 1, 2**32 - 1, 2)


class TermTable:
    """The columns `id` and `term` of a store; what was asked for once is kept by Spark."""

    def __init__(self, workspace: Workspace, terms: DataFrame) -> None:
        self._workspace = workspace
        self._terms = terms.select("id", "term")

    def texts(self, *, literals: bool) -> DataFrame:
        """Blocks of terms by id, of all or of literals only."""
        return self._literal_texts if literals else self._all_texts

    @cached_property
    def values(self) -> DataFrame:
        """Chunks of literals with the numbers of their values, by id."""
        workspace = self._workspace
        keys = self._rows(literals=True).mapInArrow(ByValue(workspace.partitions), SCHEMA)
        found = workspace.over(workspace.exchanged(keys), Number(workspace.partitions))
        return self._workspace.keep(found)

    def values_of(self, ids: Ids) -> Ids:
        """Those of the terms that have a value, with its number, on the driver."""
        fetch = Fetch(STATE, {_VALUES: {0: in_order(ids)}})
        found = self._workspace.collected(self._workspace.over(self.values, fetch))
        return found.get(_VALUES, np.zeros((0, 2), np.uint32))

    def same_values(self, ids: Ids) -> Ids | None:
        """At least all terms whose values are those of some terms; None if that takes long.

        A string without escapes has one term, so that only other literals are looked at, if they
        are few.
        """
        others = self._others
        if others is None:
            return None
        dictionary = self._workspace.dictionary
        written = {*dictionary.texts(ids).to_pylist()}
        _, keys = value_texts(pa.array(written, pa.large_string()))
        asked = {*keys.to_pylist()}
        if isinstance(dictionary, PartialDictionary) and (new := dictionary.new_terms):
            others = others + _keys(*zip(*new, strict=True))
        found = [number for number, key in others if key in asked]
        # Strings that are values of asked terms which are written in another way.
        strings = [term_of(key) for key in asked if key.startswith('"') and key not in written]
        if strings:
            if isinstance(dictionary, PartialDictionary):
                dictionary.remember(strings)
            found += [i for i in map(dictionary.find, strings) if i is not None]
        return in_order(np.concatenate([ids, np.array(found, np.uint32)]))

    @cached_property
    def _others(self) -> list[tuple[int, str]] | None:
        """Literals that are not strings without escapes, and texts that stand for their values."""
        is_string = f.col("term").endswith('"') & ~f.col("term").contains("\\")
        rows = self._terms.where(f.col("term").startswith('"') & ~is_string)
        few = rows.limit(tuning.driver_literals_limit + 1).toArrow()
        if few.num_rows > tuning.driver_literals_limit:
            return None
        return _keys(few["id"].to_pylist(), few["term"].to_pylist())

    @cached_property
    def _literal_texts(self) -> DataFrame:
        return self._workspace.keep(self._blocks(literals=True))

    @cached_property
    def _all_texts(self) -> DataFrame:
        return self._workspace.keep(self._blocks(literals=False))

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


def _keys(ids: Sequence[int], texts: Sequence[str]) -> list[tuple[int, str]]:
    """The terms that have values, and texts that are equal where these are."""
    places, keys = value_texts(pa.array(texts, pa.large_string()))
    return [(ids[at], key) for at, key in zip(places.tolist(), keys.to_pylist(), strict=True)]
