"""Language tags are compared without regard to case: a literal is one term wherever it is from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest
import rdflib

from corollary import KnowledgeBase
from corollary.core.dictionary import Dictionary
from corollary.core.terms import canonical, term_of, text_of
from corollary.files.cells import read_cell
from corollary.lang.syntax import IRI, LANG_STRING, Literal

A, P = IRI("http://e/a"), IRI("http://e/p")
_TRIPLE = '<http://e/a> <http://e/p> "x"@{} .'


def _insert(data: Callable[[str], Any]) -> Callable[[KnowledgeBase, str], None]:
    def insert(kb: KnowledgeBase, tag: str) -> None:
        with kb.transaction() as tx:
            tx.insert(data(tag))

    return insert


def _graph(tag: str) -> rdflib.Graph:
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef(A.value), rdflib.URIRef(P.value), rdflib.Literal("x", lang=tag)))
    return graph


def _table(tag: str) -> pa.Table:
    texts = {"subject": text_of(A), "predicate": text_of(P), "object": f'"x"@{tag}'}
    return pa.table({name: [text] for name, text in texts.items()})


WAYS: dict[str, Callable[[KnowledgeBase, str], Any]] = {
    "Turtle": _insert(_TRIPLE.format),
    "rules": _insert(lambda tag: f'[<http://e/a>, <http://e/p>, "x"@{tag}] .'),
    "values": _insert(lambda tag: (A, P, Literal("x", language=tag))),
    "texts": _insert(lambda tag: (text_of(A), text_of(P), f'"x"@{tag}')),
    "pyoxigraph": _insert(
        lambda tag: (ox.NamedNode(A.value), ox.NamedNode(P.value), ox.Literal("x", language=tag))
    ),
    "rdflib": lambda kb, tag: kb.load(_graph(tag)),
    "table": lambda kb, tag: kb.load(_table(tag)),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_literal_has_one_id(way: str) -> None:
    kb = KnowledgeBase()
    for tag in ("EN-us", "en-US", "en-us"):
        WAYS[way](kb, tag)
        assert kb.query(f'ASK {{ <http://e/a> <http://e/p> "x"@{tag.swapcase()} }}') is True
    found: Any = kb.query("SELECT ?o { ?s ?p ?o }")
    assert found.to_pylist() == [{"o": '"x"@en-us'}]
    with kb.transaction() as tx:
        tx.delete(_TRIPLE.format("eN-uS"))
    assert kb.count() == 0


def test_rules_match_and_derive_tags_in_any_case() -> None:
    kb = KnowledgeBase(
        '[?s, <http://e/q>, "y"@DE] :- [?s, <http://e/p>, "x"@EN] .'
        ' [?s, <http://e/r>, ?o] :- [?s, <http://e/q>, ?o], FILTER(?o = "y"@De) .'
    )
    with kb.transaction() as tx:
        tx.insert(_TRIPLE.format("en"))
    assert kb.query('ASK { ?s <http://e/r> "y"@de }') is True
    assert '"y"@de' in str(kb.explain('[<http://e/a>, <http://e/q>, "y"@dE]'))
    plain = KnowledgeBase('p("x"@EN) . p("x"@en) .')
    assert plain.count() == 1


def test_texts_and_cells_are_canonical() -> None:
    mixed = Literal("x", language="EN")
    assert canonical(mixed) == Literal("x", LANG_STRING, "en") == term_of(text_of(mixed))
    assert read_cell('"x"@EN') == canonical(mixed)
    dictionary = Dictionary()
    number = dictionary.id(mixed)
    assert dictionary.find(Literal("x", LANG_STRING, "eN")) == number
    assert dictionary.encode([canonical(mixed), mixed]).tolist() == [number, number]
    assert dictionary.encode_texts(dictionary.texts([number])).tolist() == [number]
    assert len(dictionary) == 1
