"""Basic graph patterns and property paths in SQL.

Sequences, alternatives and inverses are joins, unions and transposed columns and keep duplicates;
`?`, `*` and `+` return each pair once. A closure with a constant end is searched from there;
otherwise all its pairs are computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from corollary.lang.syntax import IRI, BlankNode, Literal, Term, Variable
from corollary.query.graphs import bound_graph, is_union, no_triples, table
from corollary.query.plan import Column, Relation, Scan
from corollary.query.relations import Translation, select
from corollary.query.syntax.algebra import Node, Path, TriplePattern

_MANY_PROPERTIES = 32  # alternatives that are not read one by one


def basic_graph_pattern(t: Translation, triples: Sequence[TriplePattern]) -> Relation:
    """Translate a basic graph pattern to one SELECT; the database chooses the join order."""
    tables: list[str] = []
    conditions: list[str] = []
    columns: dict[str, Column] = {}
    places: dict[str, str] = {}  # the column that binds a variable
    t.group += 1
    for triple in triples:
        alias = t.fresh()
        table, positions = _table(t, triple)
        tables.append(f"{table} AS {alias}")
        for place, column in positions.items():
            term = triple[place] if place < 3 else Variable(t.active.variable)
            qualified = f"{alias}.{column}"
            if not isinstance(term, Variable | BlankNode):
                conditions.append(f"{qualified} = {_constant(t, term)}")
                continue
            variable = variable_name(term)
            if variable in places:
                conditions.append(f"{places[variable]} = {qualified}")
            else:
                places[variable] = qualified
                columns[variable] = Column(t.name(variable))
    if not tables:
        return no_triples(t)
    bound = bound_graph(t)
    if bound is not None:
        variable, named = bound
        if variable in places:
            conditions.append(f"{places[variable]} = {named}")
        else:
            places[variable] = f"CAST({named} AS BIGINT)"
            columns[variable] = Column(t.name(variable))
    listed = [f"{places[v]} AS {column.name}" for v, column in columns.items()]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Relation(f"SELECT {select(listed)} FROM {', '.join(tables)}{where}", columns)


def variable_name(term: Variable | BlankNode) -> str:
    """The name of a variable or blank node; blank nodes act as hidden variables."""
    return f"_:{term.label}" if isinstance(term, BlankNode) else term.name


def _constant(t: Translation, term: Term | Path) -> int | None:
    """The id of a constant; None for anything else."""
    return t.id(term) if isinstance(term, IRI | Literal) else None


def _table(t: Translation, triple: TriplePattern) -> tuple[str, Mapping[int, str]]:
    subject, property_, object_ = (_constant(t, term) for term in triple)
    if isinstance(triple[1], Node):
        return f"({_path(t, triple[1], subject, object_)})", {0: "s", 2: "o"}
    s, p, o = (variable_name(v) if isinstance(v, Variable | BlankNode) else None for v in triple)
    return _scan(t, (subject, property_, object_), (s, p, o))


def _scan(
    t: Translation,
    ids: tuple[int | None, int | None, int | None] = (None, None, None),
    variables: tuple[str | None, str | None, str | None] = (None, None, None),
) -> tuple[str, Mapping[int, str]]:
    if not is_union(t.active):
        return table(t, ids)
    scan = Scan(*ids, variables, t.group if any(variables) else 0)
    if scan not in t.plan.scans:
        t.plan.scans.append(scan)
    return t.dialect.scan(scan, t.plan)


def _path(t: Translation, path: Path, start: int | None, end: int | None) -> str:
    """A SELECT of the pairs (s, o) of a path, restricted to constant ends where possible."""
    if isinstance(path, IRI):
        table, columns = _scan(t, (None, t.id(path), None))
        return f"SELECT {columns[0]} AS s, {columns[2]} AS o FROM {table} AS {t.fresh()}"
    match path.name:
        case "PathInverse":
            inner = _path(t, path.path, end, start)
            return f"SELECT o AS s, s AS o FROM ({inner}) AS {t.fresh()}"
        case "PathAlternative":
            return _alternative(t, path.args, start, end)
        case "PathSequence":
            return _sequence(t, path.args, start, end)
        case "PathNegated":
            return _negated(t, path)
        case _:
            return _repeated(t, path, start, end)


def _alternative(t: Translation, parts: Sequence[Path], start: int | None, end: int | None) -> str:
    """Unite the alternatives; many properties are read from the table of all triples at once."""
    properties = {part: t.id(part) for part in parts if isinstance(part, IRI)}
    known = [property_ for property_ in properties.values() if property_ >= 0]
    lacking = {part for part, property_ in properties.items() if property_ < 0}
    parts = [part for part in parts if part not in lacking] or parts[:1]
    selects = []
    if t.dialect.has_all_triples and len(known) > _MANY_PROPERTIES:
        table, columns = _scan(t)
        s, p, o = (columns[place] for place in range(3))
        listed = ", ".join(map(str, known))
        selects = [f"SELECT {s} AS s, {o} AS o FROM {table} AS n WHERE n.{p} IN ({listed})"]
        parts = _without_first(parts, properties)
    selects += [f"SELECT s, o FROM ({_path(t, part, start, end)}) AS {t.fresh()}" for part in parts]
    return " UNION ALL ".join(selects)


def _without_first(parts: Sequence[Path], properties: Collection[IRI]) -> list[Path]:
    """The parts without the first occurrence of each property; each further one counts again."""
    left, kept = {*properties}, []
    for part in parts:
        if part in left:
            left.discard(part)
        else:
            kept.append(part)
    return kept


def _sequence(t: Translation, parts: Sequence[Path], start: int | None, end: int | None) -> str:
    aliases = [t.fresh() for _ in parts]
    last = len(parts) - 1
    tables = ", ".join(
        f"({_path(t, part, start if n == 0 else None, end if n == last else None)}) AS {alias}"
        for n, (part, alias) in enumerate(zip(parts, aliases, strict=True))
    )
    conditions = [f"{a}.o = {b}.s" for a, b in pairwise(aliases)]
    # Pushed down, so that the joins start from the constant.
    conditions += [f"{aliases[0]}.s = {start}"] if start is not None else []
    conditions += [f"{aliases[-1]}.o = {end}"] if end is not None else []
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {aliases[0]}.s AS s, {aliases[-1]}.o AS o FROM {tables}{where}"


def _negated(t: Translation, path: Node) -> str:
    table, columns = _scan(t)
    s, p, o = (columns[place] for place in range(3))
    parts = []
    if path.forward or not path.inverse:
        others = _not_in(t, p, path.forward)
        parts.append(f"SELECT {s} AS s, {o} AS o FROM {table} AS n WHERE {others}")
    if path.inverse:
        others = _not_in(t, p, path.inverse)
        parts.append(f"SELECT {o} AS s, {s} AS o FROM {table} AS n WHERE {others}")
    return " UNION ALL ".join(parts)


def _not_in(t: Translation, column: str, properties: Sequence[IRI]) -> str:
    listed = ", ".join(str(t.id(name)) for name in properties)
    return f"n.{column} NOT IN ({listed})" if listed else "TRUE"


def _repeated(t: Translation, path: Node, start: int | None, end: int | None) -> str:
    name = t.fresh("path")
    pairs = _path(t, path.path, None, None)
    backward = start is None and end is not None
    if path.mod == "?":
        closure = f"SELECT s, o FROM ({pairs}) AS {t.fresh()}"
        if start is not None:
            closure += f" WHERE s = {start}"
    elif backward:
        transposed = f"SELECT o AS s, s AS o FROM ({pairs}) AS {t.fresh()}"
        reached = t.dialect.closure(t.plan, name, transposed, f"SELECT {end}")
        closure = f"SELECT o AS s, s AS o FROM ({reached}) AS {t.fresh()}"
    else:
        start_nodes = None if start is None else f"SELECT {start}"
        closure = t.dialect.closure(t.plan, name, pairs, start_nodes)
    if path.mod == "+":
        return closure
    return f"SELECT s, o FROM ({closure}) AS {t.fresh()} UNION {_zero_length(t, start, end)}"


def _zero_length(t: Translation, start: int | None, end: int | None) -> str:
    """Zero-length paths: each constant end, or else every subject and object, with itself."""
    nodes = [f"SELECT CAST({end_} AS BIGINT) AS s, CAST({end_} AS BIGINT) AS o"
             for end_ in dict.fromkeys((start, end)) if end_ is not None]  # fmt: skip
    if not nodes:
        table, columns = _scan(t)
        nodes = [
            f"SELECT {columns[place]} AS s, {columns[place]} AS o FROM {table} AS {t.fresh()}"
            for place in (0, 2)
        ]
    return " UNION ".join(nodes)
