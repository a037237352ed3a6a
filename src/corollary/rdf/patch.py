"""RDF Patch: transactions of added and deleted statements, one per line.

    H id <uuid:…> .        a header of the next transaction
    PA ex <http://example.org/> .
    TX .                   start of a transaction
    D ex:a ex:p ex:b .
    A ex:a ex:p ex:c .
    TC .                   it commits; TA . aborts it

Triples are in Turtle syntax, one per line; a fourth term is a named graph. Lines outside a
transaction form a transaction. Blank nodes keep their labels, so a later line can delete what an
earlier one added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np

from corollary.core.dictionary import Dictionary
from corollary.core.inputs import MAX_ITEM_BYTES, too_long
from corollary.errors import UNREADABLE, InvalidInput
from corollary.rdf import files, formats
from corollary.rdf.triples import Triples

_LETTERS = ("A", "D")
_PIECE = 1 << 20  # bytes per read
# The text before a colon, anchored at the start of a run of such characters to scan each run once.
_NAMES = re.compile(r"(?<![^\s<>\"'(),;\[\]:])([^\s<>\"'(),;\[\]:]*+):")


@dataclass
class PatchTransaction:
    """One transaction: runs of added or deleted triples, in order, and the headers before it."""

    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[bool, Triples]] = field(default_factory=list)  # added or deleted

    def __len__(self) -> int:
        return sum(len(triples) for _, triples in self.requests)


def read_patch(
    path: str | Path, dictionary: Dictionary, *, limit_input_bytes: int | None = None
) -> Iterator[PatchTransaction]:
    """Read the transactions of a file, which may be compressed (`.gz`, `.zst`)."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInput("E301", f"there is no file {path}", UNREADABLE, file=str(path))
    with files.opened(path, limit_input_bytes) as opened:
        yield from _Reader(str(path), dictionary).transactions(_lines(opened, str(path)))


def _lines(opened: files.Opened, name: str) -> Iterator[bytes]:
    rest = b""
    number = 0
    while data := opened.read(_PIECE):
        *lines, rest = (rest + data).split(b"\n")
        number += len(lines)
        yield from lines
        if len(rest) > MAX_ITEM_BYTES:
            raise too_long("a line", name, number + 1)
    if rest:
        yield rest


def write_patch(
    file: IO[str], transactions: Iterator[tuple[dict[str, str], list[str], list[str]]]
) -> None:
    """Write transactions: headers, lines of deleted and of added statements in N-Quads.

    >>> import sys
    >>> write_patch(sys.stdout, iter([({"version": "3"}, [], ["<a> <p> <b> ."])]))
    H version "3" .
    TX .
    A <a> <p> <b> .
    TC .
    """
    for headers, deleted, added in transactions:
        for name, value in headers.items():
            file.write(f'H {name} "{value}" .\n')
        file.write("TX .\n")
        file.writelines(f"D {line}\n" for line in deleted)
        file.writelines(f"A {line}\n" for line in added)
        file.write("TC .\n")


# A line with a graph, which is an IRI or a prefixed name.
_GRAPH = r"<[^<>\s]*>|[\w.-]*:[^\s\"<>]*"
_QUAD = re.compile(rf"(?P<triple>.*\S)\s+(?P<graph>{_GRAPH})\s*\.\s*", re.DOTALL)


def _together(parts: Sequence[Triples]) -> Triples:
    columns = [np.concatenate(column) for column in zip(*(p.columns for p in parts), strict=True)]
    found = Triples(columns[0], columns[1], columns[2])
    return replace(found, quads=np.concatenate([part.quads for part in parts]))


class _Reader:
    def __init__(self, name: str, dictionary: Dictionary) -> None:
        self.name = name
        self.dictionary = dictionary
        self.prefixes: dict[str, str] = {}
        self._lines: list[tuple[int, str, str]] = []  # number, letter, triple
        self._headers: dict[str, str] = {}
        self._open = False

    def transactions(self, lines: Iterator[bytes]) -> Iterator[PatchTransaction]:
        """Yield all transactions, in order."""
        number = 0
        for number, raw in enumerate(lines, 1):
            try:
                line = raw.decode("utf-8").strip()
            except UnicodeDecodeError:
                raise self._wrong(number, "the line is not UTF-8") from None
            if not line or line.startswith("#"):
                continue
            letter, _, rest = line.partition(" ")
            rest = rest.strip()
            if letter in _LETTERS:
                self._lines.append((number, letter, rest))
            elif letter == "TX":
                if self._open:
                    raise self._wrong(number, "TX inside a transaction")
                yield from self._pending()
                self._open = True
            elif letter in ("TC", "TA"):
                if not self._open:
                    raise self._wrong(number, f"{letter} without TX")
                self._open = False
                if letter == "TC":
                    yield self._taken()
                else:
                    self._lines = []
            elif letter == "H":
                name, _, value = rest.removesuffix(".").strip().partition(" ")
                self._headers[name] = value.strip().strip('"')
            elif letter in ("PA", "PD"):
                name, _, iri = rest.removesuffix(".").strip().partition(" ")
                name = name.strip('"').removesuffix(":")
                if letter == "PA":
                    self.prefixes[name] = iri.strip().strip("<>")
                else:
                    self.prefixes.pop(name, None)
            else:
                raise self._wrong(number, f"expected A, D, H, PA, PD, TX, TC or TA, found {letter}")
        if self._open:
            raise self._wrong(number, "the last transaction is not complete: TC is missing")
        yield from self._pending()

    def _pending(self) -> Iterator[PatchTransaction]:
        """Return the lines outside a transaction as a transaction."""
        if self._lines:
            yield self._taken()

    def _taken(self) -> PatchTransaction:
        found = PatchTransaction(self._headers)
        start = 0
        lines = self._lines
        for end in range(1, len(lines) + 1):
            if end == len(lines) or lines[end][1] != lines[start][1]:
                found.requests.append((lines[start][1] == "A", self._triples(lines[start:end])))
                start = end
        self._lines, self._headers = [], {}
        return found

    def _triples(self, lines: list[tuple[int, str, str]]) -> Triples:
        document = "\n".join(text for _, _, text in lines)
        for format_ in ("turtle", "nquads"):
            with suppress(InvalidInput):
                return self._parsed(document, format=format_, graphs=format_ == "nquads")
        return _together([self._line(number, text) for number, _, text in lines])

    def _line(self, number: int, text: str) -> Triples:
        try:
            return self._parsed(text)
        except InvalidInput as error:
            if error.code != "E320":  # a limit, not a syntax error
                error.line = number
                raise
            quad = _QUAD.fullmatch(text)
            if quad is not None:  # in TriG, the graph comes first
                text = f"{quad['graph']} {{ {quad['triple']} }}"
                with suppress(InvalidInput):
                    return self._parsed(text, format="trig", graphs=True)
            raise self._wrong(number, error.message) from None

    def _parsed(self, text: str, *, format: str = "turtle", graphs: bool = False) -> Triples:
        # Pass only the prefixes that the text may use: there may be many, and many runs.
        names = self.prefixes.keys() & set(_NAMES.findall(text))
        prefixes = {name: self.prefixes[name] for name in names}
        return formats.read_text(
            text,
            self.dictionary,
            format=format,
            name=self.name,
            keep_labels=True,
            prefixes=prefixes,
            graphs=graphs,
        )

    def _wrong(self, line: int, message: str) -> InvalidInput:
        return InvalidInput(
            "E508",
            message,
            "a line of RDF Patch is 'A <s> <p> <o> .', 'D <s> <p> <o> <graph> .', 'TX .' or 'TC .'",
            file=self.name,
            line=line,
        )
