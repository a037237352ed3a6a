"""SPARQL Update over knowledge bases and stores, as a user calls it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import corollary as co
from corollary import KnowledgeBase
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.printer import Printer
from tests.cli.calls import call

PREFIX = "PREFIX : <http://e/> "
RULES = "@prefix : <http://e/> . [?x, a, :Person] :- [?x, a, :Student] . "


def people(**options: str) -> KnowledgeBase:
    kb = KnowledgeBase(RULES, **options)  # type: ignore[arg-type]
    with kb.transaction() as tx:
        tx.insert("@prefix : <http://e/> . :ann a :Student . :bob a :Person .")
    return kb


def not_deleted(kb: KnowledgeBase, text: str) -> list[str]:
    changes = kb.update(PREFIX + text)
    return sorted(map(Printer(kb.prefixes).atom, changes.not_deleted))


@pytest.mark.parametrize(
    "options", [{}, {"mode": "hybrid"}, {"algorithm": "dred"}], ids=["tuples", "hybrid", "dred"]
)
def test_what_is_only_derived_cannot_be_deleted(options: dict[str, str]) -> None:
    kb = people(**options)
    assert not_deleted(kb, "DELETE DATA { :ann a :Person }") == ["[:ann, a, :Person]"]
    assert not_deleted(kb, "DELETE DATA { :cid a :Person }") == []
    assert not_deleted(kb, "DELETE WHERE { ?x a :Person }") == ["[:ann, a, :Person]"]
    assert kb.query(PREFIX + "ASK { :ann a :Person }") is True
    assert kb.query(PREFIX + "ASK { :bob a :Person }") is False


def test_equal_terms() -> None:
    kb = KnowledgeBase(co.rules("owl-rl"), equality="rewrite")
    with kb.transaction() as tx:
        tx.insert("@prefix : <http://e/> . :ann :knows :bob . :ann owl:sameAs :anna .")
    text = "DELETE DATA { :anna :knows :bob } ; INSERT { ?x :new 1 } WHERE { ?x :knows :bob }"
    assert "[:anna, :knows, :bob]" in not_deleted(kb, text)
    assert kb.query(PREFIX + "ASK { :anna :new 1 . :ann :new 1 }") is True


def test_a_later_operation_sees_consequences() -> None:
    kb = people()
    version = kb.version
    kb.update(
        PREFIX
        + """INSERT DATA { :cid a :Student } ;
        INSERT { ?x :known true } WHERE { ?x a :Person } ;
        DELETE { ?x a :Student } WHERE { ?x :known true }"""
    )
    assert kb.version == version + 1
    assert kb.count("[?x, :known, true]") == 3
    assert kb.count("[?x, a, :Person]") == 1


def test_updates_mix_with_other_requests() -> None:
    kb = people()
    with kb.transaction() as tx:
        tx.insert("@prefix : <http://e/> . :cid a :Student .")
        tx.add_rules("@prefix : <http://e/> . [?x, a, :Agent] :- [?x, a, :Person] .")
        tx.update(PREFIX + "INSERT { ?x :is 1 } WHERE { ?x a :Agent }")
        tx.delete("@prefix : <http://e/> . :ann :is 1 .")
        assert kb.count("[?x, :is, 1]") == 0  # the knowledge base still shows its old state
        tx.update(PREFIX + "INSERT { ?x :was 2 } WHERE { ?x :is 1 }")
    assert kb.count("[?x, :is, 1]") == kb.count("[?x, :was, 2]") == 2


def test_a_failing_request_has_no_effect() -> None:
    kb = people()
    with kb.transaction() as tx:
        tx.insert("@prefix : <http://e/> . :cid a :Student .")
        with pytest.raises(InvalidInput):
            tx.update(
                PREFIX
                + """INSERT DATA { :dan a :Student } ;
                INSERT { ?x :is 1 } WHERE { ?x a :Person } ; LOAD <ftp://e/x>"""
            )
    assert kb.count("[?x, a, :Student]") == 2
    assert kb.count("[?x, :is, 1]") == 0
    version = kb.version
    with pytest.raises(InvalidInput):
        kb.update("INSERT DATA { <a> <b> <c> } ; LOAD <ftp://e/x>")
    assert kb.version == version
    assert kb.count("[<a>, <b>, <c>]") == 0


def test_blank_nodes_are_new() -> None:
    kb = people()
    text = PREFIX + "INSERT DATA { _:x :p 1 . _:x :q [ :r 2 ] } ; INSERT DATA { _:y :p 1 }"
    kb.update(text)
    kb.update(text)
    assert kb.count("[?x, :p, 1]") == 4
    assert kb.count("[?x, :q, ?y]") == 2
    kb.update(PREFIX + "INSERT { _:n :of ?x ; :and [] } WHERE { ?x a :Person }")
    kb.update(PREFIX + "INSERT { _:n :of ?x } WHERE { ?x a :Person }")
    assert len({*kb.facts("[?n, :of, ?x]")["subject"].to_pylist()}) == 4


def test_ill_formed_triples_of_templates_are_skipped() -> None:
    kb = people()
    kb.update(
        PREFIX + 'INSERT { ?n :p ?x . ?x ?n :o . ?x :q ?n } WHERE { ?x a :Student BIND("n" AS ?n) }'
    )
    assert kb.count("[?x, :q, ?y]") == 1
    assert kb.count("[?x, :p, ?y]") == 0


def test_computed_terms() -> None:
    kb = people()
    kb.update(
        PREFIX
        + """INSERT { :ann :p ?iri ; :q ?tagged ; :r ?typed } WHERE {
            VALUES (?a ?b) { ("http://e/x" "EN") ("http://e/x y" "de") }
            BIND(IRI(?a) AS ?iri) BIND(STRLANG("one\\n\\"two", ?b) AS ?tagged)
            BIND(STRDT("1", ?iri) AS ?typed) }"""
    )
    assert [*kb.facts("[?x, :p, ?y]")["object"].to_pylist()] == ["<http://e/x>"]
    tagged = sorted(kb.facts("[?x, :q, ?y]")["object"].to_pylist())
    assert tagged == ['"one\\n\\"two"@de', '"one\\n\\"two"@en']
    assert [*kb.facts("[?x, :r, ?y]")["object"].to_pylist()] == ['"1"^^<http://e/x>']
    with kb.transaction() as tx:  # the texts are the canonical ones
        tx.delete('@prefix : <http://e/> . :ann :q "one\\n\\"two"@EN .')
    assert len(tx.changes) == 1


def test_clearing_keeps_relations_and_axioms() -> None:
    kb = KnowledgeBase(RULES + "p(1) .")
    with kb.transaction() as tx:
        tx.add_rules("@prefix : <http://e/> . [:Student, :of, :Uni] .")
    kb.update(PREFIX + "INSERT DATA { :ann a :Student }")
    for text in ("CLEAR NAMED", "DROP SILENT GRAPH <g>", "COPY DEFAULT TO DEFAULT"):
        assert len(kb.update(text)) == 0
    kb.update("CLEAR DEFAULT")
    assert kb.count("[?x, ?p, ?o]") == 1
    assert kb.count("p") == 1


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("SELECT * { ?s ?p ?o }", "E560", 1),
        ("INSERT DATA { ?x <p> 1 }", "E560", 13),
        ("INSERT DATA { 1 <p> 1 }", "E560", 13),
        ("DELETE { [] <p> 1 } WHERE { }", "E560", 8),
        ("INSERT DATA { <s> <p> 1 } CLEAR ALL", "E560", 27),
        ("LOAD <http://example.org/x.ttl>", "E569", 1),
        ("LOAD <ftp://example.org/x.ttl>", "E569", 1),
    ],
)
def test_mistakes_have_a_place(text: str, code: str, column: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        KnowledgeBase().update(text)
    assert caught.value.code == code
    assert f":1:{column}: " in caught.value.render()


def test_an_update_is_no_query() -> None:
    with pytest.raises(InvalidInput) as caught:
        KnowledgeBase().query("INSERT DATA { <a> <b> <c> }")
    assert caught.value.code == "E568"


def test_loading_files(tmp_path: Path) -> None:
    path = tmp_path / "a b.ttl"
    path.write_text("@prefix : <http://e/> . :cid a :Student . _:x a :Student .", "utf-8")
    kb = people()
    iri = path.as_uri()
    with pytest.raises(InvalidInput) as caught:
        kb.update(f"LOAD <{iri}>", load="none")
    assert caught.value.code == "E569"
    assert len(kb.update(f"LOAD SILENT <{iri}>", load="none")) == 0
    kb.update(f"LOAD <{iri}> ; DELETE WHERE {{ ?x a <http://e/Student> }}")
    assert kb.count("[?x, a, :Student]") == 0
    kb.update(f"LOAD <{iri}>")
    kb.update(f"LOAD SILENT <{iri}x>")
    assert kb.count("[?x, a, :Person]") == 3


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "web.ttl").write_text("<http://e/web> a <http://e/Student> .", "utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_loading_from_the_web(served: str) -> None:
    kb = people()
    kb.update(f"LOAD <{served}/web.ttl>", load="web")
    assert "[<http://e/web>, a, <http://e/Person>]" in kb
    with pytest.raises(OperationFailed) as caught:
        kb.update(f"LOAD <{served}/other.ttl>", load="web")
    assert caught.value.code == "E570"


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "data.ttl").write_text("@prefix : <http://e/> . :ann a :Student .", "utf-8")
    (tmp_path / "rules.dl").write_text(RULES, "utf-8")
    (tmp_path / "request.ru").write_text(PREFIX + "INSERT DATA { :bob a :Student }", "utf-8")
    build = ("build", "s", "data.ttl", "--rules", "rules.dl", "--engine", "columnar", "--quiet")
    assert not call(*build, folder=tmp_path).returncode
    done = call("update", "s", "--sparql", "request.ru", "--json", folder=tmp_path)
    report = json.loads(done.stdout)
    assert (report["version"], report["inserted"], report["not_deleted"]) == (2, 2, [])
    text = PREFIX + "DELETE DATA { :bob a :Person }"
    done = call("update", "s", "--sparql", text, "--changes", "-", folder=tmp_path)
    assert done.stdout == ""
    assert "not deleted: 1 fact still holds, because others imply it:" in done.stderr
    assert "\n  [:bob, a, :Person]\n" in done.stderr
    for others in (["--insert", "data.ttl"], ["--patch", "p.rdfp"], ["--engine", "spark"]):
        done = call("update", "s", "--sparql", text, *others, folder=tmp_path)
        assert done.returncode == 2
        assert "E313" in done.stderr
    done = call("update", "s", "--sparql", "LOAD <data.ttl>", "--load", "none", folder=tmp_path)
    assert done.returncode == 2
    assert "E569" in done.stderr
