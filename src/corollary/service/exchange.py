"""An exchange: one request, its parameters and body, and the work that it starts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping
from email.message import Message
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
_MOST_SHOWN = 2000  # characters of a message
_CHARSETS = {"", "utf-8", "utf8", "us-ascii"}
# Headers that decide something: intermediaries may read another one of two.
_SINGULAR = (
    b"authorization", b"origin", b"content-type", b"content-encoding", b"last-event-id",
)  # fmt: skip
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


def error_response(
    error: CorollaryError, status: int | None = None, *, store: str = ""
) -> Response:
    """The response for an error."""
    status = status or status_of(error)
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="corollary"'
    if status in (429, 503):
        headers["Retry-After"] = "1"
    return json_response(error_value(error, store), status, headers)


def error_value(error: CorollaryError, store: str) -> dict[str, Any]:
    """An error for clients: its code, message, place and hint.

    The `store` is named without its folder, and long texts of the request are cut.
    """
    value: dict[str, Any] = error.as_json()
    for one in (value["error"], *value.get("errors", ())):
        one["hint"] = _HINTS.get(one["code"], one["hint"])
        one.update({name: _shown(one[name], store) for name in ("message", "file", "hint")})
    return value


def _shown(text: str | None, store: str) -> str | None:
    """A text of an error as clients may see it.

    >>> _shown("no version 9 in /srv/data/univ.store", "/srv/data/univ.store")
    'no version 9 in univ.store'
    """
    if text is None:
        return None
    if store:
        name = store.replace(os.sep, "/").rstrip("/").rpartition("/")[2]
        for path in (os.path.abspath(store), store):
            text = text.replace(path, name)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A response in JSON."""
    body = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")
    return Response(body, status, dict(headers or {}), "application/json")


def refuse_ambiguous(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a request that others may read differently: request smuggling needs such.

    >>> refuse_ambiguous([(b"content-length", b"5"), (b"transfer-encoding", b"chunked")])
    Traceback (most recent call last):
    ...
    corollary.errors.InvalidInput: E600: the request states its length twice
    """
    counts = Counter(name for name, _ in headers)
    if counts[b"content-length"] and counts[b"transfer-encoding"]:
        raise InvalidInput("E600", "the request states its length twice")
    for name in _SINGULAR:
        if counts[name] > 1:
            raise InvalidInput("E600", f"the request has the header {name.decode()} twice")


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
        return _parse_fields((await self.text()).encode())

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
            encoding = self.headers.get("content-encoding", "").strip().lower()
            if encoding not in ("", "identity"):
                problem = f"unsupported encoding of the body: {encoding[:100]}"
                raise InvalidInput("E601", problem, "send it as it is")
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
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        charset = str(message.get_param("charset", "")).strip().lower()
        if charset not in _CHARSETS:
            raise InvalidInput(
                "E601", f"unsupported character encoding: {charset[:100]}", "send UTF-8"
            )
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
