"""Answers as files of a folder, written by tasks: a file for each partition, in their order."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

from corollary.engines.spark import hadoop
from corollary.engines.spark.local import address
from corollary.errors import InvalidInput

_QUIET = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
_TEXT = "value string"

Pieces = tuple[str, str, Callable[[pa.Table], str]]  # first line, end of lines, each piece


def write_folder(frame: DataFrame, folder: str, suffix: str, pieces: Pieces | None) -> int:
    """Write all rows, as Parquet or as text in pieces; how many there are.

    A folder on this machine is there when everything is in it, or not at all. Each file of text
    begins with the first line.
    """
    refuse_occupied(frame, folder)
    if "://" in folder:
        return _write(frame, folder, pieces)
    path = Path(folder).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.parent / f".{path.name}-{uuid.uuid4().hex}"
    try:
        rows = _write(frame, address(made), pieces)
        _name_files(made, suffix)
        if not rows and pieces is not None:
            _write_first_line(made / f"part-00000.{suffix}", pieces)
        os.rename(made, path)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return rows


def refuse_occupied(frame: DataFrame, folder: str) -> None:
    """Leave alone what is there."""
    there = hadoop.exists(frame.sparkSession, folder) if "://" in folder else Path(folder).exists()
    if there:
        raise InvalidInput(
            "E566",
            f"there is something at {folder} already",
            "name a folder that is not there",
            file=folder,
        )


def _write(frame: DataFrame, target: str, pieces: Pieces | None) -> int:
    seen = Observation()
    counted = frame.observe(seen, f.count(f.lit(1)).alias("rows"))
    if pieces is None:
        counted.write.option("compression", "zstd").option(_QUIET, "false").parquet(target)
        return int(seen.get["rows"])
    first, end, piece = pieces

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begun = not first
        for batch in batches:
            if batch.num_rows:
                lines = [] if begun else [first]
                lines.append(piece(pa.Table.from_batches([batch])))
                begun = True
                yield pa.record_batch({"value": pa.array(lines)})

    text: Any = counted.mapInArrow(task, _TEXT).write
    text.option("lineSep", end).option(_QUIET, "false").text(target)
    return int(seen.get["rows"])


def _name_files(folder: Path, suffix: str) -> None:
    """Give files names that people know; what is empty says nothing."""
    for file in list(folder.iterdir()):
        if file.name.startswith(".") or not file.stat().st_size:
            file.unlink()
    for number, file in enumerate(sorted(folder.iterdir())):
        file.rename(folder / f"part-{number:05d}.{suffix}")


def _write_first_line(path: Path, pieces: Pieces) -> None:
    first, end, _ = pieces
    path.write_text(f"{first}{end}" if first else "", encoding="utf-8", newline="")
