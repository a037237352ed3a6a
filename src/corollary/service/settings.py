"""The settings of a service: its store, limits, tokens and addresses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from corollary.service.tokens import Tokens

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Limits:
    """What one request may use, and how many requests and subscribers there may be."""

    seconds: float = 30.0
    memory: int = 4 << 30  # bytes of a worker process
    rows: int = 1_000_000  # of an answer
    request_bytes: int = 10 << 20
    waiting: int = 64  # requests that wait for a worker
    subscribers: int = 2000


@dataclass(frozen=True)
class Settings:
    """How a service runs.

    >>> Settings("univ.store").is_local
    True
    """

    store: str
    storage_options: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 7878
    workers: int = max(2, os.cpu_count() or 1)
    threads: int = 1  # of a worker
    limits: Limits = Limits()
    tokens: Tokens | None = None
    open: bool = False  # whether anybody who can connect may write
    cors: tuple[str, ...] = ()  # origins of other pages

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in LOCAL_HOSTS
