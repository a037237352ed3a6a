"""The ASGI application: finds the operation of a request, lets it in, runs it, and logs it."""

from __future__ import annotations

import time
import traceback
import uuid
from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from corollary.errors import CorollaryError, InvalidInput, OperationFailed
from corollary.service import access
from corollary.service.endpoints import OPERATIONS
from corollary.service.exchange import ClientGone, Exchange, error_response, refuse_ambiguous
from corollary.service.operations import Operation
from corollary.service.page import page_files
from corollary.service.service import Service

_CLIENT_GONE = 499  # as proxies log it
_ALWAYS = ("/health", "/openapi.json")  # also answered while the store is opened


class Application:
    """The application of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._operations: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            self._operations.setdefault(operation.path, {})[operation.method] = operation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":  # WebSockets
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._request(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self._service.start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self._service.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        service, started = self._service, time.perf_counter()
        number = uuid.uuid4().hex[:16]
        headers = {key.decode("latin-1"): v.decode("latin-1") for key, v in scope["headers"]}
        record: dict[str, object] = {"route": "unknown"}
        extra = access.SECURITY_HEADERS | access.cors_headers(headers, service.settings)
        sent = {"status": _CLIENT_GONE}

        async def begin(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent["status"] = message["status"]
                found = MutableHeaders(scope=message)
                for name, value in extra.items():
                    if name not in found or name == "Cross-Origin-Resource-Policy":
                        found[name] = value
                found["X-Request-Id"] = number
            await send(message)

        try:
            response = await self._respond(scope, receive, headers, record)
            if scope["method"] == "HEAD":
                response = _without_body(response)
            seconds = time.perf_counter() - started
            response = self._admit(response, record)
            size = _size(response)
            service.sending += size
            try:
                await response(scope, receive, begin)
            finally:
                service.sending -= size
        except ClientGone:
            seconds = time.perf_counter() - started
        method = scope["method"] if scope["method"] in _METHODS else "other"
        service.metrics.request(str(record["route"]), method, sent["status"], seconds)
        client = scope.get("client")
        service.log.write(
            "request",
            id=number,
            method=method,
            status=sent["status"],
            seconds=round(seconds, 6),
            client=client[0] if client else None,
            **record,
        )

    def _admit(self, response: Response, record: dict[str, object]) -> Response:
        """Refuse an answer if those that clients still read take all memory."""
        if self._service.sending + _size(response) <= self._service.settings.limits.memory:
            return response
        error = OperationFailed("E608", "clients read answers too slowly", "try again later")
        record["code"] = error.code
        self._service.metrics.error(error.code)
        return self._failed(error)

    def _failed(self, error: CorollaryError, status: int | None = None) -> Response:
        return error_response(error, status, store=self._service.settings.store)

    async def _respond(
        self,
        scope: Scope,
        receive: Receive,
        headers: Mapping[str, str],
        record: dict[str, object],
    ) -> Response:
        try:
            return await self._operate(scope, receive, headers, record)
        except CorollaryError as error:
            record["code"] = error.code
            self._service.metrics.error(error.code)
            status = None
            if error.code == "E613":
                status = 404 if record["route"] == "unknown" else 405
            response = self._failed(error, status)
            if {"content-length", "transfer-encoding"} <= headers.keys():
                response.headers["Connection"] = "close"  # what follows may be no request
            if status == 405:
                allowed = self._operations.get(str(record["route"]), {"GET": None})
                response.headers["Allow"] = ", ".join((*allowed, "HEAD", "OPTIONS"))
            return response
        except ClientGone:
            raise
        except Exception as error:
            self._service.log.write("failure", cause=repr(error), trace=traceback.format_exc())
            return self._failed(OperationFailed("E614", "the request failed unexpectedly"))

    async def _operate(
        self,
        scope: Scope,
        receive: Receive,
        headers: Mapping[str, str],
        record: dict[str, object],
    ) -> Response:
        settings, path, method = self._service.settings, scope["path"], scope["method"]
        refuse_ambiguous(scope["headers"])
        access.refuse_foreign(headers, settings)
        method = "GET" if method == "HEAD" else method
        pages = page_files()
        operations = self._operations.get(path)
        if operations is not None:
            record["route"] = path
        elif path in pages:
            record["route"] = "page"
        else:
            raise InvalidInput("E613", "there is nothing at this path", "see /openapi.json")
        if method == "OPTIONS" and headers.get("origin") in settings.cors:
            return Response(None, 204)
        if operations is None:
            if method != "GET":
                raise InvalidInput("E613", "the page can only be read")
            return pages[path].response(headers)
        operation = operations.get(method)
        if operation is None:
            raise InvalidInput("E613", "this path has no such method", "see /openapi.json")
        exchange = Exchange(self._service, operation, scope, receive)
        if operation.role is not None:
            exchange.identity = access.require(
                access.identify(headers, settings), operation.role, settings
            )
            record["user"] = exchange.identity.name
        if path not in _ALWAYS:
            self._service.refuse_unready()
        return await operation.operate(exchange)


def _size(response: Response) -> int:
    return len(getattr(response, "body", b""))  # feeds have none


def _without_body(response: Response) -> Response:
    """The response to HEAD: the headers only."""
    empty = Response(None, response.status_code)
    empty.raw_headers = response.raw_headers
    return empty


_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
