"""Writing through a real server: updates, graphs, rules, previews; one writer, many readers."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyoxigraph
import pytest
import rdflib
from rdflib.plugins.stores.sparqlstore import SPARQLUpdateStore
from SPARQLWrapper import SPARQLWrapper

import corollary as co
from tests.cli.calls import call
from tests.service.servers import EMPLOYEES, PREFIX, Server, build, error_of, serving

EX = "http://example.org/"


@pytest.fixture
def writable(tmp_path: Path) -> Iterator[Server]:
    with serving(build(tmp_path), "--open") as server:
        yield server


def employees(server: Server) -> list[str]:
    found = server.client.get(
        "/sparql", params={"query": EMPLOYEES}, headers={"Accept": "text/csv"}
    )
    return [name.removeprefix(EX) for name in found.text.split()[1:]]


def test_updates_by_every_client(writable: Server) -> None:
    server, url = writable, f"{writable.url}/sparql"
    found = server.client.post(
        "/sparql?message=cat+hired",
        content=PREFIX + "INSERT DATA { :cat :headOf :lab }",
        headers={"Content-Type": "application/sparql-update"},
    )
    assert found.status_code == 200
    changes = {change["fact"]: change["explicit"] for change in found.json()["changes"]}
    assert changes["[:cat, :headOf, :lab]"]
    assert not changes["[:cat, a, :Employee]"]
    assert employees(server) == ["ann", "bob", "cat"]  # a writer reads its own writes
    form = {"update": PREFIX + "DELETE WHERE { :cat ?p ?o }"}
    assert server.client.post("/sparql", data=form).json()["deleted"] > 0
    store = SPARQLUpdateStore(url, url)
    store.add(
        (rdflib.URIRef(EX + "dan"), rdflib.URIRef(EX + "worksFor"), rdflib.URIRef(EX + "lab"))
    )
    assert employees(server) == ["ann", "bob", "dan"]
    wrapper = SPARQLWrapper(url)
    wrapper.setMethod("POST")
    wrapper.setQuery(PREFIX + "DELETE DATA { :bob :worksFor :lab }")
    wrapper.query()
    assert employees(server) == ["ann", "dan"]
    log = server.client.get("/log").json()["commits"]
    assert [commit["message"] for commit in log][-3] == "cat hired"
    loaded = server.client.post("/sparql", data={"update": "LOAD <file:///etc/passwd>"})
    assert error_of(loaded) == (400, "E569")
    assert "INSERT DATA" in loaded.json()["error"]["hint"]
    assert error_of(server.client.post("/sparql", data={"update": "INSERT"})) == (400, "E560")
    assert co.KnowledgeBase.open(server.store).version == log[0]["version"]


@pytest.mark.long
def test_graph_store_protocol(writable: Server) -> None:
    client, turtle = writable.client, {"Content-Type": "text/turtle; charset=utf-8"}
    text = "@prefix : <http://example.org/> . :eve :headOf :lab . _:b :name 'b' ."
    assert client.post("/graph?default", content=text, headers=turtle).status_code == 204
    assert client.post("/graph?default", content=text, headers=turtle).status_code == 204
    names = 'SELECT (COUNT(?b) AS ?n) { ?b <http://example.org/name> "b" }'
    found = client.get("/sparql", params={"query": names}, headers={"Accept": "text/csv"})
    assert found.text.split() == ["n", "2"]  # blank nodes are fresh
    assert employees(writable) == ["ann", "bob", "eve"]
    xml = pyoxigraph.serialize(
        [pyoxigraph.Triple(*(pyoxigraph.NamedNode(EX + name) for name in ("x", "p", "y")))],
        format=pyoxigraph.RdfFormat.RDF_XML,
    )
    headers = {"Content-Type": "application/rdf+xml"}
    assert client.put("/graph?default", content=xml, headers=headers).status_code == 204
    whole = client.get("/graph?default", headers={"Accept": "application/n-triples"})
    assert f"<{EX}x> <{EX}p> <{EX}y> ." in whole.text
    assert employees(writable) == []
    bomb = b'<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><rdf/>'
    found = client.put("/graph?default", content=bomb, headers=headers)
    assert error_of(found) == (400, "E323")
    assert "/tmp" not in found.text
    assert client.delete("/graph?default").status_code == 204
    assert client.head("/graph?default").status_code == 200
    assert error_of(client.get("/graph")) == (400, "E600")
    wrong = client.put("/graph?default", content=b"x", headers={"Content-Type": "image/png"})
    assert error_of(wrong) == (415, "E601")


@pytest.mark.long
def test_named_graphs(writable: Server) -> None:
    client, turtle = writable.client, {"Content-Type": "text/turtle"}
    one, two = ({"graph": f"urn:graph:{number}"} for number in (1, 2))
    triples = {"Accept": "application/n-triples"}
    text = "<#eve> <http://example.org/worksFor> <urn:lab> ."
    assert client.put("/graph", params=one, content=text, headers=turtle).status_code == 201
    assert client.post("/graph", params=one, content=text, headers=turtle).status_code == 204
    # Relative IRIs are relative to the graph, not to a file of the service.
    line = f"<urn:graph:1#eve> <{EX}worksFor> <urn:lab> .\n"
    assert client.get("/graph", params=one, headers=triples).text == line
    assert line not in client.get("/graph?default", headers=triples).text
    made = client.post("/graph", content=text, headers=turtle)
    assert made.status_code == 201
    assert client.get("/graph", params={"graph": made.headers["location"]}).status_code == 200
    # Rules read all graphs; what they derive is in none.
    assert client.get("/facts", params={"pattern": "[<urn:graph:1#eve>, a, :Employee]"}).json()[
        "count"
    ]
    ask = "ASK { ?x <http://example.org/worksFor> ?y }"
    for graphs, expected in (
        ({}, True),
        ({"default-graph-uri": "urn:graph:1"}, True),
        ({"default-graph-uri": "urn:graph:2"}, False),
        ({"named-graph-uri": "urn:graph:1"}, False),
    ):
        found = client.get("/sparql", params={"query": ask} | graphs).json()
        assert found["boolean"] is expected, graphs
    where = "GRAPH <urn:graph:2> { ?x <urn:copy> ?y }"
    update = f"INSERT {{ {where} }} WHERE {{ ?x <{EX}worksFor> ?y }}"
    copied = {"update": update, "using-graph-uri": "urn:graph:1"}
    changes = client.post("/sparql", data=copied).json()["changes"]
    assert sum("urn:copy" in change["fact"] for change in changes) >= 1
    assert client.get("/graph", params=two, headers=triples).text.count("\n") == 1
    assert client.delete("/graph", params=one).status_code == 204
    assert error_of(client.get("/graph", params=one)) == (404, "E615")
    assert error_of(client.delete("/graph", params=one)) == (404, "E615")


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_a_javascript_client(writable: Server) -> None:
    client = Path(__file__).with_name("client.mjs")
    done = subprocess.run(["node", client, writable.url], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["before"] == [EX + "ann", EX + "bob"]
    assert found["first"] == 2
    assert found["change"]["came"] == [{"x": "<urn:js>"}]
    assert found["after"] == [EX + "ann", EX + "bob", "urn:js"]


def test_rules_and_previews(writable: Server) -> None:
    client = writable.client
    rule = "[bosses] [?x, <urn:bossOf>, ?y] :- [?x, :headOf, ?z], [?y, :worksFor, ?z] ."
    change = {"add_rules": rule, "insert": ":bob a :Robot ."}
    before = client.get("/health").json()["version"]
    seen = client.post("/preview", json=change).json()
    assert "[:ann, <urn:bossOf>, :bob]" in [c["fact"] for c in seen["changes"]]
    assert [one["rule"] for one in seen["contradictions"]] == ["cax-dw"]
    assert client.get("/health").json()["version"] == before
    done = client.post("/transaction", json=change).json()
    assert {c["fact"] for c in done["changes"]} == {c["fact"] for c in seen["changes"]}
    assert client.get("/check").json()["inconsistencies"][0]["rule"] == "cax-dw"
    text = done["added_rules"][0]
    removed = client.delete("/rules", params={"rule": text}).json()
    assert removed["removed_rules"] == [text]
    assert error_of(client.delete("/rules", params={"rule": text})) == (400, "E307")
    headers = {"Content-Type": "text/plain"}
    assert client.post("/rules", content=rule, headers=headers).json()["added_rules"] == [text]
    assert error_of(client.post("/rules", content="p(", headers=headers))[0] == 400
    assert error_of(client.post("/preview", json={"insrt": ""})) == (400, "E600")


@pytest.mark.long
def test_undoes_versions(writable: Server) -> None:
    update = {"update": PREFIX + "INSERT DATA { :cat :worksFor :lab }"}
    version = writable.client.post("/sparql", data=update).json()["version"]
    assert employees(writable) == ["ann", "bob", "cat"]
    done = writable.client.post("/revert", params={"version": version})
    assert (done.status_code, employees(writable)) == (200, ["ann", "bob"])
    assert writable.client.post("/revert", params={"to": version}).status_code == 200
    assert employees(writable) == ["ann", "bob", "cat"]
    assert error_of(writable.client.post("/revert")) == (400, "E514")
    log = writable.client.get("/log").json()["commits"]
    assert f"revert version {version}" in [commit["message"] for commit in log]


@pytest.mark.long
def test_commits_of_other_processes_are_seen(writable: Server, tmp_path: Path) -> None:
    (tmp_path / "new.nt").write_text(f"<{EX}zoe> <{EX}worksFor> <{EX}lab> .\n")
    done = call("update", writable.store, "--insert", tmp_path / "new.nt", "--quiet")
    assert done.returncode == 0, done.stderr
    # The writer has the old version open: its commit is tried again on the newest one.
    update = {"update": PREFIX + "INSERT DATA { :yan :worksFor :lab }"}
    assert writable.client.post("/sparql", data=update).status_code == 200
    assert employees(writable) == ["ann", "bob", "yan", "zoe"]


PAIRS = """SELECT ?n (COUNT(*) AS ?c) { ?x <urn:even> ?n . ?y <urn:odd> ?n } GROUP BY ?n"""


@pytest.mark.long
def test_every_query_sees_one_version_while_commits_go_on(tmp_path: Path) -> None:
    """A commit replaces all numbers by its own, so a mixture of versions would show two."""
    store = build(tmp_path, "<urn:a> <urn:even> 0 . <urn:b> <urn:odd> 0 .", "none")
    stop = threading.Event()
    mixed: list[object] = []
    answers: list[tuple[int, list[str]]] = []
    with serving(store, "--open") as server:

        def read() -> None:
            with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
                while not stop.is_set():
                    found = client.get("/sparql", params={"query": PAIRS})
                    rows = found.json()["results"]["bindings"]
                    version = int(found.headers["Corollary-Version"])
                    answers.append((version, [row["n"]["value"] for row in rows]))
                    if len(rows) != 1:
                        mixed.append(rows)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        expected = {1: ["0"]}
        for number in range(1, 9):
            text = "; ".join(
                f"DELETE WHERE {{ ?x <urn:{p}> ?n }} ; INSERT DATA {{ <urn:{p}{number}> <urn:{p}>"
                f" {number} }}"
                for p in ("even", "odd")
            )
            done = server.client.post("/sparql", data={"update": text})
            assert done.status_code == 200, done.text
            expected[done.json()["version"]] = [str(number)]
        stop.set()
        for reader in readers:
            reader.join()
    assert not mixed
    assert answers
    # A commit may be followed by a compaction, whose version has the same facts.
    for version, numbers in answers:
        assert numbers == expected[max(known for known in expected if known <= version)]


@pytest.mark.long
def test_a_killed_server_loses_no_answered_commit(tmp_path: Path) -> None:
    store = build(tmp_path)
    answered: list[int] = []
    with serving(store, "--open", stops=False) as server:

        def write() -> None:
            with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
                for number in range(1000):
                    update = f"INSERT DATA {{ <urn:x{number}> <urn:p> <urn:y> }}"
                    try:
                        if client.post("/sparql", data={"update": update}).status_code == 200:
                            answered.append(number)
                    except httpx.HTTPError:
                        return

        writer = threading.Thread(target=write)
        writer.start()
        while len(answered) < 3:
            pass
        server.process.kill()
        writer.join()
    kb = co.KnowledgeBase.open(store)
    found = {f"[<urn:x{number}>, <urn:p>, <urn:y>]" in kb for number in answered}
    assert found == {True}
