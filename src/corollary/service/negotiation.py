"""Content negotiation: the formats of answers, and the choice among them by `Accept`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyoxigraph

from corollary.errors import InvalidInput
from corollary.query.results import Solutions, TripleTable
from corollary.query.write import encoded

# Media types by preference, each with the name of a format.
SELECT_TYPES = {
    "application/sparql-results+json": "json",
    "application/json": "json",
    "application/sparql-results+xml": "xml",
    "application/xml": "xml",
    "text/xml": "xml",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/vnd.apache.parquet": "parquet",
    "text/plain": "table",
}
ASK_TYPES = {
    media: format_ for media, format_ in SELECT_TYPES.items() if format_ in ("json", "xml", "table")
}
GRAPH_TYPES = {
    "text/turtle": "ttl",
    "application/x-turtle": "ttl",
    "application/n-triples": "nt",
    "text/plain": "nt",
    "application/rdf+xml": "rdf",
    "application/ld+json": "jsonld",
    "application/n-quads": "nq",
    "application/trig": "trig",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/vnd.apache.parquet": "parquet",
}
TYPES_BY_FORM = {
    "SELECT": SELECT_TYPES,
    "ASK": ASK_TYPES,
    "CONSTRUCT": GRAPH_TYPES,
    "DESCRIBE": GRAPH_TYPES,
}
RDF_FORMATS = {
    "ttl": pyoxigraph.RdfFormat.TURTLE,
    "nt": pyoxigraph.RdfFormat.N_TRIPLES,
    "rdf": pyoxigraph.RdfFormat.RDF_XML,
    "jsonld": pyoxigraph.RdfFormat.JSON_LD,
    "nq": pyoxigraph.RdfFormat.N_QUADS,
    "trig": pyoxigraph.RdfFormat.TRIG,
}


def accepted(accept: str, offered: Sequence[str]) -> str | None:
    """Choose among media types, offered by preference; None if nothing is acceptable.

    >>> accepted("text/csv, */*;q=0.1", ["application/json", "text/csv"])
    'text/csv'
    >>> accepted("", ["application/json"]), accepted("image/*", ["application/json"])
    ('application/json', None)
    """
    ranges = [_media_range(part) for part in accept.split(",") if part.strip()]
    if not ranges:
        return offered[0]
    best, choice = 0.0, None
    for media in offered:
        matches = [(rank, quality) for name, rank, quality in ranges if _matches(name, media)]
        quality = max(matches)[1] if matches else 0.0  # of the most specific range
        if quality > best:
            best, choice = quality, media
    return choice


def _media_range(part: str) -> tuple[str, int, float]:
    """The name of a media range, how specific it is, and its quality."""
    name, *parameters = (word.strip().lower() for word in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                quality = min(1.0, max(0.0, float(value)))
            except ValueError:
                quality = 0.0
    return name, 0 if name == "*/*" else 1 if name.endswith("/*") else 2, quality


def _matches(name: str, media: str) -> bool:
    if name == "*/*":
        return True
    if name.endswith("/*"):
        return media.startswith(name[:-1])
    return name == media


def choose(form: str, accept: str) -> tuple[str, str]:
    """Choose the media type and the format of the answer to a query of a form.

    >>> choose("ASK", "application/sparql-results+xml")
    ('application/sparql-results+xml', 'xml')
    """
    types = TYPES_BY_FORM[form]
    media = accepted(accept, [*types])
    if media is None:
        raise InvalidInput(
            "E602",
            f"the answer to {form} cannot be written in a format that the request accepts",
            f"accept one of {', '.join(types)}",
        )
    return media, types[media]


def content_type(media: str) -> str:
    """The value of `Content-Type`, with the character set of text.

    >>> content_type("text/csv"), content_type("application/json")
    ('text/csv; charset=utf-8', 'application/json')
    """
    return f"{media}; charset=utf-8" if media.startswith("text/") else media


def written(
    answer: Solutions | TripleTable | bool, format_: str, prefixes: Mapping[str, str]
) -> bytes:
    """Serialize an answer in a format of `TYPES_BY_FORM`."""
    if format_ in ("rdf", "jsonld", "nq", "trig"):
        return converted(encoded(answer, "nt"), format_, prefixes)
    return encoded(answer, format_, prefixes)


def converted(ntriples: bytes, format_: str, prefixes: Mapping[str, str]) -> bytes:
    """Convert N-Triples to another syntax of RDF.

    >>> converted(b"<urn:a> <urn:p> <urn:b> .", "ttl", {"u": "urn:"})
    b'@prefix u: <urn:> .\\nu:a u:p u:b .\\n'
    """
    statements = pyoxigraph.parse(ntriples, format=pyoxigraph.RdfFormat.N_TRIPLES)
    target = RDF_FORMATS[format_]
    items = statements if target.supports_datasets else (quad.triple for quad in statements)
    data = pyoxigraph.serialize(items, format=target, prefixes=dict(prefixes))
    assert data is not None, "without an output file, serialize returns bytes"
    return data
