"""The OpenAPI document, generated from the declared operations."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from corollary.service.exchange import FORM
from corollary.service.operations import COMMON_ERRORS, Operation

_MEANINGS = {
    400: "The request is wrong.",
    401: "The request has no known token.",
    403: "The role does not allow the request, or it comes from a foreign page.",
    404: "There is no such fact, relation or version.",
    406: "No format that the client accepts.",
    409: "The store was changed at the same time.",
    413: "The request or its answer is too large.",
    415: "The body is in an unsupported format.",
    429: "Too many requests; try again later.",
    500: "The request failed.",
    503: "A limit of time or memory, or the service is not ready.",
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint"],
            "properties": {
                "code": {"type": "string", "pattern": "^E[0-9]{3}$"},
                "message": {"type": "string"},
                "file": {"type": ["string", "null"]},
                "line": {"type": ["integer", "null"]},
                "column": {"type": ["integer", "null"]},
                "hint": {"type": ["string", "null"]},
            },
        }
    },
}


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """The document.

    >>> document([])["openapi"]
    '3.1.0'
    """
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Corollary",
            "version": version("corollary"),
            "summary": "A store of facts and rules with their consequences.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    name = operation.path.strip("/").replace(".", "-").replace("/", "-")
    found: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}-{name}",
        "summary": operation.summary,
        "parameters": [
            {
                "name": parameter.name,
                "in": "query",
                "required": parameter.required,
                "description": parameter.meaning,
                "schema": parameter.schema(),
            }
            | ({} if parameter.example is None else {"example": parameter.example})
            for parameter in operation.parameters
        ],
        "responses": _responses(operation),
    }
    if operation.role is not None:
        found["security"] = [{"token": []}, {}]
        found["description"] = f"Needs the role {operation.role}."
    if operation.bodies:
        found["requestBody"] = {
            "required": operation.body_required,
            "content": {
                media: {"schema": schema, "encoding": {}} if media == FORM else {"schema": schema}
                for media, schema in operation.bodies.items()
            },
        }
    return found


def _responses(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {media: {} for media in operation.responses}
    found: dict[str, Any] = {
        str(operation.status): {"description": "The answer.", "content": content}
        if content
        else {"description": "Done."}
    }
    if operation.creates:
        found["201"] = {"description": "A graph was created."}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    common = COMMON_ERRORS if operation.role is not None else (400, 403, 500, 503)
    for status in sorted({*operation.errors, *common}):
        described: dict[str, Any] = {"description": _MEANINGS[status], "content": error}
        if operation.path == "/health" and status == 503:
            described["content"] = {"application/json": {}}
        found[str(status)] = described
    return found
