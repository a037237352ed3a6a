"""Query with Spark: SPARQL and patterns over the tables of a store that is not loaded.

The driver holds only the rules and the terms in the query; tasks read facts and terms from the
files of the version, and answers are DataFrames. A hybrid store derives answers at query time
(`hybrid`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from corollary.core.graphs import DEFAULT, REASON_OVER
from corollary.engines.spark.failures import explain_failures
from corollary.engines.spark.folders import refuse_occupied, write_folder
from corollary.engines.spark.persisted import PersistedFrames
from corollary.engines.spark.stored import DataFrame, SparkSession, with_new_terms
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.patterns import (
    arities_of,
    is_pattern,
    materialized_patterns,
    places_of,
    read_pattern,
)
from corollary.knowledge_base.spark.graphs import graph_frames
from corollary.knowledge_base.spark.hybrid import Unfolded
from corollary.knowledge_base.spark.operation import (
    current_facts,
    partial_dictionary,
    term_table,
)
from corollary.knowledge_base.spark.sessions import (
    get_session,
    keep_active_session,
    query_session,
)
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, Atom, Variable
from corollary.query.graphs import dataset_of
from corollary.query.plan import Source
from corollary.query.results import Solutions, TripleTable
from corollary.query.spark import HybridSparkRunner, SparkQueries, SparkRunner
from corollary.query.write import FOLDERS, pieces
from corollary.store import Store
from corollary.store.places import Place


class SparkStore:
    """A version of a store for queries on Spark; see `corollary.spark.open_store`."""

    def __init__(
        self,
        path: Place,
        *,
        at_version: int | None = None,
        session: SparkSession | None = None,
        master: str | None = None,
        config: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        """`options` are those of `SparkEngine`, which derives the answers of hybrid stores."""
        self._snapshot = snapshot = Store.open(path).snapshot(at_version)
        self._options = options
        self._session = query_session(get_session(session, master, config), config)
        self._frames = PersistedFrames()
        self._terms = term_table(self._session, snapshot)
        count = sum(file.rows for file in snapshot.term_data)
        self._dictionary = partial_dictionary(self._terms, {}, count)

    def close(self) -> None:
        """Release Spark's persisted answers; those of a hybrid store become unreadable."""
        self._frames.release()

    @property
    def mode(self) -> str:
        """`materialized` or `hybrid`."""
        return self._snapshot.mode

    @property
    def version(self) -> int:
        """The version that queries read."""
        return self._snapshot.version

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes of the rules and of the data, with the well-known ones."""
        return MappingProxyType(WELL_KNOWN_PREFIXES | dict(self._snapshot.program.prefixes))

    def query(
        self, text: str, *, name: str = "<query>", default_graph: str = "union"
    ) -> DataFrame | bool:
        """Answer a SPARQL 1.1 query, or an atom such as `[?x, a, :Person]` or `path(1, ?y)`.

        SELECT and atoms return a DataFrame with a column for each variable, CONSTRUCT and DESCRIBE
        one with subject, predicate and object: terms in the syntax of N-Triples, null if unbound.
        ASK and atoms without variables return a bool. The DataFrame is lazy. `default_graph` is
        that of `KnowledgeBase.query`.
        """
        with _explain_query_failures():
            return self._answer(text, name, default_graph)[0]

    def collect(
        self, text: str, *, name: str = "<query>", default_graph: str = "union"
    ) -> Solutions | TripleTable | bool:
        """Collect the answer on the driver, in the form of `KnowledgeBase.query`."""
        with _explain_query_failures():
            found, triples = self._answer(text, name, default_graph)
            if isinstance(found, bool):
                return found
            table = found.toArrow()
            columns = [column.cast(pa.large_string()) for column in table.columns]
            if columns:
                table = pa.table(columns, names=found.columns)
            return TripleTable(table) if triples else Solutions(table)

    def write(
        self,
        text: str,
        folder: str | Path,
        format_: str = "parquet",
        *,
        name: str = "<query>",
        default_graph: str = "union",
    ) -> int:
        """Write the answer into a new folder from tasks; return the number of rows.

        The formats are those of files; N-Triples is for CONSTRUCT and DESCRIBE.
        """
        target = str(folder)
        if format_ not in FOLDERS:
            raise InvalidInput(
                "E565",
                f"answers are not written into folders as {format_}",
                f"choose one of {', '.join(FOLDERS)}, or write to a file",
            )
        refuse_occupied(self._terms, target)
        with _explain_query_failures():
            found, triples = self._answer(text, name, default_graph)
            if isinstance(found, bool):
                raise InvalidInput("E565", "the answer of ASK is not a table", "omit the folder")
            if format_ == "nt" and not triples:
                raise InvalidInput(
                    "E562", "cannot write the answer of SELECT queries as nt", "use CONSTRUCT"
                )
            how = None if format_ == "parquet" else pieces(format_, found.columns)
            return write_folder(found, target, format_, how)

    def explain_query(
        self, text: str, *, name: str = "<query>", default_graph: str = "union"
    ) -> str:
        """Show the SQL of a query and Spark's plan; in hybrid mode with proof trees."""
        with _explain_query_failures():
            if not is_pattern(text):
                return self._queries.explain(text, self.prefixes, name, dataset_of(default_graph))
            if self._unfolded is None:
                raise InvalidInput(
                    "E583",
                    "only hybrid stores unfold patterns",
                    "use a SPARQL query to see its plan",
                )
            return self._unfolded.tree_of(self._pattern(text))

    # -- answers -----------------------------------------------------------------------------------

    def _answer(self, text: str, name: str, default_graph: str) -> tuple[DataFrame | bool, bool]:
        """Evaluate a query; return the answer, and whether it is triples."""
        if is_pattern(text):
            return self._matching(self._pattern(text)), False
        queries = self._queries
        plan = queries.plan(text, self.prefixes, name, dataset_of(default_graph))
        return queries.answer(plan), plan.form in ("CONSTRUCT", "DESCRIBE")

    @cached_property
    def _queries(self) -> SparkQueries:
        runner: SparkRunner
        if self._unfolded is not None:
            graphs = self._graphs(self._unfolded)
            runner = HybridSparkRunner(self._session, self._unfolded, self._terms, graphs)
        else:
            triples = self._facts.where(f"relation = '{TRIPLES_NAME}'")
            columns = triples.selectExpr("arg0 AS s", "arg1 AS p", "arg2 AS o")
            runner = SparkRunner(self._session, columns, self._terms, self._graphs(None))
        return SparkQueries(runner, self._dictionary)

    def _graphs(self, unfolded: Unfolded | None) -> Mapping[Source, Callable[[], DataFrame]]:
        """The tables of graphs."""
        names = self._snapshot.statistics.relations
        default = self._dictionary.find(DEFAULT) if REASON_OVER.relation in names else None
        asserted = "\n".join(self._snapshot.commit.asserted)
        own = self._snapshot.program.axioms - frozenset(Program.parse(asserted).facts)
        triples = [tuple(axiom.constants()) for axiom in own if axiom.relation == TRIPLE]

        def axioms() -> DataFrame:
            self._dictionary.remember([term for row in triples for term in row])
            rows = [tuple(map(self._dictionary.find, row)) for row in triples]
            return self._session.createDataFrame(rows, "s bigint, p bigint, o bigint")

        known = axioms if triples else None
        if unfolded is None:
            return graph_frames(self._facts, names, default, known)

        def derived() -> DataFrame:
            explicit = graph_frames(self._facts, names, default)["explicit"]()
            return unfolded.answer((None, None, None), {}).frame().exceptAll(explicit)

        return graph_frames(self._facts, names, default, known, derived)

    @cached_property
    def _unfolded(self) -> Unfolded | None:
        """The reasoner of a hybrid store that derives answers; None for other stores."""
        snapshot = self._snapshot
        if snapshot.mode != "hybrid":
            return None
        explicit = self._facts.where("explicit").drop("explicit")
        program = snapshot.program.without_facts()
        options = {"terms": self._terms, "frames": self._frames, **self._options}
        patterns = materialized_patterns(snapshot)
        return Unfolded(explicit, program, patterns, self._dictionary, **options)

    @cached_property
    def _facts(self) -> DataFrame:
        """The facts of the version: `relation`, `arg0`, `arg1`, … and `explicit`."""
        return current_facts(self._session, self._snapshot)

    def _pattern(self, text: str) -> Atom:
        return read_pattern(text, arities_of(self._snapshot), self.prefixes)

    def _matching(self, pattern: Atom) -> DataFrame | bool:
        """Return the values of a pattern's variables, or whether any fact matches."""
        frame = self._rows(pattern)
        places = places_of(pattern)
        if not places:
            return not frame.isEmpty()
        known = with_new_terms(self._terms, self._dictionary.new_terms)
        for number, place in enumerate(places.values()):
            own = known.selectExpr(f"id AS arg{place}", f"term AS text{number}")
            frame = frame.join(own, f"arg{place}")
        texts = [f"text{number}" for number in range(len(places))]
        return frame.select(*texts).toDF(*places)

    def _rows(self, pattern: Atom) -> DataFrame:
        """Return the facts that match, as rows of ids."""
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


@contextmanager
def _explain_query_failures() -> Iterator[None]:
    """Translate failures of Spark to failures of a query, and preserve the active session."""
    try:
        with explain_failures("the query"), keep_active_session():
            yield
    except OperationFailed as error:
        if error.code != "E540":
            raise
        if raised := _TOO_LARGE.search(error.message):
            raise OperationFailed("E567", raised[1]) from None
        raise OperationFailed("E563", error.message) from None


_TOO_LARGE = re.compile(r"\bE567: (.*)")  # raised by a function of terms in a task
