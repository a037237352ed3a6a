"""Parsing with pyoxigraph: whole documents, and the lines that the tokenizer rejects.

Its terms have canonical text. After a syntax error it resumes at the next statement it finds.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, cast

import numpy as np
import pyarrow as pa
import pyoxigraph
from pyoxigraph import DefaultGraph, Quad, QuadParser, RdfFormat, Triple

from corollary.core.inputs import too_long
from corollary.errors import OperationFailed
from corollary.rdf.guard import ExpansionBudget, Guard, Source
from corollary.rdf.owl_syntax import SYNTAXES, prefixes_of, read_all, to_rdf_xml
from corollary.rdf.triples import Reading
from corollary.rdf.xml_literals import canonical

LIBRARY = {
    "n-triples": RdfFormat.N_TRIPLES,
    "n-quads": RdfFormat.N_QUADS,
    "turtle": RdfFormat.TURTLE,
    "trig": RdfFormat.TRIG,
    "rdf/xml": RdfFormat.RDF_XML,
    "json-ld": RdfFormat.JSON_LD,
}
NO_TRIPLE = "expected an IRI, a blank node or a literal as object, found a triple"
_DEFAULT_GRAPH = DefaultGraph()
GRAPHS = ("n-quads", "trig", "json-ld")  # syntaxes with named graphs
_BATCH = 1 << 10  # statements encoded at once; 65,536 were slower by a third
_STEP = 1 << 5  # statements between two checks of the bytes that the parser has read
_BATCH_BYTES = 4 << 20  # bytes of a document that end a batch, too
_PLACE = re.compile(r"Parser error (?:at|between) .*?(?:columns? \d+(?: and \d+)?): ")
_EXPECTED = {
    "Quads must be followed by a dot": "expected a full stop after the object",
    "Triples must be followed by a dot": "expected a full stop after the object",
    "No LoadDocumentCallback has been set to load remote contexts": "expected a context inside the"
    " document; contexts at addresses are not fetched",
    "Unexpected end": "expected the rest of the statement, found the end",
    "Unexpected end of file": "expected the rest of the statement, found the end",
    "The subject of a triple must be an IRI or a blank node": "expected an IRI or a blank node as"
    " subject",
    "The predicate of a triple must be an IRI": "expected an IRI as predicate",
    "No scheme found in an absolute IRI": "expected an IRI in full, with a scheme such as http:",
    "line jumps are not allowed in the middle of triples": "expected the rest of the statement on"
    " the same line",
}
# The library labels anonymous blank nodes with random numbers of 128 bits.
_UNLABELED = re.compile(r"_:[0-9a-f]{28,32}")

Parsed = Quad | SyntaxError


Scope = Callable[[str], str]


def parse(source: bytes | Source, format_: str, base: str | None = None) -> Iterator[Parsed]:
    """Parse a document into statements and errors, in order.

    >>> [type(found).__name__ for found in parse(b"<urn:a> 1 <urn:b> .\\n", "n-triples")]
    ['SyntaxError']
    """
    return _items(_parser(source, format_, base))


def _parser(source: bytes | Source, format_: str, base: str | None) -> QuadParser:
    return pyoxigraph.parse(cast("bytes | IO[bytes]", source), LIBRARY[format_], base_iri=base)


def _items(parser: QuadParser, file: str | None = None) -> Iterator[Parsed]:
    before = None
    while True:
        try:
            yield from parser
        except SyntaxError as error:
            if before == error.args:  # the parser is stuck at this error
                return
            before = error.args
            yield error
        except MemoryError as error:
            if "buffer" in str(error):  # the parser's buffer, which holds one token
                raise too_long("a term, or a comment,", file) from None
            raise OperationFailed(
                "E406", f"not enough memory to parse {file or 'the text'}", file=file
            ) from None
        else:
            return


def _unknown_position() -> tuple[int, int | None]:
    return 0, None


def read_document(
    source: bytes | Source,
    format_: str,
    reading: Reading,
    file: str,
    *,
    base: str | None = None,
    position: Callable[[], tuple[int, int | None]] = _unknown_position,
    shift: int = 0,
) -> None:
    """Read a document of any syntax; `shift` characters were prepended to its first line."""
    if format_ in SYNTAXES:
        data = source if isinstance(source, bytes) else read_all(source.read)
        reading.declare(prefixes_of(data.decode(errors="replace")))
        source, format_, position = to_rdf_xml(data, format_, file), "rdf/xml", _unknown_position
    if isinstance(source, bytes) and reading.skips:  # the guard must track what the parser reads
        source = io.BytesIO(source)
    window = reading.limit if format_ == "json-ld" else None
    guard = Guard(None if isinstance(source, bytes) else source, format_, file, window=window)
    if isinstance(source, bytes):
        guard.check(source)
    parser = _parser(source if isinstance(source, bytes) else guard, format_, base)
    reading.has_graphs = format_ in GRAPHS
    document = _Document(parser, guard, reading, file, position, shift, is_xml=format_ == "rdf/xml")
    items = _items(parser, file)
    batch = list(islice(items, 1))
    if document.is_xml:  # its prefixes are scoped to elements
        reading.declare(parser.prefixes)
    while more := list(islice(items, _BATCH if isinstance(source, bytes) else _STEP)):
        batch += more
        if len(batch) >= _BATCH or guard.pending > _BATCH_BYTES:
            if not document.add(batch):
                return  # the document has another syntax, or none
            batch = []
    document.add(batch)
    if guard.is_cut() and not document.mistakes:
        reading.malformed(file, None, None, _EXPECTED["Unexpected end of file"])
    if document.batches > 1:
        reading.declare(parser.prefixes)


@dataclass
class _Document:
    """A document that is read batch by batch."""

    parser: QuadParser
    guard: Guard
    reading: Reading
    file: str
    position: Callable[[], tuple[int, int | None]]
    shift: int
    is_xml: bool
    batches: int = 0
    mistakes: int = 0

    def __post_init__(self) -> None:
        self._scope = document_scope(self.reading.scope(), self.reading.own_scope())
        self._budget = ExpansionBudget(self.guard)

    def add(self, batch: list[Parsed]) -> bool:
        """Encode a batch; False if it consists only of errors."""
        self.batches += 1
        # The parser lists all prefixes, of which there may be many: after 1, 2, 4, … batches.
        if self.batches & (self.batches - 1) == 0:
            self.reading.declare(self.parser.prefixes)
        quads = [item for item in batch if not isinstance(item, SyntaxError)]
        if len(quads) < len(batch):
            for item in batch:
                if isinstance(item, SyntaxError):
                    self._mistake(item)
        if self.is_xml:
            quads = list(map(canonical, quads))
        add(quads, self._scope, self.reading, self.file, self._budget)
        self.reading.progress(self.file, *self.position())
        self.guard.progress()
        return bool(quads) or len(batch) < _BATCH

    def _mistake(self, error: SyntaxError) -> None:
        self.mistakes += 1
        column = error.offset
        if self.shift and error.lineno == 1 and column is not None:
            column = max(1, column - self.shift)
        self.reading.malformed(self.file, error.lineno, column, message_of(error))
        self.guard.mistake()


def add(
    quads: Sequence[Quad],
    scope: Scope,
    reading: Reading,
    file: str,
    budget: ExpansionBudget | None = None,
) -> None:
    """Encode statements."""
    numbers: dict[object, int] = {}
    number = numbers.setdefault
    columns = [
        [number(quad.subject, len(numbers)) for quad in quads],
        [number(quad.predicate, len(numbers)) for quad in quads],
        [number(quad.object, len(numbers)) for quad in quads],
    ]
    if any(isinstance(term, Triple) for term in numbers):
        plain = [quad for quad in quads if not isinstance(quad.object, Triple)]
        for _ in range(len(quads) - len(plain)):
            reading.malformed(file, None, None, NO_TRIPLE)
        add(plain, scope, reading, file, budget)
        return
    names = [quad.graph_name for quad in quads] if reading.has_graphs else []
    named = [name != _DEFAULT_GRAPH for name in names]
    if reading.keeps_graphs and any(named):
        columns.append(
            [
                number(name, len(numbers)) if is_named else 0
                for name, is_named in zip(names, named, strict=True)
            ]
        )
    texts = list(map(str, numbers))
    if budget is not None:
        budget.spend(texts)
    canonical = [scope(text) if text.startswith("_:") else text for text in texts]
    ids = reading.dictionary.encode_texts(pa.array(canonical, pa.large_string()))
    rows = ids[np.array(columns, np.intp)]
    if any(named):
        reading.add_quads([*rows[:3]], rows[-1], np.array(named, np.bool_), file)
    else:
        reading.add(*rows)


def document_scope(prefix: str, own: str) -> Scope:
    """Rename a document's blank nodes: prefix their labels, number the anonymous ones.

    >>> scope = document_scope("d7.", "d7.")
    >>> scope("_:b"), scope("_:" + "0" * 32)
    ('_:d7.b', '_:d7..0')
    """
    numbers: dict[str, int] = {}

    def scope(text: str) -> str:
        if _UNLABELED.fullmatch(text):
            # No label begins with a full stop, so this cannot collide.
            return f"_:{own}.{numbers.setdefault(text, len(numbers))}"
        return f"_:{prefix}{text[2:]}"

    return scope


def message_of(error: SyntaxError) -> str:
    """Return the library's message without the place, reworded if a better wording is known."""
    said = _PLACE.sub("", error.msg)
    if said in _EXPECTED:
        return _EXPECTED[said]
    return said[:1].lower() + said[1:]
