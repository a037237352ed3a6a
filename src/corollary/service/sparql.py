"""The SPARQL 1.1 Protocol: queries and updates, and the service description."""

from __future__ import annotations

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
    _refuse_datasets(fields, "default-graph-uri", "named-graph-uri")
    version = exchange.parsed(VERSION, fields)
    found = await exchange.run("query", text=text, accept=exchange.accept, version=version)
    return answer_response(found)


async def _update(exchange: Exchange, fields: Fields, text: str) -> Response:
    exchange.require("write")
    _refuse_datasets(fields, "using-graph-uri", "using-named-graph-uri")
    return await exchange.commit("update", text=text)


def _refuse_datasets(fields: Fields, *names: str) -> None:
    if any(name in names for name, _ in fields):
        raise InvalidInput(
            "E561",
            "named graphs are not supported: all triples are in one graph",
            f"leave out {' and '.join(names)}",
        )


def describe(exchange: Exchange) -> Response:
    """The service description, in RDF."""
    media = accepted(exchange.accept, [*GRAPH_TYPES])
    if media is None or GRAPH_TYPES[media] not in ("ttl", "nt", "rdf", "jsonld"):
        media = "text/turtle"
    endpoint = f"http://{exchange.headers.get('host', '')}/sparql"
    if any(character in endpoint for character in '<>"{}|^`\\ '):
        raise InvalidInput("E600", "malformed name of a host")
    data = converted(description(endpoint).encode(), GRAPH_TYPES[media], {"sd": _SD})
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
