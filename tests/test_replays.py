"""Real histories of data in every configuration: what follows is what follows from scratch.

Small excerpts here; more of each history, in a pairwise cover of all settings, in the long tests;
all of it in the lane `replays` of the fuzzer.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.configurations import (
    DIMENSIONS,
    Configuration,
    configurations,
    pairwise_cover,
    replay,
)
from tests.independent import check_independently
from tests.recorded import DATA, HISTORIES, RULES, excerpt, program


def needs(name: str) -> None:
    folder = DATA / HISTORIES[name].folder
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")


@pytest.mark.parametrize("rules", ["owl-rl", "skos"])
@pytest.mark.parametrize("name", HISTORIES)
def test_excerpt(name: str, rules: str) -> None:
    """The settings of a knowledge base as they are, and some others with random thresholds."""
    needs(name)
    history = excerpt(name, rules, changes=4)
    seed = [*HISTORIES].index(name)
    others = configurations(history.program, seed)
    for configuration in (Configuration(threads=1 + seed % 2), others[seed], others[-1 - seed]):
        replay(history, configuration, {0, 2, len(history.changes)})


@pytest.mark.parametrize("rules", RULES)
def test_excerpt_independently(rules: str) -> None:
    """What is compared with is right: independent systems derive the same."""
    needs("plant-ontology")
    history = excerpt("plant-ontology", rules, share=200, start=3, changes=2)
    asked = check_independently(history.states[-1])
    assert sum(asked.values()) or rules in ("rdfs", "owl-horst"), "nobody was asked"


def _suits(chosen: dict[str, Any]) -> bool:
    settings = {name: chosen[name] for name in DIMENSIONS}
    return Configuration(**settings).suits(program(chosen["rules"]))


COVER = pairwise_cover({"name": [*HISTORIES], "rules": RULES, **DIMENSIONS}, _suits)


@pytest.mark.long
@pytest.mark.parametrize("at", range(len(COVER)))
def test_prefix(at: int) -> None:
    """Every two settings, rule sets and histories meet; thresholds are random in half of them."""
    chosen = dict(COVER[at])
    name, rules = chosen.pop("name"), chosen.pop("rules")
    needs(name)
    history = excerpt(name, rules, share=max(1, HISTORIES[name].share // 2), changes=12)
    last = len(history.states) - 1
    limits = at if at % 2 else None
    replay(history, Configuration(**chosen, limits=limits), {0, last // 2, last})
    check_independently(history.states[last])
