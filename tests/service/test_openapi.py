"""The OpenAPI document: every operation is in it, and random requests find no mistake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from corollary.service.endpoints import OPERATIONS
from corollary.service.openapi import document
from tests.service.servers import build, serving

# SPARQL, rules and facts are languages of their own, which a JSON schema cannot describe: texts
# that it generates are mostly refused, and some that it takes for invalid are valid.
LANGUAGES = "positive_data_acceptance,negative_data_rejection"
FEEDS = ("/changes", "/subscribe")  # never end


def test_every_operation_is_described() -> None:
    found = document(OPERATIONS)["paths"]
    listed = {(path, method.upper()) for path, methods in found.items() for method in methods}
    assert listed == {(operation.path, operation.method) for operation in OPERATIONS}
    names = [one["operationId"] for methods in found.values() for one in methods.values()]
    assert len({*names}) == len(names)


@pytest.mark.long
def test_random_requests_find_no_mistake(tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    with serving(build(tmp_path), "--open", "--quiet") as server:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"]
        for path in FEEDS:
            command += ["--exclude-path", path]
        command += [
            "--request-timeout",
            "120",
            "--max-examples",
            "4",
            "--phases",
            "coverage,fuzzing",
            "--no-color",
            "--generation-deterministic",  # the same requests in each run
            "--exclude-checks",
            LANGUAGES,
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=1200)
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
