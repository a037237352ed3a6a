"""`Guard` scans every byte of a document before the parser reads it.

The parser library (pyoxigraph) expands entities, recurses as deeply as the document nests, and
buffers until a statement is complete. `Guard` bounds these costs: the scanners of `rdf.scan` limit
nesting, tokens and names, entities are checked here, and the parser may read only a bounded number
of bytes without yielding a statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from corollary.core.inputs import MAX_ITEM_BYTES, too_long
from corollary.errors import InvalidInput

MAX_ENTITY = 1024  # bytes of the text of an entity
WINDOW = 64 << 20  # bytes that the parser may read without yielding a statement
_BLOCK = 1 << 18  # bytes per scan
_DECLARATION = 2 * MAX_ENTITY  # bytes of the declaration of an entity
_MAX_OPENED = 4000  # `<<` without a statement after an error; the parser's stack overflows at 5,000
# Character references and the five entities of XML expand to one character each. A percent sign
# is part of an IRI, not a reference to a parameter entity.
_ENTITY = re.compile(
    rb"<!ENTITY\s+[^\s%\"'<>&;]+\s+"
    rb"(?:\"(?P<double>(?:[^\"&%<]|%[0-9A-Fa-f]{2}|&(?:\#x?[0-9A-Fa-f]+|amp|lt|gt|quot|apos);)*)\""
    rb"|'(?P<single>(?:[^'&%<]|%[0-9A-Fa-f]{2}|&(?:\#x?[0-9A-Fa-f]+|amp|lt|gt|quot|apos);)*)')"
    rb"\s*>",
)
_SCANNED = ("turtle", "trig", "rdf/xml", "json-ld")
# A level of nesting takes at least one bracket, so shorter texts of these syntaxes are harmless.
_BRACKETS, _HARMLESS = ("turtle", "trig"), 1000


class Source(Protocol):
    """A readable source of bytes."""

    def read(self, size: int, /) -> bytes: ...


class Guard:
    """The bytes of a document; reading raises an error at a limit.

    `window` is the number of bytes that the parser may read between two calls of `progress`.
    """

    def __init__(
        self, source: Source | None, format_: str, file: str, *, window: int | None = None
    ) -> None:
        self.file = file
        self.bytes = 0
        self.pending = 0  # bytes read since the last progress
        self._source = source
        self._format = format_
        self._window = window or WINDOW
        self._block = b""
        self._at = 0
        self._declaration = b""  # the end of a block, in which an entity may start
        self._mistakes = False
        self._opened = 0

    @cached_property
    def _state(self) -> npt.NDArray[np.int64]:
        """The state of the scanner."""
        from corollary.rdf import scan  # loads the compiler

        return scan.new_state()

    @cached_property
    def _scan(self) -> Callable[[npt.NDArray[np.uint8], npt.NDArray[np.int64]], int]:
        from corollary.rdf import scan

        scanners = {"rdf/xml": scan.scan_xml, "json-ld": scan.scan_json_ld}
        return scanners.get(self._format, scan.scan_turtle)

    def read(self, size: int) -> bytes:
        """Return the next bytes for the parser."""
        if self._at >= len(self._block):
            assert self._source is not None, "the guard of bytes is not read"
            self._block, self._at = self._source.read(_BLOCK), 0
            self.check(self._block)
        data = self._block[self._at : self._at + size]
        self._at += len(data)
        self.pending += len(data)
        if self.pending > self._window:
            raise self._without_statement()
        if self._mistakes:
            self._count_opened(data)
        return data

    def check(self, data: bytes) -> None:
        """Scan the next bytes of the document."""
        self.bytes += len(data)
        if self._format == "rdf/xml":
            self._check_entities(data)
        if self._source is None and self._format in _BRACKETS and len(data) < _HARMLESS:
            return
        if self._format in _SCANNED and data:
            limit = self._scan(np.frombuffer(data, np.uint8), self._state)
            if limit:
                raise self._exceeded(limit)

    def progress(self) -> None:
        """Record that the parser has yielded statements or an error."""
        self.pending = 0
        self._opened = 0

    def mistake(self) -> None:
        """Reset after an error: the parser resynchronizes, out of step with the scanner."""
        from corollary.rdf import scan

        if self._scan is scan.scan_turtle:
            self._mistakes = True
            scan.mistake(self._state)

    def is_cut(self) -> bool:
        """Whether the document that was read is a part of one; the parser does not tell for XML."""
        from corollary.rdf import scan

        return self._format == "rdf/xml" and not scan.is_whole_xml(self._state)

    def _count_opened(self, data: bytes) -> None:
        """Bound nested triple terms independently of the scanner."""
        self._opened += data.count(b"<<")
        if self._opened > _MAX_OPENED:
            raise self._nested("triple terms", _MAX_OPENED)

    def _check_entities(self, data: bytes) -> None:
        from corollary.rdf import scan

        text = self._declaration + data
        self._declaration = b""
        at = text.find(b"<!")
        while at >= 0:
            name = text[at + 2 : at + 8].lower()
            if name == b"entity":
                found = _ENTITY.match(text[at : at + _DECLARATION])
                if found is None:
                    if len(text) - at >= _DECLARATION or b">" in text[at:]:
                        raise self._refused_entity()
                    break  # the rest is in the next block
                value = max(map(len, filter(None, found.groups())), default=0)
                if value > MAX_ENTITY:
                    raise self._refused_entity()
                longest = max(int(self._state[scan.XML_ENTITY]), value)
                self._state[scan.XML_ENTITY] = longest
            elif len(name) < 6 and b"entity".startswith(name):
                break
            at = text.find(b"<!", at + 2)
        if at < 0:
            at = len(text) - 1 if text.endswith(b"<") else len(text)
        self._declaration = text[at:]

    def _refused_entity(self) -> InvalidInput:
        return InvalidInput(
            "E323",
            "an XML entity is not a short text",
            f"an entity may stand for up to {MAX_ENTITY:,} bytes of text without other entities;"
            " write longer texts out",
            file=self.file,
        )

    def _nested(self, what: str, limit: int) -> InvalidInput:
        return InvalidInput(
            "E325", f"{what} are nested more than {limit:,} levels deep", file=self.file
        )

    def _without_statement(self) -> InvalidInput:
        hint = None
        if self._format == "json-ld":
            hint = (
                "a document with a context is held in memory as a whole: raise the limit on input"
                " bytes, or convert the document to N-Quads"
            )
        return InvalidInput(
            "E324",
            f"no statement ends within {self._window:,} bytes",
            hint,
            file=self.file,
        )

    def _exceeded(self, limit: int) -> InvalidInput:
        from corollary.rdf import scan

        if limit == scan.NESTING:
            json = self._format == "json-ld"
            most = scan.MAX_NESTING_JSON if json else scan.MAX_NESTING
            what = {"rdf/xml": "elements", "json-ld": "objects and arrays"}.get(self._format)
            return self._nested(what or "brackets or triple terms", most)
        if limit == scan.CONTEXTS:
            return self._nested("contexts", scan.MAX_CONTEXTS)
        if limit == scan.TOKEN:
            return too_long("a text or a tag", self.file)
        message = {
            scan.NAMESPACE: f"a namespace or base IRI is longer than {scan.MAX_NAMESPACE:,} bytes",
            scan.ATTRIBUTES: f"an element has more than {scan.MAX_ATTRIBUTES:,} attributes",
            scan.CONTEXT: f"a context is longer than {scan.MAX_CONTEXT >> 10:,} KiB",
            scan.CONTEXT_WORK: "the contexts apply to too many objects for their size",
            scan.EXPANSION: f"entities expand the document more than {scan.MAX_EXPANSION} times",
        }[limit]
        return InvalidInput("E327", message, file=self.file)


class ExpansionBudget:
    """Bounds the text of a document's terms by the size of the document.

    Namespaces expand terms, but not legitimately by a factor of a hundred.
    """

    def __init__(self, guard: Guard) -> None:
        from corollary.rdf import scan

        self._guard = guard
        self._times, self._spent = scan.MAX_EXPANSION, -scan.EXPANSION_FROM

    def spend(self, texts: list[str]) -> None:
        """Count the texts of new statements."""
        size = sum(map(len, texts))
        if size > MAX_ITEM_BYTES and max(map(len, texts)) > MAX_ITEM_BYTES:
            raise too_long("a term", self._guard.file)
        self._spent += size
        if self._spent > self._times * self._guard.bytes:
            raise InvalidInput(
                "E327",
                f"namespaces expand the document more than {self._times} times",
                file=self._guard.file,
            )
