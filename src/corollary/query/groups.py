"""GROUP BY and aggregates in SQL.

COUNT and SAMPLE are SQL's own, MIN and MAX too, by the order of ORDER BY; SUM, AVG and GROUP_CONCAT
are functions of the list of a group's terms. A term without a value makes these three an error,
and is ignored by the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corollary.core.terms import text_of
from corollary.lang.syntax import Literal
from corollary.query.plan import Call, Column, Kind, Relation
from corollary.query.relations import NULLS, Translation, select
from corollary.query.syntax.algebra import Node
from corollary.query.values import INTEGER

_EMPTY = {"SUM": text_of(Literal("0", INTEGER)), "AVG": text_of(Literal("0", INTEGER)),
          "GROUP_CONCAT": text_of(Literal(""))}  # fmt: skip
_COUNT_END = text_of(Literal("", INTEGER))[1:]  # what follows the digits


def grouped(
    t: Translation,
    relation: Relation,
    keys: Sequence[str],
    aggregates: Sequence[Node],
    arguments: Mapping[int, str],
    *,
    implicit: bool,
) -> Relation:
    """One solution for each group: its keys, and the aggregates under their names."""
    sql = relation.sql
    texts: dict[str, str] = {}
    if not t.dialect.sees_ids:  # functions of lists take texts
        asked = [
            v
            for v in dict.fromkeys(arguments.values())
            if v in relation.columns and relation.columns[v].kind == "id"
        ]
        sql, looked_up = t.dialect.texts(sql, [relation.columns[v].name for v in asked])
        texts = {v: s.partition(".")[2] for v, s in zip(asked, looked_up, strict=True)}
    alias = t.fresh()
    listed: list[str] = []
    columns: dict[str, Column] = {}
    by: list[str] = []
    for key in keys:
        column = relation.columns.get(key, Column(t.name(key), "id", True))
        if key in relation.columns:
            listed.append(f"{alias}.{column.name}")
            by.append(f"{alias}.{column.name}")
        else:
            listed.append(f"{NULLS['id']} AS {column.name}")
        columns[key] = column
    for number, aggregate in enumerate(aggregates):
        argument = arguments.get(number)
        found = _aggregate(t, relation, aggregate, argument, alias, texts)
        column = Column(t.name(aggregate.result), found[1], True)
        listed.append(f"{found[0]} AS {column.name}")
        columns[aggregate.result] = column
    result = f"SELECT {select(listed)} FROM ({sql}) AS {alias}"
    if by:
        result += f" GROUP BY {', '.join(by)}"
    elif not implicit:  # grouped by what nobody binds: one group, none if there is nothing
        result += " HAVING count(*) > 0"
    return Relation(result, columns)


def _aggregate(
    t: Translation,
    relation: Relation,
    aggregate: Node,
    argument: str | None,
    alias: str,
    texts: Mapping[str, str],
) -> tuple[str, Kind]:
    name, distinct = aggregate.function, aggregate.distinct
    if argument is None:
        return _count_rows(relation, alias, distinct=distinct), "text"
    column = relation.columns.get(argument)
    kind: Kind = "id" if column is None else column.kind
    sql = NULLS["id"] if column is None else f"{alias}.{column.name}"
    if name == "COUNT":
        return _written(f"count({'DISTINCT ' if distinct else ''}{sql})"), "text"
    if name == "SAMPLE":
        return f"min({sql})", kind
    text = f"{alias}.{texts[argument]}" if argument in texts else sql
    taken: Kind = "text" if argument in texts else kind
    function = t.function()
    if name in ("MIN", "MAX"):
        t.plan.calls.append(Call(function, "key", None, (taken,)))
        return f"{name.lower()}_by({sql}, {function}({text}))", kind
    # The list is made of what is known, and thrown away where something is not.
    t.plan.calls.append(Call(function, "aggregate", None, (taken,), name, aggregate.separator))
    found = f"{function}({t.dialect.collected(text, distinct=distinct)})"
    nothing = _EMPTY[name].replace("'", "''")
    return (
        f"CASE WHEN count(*) = 0 THEN '{nothing}' WHEN count(*) = count({sql}) THEN {found} END",
        "text",
    )


def _count_rows(relation: Relation, alias: str, *, distinct: bool) -> str:
    if not distinct:
        return _written("count(*)")
    parts = [f"{alias}.{column.name}" for column in relation.columns.values()]
    return _written(f"count(DISTINCT ({', '.join([*parts, '0', '0'])}))")


def _written(count: str) -> str:
    """A count as the text of an integer."""
    return f"concat('\"', CAST({count} AS STRING), '{_COUNT_END}')"
