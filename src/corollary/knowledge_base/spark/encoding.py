"""Assign ids to the terms of parsed sources, in tasks or, for small updates, on the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.core.terms import term_of
from corollary.engines.spark import encode
from corollary.engines.spark.stored import DataFrame
from corollary.engines.spark.tuning import tuning
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, Atom, Constant

if TYPE_CHECKING:
    from corollary.knowledge_base.spark.operation import Operation

_BROADCAST_TERMS_LIMIT = 1 << 21  # maximum terms whose hashes are broadcast
_TEXT_BYTES = 1 << 26  # of the terms whose texts the driver keeps

Reports = Sequence[Mapping[str, Any]]  # of the parts of the sources, see `engines.spark.parse`


@dataclass(frozen=True)
class Encoded:
    """Facts in ids, with duplicates."""

    facts: DataFrame  # relation, arg0, arg1, …
    numbered: encode.Numbered
    constants: Mapping[Constant, int]  # ids of the program's constants
    repeated: Sequence[Atom] = ()  # axioms of the program that were read more than once
    texts: Mapping[int, str] = field(default_factory=dict)  # of terms that the driver has
    table: pa.Table | None = None  # the facts, if the driver has encoded them


@dataclass(frozen=True)
class Encoding:
    """Encodes parsed sources, and the constants of a program, which are a part of their own."""

    operation: Operation
    program: Program
    constants: pa.Array  # their texts
    part: int
    buckets: int
    width: int
    known: tuple[DataFrame, int] | None  # the terms table of a store and its next id

    def in_tasks(self, parsed: DataFrame, reports: Reports) -> Encoded:
        """Encode in tasks: two jobs, or one if the program has no axioms."""
        frames, known_terms = self.operation.frames, None
        terms = sum(report["terms"] for report in reports)
        size = sum(report["bytes"] for report in reports)
        if self.known is not None:
            few = terms <= _BROADCAST_TERMS_LIMIT
            known_terms = encode.known_terms(self.known[0], parsed, self.buckets, few=few)
        numbered = encode.number(
            parsed,
            self.buckets,
            self._first,
            known_terms,
            frames,
            part=self.part,
            few=terms <= tuning.driver_texts_limit and size <= _TEXT_BYTES,
        )
        translated = encode.translate(parsed, numbered, len(reports), self.width)
        facts, constants = frames.persist(translated), self._constants(numbered)
        repeated = _repeated(facts, self.program.axioms, constants)
        return Encoded(facts, numbered, constants, repeated, _texts(numbered))

    def here(self, parsed: Sequence[pa.RecordBatch]) -> Encoded:
        """Encode a small update on the driver: one job, which looks up the known terms."""
        assert self.known is not None, "an update"
        session = self.operation.session
        known_terms = encode.known_here(self.known[0], parsed, self.buckets)
        numbered, coded = encode.number_here(
            session, parsed, self.buckets, self._first, known_terms, part=self.part
        )
        table = encode.translate_here(parsed, coded, numbered, self.width)
        return Encoded(
            session.createDataFrame(table),
            numbered,
            self._constants(numbered),
            texts=encode.known_texts(known_terms) | _texts(numbered),
            table=table,
        )

    @property
    def _first(self) -> int:
        return 0 if self.known is None else self.known[1]

    def _constants(self, numbered: encode.Numbered) -> dict[Constant, int]:
        terms = map(term_of, self.constants.to_pylist())
        return dict(zip(terms, numbered.own.tolist(), strict=True))


def _texts(numbered: encode.Numbered) -> dict[int, str]:
    texts = numbered.texts
    return {} if texts is None else dict(enumerate(texts.to_pylist(), numbered.first))


def _repeated(
    facts: DataFrame, axioms: Iterable[Atom], constants: Mapping[Constant, int]
) -> list[Atom]:
    """Select axioms, over constants of the program, that are in facts more than once: one job."""
    wanted: dict[tuple[object, ...], Atom] = {}
    for axiom in axioms:
        name = TRIPLES_NAME if axiom.relation == TRIPLE else axiom.relation
        wanted[name, *(constants[term] for term in axiom.constants())] = axiom
    if not wanted:
        return []
    # One filter by the ids in each column, which few other rows pass.
    columns = [*zip_longest(*wanted, fillvalue=None)]
    names = facts.columns[: len(columns)]
    frame = facts.select(*names)
    for name, values in zip(names, columns, strict=True):
        known = [value for value in dict.fromkeys(values) if value is not None]
        condition = frame[name].isin(known)
        frame = frame.where(condition | frame[name].isNull() if None in values else condition)
    counts = Counter(tuple(v for v in row if v is not None) for row in frame.collect())
    return [axiom for row, axiom in wanted.items() if counts[row] > 1]
