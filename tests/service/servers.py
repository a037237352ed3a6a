"""Real servers for tests: processes of `corollary serve` on a free port."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.cli.calls import call

UNIVERSITY = """
@prefix : <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:headOf rdfs:subPropertyOf :worksFor . :worksFor rdfs:domain :Employee .
:Employee rdfs:subClassOf :Person . :Robot owl:disjointWith :Person .
:ann :headOf :lab ; :name "Ann"@en . :bob :worksFor :lab ; :age 42 . :lab a :Lab .
"""
PREFIX = "PREFIX : <http://example.org/> "
EMPLOYEES = PREFIX + "SELECT ?x { ?x a :Employee } ORDER BY ?x"


def build(folder: Path, data: str = UNIVERSITY, rules: str = "owl-rl") -> Path:
    """Build a store from Turtle."""
    source, store = folder / "data.ttl", folder / "store"
    source.write_text(data)
    built = call("build", store, source, "--rules", rules, "--engine", "columnar", "--quiet")
    assert built.returncode == 0, built.stderr
    return store


class Server:
    """A running server, its client, and its log."""

    def __init__(self, process: subprocess.Popen[str], store: Path) -> None:
        self.process, self.store = process, store
        self.lines: list[str] = []
        assert process.stderr is not None
        first = process.stderr.readline()
        assert " at http://" in first, first + process.stderr.read()
        self.url = first.rpartition(" at ")[2].strip().rstrip("/")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.client = httpx.Client(base_url=self.url, timeout=120, trust_env=False)

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def wait(self) -> None:
        """Wait until the service is ready."""
        while (found := self.client.get("/health")).status_code != 200:
            assert self.process.poll() is None, self.lines
            assert found.json()["status"] == "opening"

    def events(self) -> list[dict[str, Any]]:
        """The events of the log so far."""
        return [json.loads(line) for line in list(self.lines)]

    def stop(self) -> int:
        """Stop gracefully and return the exit status."""
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self._reader.join()
        return status


@contextlib.contextmanager
def serving(store: Path, *options: str, wait: bool = True, stops: bool = True) -> Iterator[Server]:
    """Serve a store for the time of a test, which may kill the server unless it `stops`."""
    command = [sys.executable, "-m", "corollary.cli.main", "serve", str(store), "--port", "0"]
    if "--workers" not in options:
        command += ["--workers", "2"]
    with tempfile.TemporaryDirectory(prefix="serving-") as folder:
        process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": folder},
        )
        try:
            server = Server(process, store)
            if wait:
                server.wait()
            yield server
            assert server.stop() == 0 or not stops, server.lines
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            assert process.stderr is not None
            process.stderr.close()


def error_of(response: httpx.Response) -> tuple[int, str]:
    """The status and the code of an error."""
    return response.status_code, response.json()["error"]["code"]
