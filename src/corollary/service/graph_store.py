"""The SPARQL 1.1 Graph Store Protocol for the default graph."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from corollary.errors import InvalidInput
from corollary.service.exchange import Exchange, unsupported_media
from corollary.service.sparql import answer_response

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
BODIES: dict[str, dict[str, Any]] = {media: {"type": "string"} for media in SUFFIXES}


def refuse_named_graphs(exchange: Exchange) -> None:
    """Fail unless the request is about the default graph."""
    names = [name for name, _ in exchange.fields]
    if "graph" in names:
        raise InvalidInput(
            "E561", "named graphs are not supported: all triples are in one graph", "use ?default"
        )
    if "default" not in names:
        raise InvalidInput("E600", "the request names no graph", "use ?default")
    exchange.value("default")


async def get(exchange: Exchange) -> Response:
    """All triples of the default graph, explicit and derived."""
    refuse_named_graphs(exchange)
    version = exchange.value("version")
    return answer_response(await exchange.run("graph", accept=exchange.accept, version=version))


async def put(exchange: Exchange) -> Response:
    """Replace the explicit triples by those of a document."""
    return await _put(exchange, replaces=True)


async def post(exchange: Exchange) -> Response:
    """Add the triples of a document."""
    return await _put(exchange, replaces=False)


async def delete(exchange: Exchange) -> Response:
    """Delete all explicit triples."""
    refuse_named_graphs(exchange)
    return await exchange.commit("put_graph", 204, data=b"", suffix=".nt", replaces=True)


async def _put(exchange: Exchange, *, replaces: bool) -> Response:
    refuse_named_graphs(exchange)
    suffix = SUFFIXES.get(exchange.media_type)
    if suffix is None:
        raise unsupported_media(exchange.media_type, tuple(SUFFIXES))
    data = await exchange.body()
    return await exchange.commit("put_graph", 204, data=data, suffix=suffix, replaces=replaces)
