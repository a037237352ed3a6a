"""Named graphs without a server: documents, bases of relative IRIs, and datasets of requests."""

from __future__ import annotations

from pathlib import Path

import pytest

import corollary as co
from corollary.errors import InvalidInput
from corollary.service.jobs import based, dataset_of
from corollary.service.sparql import checked_iri
from corollary.service.writing import documents

BODY = (
    b'--x\r\nContent-Disposition: form-data; name="a"\r\nContent-Type: text/turtle\r\n\r\n'
    b"<a> <b> <c> .\r\n--x\r\nContent-Type: application/n-triples\r\n\r\n\r\n--x--\r\n"
)


def test_documents_of_a_form() -> None:
    found = [*documents("multipart/form-data; boundary=x", BODY)]
    assert found == [(".ttl", b"<a> <b> <c> ."), (".nt", b"")]
    for media, body in (
        ("multipart/form-data", BODY),
        ("multipart/form-data; boundary=x", b"no parts"),
        ("multipart/form-data; boundary=x", BODY.replace(b"text/turtle", b"image/png")),
    ):
        with pytest.raises(InvalidInput):
            [*documents(media, body)]


@pytest.mark.parametrize("text", ["", "relative", "/path", "urn:a b", "urn:a>", "urn:\u0000"])
def test_names_of_graphs_are_absolute(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked_iri(text)
    assert caught.value.code == "E600"


def test_relative_iris_have_a_base(tmp_path: Path) -> None:
    file = tmp_path / "a.ttl"
    file.write_text("<#s> <p> <> .")
    kb = co.KnowledgeBase()
    with kb.transaction() as tx:
        tx.load(file, base_iri="http://example.org/g")
    assert "[<http://example.org/g#s>, <http://example.org/p>, <http://example.org/g>]" in kb
    query = "ASK { <#s> <p> ?o }"
    assert kb.query(based(query, "http://example.org/g"))
    absolute = "ASK { ?s <urn:p> ?o . FILTER(?s <3 && ?o> 4) }"
    assert based(absolute, "http://example.org/g") == absolute


def test_the_dataset_of_a_request_replaces_that_of_the_query() -> None:
    kb = co.KnowledgeBase()
    with kb.transaction() as tx:
        for name in ("a", "b"):
            tx.insert(f"<urn:{name}> <urn:p> 1 .", graph=f"<urn:{name}>")
    query = "SELECT ?s FROM <urn:b> { ?s <urn:p> 1 }"
    for dataset, name in ((None, "b"), (dataset_of((("urn:a",), ())), "a")):
        found = kb.query(query, dataset=dataset)
        assert not isinstance(found, bool)
        assert found.to_pylist() == [{"s": f"<urn:{name}>"}]
    everywhere = "ASK { GRAPH ?g { <urn:b> <urn:p> 1 } }"
    assert kb.query(everywhere)
    assert not kb.query(everywhere, dataset=dataset_of(((), ("urn:a",))))
    assert dataset_of(None) is None
