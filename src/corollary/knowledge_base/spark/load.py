"""Parse and encode: sources as facts in ids, on Spark."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count as numbered_from
from itertools import zip_longest
from typing import Any, NoReturn

from corollary.core.notices import Notices
from corollary.core.terms import term_of
from corollary.engines.spark import encode, parse
from corollary.engines.spark.blocks import REPORT
from corollary.engines.spark.failures import explained
from corollary.engines.spark.stored import DataFrame, SparkSession
from corollary.engines.spark.write import union
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.spark.parts import SourceReader, part_of_program
from corollary.knowledge_base.spark.sources import Inputs, SplitOf
from corollary.knowledge_base.spark.stages import Stage, Stages, skew
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, Atom, Constant
from corollary.rdf.splits import Split
from corollary.rdf.triples import SAMPLES, Skipped
from corollary.rdf.vocabulary import note_imports, note_unread
from corollary.store.layout import WIDTH
from corollary.store.term_hash import hashes

GONE = "- "  # no relation of a program has a blank in its name

_BUCKET = 256 << 20  # bytes of sources whose distinct terms one task numbers
_MOST = 1 << 12  # buckets
_FEW = 1 << 21  # terms whose hashes every executor may have
_SOURCES = 1 << 20  # parts of a source
_PROGRAM = (1 << 31) - 1  # the part of the program's constants


@dataclass(eq=False)
class Loaded:
    """Facts in ids, duplicates included, and all that is known about how they were read."""

    facts: DataFrame  # relation, arg0, arg1, …
    numbered: encode.Numbered
    rows: Mapping[str, int]  # by relation, duplicates included
    arities: Mapping[str, int]
    width: int  # arguments of the widest relation, at least 3
    constants: Mapping[Constant, int]  # of the program
    prefixes: Mapping[str, str] = field(default_factory=dict)
    skipped: int = 0
    samples: tuple[Skipped, ...] = ()
    notices: Notices = field(default_factory=Notices)
    _kept: list[DataFrame] = field(default_factory=list)

    @property
    def terms(self) -> DataFrame:
        """The new terms: id, term, hash."""
        return self.numbered.terms(hashes)

    def repeated(self, facts: Iterable[Atom]) -> list[Atom]:
        """Those of some facts over constants of the program that were read more than once."""
        wanted: dict[tuple[object, ...], Atom] = {}
        for fact in facts:
            name = TRIPLES_NAME if fact.relation == TRIPLE else fact.relation
            wanted[name, *(self.constants[term] for term in fact.constants())] = fact
        if not wanted:
            return []
        # One filter by the ids in each column, which lets through little else.
        columns = [*zip_longest(*wanted, fillvalue=None)]
        names = self.facts.columns[: len(columns)]
        frame = self.facts.select(*names)
        for name, values in zip(names, columns, strict=True):
            known = [value for value in dict.fromkeys(values) if value is not None]
            condition = frame[name].isin(known)
            frame = frame.where(condition | frame[name].isNull() if None in values else condition)
        counts = Counter(tuple(v for v in row if v is not None) for row in frame.collect())
        return [fact for row, fact in wanted.items() if counts[row] > 1]

    def release(self) -> None:
        """Let Spark forget what it has kept."""
        for frame in self._kept:
            frame.unpersist()


def load(
    session: SparkSession,
    inputs: Inputs,
    program: Program,
    reader: SourceReader,
    stages: Stages,
    *,
    first: int,
    terms: DataFrame | None,
    cores: int,
    deleted: Inputs | None = None,
) -> Loaded:
    """Read sources, and give their terms the ids of the terms table or new ones from `first` on.

    `terms` is the terms table, if it has any; the terms of the program get ids too. Relations of
    facts from `deleted` sources have `GONE` before their names.
    """
    read = inputs.bytes + (deleted.bytes if deleted is not None else 0)
    buckets = min(_MOST, max(cores, read // _BUCKET))
    blocks = parse.Blocks(reader, hashes, buckets)
    own = part_of_program(program)
    frames = [parse.parse_here(session, own, blocks, _PROGRAM)]
    with stages.stage("parse") as stage, explained("parse"):
        frames += _parsed(session, inputs, blocks, 0)
        if deleted is not None:
            # Labels are kept, so that what the store shows can be deleted.
            gone = parse.Blocks(replace(reader, keep_labels=True), hashes, buckets, GONE)
            frames += _parsed(session, deleted, gone, 1 << 30)
        parsed = union(frames).persist()
        reports = _reports(parsed)
        _refuse_errors(reports)
        _measure(stage, reports, read)
    arities = _arities(reports)
    width = max([WIDTH, *arities.values(), *program.arities.values()])
    with stages.stage("encode") as stage, explained("encode"):
        known = None
        if terms is not None:
            few = sum(report["terms"] for report in reports) <= _FEW
            known = encode.known_terms(terms, parsed, buckets, few=few)
        numbered = encode.number(parsed, buckets, first, known)
        facts = encode.translate(parsed, numbered, len(reports), width).persist()
        stage.rows = facts.count()
        stage.skew = skew([*numbered.sizes.values()])
    texts = own.terms.to_pylist()
    ids = encode.codes_of(numbered, _PROGRAM).tolist()
    skipped, samples = _skipped(reports)
    prefixes: dict[str, str] = dict(inputs.prefixes)
    for report in reports:
        prefixes = {**report["prefixes"], **prefixes}
    return Loaded(
        facts,
        numbered,
        _rows(reports),
        arities,
        width,
        dict(zip(map(term_of, texts), ids, strict=True)),
        prefixes,
        skipped,
        samples,
        _notices(reports, program),
        [parsed, numbered.frame, facts],
    )


def _parsed(
    session: SparkSession, inputs: Inputs, blocks: parse.Blocks, first: int
) -> list[DataFrame]:
    """The blocks of all sources; the parts of each have numbers of their own."""
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


def _reports(parsed: DataFrame) -> list[dict[str, Any]]:
    """What tasks have read, in the order of the sources."""
    rows = parsed.where(f"kind = {REPORT}").select("payload").collect()
    found = [pickle.loads(row[0]) for row in rows]
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
    """The numbers of arguments of all relations, which parts must agree on."""
    found = {TRIPLES_NAME: 3}
    for report in reports:
        for name, (arity, _) in report["facts"].items():
            relation = name.removeprefix(GONE)
            known = found.setdefault(relation, arity)
            if known != arity:
                raise InvalidInput(
                    "E203",
                    f"'{relation}' has {known} arguments in one source, but {arity} in another",
                    "a relation keeps its number of arguments",
                )
    return found


def _line(reports: Sequence[Mapping[str, Any]], split: Any, line: int | None) -> int | None:
    """The number of a line in its file, from that in its split."""
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
    """What the driver warns of, from what the tasks have seen."""
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
    """How many statements could not be read, and where the first ones are."""
    samples = [
        sample._replace(line=_line(reports, report["splits"][number], sample.line))
        for report in reports
        for number, sample in report["samples"]
    ]
    return sum(report["skipped"] for report in reports), tuple(samples[:SAMPLES])
