"""`owlrl` as a peer: its closure of a file, and the reasons for differences.

`owlrl` implements OWL 2 RL over rdflib in Python, with a few rules and datatypes of its own. A
difference without one of the reasons listed here is an error.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from benchmarks.measure import timed
from benchmarks.report import Row
from corollary.core.terms import text_of
from corollary.lang.datatypes import DATATYPES
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.syntax import IRI, RDF, TRIPLE, TYPE, XSD, Atom, BlankNode, Constant, Literal

_SAME = IRI(WELL_KNOWN_PREFIXES["owl"] + "sameAs")
_OF_PROPERTIES = {
    IRI(WELL_KNOWN_PREFIXES["rdfs"] + "subPropertyOf"),
    IRI(WELL_KNOWN_PREFIXES["owl"] + "equivalentProperty"),
}
_OF_CLASSES = {
    IRI(WELL_KNOWN_PREFIXES["rdfs"] + "subClassOf"),
    IRI(WELL_KNOWN_PREFIXES["owl"] + "equivalentClass"),
}
_DISJOINT = IRI(WELL_KNOWN_PREFIXES["owl"] + "disjointWith")
_DATATYPES = {IRI(name) for name in DATATYPES}
_MESSAGE = IRI("http://www.daml.org/2002/03/agents/agent-ont#ErrorMessage")
ERROR = IRI("http://www.daml.org/2002/03/agents/agent-ont#error")
# owlrl knows these datatypes too; OWL 2 RL does not have them.
_MORE_DATATYPES = {IRI(XSD + "date"), IRI(XSD + "time"), IRI(RDF + "HTML"), IRI(RDF + "langString")}


def missing() -> str | None:
    """Why the peer cannot be measured, None if it can."""
    found = all(map(importlib.util.find_spec, ("owlrl", "rdflib")))
    return None if found else "owlrl is not installed (pip install 'corollary[bench]')"


def explained(fact: Atom, ours: frozenset[Atom]) -> str | None:
    """The reason why only one of the two derives a fact; None if unknown."""
    subject, property_, object_ = fact.constants()
    if fact in ours:
        if isinstance(subject, Literal) and property_ == TYPE:
            return "dt-type2: every datatype that has the value, not just the literal's own"
        if property_ in _OF_PROPERTIES | _OF_CLASSES and subject == object_:
            return "scm-spo or scm-sco around a cycle, of which owlrl leaves out what is reflexive"
        # The property of such triples is then a term that owlrl lacks.
        if property_ == _SAME and subject == object_ and subject in _OF_PROPERTIES | _OF_CLASSES:
            return "eq-ref of what the reflexive triples are said by"
    elif property_ == ERROR or object_ in (ERROR, _MESSAGE):
        return "how owlrl reports an inconsistency"
    elif property_ in (TYPE, _SAME) and subject in _MORE_DATATYPES:
        return "a datatype that OWL 2 RL does not have"
    elif property_ == _DISJOINT and {subject, object_} <= _DATATYPES:
        return "owlrl says of some datatypes that they are disjoint"
    elif property_ in _OF_PROPERTIES and subject == object_:
        return "scm-op and scm-dp of all properties, not just of object and datatype properties"
    elif property_ == _SAME and subject == object_ and subject in _OF_PROPERTIES:
        return "eq-ref of what these triples are said by"
    return None


def closed(graph: Any) -> frozenset[Atom]:
    """The closure of an rdflib graph, in place, as atoms."""
    expand(graph)
    return frozenset(Atom(TRIPLE, tuple(map(from_rdflib, triple))) for triple in graph)


def expand(graph: Any) -> None:
    """Close an rdflib graph under OWL 2 RL, without the axiomatic triples."""
    owlrl: Any = importlib.import_module("owlrl")
    reasoner = owlrl.DeductiveClosure(
        owlrl.OWLRL_Semantics, axiomatic_triples=False, datatype_axioms=False
    )
    reasoner.expand(graph)


def to_rdflib(term: Constant) -> Any:
    """Convert to a term of rdflib with the same lexical form."""
    rdflib: Any = importlib.import_module("rdflib")
    if isinstance(term, IRI):
        return rdflib.URIRef(term.value)
    if isinstance(term, BlankNode):
        return rdflib.BNode(term.label)
    datatype = None if term.language else rdflib.URIRef(term.datatype)
    return rdflib.Literal(term.lexical, lang=term.language, datatype=datatype, normalize=False)


def from_rdflib(term: Any) -> Constant:
    """Convert from a term of rdflib."""
    rdflib: Any = importlib.import_module("rdflib")
    if isinstance(term, rdflib.URIRef):
        return IRI(str(term))
    if isinstance(term, rdflib.BNode):
        return BlankNode(str(term))
    if term.language:
        return Literal(str(term), RDF + "langString", term.language)
    return Literal(str(term), str(term.datatype or XSD + "string"))


def measured(path: str, out: str | None = None) -> Row:
    """Seconds to parse N-Triples and to close them; optionally writes the closure to a file."""
    rdflib: Any = importlib.import_module("rdflib")
    rdflib.NORMALIZE_LITERALS = False
    graph = rdflib.Graph()
    _, load = timed(lambda: graph.parse(path, format="nt"))
    explicit = len(graph)
    _, close = timed(lambda: expand(graph))
    if out is not None:
        lines = [" ".join(text_of(from_rdflib(t)) for t in triple) + " .\n" for triple in graph]
        Path(out).write_text("".join(lines), encoding="utf-8")
    return {
        "explicit": explicit,
        "facts": len(graph),
        "load_seconds": load.seconds,
        "seconds": load.seconds + close.seconds,
        "cpu_seconds": load.cpu_seconds + close.cpu_seconds,
    }
