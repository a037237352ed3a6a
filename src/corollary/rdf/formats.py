"""RDF of every syntax as columns of ids, and back to files.

N-Triples and N-Quads are tokenized by compiled loops (`rdf.lines`); Turtle, TriG, RDF/XML and
JSON-LD are parsed by pyoxigraph (`rdf.library`). Names of graphs are dropped: a statement of a
named graph is a triple like any other.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyarrow import compute

from corollary.core.dictionary import Dictionary
from corollary.errors import InvalidInput, OperationFailed, nearest
from corollary.rdf import files, frames
from corollary.rdf.library import LIBRARY, read_document
from corollary.rdf.triples import OnError, OnProgress, Progress, Reading, Skipped, Triples

if TYPE_CHECKING:
    import rdflib

    Source = str | Path | frames.Frame | rdflib.Graph

FORMATS = tuple(LIBRARY)
_LINES = ("n-triples", "n-quads")
_PREFIXED = ("turtle", "trig")
_IRI = re.compile(r'[^\x00-\x20<>"{}|^`\\\ud800-\udfff]*')
_BATCH = 1 << 18  # statements that are written at once
_SHORT = 1 << 11  # bytes of a text that is searched for its prefixes: faster than declaring all
_THREADS = 4  # more find nothing to do: one encodes what the others tokenize

__all__ = ["FORMATS", "OnError", "OnProgress", "Progress", "Skipped", "Triples", "read",
           "read_text", "write"]  # fmt: skip


def read(
    sources: Source | Iterable[Source],
    dictionary: Dictionary,
    *,
    format: str | None = None,
    on_error: OnError = "fail",
    on_progress: OnProgress | None = None,
    threads: int | None = None,
    keep_labels: bool = False,
    limit_input_bytes: int | None = None,
) -> Triples:
    """The statements of files, folders, patterns, tables and graphs.

    A source is a path, a folder (with the folders in it), a pattern such as `data/*.nt`, a table of
    Arrow, pandas or Polars with the columns subject, predicate and object, or a graph of rdflib.
    The suffix of a file tells its syntax, unless `format` names one of `FORMATS`. A statement that
    cannot be read is an error, or with `on_error="skip"` counted and passed over. A document's
    blank nodes are its own, unless `keep_labels` says that the same label is the same node.
    `limit_input_bytes` bounds the bytes of each file after decompression.

    >>> import pyarrow as pa
    >>> dictionary = Dictionary()
    >>> table = {"subject": ["urn:s"], "predicate": ["urn:p"], "object": ['"1"']}
    >>> triples = read(pa.table(table), dictionary)
    >>> dictionary.texts(triples.object).to_pylist()
    ['"1"']
    """
    if on_error not in ("fail", "skip"):
        raise ValueError(f'on_error must be "fail" or "skip", not {on_error!r}')
    known = _format(format) if format else None
    if threads is None:
        threads = min(_THREADS, os.cpu_count() or 1)
    reading = Reading(
        dictionary,
        on_error=on_error,
        on_progress=on_progress,
        threads=threads,
        keep_labels=keep_labels,
        limit=limit_input_bytes,
    )
    seen: set[Path] = set()
    for number, source in enumerate(_each(sources), 1):
        if isinstance(source, str | Path):
            for file in files.find(source, known):
                if (path := file.path.resolve()) not in seen:
                    seen.add(path)
                    _read_file(file, reading, told=known is not None)
        elif frames.is_graph(source):
            frames.read_graph(source, reading, f"graph {number}")
        elif frames.is_frame(source):
            frames.read_frame(source, reading, f"table {number}")
        else:
            raise InvalidInput(
                "E322",
                f"expected a path, a table or a graph, found {type(source).__name__}",
                "read_text reads statements that are given as text",
            )
    return reading.triples()


def read_text(
    text: str | bytes,
    dictionary: Dictionary,
    *,
    format: str = "turtle",
    base: str | None = None,
    name: str = "text",
    on_error: OnError = "fail",
    keep_labels: bool = False,
    prefixes: Mapping[str, str] | None = None,
) -> Triples:
    """The statements of a text, which is a document of its own.

    Turtle and TriG may use `prefixes` that they do not declare. `keep_labels` is as for `read`.

    >>> dictionary = Dictionary()
    >>> triples = read_text("@prefix : <urn:> . :s :p :o, 7 .", dictionary)
    >>> dictionary.texts(triples.object).to_pylist()
    ['<urn:o>', '"7"^^<http://www.w3.org/2001/XMLSchema#integer>']
    """
    format_ = _format(format)
    reading = Reading(dictionary, on_error=on_error, keep_labels=keep_labels)
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if format_ in _LINES:
        from corollary.rdf.lines import read_lines  # loads the compiler

        read_lines(io.BytesIO(data), format_, reading, name)
    else:
        known = (prefixes or {}) if format_ in _PREFIXED else {}
        # On the first line, so that the numbers of lines in messages are right. The rule language
        # knows IRIs that Turtle cannot write; a text must not fail because of such a prefix.
        long = len(data) > _SHORT
        declared = "".join(
            f"@prefix {prefix}: <{iri}> . "
            for prefix, iri in known.items()
            if _is_written(iri) and (long or f"{prefix}:".encode(errors="replace") in data)
        )
        data = declared.encode() + data.removeprefix(files.MARK)
        read_document(data, format_, reading, name, base=base, shift=len(declared))
    return reading.triples()


@lru_cache
def _is_written(iri: str) -> bool:
    """Whether Turtle can write an IRI."""
    return _IRI.fullmatch(iri) is not None


def write(path: str | Path, triples: Triples, dictionary: Dictionary) -> None:
    """Write N-Triples, compressed if the name ends with `.gz` or `.zst`.

    The file appears whole or not at all.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        try:
            with _output(temporary) as stream:
                for start in range(0, len(triples), _BATCH):
                    stream.write(_written(triples, slice(start, start + _BATCH), dictionary))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OperationFailed(
            "E401", f"cannot write {path}: {error.strerror or error}", file=str(path)
        ) from None


def _output(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        # Not by Arrow, which takes the highest level: 11 s instead of 3 s for 1.3 million lines.
        return cast("IO[bytes]", gzip.GzipFile(path, "wb", compresslevel=6, mtime=0))
    return cast("IO[bytes]", pa.output_stream(str(path), compression="detect"))


def _written(triples: Triples, rows: slice, dictionary: Dictionary) -> memoryview:
    texts = [dictionary.texts(column[rows]) for column in triples.columns]
    end, blank = frames.large(".\n"), frames.large(" ")
    return frames.array_bytes(compute.binary_join_element_wise(*texts, end, blank))


def _read_file(file: files.File, reading: Reading, *, told: bool) -> None:
    with files.opened(file.path, reading.limit) as stream:
        format_ = file.format
        if not told and files.suffix_of(file.path) == ".owl" and not stream.begins_with(b"<"):
            format_ = "turtle"
        name = str(file.path)
        if format_ in _LINES:
            from corollary.rdf.lines import read_lines  # loads the compiler

            read_lines(
                stream, format_, reading, name, threads=reading.threads, position=stream.position
            )
        else:
            base = file.path.resolve().as_uri()
            read_document(stream, format_, reading, name, base=base, position=stream.position)


def _each(sources: Any) -> Iterator[Any]:
    if isinstance(sources, str | Path) or frames.is_graph(sources) or frames.is_frame(sources):
        yield sources
    elif isinstance(sources, Iterable):
        yield from sources
    else:
        yield sources


def _format(name: str) -> str:
    if name in FORMATS:
        return name
    close = nearest(name, FORMATS)
    raise InvalidInput(
        "E321",
        f"there is no RDF syntax named {name}",
        (f"did you mean {close}? " if close else "") + f"Known are {', '.join(FORMATS)}",
    )
