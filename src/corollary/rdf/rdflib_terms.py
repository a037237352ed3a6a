"""Terms and triples as rdflib's terms and graphs.

rdflib is optional: a request for its terms without it ends in an error that names the package.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from corollary.core.terms import term_of
from corollary.errors import OperationFailed
from corollary.lang.syntax import IRI, XSD, BlankNode, Constant, Literal

if TYPE_CHECKING:
    import rdflib
    from rdflib.term import Node


def require_rdflib() -> ModuleType:
    """Import rdflib.

    >>> require_rdflib().__name__
    'rdflib'
    """
    return require("rdflib", "rdflib", "rdflib")


def require(module: str, package: str, extra: str | None = None) -> ModuleType:
    """Import an optional library, or fail and say how to install it: by an extra, or by its name.

    >>> require("no_such_library", "no-such-library", "rdflib")
    Traceback (most recent call last):
    ...
    corollary.errors.OperationFailed: E403: no-such-library is not installed
      hint: pip install 'corollary[rdflib]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        name = f"'corollary[{extra}]'" if extra else package
        raise OperationFailed(
            "E403", f"{package} is not installed", f"pip install {name}"
        ) from None


def to_rdflib(term: Constant) -> Node:
    """Convert a term.

    >>> to_rdflib(Literal("1", XSD + "integer")).toPython()
    1
    """
    import rdflib

    match term:
        case IRI(value):
            return rdflib.URIRef(value)
        case BlankNode(label):
            return rdflib.BNode(label)
        case Literal(lexical, _, str(language)):
            return rdflib.Literal(lexical, lang=language)
        case Literal(lexical, datatype):
            # Without normalization, which would change the term.
            kind = None if datatype == XSD + "string" else rdflib.URIRef(datatype)
            return rdflib.Literal(lexical, datatype=kind, normalize=False)


def rdflib_rows(rows: Iterable[Sequence[str | None]]) -> Iterator[tuple[Node | None, ...]]:
    """Convert rows of terms in N-Triples syntax; every term is converted once.

    >>> [row] = rdflib_rows([("<urn:a>", None)])
    >>> row
    (rdflib.term.URIRef('urn:a'), None)
    """
    known: dict[str | None, Node | None] = {None: None}
    for row in rows:
        for text in row:
            if text is not None and text not in known:
                known[text] = to_rdflib(term_of(text))
        yield tuple(known[text] for text in row)


def graph_of(
    rows: Iterable[Sequence[str | None]], prefixes: Mapping[str, str] | None = None
) -> rdflib.Graph:
    """Create a graph of triples; those that RDF does not allow are left out.

    >>> len(graph_of([("<urn:s>", "<urn:p>", '"1"'), ('"1"', "<urn:p>", "<urn:o>")]))
    1
    """
    import rdflib

    graph = rdflib.Graph()
    for prefix, namespace in (prefixes or {}).items():
        graph.bind(prefix, namespace, override=True, replace=True)
    for row in rdflib_rows(rows):
        subject, predicate, object_ = row
        if (
            isinstance(predicate, rdflib.URIRef)
            and subject is not None
            and object_ is not None
            and not isinstance(subject, rdflib.Literal)
        ):
            graph.add((subject, predicate, object_))
    return graph


def dataset_of(rows: Iterable[Sequence[str]]) -> rdflib.Dataset:
    """Create a dataset of quads, and of triples, which are in the default graph.

    >>> found = dataset_of([("<urn:s>", "<urn:p>", '"1"', "<urn:g>")])
    >>> [str(quad[3]) for quad in found.quads()]
    ['urn:g']
    """
    require_rdflib()
    import rdflib

    dataset = rdflib.Dataset()
    for subject, predicate, object_, *graph in rdflib_rows(rows):
        target = dataset.graph(graph[0]) if graph else dataset.default_graph  # type: ignore[arg-type]
        target.add((subject, predicate, object_))  # type: ignore[arg-type]
    return dataset
