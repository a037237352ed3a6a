"""Schemas on Spark: rules specialized to few axioms, and a schema that every task has."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary import spark as co
from corollary.testing import thresholds
from tests.configurations import as_text
from tests.effort import first
from tests.engines.factories import session
from tests.random_ontologies import random_history
from tests.spark.data import embedded, stored

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("rules", "axioms"), first(1, [("rdfs", 0), ("rdfs", 10_000), ("owl-rl", 0)])
)
def test_random_ontology(tmp_path: Path, rules: str, axioms: int) -> None:
    """A build and an update, below the number of axioms and beyond, in tasks."""
    history = random_history(1, changes=1)
    limits = {"distributed_rules_limit": axioms, "driver_facts_limit": 40}
    for number, state in enumerate(history.states):
        everything, more, less = (tmp_path / f"{name}{number}.nt" for name in ("all", "in", "out"))
        everything.write_text(as_text(sorted(state.explicit)))
        with thresholds(**limits):
            if number == 0:
                co.build(tmp_path / "store", everything, rules=rules, session=session())
            else:
                before = history.states[number - 1].explicit
                more.write_text(as_text(sorted(state.explicit - before)))
                less.write_text(as_text(sorted(before - state.explicit)))
                co.update(tmp_path / "store", insert=[more], delete=[less], session=session())
        assert stored(tmp_path / "store") == embedded([everything], rules)
