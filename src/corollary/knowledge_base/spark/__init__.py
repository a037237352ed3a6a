"""The pipeline on Spark: parse → encode → close the schema → materialize → commit.

PySpark is imported only when a function of this module is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from corollary.errors import OperationFailed
from corollary.knowledge_base.graphs import ReasonOver
from corollary.knowledge_base.rules import Rules
from corollary.knowledge_base.spark.options import Options, PipelineOptions, UpdateOptions
from corollary.knowledge_base.spark.stages import OnProgress, Stage
from corollary.rdf.triples import OnError
from corollary.store.places import Place, store_path

if TYPE_CHECKING:
    from corollary.engines.spark.stored import DataFrame, SparkSession
    from corollary.knowledge_base.fact_forms import FactForm
    from corollary.knowledge_base.spark.built import Built
    from corollary.knowledge_base.spark.querying import SparkStore
    from corollary.lang.program import Program

__all__ = ["Stage", "build", "materialize", "open_store", "query", "register", "update"]


def build(
    path: Place,
    sources: Any,
    *,
    rules: Rules | Iterable[Rules] = "owl-rl",
    mode: str = "materialized",
    equality: str = "rules",
    materialize: Sequence[FactForm] = (),
    reason_over: ReasonOver = "union",
    partitions: int | None = None,
    **options: Unpack[PipelineOptions],
) -> Built:
    """Build a store from sources and materialize the consequences of their facts.

    A source is a path, a folder or a pattern, an address that Spark opens (`s3a://…`), a Spark
    DataFrame with the columns subject, predicate and object or predicate, arg0, arg1, …, a table of
    Arrow, pandas or Polars, or an rdflib graph. `rules` are rule sets by name, `.dl` files and
    programs. A failed build leaves no store behind.

    `update` takes the same `options`. `session` defaults to the running session, or to a new one at
    `master`; `config` has settings of Spark for this operation, and no settings of a given session
    are changed. `on_error` is "fail" or "skip" for statements that cannot be parsed, and
    `limit_input_bytes` bounds the bytes of each file after decompression. `storage_options` are
    those of the object store, where the store is at an address. `message` is written to the log,
    and `on_progress` receives a line for every stage and round.

    With `mode="hybrid"` the store holds only the explicit facts, and the answers to patterns about
    schemas and to the patterns of `materialize`; all other answers are derived at query time.

    With `equality="rewrite"`, one representative replaces all terms that `owl:sameAs` equates while
    facts are derived; the driver holds the facts that mention such terms. The store has all facts.

    Statements of named graphs keep their graphs; a DataFrame may have a column `graph`, null for
    the default graph. With `graph`, all other statements are put into that named graph. Rules read
    all graphs, or those of `reason_over`.

        spark.build("univ.store", ["univ-bench.owl", "data/*.nt"], master="local[*]")
        spark.build("univ.store", ["s3a://bucket/univ/", frame], rules="rdfs", session=session)
    """
    with _explain_missing():
        from corollary.knowledge_base.spark import pipeline
    place = store_path(path, options.get("storage_options"))
    kind = pipeline.Kind(mode, equality, materialize, reason_over)
    return pipeline.build(place, sources, rules, kind, partitions, Options(**options))


def update(
    path: Place,
    *,
    insert: Any = (),
    delete: Any = (),
    add_rules: Rules | Iterable[Rules] = (),
    remove_rules: Rules | Iterable[Rules] = (),
    algorithm: str = "auto",
    **options: Unpack[UpdateOptions],
) -> Built:
    """Change the explicit facts and rules of a store, and maintain the materialization, on Spark.

    Sources and options are those of `build`; a fact that is both deleted and inserted is inserted.
    The commit holds exactly the diff of the materialization. Blank nodes of an inserted document
    are fresh, unless `keep_labels`; deleted ones are matched by the labels that the store shows.
    `batch` names the change in the commit, so that callers can make updates idempotent.

        spark.update("univ.store", insert=["new.nt"], delete=["old.nt"], session=session)
    """
    with _explain_missing():
        from corollary.knowledge_base.spark import updating
    keep_labels, batch = options.pop("keep_labels", False), options.pop("batch", None)
    request = updating.Request(
        insert, delete, add_rules, remove_rules, algorithm, keep_labels, batch
    )
    place = store_path(path, options.get("storage_options"))
    return updating.update(place, request, Options(**cast("PipelineOptions", options)))


@overload
def materialize(
    frame: DataFrame,
    program: Program | Rules | Iterable[Rules],
    *,
    on_error: OnError = "fail",
    on_progress: OnProgress | None = None,
) -> DataFrame: ...


@overload
def materialize(
    frame: Mapping[str, DataFrame],
    program: Program | Rules | Iterable[Rules],
    *,
    on_error: OnError = "fail",
    on_progress: OnProgress | None = None,
) -> dict[str, DataFrame]: ...


def materialize(
    frame: DataFrame | Mapping[str, DataFrame],
    program: Program | Rules | Iterable[Rules],
    *,
    on_error: OnError = "fail",
    on_progress: OnProgress | None = None,
) -> DataFrame | dict[str, DataFrame]:
    """Materialize the facts of a DataFrame: return them and all their consequences.

    The columns are subject, predicate and object, or predicate (the name of a relation), arg0,
    arg1, …; the result has the same columns and `explicit`. Terms of triples are in the syntax of
    N-Triples, cells of relations in that of facts files.

    A dictionary of DataFrames by relation returns one for each derived relation, or for those that
    the program names by `@output`. Columns that `@relation` declares are matched by name, and have
    their declared names and types; an integer is a `bigint`, a decimal a `decimal(38, 18)`, and a
    dateTime a `timestamp`. Other columns are `arg0`, `arg1`, … with cells.

        spark.materialize({"edge": edges}, Program.load("paths.dl"))["path"].show()
    """
    with _explain_missing():
        from corollary.knowledge_base.spark import pipeline
    one = next(iter(frame.values()), None) if isinstance(frame, Mapping) else frame
    session = None if one is None else one.sparkSession
    options = Options(session=session, on_error=on_error, on_progress=on_progress)
    return pipeline.materialize(frame, program, options)


def open_store(
    path: Place,
    *,
    at_version: int | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> SparkStore:
    """Open a version of a store for queries on Spark; tasks read its files on demand.

    Queries share the preparation of a hybrid store.

        univ = spark.open_store("univ.store", session=session)
        univ.query("SELECT ?x { ?x a :Person }").write.parquet("persons")
        univ.write("CONSTRUCT WHERE { ?x :memberOf ?y }", "members", "nt")
        univ.query("[?x, :memberOf, :Department0]").count()
    """
    with _explain_missing():
        from corollary.knowledge_base.spark.querying import SparkStore
    place = store_path(path, storage_options)
    return SparkStore(place, at_version=at_version, session=session, master=master, config=config)


def query(
    path: Place,
    text: str,
    *,
    at_version: int | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame | bool:
    """Answer a SPARQL query, or an atom, over the tables of a store.

    SELECT returns a DataFrame with a column for each variable, CONSTRUCT and DESCRIBE one with
    subject, predicate and object, with terms in the syntax of N-Triples; ASK returns a bool. No
    facts and no terms are sent to the driver.

        spark.query("univ.store", "SELECT ?x { ?x a :Person }", session=session).count()
    """
    place = store_path(path, storage_options)
    store = open_store(place, at_version=at_version, session=session, master=master, config=config)
    return store.query(text)


def register(session: SparkSession) -> None:
    """Register the data sources `rdf` (files) and `corollary` (changes of stores) with a session.

    session.read.format("rdf").load("data/*.nt")
    session.readStream.format("corollary").load("univ.store")
    """
    with _explain_missing():
        from corollary.knowledge_base.spark import changes, source
    source.register(session)
    changes.register(session)


@contextmanager
def _explain_missing() -> Iterator[None]:
    """Explain how to install Spark if it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "py4j", "pandas"):
            raise
        raise OperationFailed(
            "E403",
            f"the pipeline needs {error.name}, which is not installed",
            "pip install 'corollary[spark]' brings it, and a Java",
        ) from None
