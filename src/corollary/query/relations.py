"""Relational operators over solution mappings: join, left join, union, MINUS, VALUES, GROUP BY.

A variable that may be unbound is a nullable column. Two solution mappings are compatible if no
variable has different values in both, so NULL is compatible with everything. For columns that are
not nullable this is an equi-join.

COUNT and SAMPLE are native SQL aggregates, and so are MIN and MAX, by the sort key of ORDER BY.
SUM, AVG and GROUP_CONCAT are functions of the list of a group's terms. An unbound argument makes
these three an error; the others ignore it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from corollary.core.terms import text_of
from corollary.lang.syntax import Constant, Literal
from corollary.lang.xsd import INTEGER
from corollary.query.dialect import Dialect
from corollary.query.parse import Parsed
from corollary.query.plan import Call, Column, Inline, Kind, Plan, Relation
from corollary.query.syntax.algebra import Node

UNIT = Relation("SELECT 1 AS unit", {})
_MAX_INLINE_ROWS = 256  # rows of VALUES in the SQL; larger blocks are loaded as a table
NULLS = {"id": "CAST(NULL AS BIGINT)", "text": "CAST(NULL AS STRING)"}


class Terms(Protocol):
    """A dictionary, as far as translation uses it."""

    def __len__(self) -> int: ...

    def find(self, term: Constant) -> int | None:
        """The id of a term; None if it has none."""


@dataclass
class Translation:
    """The state of translating one query."""

    plan: Plan
    dialect: Dialect
    dictionary: Terms
    parsed: Parsed
    group: int = 0  # of the basic graph pattern under translation
    seed: Relation | None = None  # outer bindings that are visible in an EXISTS pattern
    graphs: Callable[[], Sequence[int]] = tuple  # the named graphs
    dataset: Any = None  # `graphs.Dataset`
    has_unread: bool = False  # whether there are graphs that rules do not read
    active: Any = None  # `graphs.Active` or `graphs.EachGraph`: what patterns match
    _names: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    @contextmanager
    def seeded(self, seed: Relation | None) -> Iterator[None]:
        """Translate a pattern that sees these bindings of the pattern around it."""
        outer, self.seed = self.seed, seed
        yield
        self.seed = outer

    def name(self, variable: str) -> str:
        """The column of a variable: a generated name, so no query text gets into the SQL."""
        return self._names.setdefault(variable, f"v{len(self._names)}")

    def fresh(self, prefix: str = "r") -> str:
        """A name that is unique in the query."""
        self._count += 1
        return f"{prefix}{self._count}"

    def function(self) -> str:
        """A function name that is unique in the database."""
        return self.fresh(f"f{self.plan.number}_")

    def id(self, term: Constant) -> int:
        """The id of a constant; a negative id of this query if the data lack it."""
        term_id = self.dictionary.find(term)
        return self.plan.constant(term) if term_id is None else term_id


def select(parts: Iterable[str]) -> str:
    """A SELECT list; SQL requires at least one column."""
    return ", ".join(parts) or "1 AS unit"


def names(relation: Relation, alias: str) -> list[str]:
    """All columns of a relation, qualified by an alias."""
    return [f"{alias}.{c.name}" for c in relation.columns.values()] + [
        f"{alias}.{name}" for name in relation.hidden()
    ]


def align_kinds(t: Translation, *relations: Relation) -> list[Relation]:
    """Convert the relations so that a shared variable has the same kind in all of them."""
    texts = {v for r in relations for v, c in r.columns.items() if c.kind == "text"}
    shared = {v for v in texts if sum(v in r.columns for r in relations) > 1}
    return [as_texts(t, relation, shared) for relation in relations]


def as_texts(t: Translation, relation: Relation, variables: Iterable[str]) -> Relation:
    """Convert variables from ids to texts."""
    ids = [v for v in variables if v in relation.columns and relation.columns[v].kind == "id"]
    if not ids:
        return relation
    sql, texts = _join_texts(t, relation, ids, "r")
    listed = [
        f"{texts[v]} AS {c.name}" if v in texts else f"r.{c.name}"
        for v, c in relation.columns.items()
    ] + [f"r.{name}" for name in relation.hidden()]
    columns = {v: replace(c, kind="text") if v in texts else c for v, c in relation.columns.items()}
    return replace(relation, sql=f"SELECT {select(listed)} FROM ({sql}) AS r", columns=columns)


def with_texts(
    t: Translation, relation: Relation, variables: Collection[str], alias: str
) -> tuple[str, Mapping[str, str]]:
    """The SELECT with the texts of variables joined in, if the dialect's functions take no ids."""
    if t.dialect.sees_ids:
        return relation.sql, {}
    ids = [v for v, c in relation.columns.items() if v in variables and c.kind == "id"]
    return _join_texts(t, relation, ids, alias)


def _join_texts(
    t: Translation, relation: Relation, ids: Sequence[str], alias: str
) -> tuple[str, Mapping[str, str]]:
    names = [relation.columns[variable].name for variable in ids]
    sql, texts = t.dialect.texts(relation.sql, names, alias)
    return sql, dict(zip(ids, texts, strict=True))


def compatible(one: Mapping[str, Column], two: Mapping[str, Column], a: str, b: str) -> str:
    """The SQL condition that solution mappings a and b are compatible."""
    parts = [
        matches(f"{a}.{column.name}", f"{b}.{two[variable].name}", column, two[variable])
        for variable, column in one.items()
        if variable in two
    ]
    return " AND ".join(parts) or "TRUE"


def matches(left: str, right: str, one: Column, two: Column) -> str:
    """The SQL condition that two columns are equal or one of them is unbound."""
    unbound = [f"{sql} IS NULL" for sql, column in ((left, one), (right, two)) if column.nullable]
    equal = f"{left} = {right}"
    return f"({' OR '.join([equal, *unbound])})" if unbound else equal


def merge_columns(
    one: Relation, two: Relation, a: str, b: str, *, optional: bool = False
) -> tuple[list[str], dict[str, Column]]:
    """The SELECT list of a join, and its columns."""
    listed, columns = [], {}
    for variable, column in one.columns.items():
        other = two.columns.get(variable)
        if other is not None and column.nullable:
            listed.append(f"COALESCE({a}.{column.name}, {b}.{other.name}) AS {column.name}")
            nullable = other.nullable or optional
            columns[variable] = replace(column, nullable=nullable)
        else:
            listed.append(f"{a}.{column.name}")
            columns[variable] = column
    for variable, column in two.columns.items():
        if variable not in one.columns:
            listed.append(f"{b}.{column.name}")
            columns[variable] = replace(column, nullable=column.nullable or optional)
    return listed, columns


def join(t: Translation, one: Relation, two: Relation) -> Relation:
    """Join compatible solution mappings."""
    if one is UNIT or two is UNIT:
        return two if one is UNIT else one
    one, two = align_kinds(t, one, two)
    a, b = t.fresh(), t.fresh()
    listed, columns = merge_columns(one, two, a, b)
    row = None
    if one.row or two.row:
        numbered, alias = (one, a) if one.row else (two, b)
        row = numbered.row
        listed.append(f"{alias}.{row}")
    on = compatible(one.columns, two.columns, a, b)
    operator = "CROSS JOIN" if on == "TRUE" else "JOIN"
    sql = f"SELECT {select(listed)} FROM ({one.sql}) AS {a} {operator} ({two.sql}) AS {b}"
    return Relation(sql if on == "TRUE" else f"{sql} ON {on}", columns, row=row)


def union(t: Translation, *relations: Relation) -> Relation:
    """Concatenate solutions; variables missing in one are unbound."""
    relations = tuple(align_kinds(t, *relations))
    columns: dict[str, Column] = {}
    for relation in relations:
        for variable, column in relation.columns.items():
            previous = columns.get(variable, column)
            columns[variable] = replace(column, nullable=previous.nullable or column.nullable)
    for variable, column in columns.items():
        if any(variable not in relation.columns for relation in relations):
            columns[variable] = replace(column, nullable=True)
    parts = []
    for relation in relations:
        alias = t.fresh()
        listed = [
            f"{alias}.{c.name} AS {c.name}"
            if v in relation.columns
            else f"{NULLS[c.kind]} AS {c.name}"
            for v, c in columns.items()
        ]
        parts.append(f"SELECT {select(listed)} FROM ({relation.sql}) AS {alias}")
    return Relation(" UNION ALL ".join(parts), columns)


def minus(t: Translation, one: Relation, two: Relation) -> Relation:
    """MINUS: an anti-join on compatible solutions that share a bound variable."""
    one, two = align_kinds(t, one, two)
    shared = [v for v in one.columns if v in two.columns]
    if not shared:
        return one
    a, b = t.fresh(), t.fresh()
    on = compatible(one.columns, two.columns, a, b)
    if all(one.columns[v].nullable or two.columns[v].nullable for v in shared):
        both = (f"{a}.{one.columns[v].name} = {b}.{two.columns[v].name}" for v in shared)
        on += f" AND ({' OR '.join(both)})"
    return replace(
        one,
        sql=f"SELECT {select(names(one, a))} FROM ({one.sql}) AS {a} WHERE NOT EXISTS"
        f" (SELECT 1 FROM ({two.sql}) AS {b} WHERE {on})",
    )


def left_join(t: Translation, one: Relation, two: Relation, on: str, a: str, b: str) -> Relation:
    """Left join on compatibility and a condition."""
    listed, columns = merge_columns(one, two, a, b, optional=True)
    if one.row:
        listed.append(f"{a}.{one.row}")
    both = compatible(one.columns, two.columns, a, b)
    sql = f"SELECT {select(listed)} FROM ({one.sql}) AS {a} LEFT JOIN ({two.sql}) AS {b}"
    return Relation(f"{sql} ON {both} AND {on}", columns, row=one.row)


def values(
    t: Translation, variables: Sequence[str], rows: Sequence[Sequence[Constant | None]]
) -> Relation:
    """A VALUES block; None is UNDEF."""
    if not variables:
        single = UNIT if len(rows) == 1 else Relation("SELECT 1 AS unit WHERE FALSE", {})
        return single if len(rows) < 2 else union(t, *[UNIT] * len(rows))
    ids = {
        v: [None if (term := row[place]) is None else t.id(term) for row in rows]
        for place, v in enumerate(variables)
    }
    columns = {v: Column(t.name(v), "id", None in listed) for v, listed in ids.items()}
    alias = t.fresh()
    if len(rows) > _MAX_INLINE_ROWS:
        table = Inline(
            f"values_{t.plan.number}_{len(t.plan.inline)}",
            {columns[v].name: listed for v, listed in ids.items()},
        )
        t.plan.inline.append(table)
        chosen = ", ".join(f"{alias}.{name}" for name in table.columns)
        return Relation(f"SELECT {chosen} FROM {table.name} AS {alias}", columns)
    if not rows:
        nothing = select(f"{NULLS['id']} AS {column.name}" for column in columns.values())
        return Relation(f"SELECT {nothing} WHERE FALSE", columns)
    listed = ", ".join(
        f"({', '.join('NULL' if cell is None else str(cell) for cell in row)})"
        for row in zip(*ids.values(), strict=True)
    )
    heads = ", ".join(f"c{number}" for number in range(len(variables)))
    selected = ", ".join(
        f"CAST({alias}.c{number} AS BIGINT) AS {columns[v].name}"
        for number, v in enumerate(variables)
    )
    return Relation(f"SELECT {selected} FROM (VALUES {listed}) AS {alias}({heads})", columns)


# -- groups ----------------------------------------------------------------------------------------

_EMPTY = {"SUM": text_of(Literal("0", INTEGER)), "AVG": text_of(Literal("0", INTEGER)),
          "GROUP_CONCAT": text_of(Literal(""))}  # fmt: skip
_COUNT_END = text_of(Literal("", INTEGER))[1:]  # the text after the digits


def group(
    t: Translation,
    relation: Relation,
    keys: Sequence[str],
    aggregates: Sequence[Node],
    arguments: Mapping[int, str],
    *,
    implicit: bool,
) -> Relation:
    """GROUP BY: one solution per group, with its keys and aggregates."""
    alias = t.fresh()
    # Aggregate functions take texts where others do.
    sql, texts = with_texts(t, relation, set(arguments.values()), alias)
    listed: list[str] = []
    columns: dict[str, Column] = {}
    group_by: list[str] = []
    for key in keys:
        column = relation.columns.get(key, Column(t.name(key), "id", True))
        if key in relation.columns:
            listed.append(f"{alias}.{column.name}")
            group_by.append(f"{alias}.{column.name}")
        else:
            listed.append(f"{NULLS['id']} AS {column.name}")
        columns[key] = column
    for number, aggregate in enumerate(aggregates):
        argument = arguments.get(number)
        aggregated = _aggregate(t, relation, aggregate, argument, alias, texts)
        column = Column(t.name(aggregate.result), aggregated[1], True)
        listed.append(f"{aggregated[0]} AS {column.name}")
        columns[aggregate.result] = column
    result = f"SELECT {select(listed)} FROM ({sql}) AS {alias}"
    if group_by:
        result += f" GROUP BY {', '.join(group_by)}"
    elif not implicit:  # all keys are unbound: a single group, or none without solutions
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
        return _integer_text(f"count({'DISTINCT ' if distinct else ''}{sql})"), "text"
    if name == "SAMPLE":
        return f"min({sql})", kind
    text = texts.get(argument, sql)
    argument_kind: Kind = "text" if argument in texts else kind
    function = t.function()
    if name in ("MIN", "MAX"):
        t.plan.calls.append(Call(function, "key", None, (argument_kind,)))
        return f"{name.lower()}_by({sql}, {function}({text}))", kind
    # The list has bound terms only; an unbound one makes the result NULL.
    t.plan.calls.append(
        Call(function, "aggregate", None, (argument_kind,), name, aggregate.separator)
    )
    result = f"{function}({t.dialect.collect(text, distinct=distinct)})"
    empty = _EMPTY[name].replace("'", "''")
    return (
        f"CASE WHEN count(*) = 0 THEN '{empty}' WHEN count(*) = count({sql}) THEN {result} END",
        "text",
    )


def _count_rows(relation: Relation, alias: str, *, distinct: bool) -> str:
    if not distinct:
        return _integer_text("count(*)")
    parts = [f"{alias}.{column.name}" for column in relation.columns.values()]
    return _integer_text(f"count(DISTINCT ({', '.join([*parts, '0', '0'])}))")


def _integer_text(count: str) -> str:
    """A count as the text of an xsd:integer literal."""
    return f"concat('\"', CAST({count} AS STRING), '{_COUNT_END}')"
