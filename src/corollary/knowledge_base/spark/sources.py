"""Classify sources of the pipeline by reader: tasks, Spark, or the driver."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from corollary.core.dictionary import Dictionary
from corollary.core.inputs import is_compressed
from corollary.core.tables import encode, joined
from corollary.engines.spark.tuning import tuning
from corollary.errors import UNREADABLE, InvalidInput
from corollary.files.facts import is_table, read_input
from corollary.knowledge_base.data import DataReader, paths_of
from corollary.knowledge_base.spark.parts import TABLE, part_of
from corollary.lang.program import PROGRAM_SUFFIXES, Program
from corollary.rdf.files import SUFFIXES, File, format_of
from corollary.rdf.splits import LINES, Part, Split, splits_of
from corollary.reasoning.engines import table_ids

MIN_TASK_BYTES, MAX_TASK_BYTES = 4 << 20, 64 << 20  # minimum and maximum bytes that a task reads
_INFLATED = 8  # bytes of text per byte of a compressed file
_TASKS = 4  # tasks per core, so that no core idles during the last task


@dataclass(eq=False)
class Inputs:
    """The classified sources of a load."""

    groups: list[list[Split]] = field(default_factory=list)  # a task each
    lines: dict[str, Split] = field(default_factory=dict)  # by URL: split and read by Spark
    documents: dict[str, Split] = field(default_factory=dict)  # by URL: read whole by Spark
    frames: list[Any] = field(default_factory=list)  # DataFrames
    parts: list[Part] = field(default_factory=list)  # held by the driver
    program: Program = field(default_factory=Program)  # the rules of .dl files
    prefixes: dict[str, str] = field(default_factory=dict)
    bytes: int = 0

    @property
    def is_small(self) -> bool:
        """Whether the driver can read the sources in less time than a job takes."""
        if self.lines or self.documents or self.frames:
            return False
        paths = {split.path for group in self.groups for split in group}
        held = sum(part.terms.nbytes + _fact_bytes(part) for part in self.parts)
        packed = any(is_compressed(Path(path)) for path in paths)
        size = self.bytes * (_INFLATED if packed else 1) + held
        return bool(size <= tuning.driver_input_bytes_limit)


@dataclass(frozen=True)
class SplitOf:
    """Maps a URL reported by Spark to the split of a file."""

    known: Mapping[str, Split]

    def __call__(self, path: str, start: int) -> Split:
        split = self.known.get(path) or self.known[unquote(path)]
        return split._replace(start=start)


def classify_sources(
    sources: Iterable[Any],
    *,
    find: Any,
    is_frame: Any,
    first: int,
    cores: int,
    arities: Mapping[str, int],
    name: str = "",
) -> Inputs:
    """Classify sources. `find` lists files at URLs, `is_frame` recognizes Spark DataFrames.

    `first` is the number of the next term; it scopes the blank nodes of this load. `name`
    distinguishes loads that start with the same number.
    """
    found = Inputs()
    local: dict[Path, None] = {}
    tables: dict[Path, None] = {}
    documents = _scopes(f"d{first}f{name}")
    for source in [sources] if isinstance(sources, str | Path) else sources:
        if is_frame(source):
            found.frames.append(source)
        elif not isinstance(source, str | Path):
            found.parts.append(_here(source, found, arities))
        elif _is_remote(str(source)):
            _remote(str(source), found, find, documents)
        else:
            for path in paths_of(_local(str(source))):
                _sort(path, found, local, tables)
    # Tasks have a different working directory.
    sizes = {path.absolute(): _size(path) for path in (*local, *tables)}
    local, tables = ({path.absolute(): None for path in paths} for paths in (local, tables))
    found.bytes += sum(sizes.values())
    wanted = min(
        MAX_TASK_BYTES, max(MIN_TASK_BYTES, sum(sizes[path] for path in local) // (_TASKS * cores))
    )
    splits = [
        split
        for path in local
        for split in splits_of(_file(path), next(documents), sizes[path], wanted)
    ]
    found.groups = [*_packed(splits, sizes, wanted), *([Split(str(p), TABLE)] for p in tables)]
    return found


def _sort(path: Path, found: Inputs, local: dict[Path, None], tables: dict[Path, None]) -> None:
    if format_of(path) is not None:
        local.setdefault(path)
    elif path.suffix in PROGRAM_SUFFIXES:
        program = Program.load(path)
        if program.facts:
            dictionary = Dictionary()
            found.parts.append(part_of(encode(program.facts, dictionary), dictionary))
        found.parts += input_parts(program)
        rules = program.without_facts()
        found.program = found.program | rules if found.program else rules
        found.prefixes = {**program.prefixes, **found.prefixes}
    elif is_table(path):
        tables.setdefault(path)
    else:
        _size(path)
        raise InvalidInput(
            "E341",
            f"{path} is neither rules, nor RDF, nor a table of facts",
            "the name must end in .dl, .srl, .ttl, .nt, .rdf, .jsonld, .facts, .csv or .parquet",
            file=str(path),
        )


def input_parts(program: Program) -> list[Part]:
    """Read the files that a program names by `@input`, in this process."""
    found = []
    for one in program.declarations.inputs:
        dictionary = Dictionary()
        table = read_input(one, program)
        ids = table_ids(table, program.arities[one.relation], dictionary)
        found.append(part_of(ids, dictionary))
    return found


def _remote(source: str, found: Inputs, find: Any, scopes: Iterator[str]) -> None:
    known = 0
    for path, size in find(source):
        format_ = format_of(Path(path))
        if format_ is None:
            continue
        known += 1
        # Spark decompresses .gz itself, but often lacks support for .zst.
        lines = format_ in LINES and Path(path).suffix.lower() != ".zst"
        target = found.lines if lines else found.documents
        if path not in target:
            target[path] = Split(path, format_, next(scopes))
            found.bytes += size
    if not known:
        raise InvalidInput(
            "E301",
            f"no RDF file at {source}",
            f"known suffixes are {', '.join(SUFFIXES)}, each also with .gz or .zst after it",
            file=source,
        )


def _here(source: Any, found: Inputs, arities: Mapping[str, int]) -> Part:
    """Convert a table, graph or program of this process to a part."""
    reader = DataReader(Dictionary(), found.prefixes, arities)
    tables = [part for part in reader.sources([source]) if not isinstance(part, Program)]
    found.prefixes = {**reader.prefixes, **found.prefixes}
    return part_of(joined(tables), reader.dictionary, reader.notices)


def _packed(
    splits: Sequence[Split], sizes: Mapping[Path, int], wanted: int
) -> Iterator[list[Split]]:
    """Group splits to about the wanted size; a larger split is alone."""
    group: list[Split] = []
    size = 0
    for split in splits:
        own = sizes[Path(split.path)] if split.end is None else split.end - split.start
        if is_compressed(Path(split.path)):
            own *= _INFLATED
        if group and size + own > wanted:
            yield group
            group, size = [], 0
        group.append(split)
        size += own
    if group:
        yield group


def _fact_bytes(part: Part) -> int:
    return sum(column.nbytes for columns in part.facts.values() for column in columns)


def _scopes(prefix: str) -> Iterator[str]:
    number = 0
    while True:
        yield f"{prefix}{number}."
        number += 1


def _file(path: Path) -> File:
    format_ = format_of(path)
    assert format_ is not None, "files without a format are refused before"
    return File(path, format_)


def _size(path: Path) -> int:
    try:
        return os.path.getsize(path)
    except OSError as error:
        reason = error.strerror or error
        raise InvalidInput(
            "E301", f"cannot read {path}: {reason}", UNREADABLE, file=str(path)
        ) from None


def _is_remote(source: str) -> bool:
    scheme = urlsplit(source).scheme
    return len(scheme) > 1 and scheme != "file" and f"{scheme}:/" in source.lower()


def _local(source: str) -> str:
    return unquote(urlsplit(source).path) if source.startswith("file:") else source
