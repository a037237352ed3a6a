"""What reading gives, and what it keeps while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pyarrow import compute

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.tables import Tables, narrow
from corollary.errors import InvalidInput
from corollary.lang.syntax import TRIPLE

OnError = OneOf["fail", "skip"]
SAMPLES = 100  # statements that could not be read, of which the place is kept


class Progress(NamedTuple):
    """How far reading has come, in bytes of the file as it is on disk."""

    file: str
    done: int
    total: int | None  # None where it is not known beforehand
    statements: int  # of all files so far


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
    """Statements as columns of ids, in no particular order, duplicates included."""

    subject: Ids
    predicate: Ids
    object: Ids
    skipped: int = 0
    samples: tuple[Skipped, ...] = field(default=(), repr=False)  # the first of the skipped ones
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)  # of the documents

    @classmethod
    def of(cls, rows: Ids) -> Triples:
        """From rows of three ids.

        >>> len(Triples.of(np.zeros((5, 3), np.uint32)))
        5
        """
        return cls(rows[:, 0], rows[:, 1], rows[:, 2])

    def __len__(self) -> int:
        return len(self.subject)

    @property
    def columns(self) -> tuple[Ids, Ids, Ids]:
        """Subject, predicate, object."""
        return self.subject, self.predicate, self.object

    def in_order(self, dictionary: Dictionary) -> Triples:
        """The same statements, in the order of their texts."""
        ids, places = np.unique(np.concatenate(self.columns), return_inverse=True)
        ranks = np.empty(len(ids), np.int64)
        ranks[compute.array_sort_indices(dictionary.texts(ids)).to_numpy()] = np.arange(len(ids))
        subject, predicate, object_ = np.split(ranks[places], 3)
        order = np.lexsort((object_, predicate, subject))
        return replace(
            self,
            subject=self.subject[order],
            predicate=self.predicate[order],
            object=self.object[order],
        )

    def are_rdf(self, dictionary: Dictionary) -> npt.NDArray[np.bool_]:
        """Which of them RDF has: the subject is no literal, and the property is an IRI.

        >>> import pyarrow as pa
        >>> dictionary = Dictionary()
        >>> ids = dictionary.encode_texts(pa.array(['"a"', "<urn:p>", "<urn:s>"]))
        >>> Triples.of(ids[np.array([[0, 1, 2], [2, 1, 0], [2, 2, 2]])]).are_rdf(dictionary)
        array([False,  True,  True])
        """

        def begins(ids: Ids, with_: str) -> npt.NDArray[np.bool_]:
            known, places = np.unique(ids, return_inverse=True)
            found = compute.starts_with(dictionary.texts(known), with_)
            return np.asarray(found.to_numpy(zero_copy_only=False), bool)[places]

        return ~begins(self.subject, '"') & begins(self.predicate, "<")

    def where(self, mask: npt.NDArray[np.bool_]) -> Triples:
        """Some of the statements."""
        return replace(
            self,
            subject=self.subject[mask],
            predicate=self.predicate[mask],
            object=self.object[mask],
        )

    def tables(self, dictionary: Dictionary) -> Tables:
        """As an engine takes them: a table for each property, and for each class."""
        return narrow(TRIPLE, self.columns, dictionary)


class Reading:
    """One call of `read`: the columns so far, and the statements that were skipped."""

    def __init__(
        self,
        dictionary: Dictionary,
        *,
        on_error: OnError = "fail",
        on_progress: OnProgress | None = None,
        threads: int = 1,
        keep_labels: bool = False,
        limit: int | None = None,
    ) -> None:
        """`limit` is the number of bytes that a file may hold after decompression."""
        self.dictionary = dictionary
        self.limit = limit
        self.has_graphs = False  # whether the document may have named graphs
        self.keep_labels = keep_labels
        self.prefixes: dict[str, str] = {}
        self.threads = threads
        self.skips = on_error == "skip"
        self._on_progress = on_progress
        self._parts: list[tuple[Ids, ...]] = []
        self._statements = 0
        self._skipped = 0
        self._samples: list[Skipped] = []

    def scope(self) -> str:
        """What goes before the labels of blank nodes of a document that is begun now.

        The number of terms, which every document with a blank node makes larger: so the same label
        in two documents gives two terms, and the same documents in the same order the same terms.
        Nothing, if labels are kept.
        """
        return "" if self.keep_labels else self.own_scope()

    def own_scope(self) -> str:
        """The same for blank nodes without a label, which are always a document's own."""
        return f"d{len(self.dictionary)}."

    def declare(self, prefixes: Mapping[str, str]) -> None:
        """Prefixes of a document; the first meaning of a prefix counts."""
        self.prefixes = {**prefixes, **self.prefixes}

    def add(self, *columns: Ids) -> None:
        """Keep some statements."""
        if len(columns[0]):
            self._parts.append(columns)
            self._statements += len(columns[0])

    def progress(self, file: str, done: int, total: int | None) -> None:
        """Tell whoever wants to know."""
        if self._on_progress is not None:
            self._on_progress(Progress(file, done, total, self._statements))

    def malformed(
        self, file: str, line: int | None, column: int | None, message: str, hint: str | None = None
    ) -> None:
        """A statement that cannot be read: an error, or one more that is skipped."""
        if not self.skips:
            raise InvalidInput("E320", message, hint, file=file, line=line, column=column)
        self._skipped += 1
        if len(self._samples) < SAMPLES:
            self._samples.append(Skipped(file, line, column, message))

    def triples(self) -> Triples:
        """All statements."""
        empty = np.empty(0, np.uint32)
        subject, predicate, object_ = (
            np.concatenate([empty, *(part[place] for part in self._parts)]) for place in range(3)
        )
        return Triples(
            subject, predicate, object_, self._skipped, tuple(self._samples), self.prefixes
        )
