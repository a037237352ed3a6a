"""Files of every syntax, tables and graphs as triples; what is refused, and how."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyoxigraph
import pytest
import rdflib
from hypothesis import given, settings

from corollary.core.dictionary import Dictionary
from corollary.core.terms import text_of
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, RDF, TRIPLE, TYPE, Literal
from corollary.rdf.files import SUFFIXES
from corollary.rdf.formats import read, read_text, write
from corollary.rdf.library import LIBRARY
from corollary.rdf.triples import SAMPLES, Progress, Triples
from tests.rdf.test_tokenizer import statements
from tests.rdf.texts import documents, expected

DATA = Path(__file__).parents[2] / "../shared/data"
TURTLE = '@prefix : <http://e/> .\n:a :p :b , _:x . _:x :q [ :r "é\\n"@EN , 01 ] .\n'

Rows = list[tuple[str, ...]]


def texts(triples: Triples, dictionary: Dictionary) -> Rows:
    return list(zip(*(dictionary.texts(c).to_pylist() for c in triples.columns), strict=True))


def found(*sources: object, **options: object) -> Rows:
    dictionary = Dictionary()
    return texts(read(list(sources), dictionary, **options), dictionary)  # type: ignore[arg-type]


def refusal(*sources: object, **options: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read(list(sources), Dictionary(), **options)  # type: ignore[arg-type]
    return caught.value


def compressed(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data)
    return bytes(pa.compress(data, "zstd", asbytes=True)) if suffix == ".zst" else data


# --- syntaxes ---


@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
@pytest.mark.parametrize("suffix", [name for name, syntax in SUFFIXES.items() if syntax in LIBRARY])
def test_every_suffix(suffix: str, compression: str, tmp_path: Path) -> None:
    format_ = LIBRARY[SUFFIXES[suffix]]
    quads = list(pyoxigraph.parse(TURTLE, pyoxigraph.RdfFormat.TURTLE))
    if not format_.supports_datasets:
        quads = [quad.triple for quad in quads]
    data = pyoxigraph.serialize(quads, format=format_)
    assert data is not None
    path = tmp_path / f"data{suffix}{compression}"
    path.write_bytes(compressed(data, compression))
    rows = found(path)
    assert len(rows) == 5
    assert Counter(row[1] for row in rows) == {
        "<http://e/p>": 2, "<http://e/q>": 1, "<http://e/r>": 2
    }  # fmt: skip
    assert {row[2] for row in rows if row[1] == "<http://e/r>"} == {
        '"é\\n"@en', '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'
    }  # fmt: skip
    blanks = {term for row in rows for term in row if term.startswith("_:")}
    assert len(blanks) == 2
    assert all(blank.startswith("_:d0.") for blank in blanks)


@given(documents(quads=True))
def test_named_graphs_are_dropped_everywhere(text: str) -> None:
    quads = list(pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.N_QUADS))
    data = pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.TRIG)
    assert data is not None
    dictionary = Dictionary()
    rows = statements(read_text(data, dictionary, format="trig"), dictionary)
    plain = [row for row in rows if not re.search(r"_:(\.|[0-9a-f]{28})", " ".join(row))]
    wanted = [row for row in expected(text, "n-quads")
              if not re.search(r"_:[0-9a-f]{28}", " ".join(row))]  # fmt: skip
    assert sorted(plain) == sorted(wanted)


def test_relative_iris_are_resolved_against_the_file(tmp_path: Path) -> None:
    path = tmp_path / "data.ttl"
    path.write_text("<#a> <p> <> .")
    base = path.resolve().as_uri()
    assert found(path) == [(f"<{base}#a>", f"<{tmp_path.resolve().as_uri()}/p>", f"<{base}>")]


def test_owl_may_be_turtle(tmp_path: Path) -> None:
    (tmp_path / "a.owl").write_text("\ufeff" + TURTLE, encoding="utf-8")
    assert len(found(tmp_path / "a.owl")) == 5


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text("\ufeff<urn:s> <urn:p> <urn:o> .\r\n", encoding="utf-8")
    assert found(path) == [("<urn:s>", "<urn:p>", "<urn:o>")]


def test_the_syntax_can_be_told(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text("<urn:s> <urn:p> <urn:o> .\n")
    assert len(found(path, format="n-triples")) == 1


# --- files, folders, patterns ---


def test_folders_and_patterns(tmp_path: Path) -> None:
    for name in ("b.nt", "a.ttl", "sub/c.nq", "sub/.hidden.nt", ".git/d.nt", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"<urn:{name}> <urn:p> <urn:o> .\n")
    named = [row[0].removeprefix("<urn:")[:-1] for row in found(tmp_path)]
    assert named == ["a.ttl", "b.nt", "sub/c.nq"]
    assert len(found(str(tmp_path / "*"))) == 2  # a pattern does not look into folders
    assert len(found(str(tmp_path / "**/*.n?"))) == 2
    assert len(found(tmp_path / "b.nt", str(tmp_path / "*.nt"), tmp_path)) == 3  # each file once


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    missing = refusal(tmp_path / "none.nt")
    assert (missing.code, missing.file) == ("E301", str(tmp_path / "none.nt"))
    assert "No such file" in missing.message
    assert refusal(str(tmp_path / "*.nt")).message == f"no RDF file matches {tmp_path / '*.nt'}"
    assert refusal(tmp_path).message == f"no RDF file in the folder {tmp_path}"
    unknown = refusal(tmp_path / "notes.txt")
    assert unknown.code == "E321"
    assert ".ttl" in (unknown.hint or "")
    assert "turtle" in (refusal(tmp_path, format="turtel").hint or "")
    assert refusal(7).code == "E322"


@pytest.mark.parametrize("suffix", [".nt.gz", ".ttl.gz", ".nt.zst", ".ttl.zst"])
@pytest.mark.parametrize("damage", ["truncated", "plain", "empty"])
def test_damaged_compression(suffix: str, damage: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    text = "".join(f"<urn:{n}> <urn:p> <urn:o> .\n" for n in rng.integers(1 << 60, size=20_000))
    data = compressed(text.encode(), Path(suffix).suffix)
    path = tmp_path / f"a{suffix}"
    path.write_bytes({"truncated": data[: len(data) // 2], "plain": b"text", "empty": b""}[damage])
    error = refusal(path)
    assert (error.code, error.file) == ("E306", str(path))


def test_several_gzip_members(tmp_path: Path) -> None:
    path = tmp_path / "a.nt.gz"
    member = gzip.compress(b"<urn:s> <urn:p> <urn:o> .\n")
    path.write_bytes(member * 3)
    assert len(found(path)) == 3


def test_progress(tmp_path: Path) -> None:
    for name in ("a.nt", "b.ttl"):
        (tmp_path / name).write_text("<urn:s> <urn:p> <urn:o> .\n" * 100)
    told: list[Progress] = []
    found(tmp_path, on_progress=told.append)
    assert [(Path(p.file).name, p.done, p.total) for p in told] == [
        ("a.nt", 2600, 2600), ("b.ttl", 2600, 2600)
    ]  # fmt: skip
    assert [p.statements for p in told] == [100, 200]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_make_no_difference(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corollary.rdf.lines.CHUNK", 1000)
    path = tmp_path / "a.nt"
    lines = [f"<urn:s{n % 97}> <urn:p{n % 7}> _:b{n % 31} ." for n in range(2000)]
    path.write_text("\n".join(lines))
    one, many = Dictionary(), Dictionary()
    assert np.array_equal(
        read(path, one, threads=1).columns, read(path, many, threads=threads).columns
    )
    assert len(one) == len(many) == 97 + 7 + 31
    lines[1500] = "<urn:s> <urn:p> ."
    path.write_text("\n".join(lines))
    assert refusal(path, threads=threads).line == 1501


# --- blank nodes ---


def test_blank_nodes_belong_to_their_document(tmp_path: Path) -> None:
    for name, text in {
        "a.nt": '_:x <urn:p> _:x .\n_:x <urn:p> "\\u0041" .\n',
        "b.nt": "_:x <urn:p> _:x .\n",
        "c.ttl": "_:x <urn:p> _:x , [] , [] .\n",
        "d.ttl": "_:x <urn:p> _:x .\n",
    }.items():
        (tmp_path / name).write_text(text)
    dictionary = Dictionary()
    triples = read(tmp_path, dictionary)
    assert len(set(triples.subject.tolist())) == 4
    assert len(set(triples.subject.tolist() + triples.object.tolist())) == 4 + 2 + 1
    again = read(tmp_path, dictionary)
    assert not set(triples.subject.tolist()) & set(again.subject.tolist())
    # The same files in the same order give the same terms.
    other = Dictionary()
    read(tmp_path, other)
    assert other.texts_from(0).equals(dictionary.texts_from(0).slice(0, len(other)))


# --- mistakes ---

RIGHT = "<urn:s> <urn:p> <urn:o> .\n"
WRONG = {
    "a.nt": (f"{RIGHT}\n<urn:s> <urn:p> 7 .\n{RIGHT}", 3, 17),
    "a.ttl": (f"{RIGHT}<urn:s> <urn:p> <urn:o o> .\n{RIGHT}", 2, 17),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_have_a_place(name: str, tmp_path: Path) -> None:
    text, line, column = WRONG[name]
    path = tmp_path / name
    path.write_text(text)
    dictionary = Dictionary()
    held = read_text("<urn:kept> <urn:p> <urn:o> .", dictionary)
    with pytest.raises(InvalidInput) as caught:
        read(path, dictionary)
    error = caught.value
    assert (error.code, error.file, error.line, error.column) == ("E320", str(path), line, column)
    assert texts(held, dictionary) == [("<urn:kept>", "<urn:p>", "<urn:o>")]
    skipping = read(path, dictionary, on_error="skip")
    assert (len(skipping), skipping.skipped) == (2, 1)
    [sample] = skipping.samples
    assert (sample.file, sample.line) == (str(path), line)
    assert str(sample).startswith(f"{path}:{line}:{column}: ")


def test_mistakes_in_xml_and_json(tmp_path: Path) -> None:
    (tmp_path / "a.rdf").write_text("<rdf:RDF>\n<a></b>")
    (tmp_path / "b.jsonld").write_text('{"@id": "urn:s",\n "urn:p": ]}')
    for name in ("a.rdf", "b.jsonld"):
        error = refusal(tmp_path / name)
        assert (error.code, error.file) == ("E320", str(tmp_path / name))
        assert read(tmp_path / name, Dictionary(), on_error="skip").skipped >= 1


_CUT = {
    ".jsonld": b'{"@graph": [{"@id": "urn:s", "urn:p": ["x", {"@list": [1, 2]}]}]}',
    ".rdf": b'<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY e "x">]>\n<!-- > -->\n'
    b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">\n'
    b'<r:Description r:about="urn:s"><e:p>x &gt; &e;</e:p><e:q r:resource="urn:o"/>\n'
    b'<e:l r:parseType="Literal"><b>c</b></e:l><e:d><![CDATA[</r:RDF>]]></e:d>'
    b"</r:Description></r:RDF>",
}


@pytest.mark.parametrize("suffix", _CUT)
def test_a_document_without_its_end_is_refused(suffix: str, tmp_path: Path) -> None:
    path, whole = tmp_path / f"a{suffix}", _CUT[suffix]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert refusal(path).code == "E320"
        assert read(path, Dictionary(), on_error="skip").skipped == 1
    for data in (whole, whole + b"\n"):
        path.write_bytes(data)
        assert len(found(path)) > 3


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("<urn:s> <urn:p> <urn:o>", "expected a full stop after the object"),
        ('<urn:s> <urn:p> "o', "expected the rest of the statement, found the end"),
        ('"s" <urn:p> <urn:o> .', "expected an IRI or a blank node as subject"),
        ("<urn:s> _:p <urn:o> .", "expected an IRI as predicate"),
        ("<s> <urn:p> <urn:o> .", "expected an IRI in full, with a scheme such as http:"),
        ("<urn:s> <urn:p> <<( <urn:s> <urn:p> <urn:o> )>> .",
         "expected an IRI, a blank node or a literal as object, found a triple"),
    ],
)  # fmt: skip
def test_what_was_expected(line: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_text(line, Dictionary(), format="n-triples")
    assert caught.value.message == said
    assert caught.value.line == 1


def test_only_some_skipped_statements_are_kept() -> None:
    triples = read_text("wrong\n" * 500, Dictionary(), format="n-triples", on_error="skip")
    assert (triples.skipped, len(triples.samples)) == (500, SAMPLES)
    with pytest.raises(ValueError, match="on_error"):
        read([], Dictionary(), on_error="ignore")  # type: ignore[arg-type]


def test_what_is_no_rdf_at_all_is_given_up_soon() -> None:
    # The library finds a mistake in every byte, each in time linear in what follows.
    assert read_text(bytes(300_000), Dictionary(), format="n-triples", on_error="skip").skipped == 1
    assert read_text(bytes(300_000), Dictionary(), format="turtle", on_error="skip").skipped < 5000


# --- tables and graphs ---

CELLS = {
    "subject": ["urn:s", "<urn:s>", "_:b", "urn:é"],
    "predicate": ["urn:p", "<urn:p>", "urn:p", "urn:p"],
    "object": ["_:b", '"a\nb"@en', '"1"^^<urn:d>', "urn:s"],
}
WANTED = [
    ("<urn:s>", "<urn:p>", "_:d0.b"),
    ("<urn:s>", "<urn:p>", '"a\\nb"@en'),
    ("_:d0.b", "<urn:p>", '"1"^^<urn:d>'),
    ("<urn:é>", "<urn:p>", "<urn:s>"),
]


@pytest.mark.parametrize(
    "frame",
    [pa.table(CELLS), pd.DataFrame(CELLS), pl.DataFrame(CELLS), pa.table(CELLS).to_batches()[0],
     pa.table(CELLS).to_reader(), pd.DataFrame(CELLS).astype("category"),
     pa.concat_tables([pa.table(CELLS).slice(0, 1), pa.table(CELLS).slice(1)]),
     pl.DataFrame(CELLS | {"graph": "urn:g"})],
    ids=["arrow", "pandas", "polars", "batch", "reader", "categories", "chunks", "more columns"],
)  # fmt: skip
def test_tables(frame: object) -> None:
    assert sorted(found(frame)) == sorted(WANTED)


@pytest.mark.parametrize("cell", ["<urn:a> <urn:b>", "urn:a> <urn:b", "<urn:a> .#", "", "a b", '"x',
                                  '"x" .', "_:", "_:a _:b", "<urn:a>\n<urn:b>", None])  # fmt: skip
def test_a_cell_is_one_term(cell: str | None) -> None:
    table = pa.table(CELLS)
    for place in range(3):
        cells = table.column(place).to_pylist()
        wrong = table.set_column(place, table.column_names[place], [[*cells[:2], cell, cells[3]]])
        error = refusal(wrong)
        assert (error.code, error.line) == ("E320", 3)
        dictionary = Dictionary()
        triples = read(wrong, dictionary, on_error="skip")
        assert (len(triples), triples.skipped) == (3, 1)
        assert triples.samples[0].line == 3


def test_a_row_is_skipped_once() -> None:
    table = pa.table({name: [cells[0], "a b"] for name, cells in CELLS.items()})
    assert read(table, Dictionary(), on_error="skip").skipped == 1


def test_tables_that_are_none_of_triples() -> None:
    assert refusal(pa.table({"a": ["x"]})).code == "E322"
    error = refusal(pa.table(CELLS | {"object": [1, 2, 3, 4]}))
    assert (error.code, error.message) == ("E322", "expected texts in 'object', found int64")
    assert refusal(pa.table(CELLS | {"predicate": ['"p"'] * 4})).line == 1
    assert found(pa.table(CELLS).slice(0, 0)) == []


def test_graphs_of_rdflib() -> None:
    graph = rdflib.Graph().parse(data=TURTLE, format="turtle")
    rows = found(graph)
    assert len(rows) == 5
    assert ('"é\\n"@en') in {row[2] for row in rows}
    assert len({term for row in rows for term in row if term.startswith("_:d0.")}) == 2
    dataset = rdflib.Dataset()
    s, p = rdflib.URIRef("urn:s"), rdflib.URIRef("urn:p")
    dataset.default_graph.add((s, p, s))
    dataset.graph(rdflib.URIRef("urn:g")).add((s, p, rdflib.Literal(7)))
    assert len(found(dataset)) == 2


# --- writing, and engines ---


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@settings(max_examples=40)
@given(text=documents())
def test_what_is_written_reads_back(
    suffix: str, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"written.nt{suffix}"
    dictionary = Dictionary()
    triples = read_text(text, dictionary, format="n-triples")
    write(path, triples, dictionary)
    other = Dictionary()
    again = read(path, other)
    without = [
        tuple(re.sub(r"_:(d\d+\.)*", "_:", term) for term in row) for row in texts(again, other)
    ]
    assert sorted(without) == sorted(statements(triples, dictionary))
    assert not list(path.parent.glob(".written*"))


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    triples = read_text("<urn:s> <urn:p> <urn:o> .", dictionary := Dictionary())
    with pytest.raises(OperationFailed) as caught:
        write(tmp_path / "none" / "a.nt", triples, dictionary)
    assert caught.value.code == "E401"


def test_triples_as_tables_of_an_engine() -> None:
    dictionary = Dictionary()
    text = "<urn:a> a <urn:C> , <urn:D> ; <urn:p> <urn:b> , <urn:c> . <urn:b> a <urn:C> ."
    triples = read_text(text, dictionary)
    engine = ColumnarEngine(dictionary)
    facts = engine.facts(triples.tables(dictionary))
    assert len(facts) == 5
    members = facts.rows(Predicate(TRIPLE, TYPE, IRI("urn:C")))
    assert [text_of(term) for term in dictionary.terms(members[:, 0].tolist())] == [
        "<urn:a>", "<urn:b>"
    ]  # fmt: skip
    assert len(facts.rows(Predicate(TRIPLE, IRI("urn:p")))) == 2


# --- real files ---


def needs(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"no ../shared/data/{name}")
    return DATA / name


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("lubm/lubm-1.nt.gz", 100_543),
        ("skos/skos-core.nt", 252),
        ("dynamite/base-onto+U0.nt.gz", 100_868),
        ("updates/schemaorg-ttl.final.nt.gz", None),
        ("updates/plant-ontology.final.nt.gz", None),
    ],
)
def test_differential_real_n_triples(name: str, count: int | None) -> None:
    path = needs(name)
    dictionary = Dictionary()
    rows = statements(read(path, dictionary), dictionary)
    data = path.read_bytes()
    wanted = expected(gzip.decompress(data) if path.suffix == ".gz" else data, "n-triples")
    assert sorted(rows) == sorted(wanted)
    if count is not None:
        assert len(set(rows)) == count


@pytest.mark.parametrize("name", ["brick/Brick-1.3.ttl", "lubm/univ-bench.owl"])
def test_real_documents(name: str) -> None:
    path = needs(name)
    rows = found(path)
    format_ = LIBRARY[SUFFIXES[path.suffix]]
    wanted = list(pyoxigraph.parse(path.read_bytes(), format_, base_iri=path.resolve().as_uri()))
    assert len(rows) == len(wanted)
    assert Counter(row[1] for row in rows) == Counter(str(quad.predicate) for quad in wanted)


def test_json_ld_with_a_context() -> None:
    document = {"@context": {"name": "urn:name"}, "@id": "urn:s", "name": "Ada"}
    dictionary = Dictionary()
    triples = read_text(json.dumps(document), dictionary, format="json-ld")
    assert texts(triples, dictionary) == [("<urn:s>", "<urn:name>", '"Ada"')]


_XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"
 xmlns="http://d/"><rdf:Description rdf:about="http://e/a">{}</rdf:Description></rdf:RDF>"""


@pytest.mark.parametrize(
    ("content", "canonical"),
    [
        ("plain", "plain"),
        ("a &amp; b &gt; <![CDATA[<c>]]>", "a &amp; b &gt; &lt;c&gt;"),
        ("<b z='1' a=\"2\"/>", '<b xmlns="http://d/" a="2" z="1"></b>'),
        ('<e:b xmlns=""><c/></e:b>', '<e:b xmlns:e="http://e/"><c></c></e:b>'),
        ("<b x='&#10;&lt;'/>&#13;", '<b xmlns="http://d/" x="&#xA;&lt;"></b>&#xD;'),
        ("<e:b xmlns:e='http://other/'/>", '<e:b xmlns:e="http://other/"></e:b>'),
    ],
)
def test_xml_literals_are_canonical(tmp_path: Path, content: str, canonical: str) -> None:
    path = tmp_path / "literal.rdf"
    path.write_text(_XML.format(f'<e:p rdf:parseType="Literal">{content}</e:p>'), "utf-8")
    dictionary = Dictionary()
    triples = read(path, dictionary)
    (literal,) = dictionary.terms(triples.object.tolist())
    assert literal == Literal(canonical, RDF + "XMLLiteral")


def test_equal_xml_literals_are_one_term(tmp_path: Path) -> None:
    path = tmp_path / "literals.rdf"
    properties = "".join(
        f'<e:p rdf:parseType="Literal">{content}</e:p>'
        for content in ("<b z='1' a='2'/>", '<b a="2" z="1"></b>', "<b\na='2'  z='1' />")
    )
    path.write_text(_XML.format(properties), "utf-8")
    assert len(set(read(path, Dictionary()).object.tolist())) == 1


@pytest.mark.parametrize("syntax", ["turtle", "n-triples", "rdf/xml", "json-ld"])
def test_language_tags_are_in_lower_case(syntax: str) -> None:
    text = {
        "rdf/xml": _XML.format('<e:p xml:lang="EN-us">x</e:p><e:p xml:lang="en-US">x</e:p>'),
        "json-ld": json.dumps(
            {
                "@id": "http://e/a",
                "http://e/p": [{"@value": "x", "@language": tag} for tag in ("EN-us", "en-US")],
            }
        ),
    }.get(syntax, '<http://e/a> <http://e/p> "x"@EN-us .\n<http://e/a> <http://e/p> "x"@en-US .\n')
    dictionary = Dictionary()
    triples = read_text(text, dictionary, format=syntax)
    assert set(dictionary.texts(triples.object).to_pylist()) == {'"x"@en-us'}


@pytest.mark.parametrize("iri", ["urn:\udce7", "urn:a b", 'urn:"', "urn:\\"])
def test_prefixes_that_turtle_cannot_write(iri: str) -> None:
    dictionary = Dictionary()
    prefixes = {"bad": iri, "good": "urn:"}
    assert len(read_text("good:s good:p good:o .", dictionary, prefixes=prefixes)) == 1
    with pytest.raises(InvalidInput, match=r"prefix"):
        read_text("bad:s good:p good:o .", dictionary, prefixes=prefixes)
