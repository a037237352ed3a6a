"""`materialize`: tables of relations in, tables of derived relations out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from corollary.core.public import checked
from corollary.errors import InvalidInput
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.rules import Rules
from corollary.knowledge_base.surface import program_of
from corollary.lang.declarations import EXPLICIT
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, is_auxiliary


@checked
def materialize(
    tables: Mapping[str, Any],
    program: Program | Rules | Iterable[Rules],
    *,
    engine: str = "columnar",
    threads: int = 1,
) -> dict[str, Any]:
    """Derive everything that follows from tables of pandas, Polars or Arrow, given by relation.

    `program` is a program, its text, a path or the name of a rule set, or a list of these.

    Returns a table of the same library for each derived relation, or for each that the program
    names by `@output`. Columns that `@relation` declares are matched by name, and have their
    declared names and types. `corollary.spark.materialize` does the same with DataFrames of Spark.

    >>> program = '''
    ... @relation edge(from: string, to: string) .
    ... @relation path(from: string, to: string) .
    ... path(?x, ?y) :- edge(?x, ?y) .
    ... path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
    ... '''
    >>> import pandas as pd
    >>> edges = pd.DataFrame({"to": ["b", "c"], "from": ["a", "b"]})
    >>> print(materialize({"edge": edges}, program)["path"].to_string(index=False))
    from to
       a  b
       a  c
       b  c
    """
    if not tables:
        raise InvalidInput("E341", "there is no table", 'give a relation: {"edge": table}')
    rules = program_of(program)
    kb = KnowledgeBase(rules, engine=engine, threads=threads)
    kb.load(dict(tables))
    convert = _converter(next(iter(tables.values())))
    found = {}
    for name in result_relations(rules):
        table = kb.facts("[?s, ?p, ?o]" if name == TRIPLES_NAME else name)
        found[name] = convert(table.drop([EXPLICIT]))
    return found


def result_relations(program: Program) -> list[str]:
    """The relations that `materialize` returns.

    >>> result_relations(Program.parse("q(?x) :- p(?x) . [?x, a, <C>] :- q(?x) . q(1) ."))
    ['q', 'triples']
    """
    chosen = [one.relation for one in program.declarations.outputs]
    if not chosen:
        derived = (rule.head.relation for rule in program.rules)
        chosen = [TRIPLES_NAME if name == TRIPLE else name for name in derived]
    return [name for name in dict.fromkeys(chosen) if not is_auxiliary(name)]


def _converter(table: object) -> Any:
    """What converts Arrow tables to the library of a table."""
    match type(table).__module__.split(".")[0]:
        case "pandas":
            return pa.Table.to_pandas
        case "polars":
            import polars

            return polars.from_arrow
    return lambda found: found
