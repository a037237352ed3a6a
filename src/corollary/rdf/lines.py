"""Read N-Triples and N-Quads: threads tokenize chunks of lines, which are encoded in order.

Each chunk has its own term numbers; only its distinct terms are looked up in the dictionary, by the
hashes that the tokenizer computed. The library parses the lines that the tokenizer rejects: all at
once if they are valid, else one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Protocol, TypeVar

import numpy as np
from pyoxigraph import Quad, Triple

from corollary.core.dictionary import Ids
from corollary.core.hashing import SLACK, Bytes
from corollary.core.inputs import MAX_ITEM_BYTES, too_long
from corollary.core.term_store import Spans
from corollary.errors import CorollaryError, InvalidInput
from corollary.rdf import library
from corollary.rdf.scan import MAX_NESTING
from corollary.rdf.tokenizer import Tokens, scoped, tokenize
from corollary.rdf.triples import Reading

CHUNK = 1 << 22  # bytes; the terms of a chunk fit into the cache of a core
_TAIL = 1 << 16

A = TypeVar("A")
B = TypeVar("B")


class Source(Protocol):
    """A readable source of bytes."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...


def read_lines(
    source: Source,
    format_: str,
    reading: Reading,
    file: str,
    *,
    position: Callable[[], tuple[int, int | None]] = lambda: (0, None),
) -> None:
    """Read a document of N-Triples or N-Quads."""
    prefix = reading.scope()
    quads = reading.has_graphs = format_ == "n-quads"
    total = position()[1]
    threads = reading.threads if total is not None and total >= CHUNK else 1
    before = 0
    chunks = _in_order(lambda chunk: tokenize(*chunk, quads=quads), _chunks(source, file), threads)
    with closing(chunks):  # ends the threads after an error
        try:
            for tokens in chunks:
                ids = _encoded(tokens, prefix, reading)
                subject, predicate, object_, *graph = tokens.triples
                columns = [ids[column] for column in (subject, predicate, object_)]
                if tokens.named:
                    named = graph[0] >= 0
                    reading.add_quads(columns, ids[graph[0]], named, file)
                else:
                    reading.add(*columns)
                if len(tokens.left):
                    _read_left(tokens, before, prefix, format_, reading, file)
                before += tokens.lines
                reading.progress(file, *position())
        except InvalidInput as error:
            if error.code == "E324" and error.line is None:  # the line after the complete ones
                error.line = before + 1
            raise


def _chunks(source: Source, file: str) -> Iterator[tuple[Bytes, int]]:
    """Yield chunks of complete lines: arrays with SLACK spare bytes, and their used lengths."""
    rest = np.empty(0, np.uint8)
    while True:
        room = min(len(rest) + max(CHUNK, len(rest)), MAX_ITEM_BYTES + 1)
        data = np.empty(room + 1 + SLACK, np.uint8)
        data[: len(rest)] = rest
        end = len(rest)
        view = data.data
        while end < room and (read := source.readinto(view[end:room])):
            end += read
        if end < room:
            if end and data[end - 1] != 10:
                data[end] = 10
                end += 1
            if end:
                yield data[: end + SLACK], end  # a loop over few bytes is interpreted
            return
        cut = _last_line_break(data, end)
        rest = data[cut:end]
        if len(rest) > MAX_ITEM_BYTES:
            raise too_long("a line", file)
        if cut:
            yield data, cut


def _last_line_break(data: Bytes, end: int) -> int:
    """Return the position after the last line break, 0 without line breaks."""
    for start in (max(0, end - _TAIL), 0):
        places = np.flatnonzero(data[start:end] == 10)
        if len(places):
            return start + int(places[-1]) + 1
    return 0


def _in_order(
    function: Callable[[A], B], items: Iterable[A], threads: int
) -> Generator[B, None, None]:
    """Map a function over items with threads, in order."""
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads, "corollary-read") as pool:
        ahead: deque[Future[B]] = deque()
        failure: CorollaryError | None = None
        try:
            try:
                for item in items:
                    ahead.append(pool.submit(function, item))
                    if len(ahead) > threads:
                        yield ahead.popleft().result()
            except CorollaryError as error:  # raised after the results of earlier items
                failure = error
            while ahead:
                yield ahead.popleft().result()
            if failure is not None:
                raise failure
        finally:
            for future in ahead:
                future.cancel()


def _encoded(tokens: Tokens, prefix: str, reading: Reading) -> Ids:
    """Encode the distinct terms of a chunk as ids."""
    data, starts, ends = tokens.spans
    blank = data[starts] == 95  # _
    if not blank.any():
        return reading.dictionary.encode_spans(tokens.spans, tokens.hashes)
    ids = np.empty(len(starts), np.uint32)
    labeled = scoped(Spans(data, starts[blank], ends[blank]), prefix.encode())
    ids[blank] = reading.dictionary.encode_spans(labeled)
    others = Spans(data, starts[~blank], ends[~blank])
    ids[~blank] = reading.dictionary.encode_spans(others, tokens.hashes[~blank])
    return ids


def _read_left(
    tokens: Tokens, before: int, prefix: str, format_: str, reading: Reading, file: str
) -> None:
    """Parse the lines that the tokenizer rejected."""
    data = tokens.spans.data
    lines = []
    for start, end, number in tokens.left.tolist():
        text = bytes(data[start:end])
        if text.count(b"<<") > MAX_NESTING:  # the parser would nest them on its stack
            raise InvalidInput(
                "E325",
                f"triple terms are nested more than {MAX_NESTING:,} levels deep",
                file=file,
                line=before + number,
            )
        lines += [(before + number, line) for line in text.splitlines()]  # also at a return
    scope: library.Scope = lambda text: f"_:{prefix}{text[2:]}"  # noqa: E731
    quads = []
    for item in library.parse(b"\n".join(line for _, line in lines), format_):
        if isinstance(item, SyntaxError) or isinstance(item.object, Triple):
            break  # parse line by line to locate it
        quads.append(item)
    else:
        library.add(quads, scope, reading, file)
        return
    quads = []
    for number, line in lines:
        quads += _read_line(number, line, format_, reading, file)
    library.add(quads, scope, reading, file)


def _read_line(number: int, line: bytes, format_: str, reading: Reading, file: str) -> list[Quad]:
    """Parse the statement of one line; none if it is malformed."""
    quads = []
    for item in library.parse(line, format_):
        if isinstance(item, SyntaxError):
            reading.malformed(file, number, item.offset, library.message_of(item))
            return []
        if isinstance(item.object, Triple):
            reading.malformed(file, number, None, library.NO_TRIPLE)
            return []
        quads.append(item)
    return quads
