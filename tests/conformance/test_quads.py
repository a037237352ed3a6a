"""W3C's tests of TriG and N-Quads: syntax and evaluation, with the names of graphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyoxigraph as ox
import pytest

from benchmarks.report import DATA
from corollary import KnowledgeBase
from corollary.core.dictionary import Dictionary
from corollary.errors import InvalidInput
from corollary.rdf import formats
from tests.conformance.graphs import case, ignored

FOLDER = DATA / "conformance" / "w3c-rdf-tests" / "rdf" / "rdf11"
if not FOLDER.is_dir():
    pytest.skip(f"the suites of TriG and N-Quads are not here: {FOLDER}", allow_module_level=True)

_SYNTAXES = {"rdf-trig": "trig", "rdf-n-quads": "n-quads"}
_TEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_BASE = "https://w3c.github.io/rdf-tests/rdf/rdf11"
_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


class Case(NamedTuple):
    """A test of a manifest."""

    kind: str  # Positive, Negative or Eval
    action: Path
    result: Path | None


def _manifest(folder: str) -> Iterator[tuple[str, Case]]:
    store = ox.Store()
    base = f"{_BASE}/{folder}/manifest.ttl"
    text = (FOLDER / folder / "manifest.ttl").read_bytes()
    store.load(text, format=ox.RdfFormat.TURTLE, base_iri=base)
    for quad in store.quads_for_pattern(None, ox.NamedNode(f"{_TEST}action"), None):
        [kind] = store.quads_for_pattern(quad.subject, _TYPE, None)
        found = re.search(r"Positive|Negative|Eval", str(kind.object))
        assert found is not None, "a test is positive, negative, or an evaluation"
        results = store.quads_for_pattern(quad.subject, ox.NamedNode(f"{_TEST}result"), None)
        result = next((_path(one.object) for one in results), None)
        # A negative evaluation is an error of syntax, too.
        name = "Negative" if "Negative" in str(kind.object) else found[0]
        yield (
            f"{folder}/{str(quad.subject).rpartition('#')[2][:-1]}",
            Case(name, _path(quad.object), result),
        )


def _path(node: object) -> Path:
    return FOLDER / str(node)[1:-1].removeprefix(f"{_BASE}/")


CASES = {name: one for folder in _SYNTAXES for name, one in _manifest(folder)}


def _names(kind: str) -> list[object]:
    return [case(name, ignored("quads")) for name, one in CASES.items() if one.kind == kind]


def _read(one: Case) -> KnowledgeBase:
    folder = one.action.parent.name
    kb = KnowledgeBase()
    with kb.transaction() as tx:
        tx.insert(
            formats.read_text(
                one.action.read_bytes(),
                tx.dictionary,
                format=_SYNTAXES[folder],
                base=f"{_BASE}/{folder}/{one.action.name}",
                graphs=True,
            )
        )
    return kb


def test_the_ignored_cases_are_of_this_suite() -> None:
    assert ignored("quads").keys() <= CASES.keys()
    assert len(CASES) > 400


@pytest.mark.parametrize("name", _names("Positive"))
def test_syntax(name: str) -> None:
    _read(CASES[name])


@pytest.mark.parametrize("name", _names("Negative"))
def test_mistakes(name: str) -> None:
    one = CASES[name]
    with pytest.raises(InvalidInput):
        formats.read_text(
            one.action.read_bytes(), Dictionary(), format=_SYNTAXES[one.action.parent.name]
        )


@pytest.mark.parametrize("name", _names("Eval"))
def test_evaluation(name: str) -> None:
    one = CASES[name]
    assert one.result is not None
    text = str(_read(one).serialize("nq"))
    assert _canonical(text.encode()) == _canonical(one.result.read_bytes())


def _canonical(text: bytes) -> set[str]:
    dataset = ox.Dataset(ox.parse(text, format=ox.RdfFormat.N_QUADS))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return {re.sub(r'("@[\w-]+)', lambda tag: tag[1].lower(), str(quad)) for quad in dataset}
