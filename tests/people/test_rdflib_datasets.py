"""rdflib's datasets over a knowledge base: what rdflib's own store does, and what follows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import rdflib
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

from corollary import CorollaryError, KnowledgeBase
from corollary.knowledge_base.rdflib_store import CorollaryStore
from tests.effort import first

EX = rdflib.Namespace("http://example.org/")
GRAPHS: list[Any] = [EX.g, EX.h, rdflib.BNode("k"), DATASET_DEFAULT_GRAPH_ID]
SUBJECTS: list[Any] = [EX.a, EX.b, rdflib.BNode("x")]
PROPERTIES: list[Any] = [EX.p, EX.q]
OBJECTS: list[Any] = [*SUBJECTS, rdflib.Literal(1), rdflib.Literal("b", lang="en")]
QUERIES = (
    "SELECT * { ?s ?p ?o }",
    "SELECT * { GRAPH ?g { ?s ?p ?o } }",
    "SELECT * { GRAPH ex:g { ?s ?p ?o } }",
    "SELECT ?s (COUNT(*) AS ?n) { ?s ex:p ?o } GROUP BY ?s",
    "ASK { ?s ex:p ?o . GRAPH ?g { ?o ex:q ?x } }",
    "CONSTRUCT { ?o ex:r ?s } WHERE { ?s ex:q ?o FILTER(!isLiteral(?o)) }",
)
# rdflib itself puts no data into the default graph of a dataset, and its CLEAR DEFAULT clears all.
UPDATES = (
    "INSERT DATA { GRAPH ex:g { ex:a ex:p ex:b } GRAPH ex:h { ex:b ex:q 1 } }",
    "DELETE { ?s ex:p ?o } INSERT { GRAPH ex:g { ?o ex:q ?s } }"
    " WHERE { ?s ex:p ?o FILTER(isIRI(?o)) }",
    "DELETE WHERE { GRAPH ex:g { ?s ex:q ?o } }",
    "WITH ex:h DELETE { ?s ?p ?o } INSERT { ?s ex:p ex:a } WHERE { ?s ?p ?o }",
    "CLEAR GRAPH ex:h",
    "DROP GRAPH ex:g",
)


@pytest.fixture(autouse=True)
def _no_deprecations() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def pair(*, union: bool) -> list[rdflib.Dataset]:
    """A dataset over a knowledge base without rules, and one in rdflib's memory."""
    made = [
        rdflib.Dataset(store=CorollaryStore(KnowledgeBase()), default_union=union),
        rdflib.Dataset(default_union=union),
    ]
    for one in made:
        one.bind("ex", EX)
    return made


def some(random: Random, terms: list[Any]) -> Any:
    return random.choice([None, *terms]) if random.random() < 0.7 else None


def pattern(random: Random) -> Any:
    return some(random, SUBJECTS), some(random, PROPERTIES), some(random, OBJECTS)


def change(random: Random, datasets: list[rdflib.Dataset]) -> None:
    """One random change of all datasets."""
    graph, kind = random.choice(GRAPHS), random.randrange(9)
    triple = tuple(random.choice(terms) for terms in (SUBJECTS, PROPERTIES, OBJECTS))
    selection, text = pattern(random), random.choice(UPDATES)
    for dataset in datasets:
        match kind:
            case 0 | 1:
                dataset.add((*triple, graph))
            case 2:
                dataset.graph(graph).add(triple)
            case 3:
                dataset.addN([(*triple, dataset.graph(one)) for one in GRAPHS])
            case 4:
                dataset.remove((*selection, graph))
            case 5:
                dataset.remove(selection)
            case 6:
                dataset.graph(graph).remove(selection)
            case 7:
                dataset.remove_graph(graph)
            case 8:
                dataset.update(text)


def seen(dataset: rdflib.Dataset, random: Random) -> list[Any]:
    """What one can read of a dataset, in an order."""
    found: list[Any] = [
        sorted(map(str, dataset.quads((None, None, None, None)))),
        len(dataset),
        sorted(str(graph.identifier) for graph in dataset.graphs() if len(graph)),
    ]
    for _ in range(4):
        selection = pattern(random)
        found.append(sorted(map(str, dataset.triples(selection))))
        found.append(sorted(map(str, dataset.quads((*selection, random.choice(GRAPHS))))))
    graphs = [dataset.graph(name) for name in GRAPHS]
    found += [(len(graph), sorted(map(str, graph))) for graph in graphs]
    found += [sorted(map(str, graph.triples(selection))) for graph in graphs]
    triple: Any = tuple(random.choice(terms) for terms in (SUBJECTS, PROPERTIES, OBJECTS))
    found.append(triple in dataset)
    found.append(sorted(str(graph.identifier) for graph in dataset.graphs(triple)))
    return found


def answers(dataset: rdflib.Dataset) -> list[Any]:
    found: list[Any] = []
    graph: Any
    for graph in (dataset, dataset.graph(EX.g), dataset.graph(GRAPHS[2])):
        for query in QUERIES[: None if graph is dataset else 1]:
            result = graph.query(query)
            if result.type == "ASK":
                found.append(result.askAnswer)
            elif result.type == "CONSTRUCT":
                found.append(sorted(map(str, result.graph)))
            else:
                rows = (sorted((str(k), v.n3()) for k, v in row.asdict().items()) for row in result)
                found.append(sorted(map(str, rows)))
    return found


@pytest.mark.parametrize("union", [False, True])
@pytest.mark.parametrize("seed", first(3, range(12)))
def test_random_operations_are_those_of_rdflib(seed: int, union: bool) -> None:
    random, datasets = Random(seed), pair(union=union)
    for number in range(40):
        change(random, datasets)
        views = random.getrandbits(64)
        mine, right = (seen(dataset, Random(views)) for dataset in datasets)
        assert mine == right
        if number % 4 == 0:
            mine, right = map(answers, datasets)
            assert mine == right


def test_a_dataset_that_reasons() -> None:
    dataset = rdflib.Dataset(store=CorollaryStore("rdfs"))
    dataset.parse(
        format="trig",
        data="""
        @prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        :schema { :Cat rdfs:subClassOf :Pet . } :data { :tom a :Cat . } _:own { :kit a :Cat . }""",
    )
    pets = (None, rdflib.RDF.type, EX.Pet)
    assert {*dataset.default_graph.subjects(rdflib.RDF.type, EX.Pet)} == {EX.tom, EX.kit}
    assert [*dataset.graph(EX.data).triples(pets)] == []
    assert [*dataset.graph(EX.data)] == [(EX.tom, rdflib.RDF.type, EX.Cat)]
    assert {quad[3] for quad in dataset.quads((*pets, None))} == {DATASET_DEFAULT_GRAPH_ID}
    names = {graph.identifier for graph in dataset.graphs()}
    assert {EX.schema, EX.data, DATASET_DEFAULT_GRAPH_ID} <= names
    assert len([name for name in names if isinstance(name, rdflib.BNode)]) == 1
    rows: Any = dataset.query("SELECT ?x { ?x a <http://example.org/Pet> }")
    assert {row[0] for row in rows} == {EX.tom, EX.kit}
    rows = dataset.query("SELECT ?x { GRAPH ?g { ?x a <http://example.org/Pet> } }")
    assert [*rows] == []
    rows = dataset.query("SELECT ?x { ?x a <http://example.org/Cat> }")
    assert [*rows] == []  # no triple of the default graph, and not derived
    dataset.update(
        "INSERT { GRAPH ?g { ?x a <urn:Seen> } }"
        " WHERE { ?x a <http://example.org/Pet> . GRAPH ?g { ?x a ?c } }"
    )
    assert (EX.tom, rdflib.RDF.type, rdflib.URIRef("urn:Seen")) in dataset.graph(EX.data)
    dataset.remove_graph(EX.data)
    assert {*dataset.default_graph.subjects(rdflib.RDF.type, EX.Pet)} == {EX.kit}
    assert EX.data not in {graph.identifier for graph in dataset.graphs()}
    whole = rdflib.Dataset(store=dataset.store, default_union=True)
    assert (EX.kit, rdflib.RDF.type, EX.Cat) in whole
    assert (EX.kit, rdflib.RDF.type, EX.Pet) in whole


def test_rules_that_derive_into_graphs() -> None:
    kb = KnowledgeBase(
        "@prefix : <http://example.org/> ."
        "[?s, ?p, ?o] :trusted :- [?s, ?p, ?o] ?g, [?g, a, :Good] ."
    )
    dataset = rdflib.Dataset(store=CorollaryStore(kb))
    dataset.add((EX.a, EX.p, EX.b, EX.g))  # type: ignore[arg-type]
    dataset.add((EX.g, rdflib.RDF.type, EX.Good))
    assert [*dataset.graph(EX.trusted)] == [(EX.a, EX.p, EX.b)]
    dataset.graph(EX.trusted).remove((None, None, None))  # it is derived, and stays
    assert len(dataset.graph(EX.trusted)) == 1
    dataset.remove((EX.g, rdflib.RDF.type, EX.Good))
    assert len(dataset.graph(EX.trusted)) == 0


def test_graphs_that_rules_do_not_read() -> None:
    kb = KnowledgeBase("rdfs", reason_over=["http://example.org/read"])
    dataset = rdflib.Dataset(store=CorollaryStore(kb))
    for graph in (EX.read, EX.other, None):
        name = rdflib.Namespace(f"{graph or EX.default}-")
        dataset.add((name.tom, EX.p, EX.b, graph))  # type: ignore[arg-type]
    assert len(dataset.graph(EX.other)) == 1
    default = [*dataset.default_graph.triples((None, EX.p, None))]
    assert [str(subject) for subject, _, _ in default] == ["http://example.org/default-tom"]
    assert len([*dataset.quads((None, EX.p, None, None))]) == 3


def test_graphs_without_a_dataset() -> None:
    """A graph without a name is everything; one with an IRI is that named graph."""
    store = CorollaryStore("rdfs")
    graph, named = rdflib.Graph(store=store), rdflib.Graph(store=store, identifier=EX.g)
    graph.add((EX.Cat, rdflib.RDFS.subClassOf, EX.Pet))
    named.add((EX.tom, rdflib.RDF.type, EX.Cat))
    assert (EX.tom, rdflib.RDF.type, EX.Pet) in graph
    assert [*named] == [(EX.tom, rdflib.RDF.type, EX.Cat)]
    rows: Any = named.query("SELECT ?x ?c { ?x a ?c }")
    assert len(rows) == 1
    named.update("INSERT DATA { <urn:x> a <http://example.org/Cat> }")
    assert len(named) == 2
    dataset = rdflib.Dataset(store=store)
    assert (rdflib.URIRef("urn:x"), rdflib.RDF.type, EX.Pet) in graph  # it is as it was
    assert len(dataset.graph(EX.g)) == 2


def test_conjunctive_graphs() -> None:
    whole = rdflib.ConjunctiveGraph(store=CorollaryStore("rdfs"))
    whole.add((EX.Cat, rdflib.RDFS.subClassOf, EX.Pet))
    whole.get_context(EX.g).add((EX.tom, rdflib.RDF.type, EX.Cat))
    assert (EX.tom, rdflib.RDF.type, EX.Pet) in whole
    assert [graph.identifier for graph in whole.contexts()] == [EX.g]
    assert [one.identifier for one in whole.contexts((EX.tom, rdflib.RDF.type, EX.Cat))] == [EX.g]
    rows: Any = whole.query("SELECT ?x { ?x a <http://example.org/Pet> }")
    assert [row[0] for row in rows] == [EX.tom]
    whole.remove_context(whole.get_context(EX.g))
    assert (EX.tom, rdflib.RDF.type, EX.Pet) not in whole
    assert len(whole) > 1


def test_a_stored_dataset(tmp_path: Path) -> None:
    dataset = rdflib.Dataset(store=CorollaryStore())
    dataset.open(str(tmp_path / "s"), create=True)
    dataset.add((EX.Cat, rdflib.RDFS.subClassOf, EX.Pet, EX.schema))  # type: ignore[arg-type]
    dataset.add((EX.tom, rdflib.RDF.type, EX.Cat, EX.g))  # type: ignore[arg-type]
    dataset.commit()
    again = rdflib.Dataset(store=CorollaryStore())
    again.open(str(tmp_path / "s"))
    assert {graph.identifier for graph in again.graphs()} >= {EX.g, EX.schema}
    assert (EX.tom, rdflib.RDF.type, EX.Pet) in again.default_graph
    rows: Any = again.query("SELECT ?x FROM <http://example.org/g> { ?x a ?c }")
    assert [row[0] for row in rows] == [EX.tom]
    assert f"{EX.tom.n3()} {rdflib.RDF.type.n3()} {EX.Cat.n3()} {EX.g.n3()} ." in again.serialize(
        format="nquads"
    )


def test_updates_of_the_default_graph() -> None:
    dataset = rdflib.Dataset(store=CorollaryStore("rdfs"))
    dataset.update(
        "INSERT DATA { <urn:Cat> rdfs:subClassOf <urn:Pet> . <urn:tom> a <urn:Cat> ."
        " GRAPH <urn:g> { <urn:tom> a <urn:Cat> } }"
    )
    tom = (rdflib.URIRef("urn:tom"), rdflib.RDF.type, rdflib.URIRef("urn:Pet"))
    assert tom in dataset.default_graph
    dataset.update("CLEAR DEFAULT")
    assert len(dataset.graph(rdflib.URIRef("urn:g"))) == 1
    assert tom not in dataset.default_graph


def test_names_of_graphs_that_cannot_be() -> None:
    dataset = rdflib.Dataset(store=CorollaryStore(KnowledgeBase()))
    dataset.add((EX.a, EX.p, EX.b, rdflib.URIRef("urn:x-corollary:union")))  # type: ignore[arg-type]
    with pytest.raises(CorollaryError) as error:
        len(dataset)
    assert error.value.code == "E349"
