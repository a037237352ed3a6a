"""HTTP clients for load: one connection each, all in one event loop, without other work."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Failed(Exception):
    """A response other than 200."""


class Connection:
    """A connection that is kept open, as browsers and drivers do."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)

    async def ask(self, path: str, body: bytes | None = None, media: str = "") -> Response:
        """Send a request and read the answer."""
        await self._send(path, body, media)
        headers = await self._headers()
        assert self._reader is not None, "the connection is open"
        data = await self._reader.readexactly(int(headers["content-length"]))
        return Response(headers, data)

    async def follow(self, path: str) -> None:
        """Open a feed."""
        await self._send(path, None, "")
        await self._headers()

    async def event(self) -> tuple[int, str, Any]:
        """The next event of a feed: its id, kind and data."""
        assert self._reader is not None, "the connection is open"
        fields: dict[str, str] = {}
        while True:
            size = int(await self._reader.readline(), 16)
            chunk = await self._reader.readexactly(size + 2)
            if not size:
                raise EOFError
            for line in chunk.decode().splitlines():
                name, _, value = line.partition(": ")
                fields[name] = value
            if "data" in fields:
                return int(fields["id"]), fields["event"], json.loads(fields["data"])
            fields.clear()

    async def _send(self, path: str, body: bytes | None, media: str) -> None:
        assert self._writer is not None, "the connection is open"
        lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1"]
        lines.append(f"Host: {self._host}:{self._port}")
        if body is not None:
            lines += [f"Content-Type: {media}", f"Content-Length: {len(body)}"]
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        await self._writer.drain()

    async def _headers(self) -> dict[str, str]:
        assert self._reader is not None, "the connection is open"
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        if " 200 " not in head[0]:
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
            raise Failed(f"{head[0]} {body.decode()[:200]}")
        return headers

    def close(self) -> None:
        """Disconnect."""
        if self._writer is not None:
            self._writer.close()


@dataclass(frozen=True)
class Response:
    """A response with its headers."""

    headers: dict[str, str]
    body: bytes

    @property
    def version(self) -> int:
        """The version that answered."""
        return int(self.headers["corollary-version"])

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class Load:
    """What clients have seen."""

    seconds: list[float] = field(default_factory=list)  # of each request
    errors: list[str] = field(default_factory=list)
    markers: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)  # by version

    def quantile(self, share: float) -> float:
        """A quantile of the seconds.

        >>> Load([3.0, 1.0, 2.0]).quantile(0.5)
        2.0
        """
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def clients(
    url: str, number: int, seconds: float, queries: Sequence[str], marker: str
) -> Load:
    """Clients that each send one query a second; `marker` is the query that is checked."""
    load = Load()

    async def client(place: int) -> None:
        connection = Connection(url)
        await connection.open()
        begin = time.perf_counter() + place / number  # spread over the second
        asked = 0
        while (due := begin + asked) < begin + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            query = queries[(place + asked) % len(queries)]
            started = time.perf_counter()
            try:
                found = await connection.ask(f"/sparql?{urlencode({'query': query})}")
                load.seconds.append(time.perf_counter() - started)
                if query == marker:
                    rows = found.json()["results"]["bindings"]
                    values = [cell["value"] for row in rows for cell in row.values()]
                    load.markers.append((found.version, tuple(values)))
            except (Failed, OSError, EOFError) as error:
                load.errors.append(repr(error))
                connection = Connection(url)
                await connection.open()
            asked += 1
        connection.close()

    await asyncio.gather(*map(client, range(number)))
    return load


def memory(process: int) -> int:
    """The resident memory of a process and of all that it has started, without shared pages."""
    total = 0
    pending = [process]
    while pending:
        number = pending.pop()
        folder = Path("/proc") / str(number)
        try:
            resident, shared = (folder / "statm").read_text().split()[1:3]
            total += (int(resident) - int(shared)) * _PAGE
            for task in (folder / "task").iterdir():
                pending += map(int, (task / "children").read_text().split())
        except OSError:  # it has ended
            continue
    return total
