"""What the driver has looked up in chunks is the same after it was stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.dictionary import Dictionary
from corollary.engines.spark import looked_up
from corollary.engines.spark.base import Base, CachedChunks
from corollary.engines.spark.packing import Packed
from corollary.lang.stratify import Predicate
from corollary.testing import thresholds
from tests.engines.spark.inline import InlineRun, inline

PREDICATES = [Predicate(name) for name in ("p", "q", "r")]
PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


class CountedRun(InlineRun):
    """Counts look-ups."""

    jobs = 0

    def collect_by_partition(self, frame: Any) -> Any:
        self.jobs += 1
        return super().collect_by_partition(frame)


def array(rows: Any) -> Any:
    return np.array(sorted({*rows}), np.uint32).reshape(-1, 2)


def base_of(run: Any, tables: dict[Predicate, Any]) -> Base:
    frame = run.partitioned({run.key(p, 2): rows for p, rows in tables.items()})
    return Base.of(run, frame, {run.key(p, 2): len(rows) for p, rows in tables.items()})


@given(
    st.lists(PAIRS, min_size=3, max_size=3),
    st.sets(st.sampled_from(PREDICATES)),
    st.lists(st.tuples(st.sampled_from(PREDICATES), st.integers(0, 1), st.integers(0, 7))),
    PAIRS,
    st.sampled_from([0, 3, 1000]),
)
def test_look_ups_are_restored(
    rows: list[Any], whole: set[Predicate], ids: list[Any], probes: Any, limit: int
) -> None:
    """The same answers with and without the stored look-ups; what was stored needs no job."""
    engine: Any = inline(Dictionary())
    engine.run = run = CountedRun(
        engine.run._start, engine.dictionary, engine.run.make_engine, engine.run.options
    )
    tables = {p: array(own) for p, own in zip(PREDICATES, rows, strict=True) if own}
    if not tables:
        return
    probed = run.embedded.facts({p: array(probes) for p in tables} if probes else {})
    wanted: list[Any] = [{p: None} for p in whole]
    wanted += [{p: {column: np.array([number], np.uint32)}} for p, column, number in ids]

    def answers(base: Base) -> list[Any]:
        found: list[Any] = []
        for request in wanted:
            [(predicate, places)] = request.items()
            facts = base.fetch(request).rows(predicate).tolist()
            if places is not None:  # others may come along
                [(column, own)] = places.items()
                facts = [row for row in facts if row[column] == own[0]]
            found.append(facts)
        members = base.probe(probed)
        return [*found, *(members.rows(p).tolist() for p in PREDICATES)]

    with thresholds(prefetched_facts_limit=0, prefetched_subjects_limit=0):
        first, second = base_of(run, tables), base_of(run, tables)
        expected = answers(first)
        [(cached, _)], [(restored, _)] = first.parts, second.parts
        stored: list[Packed] = [{}, {}]
        with thresholds(cached_lookups_limit=limit):
            described = looked_up.describe(run, cached, stored)
        looked_up.restore(run, restored, described, dict(enumerate(stored)))
        run.jobs = 0
        assert answers(second) == expected
        assert run.jobs == 0 or limit < 1000
        assert all(_is_complete(restored, p, tables[p]) for p in restored.fully_fetched)


def _is_complete(cached: CachedChunks, predicate: Predicate, rows: Any) -> bool:
    return bool(cached.facts.rows(predicate).tolist() == rows.tolist())


def test_merged_chunks_know_what_all_their_parts_know() -> None:
    engine: Any = inline(Dictionary())
    run = engine.run
    p, q, _ = PREDICATES
    one = base_of(run, {p: array([(1, 2)]), q: array([(1, 2)])})
    two = base_of(run, {p: array([(3, 4)]), q: array([(3, 4)])})
    one.fetch({p: None, q: None})
    [(cached_one, _)], [(cached_two, _)] = one.parts, two.parts
    with thresholds(prefetched_facts_limit=0):
        two.fetch({p: None})
    parts = [(cached, frozenset([p, q])) for cached in (cached_one, cached_two)]
    merged = base_of(run, {p: array([(1, 2), (3, 4)]), q: array([(1, 2), (3, 4)])})
    [(cached, _)] = merged.parts
    looked_up.merge(run, cached, parts)
    assert cached.fully_fetched == {p}
    assert cached.facts.rows(p).tolist() == [[1, 2], [3, 4]]
