"""The OWL 2 RL/RDF rules suite: 273 cases of Michael Schneider and Kai Mainzer."""

from __future__ import annotations

import pytest

from benchmarks.report import DATA
from tests.conformance.graphs import case, closure, entails, ignored, read

SUITE = DATA / "conformance" / "owl2rl-rdfbased" / "conformance" / "owl2rl"
if not SUITE.is_dir():
    pytest.skip(f"the OWL 2 RL suite is not here: {SUITE}", allow_module_level=True)

REASONS = ignored("owl2rl")
CASES = sorted(folder.name for folder in SUITE.iterdir())


@pytest.mark.parametrize("name", [case(name, REASONS) for name in CASES])
def test_case(name: str) -> None:
    files = SUITE / name / name
    graph = files.with_suffix(".graph.ttl")
    if graph.exists():
        assert closure(read(graph), "owl-rl").inconsistencies
        return
    found = closure(read(files.with_suffix(".premisegraph.ttl")), "owl-rl")
    assert found.inconsistencies == ()
    assert entails(found.facts, read(files.with_suffix(".conclusiongraph.ttl")))


def test_the_suite_is_whole() -> None:
    assert len(CASES) == 273
    assert REASONS.keys() <= set(CASES)
