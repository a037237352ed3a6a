"""Hostile inputs end in success or in an error of ours, within bounded memory and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.hostile import _KINDS, CONSTRUCTIONS, Case, Readers, check, corpus


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    found = Readers()
    yield found
    found.close()


def outcomes(readers: Readers, seed: int, count: int) -> Counter[str]:
    return Counter(check(readers, case) for case in corpus(seed, count))


def test_mutations(readers: Readers) -> None:
    found = outcomes(readers, 1, 200)
    assert found["ok"] > 10, found  # the corpus is not refused at the first byte
    assert {"E101", "E305", "E320"} <= {*found}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_constructions(name: str, readers: Readers) -> None:
    suffix, make = CONSTRUCTIONS[name]
    for kind in [_KINDS[suffix]] if suffix in _KINDS else ["file", "skip"]:
        check(readers, Case(kind, suffix, make(3000)))


@pytest.mark.long
@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_large_constructions(name: str, readers: Readers) -> None:
    suffix, make = CONSTRUCTIONS[name]
    for kind in [_KINDS[suffix]] if suffix in _KINDS else ["file", "skip", "part"]:
        check(readers, Case(kind, suffix, make(50_000)))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 108))
def test_many_mutations(seed: int, readers: Readers) -> None:
    outcomes(readers, seed, 500)
