"""What all tests share: their lanes, the groups of Spark tests, one Spark session."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.effort import FAST, PROFILES, scaled
from tests.s3_server import BUCKET, S3, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="shuffle the files, and the tests of each"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load the Hypothesis profile of the lane, or the one that the environment names."""
    for name, options in PROFILES.items():
        settings.register_profile(name, **options)
    lane = FAST if config.option.markexpr.startswith("not long") else "ci"
    settings.load_profile(os.environ.get("COROLLARY_HYPOTHESIS_PROFILE", lane))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark and scale Hypothesis tests, group Spark tests by session, and shuffle if asked to."""
    decorated: dict[int, Any] = {}
    for item in items:
        if item.get_closest_marker("spark"):
            pipeline = item.path.is_relative_to(config.rootpath / "tests" / "spark")
            group = "spark-pipeline" if pipeline else "spark-engine"  # about the same work
            item.add_marker(pytest.mark.xdist_group(group))
        test = getattr(item, "obj", None)
        if is_hypothesis_test(test):
            if not item.get_closest_marker("spark"):  # whose cases are slow
                item.add_marker("scaled")
            if hasattr(test, "_hypothesis_internal_use_settings"):  # not a state machine
                decorated[id(test)] = test
    for test in decorated.values():
        # Hypothesis allows a test one `settings` decorator; the lane replaces what it stored.
        declared = test._hypothesis_internal_use_settings
        number = declared.max_examples
        if number != settings().max_examples:  # which is that of the lane already
            number = scaled(number)
        test._hypothesis_internal_use_settings = settings(declared, max_examples=number)
    if (seed := config.getoption("--shuffle")) is not None:
        random = Random(seed)
        files = {item.path: random.random() for item in items}
        items.sort(key=lambda item: (files[item.path], random.random()))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a worker that are marked `spark`."""
    from tests.engines.factories import main_session

    yield main_session()
    main_session().stop()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3]:
    """One S3 server for all tests of a worker."""
    with running() as server:
        yield server


@pytest.fixture
def s3(s3_server: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """The S3 server without faults, its environment, and an empty local cache."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COROLLARY_CACHE_DIR", str(tmp_path / "local cache"))
    s3_server.faults()
    yield s3_server
    s3_server.faults()


@pytest.fixture
def address(s3: S3) -> str:
    """The address of a store that does not exist yet."""
    return f"s3://{BUCKET}/{uuid.uuid4().hex}/a store"


@pytest.fixture(autouse=True)
def _session_before_others(request: pytest.FixtureRequest) -> None:
    """Start the session of the tests before a test on Spark starts one with other settings."""
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark")
