"""The SPARQL 1.1 Graph Store Protocol: graphs as documents, named by `?graph=` or `?default`."""

from __future__ import annotations

import uuid
from typing import Any

from starlette.responses import Response

from corollary.errors import InvalidInput
from corollary.service.exchange import Exchange, unsupported_media
from corollary.service.sparql import answer_response, checked_iri, endpoint

# The suffix of a file in each syntax, which tells the reader what it is.
SUFFIXES = {
    "text/turtle": ".ttl",
    "application/x-turtle": ".ttl",
    "application/n-triples": ".nt",
    "application/rdf+xml": ".rdf",
    "application/ld+json": ".jsonld",
    "application/trig": ".trig",
    "application/n-quads": ".nq",
}
FORM_DATA = "multipart/form-data"  # several documents
BODIES: dict[str, dict[str, Any]] = {media: {"type": "string"} for media in SUFFIXES}


def _target(exchange: Exchange) -> str | None:
    """The graph that a request is about: an IRI, or None for the default graph."""
    graph = exchange.value("graph")
    is_default = exchange.value("default") is not None
    if graph is not None and is_default:
        raise InvalidInput("E600", "the request names two graphs", "use ?default or ?graph=IRI")
    if graph is None and not is_default:
        raise InvalidInput("E600", "the request names no graph", "use ?default or ?graph=IRI")
    return None if graph is None else checked_iri(graph)


async def get(exchange: Exchange) -> Response:
    """The triples of a named graph, or of the default graph with all derived triples."""
    graph, version = _target(exchange), exchange.value("version")
    found = await exchange.run("graph", accept=exchange.accept, version=version, graph=graph)
    return answer_response(found)


async def put(exchange: Exchange) -> Response:
    """Replace the explicit triples of a graph by those of a document."""
    return await _put(exchange, _target(exchange), replaces=True)


async def post(exchange: Exchange) -> Response:
    """Add the triples of a document to a graph; without a name, to a new one."""
    if exchange.fields_of("graph", "default"):
        return await _put(exchange, _target(exchange), replaces=False)
    name = f"urn:uuid:{uuid.uuid4()}"
    response = await _put(exchange, name, replaces=False)
    response.headers["Location"] = name
    return response


async def delete(exchange: Exchange) -> Response:
    """Delete all statements of a graph."""
    arguments = {"content_type": "", "data": b"", "graph": _target(exchange)}
    return await exchange.commit("put_graph", 204, replaces=True, exists=True, **arguments)


async def _put(exchange: Exchange, graph: str | None, *, replaces: bool) -> Response:
    if exchange.media_type not in (*SUFFIXES, FORM_DATA):
        raise unsupported_media(exchange.media_type, (*SUFFIXES, FORM_DATA))
    return await exchange.commit(
        "put_graph",
        204,
        content_type=exchange.headers["content-type"],
        data=await exchange.body(),
        graph=graph,
        base=endpoint(exchange),
        replaces=replaces,
    )
