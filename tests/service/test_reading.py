"""Reading from a real server: SPARQL, proofs, contradictions, versions, schema, metrics."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pyoxigraph
import pytest
import rdflib
from rdflib.plugins.stores.sparqlstore import SPARQLStore
from SPARQLWrapper import JSON, SPARQLWrapper

import corollary as co
from corollary.query.write import encoded
from tests.service.servers import EMPLOYEES, PREFIX, Server, build, error_of, serving

EX = "http://example.org/"
NAMES = [EX + "ann", EX + "bob"]
GRAPH = PREFIX + "CONSTRUCT { ?x a :Worker } { ?x a :Employee }"


def ask(server: Server, query: str, accept: str = "", **parameters: str | int) -> httpx.Response:
    fields = {"query": query} | parameters
    return server.client.get("/sparql", params=fields, headers={"Accept": accept})


def test_answers_equal_those_in_process(server: Server, university: Path) -> None:
    kb = co.KnowledgeBase.open(university)
    for query in (
        EMPLOYEES,
        PREFIX + "ASK { :ann a :Person }",
        "SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o",
    ):
        found = ask(server, query)
        assert found.status_code == 200
        assert found.headers["content-type"] == "application/sparql-results+json"
        assert found.headers["corollary-version"] == str(kb.version)
        assert found.content == encoded(kb.query(query), "json")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "application/sparql-results+json"),
        ("application/sparql-results+xml", "application/sparql-results+xml"),
        ("text/csv;q=0.9, text/tab-separated-values", "text/tab-separated-values; charset=utf-8"),
        ("text/html,application/xml;q=0.9,*/*;q=0.1", "application/xml"),
        ("application/vnd.apache.parquet", "application/vnd.apache.parquet"),
    ],
)
def test_negotiates_the_format_of_solutions(server: Server, accept: str, expected: str) -> None:
    found = ask(server, EMPLOYEES, accept)
    assert (found.status_code, found.headers["content-type"]) == (200, expected)


@pytest.mark.parametrize(
    "media",
    [
        "text/turtle",
        "application/n-triples",
        "application/rdf+xml",
        "application/ld+json",
        "application/trig",
        "application/n-quads",
    ],
)
def test_negotiates_the_syntax_of_graphs(server: Server, media: str) -> None:
    found = ask(server, GRAPH, media)
    quads = pyoxigraph.parse(found.content, format=pyoxigraph.RdfFormat.from_media_type(media))
    assert {str(quad.subject) for quad in quads} == {f"<{name}>" for name in NAMES}


def test_three_ways_to_send_a_query(server: Server) -> None:
    accept = {"Accept": "text/csv"}
    bodies = [
        server.client.get("/sparql", params={"query": EMPLOYEES}, headers=accept),
        server.client.post("/sparql", data={"query": EMPLOYEES}, headers=accept),
        server.client.post(
            "/sparql",
            content=EMPLOYEES,
            headers=accept | {"Content-Type": "application/sparql-query"},
        ),
    ]
    for found in bodies:
        assert [row[0] for row in csv.reader(io.StringIO(found.text))] == ["x", *NAMES]


def test_head_has_no_body(server: Server) -> None:
    found = server.client.head("/sparql", params={"query": EMPLOYEES})
    assert (found.status_code, found.content) == (200, b"")


def test_real_clients(server: Server) -> None:
    store = SPARQLStore(f"{server.url}/sparql")
    assert [str(row[rdflib.Variable("x")]) for row in store.query(EMPLOYEES).bindings] == NAMES
    graph = rdflib.Graph(store)
    assert (rdflib.URIRef(NAMES[0]), rdflib.RDF.type, rdflib.URIRef(EX + "Person")) in graph
    wrapper = SPARQLWrapper(f"{server.url}/sparql")
    for method in ("GET", "POST"):
        wrapper.setMethod(method)
        wrapper.setQuery(EMPLOYEES)
        wrapper.setReturnFormat(JSON)
        found: Any = wrapper.queryAndConvert()
        assert [row["x"]["value"] for row in found["results"]["bindings"]] == NAMES
    command = ["curl", "-sf", "--data-urlencode", f"query={EMPLOYEES}", "-H", "Accept: text/csv"]
    done = subprocess.run([*command, f"{server.url}/sparql"], capture_output=True, text=True)
    assert done.stdout.split() == ["x", *NAMES]


def test_describes_itself(server: Server) -> None:
    graph = rdflib.Graph().parse(data=server.client.get("/sparql").content, format="turtle")
    sd = rdflib.Namespace("http://www.w3.org/ns/sparql-service-description#")
    [service] = graph.subjects(rdflib.RDF.type, sd.Service)
    assert graph.value(service, sd.endpoint) == rdflib.URIRef(f"{server.url}/sparql")
    paths = server.client.get("/openapi.json").json()["paths"]
    assert {"/sparql", "/explain", "/changes", "/subscribe"} <= {*paths}


def test_proofs(server: Server, university: Path) -> None:
    fact = "[:ann, a, :Person]"
    found = server.client.get("/explain", params={"fact": fact}).json()
    proof = co.KnowledgeBase.open(university).explain(fact)
    assert found["proof"] == proof.to_json()
    words = found["rules"][proof.to_json()["rule"]]["words"]
    assert words.startswith("If ")
    tree = server.client.get("/explain", params={"fact": fact, "format": "tree"})
    assert tree.text.strip() == str(proof)
    assert error_of(server.client.get("/explain", params={"fact": "[:bob, a, :Lab]"})) == (
        404,
        "E340",
    )


@pytest.mark.long
def test_contradictions(tmp_path: Path) -> None:
    store = build(
        tmp_path,
        "<urn:x> a <urn:A>, <urn:B> . <urn:A> owl:disjointWith <urn:B> .".replace(
            "owl:disjointWith", "<http://www.w3.org/2002/07/owl#disjointWith>"
        ),
    )
    with serving(store, "--workers", "1") as server:
        found = server.client.get("/check").json()
        again = server.client.get("/check").json()
    assert found == again
    assert not found["consistent"]
    [one] = found["inconsistencies"]
    assert one["rule"] == "cax-dw"
    assert found["rules"][one["proofs"][0]["rule"]]["words"].startswith("It is a contradiction")


def test_facts_and_their_status(server: Server) -> None:
    found = server.client.get("/facts", params={"pattern": "[?x, a, :Employee]"}).json()
    assert (found["count"], found["facts"][0]["explicit"]) == (2, False)
    triples = [
        [f"<{EX}ann>", f"<{EX}headOf>", f"<{EX}lab>"],
        [f"<{EX}ann>", f"<{EX}worksFor>", f"<{EX}lab>"],
        [f"<{EX}ann>", f"<{EX}worksFor>", '"lab"@en'],
    ]
    answer = server.client.post("/status", json={"triples": triples}).json()
    assert answer["status"] == ["explicit", "derived", "absent"]


def test_versions_and_schema(server: Server, university: Path) -> None:
    kb = co.KnowledgeBase.open(university)
    log = server.client.get("/log", params={"limit": 1}).json()
    assert [commit["version"] for commit in log["commits"]] == [kb.version]
    diff = server.client.get("/diff", params={"from": 0}).json()
    assert len(diff["changes"]) == kb.count() == sum(len(diff[k]) for k in ("changes",))
    assert server.client.get("/schema").json()["classes"] == kb.schema().to_json()["classes"]
    rules = server.client.get("/rules").json()["rules"]
    assert len(rules) == len(kb.program.rules) + len(kb.program.constraints)
    mention = server.client.get("/rules", params={"mentions": str(rdflib.OWL.sameAs)}).json()
    assert 0 < len(mention["rules"]) < len(rules)
    assert "SELECT" in server.client.get("/plan", params={"query": EMPLOYEES}).json()["plan"]
    empty = ask(server, EMPLOYEES, "text/csv", version=0)
    assert empty.text.split() == ["x"]
    assert server.client.get("/info").json()["role"] == "read"


def test_metrics_count_requests(server: Server) -> None:
    ask(server, EMPLOYEES)
    text = server.client.get("/metrics").text
    assert 'corollary_requests_total{method="GET",route="/sparql",status="200"}' in text
    samples = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    assert all(float(value) >= 0 and name for name, _, value in samples)


@pytest.mark.parametrize(
    ("path", "parameters", "expected"),
    [
        ("/sparql", {"query": "SELECT"}, (400, "E560")),
        ("/sparql", {"query": EMPLOYEES, "version": "9"}, (404, "E505")),
        ("/sparql", {"query": EMPLOYEES, "version": "-1"}, (400, "E600")),
        ("/sparql", {"query": "SELECT * { SERVICE ?g { ?s ?p ?o } }"}, (400, "E561")),
        ("/sparql", {"query": "ASK {}", "default-graph-uri": "relative"}, (400, "E600")),
        ("/graph", {"graph": "urn:none"}, (404, "E615")),
        ("/graph", {"graph": "urn:none", "default": ""}, (400, "E600")),
        ("/sparql", {"update": "CLEAR ALL"}, (400, "E600")),
        ("/explain", {}, (400, "E600")),
        ("/explain", {"fact": "[?x, a, :Person]"}, (400, "E208")),
        ("/facts", {"pattern": "nothing(?x)"}, (404, "E344")),
        ("/log", {"limit": "5000"}, (400, "E600")),
        ("/diff", {"from": "7"}, (404, "E505")),
        ("/changes", {"pattern": "["}, (400, "E101")),
        ("/changes", {"since": "70"}, (404, "E505")),
        ("/subscribe", {"query": "SELECT"}, (400, "E560")),
        ("/nowhere", {}, (404, "E613")),
    ],
)
def test_mistakes_have_codes(
    server: Server, path: str, parameters: dict[str, str], expected: tuple[int, str]
) -> None:
    assert error_of(server.client.get(path, params=parameters)) == expected


def test_errors_show_their_place(server: Server) -> None:
    error = ask(server, "SELECT ?x {\n ?x ex:p ?y }").json()["error"]
    assert (error["code"], error["line"], error["column"]) == ("E560", 2, 5)


def test_the_log_has_no_text_of_requests(server: Server) -> None:
    secret = "4711-secret"
    ask(server, f'ASK {{ ?s ?p "{secret}" }}')
    server.client.get(f"/{secret}%0a%7b", headers={"User-Agent": secret})
    server.client.get("/health")
    assert not [line for line in server.lines if secret in line]
    routes = {event["route"] for event in server.events() if event["event"] == "request"}
    assert "unknown" in routes
    assert json.dumps(sorted(routes)).count("%0a") == 0
