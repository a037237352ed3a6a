"""Write answers to a folder from tasks: one file per partition, in the order of partitions."""

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

Pieces = tuple[str, str, Callable[[pa.Table], str]]  # first line, line terminator, formatter


def write_folder(frame: DataFrame, folder: str, suffix: str, pieces: Pieces | None) -> int:
    """Write all rows as Parquet, or as text in pieces; return the number of rows.

    A folder on this machine appears atomically, when it is complete. Each text file begins with the
    first line.
    """
    refuse_occupied(frame, folder)
    if "://" in folder:
        return _write(frame, folder, pieces)
    path = Path(folder).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.parent / f".{path.name}-{uuid.uuid4().hex}"
    try:
        rows = _write(frame, address(hidden), pieces)
        _name_files(hidden, suffix)
        if not rows and pieces is not None:
            _write_first_line(hidden / f"part-00000.{suffix}", pieces)
        os.rename(hidden, path)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return rows


def refuse_occupied(frame: DataFrame, folder: str) -> None:
    """Raise an error if anything exists at the address, so that nothing is overwritten."""
    there = hadoop.exists(frame.sparkSession, folder) if "://" in folder else Path(folder).exists()
    if there:
        raise InvalidInput(
            "E566",
            f"{folder} already exists",
            "choose a folder that does not exist",
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
        started = not first
        for batch in batches:
            if batch.num_rows:
                lines = [] if started else [first]
                lines.append(piece(pa.Table.from_batches([batch])))
                started = True
                yield pa.record_batch({"value": pa.array(lines)})

    text: Any = counted.mapInArrow(task, _TEXT).write
    text.option("lineSep", end).option(_QUIET, "false").text(target)
    return int(seen.get["rows"])


def _name_files(folder: Path, suffix: str) -> None:
    """Rename the files that tasks wrote, and remove empty ones."""
    for file in list(folder.iterdir()):
        if file.name.startswith(".") or not file.stat().st_size:
            file.unlink()
    for number, file in enumerate(sorted(folder.iterdir())):
        file.rename(folder / f"part-{number:05d}.{suffix}")


def _write_first_line(path: Path, pieces: Pieces) -> None:
    first, end, _ = pieces
    path.write_text(f"{first}{end}" if first else "", encoding="utf-8", newline="")
