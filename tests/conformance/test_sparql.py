"""W3C's tests of SPARQL 1.1: query evaluation, syntax, and result formats."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyoxigraph as ox
import pytest

from benchmarks.report import DATA
from corollary import KnowledgeBase
from corollary.core.terms import term_of, text_of
from corollary.errors import InvalidInput
from corollary.lang.operands import literal_number
from corollary.lang.syntax import BlankNode, Literal
from corollary.lang.xsd import NUMERIC
from corollary.query.parse import parse
from corollary.query.results import Solutions, TripleTable
from corollary.query.write import encoded
from tests.conformance.graphs import case, ignored

FOLDER = DATA / "conformance" / "w3c-rdf-tests" / "sparql" / "sparql11"
if not FOLDER.is_dir():
    pytest.skip(f"the SPARQL suite is not here: {FOLDER}", allow_module_level=True)

_TEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QUERY = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_SETS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_BASE = "http://suite/"  # what relative IRIs of manifests and data are resolved against
_ENTAILMENT = "http://www.w3.org/ns/sparql-service-description#entailmentRegime"


class Case(NamedTuple):
    """A test of a manifest."""

    kind: str
    query: Path
    data: tuple[Path, ...]
    named: tuple[Path, ...]
    result: Path | None


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

    node = objects(ox.NamedNode(base), f"{_TEST}entries")[0]
    while node.value != f"{_RDF}nil":
        (entry,) = objects(node, f"{_RDF}first")
        (node,) = objects(node, f"{_RDF}rest")
        kinds = [k.value.removeprefix(_TEST) for k in objects(entry, f"{_RDF}type")]
        (action,) = objects(entry, f"{_TEST}action")
        query, data, named = action, [], []
        if isinstance(action, ox.BlankNode):
            found = objects(action, f"{_QUERY}query")
            if not found:
                continue  # an update
            query = found[0]
            data = objects(action, f"{_QUERY}data")
            named = objects(action, f"{_QUERY}graphData")
            if objects(action, f"{_QUERY}serviceData"):
                continue  # asks another endpoint
        result = objects(entry, f"{_TEST}result")
        name = f"{folder}/{entry.value.rpartition('#')[2]}"
        yield (
            name,
            Case(
                kinds[0],
                _path(query),
                tuple(map(_path, data)),
                tuple(map(_path, named)),
                _path(result[0]) if result else None,
            ),
        )


_FOLDERS = (
    *("aggregates", "bind", "bindings", "cast", "construct", "exists", "functions", "grouping"),
    *("negation", "project-expression", "property-path", "subquery", "syntax-query", "syntax-fed"),
    *("csv-tsv-res", "json-res"),
)
CASES = {name: case for folder in _FOLDERS for name, case in _manifest(folder)}
_EVALUATED = ("QueryEvaluationTest", "CSVResultFormatTest")


def _names(*kinds: str) -> list[Any]:
    reasons = ignored("sparql")
    return [case(name, reasons) for name, one in CASES.items() if one.kind in kinds]


def test_the_ignored_cases_are_of_this_suite() -> None:
    assert ignored("sparql").keys() <= CASES.keys()


@pytest.mark.parametrize("name", _names("PositiveSyntaxTest11"))
def test_syntax(name: str) -> None:
    parse(CASES[name].query.read_text("utf-8"), {})


@pytest.mark.parametrize("name", _names("NegativeSyntaxTest11"))
def test_mistakes(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(CASES[name].query.read_text("utf-8"), {})
    assert caught.value.code == "E560"


@pytest.mark.parametrize("name", _names(*_EVALUATED))
def test_evaluation(name: str) -> None:
    one = CASES[name]
    text = one.query.read_text("utf-8")
    kb = KnowledgeBase()
    with kb.transaction() as tx:
        for path in one.data:
            tx.insert(_read(path))
        for path in (*one.named, *_from(text, one.query)):
            tx.insert(_read(path), graph=f"<{_BASE}{path.relative_to(FOLDER)}>")
    base = f"BASE <{_BASE}{one.query.relative_to(FOLDER)}>"
    answer = kb.query(f"{base}\n{text}", default_graph="default")
    assert one.result is not None
    expected = one.result.read_bytes()
    if isinstance(answer, TripleTable):
        assert _canonical(_graph(answer)) == _canonical(_triples(one.result))
        return
    kind = one.result.suffix
    if kind == ".csv":
        assert isinstance(answer, Solutions)
        assert _rows(encoded(answer, "csv")) == _rows(expected)
        return
    if kind == ".ttl" or kind == ".rdf":
        found, ordered = _result_set(_triples(one.result)), False
    else:
        found, ordered = _parsed(expected, kind), "ORDER BY" in text.upper()
    if isinstance(answer, bool):
        assert answer is found
        written = {".srj": "json", ".srx": "xml"}[kind]
        assert _parsed(encoded(answer, written), kind) is found
        return
    # What we write is read back by somebody else.
    for written, suffix in (("json", ".srj"), ("xml", ".srx"), ("tsv", ".tsv")):
        mine = _parsed(encoded(answer, written), suffix)
        assert mine[0] == found[0] or set(mine[0]) == set(found[0])
        assert _canonical(_solutions(mine)) == _canonical(_solutions(found))
    if ordered:
        keys = [i for i, v in enumerate(found[0]) if v in mine[0]]
        assert len(keys) == len(found[0])
        assert _masked(mine, found[0]) == _masked(found, found[0])


def _from(text: str, query: Path) -> list[Path]:
    """The documents of FROM, which are the graphs of the dataset."""
    names = re.findall(r"FROM\s+(?:NAMED\s+)?<([^>]+)>", text)
    return [path for name in names if (path := query.parent / name).is_file()]


def _read(path: Path) -> str:
    """Data as N-Triples, with labels of blank nodes that the files do not share."""
    return "".join(f"{triple} .\n" for triple in _triples(path))


def _triples(path: Path) -> list[ox.Triple]:
    kind = ox.RdfFormat.from_extension(path.suffix[1:])
    base = f"{_BASE}{path.relative_to(FOLDER)}"
    found = ox.parse(path.read_bytes(), format=kind, base_iri=base)
    return [quad.triple for quad in found]


def _graph(answer: TripleTable) -> list[ox.Triple]:
    text = encoded(answer, "nt")
    return [quad.triple for quad in ox.parse(text, format=ox.RdfFormat.N_TRIPLES)]


Found = tuple[list[str], list[dict[str, Any]]]


def _parsed(data: bytes, suffix: str) -> Any:
    kind = {".srx": ox.QueryResultsFormat.XML, ".srj": ox.QueryResultsFormat.JSON,
            ".tsv": ox.QueryResultsFormat.TSV}[suffix]  # fmt: skip
    results = ox.parse_query_results(data, format=kind)
    if isinstance(results, ox.QueryBoolean):
        return bool(results)
    names = [variable.value for variable in results.variables]
    rows = [{n: row[n] for n in names if row[n] is not None} for row in results]
    return names, rows


def _result_set(triples: list[ox.Triple]) -> Any:
    by: dict[Any, dict[str, list[Any]]] = {}
    for triple in triples:
        place = by.setdefault(triple.subject, {})
        place.setdefault(triple.predicate.value, []).append(triple.object)
    (top,) = (n for n, p in by.items() if f"{_SETS}resultVariable" in p or f"{_SETS}boolean" in p)
    if f"{_SETS}boolean" in by[top]:
        return by[top][f"{_SETS}boolean"][0].value == "true"
    rows = [
        {
            by[b][f"{_SETS}variable"][0].value: by[b][f"{_SETS}value"][0]
            for b in by[solution].get(f"{_SETS}binding", [])
        }
        for solution in by[top].get(f"{_SETS}solution", [])
    ]
    return [v.value for v in by[top][f"{_SETS}resultVariable"]], rows


def _solutions(found: Found) -> list[ox.Triple]:
    """Solutions as a graph: a blank node for each, so that equal ones count."""
    graph = []
    for number, row in enumerate(found[1]):
        node = ox.BlankNode(f"solution{number}")
        graph.append(ox.Triple(node, ox.NamedNode(f"{_SETS}of"), ox.Literal("")))
        graph += [ox.Triple(node, ox.NamedNode(_SETS + n), term) for n, term in row.items()]
    return graph


def _canonical(triples: list[ox.Triple]) -> set[str]:
    """Triples with numbers by value and labels that say nothing."""
    dataset = ox.Dataset(ox.Quad(t.subject, t.predicate, _by_value(t.object)) for t in triples)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, dataset))


def _by_value(term: Any) -> Any:
    if isinstance(term, ox.Literal) and term.datatype.value in NUMERIC:
        number = literal_number(term.value, term.datatype.value)
        if number is not None:
            shown = f"{float(number):.12g}"
            return ox.Literal(shown, datatype=ox.NamedNode(f"{term.datatype.value}-value"))
    if isinstance(term, ox.Literal) and term.language is not None:
        return ox.Literal(term.value, language=term.language.lower())
    return term


def _masked(found: Found, names: list[str]) -> list[list[Any]]:
    return [
        [None if isinstance(row.get(n), ox.BlankNode) else _by_value(row.get(n)) for n in names]
        for row in found[1]
    ]


def _rows(data: bytes) -> tuple[list[str], list[tuple[str, ...]]]:
    head, *rows = csv.reader(io.StringIO(data.decode(), newline=""))
    masked = [tuple("_:" if c.startswith("_:") else _number(c) for c in row) for row in rows]
    return head, sorted(masked)


def _number(cell: str) -> str:
    try:
        return f"{float(cell):.12g}"
    except ValueError:
        return cell


def test_blank_nodes_of_answers_are_terms() -> None:
    kb = KnowledgeBase()
    with kb.transaction() as tx:
        tx.insert('_:b <http://e/p> "x" .')
    ((found,),) = list(kb.query("SELECT ?x { ?x <http://e/p> ?y }"))  # type: ignore[arg-type]
    assert isinstance(found, BlankNode)
    assert term_of(text_of(Literal("x"))) == Literal("x")
