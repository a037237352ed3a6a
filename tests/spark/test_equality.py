"""Equality by representatives on Spark: builds and updates, with all terms of a class expanded."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary import spark as co
from corollary.knowledge_base.base import KnowledgeBase
from corollary.store import Store
from corollary.testing import thresholds
from tests.effort import first
from tests.engines.factories import session
from tests.spark.data import embedded, stored
from tests.spark.test_update import SUB, TYPE, put

pytestmark = pytest.mark.spark

SAME = "<http://www.w3.org/2002/07/owl#sameAs>"
FUNCTIONAL = "<http://www.w3.org/2002/07/owl#FunctionalProperty>"


@pytest.mark.parametrize("small", first(1, [250_000, 5]))
def test_a_build_and_updates(tmp_path: Path, small: int) -> None:
    """Equalities that are explicit and derived, of individuals, a property and a class."""
    data = [
        f"<urn:boss> {TYPE} {FUNCTIONAL}",
        "<urn:a> <urn:boss> <urn:b>",
        f"<urn:b> {TYPE} <urn:Chief>",
        f"<urn:Chief> {SUB} <urn:Person>",
        *(f"<urn:x{n}> <urn:knows> <urn:x{n + 1}>" for n in range(20)),
    ]
    merges = ["<urn:a> <urn:boss> <urn:c>", f"<urn:x1> {SAME} <urn:x5>"]
    more = [*merges, f"<urn:knows> {SAME} <urn:kennt>", f"<urn:Chief> {SAME} <urn:Chef>"]
    start, inserted = put(tmp_path / "data.nt", *data, *merges), put(tmp_path / "more.nt", *more)
    everything, left = put(tmp_path / "all.nt", *data, *more), put(tmp_path / "left.nt", *data)
    store = tmp_path / "store"
    with thresholds(driver_facts_limit=small):
        co.build(store, start, rules="owl-rl", equality="rewrite", session=session())
        assert stored(store) == embedded([start], "owl-rl")
        co.update(store, insert=[inserted], session=session())
        assert stored(store) == embedded([everything], "owl-rl")
        co.update(store, delete=[inserted], session=session())
        assert stored(store) == embedded([left], "owl-rl")
    assert Store.open(store).commit(3).equality == "rewrite"
    kb = KnowledgeBase.open(store)  # the embedded engine goes on
    with kb.transaction() as tx:
        tx.insert(f"<urn:x2> {SAME} <urn:x3> .")
    assert ("<urn:x3>", "<urn:knows>", "<urn:x3>") in kb
