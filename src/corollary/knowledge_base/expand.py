"""`expand`: what follows from an rdflib graph, added to it; in the place of `owlrl`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from corollary.algorithms import seminaive
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.core.terms import term_of
from corollary.knowledge_base.engines import make_engine
from corollary.knowledge_base.results import triples_of
from corollary.knowledge_base.rules import Rules, read_rules
from corollary.lang.syntax import IRI, XSD, BlankNode, Constant, Literal
from corollary.rdf import formats
from corollary.rdf.frames import constant_of, statements_of

if TYPE_CHECKING:
    import rdflib


def expand(
    graph: rdflib.Graph,
    rules: Rules | Iterable[Rules] = "owl-rl",
    *,
    destination: rdflib.Graph | None = None,
    axioms: bool = True,
    threads: int = 1,
) -> int:
    """Add the triples that follow from a graph to it, or to `destination`; says how many.

    `rules` are names of rule sets, `.dl` files or programs. Their axioms, and what follows from
    axioms alone, are added too, as by `owlrl`; not so with `axioms=False`. Of what is derived,
    triples with a literal as subject are left out, as no syntax of RDF can write them. `owlrl`
    writes inconsistencies into the graph; here `KnowledgeBase.inconsistencies` tells of them.

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
    if hasattr(target, "default_graph"):  # a dataset, of which all graphs are read
        target = target.default_graph
    before = len(target)
    for triple in _rdflib_triples(found, dictionary, graph):
        target.add(triple)
    return len(target) - before


def _rdflib_triples(
    facts: Any, dictionary: Dictionary, graph: rdflib.Graph
) -> Iterator[tuple[Any, Any, Any]]:
    import rdflib

    columns = triples_of(facts, dictionary).columns
    ids = np.unique(np.concatenate(columns))
    texts = dictionary.texts(ids).to_pylist()
    terms: dict[int | None, Any] = {
        i: _to_rdflib(term_of(text)) for i, text in zip(ids.tolist(), texts, strict=True)
    }
    # rdflib knows several literals where RDF 1.1 has one: "a" and "a"^^xsd:string.
    objects = {statement[2] for statement in statements_of(graph)}
    for literal in (term for term in objects if isinstance(term, rdflib.Literal)):
        terms[dictionary.find(constant_of(literal))] = literal
    for triple in zip(*(column.tolist() for column in columns), strict=True):
        subject, predicate, object_ = (terms[number] for number in triple)
        if not isinstance(subject, rdflib.Literal) and isinstance(predicate, rdflib.URIRef):
            yield subject, predicate, object_


def _to_rdflib(term: Constant) -> Any:
    import rdflib

    match term:
        case IRI(value):
            return rdflib.URIRef(value)
        case BlankNode(label):
            return rdflib.BNode(label)
        case Literal(lexical, _, str(language)):
            return rdflib.Literal(lexical, lang=language)
        case Literal(lexical, datatype):
            # Not normalized, which would make it another term.
            kind = None if datatype == XSD + "string" else rdflib.URIRef(datatype)
            return rdflib.Literal(lexical, datatype=kind, normalize=False)
