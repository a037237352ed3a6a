"""A parsed query to one SQL text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import rdflib
from rdflib.plugins.sparql.parserutils import CompValue

from corollary.query import relations
from corollary.query.conditions import (
    Exists,
    Scope,
    call,
    condition,
    needs_row,
    patterns,
    value,
    variables,
)
from corollary.query.dialect import Dialect
from corollary.query.expressions import Clock
from corollary.query.groups import grouped
from corollary.query.parse import Parsed, exists_pattern, unsupported
from corollary.query.paths import pattern, variable_name
from corollary.query.plan import Column, Form, Plan, Relation
from corollary.query.relations import UNIT, Translation, names, select
from corollary.query.terms import Terms, constant

_MOST = 2**31 - 1  # what LIMIT and OFFSET may be in Spark


def translate(parsed: Parsed, dialect: Dialect, dictionary: Terms, number: int = 0) -> Plan:
    """The plan of a query; plans of one database have different numbers."""
    algebra = parsed.algebra
    form = cast(Form, algebra.name.removesuffix("Query").upper())
    plan = Plan(form, Clock(), number)
    t = Translation(plan, dialect, dictionary, parsed.base)
    if algebra.datasetClause:
        raise unsupported(parsed, "FROM", "there are no named graphs: all triples are one graph")
    try:
        found = _translated(algebra.p, t) if algebra.p is not None else UNIT
    except _Unsupported as error:
        raise unsupported(parsed, error.word, error.reason) from None
    if form == "CONSTRUCT":
        plan.template = _template(algebra)
        wanted = [v for triple in plan.template for v in triple if isinstance(v, str)]
        plan.variables = tuple(dict.fromkeys(v for v in wanted if not v.startswith("_:")))
    elif form == "DESCRIBE":
        asked = list(algebra.PV or ())
        plan.described = tuple(constant(n) for n in asked if not isinstance(n, rdflib.Variable))
        plan.variables = tuple(str(n) for n in asked if isinstance(n, rdflib.Variable))
    elif form == "SELECT":
        plan.variables = tuple(map(str, algebra.PV))
    found = _projected(t, found, plan.variables)
    alias = t.fresh()
    listed = [f"{alias}.{found.columns[v].name}" for v in plan.variables]
    plan.columns = tuple(found.columns[v] for v in plan.variables)
    plan.body, plan.order = found.sql, found.order
    sql = f"SELECT {select(listed)} FROM ({found.sql}) AS {alias}{order_by(found.order, alias)}"
    plan.sql = f"{sql} LIMIT 1" if form == "ASK" else sql
    return plan


class _Unsupported(Exception):
    def __init__(self, word: str, reason: str) -> None:
        super().__init__(word)
        self.word, self.reason = word, reason


def _template(algebra: CompValue) -> tuple[Any, ...]:
    triples = algebra.template
    if triples is None:  # CONSTRUCT WHERE: the pattern is the template
        triples = [triple for node in _basic(algebra.p) for triple in node.triples]
    return tuple(tuple(map(_template_term, triple)) for triple in triples)


def _template_term(node: Any) -> Any:
    if isinstance(node, rdflib.Variable | rdflib.BNode):
        return variable_name(node)
    return constant(node)


def _basic(node: Any) -> Iterable[CompValue]:
    if isinstance(node, CompValue):
        if node.name == "BGP":
            yield node
        for key in ("p", "p1", "p2"):
            if key in node:
                yield from _basic(node[key])


# -- operators -------------------------------------------------------------------------------------


def _translated(node: CompValue, t: Translation) -> Relation:
    return _OPERATORS[node.name](node, t) if node.name in _OPERATORS else _unknown(node, t)


def _unknown(node: CompValue, t: Translation) -> Relation:
    raise _Unsupported(node.name, f"there is no translation of {node.name}")


def _bgp(node: CompValue, t: Translation) -> Relation:
    return _seeded(t, pattern(t, node.triples or ()))


def _seeded(t: Translation, found: Relation) -> Relation:
    return found if t.seed is None else relations.join(t, found, t.seed)


def _join(node: CompValue, t: Translation) -> Relation:
    return relations.join(t, _translated(node.p1, t), _translated(node.p2, t))


def _union(node: CompValue, t: Translation) -> Relation:
    return relations.union(t, _translated(node.p1, t), _translated(node.p2, t))


def _minus(node: CompValue, t: Translation) -> Relation:
    one = _translated(node.p1, t)
    seed, t.seed = t.seed, None
    two = _translated(node.p2, t)
    t.seed = seed
    return relations.minus(t, one, two)


def _left_join(node: CompValue, t: Translation) -> Relation:
    one, two = _translated(node.p1, t), _translated(node.p2, t)
    kept = []
    for part in _conjuncts(node.expr):
        # What speaks of the optional part alone is a filter of it; EXISTS sees both.
        if variables(part) <= two.columns.keys() and not patterns(part):
            two = _filtered(t, two, [part])
        else:
            kept.append(part)
    one, two = relations.agreed(t, one, two)
    asked = {v for part in kept for v in variables(part)}
    if any(patterns(part) for part in kept):
        return _left_join_apart(t, one, two, kept)
    a, b = t.fresh(), t.fresh()
    (left, left_texts), (right, right_texts) = (
        _looked_up(t, relation, asked, alias) for relation, alias in ((one, a), (two, b))
    )
    scope = Scope(_both(one, two, a, b), right_texts | left_texts)
    on = " AND ".join(condition(t, part, scope) for part in kept) or "TRUE"
    return relations.left_join(t, replace(one, sql=left), replace(two, sql=right), on, a, b)


def _both(one: Relation, two: Relation, a: str, b: str) -> dict[str, tuple[str, Column]]:
    """The variables of a pair of solutions."""
    listed, columns = relations.merged(one, two, a, b)
    return {
        variable: (sql.partition(" AS ")[0], column)
        for sql, (variable, column) in zip(listed, columns.items(), strict=True)
    }


def _left_join_apart(
    t: Translation, one: Relation, two: Relation, conditions: Sequence[Any]
) -> Relation:
    """The same for conditions that a join cannot have: what joins, and what does not."""
    found = _filtered(t, relations.join(t, one, two), conditions)
    a, b = t.fresh(), t.fresh()
    same = " AND ".join(
        f"{b}.{c.name} IS NOT DISTINCT FROM {a}.{c.name}" for c in one.columns.values()
    )
    # A variable of the first that may be unbound is bound by the second in what joins.
    alone = Relation(
        f"SELECT {select(names(one, a))} FROM ({one.sql}) AS {a} WHERE NOT EXISTS"
        f" (SELECT 1 FROM ({found.sql}) AS {b} WHERE {same or 'TRUE'})",
        one.columns,
    )
    return relations.union(t, found, alone)


def _conjuncts(node: Any) -> list[Any]:
    if isinstance(node, CompValue) and node.name == "ConditionalAndExpression":
        return [c for part in (node.expr, *(node.other or ())) for c in _conjuncts(part)]
    return [] if isinstance(node, CompValue) and node.name == "TrueFilter" else [node]


def _filter(node: CompValue, t: Translation) -> Relation:
    return _filtered(t, _translated(node.p, t), _conjuncts(node.expr))


def _filtered(t: Translation, relation: Relation, conditions: Sequence[Any]) -> Relation:
    if not conditions:
        return relation
    if any(needs_row(part) for part in conditions):
        relation = _numbered(t, relation)
    alias = t.fresh()
    asked = {v for part in conditions for v in variables(part)}
    sql, texts = _looked_up(t, relation, asked, alias)
    scope = _scope(t, relation, alias, texts)
    where = " AND ".join(condition(t, part, scope) for part in conditions)
    listed = select(names(relation, alias))
    return replace(relation, sql=f"SELECT {listed} FROM ({sql}) AS {alias} WHERE {where}")


def _scope(t: Translation, relation: Relation, alias: str, texts: dict[str, str]) -> Scope:
    columns = {v: (f"{alias}.{c.name}", c) for v, c in relation.columns.items()}
    row = f"{alias}.{relation.row}" if relation.row else None
    return Scope(columns, texts, lambda node: _exists(t, node, relation, alias), row)


def _looked_up(
    t: Translation, relation: Relation, asked: Iterable[str], alias: str
) -> tuple[str, dict[str, str]]:
    """The SELECT of a relation with the texts that functions take, where they take no ids."""
    if t.dialect.sees_ids:
        return relation.sql, {}
    ids = [v for v, c in relation.columns.items() if v in asked and c.kind == "id"]
    sql, texts = t.dialect.texts(relation.sql, [relation.columns[v].name for v in ids])
    return sql, {v: f"{alias}.{s.partition('.')[2]}" for v, s in zip(ids, texts, strict=True)}


def _exists(t: Translation, node: CompValue, outer: Relation, alias: str) -> str:
    """EXISTS, with what its filters ask of the solutions outside."""
    free = [v for v in _free(exists_pattern(node)) if v in outer.columns]
    before = t.seed
    if free:
        a = t.fresh()
        listed = select(f"{a}.{outer.columns[v].name}" for v in free)
        t.seed = Relation(
            f"SELECT DISTINCT {listed} FROM ({outer.sql}) AS {a}",
            {v: outer.columns[v] for v in free},
        )
    else:
        t.seed = None
    inner = _translated(exists_pattern(node), t)
    t.seed = before
    texts = {v for v, c in outer.columns.items() if c.kind == "text"}
    inner = relations.as_texts(t, inner, texts)
    # Outside, ids cannot be made texts any more; inside, they are compared as what they are.
    b = t.fresh()
    conditions = []
    for variable, column in inner.columns.items():
        known = outer.columns.get(variable)
        if known is None:
            continue
        left = f"{alias}.{known.name}"
        if column.kind == "text" and known.kind == "id":
            left = t.dialect.texts("", [known.name])[1][0].replace("r.", f"{alias}.")
        right = f"{b}.{column.name}"
        if variable in free:
            conditions.append(f"{left} IS NOT DISTINCT FROM {right}")
            continue
        unbound = [f"{left} IS NULL"] if known.nullable else []
        unbound += [f"{right} IS NULL"] if column.nullable else []
        conditions.append(f"({' OR '.join([f'{left} = {right}', *unbound])})")
    where = " AND ".join(conditions) or "TRUE"
    word = "NOT EXISTS" if node.name == "Builtin_NOTEXISTS" else "EXISTS"
    return f"{word} (SELECT 1 FROM ({inner.sql}) AS {b} WHERE {where})"


def _free(node: Any) -> list[str]:
    """The variables of filters in a pattern that their group does not always bind."""
    found: dict[str, None] = {}

    def bound(part: Any) -> set[str]:
        """The variables that a pattern binds in every solution; notes those that are free."""
        if not isinstance(part, CompValue):
            return set()
        if part.name == "BGP":
            return {str(x) for triple in part.triples for x in triple
                    if isinstance(x, rdflib.Variable)}  # fmt: skip
        if part.name in ("Filter", "Extend", "LeftJoin"):
            inner = bound(part.p) if "p" in part else bound(part.p1)
            optional = bound(part.p2) if part.name == "LeftJoin" else set()
            asked = variables(part.expr)
            for one in patterns(part.expr):
                asked |= set(_free(exists_pattern(one)))
            found.update(dict.fromkeys(sorted(asked - inner - optional)))
            return inner | ({str(part.var)} if part.name == "Extend" else set())
        if part.name == "Union":
            return bound(part.p1) & bound(part.p2)
        if part.name == "Minus":
            bound(part.p2)
            return bound(part.p1)
        if part.name in ("Project", "AggregateJoin", "Group"):
            return set()  # a query of its own, which sees nothing from outside
        return set().union(*(bound(part[key]) for key in ("p", "p1", "p2") if key in part))

    bound(node)
    return list(found)


def _extend(node: CompValue, t: Translation) -> Relation:
    return extended(t, _translated(node.p, t), str(node.var), node.expr)


def extended(t: Translation, relation: Relation, variable: str, node: Any) -> Relation:
    """The solutions with the value of an expression as one more variable."""
    if needs_row(node):
        relation = _numbered(t, relation)
    relation, known = _decided(t, relation, patterns(node))
    alias = t.fresh()
    sql, texts = _looked_up(t, relation, variables(node), alias)
    scope = _scope(t, relation, alias, texts)
    if known:
        scope = replace(scope, exists=_known(known, alias))
    found, kind, nullable = value(t, node, scope)
    columns = {v: c for v, c in relation.columns.items() if v != variable}
    kept = names(replace(relation, columns=columns), alias)
    column = Column(t.name(variable), kind, nullable)
    listed = select([*kept, f"{found} AS {column.name}"])
    columns[variable] = column
    return replace(relation, sql=f"SELECT {listed} FROM ({sql}) AS {alias}", columns=columns)


def _decided(
    t: Translation, relation: Relation, asked: Sequence[CompValue]
) -> tuple[Relation, dict[int, str]]:
    """The solutions with a column for each EXISTS, as not every place of a SELECT may have one."""
    known: dict[int, str] = {}
    sql = relation.sql
    for node in asked:
        alias, name = t.fresh(), t.fresh("e")
        test = _exists(t, node, relation, alias)
        listed = select([*names(relation, alias), *(f"{alias}.{n}" for n in known.values())])
        sql = " UNION ALL ".join(
            f"SELECT {listed}, {truth} AS {name} FROM ({sql}) AS {alias} WHERE {test_}"
            for truth, test_ in (("TRUE", test), ("FALSE", f"NOT ({test})"))
        )
        known[id(node)] = name
    return replace(relation, sql=sql), known


def _known(columns: Mapping[int, str], alias: str) -> Exists:
    return lambda node: f"{alias}.{columns[id(node)]}"


def _numbered(t: Translation, relation: Relation) -> Relation:
    if relation.row:
        return relation
    alias, row = t.fresh(), t.fresh("row")
    listed = select([*names(relation, alias), f"{t.dialect.row_number()} AS {row}"])
    return replace(relation, sql=f"SELECT {listed} FROM ({relation.sql}) AS {alias}", row=row)


def _group(node: CompValue, t: Translation) -> Relation:
    inner = node.p
    seed, t.seed = t.seed, None
    found = _translated(inner.p, t)
    keys: list[str] = []
    for number, key in enumerate(inner.expr or ()):
        if isinstance(key, rdflib.Variable):
            keys.append(str(key))
        else:
            keys.append(f"\0key{number}")
            found = extended(t, found, keys[-1], key)
    arguments: dict[int, str] = {}
    for number, aggregate in enumerate(node.A):
        if aggregate.vars != "*":
            arguments[number] = str(aggregate.vars)
            if not isinstance(aggregate.vars, rdflib.Variable):
                arguments[number] = f"\0argument{number}"
                found = extended(t, found, arguments[number], aggregate.vars)
    done = grouped(t, found, keys, node.A, arguments, implicit=inner.expr is None)
    t.seed = seed
    return done


def _project(node: CompValue, t: Translation) -> Relation:
    seed, t.seed = t.seed, None  # a query of its own
    found = _translated(node.p, t)
    t.seed = seed
    listed = [str(v) for v in node.PV if isinstance(v, rdflib.Variable)]
    return _projected(t, found, listed)


def _projected(t: Translation, relation: Relation, wanted: Sequence[str]) -> Relation:
    alias = t.fresh()
    columns = {v: relation.columns.get(v, Column(t.name(v), "id", True)) for v in wanted}
    listed = [
        f"{alias}.{c.name}" if v in relation.columns else f"{relations.NULLS['id']} AS {c.name}"
        for v, c in columns.items()
    ]
    listed += [f"{alias}.{name}" for name, _ in relation.order]
    sql = f"SELECT {select(listed)} FROM ({relation.sql}) AS {alias}"
    return Relation(sql, columns, relation.order)


def _distinct(node: CompValue, t: Translation) -> Relation:
    found = _translated(node.p, t)
    alias = t.fresh()
    kept = [f"{alias}.{column.name}" for column in found.columns.values()]
    if found.order:  # of equal solutions, the first counts
        ends = [
            f"{'max' if down else 'min'}({alias}.{name}) AS {name}" for name, down in found.order
        ]
        sql = f"SELECT {select([*kept, *ends])} FROM ({found.sql}) AS {alias}"
        sql += f" GROUP BY {', '.join(kept)}" if kept else ""
    else:
        sql = f"SELECT DISTINCT {select(kept)} FROM ({found.sql}) AS {alias}"
    return replace(found, sql=sql, row=None)


def _reduced(node: CompValue, t: Translation) -> Relation:
    return _translated(node.p, t)  # duplicates may stay


def _order(node: CompValue, t: Translation) -> Relation:
    found = _translated(node.p, t)
    order: list[tuple[str, bool]] = []
    for part in node.expr:
        relation, known = _decided(t, found, patterns(part.expr))
        alias, name = t.fresh(), t.fresh("key")
        sql, texts = _looked_up(t, relation, variables(part.expr), alias)
        scope = _scope(t, relation, alias, texts)
        if known:
            scope = replace(scope, exists=_known(known, alias))
        key = call(t, part.expr, scope, "key")
        listed = select([*names(found, alias), f"{key} AS {name}"])
        order.append((name, part.order == "DESC"))
        found = replace(
            found, sql=f"SELECT {listed} FROM ({sql}) AS {alias}", order=(*found.order, order[-1])
        )
    return found


def order_by(order: Iterable[tuple[str, bool]], alias: str) -> str:
    """The ORDER BY of columns, each with whether it goes downward."""
    # What is unbound comes first, upward.
    keys = [
        f"{alias}.{name} {'DESC NULLS LAST' if down else 'ASC NULLS FIRST'}" for name, down in order
    ]
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def _slice(node: CompValue, t: Translation) -> Relation:
    found = _translated(node.p, t)
    alias = t.fresh()
    sql = f"SELECT {select(names(found, alias))} FROM ({found.sql}) AS {alias}"
    sql += order_by(found.order, alias)
    if node.length is not None:
        sql += f" LIMIT {min(int(node.length), _MOST)}"
    if node.start:
        sql += f" OFFSET {min(int(node.start), _MOST)}"
    return replace(found, sql=sql)


def _multiset(node: CompValue, t: Translation) -> Relation:
    found = _translated(node.p, t)
    if node.p.name == "values":
        return _seeded(t, found)
    return _seeded(t, replace(found, order=(), row=None))


def _values(node: CompValue, t: Translation) -> Relation:
    rows = [
        {str(v): constant(term) for v, term in row.items() if isinstance(term, rdflib.term.Node)}
        for row in node.res  # what is UNDEF is no term
    ]
    return relations.values(t, rows)


def _named_graph(node: CompValue, t: Translation) -> Relation:
    raise _Unsupported("GRAPH", "there are no named graphs: all triples are one graph")


def _service(node: CompValue, t: Translation) -> Relation:
    raise _Unsupported("SERVICE", "other endpoints are not asked")


_OPERATORS = {
    "BGP": _bgp,
    "Join": _join,
    "Union": _union,
    "Minus": _minus,
    "LeftJoin": _left_join,
    "Filter": _filter,
    "Extend": _extend,
    "AggregateJoin": _group,
    "Project": _project,
    "Distinct": _distinct,
    "Reduced": _reduced,
    "OrderBy": _order,
    "Slice": _slice,
    "ToMultiSet": _multiset,
    "values": _values,
    "Graph": _named_graph,
    "ServiceGraphPattern": _service,
}
