"""RDF files, Turtle text and rdflib graphs as columns of ids, read by pyoxigraph.

The only place of this package that knows about RDF syntaxes: whatever gives subjects, predicates
and objects as ids can take its place. Graph names of quads are left out. Blank nodes of a file are
its own and get new labels; those of a text keep theirs, so that a text can delete what another one
inserted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyoxigraph as ox

from corollary.core.dictionary import Dictionary, Ids
from corollary.errors import InvalidInput
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.syntax import IRI, XSD, BlankNode, Constant, Literal

_FORMATS = {
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".nq": ox.RdfFormat.N_QUADS,
    ".ttl": ox.RdfFormat.TURTLE,
    ".trig": ox.RdfFormat.TRIG,
    ".rdf": ox.RdfFormat.RDF_XML,
    ".owl": ox.RdfFormat.RDF_XML,
    ".xml": ox.RdfFormat.RDF_XML,
    ".jsonld": ox.RdfFormat.JSON_LD,
}
_COMPRESSED = (".gz", ".zst")
_LANGUAGE = WELL_KNOWN_PREFIXES["rdf"] + "langString"


@dataclass(frozen=True)
class Triples:
    """Triples as columns of ids, and the prefixes that their text declared."""

    subject: Ids
    predicate: Ids
    object: Ids
    prefixes: Mapping[str, str] = field(default_factory=dict)


class Place(NamedTuple):
    """Where a text comes from, for messages."""

    file: str | None = None
    shift: int = 0  # characters put before the first line


def is_rdf(path: Path) -> bool:
    """Whether the file's name is that of an RDF file.

    >>> is_rdf(Path("data.ttl.gz")), is_rdf(Path("edge.csv"))
    (True, False)
    """
    return _suffix(path) in _FORMATS


def read_file(path: Path, dictionary: Dictionary) -> Triples:
    """The triples of a file, compressed or not."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            parser = ox.parse(
                stream,
                _FORMATS[_suffix(path)],
                base_iri=path.resolve().as_uri(),
                rename_blank_nodes=True,
            )
            return _encoded(parser, dictionary, Place(str(path)))
    except OSError as error:
        reason = error.strerror or error
        raise InvalidInput("E301", f"cannot read {path}: {reason}", file=str(path)) from None


def read_text(text: str, dictionary: Dictionary, prefixes: Mapping[str, str]) -> Triples:
    """The triples of a Turtle text, which may use prefixes that it does not declare.

    >>> read_text("ex:a ex:p ex:b .", Dictionary(), {"ex": "http://example.org/"}).object
    array([2], dtype=uint32)
    """
    known = WELL_KNOWN_PREFIXES | dict(prefixes)
    # On the first line, so that line numbers of messages are right.
    declared = "".join(f"@prefix {prefix}: <{iri}> . " for prefix, iri in known.items())
    parser = ox.parse(declared + text, ox.RdfFormat.TURTLE)
    return _encoded(parser, dictionary, Place(shift=len(declared)))


def read_graph(graph: Any, dictionary: Dictionary) -> Triples:
    """The triples of an rdflib graph."""
    places = list(zip(*graph.triples((None, None, None)), strict=True)) or [(), (), ()]
    subject, predicate, object_ = (
        dictionary.encode(term_of_rdflib(term) for term in place) for place in places
    )
    prefixes = {str(prefix): str(iri) for prefix, iri in graph.namespaces()}
    return Triples(subject, predicate, object_, prefixes)


def term_of_rdflib(term: Any) -> Constant:
    """An rdflib term; rdflib need not be imported to tell."""
    match type(term).__name__:
        case "URIRef":
            return IRI(str(term))
        case "BNode":
            return BlankNode(str(term))
        case "Literal":
            if term.language is not None:
                return Literal(str(term), _LANGUAGE, term.language)
            return Literal(str(term), str(term.datatype or XSD + "string"))
    raise InvalidInput("E341", f"{term!r} is neither an IRI, a blank node nor a literal")


def term_of_pyoxigraph(term: Any) -> Constant:
    """A term of pyoxigraph."""
    if isinstance(term, ox.NamedNode):
        return IRI(term.value)
    if isinstance(term, ox.BlankNode):
        return BlankNode(term.value)
    if isinstance(term, ox.Literal):
        return Literal(term.value, term.datatype.value, term.language)
    raise InvalidInput("E341", f"{term} is neither an IRI, a blank node nor a literal")


def _encoded(parser: Any, dictionary: Dictionary, place: Place) -> Triples:
    ids: dict[Any, int] = {}
    columns: tuple[list[int], list[int], list[int]] = ([], [], [])
    try:
        for quad in parser:
            terms: Iterable[Any] = (quad.subject, quad.predicate, quad.object)
            for column, term in zip(columns, terms, strict=True):
                term_id = ids.get(term)
                if term_id is None:
                    term_id = ids[term] = dictionary.id(term_of_pyoxigraph(term))
                column.append(term_id)
    except SyntaxError as error:
        line, column_number = error.lineno, error.offset
        if line == 1 and column_number is not None:
            column_number = max(1, column_number - place.shift)
        raise InvalidInput(
            "E342",
            re.sub(r"^Parser error at [^:]*: ", "", error.msg.splitlines()[0]),
            file=place.file or "<text>",
            line=line,
            column=column_number,
        ) from None
    subject, predicate, object_ = (np.array(column, np.uint32) for column in columns)
    return Triples(subject, predicate, object_, dict(parser.prefixes))


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix
