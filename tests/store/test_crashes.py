"""Nothing is lost: a writer is killed by SIGKILL at every step of a commit, and at any moment.

What is found afterwards is the old version or the new one, whole.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corollary import KnowledgeBase
from corollary.knowledge_base.verify import verify_store
from corollary.store import Store, steps
from corollary.store.places import Place
from tests.effort import scaled
from tests.store.killing import Killer, begin, update

_MOMENTS = {"update": 100, "compact": 50, "vacuum": 25}
Facts = set[tuple[object, ...]]


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as process:
        yield process


def facts(path: Place) -> Facts:
    return {tuple(row.values()) for row in Store.open(path).snapshot().facts().to_pylist()}


def assert_whole(path: Place, before: int, old: Facts) -> bool:
    """The old version or the new one, whole, and what follows; whether it is the new one."""
    newest = Store.open(path).latest()
    assert before <= newest <= before + 2  # the commit, and one that merges small files
    found = facts(path)
    if newest == before:
        assert found == old
    assert verify_store(path, derive=newest > before).problems == []
    kb = KnowledgeBase.open(path)  # and the cache says the same
    assert kb.count() == len(found)
    return newest > before


def test_at_every_step_of_an_update(tmp_path: Path, killer: Killer) -> None:
    path = tmp_path / "s"
    begin(path)
    seen: set[str] = set()
    kills = 0
    for number in range(4):
        at = 1
        while True:
            before, old = Store.open(path).latest(), facts(path)
            if not killer.kill(path, "update", number, steps=at):
                break
            kills += 1
            assert_whole(path, before, old)
            at += 1
    names: list[str] = []
    steps.watch = names.append
    try:
        update(KnowledgeBase.open(path), 5)
    finally:
        steps.watch = None
    seen.update(names)
    assert kills > 24
    assert {f"{table}: committed" for table in ("terms", "changes", "rules", "facts")} <= seen
    assert {f"{table}: file written" for table in ("terms", "changes", "rules", "facts")} <= seen


@pytest.mark.scaled
@pytest.mark.parametrize("kind", _MOMENTS)
def test_at_any_moment(tmp_path: Path, killer: Killer, kind: str) -> None:
    path = tmp_path / "s"
    begin(path)
    chance = random.Random(7)
    for number in range(4):
        update(KnowledgeBase.open(path), number)
    started = time.monotonic()
    assert not killer.kill(path, kind, 99)
    low, high = 0.0, time.monotonic() - started  # on a busy machine, seconds
    news = kills = 0
    moments = max(scaled(_MOMENTS[kind]), 12)
    for number in range(moments):
        before, old = Store.open(path).latest(), facts(path)
        moment = chance.uniform(low, high)
        if killer.kill(path, kind, number + 100, seconds=moment):
            kills += 1
            high *= 1.3  # so that about half of the commits are ended, whatever the machine does
        else:
            high *= 0.8
        news += assert_whole(path, before, old)
        if kind != "update" and number % 3 == 0:
            update(KnowledgeBase.open(path), number)
    assert kills >= moments // 4
    assert news > 0


def test_at_every_step_of_the_first_version(tmp_path: Path, killer: Killer) -> None:
    at = 1
    while True:
        path = tmp_path / f"s{at}"
        if not killer.kill(path, "create", 0, steps=at):
            break
        # Whatever is there, the same can be done again.
        if not any((path / "facts" / "_delta_log").glob("*1.json")):
            begin(path)
        assert verify_store(path).problems == []
        assert KnowledgeBase.open(path).count() == 5
        at += 1
    assert at > 8
