"""Values that the driver computes for tasks, or that tasks compute and number."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary
from corollary.core.partial import PartialDictionary
from corollary.core.tables import decode, encode
from corollary.engines.spark import evaluate, task
from corollary.engines.spark.answers import text_block
from corollary.engines.spark.blocks import deserialize, serialize
from corollary.engines.spark.packing import (
    FRESH,
    NEW,
    NONE,
    TERMS,
    ChunkBuffer,
    Table,
    blocks_of,
    iter_tables,
    special_batch,
)
from corollary.engines.spark.plan import DRIVER
from corollary.engines.spark.values import NumberValues, RouteRows
from corollary.errors import OperationFailed
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.syntax import Literal
from corollary.testing import thresholds
from tests.engines.factories import spark_rounds, spark_values

PROGRAM = "double(?x, ?y) :- n(?x), BIND(?x * 2 AS ?y) . " + " ".join(f"n({n}) ." for n in range(9))


def test_more_values_than_the_driver_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    program, engine = Program.parse(PROGRAM), spark_rounds(Dictionary())
    facts = engine.facts(encode(program.facts, engine.dictionary))
    monkeypatch.setattr(evaluate, "MOST_COMPUTED", 8)
    with pytest.raises(OperationFailed, match="up to 9 combinations") as caught:
        materialize(program, facts, engine)
    assert caught.value.code == "E595"
    monkeypatch.setattr(evaluate, "MOST_COMPUTED", 9)
    assert len(materialize(program, facts, engine).facts) == 18


MANY = """
    double(?x, ?y) :- n(?x), BIND(?x * 2 AS ?y) .
    text(?x, ?t) :- double(?x, ?y), BIND(CONCAT("n", STR(?y)) AS ?t), FILTER(STRLEN(?t) > 2) .
    up(?x, ?z) :- n(?x), BIND(?x + 1 AS ?z) .
    up(?x, ?z) :- up(?x, ?y), FILTER(?y < 12), BIND(?y + 1 AS ?z) .
""" + " ".join(f"n({n}) ." for n in range(9))  # fmt: skip


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_values_of_tasks(limit: int) -> None:
    program, engine = Program.parse(MANY), spark_values(Dictionary())
    dictionary = engine.dictionary
    assert isinstance(dictionary, PartialDictionary)
    facts = engine.facts(encode(program.facts, dictionary))
    with thresholds(driver_values_limit=limit):
        found = materialize(program, facts, engine).facts
    assert set(decode(found, dictionary)) == reference.materialize(program)
    assert bool(dictionary.created) == (limit == 0)
    # The driver gives no second id to a term of tasks, and its own ids continue after theirs.
    size = len(dictionary)
    assert dictionary.id(Literal("n16")) < size
    assert dictionary.id(Literal("other")) == size
    assert dictionary.new_terms[-1] == (size, '"other"')


def test_hot_terms_are_spread() -> None:
    """Rows that agree in one column are computed by all parts."""
    rows = np.column_stack([np.full(3000, 7), np.arange(3000)]).astype(np.uint32)
    key = (1, NONE, NONE, 2)
    out = ChunkBuffer()
    RouteRows(4, frozenset({key})).add(Table(DRIVER, FRESH, key, np.repeat(rows, 2, axis=0)), out)
    sizes = {partition: len(part) for partition, _, _, part in iter_tables(out.drain())}
    assert sum(sizes.values()) == 3000
    assert len(sizes) == 4
    assert max(sizes.values()) < 900


def test_numbers_do_not_depend_on_the_order_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = []
    for part, texts in ((0, ['"b"', '"a"']), (1, ['"a"', '"c"']), (2, ['"k"'])):
        columns = {"local": pa.array(range(len(texts))), "term": pa.array(texts, pa.large_string())}
        columns["part"] = pa.array([part] * len(texts))
        data = serialize(columns).to_pybytes()
        inputs.append(special_batch(0, TERMS, len(texts), data))
    inputs.append(text_block(0, np.array([5, 9], np.uint32), pa.array(['"x"', '"k"'])))
    monkeypatch.setattr(task, "this_partition", lambda: 0)
    results = [
        [batch.to_pydict() for batch in NumberValues()(iter(order))]
        for order in permutations(inputs)
    ]
    assert all(result == results[0] for result in results)
    [new] = blocks_of(NumberValues()(iter(inputs)), NEW)
    assert deserialize(new)["term"].to_pylist() == ['"b"', '"a"', '"c"']
