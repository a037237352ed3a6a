"""Limits: what is too much is refused or stopped, and the service goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

from corollary.service.app import Application
from corollary.service.service import Service
from corollary.service.settings import Limits, Settings
from tests.service.servers import EMPLOYEES, Server, error_of, serving

# Billions of rows: never done before a limit.
ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a > ?j) }"
LARGE = "SELECT * { ?a ?b ?c . ?d ?e ?f }"


@pytest.fixture(scope="module")
def limited(university: Path) -> Iterator[Server]:
    options = ["--limit-rows", "2000", "--limit-seconds", "4", "--limit-waiting", "1"]
    with serving(university, "--workers", "1", *options, "--limit-request", "1K") as server:
        yield server


def still_works(server: Server) -> None:
    found = server.client.get("/sparql", params={"query": EMPLOYEES})
    assert found.status_code == 200, found.text


@pytest.mark.long
def test_stops_a_query_at_the_time_limit(limited: Server) -> None:
    found = limited.client.get("/sparql", params={"query": ENDLESS})
    assert error_of(found) == (503, "E405")
    assert "Retry-After" in found.headers
    still_works(limited)


@pytest.mark.long
def test_kills_a_worker_that_cannot_be_interrupted(limited: Server) -> None:
    query = f'ASK {{ FILTER(REGEX("{"a" * 60}", "(a+)+b")) }}'
    assert error_of(limited.client.get("/sparql", params={"query": query})) == (503, "E405")
    still_works(limited)


def test_refuses_too_many_rows(limited: Server) -> None:
    assert error_of(limited.client.get("/sparql", params={"query": LARGE})) == (413, "E607")
    still_works(limited)


def test_refuses_large_bodies(limited: Server) -> None:
    headers = {"Content-Type": "application/sparql-query"}
    assert error_of(limited.client.post("/sparql", content=b" " * 2000, headers=headers)) == (
        413,
        "E606",
    )

    def parts() -> Iterator[bytes]:  # without Content-Length
        for _ in range(100):
            yield b" " * 100

    found = limited.client.post("/sparql", content=parts(), headers=headers)
    assert error_of(found) == (413, "E606")
    still_works(limited)


def test_a_client_that_goes_away_ends_its_query(limited: Server) -> None:
    with pytest.raises(httpx.ReadTimeout):
        limited.client.get("/sparql", params={"query": ENDLESS}, timeout=1)
    still_works(limited)  # there is one worker
    assert "corollary_reader_stopped_client_total 1" in limited.client.get("/metrics").text


@pytest.mark.long
def test_refuses_requests_when_too_many_wait(limited: Server) -> None:
    statuses: list[int] = []

    def ask() -> None:
        statuses.append(
            httpx.get(
                f"{limited.url}/sparql", params={"query": ENDLESS}, timeout=60, trust_env=False
            ).status_code
        )

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses)[:2] == [429, 429]
    assert 503 in statuses
    still_works(limited)


def test_refuses_answers_while_clients_read_too_slowly() -> None:
    """In process: a client that reads nothing keeps its answer in memory."""

    async def respond() -> list[int]:
        service = Service(Settings("s", limits=Limits(memory=1000)))
        application, statuses = Application(service), []
        reads = asyncio.Event()

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            elif len(statuses) == 2:
                await reads.wait()

        page: dict[str, Any] = {"type": "http", "method": "GET", "path": "/icon.svg"}
        page |= {"headers": [(b"host", b"localhost")], "query_string": b""}
        service.sending = 900  # less than the icon is left
        await application(page, receive, send)
        service.sending = 0
        slow = asyncio.create_task(application(page, receive, send))
        await asyncio.sleep(0)
        reads.set()
        await slow
        assert service.sending == 0
        return statuses

    assert asyncio.run(respond()) == [429, 200]


@pytest.mark.long
def test_kills_a_worker_that_uses_too_much_memory(university: Path) -> None:
    # Less than a worker needs for nothing at all.
    with serving(university, "--limit-memory", "40M", "--workers", "1", wait=False) as server:
        deadline = time.monotonic() + 100
        while server.client.get("/health").json()["status"] == "opening":
            assert time.monotonic() < deadline
        found = server.client.get("/sparql", params={"query": EMPLOYEES})
        assert error_of(found) == (503, "E406")


@pytest.mark.long
def test_stops_gracefully_while_a_query_runs(university: Path) -> None:
    with serving(university, "--limit-seconds", "3") as server:
        results: list[int] = []

        def ask() -> None:
            found = httpx.get(
                f"{server.url}/sparql", params={"query": ENDLESS}, timeout=60, trust_env=False
            )
            results.append(found.status_code)

        thread = threading.Thread(target=ask)
        thread.start()
        while "corollary_reader_running 1" not in server.client.get("/metrics").text:
            time.sleep(0.05)
        assert server.stop() == 0
        thread.join()
    assert results == [503]
    assert server.events()[-1]["event"] == "stopped"
