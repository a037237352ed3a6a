"""The SPARQL 1.1 Protocol: queries and updates, and the service description."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from corollary.errors import InvalidInput
from corollary.service.exchange import FORM, Exchange, unsupported_media
from corollary.service.negotiation import (
    GRAPH_TYPES,
    SELECT_TYPES,
    accepted,
    content_type,
    converted,
)
from corollary.service.operations import VERSION, Parameter

if TYPE_CHECKING:
    from corollary.service.jobs import Answer

QUERY_TYPE = "application/sparql-query"
UPDATE_TYPE = "application/sparql-update"

QUERY = Parameter("query", "a SPARQL 1.1 query", required=True, example="ASK { ?s ?p ?o }")
OPTIONAL_QUERY = Parameter(
    "query", "a SPARQL 1.1 query; without it, the service is described", example="ASK { ?s ?p ?o }"
)
UPDATE = Parameter("update", "a SPARQL 1.1 Update request", required=True)
_SD = "http://www.w3.org/ns/sparql-service-description#"
_FORMATS = "http://www.w3.org/ns/formats/"
_RESULT_FORMATS = (
    "SPARQL_Results_JSON",
    "SPARQL_Results_XML",
    "SPARQL_Results_CSV",
    "SPARQL_Results_TSV",
    "Turtle",
    "N-Triples",
    "RDF_XML",
    "JSON-LD",
)

Fields = list[tuple[str, str]]
Graphs = tuple[tuple[str, ...], tuple[str, ...]]  # the default graph is their union; named ones

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\\x7f\ud800-\udfff]*")


def answer_response(answer: Answer) -> Response:
    """The response with an answer of a worker."""
    headers = {"Corollary-Version": str(answer.version), "Vary": "Accept"}
    return Response(answer.body, 200, headers | {"Content-Type": answer.content_type})


async def get(exchange: Exchange) -> Response:
    """`GET /sparql`: a query, or the service description."""
    names = {name for name, _ in exchange.fields}
    if "update" in names:
        raise InvalidInput("E600", "updates are sent by POST", "use POST /sparql")
    if not names & {"query", "default-graph-uri", "named-graph-uri", "version"}:
        return describe(exchange)
    return await _answer(exchange, exchange.fields)


async def post(exchange: Exchange) -> Response:
    """`POST /sparql`: a query or an update, as a form or as the body."""
    if exchange.media_type == QUERY_TYPE:
        return await _answer(exchange, exchange.fields, await exchange.text())
    if exchange.media_type == UPDATE_TYPE:
        return await _update(exchange, exchange.fields, await exchange.text())
    if exchange.media_type != FORM:
        raise unsupported_media(exchange.media_type, (QUERY_TYPE, UPDATE_TYPE, FORM))
    fields = [*exchange.fields, *await exchange.form()]
    names = {name for name, _ in fields}
    if {"query", "update"} <= names:
        raise InvalidInput("E600", "a request is either a query or an update")
    if "update" in names:
        return await _update(exchange, fields, exchange.parsed(UPDATE, fields))
    return await _answer(exchange, fields)


async def _answer(exchange: Exchange, fields: Fields, text: str | None = None) -> Response:
    if text is None:
        text = exchange.parsed(QUERY, fields)
    found = await exchange.run(
        "query",
        text=text,
        accept=exchange.accept,
        version=exchange.parsed(VERSION, fields),
        graphs=_dataset(fields, "default-graph-uri", "named-graph-uri"),
        base=endpoint(exchange),
    )
    return answer_response(found)


async def _update(exchange: Exchange, fields: Fields, text: str) -> Response:
    exchange.require("write")
    graphs = _dataset(fields, "using-graph-uri", "using-named-graph-uri")
    return await exchange.commit("update", text=text, graphs=graphs, base=endpoint(exchange))


def _dataset(fields: Fields, default: str, named: str) -> Graphs | None:
    """The graphs that a request names; they replace those of FROM or USING."""
    graphs = tuple(
        tuple(checked_iri(text) for key, text in fields if key == name) for name in (default, named)
    )
    return (graphs[0], graphs[1]) if any(graphs) else None


def checked_iri(text: str) -> str:
    """An absolute IRI.

    >>> checked_iri("http://example.org/g")
    'http://example.org/g'
    """
    if _IRI.fullmatch(text) is None:
        raise InvalidInput("E600", "the name of a graph must be an absolute IRI")
    return text


def endpoint(exchange: Exchange) -> str:
    """The address of the endpoint, which relative IRIs are relative to."""
    found = f"http://{exchange.headers.get('host', '')}/sparql"
    if any(character in found for character in '<>"{}|^`\\ '):
        raise InvalidInput("E600", "malformed name of a host")
    return found


def describe(exchange: Exchange) -> Response:
    """The service description, in RDF."""
    media = accepted(exchange.accept, [*GRAPH_TYPES])
    if media is None or GRAPH_TYPES[media] not in ("ttl", "nt", "rdf", "jsonld"):
        media = "text/turtle"
    data = converted(description(endpoint(exchange)).encode(), GRAPH_TYPES[media], {"sd": _SD})
    return Response(data, 200, {"Content-Type": content_type(media), "Vary": "Accept"})


def description(endpoint: str) -> str:
    """The service description of an endpoint, in N-Triples.

    >>> "SPARQL11Update" in description("http://localhost:7878/sparql")
    True
    """
    type_ = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    rows: list[tuple[str, str, str]] = [
        ("_:service", type_, f"<{_SD}Service>"),
        ("_:service", f"{_SD}endpoint", f"<{endpoint}>"),
        ("_:service", f"{_SD}supportedLanguage", f"<{_SD}SPARQL11Query>"),
        ("_:service", f"{_SD}supportedLanguage", f"<{_SD}SPARQL11Update>"),
        ("_:service", f"{_SD}feature", f"<{_SD}UnionDefaultGraph>"),
        ("_:service", f"{_SD}defaultDataset", "_:dataset"),
        ("_:dataset", type_, f"<{_SD}Dataset>"),
        ("_:dataset", f"{_SD}defaultGraph", "_:graph"),
        ("_:graph", type_, f"<{_SD}Graph>"),
    ]
    rows += [("_:service", f"{_SD}resultFormat", f"<{_FORMATS}{name}>") for name in _RESULT_FORMATS]
    return "".join(f"{s} <{p}> {o} .\n" for s, p, o in rows)


QUERY_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "update": {"type": "string"}},
}
ANSWER_TYPES = tuple(dict.fromkeys((*SELECT_TYPES, *GRAPH_TYPES)))
