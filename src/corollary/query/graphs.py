"""Triples from solutions: templates of CONSTRUCT, descriptions of DESCRIBE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.terms import term_of, text_of
from corollary.lang.syntax import Constant
from corollary.query.expressions import Clock
from corollary.query.plan import Column, Plan
from corollary.query.results import TRIPLE_COLUMNS, TripleTable
from corollary.query.terms import Terms

if TYPE_CHECKING:
    from corollary.query.engine import Runner

_SCHEMA = pa.schema([(name, pa.large_string()) for name in TRIPLE_COLUMNS])


def constructed(
    template: Sequence[Sequence[str | Constant]], columns: Mapping[str, pa.Array], rows: int
) -> TripleTable:
    """The triples of a template for each solution; those that are none are left out.

    A blank node of the template is another one for each solution.

    >>> from corollary.lang.syntax import IRI
    >>> name = pa.array(['"a"', None], pa.large_string())
    >>> done = constructed([("_:x", IRI("p"), "n")], {"n": name}, 2)
    >>> done.to_pylist()
    [{'subject': '_:x0', 'predicate': '<p>', 'object': '"a"'}]
    """
    parts = []
    numbers = pc.cast(pa.array(np.arange(rows)), pa.large_string())
    labels: dict[str, str] = {}
    for triple in template:
        places: list[pa.Array] = []
        for term in triple:
            if not isinstance(term, str):
                places.append(pa.repeat(pa.scalar(text_of(term), pa.large_string()), rows))
            elif term.startswith("_:"):
                label = labels.setdefault(term, f"_:{'x' * (len(labels) + 1)}")
                prefix = pa.scalar(label, pa.large_string())
                places.append(
                    pc.binary_join_element_wise(prefix, numbers, pa.scalar("", pa.large_string()))
                )
            else:
                places.append(columns[term])
        parts.append(pa.table(places, schema=_SCHEMA))
    table = pa.concat_tables([_SCHEMA.empty_table(), *parts])
    return TripleTable(_distinct(_valid(table)))


def described(
    runner: Runner, dictionary: Terms, plan: Plan, columns: Mapping[str, pa.Array]
) -> TripleTable:
    """What is said of resources: their triples, and those of the blank nodes in them."""
    asked: dict[Constant, None] = dict.fromkeys(plan.described)
    for column in columns.values():
        asked.update((term_of(text), None) for text in column.unique().to_pylist() if text)
    wanted = [found for term in asked if (found := dictionary.find(term)) is not None]
    seen: set[int] = set()
    parts = [_SCHEMA.empty_table()]
    while wanted:
        seen.update(wanted)
        table = _triples_of(runner, wanted)
        parts.append(table)
        objects = table["object"].unique().to_pylist()
        blank = [dictionary.find(term_of(text)) for text in objects if text.startswith("_:")]
        wanted = [found for found in blank if found is not None and found not in seen]
    return TripleTable(_distinct(pa.concat_tables(parts)))


def _triples_of(runner: Runner, subjects: Sequence[int]) -> pa.Table:
    plan = Plan(
        "SELECT",
        Clock(),
        variables=TRIPLE_COLUMNS,
        columns=tuple(Column(name) for name in TRIPLE_COLUMNS),
    )
    parts = []
    # A table of a subject for each is what a hybrid can answer without deriving everything.
    for scan in runner.describing(subjects):
        plan.scans.append(scan)
        table, places = runner.dialect.scan(scan, plan)
        listed = ", ".join(places[place] for place in range(3))
        chosen = ", ".join(map(str, subjects if scan.subject is None else [scan.subject]))
        parts.append(f"SELECT {listed} FROM {table} AS t WHERE {places[0]} IN ({chosen})")
    plan.sql = " UNION ALL ".join(parts)
    found = runner.run(plan)
    texts = [runner.texts(column.combine_chunks()) for column in found.columns]
    return pa.table([text.cast(pa.large_string()) for text in texts], schema=_SCHEMA)


def _valid(table: pa.Table) -> pa.Table:
    subject, predicate, object_ = table.columns
    keep = pc.and_(pc.is_valid(subject), pc.is_valid(predicate))
    keep = pc.and_(keep, pc.is_valid(object_))
    table = table.filter(keep)
    literal = pc.starts_with(table["subject"], '"')
    iri = pc.starts_with(table["predicate"], "<")
    return table.filter(pc.and_(pc.invert(literal), iri))


def _distinct(table: pa.Table) -> pa.Table:
    if not len(table):
        return table
    return (
        table.group_by(list(TRIPLE_COLUMNS), use_threads=False)
        .aggregate([])
        .select(list(TRIPLE_COLUMNS))
    )
