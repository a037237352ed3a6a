"""The pipeline on Spark: parse → encode → close the schema → materialize → commit.

Nothing here imports PySpark before a function is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.errors import OperationFailed
from corollary.knowledge_base.rules import Rules
from corollary.knowledge_base.spark.stages import OnProgress, Stage
from corollary.rdf.triples import OnError

if TYPE_CHECKING:
    from corollary.engines.spark.stored import DataFrame, SparkSession
    from corollary.knowledge_base.spark.built import Built
    from corollary.knowledge_base.spark.querying import SparkStore
    from corollary.lang.program import Program

__all__ = ["Stage", "build", "materialize", "open_store", "query", "register", "update"]


def build(
    path: str | Path,
    sources: Any,
    *,
    rules: Rules | Iterable[Rules] = "owl-rl",
    mode: str = "materialized",
    materialize: Sequence[str] = (),
    master: str | None = None,
    session: SparkSession | None = None,
    on_error: OnError = "fail",
    limit_input_bytes: int | None = None,
    message: str | None = None,
    partitions: int | None = None,
    on_progress: OnProgress | None = None,
) -> Built:
    """Make a store of what sources hold and of all that follows from it.

    A source is a path, a folder or a pattern, an address that Spark opens (`s3a://…`), a DataFrame
    of Spark with the columns subject, predicate and object or predicate, arg0, arg1, …, a table of
    Arrow, pandas or Polars, or an rdflib graph. `rules` are rule sets by name, `.dl` files and
    programs. Without a `session` the one that runs is used, or one is started at `master`.
    `on_progress` is told of every stage and round. A build that fails leaves nothing.
    `limit_input_bytes` bounds the bytes of each file after decompression.

    With `mode="hybrid"` only the explicit facts are stored, and the answers to patterns about
    schemas and to those of `materialize`; all others are derived when they are asked for.

        spark.build("univ.store", ["univ-bench.owl", "data/*.nt"], master="local[*]")
        spark.build("univ.store", ["s3a://bucket/univ/", frame], rules="rdfs", session=session)
    """
    with _installed():
        from corollary.knowledge_base.spark import pipeline
    return pipeline.build(
        path,
        sources,
        rules=rules,
        mode=mode,
        patterns=materialize,
        master=master,
        session=session,
        on_error=on_error,
        limit_input_bytes=limit_input_bytes,
        message=message,
        partitions=partitions,
        on_progress=on_progress,
    )


def update(
    path: str | Path,
    *,
    insert: Any = (),
    delete: Any = (),
    add_rules: Rules | Iterable[Rules] = (),
    remove_rules: Rules | Iterable[Rules] = (),
    algorithm: str = "auto",
    master: str | None = None,
    session: SparkSession | None = None,
    on_error: OnError = "fail",
    limit_input_bytes: int | None = None,
    keep_labels: bool = False,
    message: str | None = None,
    batch: str | None = None,
    on_progress: OnProgress | None = None,
) -> Built:
    """Change the explicit facts and rules of a store, and derive what changes, on Spark.

    Sources are those of `build`; a fact that is both deleted and inserted is inserted. What is
    committed is exactly what the materialization differs by. Blank nodes of a document that is
    inserted are its own, unless `keep_labels`; deleted ones are those that the store shows under
    the same label. `batch` names the change in the commit, for those who must not make it twice.

        spark.update("univ.store", insert=["new.nt"], delete=["old.nt"], session=session)
    """
    with _installed():
        from corollary.knowledge_base.spark import updating
    return updating.update(
        path,
        insert=insert,
        delete=delete,
        add_rules=add_rules,
        remove_rules=remove_rules,
        algorithm=algorithm,
        master=master,
        session=session,
        on_error=on_error,
        limit_input_bytes=limit_input_bytes,
        keep_labels=keep_labels,
        message=message,
        batch=batch,
        on_progress=on_progress,
    )


def materialize(
    frame: DataFrame,
    program: Program | Rules | Iterable[Rules],
    *,
    on_error: OnError = "fail",
    on_progress: OnProgress | None = None,
) -> DataFrame:
    """All that follows from the facts of a DataFrame, these included.

    The columns are subject, predicate and object, or predicate (the name of a relation), arg0,
    arg1, …; the answer has the same ones, and `explicit`. Terms of triples are written as N-Triples
    writes them, cells of relations as facts files do.
    """
    with _installed():
        from corollary.knowledge_base.spark import pipeline
    return pipeline.materialize(frame, program, on_error=on_error, on_progress=on_progress)


def open_store(
    path: str | Path,
    *,
    at_version: int | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
) -> SparkStore:
    """A version of a store, to be asked on Spark: its files are read by tasks, as queries need.

    Several queries share what a hybrid store has to prepare.

        univ = spark.open_store("univ.store", session=session)
        univ.query("SELECT ?x { ?x a :Person }").write.parquet("persons")
        univ.write("CONSTRUCT WHERE { ?x :memberOf ?y }", "members", "nt")
        univ.query("[?x, :memberOf, :Department0]").count()
    """
    with _installed():
        from corollary.knowledge_base.spark.querying import SparkStore
    return SparkStore(path, at_version=at_version, session=session, master=master)


def query(
    path: str | Path,
    text: str,
    *,
    at_version: int | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
) -> DataFrame | bool:
    """Answer a SPARQL query, or an atom, over the tables of a store.

    The answer of SELECT is a DataFrame with a column for each variable, of CONSTRUCT and DESCRIBE
    one with subject, predicate and object, terms as N-Triples writes them; of ASK, a bool. Neither
    facts nor terms come to the driver.

        spark.query("univ.store", "SELECT ?x { ?x a :Person }", session=session).count()
    """
    return open_store(path, at_version=at_version, session=session, master=master).query(text)


def register(session: SparkSession) -> None:
    """Make `session.read.format("rdf")` and `frame.write.format("rdf")` known to a session."""
    with _installed():
        from corollary.knowledge_base.spark.source import register
    register(session)


class _installed:  # noqa: N801 - reads as a word where it is used
    """Says how to install Spark where it is missing."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ModuleNotFoundError) and error.name in ("pyspark", "py4j", "pandas"):
            raise OperationFailed(
                "E403",
                f"the pipeline needs {error.name}, which is not installed",
                "pip install 'corollary[spark]' brings it, and a Java",
            ) from None
