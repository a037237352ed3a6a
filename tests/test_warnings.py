"""Warnings: input that has no effect gives one warning of its kind for each load or commit."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest

from corollary.cli.main import main
from corollary.core.dictionary import Dictionary
from corollary.core.notices import Notices, gathering
from corollary.errors import WARNINGS, CorollaryWarning
from corollary.knowledge_base import KnowledgeBase
from corollary.rdf import formats
from corollary.rdf.rulesets import rules

OWL = "http://www.w3.org/2002/07/owl#"
SUMS = "total(?g, ?t) :- AGGREGATE(cost(?g, ?c) ON ?g BIND sum(?c) AS ?t) ."


def warned(code: str, action: object, *, count: int) -> CorollaryWarning:
    """The only warning of an action."""
    assert callable(action)
    with pytest.warns(CorollaryWarning) as caught:
        action()
    [warning] = (w.message for w in caught if isinstance(w.message, CorollaryWarning))
    assert (warning.code, warning.count) == (code, count)
    return warning


def test_every_warning_is_documented() -> None:
    page = Path(__file__).parent.parent / "docs" / "warnings.md"
    sections = re.findall(r"^## (W\d+): (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(sections) == WARNINGS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.nq", "<a:a> <a:p> <a:b> <a:g> .\n<a:a> <a:p> <a:c> .\n<a:b> <a:p> 'x' _:g .\n"),
        ("a.trig", "<a:g> { <a:a> <a:p> <a:b>, <a:c> } { <a:a> <a:p> <a:d> }"),
        ("a.jsonld", '{"@id": "a:g", "@graph": [{"@id": "a:a", "a:p": [1, 2]}]}'),
    ],
)
def test_named_graphs(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text.replace("'", '"') if name == "a.nq" else text)
    kb = KnowledgeBase()
    kb.load(path)
    assert kb.count("quads") == 2  # knowledge bases keep them apart
    warning = warned("W101", lambda: _merged(path), count=2)
    assert warning.file == str(path)


def _merged(path: Path) -> None:
    notices = Notices()
    with gathering(notices):
        formats.read(path, Dictionary())
    notices.warn()


def test_default_graphs_give_no_warning(tmp_path: Path) -> None:
    (tmp_path / "a.nq").write_text("<a:a> <a:p> <a:b> .\n")
    (tmp_path / "a.trig").write_text("{ <a:a> <a:p> <a:d> } <a:a> <a:p> <a:e> .")
    KnowledgeBase().load(tmp_path)


def test_imports(tmp_path: Path) -> None:
    text = f"<a:one> a <{OWL}Ontology> ; <{OWL}imports> <a:two> ."
    kb = KnowledgeBase(rules("owl-rl"))

    def insert() -> None:
        with kb.transaction() as tx:
            tx.insert(text)

    assert "a:two" in warned("W102", insert, count=1).message
    known = KnowledgeBase(rules("owl-rl"))
    with known.transaction() as tx:
        tx.insert(f"<a:two> a <{OWL}Ontology> .")
    with known.transaction() as tx:
        tx.insert(text)


def test_axioms_outside_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "ontology.ttl"
    path.write_text(
        f"@prefix owl: <{OWL}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        "<a:O> a owl:Ontology ; owl:versionInfo '1' ; rdfs:label 'x' ; rdfs:seeAlso <a:x> .\n"
        "<a:C> a owl:Class ; rdfs:subClassOf [ a owl:Restriction ; owl:onProperty <a:p> ;\n"
        "  owl:someValuesFrom <a:D> ], [ a owl:Restriction ; owl:onProperty <a:p> ;\n"
        "  owl:hasSelf true ] .\n"
        "<a:p> a owl:ObjectProperty, owl:TransitiveProperty .\n"
    )
    with_rdfs = warned("W103", lambda: KnowledgeBase(rules("rdfs")).load(path), count=3)
    for term in ("owl:someValuesFrom 1", "owl:hasSelf 1", "owl:TransitiveProperty 1"):
        assert term in with_rdfs.message
    with_owl = warned("W103", lambda: KnowledgeBase(rules("owl-rl")).load(path), count=1)
    assert "owl:hasSelf 1" in with_owl.message
    KnowledgeBase("[?x, <a:q>, ?y] :- [?x, <a:p>, ?y] .").load(path)  # not about ontologies


def test_groups_without_a_result() -> None:
    kb = KnowledgeBase(SUMS)

    def insert() -> None:
        with kb.transaction() as tx:
            tx.insert('cost(a, 1) . cost(a, "n/a") . cost(b, 2) . cost(c, "?") .')

    warned("W104", insert, count=2)
    assert kb.facts("total").to_pydict()["arg0"] == ["b"]
    with kb.transaction() as tx:  # other groups are evaluated without a word
        tx.insert("cost(b, 3) .")
    warned("W104", lambda: KnowledgeBase(SUMS + 'cost(a, "x") .'), count=1)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("name,age\nann,3\nbob,4\n", True),
        ("source,target\nann,bob\nbob,cat\n", True),
        ("ann,3\nbob,4\n", False),
        ("ann,bob\nbob,cat\n", False),
        ("name,age\n", False),
        ("1,2\n3,4\n", False),
        ("x,1\nx,2\n", False),
    ],
)
def test_headers(text: str, header: bool, tmp_path: Path) -> None:
    path = tmp_path / "edge.csv"
    path.write_text(text)
    kb = KnowledgeBase()
    if header:
        warning = warned("W105", lambda: kb.load(path), count=1)
        assert warning.file == str(path)
    else:
        kb.load(path)
    assert kb.count() == len(text.splitlines())


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "a.nq"
    data.write_text("<a:a> <a:p> <a:b> <a:g> .\n")
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "cost.csv").write_text("name,cost\na,1\nb,2\n")
    program = tmp_path / "sums.dl"
    program.write_text(SUMS)
    arguments = ["run", str(program), "--data", str(data), "--facts", str(tmp_path / "facts")]
    assert main([*arguments, "--json"]) == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert [found["code"] for found in report["warnings"]] == ["W101", "W104", "W105"]
    assert len(re.findall(r"^warning: W10[145]: ", shown.err, re.MULTILINE)) == 3
    store, cost = str(tmp_path / "store"), str(tmp_path / "facts" / "cost.csv")
    assert main(["build", store, str(data), cost, "--engine", "columnar", "--json"]) == 0
    assert [w["code"] for w in json.loads(capsys.readouterr().out)["warnings"]] == ["W105"]
    assert main(["update", store, "--insert", cost, "--quiet"]) == 0
    assert "warning: W105: 1 table" in capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.slow
def test_spark(tmp_path: Path, spark: object) -> None:
    from corollary import spark as pipeline

    (tmp_path / "a.nq").write_text("<a:a> <a:p> <a:b> <a:g> .\n<a:a> <a:p> <a:c> .\n")
    (tmp_path / "o.ttl").write_text(
        f"<a:O> a <{OWL}Ontology> ; <{OWL}imports> <a:o2> . <a:C> <{OWL}hasSelf> true ."
    )
    (tmp_path / "cost.csv").write_text("name,cost\na,1\nb,2\n")
    (tmp_path / "sums.dl").write_text(SUMS)
    sources = [str(tmp_path / name) for name in ("a.nq", "o.ttl", "cost.csv", "sums.dl")]
    with pytest.warns(CorollaryWarning) as caught:
        built = pipeline.build(
            tmp_path / "store",
            sources,
            rules="rdfs",
            session=spark,  # type: ignore[arg-type]
        )
    codes = {w.message.code: w.message.count for w in caught
             if isinstance(w.message, CorollaryWarning)}  # fmt: skip
    assert codes == {"W102": 1, "W103": 1, "W104": 1, "W105": 1}
    assert built.version == 1


@pytest.mark.parametrize(
    ("rules", "cycle"),
    [
        (
            "n(?y) :- m(?x), BIND(?x + 1 AS ?y) . m(?x) :- n(?x) .",
            "argument 1 of n → argument 1 of m → argument 1 of n",
        ),
        (
            "n(?y, ?z) :- n(?x, ?z), BIND(STR(?x) AS ?w), BIND(CONCAT(?w, ?w) AS ?y) .",
            "argument 1 of n → argument 1 of n",
        ),
        ("[?x, <p>, ?z] :- [?x, <p>, ?y], BIND(?y * 2 AS ?z) .", "object of <p> → object of <p>"),
        (
            "[?z, <made>, ?x] :- [?x, ?p, ?y], BIND(SKOLEM('s', ?x) AS ?z) .",
            "subject of <made> → subject of triples → subject of <made>",
        ),
    ],
)
def test_computed_recursion(rules: str, cycle: str) -> None:
    """A new program and an added rule warn of values that may have no end, with the cycle."""
    warning = warned("W110", lambda: KnowledgeBase(rules), count=1)
    assert cycle in str(warning)
    kb = KnowledgeBase()

    def add() -> None:
        with kb.transaction() as transaction:
            transaction.add_rules(rules)

    assert cycle in str(warned("W110", add, count=1))


@pytest.mark.parametrize(
    "rules",
    [
        "n(?y) :- n(?x), BIND(?x + 1 AS ?y), FILTER(?y < 10) .",
        "n(?y) :- m(?x), BIND(?x + 1 AS ?y) .",
        "n(?y) :- n(?x), BIND(?x > 1 AS ?y) .",
        "n(?y) :- n(?x), BIND(?x AS ?y) .",
        "n(?x) :- n(?x), BIND(?x + 1 AS ?y), m(?y) . m(1) .",
        "[?x, <double>, ?z] :- [?x, <single>, ?y], BIND(?y * 2 AS ?z) .",
    ],
)
def test_no_warning_of_recursion_that_ends(rules: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CorollaryWarning)
        KnowledgeBase(rules)
