"""`expand`: materialize an rdflib graph in place, as a replacement for `owlrl`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from corollary.algorithms import seminaive
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.public import checked
from corollary.core.tables import encode
from corollary.core.terms import term_of
from corollary.errors import InvalidInput
from corollary.knowledge_base.results import triples_of
from corollary.knowledge_base.rules import Rules, read_rules
from corollary.rdf import formats
from corollary.rdf.frames import constant_of, is_graph, statements_of
from corollary.rdf.rdflib_terms import to_rdflib
from corollary.reasoning.engines import make_engine

if TYPE_CHECKING:
    import rdflib
    from rdflib.term import Node


@checked
def expand(
    graph: rdflib.Graph,
    rules: Rules | Iterable[Rules] = "owl-rl",
    *,
    destination: rdflib.Graph | None = None,
    axioms: bool = True,
    threads: int = 1,
) -> int:
    """Add the derived triples of a graph to it, or to `destination`; returns their number.

    `rules` are names of rule sets, `.dl` files or programs. Their axioms, and consequences of
    axioms alone, are added too, as by `owlrl`, unless `axioms=False`. Derived triples with a
    literal as subject are omitted, because no RDF syntax can represent them. `owlrl` writes
    inconsistencies into the graph; `KnowledgeBase.inconsistencies` returns them instead.

    >>> import rdflib
    >>> graph = rdflib.Graph().parse(
    ...     format="turtle",
    ...     data='''
    ...     @prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
    ...     :near a owl:SymmetricProperty . :a :near :b .''',
    ... )
    >>> expand(graph, "rdfs") > 0
    True
    >>> near = rdflib.URIRef("http://example.org/near")
    >>> expand(graph, "owl-rl") > 0, len(list(graph.subject_objects(near)))
    (True, 2)
    """
    for given in (graph, destination):
        if given is not None and not is_graph(given):
            name = type(given).__name__
            raise InvalidInput("E322", f"expected an rdflib graph, found a value of type {name}")
    program = read_rules(rules)
    dictionary = Dictionary()
    engine = make_engine("columnar", dictionary, threads=threads)
    own = encode(program.facts, dictionary)
    read = formats.read(graph, dictionary, keep_labels=True)
    explicit = engine.facts(read.tables(dictionary))
    found = seminaive.materialize(program, explicit.union(engine.facts(own)), engine).facts
    found = found.difference(explicit)
    if not axioms:
        found = found.difference(seminaive.materialize(program, engine.facts(own), engine).facts)
    target = graph if destination is None else destination
    if hasattr(target, "default_graph"):  # a dataset: read all of its graphs
        target = target.default_graph
    before = len(target)
    for triple in _rdflib_triples(found, dictionary, graph):
        target.add(triple)
    return len(target) - before


def _rdflib_triples(
    facts: Facts, dictionary: Dictionary, graph: rdflib.Graph
) -> Iterator[tuple[Node, Node, Node]]:
    import rdflib

    columns = triples_of(facts, dictionary).columns
    ids = np.unique(np.concatenate(columns))
    texts = dictionary.texts(ids).to_pylist()
    terms: dict[int | None, Node] = {
        i: to_rdflib(term_of(text)) for i, text in zip(ids.tolist(), texts, strict=True)
    }
    # rdflib distinguishes literals that are equal in RDF 1.1: "a" and "a"^^xsd:string.
    objects = {statement[2] for statement in statements_of(graph)}
    for literal in (term for term in objects if isinstance(term, rdflib.Literal)):
        terms[dictionary.find(constant_of(literal))] = literal
    for triple in zip(*(column.tolist() for column in columns), strict=True):
        subject, predicate, object_ = (terms[number] for number in triple)
        if not isinstance(subject, rdflib.Literal) and isinstance(predicate, rdflib.URIRef):
            yield subject, predicate, object_
