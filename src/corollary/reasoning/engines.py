"""Create engines by name, and encode facts of programs and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine
from corollary.core.tables import Tables, encode, joined, narrow
from corollary.errors import OperationFailed
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE

if TYPE_CHECKING:
    from corollary.engines.columnar.budget import Budget
    from corollary.files.tables import Table

ENGINES = ("columnar", "spark")
EQUALITY = ("rules", "rewrite")  # treatments of owl:sameAs


def make_engine(
    name: str,
    dictionary: Dictionary,
    *,
    threads: int = 1,
    limit_memory: int | None = None,
    limit_facts: int | None = None,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
) -> Engine[Any]:
    """Create an engine; imports no other engine.

    `master` and `config` say where Spark runs, and its settings.

    >>> type(make_engine("columnar", Dictionary())).__name__
    'ColumnarEngine'
    """
    if name == "spark":
        try:
            from corollary.engines.spark.engine import SparkEngine
        except ModuleNotFoundError as error:
            raise OperationFailed(
                "E403",
                f"the Spark engine needs {error.name}, which is not installed",
                "pip install 'corollary[spark]' brings it, and a Java",
            ) from None
        from corollary.engines.columnar.engine import ColumnarEngine

        return SparkEngine(
            dictionary, ColumnarEngine, master=master or "local[*]", config=config or {}
        )
    from corollary.engines.columnar.engine import ColumnarEngine

    return ColumnarEngine(
        dictionary, threads=threads, limit_memory=limit_memory, limit_facts=limit_facts
    )


def is_in_process(engine: Engine[Any]) -> bool:
    """Test whether the facts of an engine are in the memory of this process.

    >>> is_in_process(make_engine("columnar", Dictionary()))
    True
    """
    return hasattr(engine, "space")


def replicate(engine: Any, predicates: frozenset[Predicate]) -> None:
    """Replicate the facts of some predicates to all tasks of a partitioned engine."""
    if not is_in_process(engine):
        engine.replicated = predicates


def budget_of(engine: Engine[Any]) -> Budget | None:
    """Return the memory budget of an engine, or None if it has none."""
    budget: Budget | None = getattr(getattr(engine, "space", None), "budget", None)
    return budget


def encoded(program: Program, tables: Iterable[Table], dictionary: Dictionary) -> Tables:
    """Encode the facts of a program and of files as ids."""
    parts = [encode(program.facts, dictionary)]
    parts += [
        table_ids(table, program.arities.get(table.relation, 0), dictionary) for table in tables
    ]
    return joined(parts)


def table_ids(table: Table, arity: int, dictionary: Dictionary) -> Tables:
    """Encode the facts of a table; `arity` is that of a plain relation."""
    if table.relation != TRIPLE and arity == 0:
        return encode(table.atoms(), dictionary)
    columns = [dictionary.encode(c.terms)[c.indices] for c in table.columns]
    return narrow(table.relation, columns, dictionary)
