"""The W3C tests of the SPARQL 1.1 Protocol and the Graph Store Protocol, with a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import rdflib
from rdflib.collection import Collection
from rdflib.compare import isomorphic
from rdflib.namespace import RDFS

from benchmarks.report import DATA
from tests.service.servers import Server, build, serving

FOLDER = DATA / "conformance" / "w3c-rdf-tests" / "sparql" / "sparql11"
if not FOLDER.is_dir():
    pytest.skip(f"the W3C suite is not here: {FOLDER}", allow_module_level=True)

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
UT = rdflib.Namespace("http://www.w3.org/2009/sparql/tests/test-update#")
HT = rdflib.Namespace("http://www.w3.org/2011/http#")
CNT = rdflib.Namespace("http://www.w3.org/2011/content#")
STATUS = {"OK": 200, "Created": 201, "NoContent": 204, "NotFound": 404}


def cases(name: str) -> list[Any]:
    """The tests of a manifest, each with the graphs that it starts with."""
    graph = rdflib.Graph().parse(FOLDER / name, format="turtle")
    found = []
    for entries in graph.objects(predicate=MF.entries):
        for node in Collection(graph, entries):
            requests = requests_of(graph, node)
            graphs = {
                str(graph.value(data, RDFS.label)): Path(str(graph.value(data, UT.graph))).name
                for data in graph.objects(node, UT.graphData)
            }
            label = str(node).rpartition("#")[2]
            found.append(pytest.param(graphs, requests, id=label))
    return found


def requests_of(graph: rdflib.Graph, test: Any) -> list[tuple[str, str, dict[str, str], str, Any]]:
    """The requests of a test: method, path, headers, body, and the expected response."""
    action = graph.value(test, MF.action)
    found = []
    for node in Collection(graph, graph.value(action, HT.requests)):
        headers = {}
        listed = graph.value(node, HT.headers)
        for header in [] if listed is None else Collection(graph, listed):
            name = str(graph.value(header, HT.fieldName)).lower()
            headers[name] = str(graph.value(header, HT.fieldValue))
        body = graph.value(node, HT.body)
        text = "" if body is None else str(graph.value(body, CNT.chars) or "")
        encoding = "utf-8" if body is None else str(graph.value(body, CNT.characterEncoding))
        headers["x-encoding"] = encoding.lower()
        response = graph.value(node, HT.resp)
        expected = {
            "status": {
                str(s).rpartition("#")[2] for s in graph.objects(response, MF.expectedStatus)
            },
            "boolean": graph.value(response, MF.expectedBoolean),
            "format": str(graph.value(response, MF.expectedFormat) or ""),
            "body": str(graph.value(graph.value(response, HT.body), CNT.chars) or ""),
        }
        method = str(graph.value(node, HT.methodName))
        path = str(graph.value(node, HT.absolutePath))
        found.append((method, path, headers, text, expected))
    return found


CASES = [
    *cases("protocol/manifest.ttl"),
    *cases("graph-store-protocol/manifest-indirect.ttl"),
]


@pytest.fixture(scope="module")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a store without rules; everybody may write."""
    store = build(tmp_path_factory.mktemp("protocol"), "<urn:a> <urn:b> <urn:c> .", "none")
    with serving(store, "--open", "--workers", "1") as server:
        yield server


@pytest.mark.long
@pytest.mark.parametrize(("graphs", "requests"), CASES)
def test_protocol(graphs: dict[str, str], requests: Any, protocol: Server) -> None:
    client, location = protocol.client, ""
    assert client.post("/sparql", data={"update": "CLEAR ALL"}).status_code == 200
    for name, file in graphs.items():
        data = (FOLDER / "protocol" / file).read_bytes()
        headers = {"content-type": "application/n-triples"}
        found = client.put("/graph", params={"graph": name}, content=data, headers=headers)
        assert found.status_code == 201, found.text
    for method, path, headers, body, expected in requests:
        encoding = headers.pop("x-encoding")
        content = body.encode("utf-16" if encoding == "utf-16" else "utf-8")
        path = path.replace("/sparql/", "/sparql").replace("/gsp?", "/graph?")
        path = re.sub("/gsp$", "/graph", path.replace("$LOCATION$", location))
        found = client.request(method, path, headers=headers, content=content)
        assert any(agrees(found.status_code, name) for name in expected["status"]), found.text
        location = found.headers.get("location", location)
        if expected["boolean"] is not None:
            assert boolean(found) == bool(expected["boolean"])
        if expected["format"] == "RDF":
            assert "turtle" in found.headers["content-type"]
        elif expected["format"] == "tabular":
            assert "sparql-results+json" in found.headers["content-type"]
        if expected["body"] and method == "GET" and found.status_code == 200:
            one, two = (
                rdflib.Graph().parse(data=text, format="turtle")
                for text in (found.text, expected["body"])
            )
            assert isomorphic(one, two)


def agrees(status: int, name: str) -> bool:
    """Whether a status is the expected one, or in the expected class."""
    if family := re.fullmatch(r"StatusCode(\d)xx", name):
        return status // 100 == int(family[1])
    return STATUS[name] == status


def boolean(found: httpx.Response) -> bool:
    """The answer of ASK."""
    value: bool = found.json()["boolean"]
    return value
