"""`owl:imports`: files beside the ontology, catalogs, import maps, and what is not found."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from corollary import CorollaryError, KnowledgeBase
from corollary.errors import CorollaryWarning
from corollary.knowledge_base.imports import ontologies_in
from tests.cli.calls import call

OWL = "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix : <http://e/> . "


def ontology(iri: str, *imported: str, text: str = "") -> str:
    imports = "".join(f"<{iri}> owl:imports <{one}> . " for one in imported)
    return f"{OWL}<{iri}> a owl:Ontology . {imports}{text}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "main.ttl").write_text(ontology("http://e/main", "http://e/animals"), "utf-8")
    return tmp_path


def loaded(file: Path, **options: object) -> tuple[KnowledgeBase, list[str]]:
    kb = KnowledgeBase("none")
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", CorollaryWarning)
        kb.load(file, **options)  # type: ignore[arg-type]
    return kb, [str(one.message) for one in raised if "W102" in str(one.message)]


def test_beside_the_ontology_by_iri_and_by_name(folder: Path) -> None:
    animals = ontology("http://e/animals", "http://e/base/names", text=":Cat a owl:Class .")
    (folder / "zoo.ttl").write_text(animals, "utf-8")
    (folder / "names.nt.gz").write_bytes(gzip.compress(b"<http://e/n> <http://e/p> <http://e/o> ."))
    (folder / "names.ttl").write_text("<http://e/n> <http://e/p> <http://e/o> .", "utf-8")
    (folder / "other.ttl").write_text("<http://e/no> <http://e/p> <http://e/o> .", "utf-8")
    kb, missing = loaded(folder / "main.ttl")
    assert missing == []
    assert "<http://e/Cat> a owl:Class" in kb
    assert "<http://e/n> <http://e/p> <http://e/o>" in kb
    assert ("<http://e/no>", "<http://e/p>", "<http://e/o>") not in kb


def test_catalog(folder: Path) -> None:
    (folder / "lib").mkdir()
    (folder / "lib" / "x.ttl").write_text(ontology("http://other/", text=":Dog a :D ."), "utf-8")
    (folder / "catalog-v001.xml").write_text(
        '<?xml version="1.0"?><catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">'
        '<group id="g"><uri id="1" name="http://e/animals" uri="lib/x.ttl"/>'
        '<uri name="http://e/far" uri="http://far.example/x.owl"/></group></catalog>',
        "utf-8",
    )
    kb, missing = loaded(folder / "main.ttl")
    assert missing == []
    assert ":Dog a :D" in kb


def test_import_map(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "a.ttl"
    elsewhere.write_text(ontology("http://e/animals", text=":Cat a :C ."), "utf-8")
    kb, missing = loaded(folder / "main.ttl", import_map={"http://e/animals": elsewhere})
    assert missing == []
    assert ":Cat a :C" in kb
    option = f"http://e/animals={elsewhere}"
    done = call("check", "main.ttl", "--import-map", option, "--quiet", folder=folder)
    assert "W102" not in done.stderr
    done = call(
        "build", "s", "main.ttl", "--engine", "columnar", "--import-map", option, folder=folder
    )
    assert "W102" not in done.stderr
    assert KnowledgeBase.open(str(folder / "s")).count(":Cat a :C") == 1


def test_what_is_not_found_is_named(folder: Path) -> None:
    (folder / "main.ttl").write_text(
        ontology("http://e/main", "http://e/animals", "http://e/plants"), "utf-8"
    )
    _, [message] = loaded(folder / "main.ttl")
    assert "2 owl:imports are not followed: <http://e/animals>, <http://e/plants>" in message


def test_cycles_end(folder: Path) -> None:
    text = ontology("http://e/animals", "http://e/main", text=":Cat a :C .")
    (folder / "animals.ttl").write_text(text, "utf-8")
    kb, missing = loaded(folder / "main.ttl")
    assert missing == []
    assert kb.count("[?x, a, owl:Ontology]") == 2


def test_deletions_do_not_follow(folder: Path) -> None:
    (folder / "animals.ttl").write_text(ontology("http://e/animals", text=":Cat a :C ."), "utf-8")
    kb, _ = loaded(folder / "main.ttl")
    with kb.transaction() as tx:
        tx.delete_from(folder / "main.ttl")
    assert ":Cat a :C" in kb


def test_mistakes(folder: Path) -> None:
    with pytest.raises(CorollaryError) as caught:
        KnowledgeBase().load(folder / "main.ttl", import_map={"http://e/animals": "no.ttl"})
    assert caught.value.code == "E301"
    with pytest.raises(CorollaryError) as caught:
        KnowledgeBase().load(folder / "main.ttl", import_map=["x"])  # type: ignore[arg-type]
    assert caught.value.code == "E345"
    (folder / "catalog-v001.xml").write_text('<!DOCTYPE c [<!ENTITY a "b">]><c/>', "utf-8")
    with pytest.raises(CorollaryError) as caught:
        KnowledgeBase().load(folder / "main.ttl")
    assert caught.value.code == "E323"
    assert call("check", "main.ttl", "--import-map", "no.xml", folder=folder).returncode == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ttl", "<http://e/o> rdf:type owl:Ontology ."),
        ("a.rdf", "<rdf:RDF><owl:Ontology rdf:about='http://e/o'/></rdf:RDF>"),
        ("a.ofn", "Prefix(:=<http://e/>)\nOntology(<http://e/o>)"),
        ("a.omn", "Prefix: : <http://e/>\nOntology: <http://e/o>"),
        ("a.owx", '<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://e/o"/>'),
        (
            "a.nt",
            "<http://e/o> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
            " <http://www.w3.org/2002/07/owl#Ontology> .",
        ),
    ],
)
def test_iris_of_ontologies(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    assert ontologies_in(tmp_path / name) == {"http://e/o"}


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of documents, among them one that imports another."""
    folder = tmp_path_factory.mktemp("web")

    class Handler(SimpleHTTPRequestHandler):
        extensions_map: ClassVar = {".ttl": "text/turtle"}  # type: ignore[misc]

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        names = ontology(f"{address}/names.ttl", text=":Name a owl:Class .")
        (folder / "names.ttl").write_text(names, "utf-8")
        animals = f"{address}/animals.ttl"
        text = ontology(animals, f"{address}/names.ttl", text=":Cat a owl:Class .")
        (folder / "animals.ttl").write_text(text, "utf-8")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield address
        server.shutdown()
        thread.join()


def test_the_web_is_used_only_if_asked_for(web: str, folder: Path) -> None:
    imported = (f"{web}/animals.ttl", f"{web}/none.ttl")
    (folder / "main.ttl").write_text(ontology("http://e/main", *imported), "utf-8")
    kb, [message] = loaded(folder / "main.ttl")
    assert f"<{web}/animals.ttl>, <{web}/none.ttl>" in message
    assert kb.count("[?x, a, owl:Class]") == 0
    kb, [message] = loaded(folder / "main.ttl", fetch_imports=True)
    assert message.count(web) == 1
    assert f"<{web}/none.ttl>" in message
    assert kb.count("[?x, a, owl:Class]") == 2  # also of the document that the fetched one imports
    build = ("build", "s", "main.ttl", "--rules", "none", "--engine", "columnar")
    for command in (("check", "main.ttl"), (*build, "--fetch-imports")):
        done = call(*command, "--quiet", "--fetch-imports", folder=folder)
        assert done.stderr.count(web) == 1, done.stderr
    assert KnowledgeBase.open(folder / "s").count("[?x, a, owl:Class]") == 2


def test_every_command_follows_imports(folder: Path) -> None:
    """`run` reads data in its own way; the others load them into a knowledge base."""
    (folder / "catalog-v001.xml").write_text(
        '<catalog><uri name="http://e.org/far" uri="elsewhere/far.ttl"/></catalog>', "utf-8"
    )
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "far.ttl").write_text(
        "@prefix : <http://e.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        "<http://e.org/far> a owl:Ontology ; owl:imports <http://e.org/further> ."
        ":Far rdfs:subClassOf :Animal .",
        "utf-8",
    )
    (folder / "elsewhere" / "further.ttl").write_text(
        "@prefix : <http://e.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        "<http://e.org/further> a owl:Ontology . :Animal rdfs:subClassOf :Being .",
        "utf-8",
    )
    (folder / "main.ttl").write_text(
        "@prefix : <http://e.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
        "<http://e.org/main> a owl:Ontology ; owl:imports <http://e.org/far>, <http://e.org/no> ."
        ":x a :Far .",
        "utf-8",
    )
    main, out, wanted = folder / "main.ttl", folder / "out", "<http://e.org/Being>"
    done = call("run", "--rules", "rdfs", "--data", main, "--out", out)
    triple = f"<http://e.org/x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> {wanted} ."
    assert triple in (out / "triples.nt").read_text("utf-8").splitlines()
    assert "1 owl:imports is not followed: <http://e.org/no>" in done.stderr
    mapped = f"http://e.org/no={folder / 'elsewhere' / 'further.ttl'}"
    flags = ("--data", main, "--import-map", mapped, "--out", out, "--quiet")
    assert "not followed" not in call("run", "--rules", "rdfs", *flags).stderr
    call("build", folder / "store", main, "--rules", "rdfs", "--engine", "columnar")
    assert "yes" in call("query", folder / "store", f"ASK {{ ?x a {wanted} }}").stdout
    check = call("check", main, "--rules", "rdfs")
    assert "1 owl:imports is not followed: <http://e.org/no>" in check.stderr
