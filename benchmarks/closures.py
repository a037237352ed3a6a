"""Compare the OWL 2 RL closures of Corollary and `reasonable`, by kinds of triples.

`python -m benchmarks.closures FILE…` closes the union of RDF files with both and prints a table:
for each kind of triple (its property, and the kinds of its subject and object), how many triples
only one of the two derives.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyoxigraph

import corollary
from benchmarks.owlrl_peer import from_rdflib
from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.core.terms import text_of
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.printer import Printer
from corollary.lang.syntax import IRI, TRIPLE, Atom, BlankNode, Constant, Literal

_SHOWN = 30  # kinds of triples


def main(paths: Iterable[str]) -> int:
    """Close the files and print the differences."""
    graph = read(map(Path, paths))
    ours, theirs = by_corollary(graph), by_reasonable(graph)
    print(f"{len(graph):,} triples; corollary {len(ours):,}, reasonable {len(theirs):,}\n")
    print("| only | triples | kind |\n| --- | --- | --- |")
    for name, only in (("corollary", ours - theirs), ("reasonable", theirs - ours)):
        for kind, count in Counter(map(kind_of, only)).most_common(_SHOWN):
            print(f"| {name} | {count:,} | `{kind}` |")
    return 0


def read(paths: Iterable[Path]) -> set[Atom]:
    """The triples of RDF files; blank nodes are local to each file."""
    found = set()
    for number, path in enumerate(paths):
        for quad in pyoxigraph.parse(path=path):
            terms = (quad.subject, quad.predicate, quad.object)
            found.add(Atom(TRIPLE, tuple(_term(term, number) for term in terms)))
    return found


def _term(term: Any, number: int) -> Constant:
    if isinstance(term, pyoxigraph.NamedNode):
        return IRI(term.value)
    if isinstance(term, pyoxigraph.BlankNode):
        return BlankNode(f"b{number}x{term.value}")
    return Literal(term.value, term.datatype.value, term.language)


def by_corollary(graph: set[Atom]) -> set[Atom]:
    """The closure under the rules of OWL 2 RL, unspecialized."""
    program, engine = corollary.rules("owl-rl"), ColumnarEngine(Dictionary())
    explicit = engine.facts(encode([*program.facts, *graph], engine.dictionary))
    facts = decode(materialize(program, explicit, engine).facts, engine.dictionary)
    return {fact for fact in facts if fact.relation == TRIPLE}


def by_reasonable(graph: set[Atom]) -> set[Atom]:
    """The closure of `reasonable`."""
    reasonable: Any = importlib.import_module("reasonable")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.ttl"
        lines = (" ".join(map(text_of, atom.constants())) for atom in graph)
        path.write_text("".join(f"{line} .\n" for line in lines), encoding="utf-8")
        reasoner = reasonable.PyReasoner()
        reasoner.load_file(str(path))
        return {Atom(TRIPLE, tuple(map(from_rdflib, triple))) for triple in reasoner.reason()}


def kind_of(fact: Atom) -> str:
    """Replace the terms of a triple by their kinds, except for vocabulary terms.

    >>> from corollary.lang.syntax import TYPE
    >>> kind_of(Atom(TRIPLE, (IRI("a"), TYPE, IRI("b"))))
    '[IRI, a, IRI]'
    """
    subject, property_, object_ = fact.constants()
    if subject == object_:
        return f"[x, {_kind(property_)}, x]"
    text = f"[{_kind(subject)}, {_kind(property_)}, {_kind(object_)}]"
    return text.replace(", rdf:type, ", ", a, ")


def _kind(term: Constant) -> str:
    if isinstance(term, Literal):
        return "literal"
    if isinstance(term, BlankNode):
        return "blank node"
    known = any(term.value.startswith(namespace) for namespace in WELL_KNOWN_PREFIXES.values())
    return Printer().term(term) if known else "IRI"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
