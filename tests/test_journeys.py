"""Stores that are changed in every way: what they hold is what follows from scratch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import corollary as co
from corollary.lang.program import Program
from tests.configurations import random_configuration
from tests.fuzz import graphs
from tests.journeys import travel
from tests.random_ontologies import random_history


def journey(
    seed: int, folder: Path, changes: int, mode: str, program: Program | None = None
) -> None:
    history = random_history(seed, changes=changes)
    history = replace(history, program=program or history.program)
    drawn = random_configuration(history.program, Random(seed))
    configuration = replace(drawn, mode=mode)
    if not configuration.suits(history.program):
        configuration = replace(configuration, equality="rules")
    travel(history, configuration, folder, seed)


@pytest.mark.parametrize(("seed", "mode"), [(3, "materialized"), (4, "hybrid")])
def test_short_journeys(seed: int, mode: str, tmp_path: Path) -> None:
    journey(seed, tmp_path, 1, mode, co.rules("rhodf"))


@pytest.mark.long
@pytest.mark.parametrize("seed", [5009, *range(10)])
@pytest.mark.parametrize("mode", ["materialized", "hybrid"])
def test_journeys(seed: int, mode: str, tmp_path: Path) -> None:
    journey(seed, tmp_path, 8, mode)


@pytest.mark.parametrize("seed", [3, 6])
def test_short_journeys_of_graphs(seed: int) -> None:
    graphs.check(seed, steps=2)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20, 36))
def test_journeys_of_graphs(seed: int) -> None:
    graphs.check(seed)
