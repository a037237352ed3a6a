"""The RDF data source of Spark.

session.read.format("rdf").load("data/*.nt")
frame.write.format("rdf").mode("append").save("folder")
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.engines.spark.source import Options, TripleSource
from corollary.engines.spark.stored import SparkSession
from corollary.errors import InvalidInput
from corollary.knowledge_base.spark.sources import classify_sources
from corollary.lang.syntax import TRIPLE_COLUMNS, TRIPLES_NAME
from corollary.rdf import formats
from corollary.rdf.splits import PartReader, Split

_ROWS = 1 << 16  # rows of a batch
_COMPRESSIONS = {"none": ".nt", "gzip": ".nt.gz", "zstd": ".nt.zst"}


class RdfSource(TripleSource):
    """Reads and writes RDF files that every process of the cluster can open.

    Options: `path` (a file, a folder or a pattern), `onError` (`fail` or `skip`), `keepLabels` (a
    label denotes the same blank node in all files) and, for writing, `compression` (`none`, `gzip`
    or `zstd`).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "rdf"

    def splits(self, options: Options) -> Sequence[Sequence[Any]]:
        """Assign splits to tasks."""
        found = classify_sources(
            [_path(options)],
            find=_refuse_address,
            is_frame=lambda _: False,
            first=0,
            cores=os.cpu_count() or 1,
            arities={},
        )
        return [group for group in found.groups if group[0].format in formats.FORMATS]

    def folder(self, options: Options, names: list[str]) -> Path:
        """Return the folder to write to."""
        if sorted(names) != sorted(TRIPLE_COLUMNS):
            raise InvalidInput(
                "E546",
                f"expected the columns subject, predicate and object, found {', '.join(names)}",
                "rename the columns of the DataFrame",
            )
        path = _path(options)
        if "://" in path and not path.startswith("file:"):
            _refuse_address(path)
        return Path(path.removeprefix("file://").removeprefix("file:"))

    def suffix(self, options: Options) -> str:
        """Return the suffix of the files."""
        chosen = options.get("compression", "none")
        if chosen not in _COMPRESSIONS:
            raise InvalidInput(
                "E548",
                f"N-Triples cannot be compressed as {chosen}",
                f"choose one of {', '.join(_COMPRESSIONS)}",
            )
        return _COMPRESSIONS[chosen]

    @staticmethod
    def read(splits: Sequence[Split], options: Options) -> Iterator[pa.RecordBatch]:
        """Read the rows of splits; a syntax error is raised with its line."""
        skip = options.get("onerror", "fail") == "skip"
        keep = options.get("keeplabels", "false").lower() == "true"
        part = PartReader("skip" if skip else "fail", keep).files(splits)
        if part.error is not None:
            line, failed = part.error.line, splits[part.failed or 0]
            if line is not None:
                part.error.line = line + _lines_before(failed)
            raise InvalidInput(part.error.code, part.error.render())
        columns = part.facts[TRIPLES_NAME]
        for start in range(0, len(columns[0]), _ROWS):
            texts = [part.terms.take(pa.array(c[start : start + _ROWS])) for c in columns]
            yield pa.record_batch([text.cast(pa.string()) for text in texts], list(TRIPLE_COLUMNS))

    @staticmethod
    def write(path: Path, table: pa.Table) -> None:
        """Write rows as one file of N-Triples."""
        dictionary = Dictionary()
        triples = formats.read(table, dictionary, keep_labels=True)
        formats.write(path, triples, dictionary)


def register(session: SparkSession) -> None:
    """Register the source with a session."""
    session.dataSource.register(RdfSource)


def _lines_before(split: Split) -> int:
    """Count the lines of a file before a split."""
    if not split.start:
        return 0
    with Path(split.path).open("rb") as file:
        before = file.read(split.start)
    # A line that begins before the split and ends in it belongs to the previous split.
    return before.count(b"\n") + (not before.endswith(b"\n"))


def _path(options: Options) -> str:
    path = options.get("path")
    if not path:
        raise InvalidInput(
            "E548", "the source rdf needs a path", 'load("data.nt"), or save("folder")'
        )
    return path


def _refuse_address(path: str) -> Any:
    raise InvalidInput(
        "E548",
        f"the source rdf opens files that every process can see, and {path} is an address",
        "corollary.spark.build reads addresses through Spark",
        file=path,
    )
