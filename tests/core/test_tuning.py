"""Thresholds are declared once, have a meaning, and can be set and recorded for a block."""

from __future__ import annotations

import pytest

from corollary.core.tuning import UNLIMITED, current
from corollary.testing import (
    all_thresholds,
    draw,
    random_thresholds,
    recorded_crossings,
    thresholds,
)


def test_every_threshold_says_what_it_limits() -> None:
    known = all_thresholds()
    assert {threshold.layer for threshold in known.values()} == {
        "algorithms",
        "columnar",
        "core",
        "knowledge_base",
        "spark",
        "tuples",
    }
    for threshold in known.values():
        assert threshold.unit, threshold.name
        assert threshold.meaning, threshold.name
        assert threshold.minimum <= threshold.default <= threshold.maximum, threshold.name
        assert threshold.minimum < threshold.maximum, threshold.name


def test_values_are_restored() -> None:
    before = {name: current(name) for name in all_thresholds()}
    assert before == {name: known.default for name, known in all_thresholds().items()}
    with random_thresholds(1) as values:
        assert {name: current(name) for name in all_thresholds()} == values
        with thresholds(probe_keys_limit=5):
            assert current("probe_keys_limit") == 5
        assert {name: current(name) for name in all_thresholds()} == values
    with pytest.raises(ZeroDivisionError), random_thresholds(1):
        raise ZeroDivisionError
    assert {name: current(name) for name in all_thresholds()} == before


def test_seeds_reach_both_ends() -> None:
    drawn = [draw(seed) for seed in range(60)]
    for name, known in all_thresholds().items():
        values = {values[name] for values in drawn}
        assert {known.minimum, known.maximum} <= values
        assert all(known.minimum <= value <= known.maximum for value in values)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="unknown threshold 'probes'"), thresholds(probes=1):
        pass
    with pytest.raises(ValueError, match="may be set to 1 to"), thresholds(run_merge_ratio=0):
        pass


def test_comparisons_are_recorded() -> None:
    with thresholds(probe_keys_limit=3), recorded_crossings() as crossings:
        limit = current("probe_keys_limit")
        assert limit == 3
        assert not limit < 3
        assert crossings["probe_keys_limit"] == {False}
        assert 2 * limit < 7
        assert crossings["probe_keys_limit"] == {False, True}
        assert 2 * current("run_merge_ratio") < UNLIMITED
        assert crossings["run_merge_ratio"] == {True}
