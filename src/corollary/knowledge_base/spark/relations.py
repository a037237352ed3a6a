"""DataFrames of relations, with columns by name, to rows of facts and back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from corollary.core.terms import term_of
from corollary.engines.spark import stored
from corollary.engines.spark.rows import arguments
from corollary.engines.spark.stored import DataFrame
from corollary.files.native import declared_array
from corollary.files.shapes import Shape
from corollary.knowledge_base.spark.parts import RELATION, cells
from corollary.lang.declarations import ColumnType, Relation
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE_COLUMNS, TRIPLES_NAME

_TYPES: dict[ColumnType, tuple[str, pa.DataType]] = {
    "string": ("string", pa.string()),
    "integer": ("bigint", pa.int64()),
    "decimal": ("decimal(38,18)", pa.decimal128(38, 18)),
    "double": ("double", pa.float64()),
    "boolean": ("boolean", pa.bool_()),
    "date": ("date", pa.date32()),
    "dateTime": ("timestamp", pa.timestamp("us", "UTC")),
    "iri": ("string", pa.string()),
    "any": ("string", pa.string()),
}


def relation_rows(frame: DataFrame, relation: str, program: Program) -> DataFrame:
    """The rows of a relation with the columns predicate, arg0, arg1, …"""
    names = frame.columns
    if relation == TRIPLES_NAME:
        return frame.select(*TRIPLE_COLUMNS)
    declared = program.declarations.relations.get(relation)
    arity = program.arities.get(relation, len(names))
    places = Shape(relation, arity, declared).places(names, f"<{relation}>")
    renamed = dict(zip(arguments(len(places)), (names[place] for place in places), strict=True))
    return stored.labelled(frame, RELATION, relation, renamed)


def result_frame(facts: DataFrame, terms: DataFrame, relation: str, program: Program) -> DataFrame:
    """The facts of a relation, with declared names and types, or as cells."""
    own = stored.of_relation(facts, relation)
    if relation == TRIPLES_NAME:
        names = dict(zip(arguments(3), TRIPLE_COLUMNS, strict=True))
        return stored.with_texts(own, terms, 3, names, None).drop("explicit")
    width = program.arities[relation]
    names = {name: name for name in arguments(width)}
    declared = program.declarations.relations.get(relation)
    if declared is None or not declared.columns:
        return stored.with_texts(own, terms, width, names, cells).drop("explicit")
    found = stored.with_texts(own, terms, width, names, None).drop("explicit")
    types = ", ".join(
        f"`{column.name.replace('`', '``')}` {_TYPES[column.type][0]}"
        for column in declared.columns
    )
    return found.mapInArrow(_Native(declared), types)


class _Native:
    """Converts batches of texts to native types, in a task."""

    def __init__(self, declared: Relation) -> None:
        self._declared = Relation(declared.name, declared.columns)  # without its text

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = []
            for place, column in enumerate(self._declared.columns):
                encoded = batch.column(place).dictionary_encode()
                known = [term_of(text) for text in encoded.dictionary.to_pylist()]
                indices = np.asarray(encoded.indices, np.int64)
                array = declared_array(known, indices, self._declared, place)
                columns.append(_cast(array, _TYPES[column.type][1]))
            yield pa.record_batch(columns, names=list(self._declared.names))


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and array.type.tz is None:  # local times count as UTC
        return array.cast(pa.timestamp("us")).cast(kind)
    return array.cast(kind)
