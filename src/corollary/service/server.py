"""Run a service: listen, serve until a signal, stop gracefully."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn

from corollary.errors import InvalidInput, OperationFailed
from corollary.service.app import Application
from corollary.service.logs import Log
from corollary.service.protocol import Protocol, disconnect_stalled
from corollary.service.service import Service
from corollary.service.settings import Settings

_GRACE = 10  # seconds for running requests when the service stops
_CONNECTIONS = 4096
_KEEP_ALIVE = 30  # seconds
_HEADER_BYTES = 64 << 10  # of a request line with its headers; GET queries may be long


def run(settings: Settings, *, quiet: bool = False) -> None:
    """Serve a store until Ctrl-C or SIGTERM."""
    refuse_public(settings)
    from corollary.store import Store  # loads PyArrow
    from corollary.store.places import store_path

    Store.open(store_path(settings.store, settings.storage_options))  # raises if there is none
    listener = listen(settings)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"serving {settings.store} at http://{shown}:{port}/", file=sys.stderr, flush=True)
    _raise_files()
    log = Log(quiet=quiet)
    _forward_warnings(log)
    service = Service(settings, log)
    config = uvicorn.Config(
        Application(service),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        ws="none",
        lifespan="on",
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        http=Protocol,
        proxy_headers=False,
    )
    asyncio.run(_Server(config, service).serve(sockets=[listener]))


def refuse_public(settings: Settings) -> None:
    """Refuse to listen on public addresses without tokens.

    >>> refuse_public(Settings("univ.store"))
    """
    if not settings.is_local and settings.tokens is None:
        raise InvalidInput(
            "E611",
            f"without tokens, the service listens on this machine only, not on {settings.host}",
            "name a file of tokens: --tokens FILE",
        )


def _raise_files() -> None:
    """Allow as many open files as the system does: each connection needs one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _forward_warnings(log: Log) -> None:
    """Write what the HTTP library reports to the log of the service."""
    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [_Forward(log)], False
    logger.setLevel(logging.WARNING)


class _Forward(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.write("server", level=record.levelname.lower(), message=record.getMessage())


def listen(settings: Settings) -> socket.socket:
    """Open the socket of a service."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio turns off Nagle's delay (40 ms a response) for sockets that name their protocol.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        disconnect_stalled(listener)
        listener.bind((settings.host, settings.port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise OperationFailed(
            "E612",
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}",
            "choose another --port or --host",
        ) from None
    return listener


class _Server(uvicorn.Server):
    """A server that ends its feeds when it stops."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGINT and SIGTERM; unlike the original, a graceful stop is not an interrupt."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self._stop, number)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _stop(self, number: int) -> None:
        self._service.end_feeds()
        self.handle_exit(number, None)
