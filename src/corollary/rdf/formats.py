"""Read RDF of every syntax as columns of ids, and write N-Triples.

Compiled loops tokenize N-Triples and N-Quads (`rdf.lines`); pyoxigraph parses Turtle, TriG, RDF/XML
and JSON-LD (`rdf.library`). With the option `graphs`, the statements of named graphs are kept apart
(`Triples.quads`); otherwise they are triples like any others.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Unpack, cast

import pyarrow as pa

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.files import replace_file
from corollary.core.strings import string_bytes
from corollary.errors import InvalidInput, nearest
from corollary.rdf import files, frames
from corollary.rdf.library import LIBRARY, read_document
from corollary.rdf.owl_syntax import SYNTAXES
from corollary.rdf.triples import Reading, ReadingOptions, Triples

if TYPE_CHECKING:
    import rdflib

    Source = str | Path | frames.Frame | rdflib.Graph

FORMATS = (*LIBRARY, *SYNTAXES)
_LINES = ("n-triples", "n-quads")
_PREFIXED = ("turtle", "trig")
_IRI = re.compile(r'[^\x00-\x20<>"{}|^`\\\ud800-\udfff]*')
_BATCH = 1 << 18  # statements per write
_SHORT = 1 << 11  # bytes; searching a shorter text for prefixes is faster than declaring all


def read(
    sources: Source | Iterable[Source],
    dictionary: Dictionary,
    *,
    format: str | None = None,
    **options: Unpack[ReadingOptions],
) -> Triples:
    """Read the statements of files, folders, patterns, tables and graphs.

    A source is a path, a folder (with the folders in it), a pattern such as `data/*.nt`, a table of
    Arrow, pandas or Polars with the columns subject, predicate and object, or a graph of rdflib.
    The suffix of a file determines its syntax, unless `format` names one of `FORMATS`. For the
    options, see `ReadingOptions`.

    >>> import pyarrow as pa
    >>> dictionary = Dictionary()
    >>> table = {"subject": ["urn:s"], "predicate": ["urn:p"], "object": ['"1"']}
    >>> triples = read(pa.table(table), dictionary)
    >>> dictionary.texts(triples.object).to_pylist()
    ['"1"']
    """
    if (on_error := options.get("on_error", "fail")) not in ("fail", "skip"):
        raise ValueError(f'on_error must be "fail" or "skip", not {on_error!r}')
    known = _format(format) if format else None
    reading = Reading(dictionary, **options)
    seen: set[Path] = set()
    for number, source in enumerate(_each(sources), 1):
        if isinstance(source, str | Path):
            for file in files.find(source, known):
                if (path := file.path.resolve()) not in seen:
                    seen.add(path)
                    _read_file(file, reading, is_known=known is not None)
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
    prefixes: Mapping[str, str] | None = None,
    **options: Unpack[ReadingOptions],
) -> Triples:
    """Read the statements of a text, which is a separate document.

    Turtle and TriG may use `prefixes` that they do not declare.

    >>> dictionary = Dictionary()
    >>> triples = read_text("@prefix : <urn:> . :s :p :o, 7 .", dictionary)
    >>> dictionary.texts(triples.object).to_pylist()
    ['<urn:o>', '"7"^^<http://www.w3.org/2001/XMLSchema#integer>']
    """
    format_ = _format(format)
    reading = Reading(dictionary, **options)
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if format_ in _LINES:
        from corollary.rdf.lines import read_lines  # loads the compiler

        read_lines(io.BytesIO(data), format_, reading, name)
    else:
        known = (prefixes or {}) if format_ in _PREFIXED else {}
        # On the first line, to keep line numbers. The rule language has IRIs that Turtle cannot
        # express; such a prefix must not make a text fail.
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
    """Test whether Turtle can express an IRI."""
    return _IRI.fullmatch(iri) is not None


def write(path: str | Path, triples: Triples, dictionary: Dictionary) -> None:
    """Write N-Triples atomically, compressed if the name ends with `.gz` or `.zst`.

    The statements of named graphs follow as N-Quads.
    """

    def write_lines(target: Path) -> None:
        with _output(target) as stream:
            for start in range(0, len(triples), _BATCH):
                stream.write(_written(triples.columns, slice(start, start + _BATCH), dictionary))
            for start in range(0, len(triples.quads), _BATCH):
                columns = [*triples.quads.T]
                stream.write(_written(columns, slice(start, start + _BATCH), dictionary))

    replace_file(Path(path), write_lines, create_parents=False)


def _output(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        # Arrow uses the highest level: 11 s instead of 3 s for 1.3 million lines.
        return cast("IO[bytes]", gzip.GzipFile(path, "wb", compresslevel=6, mtime=0))
    return cast("IO[bytes]", pa.output_stream(str(path), compression="detect"))


def _written(columns: Sequence[Ids], rows: slice, dictionary: Dictionary) -> memoryview:
    texts = [dictionary.texts(column[rows]) for column in columns]
    return string_bytes(frames.statement_lines(texts))[1].data


def _read_file(file: files.File, reading: Reading, *, is_known: bool) -> None:
    with files.opened(file.path, reading.limit) as stream:
        format_ = file.format if is_known else stream.syntax(file.format)
        name = str(file.path)
        if format_ in _LINES:
            from corollary.rdf.lines import read_lines  # loads the compiler

            read_lines(stream, format_, reading, name, position=stream.position)
        else:
            base = reading.base_iri or file.path.resolve().as_uri()
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
        f"unknown RDF syntax {name!r}",
        (f"did you mean {close}? " if close else "") + f"choose one of {', '.join(FORMATS)}",
    )
