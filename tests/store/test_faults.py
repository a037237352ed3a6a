"""A damaged file gives the right answers or E503, never anything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.store.faults import HOWS, Checker, Fault, build, sample


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faults") / "store"
    build(path)
    return path


@pytest.fixture(scope="module")
def checker(sound: Path) -> Iterator[Checker]:
    with Checker(sound) as process:
        yield process


def sweep(checker: Checker, place: Path, faults: Iterable[Fault]) -> dict[str, int]:
    """How many faults of each kind were noticed by a refusal."""
    refused: dict[str, int] = {}
    for fault in faults:
        refused[fault.kind] = refused.get(fault.kind, 0) + bool(checker.check(place, fault))
    return refused


def test_one_fault_of_every_kind(sound: Path, checker: Checker, tmp_path: Path) -> None:
    both = list(sample(sound, ("flip middle", "empty"), 1))
    chosen = [fault for number, fault in enumerate(both) if number % 4 in (0, 3)]  # one of each
    refused = sweep(checker, tmp_path / "s", chosen)
    assert {"facts", "terms", "facts log", "cache texts.bin", "marker", "checkpoint"} <= {*refused}
    assert refused["facts"] == refused["terms"] == 1
    assert not any(count for kind, count in refused.items() if kind.startswith(("cache", "marker")))


@pytest.mark.long
def test_faults_of_every_kind(sound: Path, checker: Checker, tmp_path: Path) -> None:
    refused = sweep(checker, tmp_path / "s", sample(sound, HOWS, 1, seed=1))
    assert refused["facts"] > 8
