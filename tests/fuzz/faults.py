"""Random damage to random files of a store must give correct answers or E503."""

from __future__ import annotations

import random
import tempfile
from functools import cache
from pathlib import Path

from tests.fuzz.lane import Figures
from tests.store.faults import HOWS, Checker, Fault, build, files

FAULTS = 3


@cache
def _sound() -> tuple[Path, Checker, tempfile.TemporaryDirectory[str]]:
    """An intact store and the process that checks damaged copies of it, for all seeds."""
    folder = tempfile.TemporaryDirectory(prefix="corollary-faults-")
    path = Path(folder.name) / "store"
    build(path)
    return path, Checker(path), folder


def run(seed: int) -> Figures:
    """Damage some files of a store, one at a time."""
    chance = random.Random(seed)
    path, checker, folder = _sound()
    refused = 0
    for _ in range(FAULTS):
        fault = Fault(chance.choice(files(path)), chance.choice(HOWS), chance.randrange(2**32))
        refused += bool(checker.check(Path(folder.name) / "damaged", fault))
    return {"faults": FAULTS, "refused": refused}
