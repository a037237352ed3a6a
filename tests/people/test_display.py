"""What notebooks show: HTML and SVG that need neither JavaScript nor a network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from corollary import KnowledgeBase, Program
from corollary.query.results import Solutions, TripleTable
from tests.cli.calls import call

SVG = "{http://www.w3.org/2000/svg}"
DATA = """
@prefix : <http://example.org/> .
:Cat rdfs:subClassOf :Pet . :Pet rdfs:subClassOf :Animal . :Cat owl:disjointWith :Dog .
:tom a :Cat ; :name "<b>Tom</b> & co" .
"""


@pytest.fixture
def kb() -> KnowledgeBase:
    base = KnowledgeBase("owl-rl")
    base.insert(DATA)
    return base


def parsed(html: str) -> ElementTree.Element:
    """Parse HTML that is well-formed XML, and check that it is passive."""
    for active in ("<script", "javascript:", "onclick", "href=", "src="):
        assert active not in html
    return ElementTree.fromstring(f"<root>{html}</root>")


def text_of(html: str) -> str:
    return "".join(parsed(html).itertext())


def test_everything_has_a_display(kb: KnowledgeBase, tmp_path: Path) -> None:
    changes = kb.insert("@prefix : <http://example.org/> . :rex a :Dog .")
    kb.insert("@prefix : <http://example.org/> . :rex a :Cat .")
    kb.save(tmp_path / "pets.store")
    kb.insert("@prefix : <http://example.org/> . :max a :Dog .")
    shown: dict[str, Any] = {
        "rules": kb,
        "tom": kb.query("SELECT ?x { ?x a :Cat }"),
        "[:rex, a, :Dog]": changes,
        "[:max, a, :Dog]": kb.diff(1),
        "cax-dw": kb.check().contradictions[0],
        "contradicted": kb.check(),
        "cax-sco": kb.why_not(":max a :Animal"),
        "SELECT": kb.explain_query("SELECT ?x { ?x a :Cat }"),
    }
    for expected, value in shown.items():
        assert expected in text_of(value._repr_html_())
    hybrid = KnowledgeBase("q(?x) :- p(?x) . p(1) .", mode="hybrid")
    assert "look-up" in text_of(hybrid.explain_plan("q(1)")._repr_html_())


def test_text_stays_as_it_is(kb: KnowledgeBase) -> None:
    assert repr(kb.query("SELECT ?x { ?x a :Cat }")) == "<Solutions: 1 of ?x>"
    assert str(kb.explain(":tom a :Pet")).startswith("[:tom, a, :Pet]   by [cax-sco]")
    assert isinstance(kb.explain_query("SELECT ?x { ?x a :Cat }"), str)


def test_proofs_are_pictures(kb: KnowledgeBase) -> None:
    svg = kb.explain(":tom a :Animal").to_svg()
    assert svg == kb.explain(":tom a :Animal")._repr_svg_()
    root = parsed(svg)[0]
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert {"[:tom, a, :Animal]", "[:tom, a, :Cat]", "explicit"} <= {*texts}
    assert len(list(root.iter(f"{SVG}rect"))) == kb.explain(":tom a :Animal").size
    assert len(list(root.iter(f"{SVG}path"))) == len(list(root.iter(f"{SVG}rect"))) - 1


def test_markup_in_data_is_text(kb: KnowledgeBase) -> None:
    answer: Any = kb.query("SELECT ?n { ?x :name ?n }")
    assert "<b>Tom</b> & co" in text_of(answer._repr_html_())
    proof = kb.explain((":tom", ":name", '"<b>Tom</b> & co"')).to_svg()
    assert "<b>Tom</b>" in text_of(proof)


def test_schema_is_a_picture(kb: KnowledgeBase) -> None:
    svg = kb.schema().to_svg()
    texts = ["".join(text.itertext()) for text in parsed(svg).iter(f"{SVG}text")]
    assert {"classes", ":Animal", ":Cat"} <= {*texts}
    assert kb.schema()._repr_svg_() == svg


def test_what_is_missing_and_plans_are_pictures(kb: KnowledgeBase) -> None:
    missing = kb.why_not(":max a :Animal")
    svg = parsed(missing.to_svg())
    texts = ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")]
    assert {"[:max, a, :Animal]", "is missing", "holds"} <= {*texts}
    assert repr(missing).startswith("<WhyNot of [:max, a, :Animal]: ")
    hybrid = KnowledgeBase("q(?x) :- p(?x) . r(?x) :- q(?x) . p(1) .", mode="hybrid")
    plan = hybrid.explain_plan("r(?x)")
    root = parsed(plan.to_svg())
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert texts[0] == "r(?x)"
    assert "by r(?x) :- q(?x)" in texts
    assert "look-up, 1 fact" in texts
    assert repr(plan) == "<Tree of r(?x): 1 leaf>"


def test_values_are_short_in_terminals(kb: KnowledgeBase) -> None:
    kb.insert(":rex a :Dog, :Cat . :Lion rdfs:subClassOf :Cat, :Dog")
    report = kb.check()
    values = [report, report.contradictions[0], kb.schema(), kb.why_not(":a a :Pet", limit=4)]
    assert [repr(value) for value in values] == [
        "<CheckReport: inconsistent, 2 findings>",
        "<Inconsistency: cax-dw, 1>",
        "<Schema: 5 classes, 1 properties>",
        "<WhyNot of [:a, a, :Pet]: 4 ways>",
    ]
    shown = parsed(report._repr_html_())
    assert len(list(shown.iter(f"{SVG}svg"))) == 2  # one of them of the class without members


def test_the_own_vocabulary_comes_first(kb: KnowledgeBase) -> None:
    rows = [row.itertext() for row in parsed(kb._repr_html_()).iter("tr")]
    names = [next(iter(texts), "") for texts in rows]
    assert names.index("a :Cat") < names.index("owl:sameAs")


def test_rows_between_trivial_ones_are_found() -> None:
    owl = "<http://www.w3.org/2002/07/owl#sameAs>"
    predicates = [owl] * 1500 + ["<urn:p>"] * 100 + [owl] * 3000
    triples = {"subject": ["<urn:a>"] * 4600, "predicate": predicates, "object": ["<urn:a>"] * 4600}
    html = TripleTable(pa.table(triples))._repr_html_()
    assert html.count("<tr>") == 21
    assert "20 of 4,600 rows" in text_of(html)


def test_datatypes_of_literals_are_trivial(kb: KnowledgeBase) -> None:
    changes = kb.insert(":tom :age 7")
    assert len(changes) > 2
    assert "[:tom, :age, 7]" in text_of(changes._repr_html_())
    assert "xsd:integer" not in text_of(changes._repr_html_())


def test_previews_show_contradictions(kb: KnowledgeBase) -> None:
    with kb.transaction() as tx:
        tx.insert(":tom a :Dog")
        preview = tx.preview()
        tx.rollback()
    assert "cax-dw is contradicted" in text_of(preview._repr_html_())


def test_large_answers_say_what_they_leave_out() -> None:
    html = Solutions(pa.table({"x": pa.nulls(10_000_000, pa.string())}))._repr_html_()
    assert "20 of 10,000,000 rows" in text_of(html)
    assert html.count("<tr>") == 21


def test_trivial_triples_are_passed_over(kb: KnowledgeBase) -> None:
    table = kb.match(None, "owl:sameAs", None)
    assert len(table) > 5
    assert f"0 of {len(table):,} rows; {len(table):,} trivial" in text_of(table._repr_html_())
    changes = kb.insert("@prefix : <http://example.org/> . :ann a :Owner .")
    html = text_of(changes._repr_html_())
    assert "[:ann, a, :Owner]" in html
    assert "owl:sameAs" not in html
    assert "trivial ones are not shown" in html
    assert str(changes).splitlines() == [
        "+ [:ann, a, :Owner]",
        "… 2 trivial changes are not shown; .lines() has them",
    ]
    assert sum("owl:sameAs" in line for line in changes.lines()) == 2
    assert len(changes.lines()) == len(changes) == 3


def test_a_program_shows_its_beginning(kb: KnowledgeBase) -> None:
    html = kb.program._repr_html_()
    assert "more lines" in html
    assert html.count("\n") == 40
    assert Program.parse("p(?x) :- q(?x), FILTER(?x < 3) .")._repr_html_() == (
        "<pre>p(?x) :- q(?x), FILTER(?x &lt; 3) .</pre>"
    )


def test_displays_take_the_colors_of_the_page(kb: KnowledgeBase) -> None:
    """Muted text and lines are legible on light and on dark pages."""
    shown = kb._repr_html_() + kb.match()._repr_html_() + kb.schema().to_svg()
    assert "opacity:.7" in shown
    assert 'fill="currentColor"' in shown
    assert not re.search(r"(color:|border[^;]*|<text[^>]*fill=\")#", shown)


def test_long_cells_are_cut() -> None:
    text = '"' + "x" * 500 + '"'
    triple = {"subject": ["<urn:s>"], "predicate": ["<urn:p>"], "object": [text]}
    html = TripleTable(pa.table(triple))._repr_html_()
    assert "x" * 200 not in text_of(html)
    assert "…" in text_of(html)


def test_high_proofs_are_cut() -> None:
    kb = KnowledgeBase("p(?y) :- p(?x), e(?x, ?y) . p(0) .")
    kb.insert([(n, n + 1) for n in range(600)], relation="e")
    root = parsed(kb.explain("p(600)").to_svg())
    assert "more steps" in "".join(root.itertext())


def test_trivial_changes_on_screen_only_if_asked_for(kb: KnowledgeBase, tmp_path: Path) -> None:
    store = tmp_path / "pets.store"
    kb.save(store)
    kb.insert("@prefix : <http://example.org/> . :ann a :Owner .")
    done = call("diff", store, "1")
    assert done.stdout == "+ [:ann, a, :Owner]\n"
    assert "2 trivial changes are not shown" in done.stderr
    everything = call("diff", store, "1", "--trivial").stdout.splitlines()
    assert len(everything) == 3
    out = tmp_path / "changes.txt"
    call("diff", store, "1", "--out", out)
    assert out.read_text("utf-8").splitlines() == everything
    assert json.loads(call("diff", store, "1", "--json").stdout)["inserted"] == 3


def test_trivial_changes_of_updates_on_screen_only_if_asked_for(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    store = tmp_path / "pets.store"
    kb.save(store)
    (tmp_path / "more.ttl").write_text("@prefix : <http://example.org/> . :ann a :Owner .", "utf-8")
    insert = ("update", store, "--insert", tmp_path / "more.ttl")
    for flags in (["--dry-run"], ["--changes", "-"]):
        every = call(*insert, *flags, "--trivial").stdout.splitlines()
        assert len([line for line in every if "owl:sameAs" in line]) == 2
        call("revert", store, "--to", "1")
        shown = call(*insert, *flags)
        assert shown.stdout == "+ [:ann, a, :Owner]\n"
        assert "2 trivial changes are not shown; --trivial shows them" in shown.stderr
        call("revert", store, "--to", "1")
        exact = json.loads(call(*insert, *flags, "--json").stdout)
        assert (exact["inserted"], exact["changes"]) == (3, every)
        if flags[0] == "--changes":
            undone = call("revert", store, "--to", "1", *flags)
            assert undone.stdout == "- [:ann, a, :Owner]\n"
            call(*insert, "--changes", tmp_path / "changes.txt")
            assert (tmp_path / "changes.txt").read_text("utf-8").splitlines() == every


def test_asserted_facts_are_shown_in_notebooks_even_if_trivial(kb: KnowledgeBase) -> None:
    changes = kb.insert("@prefix owl: <http://www.w3.org/2002/07/owl#> . <urn:c> a owl:Thing .")
    assert "[<urn:c>, a, owl:Thing]" in text_of(changes._repr_html_())
    assert "[<urn:c>, a, owl:Thing]" in str(changes)


def test_changes_on_screen_show_what_was_asserted_and_no_unnamed_classes(tmp_path: Path) -> None:
    kb = KnowledgeBase("owl-rl")
    kb.insert("@prefix : <urn:> . :ann :p :b .")
    kb.save(tmp_path / "s")
    kb.insert(
        "@prefix : <urn:> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
        " [] a owl:Restriction ; owl:onProperty :p ; owl:hasValue :b . :c a owl:Thing ; :p :b ."
    )
    shown = call("diff", tmp_path / "s", "1", "--quiet").stdout.splitlines()
    assert "+ [:c, a, owl:Thing]" in shown
    assert not [line for line in shown if re.match(r"\+ \[:(ann|c), a, _:", line)]
    every = call("diff", tmp_path / "s", "1", "--quiet", "--trivial").stdout.splitlines()
    assert len([line for line in every if re.match(r"\+ \[:(ann|c), a, _:", line)]) == 2
