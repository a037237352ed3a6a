"""A parsed query to one SQL text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from corollary.lang.syntax import BlankNode, Variable
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
from corollary.query.parse import Parsed, too_deep, unsupported
from corollary.query.paths import pattern, variable_name
from corollary.query.plan import Column, Form, Plan, Relation
from corollary.query.relations import Translation, names, select
from corollary.query.syntax.algebra import Node
from corollary.query.terms import Terms

_MOST = 2**31 - 1  # what LIMIT and OFFSET may be in Spark
_ONE_GRAPH = "there are no named graphs: all triples are one graph"


def translate(parsed: Parsed, dialect: Dialect, dictionary: Terms, number: int = 0) -> Plan:
    """The plan of a query; plans of one database have different numbers."""
    algebra = parsed.algebra
    form = cast(Form, algebra.name)
    plan = Plan(form, Clock(), number)
    t = Translation(plan, dialect, dictionary, parsed.base)
    if algebra.dataset is not None:
        raise unsupported(parsed, "FROM", algebra.dataset, _ONE_GRAPH)
    try:
        return _planned(algebra, t)
    except _Unsupported as error:
        raise unsupported(parsed, error.word, error.span, error.reason) from None
    except RecursionError:
        raise too_deep() from None


def _planned(algebra: Node, t: Translation) -> Plan:
    plan = t.plan
    found = _translated(algebra.p, t)
    match plan.form:
        case "CONSTRUCT":
            plan.template = tuple(tuple(map(_template_term, row)) for row in algebra.template)
            wanted = [v for triple in plan.template for v in triple if isinstance(v, str)]
            plan.variables = tuple(dict.fromkeys(v for v in wanted if not v.startswith("_:")))
        case "DESCRIBE":
            plan.described = tuple(algebra.described)
            plan.variables = tuple(dict.fromkeys(algebra.variables))
        case "SELECT":
            plan.variables = tuple(algebra.variables)
    found = _projected(t, found, plan.variables)
    alias = t.fresh()
    listed = [f"{alias}.{found.columns[v].name}" for v in plan.variables]
    plan.columns = tuple(found.columns[v] for v in plan.variables)
    plan.body, plan.order = found.sql, found.order
    sql = f"SELECT {select(listed)} FROM ({found.sql}) AS {alias}{order_by(found.order, alias)}"
    plan.sql = f"{sql} LIMIT 1" if plan.form == "ASK" else sql
    return plan


class _Unsupported(Exception):
    def __init__(self, word: str, span: tuple[int, int], reason: str) -> None:
        super().__init__(word)
        self.word, self.span, self.reason = word, span, reason


def _template_term(node: Any) -> Any:
    return variable_name(node) if isinstance(node, Variable | BlankNode) else node


# -- operators -------------------------------------------------------------------------------------


def _translated(node: Node, t: Translation) -> Relation:
    return _OPERATORS[node.name](node, t)


def _bgp(node: Node, t: Translation) -> Relation:
    return _seeded(t, pattern(t, node.triples))


def _seeded(t: Translation, found: Relation) -> Relation:
    return found if t.seed is None else relations.join(t, found, t.seed)


def _join(node: Node, t: Translation) -> Relation:
    found = _translated(node.parts[0], t)
    for part in node.parts[1:]:
        found = relations.join(t, found, _translated(part, t))
    return found


def _union(node: Node, t: Translation) -> Relation:
    return relations.union(t, *(_translated(part, t) for part in node.parts))


def _minus(node: Node, t: Translation) -> Relation:
    one = _translated(node.p1, t)
    seed, t.seed = t.seed, None
    two = _translated(node.p2, t)
    t.seed = seed
    return relations.minus(t, one, two)


def _left_join(node: Node, t: Translation) -> Relation:
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
    if isinstance(node, Node) and node.name == "And":
        return [conjunct for part in node.args for conjunct in _conjuncts(part)]
    return [] if node is None else [node]


def _filter(node: Node, t: Translation) -> Relation:
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


def _exists(t: Translation, node: Node, outer: Relation, alias: str) -> str:
    """EXISTS, with what its filters ask of the solutions outside."""
    free = [v for v in _free(node.pattern) if v in outer.columns]
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
    inner = _translated(node.pattern, t)
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
    word = "NOT EXISTS" if node.negated else "EXISTS"
    return f"{word} (SELECT 1 FROM ({inner.sql}) AS {b} WHERE {where})"


def _free(node: Any) -> list[str]:
    """The variables of filters in a pattern that their group does not always bind."""
    found: dict[str, None] = {}

    def bound(part: Node) -> set[str]:
        """The variables that a pattern binds in every solution; notes those that are free."""
        match part.name:
            case "BGP":
                return {
                    term.name for row in part.triples for term in row if isinstance(term, Variable)
                }
            case "Filter" | "Extend" | "LeftJoin":
                inner = bound(part.p1 if part.name == "LeftJoin" else part.p)
                optional = bound(part.p2) if part.name == "LeftJoin" else set()
                asked = variables(part.expr)
                for one in patterns(part.expr):
                    asked |= set(_free(one.pattern))
                found.update(dict.fromkeys(sorted(asked - inner - optional)))
                return inner | ({part.variable} if part.name == "Extend" else set())
            case "Union":
                return set.intersection(*map(bound, part.parts))
            case "Minus":
                bound(part.p2)
                return bound(part.p1)
            case "Join":
                return set().union(*map(bound, part.parts))
            case _:  # VALUES may have UNDEF; a subquery sees nothing from outside
                return set()

    bound(node)
    return list(found)


def _extend(node: Node, t: Translation) -> Relation:
    return extended(t, _translated(node.p, t), node.variable, node.expr)


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
    t: Translation, relation: Relation, asked: Sequence[Node]
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


def _group(node: Node, t: Translation) -> Relation:
    seed, t.seed = t.seed, None
    found = _translated(node.p, t)
    for name, key in node.keys:
        if not isinstance(key, Variable) or key.name != name:
            found = extended(t, found, name, key)
    arguments: dict[int, str] = {}
    for number, aggregate in enumerate(node.aggregates):
        argument = aggregate.arg
        if isinstance(argument, Variable):
            arguments[number] = argument.name
        elif argument is not None:
            arguments[number] = f"\0argument{number}"
            found = extended(t, found, arguments[number], argument)
    keys = [name for name, _ in node.keys]
    done = grouped(t, found, keys, node.aggregates, arguments, implicit=node.implicit)
    t.seed = seed
    return done


def _project(node: Node, t: Translation) -> Relation:
    seed, t.seed = t.seed, None  # a query of its own
    found = _translated(node.p, t)
    t.seed = seed
    return _projected(t, found, node.variables)


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


def _distinct(node: Node, t: Translation) -> Relation:
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


def _reduced(node: Node, t: Translation) -> Relation:
    return _translated(node.p, t)  # duplicates may stay


def _order(node: Node, t: Translation) -> Relation:
    found = _translated(node.p, t)
    order: list[tuple[str, bool]] = []
    for expression, descending in node.keys:
        relation, known = _decided(t, found, patterns(expression))
        alias, name = t.fresh(), t.fresh("key")
        sql, texts = _looked_up(t, relation, variables(expression), alias)
        scope = _scope(t, relation, alias, texts)
        if known:
            scope = replace(scope, exists=_known(known, alias))
        key = call(t, expression, scope, "key")
        listed = select([*names(found, alias), f"{key} AS {name}"])
        order.append((name, descending))
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


def _slice(node: Node, t: Translation) -> Relation:
    found = _translated(node.p, t)
    alias = t.fresh()
    sql = f"SELECT {select(names(found, alias))} FROM ({found.sql}) AS {alias}"
    sql += order_by(found.order, alias)
    if node.limit is not None:
        sql += f" LIMIT {min(node.limit, _MOST)}"
    if node.offset:
        sql += f" OFFSET {min(node.offset, _MOST)}"
    return replace(found, sql=sql)


def _subquery(node: Node, t: Translation) -> Relation:
    return _seeded(t, replace(_translated(node.p, t), order=(), row=None))


def _values(node: Node, t: Translation) -> Relation:
    return _seeded(t, relations.values(t, node.variables, node.rows))


def _named_graph(node: Node, t: Translation) -> Relation:
    raise _Unsupported("GRAPH", node.span, _ONE_GRAPH)


def _service(node: Node, t: Translation) -> Relation:
    raise _Unsupported("SERVICE", node.span, "other endpoints are not queried")


_OPERATORS = {
    "BGP": _bgp,
    "Join": _join,
    "Union": _union,
    "Minus": _minus,
    "LeftJoin": _left_join,
    "Filter": _filter,
    "Extend": _extend,
    "Group": _group,
    "Project": _project,
    "Distinct": _distinct,
    "Reduced": _reduced,
    "OrderBy": _order,
    "Slice": _slice,
    "Subquery": _subquery,
    "Values": _values,
    "Graph": _named_graph,
    "Service": _service,
}
