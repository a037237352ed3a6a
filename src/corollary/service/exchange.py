"""An exchange: one request, its parameters and body, and the work that it starts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Coroutine, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

from starlette.responses import Response
from starlette.types import Receive, Scope

from corollary.errors import CorollaryError, InvalidInput
from corollary.service.access import require
from corollary.service.operations import MESSAGE, Operation, Parameter
from corollary.service.tokens import Identity

if TYPE_CHECKING:
    from corollary.service.service import Service

R = TypeVar("R")

FORM = "application/x-www-form-urlencoded"
_BODY_SECONDS = 30.0  # until a body must have arrived
_MOST_FIELDS = 64
_STATUS = {
    "E340": 404,
    "E344": 404,
    "E405": 503,
    "E406": 503,
    "E403": 501,
    "E502": 409,
    "E505": 404,
    "E561": 400,
    "E562": 406,
    "E567": 413,
    "E601": 415,
    "E602": 406,
    "E603": 401,
    "E604": 403,
    "E605": 403,
    "E606": 413,
    "E607": 413,
    "E608": 429,
    "E609": 503,
    "E615": 404,
}
# Where the hint of the library is about its parameters.
_HINTS = {"E569": "send the triples: INSERT DATA, or PUT and POST of a document to /graph"}


class ClientGone(Exception):
    """The client has closed the connection before the answer."""


def status_of(error: CorollaryError) -> int:
    """The HTTP status of an error.

    >>> status_of(InvalidInput("E560", "no such word")), status_of(InvalidInput("E505", ""))
    (400, 404)
    """
    return _STATUS.get(error.code, 400 if isinstance(error, InvalidInput) else 500)


def error_response(error: CorollaryError, status: int | None = None) -> Response:
    """The response for an error: JSON with its code, message, place and hint."""
    status = status or status_of(error)
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="corollary"'
    if status in (429, 503):
        headers["Retry-After"] = "1"
    value: dict[str, Any] = error.as_json()
    for one in (value["error"], *value.get("errors", ())):
        one["hint"] = _HINTS.get(one["code"], one["hint"])
    return json_response(value, status, headers)


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A response in JSON."""
    body = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")
    return Response(body, status, dict(headers or {}), "application/json")


class Exchange:
    """A request to an operation."""

    def __init__(
        self, service: Service, operation: Operation, scope: Scope, receive: Receive
    ) -> None:
        self.service = service
        self.operation = operation
        self.identity = Identity("anonymous", "read")
        self._scope = scope
        self._receive = receive
        self._body: bytes | None = None

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The headers by lower-case name."""
        return {key.decode("latin-1"): v.decode("latin-1") for key, v in self._scope["headers"]}

    @property
    def accept(self) -> str:
        """The formats that the client accepts."""
        return self.headers.get("accept", "")

    @cached_property
    def media_type(self) -> str:
        """The media type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @cached_property
    def fields(self) -> list[tuple[str, str]]:
        """The fields of the query string."""
        return _parse_fields(self._scope["query_string"])

    async def form(self) -> list[tuple[str, str]]:
        """The fields of a form in the body."""
        return _parse_fields(await self.body())

    def fields_of(self, *names: str) -> list[str]:
        """The values of the fields of the query string that have one of these names."""
        return [text for key, text in self.fields if key in names]

    def value(self, name: str, fields: list[tuple[str, str]] | None = None) -> Any:
        """A parameter of the operation, parsed and checked."""
        parameter = next(p for p in self.operation.parameters if p.name == name)
        return self.parsed(parameter, fields)

    def parsed(self, parameter: Parameter, fields: list[tuple[str, str]] | None = None) -> Any:
        """A parameter that the operation may not declare."""
        listed = self.fields if fields is None else fields
        return parameter.parse([text for key, text in listed if key == parameter.name])

    def values(self) -> dict[str, Any]:
        """All parameters of the operation."""
        return {p.name: self.parsed(p) for p in self.operation.parameters}

    async def body(self) -> bytes:
        """The whole body; too large or too slow ones are refused."""
        if self._body is None:
            limit = self.service.settings.limits.request_bytes
            try:
                async with asyncio.timeout(_BODY_SECONDS):
                    self._body = await self._read(limit)
            except TimeoutError:
                raise InvalidInput("E600", "the body of the request did not arrive") from None
        return self._body

    async def _read(self, limit: int) -> bytes:
        length = self.headers.get("content-length", "0")
        parts: list[bytes] = []
        size = int(length) if length.isascii() and length.isdigit() else 0
        while size <= limit:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message.get("body", b""))
            size = sum(map(len, parts))
            if not message.get("more_body", False) and size <= limit:
                return b"".join(parts)
        raise InvalidInput(
            "E606", f"the body of the request has more than {limit:,} bytes", "send it in parts"
        )

    async def text(self) -> str:
        """The body as text in UTF-8."""
        return decoded(await self.body())

    async def json(self) -> dict[str, Any]:
        """The body as a JSON object."""
        if self.media_type != "application/json":
            raise unsupported_media(self.media_type, ("application/json",))
        try:
            value = json.loads(await self.text())
        except (ValueError, RecursionError):
            raise InvalidInput("E600", "the body of the request is not JSON") from None
        if not isinstance(value, dict):
            raise InvalidInput("E600", "the body of the request is not a JSON object")
        return value

    def require(self, role: str) -> None:
        """Refuse the request unless its sender has a role."""
        require(self.identity, role, self.service.settings)

    async def run(self, job: str, **arguments: Any) -> Any:
        """Run a job; if the client goes away, the job is stopped."""
        return await self.while_connected(self.service.readers.run(job, **arguments))

    async def commit(self, job: str, status: int = 200, **arguments: Any) -> Response:
        """Run a job that commits. It goes on if the client goes away: it may be done already."""
        service = self.service
        by = "" if service.settings.tokens is None else f"by {self.identity.name}"
        message = self.parsed(MESSAGE) or by
        done = await self.while_connected(
            service.writer.run(job, keep=True, message=message, **arguments)
        )
        service.seen(done["newest"])
        headers = {"Corollary-Version": str(done.pop("newest"))}
        if status == 204:
            return Response(None, 201 if done.get("created") else 204, headers)
        return json_response(done, 200, headers)

    async def while_connected(self, work: Coroutine[Any, Any, R]) -> R:
        """Do some work until the client goes away."""
        await self.body()  # what follows it is the end of the connection
        task = asyncio.create_task(work)
        gone = asyncio.create_task(self._disconnected())
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise ClientGone
        finally:
            for other in (task, gone):
                if not other.done():
                    other.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await other

    async def _disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def decoded(data: bytes) -> str:
    """Decode UTF-8.

    >>> decoded(b"ASK {}")
    'ASK {}'
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("E600", "the request is not UTF-8 text") from None


def unsupported_media(found: str, expected: tuple[str, ...]) -> InvalidInput:
    """The error for a body of an unsupported media type."""
    shown = found if found else "no media type"
    return InvalidInput(
        "E601", f"unsupported content: {shown[:100]}", f"send one of {', '.join(expected)}"
    )


def _parse_fields(data: bytes) -> list[tuple[str, str]]:
    text = decoded(data)
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except UnicodeDecodeError:
        raise InvalidInput("E600", "a parameter of the request is not UTF-8 text") from None
    except ValueError:
        raise InvalidInput("E600", f"the request has more than {_MOST_FIELDS} parameters") from None
