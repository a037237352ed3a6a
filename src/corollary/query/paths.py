"""Triple patterns and property paths as SQL.

Sequences, alternatives and inverses are joins, unions and exchanged columns, with all duplicates;
`?`, `*` and `+` give each pair once. A path that begins or ends at a constant is followed from
there; else all its pairs are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from corollary.lang.syntax import IRI, BlankNode, Variable
from corollary.query.plan import Column, Relation, Scan
from corollary.query.relations import UNIT, Translation, select
from corollary.query.syntax.algebra import Node

Triple = tuple[Any, Any, Any]


def pattern(t: Translation, triples: Sequence[Triple]) -> Relation:
    """A basic graph pattern, as one SELECT that databases order the joins of."""
    tables: list[str] = []
    conditions: list[str] = []
    columns: dict[str, Column] = {}
    places: dict[str, str] = {}  # where a variable is bound
    t.group += 1
    for triple in triples:
        alias = t.fresh()
        table, at = _table(t, triple)
        tables.append(f"{table} AS {alias}")
        for place, column in at.items():
            term = triple[place]
            here = f"{alias}.{column}"
            if not _is_open(term):
                conditions.append(f"{here} = {t.id(term)}")
                continue
            variable = variable_name(term)
            if variable in places:
                conditions.append(f"{places[variable]} = {here}")
            else:
                places[variable] = here
                columns[variable] = Column(t.name(variable))
    if not tables:
        return UNIT
    listed = [f"{places[v]} AS {column.name}" for v, column in columns.items()]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Relation(f"SELECT {select(listed)} FROM {', '.join(tables)}{where}", columns)


def variable_name(term: Variable | BlankNode) -> str:
    """The variable that a term of a pattern is; blank nodes are variables that nobody can name."""
    return f"_:{term.label}" if isinstance(term, BlankNode) else term.name


def _is_open(term: Any) -> bool:
    return isinstance(term, Variable | BlankNode)


def _table(t: Translation, triple: Triple) -> tuple[str, dict[int, str]]:
    subject, property_, object_ = triple
    if isinstance(property_, Node):
        ends = [None if _is_open(e) else t.id(e) for e in (subject, object_)]
        found = _path(t, property_, ends[0], ends[1])
        return f"({found})", {0: "s", 2: "o"}
    ids = [None if _is_open(term) else t.id(term) for term in triple]
    names = [variable_name(term) if _is_open(term) else None for term in triple]
    return _scan(t, ids[0], ids[1], ids[2], (names[0], names[1], names[2]))


def _scan(
    t: Translation,
    subject: int | None,
    property_: int | None,
    object_: int | None,
    variables: tuple[str | None, str | None, str | None] = (None, None, None),
) -> tuple[str, dict[int, str]]:
    scan = Scan(subject, property_, object_, variables, t.group if any(variables) else 0)
    if scan not in t.plan.scans:
        t.plan.scans.append(scan)
    table, columns = t.dialect.scan(scan, t.plan)
    return table, dict(columns)


def _path(t: Translation, path: Any, start: int | None, end: int | None) -> str:
    """A SELECT of the pairs (s, o) of a path; all of them unless an end is given."""
    if isinstance(path, IRI):
        table, columns = _scan(t, None, t.id(path), None)
        return f"SELECT {columns[0]} AS s, {columns[2]} AS o FROM {table} AS {t.fresh()}"
    match path.name:
        case "PathInverse":
            inner = _path(t, path.path, end, start)
            return f"SELECT o AS s, s AS o FROM ({inner}) AS {t.fresh()}"
        case "PathAlternative":
            return " UNION ALL ".join(
                f"SELECT s, o FROM ({_path(t, part, start, end)}) AS {t.fresh()}"
                for part in path.parts
            )
        case "PathSequence":
            return _sequence(t, path.parts, start, end)
        case "PathNegated":
            return _negated(t, path)
        case _:
            return _repeated(t, path, start, end)


def _sequence(t: Translation, parts: Sequence[Any], start: int | None, end: int | None) -> str:
    aliases = [t.fresh() for _ in parts]
    last = len(parts) - 1
    tables = ", ".join(
        f"({_path(t, part, start if n == 0 else None, end if n == last else None)}) AS {alias}"
        for n, (part, alias) in enumerate(zip(parts, aliases, strict=True))
    )
    conditions = [f"{a}.o = {b}.s" for a, b in pairwise(aliases)]
    # Said here as well, so that what follows begins at the constant and not everywhere.
    conditions += [f"{aliases[0]}.s = {start}"] if start is not None else []
    conditions += [f"{aliases[-1]}.o = {end}"] if end is not None else []
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {aliases[0]}.s AS s, {aliases[-1]}.o AS o FROM {tables}{where}"


def _negated(t: Translation, path: Node) -> str:
    table, columns = _scan(t, None, None, None)
    s, p, o = (columns[place] for place in range(3))
    parts = []
    if path.forward or not path.inverse:
        others = _none_of(t, p, path.forward)
        parts.append(f"SELECT {s} AS s, {o} AS o FROM {table} AS n WHERE {others}")
    if path.inverse:
        others = _none_of(t, p, path.inverse)
        parts.append(f"SELECT {o} AS s, {s} AS o FROM {table} AS n WHERE {others}")
    return " UNION ALL ".join(parts)


def _none_of(t: Translation, column: str, properties: Sequence[IRI]) -> str:
    listed = ", ".join(str(t.id(name)) for name in properties)
    return f"n.{column} NOT IN ({listed})" if listed else "TRUE"


def _repeated(t: Translation, path: Node, start: int | None, end: int | None) -> str:
    name = t.fresh("path")
    pairs = _path(t, path.path, None, None)
    backward = start is None and end is not None
    if path.mod == "?":
        some = f"SELECT s, o FROM ({pairs}) AS {t.fresh()}"
        if start is not None:
            some += f" WHERE s = {start}"
    elif backward:
        turned = f"SELECT o AS s, s AS o FROM ({pairs}) AS {t.fresh()}"
        closed = t.dialect.closure(t.plan, name, turned, f"SELECT {end}")
        some = f"SELECT o AS s, s AS o FROM ({closed}) AS {t.fresh()}"
    else:
        begin = None if start is None else f"SELECT {start}"
        some = t.dialect.closure(t.plan, name, pairs, begin)
    if path.mod == "+":
        return some
    return f"SELECT s, o FROM ({some}) AS {t.fresh()} UNION {_itself(t, start, end)}"


def _itself(t: Translation, start: int | None, end: int | None) -> str:
    """Each node with itself: a constant, or whatever stands in some triple."""
    nodes = [f"SELECT CAST({end_} AS BIGINT) AS s, CAST({end_} AS BIGINT) AS o"
             for end_ in dict.fromkeys((start, end)) if end_ is not None]  # fmt: skip
    if not nodes:
        table, columns = _scan(t, None, None, None)
        nodes = [
            f"SELECT {columns[place]} AS s, {columns[place]} AS o FROM {table} AS {t.fresh()}"
            for place in (0, 2)
        ]
    return " UNION ".join(nodes)
