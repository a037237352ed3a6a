"""SQL for sets of solutions: joins by compatibility, unions, differences.

A variable that may be unbound is a column with NULLs. Two solutions are compatible if no variable
has different values in both, so that NULL agrees with everything; where no NULL can be, that is an
equality, which databases join by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from corollary.lang.syntax import Constant
from corollary.query.dialect import Dialect
from corollary.query.plan import Column, Inline, Plan, Relation
from corollary.query.terms import Terms

UNIT = Relation("SELECT 1 AS unit", {})
_MOST_INLINE = 256  # rows of VALUES in the text; more are a table that is loaded beside it
NULLS = {"id": "CAST(NULL AS BIGINT)", "text": "CAST(NULL AS STRING)"}


@dataclass
class Translation:
    """What all parts of the translation of one query share."""

    plan: Plan
    dialect: Dialect
    dictionary: Terms
    base: str | None = None
    group: int = 0  # of the pattern that is being translated
    seed: Relation | None = None  # what the pattern of an EXISTS sees of the solutions outside
    _names: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def name(self, variable: str) -> str:
        """The column of a variable: a name that no text of the query is part of."""
        return self._names.setdefault(variable, f"v{len(self._names)}")

    def fresh(self, prefix: str = "r") -> str:
        """A name that nothing else in the query has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def function(self) -> str:
        """A name that no function of any query of the database has."""
        return self.fresh(f"f{self.plan.number}_")

    def id(self, term: Constant) -> int:
        """The id of a constant; one of the query's own if the data lack it."""
        found = self.dictionary.find(term)
        return self.plan.constant(term) if found is None else found


def select(parts: Iterable[str]) -> str:
    """A list of columns, which SQL wants to be one at least."""
    return ", ".join(parts) or "1 AS unit"


def names(relation: Relation, alias: str) -> list[str]:
    """All columns of a relation."""
    return [f"{alias}.{c.name}" for c in relation.columns.values()] + [
        f"{alias}.{name}" for name in relation.hidden()
    ]


def agreed(t: Translation, *relations: Relation) -> list[Relation]:
    """The relations with terms of the same variable held in the same way."""
    texts = {v for r in relations for v, c in r.columns.items() if c.kind == "text"}
    shared = {v for v in texts if sum(v in r.columns for r in relations) > 1}
    return [as_texts(t, relation, shared) for relation in relations]


def as_texts(t: Translation, relation: Relation, variables: Iterable[str]) -> Relation:
    """The relation with these variables as texts."""
    ids = [v for v in variables if v in relation.columns and relation.columns[v].kind == "id"]
    if not ids:
        return relation
    sql, texts = t.dialect.texts(relation.sql, [relation.columns[v].name for v in ids])
    by = dict(zip(ids, texts, strict=True))
    listed = [
        f"{by[v]} AS {c.name}" if v in by else f"r.{c.name}" for v, c in relation.columns.items()
    ] + [f"r.{name}" for name in relation.hidden()]
    columns = {v: replace(c, kind="text") if v in by else c for v, c in relation.columns.items()}
    return replace(relation, sql=f"SELECT {select(listed)} FROM ({sql}) AS r", columns=columns)


def compatible(one: Mapping[str, Column], two: Mapping[str, Column], a: str, b: str) -> str:
    """The condition that solutions a and b are compatible."""
    parts = []
    for variable in one:
        if variable not in two:
            continue
        left, right = f"{a}.{one[variable].name}", f"{b}.{two[variable].name}"
        unbound = [
            f"{name} IS NULL"
            for name, column in ((left, one[variable]), (right, two[variable]))
            if column.nullable
        ]
        equal = f"{left} = {right}"
        parts.append(f"({' OR '.join([equal, *unbound])})" if unbound else equal)
    return " AND ".join(parts) or "TRUE"


def merged(
    one: Relation, two: Relation, a: str, b: str, *, optional: bool = False
) -> tuple[list[str], dict[str, Column]]:
    """What a join selects, and its columns."""
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
    """The compatible pairs of solutions."""
    if one is UNIT or two is UNIT:
        return two if one is UNIT else one
    one, two = agreed(t, one, two)
    a, b = t.fresh(), t.fresh()
    listed, columns = merged(one, two, a, b)
    row = None
    if one.row or two.row:
        keeper, alias = (one, a) if one.row else (two, b)
        row = keeper.row
        listed.append(f"{alias}.{row}")
    on = compatible(one.columns, two.columns, a, b)
    how = "CROSS JOIN" if on == "TRUE" else "JOIN"
    sql = f"SELECT {select(listed)} FROM ({one.sql}) AS {a} {how} ({two.sql}) AS {b}"
    return Relation(sql if on == "TRUE" else f"{sql} ON {on}", columns, row=row)


def union(t: Translation, *relations: Relation) -> Relation:
    """All solutions of all."""
    relations = tuple(agreed(t, *relations))
    columns: dict[str, Column] = {}
    for relation in relations:
        for variable, column in relation.columns.items():
            known = columns.get(variable, column)
            columns[variable] = replace(column, nullable=known.nullable or column.nullable)
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
    """The solutions that no compatible one of the others shares a variable with."""
    one, two = agreed(t, one, two)
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
    """Each solution with its compatible others for which a condition holds, or alone."""
    listed, columns = merged(one, two, a, b, optional=True)
    if one.row:
        listed.append(f"{a}.{one.row}")
    both = compatible(one.columns, two.columns, a, b)
    sql = f"SELECT {select(listed)} FROM ({one.sql}) AS {a} LEFT JOIN ({two.sql}) AS {b}"
    return Relation(f"{sql} ON {both} AND {on}", columns, row=one.row)


def values(
    t: Translation, variables: Sequence[str], rows: Sequence[Sequence[Constant | None]]
) -> Relation:
    """Solutions that the query lists; None is UNDEF."""
    if not variables:
        some = UNIT if len(rows) == 1 else Relation("SELECT 1 AS unit WHERE FALSE", {})
        return some if len(rows) < 2 else union(t, *[UNIT] * len(rows))
    ids = {
        v: [None if (term := row[place]) is None else t.id(term) for row in rows]
        for place, v in enumerate(variables)
    }
    columns = {v: Column(t.name(v), "id", None in listed) for v, listed in ids.items()}
    alias = t.fresh()
    if len(rows) > _MOST_INLINE:
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
    taken = ", ".join(
        f"CAST({alias}.c{number} AS BIGINT) AS {columns[v].name}"
        for number, v in enumerate(variables)
    )
    return Relation(f"SELECT {taken} FROM (VALUES {listed}) AS {alias}({heads})", columns)
