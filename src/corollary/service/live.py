"""Live feeds: commits as they come, and the answers to a query as they come and go.

All subscribers to the same pattern or query share a topic, which computes each event once. A
subscriber that falls behind is disconnected; its client continues where it was by `Last-Event-ID`.

Invariant: a topic has sent the events of all versions up to its position, in order. A subscriber
joins at a position, and receives what came before it by replay and what comes after it by its
queue, so every event reaches it once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from corollary.errors import CorollaryError, InvalidInput, OperationFailed
from corollary.service.exchange import error_value

if TYPE_CHECKING:
    from corollary.service.service import Service

HEARTBEAT = 15.0  # seconds between comments, which keep proxies from closing the connection
_QUEUE = 256  # events that a slow subscriber may be behind
_CHANGES = 1000  # changes of facts in one event


@dataclass(frozen=True)
class Event:
    """An event of a feed; its id is a version."""

    version: int
    kind: str
    data: str

    @cached_property
    def encoded(self) -> bytes:
        """The event in the format of Server-Sent Events.

        >>> Event(3, "commit", "{}").encoded
        b'id: 3\\nevent: commit\\ndata: {}\\n\\n'
        """
        return f"id: {self.version}\nevent: {self.kind}\ndata: {self.data}\n\n".encode()


class Topic(ABC):
    """What several subscribers listen to."""

    def __init__(self, service: Service, text: str) -> None:
        self._service = service
        self.text = text
        self.position = service.version
        self.queues: set[asyncio.Queue[Event | CorollaryError | None]] = set()
        self.failure: CorollaryError | None = None
        self._started = False
        self._starting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def events(self, since: int, until: int) -> list[Event]:
        """The events of the versions after one up to another."""

    @abstractmethod
    async def prepare(self) -> None:
        """Compute what the first event needs; a mistake of the client raises here."""

    @abstractmethod
    async def opening(self, last: int | None, position: int) -> list[Event]:
        """The events for a subscriber that joins at a position and knows those up to `last`."""

    async def start(self) -> None:
        """Start to send events, once."""
        async with self._starting:
            if not self._started:
                await self.prepare()
                self._started = True
                self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Stop to send events."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while True:
                newest = await self._service.hub.beyond(self.position)
                for event in await self.events(self.position, newest):
                    self._send(event)
                self.position = newest
        except CorollaryError as error:
            self.failure = error
            self._send(error)

    def _send(self, event: Event | CorollaryError) -> None:
        for queue in self.queues:
            if queue.qsize() >= _QUEUE:  # the client reads too slowly
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(event)


class Changes(Topic):
    """Commits, each with what came and went; `text` is a pattern, or empty."""

    async def prepare(self) -> None:
        """Check the pattern."""
        await self._fetch(self.position, self.position)

    async def events(self, since: int, until: int) -> list[Event]:
        """One event per commit that changes a matching fact."""
        found: list[Event] = []
        while since < until:
            commits = await self._fetch(since, until)
            for commit in commits:
                if commit.pop("matches"):
                    data = json.dumps(commit, ensure_ascii=False, default=str)
                    found.append(Event(commit["version"], "commit", data))
                since = commit["version"]
            if not commits:
                break
        return found

    async def opening(self, last: int | None, position: int) -> list[Event]:
        """What the subscriber has missed."""
        return [] if last is None else await self.events(last, position)

    async def _fetch(self, since: int, until: int) -> list[dict[str, Any]]:
        pattern = self.text or None
        found: list[dict[str, Any]] = await self._service.feed(
            "changes", since=since, until=until, limit=_CHANGES, pattern=pattern
        )
        return found


class Answers(Topic):
    """The answers to a query: all of them first, then those that come and go."""

    def __init__(self, service: Service, text: str) -> None:
        super().__init__(service, text)
        self._answers: Counter[str] = Counter()

    async def prepare(self) -> None:
        """Answer the query."""
        self.position = self._service.version
        self._answers = await self._at(self.position)

    async def events(self, since: int, until: int) -> list[Event]:
        """One event per commit that changes the answers."""
        maintained = await self._service.feed("follow", text=self.text, since=since, until=until)
        if maintained is None:
            return await self._asked(since, until)
        found = []
        for change in maintained:
            came, gone = _counted(change["came"]), _counted(change["gone"])
            self._answers = self._answers - gone + came
            self.position = change["version"]
            if came or gone:
                found.append(_change(self.position, came, gone))
        return found

    async def _asked(self, since: int, until: int) -> list[Event]:
        """The events of a query that is asked again after each commit, and compared."""
        found = []
        for version in range(since + 1, until + 1):
            answers = _counted(await self._service.feed("answers", text=self.text, version=version))
            event = _difference(version, self._answers, answers)
            self._answers, self.position = answers, version
            if event is not None:
                found.append(event)
        return found

    async def opening(self, last: int | None, position: int) -> list[Event]:
        """All answers, or the difference to those that the subscriber knows."""
        answers = self._answers
        if last is not None:
            event = _difference(position, await self._at(last), answers)
            return [] if event is None else [event]
        data = {"version": position, "answers": _rows(answers)}
        return [Event(position, "answers", json.dumps(data, ensure_ascii=False))]

    async def _at(self, version: int) -> Counter[str]:
        rows = await self._service.readers.run("answers", text=self.text, version=version)
        return _counted(rows)


def _counted(rows: Iterable[Any]) -> Counter[str]:
    return Counter(json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows)


def _difference(version: int, before: Counter[str], after: Counter[str]) -> Event | None:
    came, gone = after - before, before - after
    if not came and not gone:
        return None
    return _change(version, came, gone)


def _change(version: int, came: Counter[str], gone: Counter[str]) -> Event:
    data = {"version": version, "came": _rows(came), "gone": _rows(gone)}
    return Event(version, "change", json.dumps(data, ensure_ascii=False))


def _rows(answers: Counter[str]) -> list[Any]:
    return [json.loads(row) for row in answers.elements()]


class Hub:
    """All topics of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._topics: dict[tuple[type[Topic], str], Topic] = {}
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def subscribers(self) -> int:
        """The number of open feeds."""
        return sum(len(topic.queues) for topic in self._topics.values())

    def advance(self, version: int) -> None:
        """Wake the topics: there is a new version."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def beyond(self, version: int) -> int:
        """Wait for a version newer than this one."""
        while self._service.version <= version:
            await self._changed.wait()
        return self._service.version

    def close(self) -> None:
        """End all feeds."""
        self._closed = True
        for topic in self._topics.values():
            for queue in topic.queues:
                queue.put_nowait(None)

    async def join(self, kind: type[Topic], text: str, last: int | None) -> AsyncIterator[bytes]:
        """Subscribe; mistakes of the client raise here, before the response begins."""
        if self.subscribers >= self._service.settings.limits.subscribers:
            raise OperationFailed("E608", "there are too many subscribers", "try again later")
        if last is not None and last > self._service.version:
            raise InvalidInput(
                "E505",
                f"there is no version {last} to continue from",
                f"the newest version is {self._service.version}",
            )
        key = (kind, text)
        topic = self._topics.get(key)
        if topic is None or topic.failure is not None:
            topic = self._topics[key] = kind(self._service, text)
        queue: asyncio.Queue[Event | CorollaryError | None] = asyncio.Queue()
        topic.queues.add(queue)
        try:
            await topic.start()
            while not queue.empty():  # sent while the topic started: part of its opening
                queue.get_nowait()
            position = topic.position
            opening = await topic.opening(last, position)
            if topic.failure is not None:  # its subscribers have been told already
                raise topic.failure
        except BaseException:
            self._leave(key, topic, queue)
            raise
        return self._stream(key, topic, queue, opening, position)

    async def _stream(
        self,
        key: tuple[type[Topic], str],
        topic: Topic,
        queue: asyncio.Queue[Event | CorollaryError | None],
        opening: list[Event],
        position: int,
    ) -> AsyncIterator[bytes]:
        try:
            yield b"retry: 1000\n\n"
            for event in opening:
                yield event.encoded
            while not self._closed:
                item: Event | CorollaryError | None
                try:
                    item = await asyncio.wait_for(queue.get(), HEARTBEAT)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if item is None:
                    return
                if isinstance(item, CorollaryError):
                    data = json.dumps(
                        error_value(item, self._service.settings.store), ensure_ascii=False
                    )
                    yield f"event: error\ndata: {data}\n\n".encode()
                    return
                if item.version > position:  # otherwise part of the opening
                    yield item.encoded
        finally:
            self._leave(key, topic, queue)

    def _leave(
        self,
        key: tuple[type[Topic], str],
        topic: Topic,
        queue: asyncio.Queue[Event | CorollaryError | None],
    ) -> None:
        topic.queues.discard(queue)
        if not topic.queues and self._topics.get(key) is topic:
            topic.stop()
            with contextlib.suppress(KeyError):
                del self._topics[key]
