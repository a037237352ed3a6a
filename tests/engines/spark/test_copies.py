"""Small results reach the driver with the reports of the tasks, complete or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.compile import compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.spark.base import Base
from corollary.engines.spark.copies import Checkpoint, SmallTables, WithCopies
from corollary.engines.spark.packing import (
    DERIVED,
    FRESH,
    NONE,
    REPORT,
    ChunkBuffer,
    Key,
    iter_copies,
    iter_tables,
)
from corollary.lang.program import Program
from tests.engines.spark.inline import InlineRun, inline


def key(number: int) -> Key:
    return (number, NONE, NONE, 1)


def column(size: int) -> Any:
    return np.arange(size, dtype=np.uint32)[:, None]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=30), st.integers(0, 60))
def test_copies_whole_tables_up_to_the_limit(parts: list[tuple[int, int]], limit: int) -> None:
    tables, sizes = SmallTables(limit), dict[int, int]()
    for number, size in parts:
        tables.add((False, DERIVED, key(number)), column(size))
        sizes[number] = sizes.get(number, 0) + size
    copied = {k[0]: sum(map(len, rows)) for (_, _, k), rows in tables.smallest().items()}
    assert copied.items() <= sizes.items()
    assert sum(copied.values()) <= limit
    if sum(sizes.values()) + 3 * len(sizes) <= limit:
        assert copied == sizes


def produced(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Derives three facts of one relation and fifty of another, and asks the driver about two."""
    assert not list(batches)
    out = ChunkBuffer()
    out.add(1, DERIVED, key(7), column(3))
    out.add(1, DERIVED, key(8), column(50))
    out.add(-1, FRESH, key(9), column(2))
    yield from out.drain()
    yield out.report(1)


def test_copies_are_no_input_of_tasks() -> None:
    batches = [*WithCopies(produced, 20)(iter([]))]
    assert [len(table.rows) for table in iter_tables(batches)] == [3, 50, 2]
    copies = [table for batch in batches for table in iter_copies(batch)]
    assert {(t.key[0], t.kind, len(t.rows)) for t in copies} == {(7, DERIVED, 3), (9, FRESH, 2)}
    found = Checkpoint.of(cast("Any", batches), batches)
    assert [report["partition"] for report in found.reports] == [1]
    assert {k[0]: len(rows) for k, rows in found.derived.items()} == {7: 3}
    assert {k[0]: len(rows) for k, rows in found.for_driver.items()} == {9: 2}


def test_the_driver_knows_what_it_received_completely() -> None:
    """Not the facts of a relation that another task did not copy."""
    engine: Any = inline(Dictionary())
    run = engine.run
    few, many = (run.key(predicate, 1) for predicate in _predicates("few", "many"))
    parts = []
    for rows in (2, 40):
        out = ChunkBuffer()
        out.add(0, DERIVED, few, column(2))
        out.add(0, DERIVED, many, column(rows))
        batches = [*out.drain(), out.report(0)]
        parts.append([*WithCopies(partial(_given, batches), 20)(iter([]))])
    frame = run.select_kinds(parts, DERIVED, REPORT)
    base = Base.reported(run, Checkpoint.of(frame, [b for part in parts for b in part]))
    [(cached, _)] = base.parts
    assert {p.relation for p in cached.fully_fetched} == {"few"}
    assert base.counts == dict(zip(_predicates("few", "many"), (4, 42), strict=True))


def _given(batches: list[pa.RecordBatch], _: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _predicates(*names: str) -> list[Any]:
    from corollary.lang.stratify import Predicate

    return [Predicate(name) for name in names]


class CountedRun(InlineRun):
    """Counts jobs."""

    jobs = 0

    def compute(self, frame: Any) -> Any:
        self.jobs += 1
        return super().compute(frame)

    def collect(self, frame: Any) -> Any:
        self.jobs += 1
        return super().collect(frame)

    def collect_by_partition(self, frame: Any) -> Any:
        self.jobs += 1
        return super().collect_by_partition(frame)


CHAINS = """
two(?x, ?z) :- e(?x, ?y), f(?y, ?z) .
three(?x, ?u) :- e(?x, ?y), f(?y, ?z), g(?z, ?u) .
literal(?x, ?y) :- e(?x, ?y), FILTER(isLiteral(?y)) .
"""


def test_results_are_combined_in_the_last_round() -> None:
    """A chain of three atoms takes two shuffles; its results need no job of their own."""
    facts = "".join(
        f"{name}({n}, {(n + 1) % 40}) . " for name in ("e", "f", "g") for n in range(40)
    )
    program = Program.parse(CHAINS + facts)
    dictionary = Dictionary()
    engine: Any = inline(dictionary, small=20, partitions=2, tiny=0, finish=0)
    engine.run = run = CountedRun(
        engine.run._start, dictionary, engine.run.make_engine, engine.run.options
    )
    rules = [compile_rule(rule, dictionary) for rule in program.rules]
    own = engine.facts(encode(program.facts, dictionary))
    run.jobs = 0
    derived = engine.derive(rules, own)
    assert run.jobs <= 3, "two rounds, and the terms of more literals than a task copies"
    found = {str(atom) for atom in decode(derived.facts.local(), dictionary)}
    reference: Any = engine.run.embedded
    expected = reference.derive(rules, reference.facts(encode(program.facts, dictionary)))
    assert found == {str(atom) for atom in decode(expected.facts, dictionary)}
    assert derived.instances == expected.instances == 120
