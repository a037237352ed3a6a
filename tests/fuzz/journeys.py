"""Random journeys of stores: every way to change one, in random configurations and thresholds."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from corollary.errors import OperationFailed
from tests.configurations import random_configuration
from tests.fuzz.lane import Figures
from tests.journeys import travel
from tests.random_ontologies import random_history


def run(seed: int) -> Figures:
    """Take the journey of one seed."""
    random = Random(seed)
    size = "medium" if random.random() < 0.1 else "tiny"
    history = random_history(seed, size, changes=8)
    configuration = random_configuration(history.program, random)
    with TemporaryDirectory() as folder:
        try:
            states = travel(history, configuration, Path(folder), seed)
        except OperationFailed as error:
            if error.code != "E406":  # everything is related to everything
                raise
            return {"too large": 1}
        except BaseException as error:
            if size == "tiny":
                error.add_note(str(history))
            raise
    return {"journeys": 1, "states": states}
