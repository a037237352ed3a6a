"""RDFS: W3C's tests of RDF 1.1 Semantics, the RDFS part of the OWL 2 suite, and those of RDF4J."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyoxigraph
import pytest

from benchmarks.report import DATA
from tests.conformance.graphs import case, closure, entails, ignored, read

FOLDER = DATA / "conformance"
RDFBASED = FOLDER / "owl2rl-rdfbased" / "conformance" / "rdfs"
RDF4J = next((FOLDER / "rdf4j-rdfs").rglob("rdf-mt-inferencing"), FOLDER / "rdf4j-rdfs")
W3C = FOLDER / "w3c-rdf-tests" / "rdf" / "rdf11" / "rdf-mt"

for needed in (RDFBASED, RDF4J, W3C):
    if not needed.is_dir():
        pytest.skip(f"the RDFS suites are not here: {needed}", allow_module_level=True)


# -- the RDFS part of the OWL 2 suite ------------------------------------------------------------

_RDFBASED = sorted(folder.name for folder in RDFBASED.iterdir())


@pytest.mark.parametrize("name", [case(name, ignored("rdfbased")) for name in _RDFBASED])
def test_rdfbased(name: str) -> None:
    files = RDFBASED / name / name
    graph = files.with_suffix(".graph.ttl")
    if graph.exists():
        assert closure(read(graph), "rdfs").inconsistencies
        return
    found = closure(read(files.with_suffix(".premisegraph.ttl")), "rdfs")
    assert found.inconsistencies == ()
    assert entails(found.facts, read(files.with_suffix(".conclusiongraph.ttl")))


# -- RDF4J: what stands in -out is entailed, unless it is an error -------------------------------

_RDF4J = sorted(
    str(path.relative_to(RDF4J)).removesuffix("-in.nt") for path in RDF4J.rglob("*-in.nt")
)


@pytest.mark.parametrize("rule_set", ["rdfs", "owl-horst"])
@pytest.mark.parametrize("name", [case(name, ignored("rdf4j")) for name in _RDF4J])
def test_rdf4j(name: str, rule_set: str) -> None:
    found = closure(read(RDF4J / f"{name}-in.nt"), rule_set)
    expected = read(RDF4J / f"{name}-out.nt")
    assert entails(found.facts, expected) == ("error" not in name)


# -- W3C -----------------------------------------------------------------------------------------

_TEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_BASE = "http://manifest/"


class Entailment(NamedTuple):
    """A test of the manifest: whether an action entails a result (None: is inconsistent)."""

    positive: bool
    regime: str
    action: Path
    result: Path | None


def manifest() -> Iterator[tuple[str, Entailment]]:
    store = pyoxigraph.Store()
    store.load(path=W3C / "manifest.ttl", format=pyoxigraph.RdfFormat.TURTLE, base_iri=_BASE)
    query = f"""PREFIX mf: <{_TEST}>
        SELECT ?name ?type ?regime ?action ?result {{
            ?manifest mf:entries/<{_RDF}rest>*/<{_RDF}first> ?test .
            ?test a ?type ; mf:name ?name ; mf:entailmentRegime ?regime ;
                mf:action ?action ; mf:result ?result
        }}"""
    solutions = store.query(query)
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    for row in solutions:
        name, kind, regime, action, result = (term.value for term in row)
        yield (
            name,
            Entailment(
                kind == _TEST + "PositiveEntailmentTest",
                regime,
                W3C / action.removeprefix(_BASE),
                None if result == "false" else W3C / result.removeprefix(_BASE),
            ),
        )


_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_W3C = dict(manifest())


@pytest.mark.parametrize("name", [case(name, ignored("w3c")) for name in sorted(_W3C)])
def test_w3c(name: str) -> None:
    test = _W3C[name]
    graph = read(test.action)
    if test.regime == "simple":
        assert test.result is not None
        assert entails(graph, read(test.result)) == test.positive
        return
    found = closure(graph, "rdfs")
    if test.result is None:
        follows = bool(found.inconsistencies)
    else:
        assert found.inconsistencies == ()
        follows = entails(found.facts, read(test.result), by_value=True)
    assert follows == test.positive


def test_the_suites_are_whole() -> None:
    assert (len(_RDFBASED), len(_RDF4J), len(_W3C)) == (53, 21, 48)
    assert ignored("rdfbased").keys() <= set(_RDFBASED)
    assert ignored("rdf4j").keys() <= set(_RDF4J)
    assert ignored("w3c").keys() <= set(_W3C)
