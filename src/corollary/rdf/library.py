"""Syntaxes that the library parses (pyoxigraph), and single lines that the tokenizer leaves to it.

A statement comes as values of the library, whose text is canonical. After a mistake the library
goes on with the next statement where it finds one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Protocol, cast

import pyarrow as pa
import pyoxigraph
from pyoxigraph import Quad, QuadParser, RdfFormat, Triple

from corollary.rdf.triples import Reading

LIBRARY = {
    "n-triples": RdfFormat.N_TRIPLES,
    "n-quads": RdfFormat.N_QUADS,
    "turtle": RdfFormat.TURTLE,
    "trig": RdfFormat.TRIG,
    "rdf/xml": RdfFormat.RDF_XML,
    "json-ld": RdfFormat.JSON_LD,
}
NO_TRIPLE = "expected an IRI, a blank node or a literal as object, found a triple"
_BATCH = 1 << 10  # statements that are encoded at once; with 65,536 it was slower by a third
_PLACE = re.compile(r"Parser error (?:at|between) .*?(?:columns? \d+(?: and \d+)?): ")
_EXPECTED = {
    "Quads must be followed by a dot": "expected a full stop after the object",
    "Triples must be followed by a dot": "expected a full stop after the object",
    "Unexpected end": "expected the rest of the statement, found the end",
    "Unexpected end of file": "expected the rest of the statement, found the end",
    "The subject of a triple must be an IRI or a blank node": "expected an IRI or a blank node as"
    " subject",
    "The predicate of a triple must be an IRI": "expected an IRI as predicate",
    "No scheme found in an absolute IRI": "expected an IRI in full, with a scheme such as http:",
    "line jumps are not allowed in the middle of triples": "expected the rest of the statement on"
    " the same line",
}
# The library gives blank nodes without a label a random one of 128 bits.
_UNLABELED = re.compile(r"_:[0-9a-f]{28,32}")

Parsed = Quad | SyntaxError


class Source(Protocol):
    """Something with bytes to read."""

    def read(self, size: int, /) -> bytes: ...


Scope = Callable[[str], str]


def parse(source: bytes | Source, format_: str, base: str | None = None) -> Iterator[Parsed]:
    """The statements and the mistakes of a document, in order.

    >>> [type(found).__name__ for found in parse(b"<urn:a> 1 <urn:b> .\\n", "n-triples")]
    ['SyntaxError']
    """
    return _items(_parser(source, format_, base))


def _parser(source: bytes | Source, format_: str, base: str | None) -> QuadParser:
    return pyoxigraph.parse(cast("bytes | IO[bytes]", source), LIBRARY[format_], base_iri=base)


def _items(parser: QuadParser) -> Iterator[Parsed]:
    before = None
    while True:
        try:
            yield from parser
        except SyntaxError as error:
            if before == error.args:  # it does not come past this one
                return
            before = error.args
            yield error
        else:
            return


def read_document(
    source: bytes | Source,
    format_: str,
    reading: Reading,
    file: str,
    *,
    base: str | None = None,
    position: Callable[[], tuple[int, int | None]] = lambda: (0, None),
    shift: int = 0,
) -> None:
    """Read a document of any syntax; `shift` characters of its first line are not its own."""
    parser = _parser(source, format_, base)
    found = _items(parser)
    scope = document_scope(reading.scope(), reading.own_scope())
    first = list(islice(found, 1))
    reading.declare(parser.prefixes)  # those of RDF/XML belong to elements, and go when they end
    found = chain(first, found)
    while batch := list(islice(found, _BATCH)):
        reading.declare(parser.prefixes)
        quads = []
        for item in batch:
            if isinstance(item, SyntaxError):
                column = item.offset
                if shift and item.lineno == 1 and column is not None:
                    column = max(1, column - shift)
                reading.malformed(file, item.lineno, column, message_of(item))
            else:
                quads.append(item)
        add(quads, scope, reading, file)
        reading.progress(file, *position())
        if len(batch) == _BATCH and not quads:
            return  # this is another syntax, or none


def add(quads: Sequence[Quad], scope: Scope, reading: Reading, file: str) -> None:
    """Encode statements, without the names of their graphs."""
    numbers: dict[object, int] = {}
    number = numbers.setdefault
    columns = (
        [number(quad.subject, len(numbers)) for quad in quads],
        [number(quad.predicate, len(numbers)) for quad in quads],
        [number(quad.object, len(numbers)) for quad in quads],
    )
    if any(isinstance(term, Triple) for term in numbers):
        plain = [quad for quad in quads if not isinstance(quad.object, Triple)]
        for _ in range(len(quads) - len(plain)):
            reading.malformed(file, None, None, NO_TRIPLE)
        add(plain, scope, reading, file)
        return
    texts = map(str, numbers)
    canonical = [scope(text) if text.startswith("_:") else text for text in texts]
    ids = reading.dictionary.encode_texts(pa.array(canonical, pa.large_string()))
    reading.add(*(ids[column] for column in columns))


def document_scope(prefix: str, own: str) -> Scope:
    """Labels of a document's blank nodes; those without one are numbered.

    >>> scope = document_scope("d7.", "d7.")
    >>> scope("_:b"), scope("_:" + "0" * 32)
    ('_:d7.b', '_:d7..0')
    """
    numbers: dict[str, int] = {}

    def scope(text: str) -> str:
        if _UNLABELED.fullmatch(text):
            # No label begins with a full stop, so that this cannot be one.
            return f"_:{own}.{numbers.setdefault(text, len(numbers))}"
        return f"_:{prefix}{text[2:]}"

    return scope


def message_of(error: SyntaxError) -> str:
    """What the library says, without the place and in our words where there are some."""
    said = _PLACE.sub("", error.msg)
    if said in _EXPECTED:
        return _EXPECTED[said]
    return said[:1].lower() + said[1:]
