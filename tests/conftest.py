"""What all tests share: how hard Hypothesis looks, and one Spark session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `ci` finds the same failures on every run; `long` looks further, at random.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("long", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("COROLLARY_HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a worker; mark them `spark` and group them as "spark"."""
    from corollary.engines.spark.session import build_session

    session = build_session("local[2]", application="corollary-tests")
    yield session
    session.stop()
