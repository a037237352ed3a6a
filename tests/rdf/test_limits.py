"""Limits on documents: what is refused, and what ordinary documents may still do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from corollary.core.dictionary import Dictionary
from corollary.core.inputs import MAX_ITEM_BYTES
from corollary.errors import InvalidInput
from corollary.knowledge_base import KnowledgeBase
from corollary.rdf import formats, guard, scan
from corollary.rdf.patch import read_patch
from corollary.rdf.splits import PartReader, Split
from tests.hostile import bomb

XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">'
    "<rdf:Description><e:p>{}</e:p></rdf:Description></rdf:RDF>"
)


def read(text: str, format_: str = "turtle") -> list[str]:
    """The objects of a text."""
    dictionary = Dictionary()
    found = formats.read_text(text, dictionary, format=format_)
    objects: list[str] = dictionary.texts(found.object).to_pylist()
    return objects


def refused(text: str, format_: str = "turtle") -> str:
    """The code with which a text is refused."""
    with pytest.raises(InvalidInput) as caught:
        read(text, format_)
    return caught.value.code


def entities(*declarations: str, name: str = "DOCTYPE") -> str:
    return f"<!{name} rdf:RDF [ {' '.join(declarations)} ]>"


def test_short_entities_are_expanded() -> None:
    doctype = entities(
        '<!ENTITY owl "http://www.w3.org/2002/07/owl#">',
        '<!ENTITY enc "http://e.org/%C3%A9/">',
        '<!ENTITY uml "&#228;&#xe4;&amp;">',
    )
    assert read(doctype + XML.format("&owl;Thing"), "rdf/xml") == [
        '"http://www.w3.org/2002/07/owl#Thing"'
    ]
    assert read(doctype + XML.format("&uml;"), "rdf/xml") == ['"ää&"']


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "&b;&b;">',
        '<!ENTITY % a "x">',
        '<!ENTITY a "%b;">',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
        '<!ENTITY a "' + "x" * (guard.MAX_ENTITY + 1) + '">',
        '<!entity a "x">',
    ],
)
def test_other_entities_are_refused(declaration: str) -> None:
    assert refused(entities(declaration) + XML.format("&a;"), "rdf/xml") == "E323"


def test_entities_are_found_wherever_they_are_declared(tmp_path: Path) -> None:
    bad = entities('<!ENTITY b "ha">', '<!ENTITY a "&b;">', name="doctype")
    assert refused(XML.format("x").replace("<rdf:Desc", bad + "<rdf:Desc", 1), "rdf/xml") == "E323"
    # At every place relative to the border between two blocks of the file.
    for shift in range(-70, 10):
        path = tmp_path / "late.rdf"
        path.write_text("<!--" + "x" * ((1 << 18) + shift - 7) + "-->" + bad + XML.format("&a;"))
        with pytest.raises(InvalidInput) as caught:
            formats.read(path, Dictionary())
        assert caught.value.code == "E323", shift


def test_many_references_to_an_entity_are_refused() -> None:
    doctype = entities('<!ENTITY a "' + "x" * 1000 + '">')
    assert len(read(doctype + XML.format("&a;" * 100), "rdf/xml")[0]) == 100_002
    assert refused(doctype + XML.format("&a;" * 20_000), "rdf/xml") == "E324"
    elements = "</e:p><e:p>".join(["&a;" * 1000] * 100)
    assert refused(doctype + XML.format(elements), "rdf/xml") == "E327"


@pytest.mark.parametrize("depth", [scan.MAX_NESTING - 10, scan.MAX_NESTING + 10])
def test_nesting(depth: int) -> None:
    for text, format_ in (
        ("<a:a> <a:p> " + "(" * depth + ")" * depth + " .", "turtle"),
        ("<a:a> <a:p> " + "[ <a:p> " * depth + "1" + "]" * depth + " .", "turtle"),
        ("{ <a:a> <a:p> " + "(" * depth + ")" * depth + " }", "trig"),
        (XML.format("<e:C><e:p>" * (depth // 2) + "</e:p></e:C>" * (depth // 2)), "rdf/xml"),
    ):
        if depth < scan.MAX_NESTING:
            assert read(text, format_)
        else:
            assert refused(text, format_) == "E325"


def test_brackets_in_strings_and_iris_do_not_nest() -> None:
    many = "(" * 5000
    text = (
        f"""<a:a> <a:p> "{many}", '''{many}''', '{many}\\'', \"\"\"{many}\\\"\"\"\" . # {many}\n"""
    )
    assert len(read(text)) == 4
    assert len(read(f"@prefix e: <a:> . <a:{many}> e:b\\( e:c .")) == 1


@pytest.mark.parametrize("format_", ["turtle", "n-triples"])
def test_triple_terms_nest_to_a_limit(format_: str) -> None:
    text = "<a:a> <a:p> " + "<<( <a:s> <a:p> " * 30_000 + "<a:o>" + " )>>" * 30_000 + " .\n"
    assert refused(text, format_) == "E325"


def test_json_nests_less() -> None:
    def nested(depth: int) -> str:
        return '{"a:p":' * depth + "1" + "}" * depth

    assert len(read(nested(scan.MAX_NESTING_JSON), "json-ld")) == scan.MAX_NESTING_JSON
    assert refused(nested(scan.MAX_NESTING_JSON + 1), "json-ld") == "E325"
    contexts = '{"\\u0040context":{"a":"a:a"},"a":' * 20 + "1" + "}" * 20
    assert refused(contexts, "json-ld") == "E325"
    assert read('{"a:p": "' + "[{" * 500 + '"}', "json-ld") == ['"' + "[{" * 500 + '"']


def test_namespaces_are_short() -> None:
    long = "http://e.org/" + "x" * scan.MAX_NAMESPACE
    for text in (
        f"@prefix p: <{long}> . p:a p:b p:c .",
        f"@prefix p: # a comment\n <{long}> . p:a p:b p:c .",
        f"@base <{long}> . <a> <b> <c> .",
        f"<a:a> <a:b> <a:c> .BASE\n<{long}>\n<a> <b> <c> .",
    ):
        assert refused(text) == "E327", text[:40]
    assert read(f"@prefix ex: <a:> . ex:base ex:database <{long}> .") == [f"<{long}>"]
    base = XML.replace("<rdf:RDF ", f'<rdf:RDF xml:base="{long}" ').format("x")
    assert refused(base, "rdf/xml") == "E327"
    assert refused('{"@context":{"@vocab":"' + long + '"},"a":1}', "json-ld") == "E327"


def test_long_terms_and_lines(tmp_path: Path) -> None:
    literal = '"' + "x" * MAX_ITEM_BYTES + '"'
    assert refused(f"<a:a> <a:p> {literal} .") == "E324"
    assert refused(XML.format(literal), "rdf/xml") == "E324"
    assert refused('{"a:p":' + literal + "}", "json-ld") == "E324"
    path = tmp_path / "long.nt"
    path.write_text(f"<a:a> <a:p> <a:b> .\n<a:a> <a:p> {literal} .\n")
    for threads in (1, 2):
        with pytest.raises(InvalidInput) as caught:
            formats.read(path, Dictionary(), threads=threads)
        assert (caught.value.code, caught.value.line) == ("E324", 2)


@pytest.mark.long
@pytest.mark.parametrize("name", ["data.nt.gz", "data.ttl.gz", "edge.facts.gz", "edge.csv.gz"])
def test_bombs_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(bomb())
    with pytest.raises(InvalidInput) as caught:
        KnowledgeBase("path(?x, ?y) :- edge(?x, ?y) .").load(path)
    assert caught.value.code == ("E324" if ".ttl" in name else "E326")


def test_a_patch_that_is_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "changes.rdfp.gz"
    path.write_bytes(bomb())
    with pytest.raises(InvalidInput) as caught:
        list(read_patch(path, Dictionary(), limit_input_bytes=1 << 20))
    assert caught.value.code == "E326"


@pytest.mark.parametrize("suffix", [".nt", ".nt.gz", ".ttl", ".facts", ".facts.gz", ".rdfp"])
def test_the_limit_on_input_bytes(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"edge{suffix}"
    line = {".fa": b"a\tb\n", ".rd": b"A <a:a> <a:p> <a:b> .\n"}.get(
        suffix[:3], b"<a:a> <a:p> <a:b> .\n"
    )
    data = line * 1000
    path.write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)

    def load(limit: int) -> None:
        if suffix == ".rdfp":
            list(read_patch(path, Dictionary(), limit_input_bytes=limit))
        else:
            KnowledgeBase().load(path, limit_input_bytes=limit)
        if suffix.startswith(".nt"):  # as the tasks of Spark read it
            part = PartReader(limit=limit).files([Split(str(path), "n-triples", "d0.")])
            if part.error is not None:
                raise part.error

    load(len(data))
    with pytest.raises(InvalidInput) as caught:
        load(len(data) - 1)
    assert caught.value.code == "E326"
