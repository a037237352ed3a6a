"""Live feeds from a real server: commits and answers, resumed, filtered, each event once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.servers import EMPLOYEES, PREFIX, Server, build, error_of, serving


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(build(tmp_path_factory.mktemp("live")), "--open") as server:
        yield server


def insert(server: Server, text: str, verb: str = "INSERT") -> int:
    update = {"update": f"{PREFIX} {verb} DATA {{ {text} }}"}
    found = server.client.post("/sparql", data=update)
    assert found.status_code == 200, found.text
    version: int = found.json()["version"]
    return version


def events(response: httpx.Response) -> Iterator[tuple[str, str, Any]]:
    """The events of a feed: id, kind and data."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        else:
            if "data" in fields:
                yield fields.get("id", ""), fields["event"], json.loads(fields["data"])
            fields = {}


class Listener:
    """Collects the events of a feed in a thread until there are enough."""

    def __init__(self, server: Server, path: str, enough: int, **options: Any) -> None:
        self.found: list[tuple[str, str, Any]] = []
        self.ready = threading.Event()
        self._arguments = server.url + path, enough, options
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        assert self.ready.wait(60)

    def _listen(self) -> None:
        url, enough, options = self._arguments
        with (
            httpx.Client(timeout=60, trust_env=False) as client,
            client.stream("GET", url, **options) as response,
        ):
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            self.ready.set()
            for event in events(response):
                self.found.append(event)
                if len(self.found) == enough:
                    return

    def result(self) -> list[tuple[str, str, Any]]:
        self._thread.join()
        return self.found


def facts(event: Any, kind: str) -> set[str]:
    return {change["fact"] for change in event["changes"] if change["change"] == kind}


def test_commits_as_they_come_filtered_and_resumed(live: Server) -> None:
    every = Listener(live, "/changes", 2)
    workers = Listener(live, "/changes", 1, params={"pattern": "[?x, :worksFor, ?y]"})
    first = insert(live, ":lee :age 30")
    second = insert(live, ":mia :worksFor :lab")
    assert [(id_, kind) for id_, kind, _ in every.result()] == [
        (str(first), "commit"),
        (str(second), "commit"),
    ]
    [(id_, _, event)] = workers.result()
    assert id_ == str(second)
    assert facts(event, "inserted") == {"[:mia, :worksFor, :lab]"}
    again = Listener(live, "/changes", 1, headers={"Last-Event-ID": str(first)})
    assert again.result() == every.result()[1:]
    since = Listener(live, "/changes", 2, params={"since": first - 1})
    assert since.result() == every.result()


def test_answers_come_and_go(live: Server) -> None:
    listener = Listener(live, "/subscribe", 3, params={"query": EMPLOYEES})
    came = insert(live, ":nia :headOf :lab")
    insert(live, ":nia :age 5")  # changes no answer
    gone = insert(live, ":nia :headOf :lab", "DELETE")
    opening, first, second = listener.result()
    assert opening[1] == "answers"
    assert {"x": "<http://example.org/ann>"} in opening[2]["answers"]
    nia = [{"x": "<http://example.org/nia>"}]
    assert first == (str(came), "change", {"version": came, "came": nia, "gone": []})
    assert second == (str(gone), "change", {"version": gone, "came": [], "gone": nia})
    options: dict[str, Any] = {"params": {"query": EMPLOYEES}}
    resumed = Listener(live, "/subscribe", 1, headers={"Last-Event-ID": str(came)}, **options)
    assert resumed.result()[0][2]["gone"] == nia


def test_many_subscribers_receive_every_event_once(live: Server) -> None:
    listeners = [Listener(live, "/changes", 3) for _ in range(20)]
    versions = [str(insert(live, f":s{number} :age {number}")) for number in range(3)]
    for listener in listeners:
        assert [id_ for id_, _, _ in listener.result()] == versions


def test_a_listener_that_leaves_is_forgotten(live: Server) -> None:
    def subscribers() -> str:
        lines = live.client.get("/metrics").text.splitlines()
        return next(line for line in lines if line.startswith("corollary_subscribers"))

    until(lambda: subscribers().endswith(" 0"))
    with live.client.stream("GET", "/changes"):
        until(lambda: subscribers().endswith(" 1"))
    until(lambda: subscribers().endswith(" 0"))


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        pass


def test_feeds_end_when_the_service_stops(tmp_path: Path) -> None:
    with serving(build(tmp_path), "--limit-subscribers", "1") as server:
        listener = Listener(server, "/changes", 1)
        assert error_of(server.client.get("/changes")) == (429, "E608")
        assert server.stop() == 0
        assert listener.result() == []
