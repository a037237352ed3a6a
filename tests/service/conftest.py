"""One server for the tests that only read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.servers import Server, build, serving


@pytest.fixture(scope="package")
def university(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small store, which no test may change."""
    return build(tmp_path_factory.mktemp("university"))


@pytest.fixture(scope="package")
def server(university: Path) -> Iterator[Server]:
    """A server without tokens: everybody on this machine may read."""
    with serving(university, "--cors", "https://app.example", "--limit-request", "100K") as found:
        yield found
