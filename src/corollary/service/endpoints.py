"""The operations beside SPARQL: proofs, contradictions, rules, versions, feeds, and the service."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response, StreamingResponse

from corollary.errors import InvalidInput
from corollary.service import graph_store, sparql
from corollary.service.exchange import FORM, Exchange, json_response, unsupported_media
from corollary.service.live import Answers, Changes
from corollary.service.negotiation import GRAPH_TYPES
from corollary.service.operations import MESSAGE, VERSION, Operation, Parameter

_MOST_TRIPLES = 100_000
_JSON_TEXT = {"type": "string"}
CHANGES = ("insert", "delete", "add_rules", "remove_rules", "update")
_CHANGES_SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in CHANGES},
    "additionalProperties": False,
}
_GRAPH = (
    Parameter("default", "the default graph", choices=("",)),
    Parameter("graph", "the IRI of a named graph", example="urn:example:graph"),
)
_DATASET = (
    Parameter("default-graph-uri", "a graph of the default graph", "strings"),
    Parameter("named-graph-uri", "a named graph", "strings"),
)
_USING = (
    Parameter("using-graph-uri", "a graph of the default graph of an update", "strings"),
    Parameter("using-named-graph-uri", "a named graph of an update", "strings"),
)
_FACT = Parameter(
    "fact",
    "a fact in the rule language, such as [:ann, a, :Person] or path(1, 2)",
    required=True,
    example="[<urn:ann>, a, <urn:Person>]",
)
_PATTERN = Parameter("pattern", "an atom whose variables match anything, such as [?x, a, ?c]")
_MATCHES = Parameter("pattern", _PATTERN.meaning, required=True, example="[?x, a, ?c]")
_LIMIT = Parameter("limit", "how many to return at most", "integer", default=1000, most=100_000)
_LAST = Parameter("since", "the last version that the client knows", kind="integer")


async def _run(exchange: Exchange, job: str, **arguments: Any) -> Response:
    """Run a job and return its JSON value, with its version as a header."""
    value = await exchange.run(job, **arguments)
    version = value.get("version")
    return json_response(value, 200, {} if version is None else {"Corollary-Version": str(version)})


async def explain(exchange: Exchange) -> Response:
    """Prove a fact: as JSON, as a text tree, or as a Graphviz graph."""
    values = exchange.values()
    shown = values.pop("format")
    found = await exchange.run("explain", **values)
    if shown in ("tree", "dot"):
        text = found["text" if shown == "tree" else "dot"] + "\n"
        media = "text/plain" if shown == "tree" else "text/vnd.graphviz"
        return Response(text, 200, {"Corollary-Version": str(found["version"])}, media)
    del found["text"], found["dot"]
    return json_response(found, 200, {"Corollary-Version": str(found["version"])})


async def check(exchange: Exchange) -> Response:
    """Find contradictions, each with proofs."""
    return await _run(exchange, "check", **exchange.values())


async def log(exchange: Exchange) -> Response:
    """List commits, the newest first."""
    return await _run(exchange, "log", **exchange.values())


async def diff(exchange: Exchange) -> Response:
    """Compare two versions."""
    values = exchange.values()
    arguments = {"first": values["from"], "second": values["to"], "limit": values["limit"]}
    return await _run(exchange, "difference", **arguments)


async def rules(exchange: Exchange) -> Response:
    """List the rules and constraints."""
    return await _run(exchange, "rules", **exchange.values())


async def schema(exchange: Exchange) -> Response:
    """Return the hierarchies of classes and properties."""
    return await _run(exchange, "schema", **exchange.values())


async def facts(exchange: Exchange) -> Response:
    """List the facts that match a pattern."""
    return await _run(exchange, "facts", **exchange.values())


async def plan(exchange: Exchange) -> Response:
    """Show how a query is answered."""
    values = exchange.values()
    return await _run(exchange, "plan", text=values["query"], version=values["version"])


async def info(exchange: Exchange) -> Response:
    """Summarize the store, and what the client may do."""
    found = await exchange.run("info", **exchange.values())
    return json_response(found | {"role": exchange.identity.role})


async def status(exchange: Exchange) -> Response:
    """Tell for each triple whether it is explicit, derived or absent."""
    body = await exchange.json()
    triples = body.get("triples")
    if (
        not isinstance(triples, list)
        or len(triples) > _MOST_TRIPLES
        or not all(isinstance(triple, list) for triple in triples)
        or not all(isinstance(term, str) for triple in triples for term in triple)
    ):
        raise InvalidInput("E600", "expected triples: a list of lists of three terms")
    return await _run(exchange, "status", triples=triples, version=exchange.value("version"))


# -- changes ---------------------------------------------------------------------------------------


async def preview(exchange: Exchange) -> Response:
    """Show what changes would follow; nothing is committed."""
    return await _run(exchange, "preview", changes=_changes(await exchange.json()))


async def transact(exchange: Exchange) -> Response:
    """Commit changes of facts and rules as one version."""
    changes = _changes(await exchange.json())
    if changes.keys() & {"add_rules", "remove_rules"}:
        exchange.require("admin")
    return await exchange.commit("transact", changes=changes)


def _changes(body: dict[str, Any]) -> dict[str, str]:
    for name, text in body.items():
        if name not in CHANGES:
            raise InvalidInput("E600", "unknown kind of change", f"there are {', '.join(CHANGES)}")
        if not isinstance(text, str):
            raise InvalidInput("E600", f"the value of {name} is not a text")
    return body


async def revert(exchange: Exchange) -> Response:
    """Undo a version, or bring one back."""
    version, to = exchange.value("version"), exchange.value("to")
    return await exchange.commit("revert", version=version, to=to)


async def add_rules(exchange: Exchange) -> Response:
    """Add rules."""
    if exchange.media_type != "text/plain":
        raise unsupported_media(exchange.media_type, ("text/plain",))
    return await exchange.commit("transact", changes={"add_rules": await exchange.text()})


async def remove_rules(exchange: Exchange) -> Response:
    """Remove rules."""
    return await exchange.commit("transact", changes={"remove_rules": exchange.value("rule")})


# -- feeds -----------------------------------------------------------------------------------------


async def changes(exchange: Exchange) -> Response:
    """Follow commits, each with what came and went."""
    pattern = exchange.value("pattern") or ""
    feed = await exchange.service.hub.join(Changes, pattern, _last(exchange))
    return StreamingResponse(feed, media_type="text/event-stream")


async def subscribe(exchange: Exchange) -> Response:
    """Follow the answers to a query as they come and go."""
    query = exchange.value("query")
    feed = await exchange.service.hub.join(Answers, query, _last(exchange))
    return StreamingResponse(feed, media_type="text/event-stream")


def _last(exchange: Exchange) -> int | None:
    """The last version that a subscriber knows: a client that reconnects sends it as a header."""
    header = exchange.headers.get("last-event-id")
    found = exchange.value("since") if not header else _LAST.parse([header])
    assert found is None or isinstance(found, int), "a number"
    return found


# -- the service -----------------------------------------------------------------------------------


async def health(exchange: Exchange) -> Response:
    """Tell whether the service is ready."""
    state = exchange.service.health()
    return json_response(state, 200 if state["status"] == "ready" else 503)


async def metrics(exchange: Exchange) -> Response:
    """Return the metrics for Prometheus."""
    text = exchange.service.metric_lines()
    return Response(text, 200, media_type="text/plain; version=0.0.4")


async def openapi(exchange: Exchange) -> Response:
    """Describe all operations."""
    from corollary.service.openapi import document

    return json_response(document(OPERATIONS))


_SSE = ("text/event-stream",)

OPERATIONS = (
    Operation(
        "GET",
        "/sparql",
        "answer a SPARQL query, or describe the service",
        sparql.get,
        parameters=(sparql.OPTIONAL_QUERY, *_DATASET, VERSION),
        responses=sparql.ANSWER_TYPES,
        errors=(400, 404, 406, 413, 503),
    ),
    Operation(
        "POST",
        "/sparql",
        "answer a SPARQL query, or execute a SPARQL update",
        sparql.post,
        parameters=(*_DATASET, *_USING, VERSION, MESSAGE),
        bodies={
            FORM: sparql.QUERY_FORM,
            sparql.QUERY_TYPE: _JSON_TEXT,
            sparql.UPDATE_TYPE: _JSON_TEXT,
        },
        responses=sparql.ANSWER_TYPES,
        errors=(400, 404, 406, 409, 413, 415, 503),
    ),
    Operation(
        "GET",
        "/explain",
        "prove a fact",
        explain,
        parameters=(
            _FACT,
            Parameter("format", "of the proof", choices=("json", "tree", "dot")),
            VERSION,
        ),
        responses=("application/json", "text/plain", "text/vnd.graphviz"),
        errors=(400, 404, 503),
    ),
    Operation(
        "GET",
        "/check",
        "find contradictions, each with proofs",
        check,
        parameters=(
            Parameter("limit", "proofs of each constraint", "integer", default=3, most=100),
            VERSION,
        ),
        errors=(400, 404, 503),
    ),
    Operation(
        "GET",
        "/log",
        "list the commits, the newest first",
        log,
        parameters=(
            Parameter("limit", "how many", "integer", default=100, most=1000),
            Parameter("before", "only versions before this one", kind="integer"),
        ),
    ),
    Operation(
        "GET",
        "/diff",
        "compare two versions",
        diff,
        parameters=(
            Parameter("from", "a version", "integer", required=True),
            Parameter("to", "another version; by default the newest", "integer"),
            _LIMIT,
        ),
        errors=(400, 404, 503),
    ),
    Operation(
        "GET",
        "/rules",
        "list the rules and constraints",
        rules,
        parameters=(Parameter("mentions", "an IRI that the rules mention"), VERSION),
        errors=(400, 404, 503),
    ),
    Operation(
        "POST",
        "/rules",
        "add rules",
        add_rules,
        role="admin",
        parameters=(MESSAGE,),
        bodies={"text/plain": _JSON_TEXT},
        errors=(400, 409, 413, 415, 503),
    ),
    Operation(
        "DELETE",
        "/rules",
        "remove rules",
        remove_rules,
        role="admin",
        parameters=(
            Parameter("rule", "the text of one or more rules", required=True),
            MESSAGE,
        ),
        errors=(400, 409, 503),
    ),
    Operation(
        "POST",
        "/preview",
        "show what changes of facts and rules would entail; commits nothing",
        preview,
        bodies={"application/json": _CHANGES_SCHEMA},
        errors=(400, 413, 415, 503),
    ),
    Operation(
        "POST",
        "/transaction",
        "commit changes of facts and rules as one version",
        transact,
        role="write",
        parameters=(MESSAGE,),
        bodies={"application/json": _CHANGES_SCHEMA},
        errors=(400, 409, 413, 415, 503),
    ),
    Operation(
        "POST",
        "/revert",
        "undo a version, or bring one back",
        revert,
        role="admin",
        parameters=(
            Parameter("version", "the version to undo", kind="integer"),
            Parameter("to", "the version to bring back", kind="integer"),
            MESSAGE,
        ),
        errors=(400, 404, 409, 503),
    ),
    Operation(
        "GET",
        "/graph",
        "the default graph with all derived triples, or a named graph",
        graph_store.get,
        parameters=(*_GRAPH, VERSION),
        responses=tuple(GRAPH_TYPES),
        errors=(400, 404, 406, 413, 503),
    ),
    Operation(
        "PUT",
        "/graph",
        "replace the explicit triples of a graph",
        graph_store.put,
        role="write",
        parameters=(*_GRAPH, MESSAGE),
        bodies=graph_store.BODIES,
        responses=(),
        status=204,
        creates=True,
        errors=(400, 409, 413, 415, 503),
    ),
    Operation(
        "POST",
        "/graph",
        "add triples to a graph; without a name, to a new one",
        graph_store.post,
        role="write",
        parameters=(*_GRAPH, MESSAGE),
        bodies=graph_store.BODIES,
        responses=(),
        status=204,
        creates=True,
        errors=(400, 409, 413, 415, 503),
    ),
    Operation(
        "DELETE",
        "/graph",
        "delete the explicit triples of a graph",
        graph_store.delete,
        role="write",
        parameters=(*_GRAPH, MESSAGE),
        responses=(),
        status=204,
        errors=(400, 404, 409, 503),
    ),
    Operation(
        "GET",
        "/schema",
        "show the hierarchies of classes and properties, with counts",
        schema,
        parameters=(VERSION,),
        errors=(400, 404, 503),
    ),
    Operation(
        "GET",
        "/facts",
        "list the facts that match a pattern",
        facts,
        parameters=(_MATCHES, _LIMIT, VERSION),
        errors=(400, 404, 503),
    ),
    Operation(
        "POST",
        "/status",
        "tell which triples are explicit, derived or absent",
        status,
        parameters=(VERSION,),
        bodies={
            "application/json": {
                "type": "object",
                "required": ["triples"],
                "properties": {
                    "triples": {
                        "type": "array",
                        "items": {
                            "type": "array",
                            "items": {"type": "string"},
                            "minItems": 3,
                            "maxItems": 3,
                        },
                    }
                },
            }
        },
        errors=(400, 404, 413, 415, 503),
    ),
    Operation(
        "GET",
        "/plan",
        "show how a query is answered",
        plan,
        parameters=(sparql.QUERY, VERSION),
        errors=(400, 404, 503),
    ),
    Operation(
        "GET",
        "/info",
        "summarize the store, and what the client may do",
        info,
        parameters=(VERSION,),
        errors=(400, 404, 503),
    ),
    Operation(
        "GET",
        "/changes",
        "follow commits, each with what came and went",
        changes,
        parameters=(_PATTERN, _LAST),
        responses=_SSE,
        errors=(400, 404, 503),
    ),
    Operation(
        "GET",
        "/subscribe",
        "follow the answers to a query as they come and go",
        subscribe,
        parameters=(sparql.QUERY, _LAST),
        responses=_SSE,
        errors=(400, 404, 413, 503),
    ),
    Operation("GET", "/health", "tell whether the service is ready", health, role=None),
    Operation(
        "GET", "/metrics", "metrics for Prometheus", metrics, responses=("text/plain",), errors=()
    ),
    Operation("GET", "/openapi.json", "this document", openapi, role=None, errors=()),
)
