"""The service under load: clients, commits, subscribers, a kill, and the price of a request."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import corollary as co
from benchmarks.load import Connection, Failed, Load, clients, memory
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.query.results import Solutions
from corollary.query.write import encoded

_CLIENTS = 50
_SUBSCRIBERS = 1000
_SHORT = 60  # seconds of load below which the other parts are short, too
_MOST_OVERHEAD = 0.003  # seconds
_MOST_RATIO = 5  # of the quantiles of many clients and one
_MEMORY_GROWTH = 1.5

_UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
_PREFIX = f"PREFIX ub: <{_UB}> PREFIX : <urn:bench:> "
_DEPARTMENT = "<http://www.Department0.University0.edu>"
# `:sign` is derived from `:marker`: both sides of the store change with each commit.
_AXIOM = "<urn:bench:marker> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <urn:bench:sign>"
_MARKER = _PREFIX + "SELECT ?a ?b ?c { :left :sign ?a . :right :sign ?b . :left :marker ?c }"
_QUERIES = {
    "one class": _PREFIX + "SELECT ?x { ?x a ub:Chair } LIMIT 5",
    "a join": _PREFIX
    + f"SELECT ?x ?m {{ ?x ub:headOf {_DEPARTMENT} ; ub:emailAddress ?m ; a ub:Professor }}",
    "yes or no": _PREFIX + f"ASK {{ {_DEPARTMENT} a ub:Organization }}",
    "the marker": _MARKER,
}


@dataclass(frozen=True)
class _Sizes:
    """How often each part repeats what it measures."""

    rounds: int = 400  # of each question
    subscribed: int = 20  # commits that the subscribers receive
    kills: int = 5

    @classmethod
    def of(cls, seconds: int) -> _Sizes:
        return cls(50, 5, 2) if seconds < _SHORT else cls()


def run(options: Options) -> Iterator[Row]:
    """Each part with its own server over the same store."""
    _raise_files()
    seconds = max(options.scales)
    sizes = _Sizes.of(seconds)
    with tempfile.TemporaryDirectory(prefix="corollary-serve-") as name:
        store = _store(Path(name))
        with _serving(store) as server:
            yield from _overhead(store, server, sizes.rounds)
        yield from _load(store, seconds)
        with _serving(store) as server:
            yield asyncio.run(_subscribers(server, sizes.subscribed))
        yield _killed(store, sizes.kills)


def _store(folder: Path) -> Path:
    store, extra = folder / "store", folder / "extra.nt"
    extra.write_text(f"{_AXIOM} .\n")
    command = [sys.executable, "-m", "corollary.cli.main"]
    for words in (
        ["generate", "lubm", "--scale", "1", "--out", "lubm"],
        ["build", "store", "lubm", "extra.nt", "--rules", "owl-rl", "--engine", "columnar"],
    ):
        subprocess.run([*command, *words], cwd=folder, check=True, capture_output=True)
    return store


@contextlib.contextmanager
def _serving(store: Path) -> Iterator[Server]:
    command = [sys.executable, "-m", "corollary.cli.main", "serve", str(store), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--open", "--quiet", "--workers", "2"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None, "it is a pipe"
        url = process.stderr.readline().rpartition(" at ")[2].strip().rstrip("/")
        yield Server(process, url)
    finally:
        process.kill()
        process.communicate()


class Server:
    """A server that has opened its store, in all of its processes."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        while self.get("/health")[0] != 200:
            time.sleep(0.1)
        asyncio.run(commit_marker(url, 0))  # the writer is ready
        asyncio.run(clients(url, 8, 2, [*_QUERIES.values()], _MARKER))  # and all readers

    def get(self, path: str) -> tuple[int, bytes]:
        """Send a request."""
        try:
            self._connection.request("GET", path)
            found = self._connection.getresponse()
        except http.client.RemoteDisconnected:  # idle for too long
            self._connection.close()
            self._connection.request("GET", path)
            found = self._connection.getresponse()
        return found.status, found.read()


async def commit_marker(url: str, number: int, connection: Connection | None = None) -> int:
    """Replace the marker by a number; returns the version."""
    if connection is None:
        connection = Connection(url)
        await connection.open()
    text = (
        f"{_PREFIX} DELETE WHERE {{ ?x :marker ?n }} ;"
        f" INSERT DATA {{ :left :marker {number} . :right :marker {number} }}"
    )
    path = f"/sparql?{urlencode({'message': f'marker {number}'})}"
    found = await connection.ask(path, text.encode(), "application/sparql-update")
    return found.version


# -- the price of a request ------------------------------------------------------------------------


def _overhead(store: Path, server: Server, rounds: int) -> Iterator[Row]:
    """The same questions in process and over HTTP, one after the other."""
    kb = co.KnowledgeBase.open(store)
    for name, query in _QUERIES.items():
        path = f"/sparql?{urlencode({'query': query})}"
        inside: list[float] = []
        outside: list[float] = []
        equal = True
        for _ in range(rounds):
            started = time.perf_counter()
            here = encoded(kb.query(query), "json")
            inside.append(time.perf_counter() - started)
            started = time.perf_counter()
            _, there = server.get(path)
            outside.append(time.perf_counter() - started)
            equal &= here == there
        more = statistics.median(outside) - statistics.median(inside)
        yield {
            "case": "request",
            "query": name,
            "in_process_seconds": statistics.median(inside),
            "request_seconds": statistics.median(outside),
            "overhead_seconds": more,
            "correct": equal,
            "within": more <= _MOST_OVERHEAD,
        }


# -- clients while commits go on -------------------------------------------------------------------


def _load(store: Path, seconds: int) -> Iterator[Row]:
    rows = []
    for number in (1, _CLIENTS):
        with _serving(store) as server:
            load, used, versions = asyncio.run(_together(server, number, seconds))
            log = _log(server)
        early = used[: max(1, len(used) // 3)]
        mixed = sum(_is_mixed(marker, log) for marker in load.markers)
        row: Row = {
            "case": "load",
            "clients": number,
            "seconds": seconds,
            "requests": len(load.seconds),
            "commits": len(versions),
            "errors": len(load.errors),
            "checked": len(load.markers),
            "mixed": mixed,
            "median_seconds": load.quantile(0.5),
            "p99_seconds": load.quantile(0.99),
            "memory_bytes": max(early),
            "memory_most_bytes": max(used),
            "correct": not load.errors and not mixed and bool(load.markers),
        }
        if load.errors:
            row["first_error"] = load.errors[0]
        rows.append(row)
        one = rows[0]["p99_seconds"]
        row["ratio"] = row["p99_seconds"] / one
        bounded = max(used) <= _MEMORY_GROWTH * max(early)
        row["within"] = bounded and row["ratio"] <= _MOST_RATIO
        yield row


async def _together(server: Server, number: int, seconds: int) -> tuple[Load, list[int], list[int]]:
    used: list[int] = []
    versions: list[int] = []

    async def watch() -> None:
        while True:
            used.append(await asyncio.to_thread(memory, server.process.pid))
            await asyncio.sleep(1)

    async def write() -> None:
        connection = Connection(server.url)
        await connection.open()
        begin = time.perf_counter()
        for tick in itertools.count(1):
            versions.append(await commit_marker(server.url, tick, connection))
            await asyncio.sleep(max(0.0, begin + tick - time.perf_counter()))

    tasks = [asyncio.create_task(watch()), asyncio.create_task(write())]
    try:
        load = await clients(server.url, number, seconds, [*_QUERIES.values()], _MARKER)
        for task in tasks:
            if task.done():
                task.result()  # raises what stopped it
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return load, used, versions


def _log(server: Server) -> dict[int, str]:
    """The marker of each version, from the log."""
    found: dict[int, str] = {}
    before: int | None = None
    while before != 0:
        fields = {"limit": 1000} | ({} if before is None else {"before": before})
        _, body = server.get(f"/log?{urlencode(fields)}")
        commits = json.loads(body)["commits"]
        found |= {one["version"]: one["message"].removeprefix("marker ") for one in commits}
        before = min((one["version"] for one in commits), default=0)
    known = "0"
    for version in sorted(found):  # builds and compactions change no marker
        known = found[version] = found[version] if found[version].isdigit() else known
    return found


def _is_mixed(marker: tuple[int, tuple[str, ...]], log: dict[int, str]) -> bool:
    version, values = marker
    return values != (log[version],) * 3


# -- subscribers -----------------------------------------------------------------------------------


async def _subscribers(server: Server, commits: int) -> Row:
    """Each receives each change once: most follow the commits, some the answers to a query."""
    query = f"/subscribe?{urlencode({'query': _PREFIX + 'SELECT ?n { :left :sign ?n }'})}"
    paths = [query if n % 10 == 0 else "/changes" for n in range(_SUBSCRIBERS)]
    connections = [Connection(server.url) for _ in paths]
    for connection, path in zip(connections, paths, strict=True):
        await connection.open()
        await connection.follow(path)
    counted: Counter[str] = Counter()
    delays: list[float] = []
    sent: dict[int, float] = {}

    async def receive(connection: Connection, path: str) -> None:
        if path != "/changes":
            await connection.event()  # the first answers
        seen = []
        for _ in range(commits):
            version, _, data = await connection.event()
            seen.append(version)
            if version in sent:
                delays.append(time.perf_counter() - sent[version])
            counted["empty"] += not (data.get("changes") or data.get("came"))
        counted["right" if seen == versions[: len(seen)] else "wrong"] += 1

    versions: list[int] = []
    receivers = [
        asyncio.create_task(receive(*pair)) for pair in zip(connections, paths, strict=True)
    ]
    writer = Connection(server.url)
    await writer.open()
    for number in range(1, commits + 1):
        version = await commit_marker(server.url, number, writer)
        sent[version] = time.perf_counter()
        versions.append(version)
        await asyncio.sleep(1)
    _, pending = await asyncio.wait(receivers, timeout=60)
    for task in pending:
        task.cancel()
    extra = await _extra(connections)
    for connection in connections:
        connection.close()
    right = counted["right"]
    return {
        "case": "subscribers",
        "subscribers": len(connections),
        "commits": len(versions),
        "events": right * len(versions),
        "delay_p50_seconds": statistics.median(delays) if delays else None,
        "delay_most_seconds": max(delays, default=None),
        "correct": right == len(connections) and not extra and not counted["empty"],
    }


async def _extra(connections: list[Connection]) -> int:
    """Count the events that arrive although no commit was made."""
    tasks = [asyncio.create_task(connection.event()) for connection in connections]
    done, pending = await asyncio.wait(tasks, timeout=2)
    for task in pending:
        task.cancel()
    return len(done)


# -- a kill ----------------------------------------------------------------------------------------


def _killed(store: Path, kills: int) -> Row:
    """Kill the server in the middle of commits; none that was answered is lost."""
    answered: list[int] = []
    for turn in range(kills):
        with _serving(store) as server:
            answered += asyncio.run(_until_killed(server, turn))
    found = co.KnowledgeBase.open(store).query("SELECT ?n { <urn:bench:kill> <urn:bench:n> ?n }")
    assert isinstance(found, Solutions), "SELECT returns solutions"
    kept = {*found.to_pandas(native=True)["n"]}
    lost = len({*answered} - kept)
    return {
        "case": "killed",
        "kills": kills,
        "answered": len(answered),
        "lost": lost,
        "correct": bool(answered) and not lost,
    }


async def _until_killed(server: Server, turn: int) -> list[int]:
    """Commit numbers until the server is killed; returns those that were answered."""
    answered: list[int] = []
    connection = Connection(server.url)
    await connection.open()
    asyncio.get_running_loop().call_later(1 + 0.037 * turn, server.process.kill)
    with contextlib.suppress(Failed, OSError, EOFError):
        for number in itertools.count(10_000 * turn):
            text = f"INSERT DATA {{ <urn:bench:kill> <urn:bench:n> {number} }}"
            await connection.ask("/sparql", text.encode(), "application/sparql-update")
            answered.append(number)
    return answered


def _raise_files() -> None:
    """Allow as many open files as the system does: each subscriber needs two."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


BENCHMARK = Benchmark(
    "serve",
    "the service: price of a request, load with commits, subscribers, kills",
    unit="seconds of load",
    scales=(180,),
    small=(5,),
    run=run,
    views=(
        View(
            "A request and the same question in process, medians",
            (
                "query",
                Column("in_process_seconds", "in process: ms", 1e3),
                Column("request_seconds", "request: ms", 1e3),
                Column("overhead_seconds", "more: ms", 1e3),
                "correct",
            ),
            where=(("case", "request"),),
        ),
        View(
            "Clients that each send one query a second while another commits every second",
            (
                "clients",
                "requests",
                "commits",
                "errors",
                Column("mixed", "mixed versions"),
                Column("median_seconds", "median: ms", 1e3),
                Column("p99_seconds", "p99: ms", 1e3),
                Column("ratio", "p99, × one client"),
                Column("memory_bytes", "first third: MB", 1e-6),
                Column("memory_most_bytes", "most: MB", 1e-6),
            ),
            where=(("case", "load"),),
        ),
        View(
            "Subscribers that each receive every commit",
            (
                "subscribers",
                "commits",
                "events",
                Column("delay_p50_seconds", "delay, median: ms", 1e3),
                Column("delay_most_seconds", "delay, most: ms", 1e3),
                "correct",
            ),
            where=(("case", "subscribers"),),
        ),
        View(
            "Killed in the middle of commits",
            ("kills", Column("answered", "commits answered"), "lost", "correct"),
            where=(("case", "killed"),),
        ),
    ),
)
