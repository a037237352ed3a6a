"""Parse and encode sources to facts in ids, on Spark."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count as numbered_from
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from corollary.core.notices import Notices
from corollary.engines.spark import encode, parse
from corollary.engines.spark.blocks import REPORT
from corollary.engines.spark.blocks import rows as blocks_of
from corollary.engines.spark.failures import explain_failures
from corollary.engines.spark.stored import DataFrame, SparkSession
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.spark.encoding import Encoded, Encoding
from corollary.knowledge_base.spark.parts import SourceReader, part_of_program
from corollary.knowledge_base.spark.sources import Inputs, SplitOf
from corollary.knowledge_base.spark.stages import Stage, skew
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLES_NAME, Constant
from corollary.rdf.splits import Split
from corollary.rdf.triples import SAMPLES, Skipped
from corollary.rdf.vocabulary import note_imports, note_unread
from corollary.store.layout import WIDTH
from corollary.store.term_hash import hashes

if TYPE_CHECKING:
    from corollary.knowledge_base.spark.operation import Operation

DELETION_MARK = "- "  # relation names of programs contain no blank

_BUCKET_BYTES = 256 << 20  # bytes of sources per bucket; one task numbers its distinct terms
_MAX_BUCKETS = 1 << 12  # maximum buckets
# Numbers of parts have 62 bits; those of frames, which are hashes of terms, are greater.
_SOURCES = 1 << 32  # parts of a source
_DELETED = 1 << 60  # the first part of deleted sources
_PROGRAM = 1 << 61  # the part of the program's constants


@dataclass(eq=False)
class Loaded:
    """Facts in ids, with duplicates, and metadata about how they were read."""

    encoded: Encoded
    rows: Mapping[str, int]  # by relation, with duplicates
    arities: Mapping[str, int]
    width: int  # arguments of the widest relation, at least 3
    prefixes: Mapping[str, str] = field(default_factory=dict)
    skipped: int = 0
    samples: tuple[Skipped, ...] = ()
    notices: Notices = field(default_factory=Notices)

    @property
    def facts(self) -> DataFrame:
        """The facts: relation, arg0, arg1, …"""
        return self.encoded.facts

    @property
    def numbered(self) -> encode.Numbered:
        """The new terms."""
        return self.encoded.numbered

    @property
    def constants(self) -> Mapping[Constant, int]:
        """The ids of the program's constants."""
        return self.encoded.constants

    @property
    def terms(self) -> DataFrame:
        """The new terms: id, term, hash."""
        return self.numbered.terms(hashes)


def load(
    operation: Operation,
    inputs: tuple[Inputs, Inputs | None],
    program: Program,
    reader: SourceReader,
    known: tuple[DataFrame, int] | None,
) -> Loaded:
    """Read inserted and deleted sources, and assign ids to their terms and the program's.

    Known terms have the ids of the terms table, new ones follow from its next id: `known` holds
    both. The names of relations of deleted facts are prefixed by `DELETION_MARK`. Small sources of
    an update are read on the driver.
    """
    session, stages = operation.session, operation.stages
    inserted, deleted = inputs
    read = sum(part.bytes for part in inputs if part is not None)
    buckets = min(_MAX_BUCKETS, max(operation.cores, read // _BUCKET_BYTES))
    blocks = parse.Blocks(reader, hashes, buckets)
    sources = [(inserted, blocks, 0)]
    if deleted is not None:
        # Labels are kept, so that blank nodes can be deleted by the labels the store shows.
        as_shown = replace(reader, keep_labels=True)
        sources.append((deleted, parse.Blocks(as_shown, hashes, buckets, DELETION_MARK), _DELETED))
    own = part_of_program(program)
    here = known is not None and all(source.is_small for source, _, _ in sources)
    with stages.stage("parse") as stage, explain_failures("parse"):
        found: Any
        if here:
            found = [*blocks.of(own, _PROGRAM, [], time.perf_counter())]
            found += [one for source in sources for one in _parsed_here(*source)]
            reports = _reports(found)
        else:
            parts = [parse.parse_here(session, own, blocks, _PROGRAM)]
            parts += [part for source in sources for part in _parsed(session, *source)]
            found = operation.frames.persist(reduce(DataFrame.union, parts))
            reports = _reports(found.where(f"kind = {REPORT}").toArrow().to_batches())
        _refuse_errors(reports)
        _measure(stage, reports, read)
    arities = _arities(reports)
    width = max([WIDTH, *arities.values(), *program.arities.values()])
    encoding = Encoding(operation, program, own.terms, _PROGRAM, buckets, width, known)
    with stages.stage("encode") as stage, explain_failures("encode"):
        encoded = encoding.here(found) if here else encoding.in_tasks(found, reports)
        stage.rows = sum(_rows(reports).values())
        stage.skew = skew([*encoded.numbered.sizes.values()])
    skipped, samples = _skipped(reports)
    prefixes: dict[str, str] = dict(inserted.prefixes)
    for report in reports:
        prefixes = {**report["prefixes"], **prefixes}
    return Loaded(
        encoded,
        _rows(reports),
        arities,
        width,
        prefixes,
        skipped,
        samples,
        _notices(reports, program),
    )


def _parsed(
    session: SparkSession, inputs: Inputs, blocks: parse.Blocks, first: int
) -> list[DataFrame]:
    """Parse all sources to blocks; each source has its own range of part numbers."""
    numbers = numbered_from(first, _SOURCES)
    found = []
    if inputs.groups:
        found.append(parse.parse_files(session, inputs.groups, blocks, next(numbers)))
    if files := inputs.lines:
        lines = parse.parse_lines(session, [*files], SplitOf(files), blocks, next(numbers))
        found.append(lines)
    if files := inputs.documents:
        whole = parse.parse_documents(session, [*files], SplitOf(files), blocks, next(numbers))
        found.append(whole)
    found += [
        parse.parse_frame(frame, f"table {place}", "", blocks)
        for place, frame in enumerate(inputs.frames, 1)
    ]
    found += [parse.parse_here(session, part, blocks, next(numbers)) for part in inputs.parts]
    return found


def _parsed_here(inputs: Inputs, blocks: parse.Blocks, first: int) -> Iterator[pa.RecordBatch]:
    """Parse small sources on the driver, with the numbers that `_parsed` gives their parts."""
    numbers = numbered_from(first, _SOURCES)
    if inputs.groups:
        yield from parse.blocks_of_files(inputs.groups, blocks, next(numbers))
    for part in inputs.parts:
        yield from blocks.of(part, next(numbers), [], time.perf_counter())


def _reports(parsed: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Read the reports among blocks, in the order of the sources."""
    found = [
        pickle.loads(data) for _, kind, _, _, data in blocks_of(iter(parsed)) if kind == REPORT
    ]
    return sorted(found, key=lambda report: int(report["part"]))


def _measure(stage: Stage, reports: Sequence[Mapping[str, Any]], read: int) -> None:
    tasks = [report for report in reports if report["splits"]]
    stage.rows = sum(rows for report in tasks for _, rows in report["facts"].values())
    stage.bytes = read
    stage.skew = skew([report["seconds"] for report in tasks] or [1.0])


def _rows(reports: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for report in reports:
        for relation, (_, count) in report["facts"].items():
            rows[relation] = rows.get(relation, 0) + count
    return rows


def _arities(reports: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the arities of all relations; parts must agree on them."""
    found = {TRIPLES_NAME: 3}
    for report in reports:
        for name, (arity, _) in report["facts"].items():
            relation = name.removeprefix(DELETION_MARK)
            known = found.setdefault(relation, arity)
            if known != arity:
                raise InvalidInput(
                    "E203",
                    f"'{relation}' has {known} arguments in one source, but {arity} in another",
                    "a relation keeps its number of arguments",
                )
    return found


def _line(reports: Sequence[Mapping[str, Any]], split: Any, line: int | None) -> int | None:
    """Convert the number of a line in its split to that in its file."""
    if line is None or not isinstance(split, Split) or split.start == 0:
        return line
    before: int = sum(
        lines
        for report in reports
        for other, lines in zip(report["splits"], report["lines"], strict=False)
        if isinstance(other, Split) and other.path == split.path and other.start < split.start
    )
    return line + before


def _refuse_errors(reports: Sequence[Mapping[str, Any]]) -> None:
    for report in reports:
        if report["error"] is not None:
            splits, failed = report["splits"], report["failed"]
            split = splits[failed] if failed is not None and failed < len(splits) else None
            _raise(report["error"], reports, split)


def _raise(error: tuple[Any, ...], reports: Sequence[Mapping[str, Any]], split: Any) -> NoReturn:
    kind, code, message, hint, file, line, column = error
    make = OperationFailed if kind == "failed" else InvalidInput
    raise make(
        code, message, hint, file=file, line=_line(reports, split, line), column=column
    ) from None


def _notices(reports: Sequence[Mapping[str, Any]], program: Program) -> Notices:
    """Merge the observations of tasks into the driver's warnings."""
    notices = Notices()
    counts: dict[str, int] = {}
    imported: set[str] = set()
    ontologies: set[str] = set()
    for report in reports:
        notices.extend(report["notices"])
        found, documents, headers = report["vocabulary"]
        for term, count in found.items():
            counts[term] = counts.get(term, 0) + count
        imported.update(documents)
        ontologies.update(headers)
    note_unread(counts, program, notices)
    note_imports(imported, ontologies, notices)
    return notices


def _skipped(reports: Sequence[Mapping[str, Any]]) -> tuple[int, tuple[Skipped, ...]]:
    """Return the number of statements that could not be parsed, and locate the first ones."""
    samples = [
        sample._replace(line=_line(reports, report["splits"][number], sample.line))
        for report in reports
        for number, sample in report["samples"]
    ]
    return sum(report["skipped"] for report in reports), tuple(samples[:SAMPLES])
