"""Queries on Spark: SPARQL and patterns over the tables of a store, which nobody opens.

The driver holds the rules, and of the terms those that the query names; facts and terms are read
by tasks, as the files of the version, and answers are DataFrames. A hybrid store derives answers
when it is asked (`hybrid`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from corollary.core.partial import PartialDictionary
from corollary.engines.spark import stored
from corollary.engines.spark.failures import explained
from corollary.engines.spark.folders import refuse_occupied, write_folder
from corollary.engines.spark.stored import DataFrame, SparkSession
from corollary.engines.spark.write import read_files
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.patterns import is_pattern, places_of, read_pattern
from corollary.knowledge_base.spark.hybrid import Unfolded
from corollary.knowledge_base.spark.sessions import apart, started, unnoticed
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, Atom, Variable
from corollary.query.results import Solutions, TripleTable
from corollary.query.spark import SparkQueries, SparkRunner
from corollary.query.spark_hybrid import HybridSparkRunner
from corollary.query.write import FOLDERS, pieces
from corollary.store import Store
from corollary.store.term_hash import hashes


class SparkStore:
    """A version of a store, asked on Spark; see `corollary.spark.open_store`."""

    def __init__(
        self,
        path: str | Path,
        *,
        at_version: int | None = None,
        session: SparkSession | None = None,
        master: str | None = None,
        **options: Any,
    ) -> None:
        """`options` are those of `SparkEngine`, which derives the answers of hybrid stores."""
        self._snapshot = snapshot = Store.open(path).snapshot(at_version)
        self._options = options
        self._session = apart(started(session, master))
        self._terms = read_files(self._session, snapshot.term_files(), stored.TERM_COLUMNS)
        self._dictionary = PartialDictionary(
            {},
            sum(file.rows for file in snapshot.term_data),
            fetch=lambda ids: stored.texts_of(self._terms, ids),
            look_up=self._look_up,
        )

    @property
    def mode(self) -> str:
        """`materialized` or `hybrid`."""
        return self._snapshot.mode

    @property
    def version(self) -> int:
        """The version that is asked."""
        return self._snapshot.version

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes of the rules and of the data, with the well-known ones."""
        return MappingProxyType(WELL_KNOWN_PREFIXES | dict(self._snapshot.program.prefixes))

    def query(self, text: str, *, name: str = "<query>") -> DataFrame | bool:
        """Answer a SPARQL 1.1 query, or an atom such as `[?x, a, :Person]` or `path(1, ?y)`.

        SELECT and atoms give a DataFrame with a column for each variable, CONSTRUCT and DESCRIBE
        one with subject, predicate and object: terms as N-Triples writes them, null where unbound.
        ASK and atoms without variables give a bool. The DataFrame is computed when it is read.
        """
        with _asking():
            return self._answer(text, name)[0]

    def collect(self, text: str, *, name: str = "<query>") -> Solutions | TripleTable | bool:
        """The answer on the driver, as `KnowledgeBase.query` gives it."""
        with _asking():
            found, triples = self._answer(text, name)
            if isinstance(found, bool):
                return found
            table = found.toArrow()
            columns = [column.cast(pa.large_string()) for column in table.columns]
            if columns:
                table = pa.table(columns, names=found.columns)
            return TripleTable(table) if triples else Solutions(table)

    def write(
        self, text: str, folder: str | Path, format_: str = "parquet", *, name: str = "<query>"
    ) -> int:
        """Write the answer into a new folder, by tasks; how many rows there are.

        The formats are those of files; N-Triples is for CONSTRUCT and DESCRIBE.
        """
        target = str(folder)
        if format_ not in FOLDERS:
            raise InvalidInput(
                "E565",
                f"answers are not written into folders as {format_}",
                f"there are {', '.join(FOLDERS)}; any format goes to a file",
            )
        refuse_occupied(self._terms, target)
        with _asking():
            found, triples = self._answer(text, name)
            if isinstance(found, bool):
                raise InvalidInput("E565", "the answer of ASK is no table", "leave the folder out")
            if format_ == "nt" and not triples:
                raise InvalidInput(
                    "E562", "answers of SELECT queries are not written as nt", "use CONSTRUCT"
                )
            how = None if format_ == "parquet" else pieces(format_, found.columns)
            return write_folder(found, target, format_, how)

    def explain_query(self, text: str, *, name: str = "<query>") -> str:
        """The SQL of a query and how Spark carries it out; in hybrid mode with proof trees."""
        with _asking():
            if not is_pattern(text):
                return self._queries.explain(text, self.prefixes, name)
            if self._unfolded is None:
                raise InvalidInput(
                    "E583",
                    "only hybrid stores unfold patterns",
                    "ask a SPARQL query to see its plan",
                )
            return self._unfolded.tree_of(self._pattern(text))

    # -- answers -----------------------------------------------------------------------------------

    def _answer(self, text: str, name: str) -> tuple[DataFrame | bool, bool]:
        """The answer, and whether it is triples."""
        if is_pattern(text):
            return self._matching(self._pattern(text)), False
        queries = self._queries
        plan = queries.plan(text, self.prefixes, name)
        return queries.answer(plan), plan.form in ("CONSTRUCT", "DESCRIBE")

    @cached_property
    def _queries(self) -> SparkQueries:
        runner: SparkRunner
        if self._unfolded is not None:
            runner = HybridSparkRunner(self._session, self._unfolded, self._terms)
        else:
            triples = self._facts.where(f"relation = '{TRIPLES_NAME}'")
            columns = triples.selectExpr("arg0 AS s", "arg1 AS p", "arg2 AS o")
            runner = SparkRunner(self._session, columns, self._terms)
        return SparkQueries(runner, self._dictionary)

    @cached_property
    def _unfolded(self) -> Unfolded | None:
        """What derives answers, in a hybrid store."""
        snapshot = self._snapshot
        if snapshot.mode != "hybrid":
            return None
        patterns = [self._pattern(text) for text in snapshot.commit.materialize]
        explicit = self._facts.where("explicit").drop("explicit")
        program = snapshot.program.without_facts()
        options = {"terms": self._terms, **self._options}
        return Unfolded(explicit, program, patterns, self._dictionary, **options)

    @cached_property
    def _facts(self) -> DataFrame:
        """The facts of the version: `relation`, `arg0`, `arg1`, … and `explicit`."""
        snapshot = self._snapshot
        width = snapshot.schema.names.index("explicit") - 1
        rows = read_files(self._session, snapshot.fact_files(), stored.fact_columns(width))
        return stored.current_facts(rows, width)

    def _pattern(self, text: str) -> Atom:
        snapshot = self._snapshot
        widths = {name: count.width for name, count in snapshot.statistics.relations.items()}
        widths.pop(TRIPLES_NAME, None)
        return read_pattern(text, widths | dict(snapshot.program.arities), self.prefixes)

    def _matching(self, pattern: Atom) -> DataFrame | bool:
        """The values of a pattern's variables, or whether there is such a fact."""
        frame = self._rows(pattern)
        places = places_of(pattern)
        if not places:
            return not frame.isEmpty()
        known = self._terms.select("id", "term")
        if more := self._dictionary.new_terms:
            known = known.union(self._session.createDataFrame(more, "id long, term string"))
        for number, place in enumerate(places.values()):
            own = known.selectExpr(f"id AS arg{place}", f"term AS text{number}")
            frame = frame.join(own, f"arg{place}")
        texts = [f"text{number}" for number in range(len(places))]
        return frame.select(*texts).toDF(*places)

    def _rows(self, pattern: Atom) -> DataFrame:
        """The facts that match, as rows of ids."""
        if self._unfolded is not None:
            found = self._unfolded.matching(pattern)
            return self._unfolded.engine.frame(found, width=len(pattern.terms))
        constants = [term for term in pattern.terms if not isinstance(term, Variable)]
        self._dictionary.remember(constants)
        relation = TRIPLES_NAME if pattern.relation == TRIPLE else pattern.relation
        conditions = [f"relation = '{relation}'"]
        places = places_of(pattern)
        for place, term in enumerate(pattern.terms):
            if not isinstance(term, Variable):
                found_id = self._dictionary.find(term)
                conditions.append("FALSE" if found_id is None else f"arg{place} = {found_id}")
            elif places[term.name] != place:
                conditions.append(f"arg{place} = arg{places[term.name]}")
        return self._facts.where(" AND ".join(conditions))

    def _look_up(self, texts: list[str]) -> list[int | None]:
        wanted = hashes(pa.array(texts, pa.large_string())).to_pylist()
        found = stored.ids_of(self._terms, texts, wanted)
        return [found.get(text) for text in texts]


@contextmanager
def _asking() -> Iterator[None]:
    """Failures of Spark as failures of a query; the active session stays the one that it was."""
    try:
        with explained("the query"), unnoticed():
            yield
    except OperationFailed as error:
        if error.code != "E540":
            raise
        if raised := _TOO_LARGE.search(error.message):
            raise OperationFailed("E567", raised[1]) from None
        raise OperationFailed("E563", error.message) from None


_TOO_LARGE = re.compile(r"\bE567: (.*)")  # what a function of terms raised in a task
