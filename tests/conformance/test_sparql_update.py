"""W3C's tests of SPARQL 1.1 Update: syntax and evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyoxigraph as ox
import pytest

from benchmarks.report import DATA
from corollary import KnowledgeBase
from corollary.errors import InvalidInput
from corollary.query.parse import parse_update
from tests.conformance.graphs import case, ignored

FOLDER = DATA / "conformance" / "w3c-rdf-tests" / "sparql" / "sparql11"
if not FOLDER.is_dir():
    pytest.skip(f"the SPARQL suite is not here: {FOLDER}", allow_module_level=True)

_TEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_UPDATE = "http://www.w3.org/2009/sparql/tests/test-update#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_BASE = "http://suite/"  # what relative IRIs of manifests and data are resolved against

_FOLDERS = (
    *("add", "basic-update", "clear", "copy", "delete", "delete-data", "delete-insert"),
    *("delete-where", "drop", "move", "update-silent", "syntax-update-1", "syntax-update-2"),
)


class State(NamedTuple):
    """The files of a default graph, and of named graphs by name."""

    default: tuple[Path, ...]
    named: tuple[tuple[str, Path], ...]


class Case(NamedTuple):
    """A test of a manifest."""

    kind: str
    request: Path
    before: State
    after: State


def _path(node: Any) -> Path:
    return FOLDER / str(node.value).removeprefix(_BASE)


def _manifest(folder: str) -> Iterator[tuple[str, Case]]:
    store = ox.Store()
    base = f"{_BASE}{folder}/manifest.ttl"
    path = FOLDER / folder / "manifest.ttl"
    store.load(path.read_bytes(), format=ox.RdfFormat.TURTLE, base_iri=base)

    def objects(subject: Any, predicate: str) -> list[Any]:
        found = store.quads_for_pattern(subject, ox.NamedNode(predicate), None)
        return [quad.object for quad in found]

    def state(node: Any) -> State:
        named = []
        for one in objects(node, f"{_UPDATE}graphData"):
            ((label,), (graph,)) = objects(one, _LABEL), objects(one, f"{_UPDATE}graph")
            named.append((label.value, _path(graph)))
        return State(tuple(map(_path, objects(node, f"{_UPDATE}data"))), tuple(named))

    node = objects(ox.NamedNode(base), f"{_TEST}entries")[0]
    while node.value != f"{_RDF}nil":
        (entry,) = objects(node, f"{_RDF}first")
        (node,) = objects(node, f"{_RDF}rest")
        (kind,) = (k.value.removeprefix(_TEST) for k in objects(entry, f"{_RDF}type"))
        (action,) = objects(entry, f"{_TEST}action")
        (*_, result) = [None, *objects(entry, f"{_TEST}result")]
        name = f"{folder}/{entry.value.rpartition('#')[2]}"
        if isinstance(action, ox.BlankNode):
            (request,) = objects(action, f"{_UPDATE}request")
            yield name, Case(kind, _path(request), state(action), state(result))
        else:
            nothing = State((), ())
            yield name, Case(kind, _path(action), nothing, nothing)


CASES = {name: case for folder in _FOLDERS for name, case in _manifest(folder)}


def _names(kind: str) -> list[Any]:
    reasons = ignored("sparql-update")
    return [case(name, reasons) for name, one in CASES.items() if kind in one.kind]


def test_the_ignored_cases_are_of_this_suite() -> None:
    assert ignored("sparql-update").keys() <= CASES.keys()


@pytest.mark.parametrize("name", _names("Positive"))
def test_syntax(name: str) -> None:
    parse_update(CASES[name].request.read_text("utf-8"), {})


@pytest.mark.parametrize("name", _names("Negative"))
def test_mistakes(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_update(CASES[name].request.read_text("utf-8"), {})
    assert caught.value.code == "E560"


@pytest.mark.parametrize("name", _names("UpdateEvaluationTest"))
def test_evaluation(name: str) -> None:
    one = CASES[name]
    kb = KnowledgeBase()
    with kb.transaction() as tx:
        tx.insert(_quads(one.before))
    text = one.request.read_text("utf-8")
    # The suite's patterns outside of GRAPH match the default graph alone.
    base = f"BASE <{_BASE}{one.request.relative_to(FOLDER)}>"
    kb.update(f"{base}\n{text}", default_graph="default")
    assert _canonical(_held(kb)) == _canonical(_quads(one.after))


def _quads(state: State) -> list[ox.Quad]:
    graphs = [(ox.DefaultGraph(), path) for path in state.default]
    graphs += [(ox.NamedNode(name), path) for name, path in state.named]  # type: ignore[misc]
    quads = []
    for graph, path in graphs:
        kind = ox.RdfFormat.from_extension(path.suffix[1:])
        base = f"{_BASE}{path.relative_to(FOLDER)}"
        found = ox.parse(path.read_bytes(), format=kind, base_iri=base)
        quads += [ox.Quad(q.subject, q.predicate, q.object, graph) for q in found]
    return quads


def _held(kb: KnowledgeBase) -> list[ox.Quad]:
    text = kb.serialize("nquads", "explicit")
    assert isinstance(text, str)
    return list(ox.parse(text, format=ox.RdfFormat.N_QUADS))


def _canonical(quads: list[ox.Quad]) -> set[str]:
    dataset = ox.Dataset(quads)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, dataset))
