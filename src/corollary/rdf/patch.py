"""RDF Patch: files of statements that are added and deleted, in transactions.

A line is `A s p o .` or `D s p o .`, with terms as N-Triples writes them; `TX .` begins a
transaction, `TC .` ends it and `TA .` takes it back. `H`, `PA` and `PD` lines say nothing about
statements. Labels of blank nodes are those of the store. Of what is said about a statement, the
last counts.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.errors import InvalidInput
from corollary.rdf import files, formats

_IGNORED = (b"H", b"PA", b"PD")


def read_patch(path: str | Path) -> tuple[pa.Table, pa.Table]:
    """What a patch adds and what it deletes, each with subject, predicate and object.

    >>> import tempfile
    >>> patch = Path(tempfile.mkdtemp()) / "change.rdfp"
    >>> _ = patch.write_text(
    ...     "TX .\\nA <urn:a> <urn:p> <urn:b> .\\nD <urn:a> <urn:p> <urn:c> .\\nTC ."
    ... )
    >>> added, deleted = read_patch(patch)
    >>> added["object"].to_pylist(), deleted["object"].to_pylist()
    (['<urn:b>'], ['<urn:c>'])
    """
    last: dict[bytes, tuple[bool, int]] = {}  # of each statement: whether it is added, the line
    pending: dict[bytes, tuple[bool, int]] | None = None
    for number, line in enumerate(_lines(Path(path)), 1):
        word, _, rest = line.strip().partition(b" ")
        if word in (b"A", b"D"):
            (last if pending is None else pending)[rest.strip()] = (word == b"A", number)
        elif word == b"TX" and pending is None:
            pending = {}
        elif word in (b"TC", b"TA") and pending is not None:
            last |= pending if word == b"TC" else {}
            pending = None
        elif word and not word.startswith(b"#") and word not in _IGNORED:
            raise InvalidInput(
                "E549",
                f"expected a line of RDF Patch, found {line[:60].decode(errors='replace')!r}",
                "lines begin with A, D, TX, TC, TA, H, PA or PD",
                file=str(path),
                line=number,
            )
    if pending is not None:
        raise InvalidInput(
            "E549", f"a transaction of {path} is not ended by TC or TA", file=str(path)
        )
    return _table(last, True, path), _table(last, False, path)


def is_patch(path: str | Path) -> bool:
    """Whether the name says that a file is a patch.

    >>> is_patch("a.rdfp.gz"), is_patch("a.nt")
    (True, False)
    """
    return files.suffix_of(Path(path)) == ".rdfp"


def _lines(path: Path) -> list[bytes]:
    pieces = []
    with files.opened(path) as stream:
        while piece := stream.read(1 << 20):
            pieces.append(piece)
    return b"".join(pieces).split(b"\n")


def _table(last: dict[bytes, tuple[bool, int]], added: bool, path: str | Path) -> pa.Table:
    chosen = [(text, number) for text, (is_added, number) in last.items() if is_added == added]
    dictionary = Dictionary()
    try:
        triples = formats.read_text(
            b"\n".join(text for text, _ in chosen),
            dictionary,
            format="n-triples",
            keep_labels=True,
        )
    except InvalidInput as error:
        line = chosen[error.line - 1][1] if error.line is not None else None
        raise InvalidInput(
            error.code, error.message, error.hint, file=str(path), line=line
        ) from None
    texts = [dictionary.texts(column) for column in triples.columns]
    return pa.table(texts, names=["subject", "predicate", "object"])
