"""The common options of the pipeline's operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from corollary.knowledge_base.spark.stages import OnProgress
from corollary.rdf.triples import OnError

if TYPE_CHECKING:
    from corollary.engines.spark.stored import SparkSession


class ReadOptions(TypedDict, total=False):
    """Keyword options of all operations that read sources; see `Options`."""

    session: SparkSession | None
    master: str | None
    config: Mapping[str, str] | None
    on_error: OnError
    limit_input_bytes: int | None


class PipelineOptions(ReadOptions, total=False):
    """Keyword options of `build` and `update`."""

    storage_options: Mapping[str, str] | None
    message: str | None
    on_progress: OnProgress | None
    graph: str | None


class UpdateOptions(PipelineOptions, total=False):
    """Keyword options of `update`."""

    keep_labels: bool
    batch: str | None


class StreamOptions(ReadOptions, total=False):
    """Keyword options of `stream`; see `Trigger`."""

    storage_options: Mapping[str, str] | None
    checkpoint: str | Path | None
    seconds: float
    once: bool
    most: int


@dataclass(frozen=True, kw_only=True)
class Options:
    """The session of an operation, and options for reading sources and reporting."""

    session: SparkSession | None = None  # defaults to the active one, or a new one at `master`
    master: str | None = None
    config: Mapping[str, str] | None = None  # settings of Spark, beside those of the session
    on_error: OnError = "fail"  # on statements that cannot be parsed
    limit_input_bytes: int | None = None  # of each file after decompression
    storage_options: Mapping[str, str] | None = None  # of the object store
    message: str | None = None  # written to the log of the store
    graph: str | None = None  # that statements are put into, instead of the default graph
    on_progress: OnProgress | None = None  # receives a line for every stage and round
