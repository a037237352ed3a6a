"""Filters and values, as tasks answer them beside the terms: the same as the driver's answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.compile import Condition
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.terms import text_of
from corollary.engines.spark.answers import (
    NumberValues,
    PartitionByValue,
    PartitionTexts,
    RouteQueries,
    TermQuery,
    TermResult,
)
from corollary.engines.spark.packing import FRESH, NONE, ChunkBuffer, Key, iter_tables
from corollary.engines.spark.plan import DRIVER, Plan, Source
from corollary.lang.datatypes import same_value
from corollary.lang.syntax import IRI, XSD, Constant, Literal

INTEGERS = st.builds(
    Literal,
    st.sampled_from(["1", "01", "+1", "2", "x"]),
    st.sampled_from([XSD + "integer", XSD + "byte", XSD + "double"]),
)
TEXTS = st.builds(
    Literal,
    st.sampled_from(["a", "b", "a\n", 'q"', "é"]),
    st.sampled_from([XSD + "string", XSD + "token", XSD + "normalizedString"]),
)
TAGGED = st.builds(lambda tag: Literal("a", language=tag), st.sampled_from(["en", "EN", "de"]))
TERMS = st.lists(
    st.one_of(INTEGERS, TEXTS, TAGGED, st.sampled_from([IRI("urn:a"), IRI("urn:b")])), min_size=1
)
CONDITIONS = {
    (1, NONE, NONE, 1): Condition(("isLiteral", (0,)), (0,)),
    (2, NONE, NONE, 1): Condition(("hasDatatype", (0, IRI(XSD + "integer"))), (0,)),
    (3, NONE, NONE, 1): Condition(("!", (("isLiteral", (0,)),)), (0,)),
}
VALUES: Key = (4, NONE, NONE, 1)


def shuffle(batches: Iterable[pa.RecordBatch], partitions: int) -> list[list[pa.RecordBatch]]:
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(partitions)]
    for batch in batches:
        for at in range(batch.num_rows):
            parts[batch.column(0)[at].as_py()].append(batch.slice(at, 1))
    return parts


def answered(terms: list[Constant], dictionary: Dictionary, partitions: int) -> dict[Key, Ids]:
    """What tasks say about all terms."""
    plan = Plan(0)
    asked = {}
    for key, condition in CONDITIONS.items():
        answers = Source("k", key)
        plan.place(answers, 0)
        asked[key] = TermQuery(answers, condition.expression)
    values = Source("k", (4, NONE, NONE, 2))
    plan.place(values, 1)
    asked[VALUES] = TermQuery(values)
    ids = dictionary.encode(terms)
    distinct = np.unique(ids)
    table = pa.record_batch(
        {
            "id": pa.array(distinct.astype(np.int64)),
            "term": dictionary.texts(distinct).cast(pa.string()),
        }
    )
    questions = ChunkBuffer()
    for key in asked:
        questions.add(DRIVER, FRESH, key, ids[:, None])
    numbers = [
        batch
        for part in shuffle(PartitionByValue(partitions)(iter([table])), partitions)
        for batch in NumberValues(partitions)(iter(part))
    ]
    together = [
        *PartitionTexts(partitions)(iter([table])),
        *RouteQueries(partitions, frozenset(asked))(questions.drain()),
        *numbers,
    ]
    found: dict[Key, list[Ids]] = defaultdict(list)
    answer = TermResult(asked, plan, partitions)
    for part in shuffle(together, partitions):
        for _, kind, key, rows in iter_tables(answer(iter(part))):
            assert kind == FRESH
            found[plan.placements[key[0]].source.key].append(rows)
    return {key: np.concatenate(rows) for key, rows in found.items()}


@given(TERMS, st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_tasks_answer_as_the_driver_does(terms: list[Constant], partitions: int) -> None:
    dictionary = Dictionary()
    found = answered(terms, dictionary, partitions)
    ids = dictionary.encode(terms)
    for key, condition in CONDITIONS.items():
        expected = TermQuery(Source("k", key), condition.expression).rows(ids[:, None], dictionary)
        rows = found.get(key, np.zeros((0, 1), np.uint32))
        assert sorted(rows.ravel().tolist()) == sorted(expected.ravel().tolist())
    numbers = dict(found.get((4, NONE, NONE, 2), np.zeros((0, 2), np.uint32)).tolist())
    driver = dict(TermQuery(Source("k", VALUES)).rows(ids[:, None], dictionary).tolist())
    assert numbers.keys() == driver.keys(), "those that have a value"
    known = sorted(numbers)
    for one, two in ((one, two) for one in known for two in known):
        left, right = dictionary.term(one), dictionary.term(two)
        assert isinstance(left, Literal)
        assert isinstance(right, Literal)
        same = same_value(left, right)
        told = f"{text_of(left)} and {text_of(right)}"
        assert (numbers[one] == numbers[two]) is same, told
        assert (driver[one] == driver[two]) is same, told
