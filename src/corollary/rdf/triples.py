"""`Triples`, the result of reading RDF, and `Reading`, the state while reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.notices import note
from corollary.core.tables import Tables, narrow
from corollary.errors import InvalidInput
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import QUADS, TRIPLE

OnError = OneOf["fail", "skip"]
Mask = npt.NDArray[np.bool_]
SAMPLES = 100  # skipped statements recorded with their places
# More threads would idle: one encodes what the others tokenize.
_THREADS = min(4, os.cpu_count() or 1)


class Progress(NamedTuple):
    """Progress of reading, in bytes of the file on disk."""

    file: str
    done: int
    total: int | None  # None if unknown
    statements: int  # statements of all files so far


OnProgress = Callable[[Progress], None]


class Skipped(NamedTuple):
    """A statement that could not be read."""

    file: str
    line: int | None
    column: int | None
    message: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{place}: {self.message}"


@dataclass(frozen=True, eq=False)
class Triples:
    """Statements as columns of ids, in no particular order, duplicates included.

    `quads` are the statements of named graphs, if they are read: one per row, the graph last.
    """

    subject: Ids
    predicate: Ids
    object: Ids
    skipped: int = 0
    samples: tuple[Skipped, ...] = field(default=(), repr=False)  # the first skipped statements
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)  # of the documents
    quads: Ids = field(default_factory=lambda: np.empty((0, 4), np.uint32), repr=False)

    @classmethod
    def of(cls, rows: Ids) -> Triples:
        """Create triples from rows of three ids.

        >>> len(Triples.of(np.zeros((5, 3), np.uint32)))
        5
        """
        return cls(rows[:, 0], rows[:, 1], rows[:, 2])

    @classmethod
    def joined(cls, parts: Sequence[Triples]) -> Triples:
        """Put the statements of several readings together.

        >>> two = Triples.of(np.zeros((2, 3), np.uint32))
        >>> len(Triples.joined([two, two]))
        4
        """
        subject, predicate, object_ = (
            np.concatenate(ids) for ids in zip(*(part.columns for part in parts), strict=True)
        )
        prefixes = {name: iri for part in reversed(parts) for name, iri in part.prefixes.items()}
        return cls(
            subject,
            predicate,
            object_,
            skipped=sum(part.skipped for part in parts),
            samples=tuple(one for part in parts for one in part.samples)[:SAMPLES],
            prefixes=prefixes,
            quads=np.concatenate([part.quads for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.subject)

    @property
    def columns(self) -> tuple[Ids, Ids, Ids]:
        """The columns subject, predicate and object."""
        return self.subject, self.predicate, self.object

    def in_order(self, dictionary: Dictionary) -> Triples:
        """Sort the statements by their text."""
        from pyarrow import compute

        together = np.concatenate([*self.columns, *self.quads.T])
        ids, places = np.unique(together, return_inverse=True)
        ranks = np.empty(len(ids), np.int64)
        ranks[compute.array_sort_indices(dictionary.texts(ids)).to_numpy()] = np.arange(len(ids))
        ranks = ranks[places]
        subject, predicate, object_ = np.split(ranks[: 3 * len(self)], 3)
        order = np.lexsort((object_, predicate, subject))
        s, p, o, graph = np.split(ranks[3 * len(self) :], 4)
        return replace(
            self,
            quads=self.quads[np.lexsort((o, p, s, graph))],
            subject=self.subject[order],
            predicate=self.predicate[order],
            object=self.object[order],
        )

    def are_rdf(self, dictionary: Dictionary) -> npt.NDArray[np.bool_]:
        """Return a mask of valid RDF triples: no literal as subject, and an IRI as property.

        >>> import pyarrow as pa
        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode_texts(pa.array(['"a"', "<urn:p>", "<urn:s>"]))
        >>> Triples.of(ids[np.array([[0, 1, 2], [2, 1, 0], [2, 2, 2]])]).are_rdf(dictionary)
        array([False,  True,  True])
        """
        is_literal = _begin(self.subject, '"', dictionary)
        return ~is_literal & _begin(self.predicate, "<", dictionary)

    def quads_are_rdf(self, dictionary: Dictionary) -> npt.NDArray[np.bool_]:
        """Return a mask of valid statements of named graphs: also, no literal names a graph."""
        triples = Triples.of(self.quads[:, :3])
        return triples.are_rdf(dictionary) & ~_begin(self.quads[:, 3], '"', dictionary)

    def where(self, mask: npt.NDArray[np.bool_]) -> Triples:
        """Select the statements of a mask."""
        return replace(
            self,
            subject=self.subject[mask],
            predicate=self.predicate[mask],
            object=self.object[mask],
        )

    def tables(self, dictionary: Dictionary) -> Tables:
        """Split the statements into one table per property and class, for an engine.

        The statements of named graphs are a table of their own.
        """
        tables = narrow(TRIPLE, self.columns, dictionary)
        return {**tables, Predicate(QUADS): self.quads} if len(self.quads) else tables


def _begin(ids: Ids, text: str, dictionary: Dictionary) -> npt.NDArray[np.bool_]:
    """Test which terms begin with a text."""
    from pyarrow import compute

    known, places = np.unique(ids, return_inverse=True)
    found = compute.starts_with(dictionary.texts(known), text)
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)[places]


class ReadingOptions(TypedDict, total=False):
    """Options for reading statements.

    A malformed statement is an error; with `on_error="skip"` it is counted and skipped. The blank
    nodes of a document are local to it, unless `keep_labels` identifies nodes with equal labels.
    `limit_input_bytes` bounds the bytes of each file after decompression. With `graphs`, the
    statements of named graphs are kept apart; otherwise all graphs are merged. Relative IRIs of a
    file are relative to `base_iri`, by default the address of the file.
    """

    on_error: OnError
    on_progress: OnProgress | None
    threads: int | None
    keep_labels: bool
    limit_input_bytes: int | None
    base_iri: str | None
    graphs: bool


class Reading:
    """The state while reading: the columns so far, and the skipped statements."""

    def __init__(self, dictionary: Dictionary, **options: Unpack[ReadingOptions]) -> None:
        self.dictionary = dictionary
        self.limit = options.get("limit_input_bytes")
        self.base_iri = options.get("base_iri")
        self.has_graphs = False  # whether the document may have named graphs
        self.keeps_graphs = options.get("graphs", False)
        self.keep_labels = options.get("keep_labels", False)
        self.prefixes: dict[str, str] = {}
        self.threads = options.get("threads") or _THREADS
        self.skips = options.get("on_error") == "skip"
        self._on_progress = options.get("on_progress")
        self._parts: list[tuple[Ids, ...]] = []
        self._quads: list[Ids] = []
        self._statements = 0
        self._skipped = 0
        self._samples: list[Skipped] = []

    def scope(self) -> str:
        """Return the prefix of the blank node labels of a new document; empty if labels are kept.

        It is the number of terms, which grows with every document that has a blank node: the same
        label in two documents gives two terms, and reading them again gives the same terms.
        """
        return "" if self.keep_labels else self.own_scope()

    def own_scope(self) -> str:
        """Return the prefix of anonymous blank nodes, which are always local to a document."""
        return f"d{len(self.dictionary)}."

    def declare(self, prefixes: Mapping[str, str]) -> None:
        """Add the prefixes of a document; the first declaration of a prefix wins."""
        self.prefixes = {**prefixes, **self.prefixes}

    def add(self, *columns: Ids) -> None:
        """Add statements."""
        if len(columns[0]):
            self._parts.append(columns)
            self._statements += len(columns[0])

    def add_quads(self, columns: Sequence[Ids], graph: Ids, is_named: Mask, file: str) -> None:
        """Add statements of which some are in named graphs; only theirs of `graph` counts."""
        if not is_named.any():
            self.add(*columns)
        elif not self.keeps_graphs:
            note("W101", int(is_named.sum()), file=file)
            self.add(*columns)
        else:
            self._quads.append(np.stack([column[is_named] for column in (*columns, graph)], axis=1))
            self._statements += len(self._quads[-1])
            self.add(*(column[~is_named] for column in columns))

    def progress(self, file: str, done: int, total: int | None) -> None:
        """Report progress."""
        if self._on_progress is not None:
            self._on_progress(Progress(file, done, total, self._statements))

    def malformed(
        self, file: str, line: int | None, column: int | None, message: str, hint: str | None = None
    ) -> None:
        """Raise the error of a malformed statement, or skip and count it."""
        if not self.skips:
            raise InvalidInput("E320", message, hint, file=file, line=line, column=column)
        self._skipped += 1
        if len(self._samples) < SAMPLES:
            self._samples.append(Skipped(file, line, column, message))

    def triples(self) -> Triples:
        """Return all statements."""
        match self._parts:
            case [columns]:
                subject, predicate, object_ = columns
            case parts:
                empty = np.empty(0, np.uint32)
                subject, predicate, object_ = (
                    np.concatenate([empty, *(part[place] for part in parts)]) for place in range(3)
                )
        found = Triples(
            subject, predicate, object_, self._skipped, tuple(self._samples), self.prefixes
        )
        return replace(found, quads=np.concatenate(self._quads)) if self._quads else found
