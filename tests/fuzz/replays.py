"""Recorded histories of real data, or excerpts, in random configurations and thresholds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.configurations import random_configuration, replay
from tests.fuzz.lane import Figures
from tests.independent import check_independently
from tests.recorded import DATA, HISTORIES, RULES, excerpt

# Fractions 1/n of a history: mostly small excerpts, rarely all of it (never of the Debian graph,
# whose closure under OWL 2 RL takes minutes).
SHARES = (40, 40, 40, 10, 10, 3, 1)


def run(seed: int) -> Figures:
    """Check one history, rule set, configuration and choice of checkpoints."""
    random = Random(seed)
    present = [name for name, known in HISTORIES.items() if (DATA / known.folder).is_dir()]
    if not present:
        return {"skipped": 1}
    name, rules, share = random.choice(present), random.choice(RULES), random.choice(SHARES)
    share = {"dynamite": 20 * share, "debian": max(8, share)}.get(name, share)
    start = random.choice((0, 0, random.randrange(60)))
    history = excerpt(name, rules, share=share, start=start, changes=random.choice((5, 12, 30)))
    configuration = random_configuration(history.program, random)
    if share < 10:  # a hybrid knowledge base derives everything for each comparison
        configuration = replace(configuration, limits=None, mode="materialized")
    last = len(history.states) - 1
    checkpoints = {last, *random.sample(range(last + 1), min(last + 1, 2))}
    figures = {"histories": 1, "changes": last, "states": len(checkpoints)}
    replay(history, configuration, checkpoints)
    return figures | check_independently(history.states[random.choice(sorted(checkpoints))])
