"""Random OWL 2 RL ontologies with streams of changes, in random configurations and thresholds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from corollary.errors import OperationFailed
from tests.configurations import Configuration, History, random_configuration, replay
from tests.fuzz.lane import Figures
from tests.independent import check_independently
from tests.random_ontologies import random_history


def check(history: History, configurations: list[Configuration], random: Random) -> Figures:
    """Replay a history in configurations, and compare one state with independent systems."""
    figures = {"histories": 1, "replays": 0, "states": 0}
    for configuration in configurations:
        figures["states"] += replay(history, configuration)
        figures["replays"] += 1
    return figures | check_independently(random.choice(history.states))


def run(seed: int) -> Figures:
    """Check the ontology of one seed."""
    random = Random(seed)
    size = random.choices(("tiny", "medium", "large"), (80, 17, 3))[0]
    history = random_history(seed, size, changes=3 if size == "large" else 6)
    try:
        for state in history.states:
            _ = state.triples
    except OperationFailed as error:
        if error.code != "E406":
            raise
        return {"too large": 1}
    chosen = [random_configuration(history.program, random) for _ in range(2)]
    if size == "large":  # large enough to cross the default thresholds
        usual = Configuration(algorithm=random.choice(("auto", "bf", "dred", "fp")))
        chosen = [usual, replace(chosen[0], limits=None, mode="materialized")]
    try:
        return check(history, chosen, random)
    except BaseException as error:
        if size == "tiny":
            error.add_note(str(history))
        raise
