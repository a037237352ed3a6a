"""`Service`: a store that is served, with its pools of workers, live feeds, metrics and log."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from corollary.errors import CorollaryError, OperationFailed
from corollary.service.live import Hub
from corollary.service.logs import Log
from corollary.service.metrics import Metrics
from corollary.service.pool import Pool
from corollary.service.settings import Settings

_POLL = 0.5  # seconds between looks for commits of other processes
_OPENING = 3600.0  # seconds until a store must be open


class Service:
    """A store that is served."""

    def __init__(self, settings: Settings, log: Log | None = None) -> None:
        self.settings = settings
        self.log = log or Log()
        self.metrics = Metrics()
        self.readers = Pool(settings, settings.workers)
        self.writer = Pool(settings, 1)
        self.feeds = Pool(settings, 1)  # one process, which keeps the views of subscriptions
        for pool in (self.readers, self.writer, self.feeds):
            pool.log = self.log.write
        self.hub = Hub(self)
        self.started = time.time()
        self.failure: CorollaryError | None = None
        self.is_open = False
        self.is_stopping = False
        self.sending = 0  # bytes of answers that clients have not read yet
        self._tasks: list[asyncio.Task[None]] = []
        self._turn = asyncio.Lock()

    @property
    def version(self) -> int:
        """The newest version that the service knows."""
        return self.readers.newest

    def seen(self, version: int) -> None:
        """Learn of a version: later requests see it."""
        if version > self.version:
            self.readers.newest = self.writer.newest = self.feeds.newest = version
            self.hub.advance(version)

    async def feed(self, job: str, **arguments: Any) -> Any:
        """Run a job for a feed: feeds wait for each other, and never for requests."""
        async with self._turn:
            return await self.feeds.run(job, **arguments)

    async def start(self) -> None:
        """Begin to open the store and to look for commits."""
        self._tasks = [asyncio.create_task(self._open()), asyncio.create_task(self._poll())]

    async def stop(self) -> None:
        """End feeds, wait for running requests, end the workers."""
        self.end_feeds()
        for task in self._tasks:
            task.cancel()
        for pool in (self.writer, self.readers, self.feeds):
            await pool.close()
        self.log.write("stopped")

    def end_feeds(self) -> None:
        """Refuse new requests and end all feeds."""
        self.is_stopping = True
        self.hub.close()

    def refuse_unready(self) -> None:
        """Fail while the store is being opened, or the service stops."""
        if self.failure is not None:
            raise self.failure
        if self.is_stopping:
            raise OperationFailed("E609", "the service is stopping", "try again later")
        if not self.is_open:
            raise OperationFailed("E609", "the store is still being opened", "try again later")

    def health(self) -> dict[str, Any]:
        """The state of the service: `ready`, `opening`, `stopping` or `failed`."""
        state = "ready" if self.is_open else "opening"
        if self.failure is not None:
            state = "failed"
        if self.is_stopping:
            state = "stopping"
        return {"status": state, "version": self.version if self.is_open else None}

    def metric_lines(self) -> str:
        """The metrics as text."""
        gauges: dict[str, tuple[str, str, float]] = {
            "corollary_version": ("gauge", "The newest version of the store.", self.version),
            "corollary_subscribers": ("gauge", "Open feeds.", self.hub.subscribers),
            "corollary_start_time_seconds": ("gauge", "When the service started.", self.started),
        }
        for name, pool in (
            ("reader", self.readers),
            ("writer", self.writer),
            ("feed", self.feeds),
        ):
            counters = pool.counters
            start = f"corollary_{name}"
            gauges |= {
                f"{start}_jobs_total": ("counter", "Jobs of workers.", counters.jobs),
                f"{start}_running": ("gauge", "Jobs that run.", counters.running),
                f"{start}_waiting": ("gauge", "Jobs that wait.", counters.waiting),
                f"{start}_starts_total": ("counter", "Worker processes.", counters.started),
                f"{start}_memory_bytes": ("gauge", "Memory of workers.", pool.memory()),
            }
            for reason, count in counters.stopped.items():
                meaning = f"Jobs stopped: {reason}."
                gauges[f"{start}_stopped_{reason}_total"] = ("counter", meaning, count)
        return "\n".join(self.metrics.lines(gauges)) + "\n"

    async def _open(self) -> None:
        started = time.perf_counter()
        try:
            found = await self.readers.run("info", seconds=_OPENING)
        except CorollaryError as error:
            self.failure = error
            self.log.write("failed", **error.as_json())
            return
        self.seen(found["version"])
        self.is_open = True
        seconds = round(time.perf_counter() - started, 3)
        self.log.write("ready", version=found["version"], facts=found["facts"], seconds=seconds)

    async def _poll(self) -> None:
        """Look for commits of other processes."""
        from corollary.store import Store  # loads PyArrow
        from corollary.store.places import store_path

        def latest() -> int:
            place = store_path(self.settings.store, self.settings.storage_options)
            return Store(place).latest()

        while True:
            await asyncio.sleep(_POLL)
            if self.is_open:
                try:
                    self.seen(await asyncio.to_thread(latest))
                except CorollaryError as error:
                    self.log.write("failed", **error.as_json())
