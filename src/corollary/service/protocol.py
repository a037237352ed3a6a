"""The HTTP connection: what a client sends or reads too slowly does not keep it open.

The limits of an application begin with a complete request head. Before that, this protocol counts;
after it, the kernel: it ends a connection whose client reads nothing for a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 30.0  # until the head of a request must have arrived
STALLED_SECONDS = 60  # until a client that reads nothing is disconnected


class Protocol(H11Protocol):
    """Closes a connection if the head of a request does not arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop to wait when the head is complete; part of it does not extend the time."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to wait."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._expire)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        if self.conn.their_state is h11.IDLE:
            self.transport.close()


def disconnect_stalled(listener: socket.socket) -> None:
    """Let the kernel end connections to clients that do not read; accepted sockets inherit it."""
    option = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux
    if option is not None:
        with contextlib.suppress(OSError):
            listener.setsockopt(socket.IPPROTO_TCP, option, STALLED_SECONDS * 1000)
