"""Translates the SPARQL algebra to a single SQL query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import cast

from corollary.lang.syntax import BlankNode, Constant, Term, Variable
from corollary.query import relations
from corollary.query.conditions import (
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
from corollary.query.graphs import Dataset, graph, graph_hidden, start, without_graph
from corollary.query.parse import Parsed, too_deep, unsupported
from corollary.query.paths import basic_graph_pattern, variable_name
from corollary.query.plan import Column, Form, Plan, Relation
from corollary.query.relations import Terms, Translation, names, select, with_texts
from corollary.query.syntax.algebra import Expr, Node

_MAX_LIMIT = 2**31 - 1  # the largest LIMIT and OFFSET in Spark
_SERVICE = "federated queries are not supported"


def translate(
    parsed: Parsed,
    dialect: Dialect,
    dictionary: Terms,
    number: int = 0,
    *,
    dataset: Dataset | None = None,
    graphs: Callable[[], Sequence[int]] = tuple,
    has_unread: bool = False,
) -> Plan:
    """Translate a query to a plan; `number` is unique per database.

    `dataset` is that of a query without FROM; `graphs` returns the named graphs,
    and `has_unread` tells whether there may be graphs that rules do not read.
    """
    algebra = parsed.algebra
    form = cast(Form, algebra.name)
    plan = Plan(form, Clock(), number)
    t = Translation(plan, dialect, dictionary, parsed, graphs=graphs, has_unread=has_unread)
    if algebra.dataset is not None and not (dataset is not None and dataset.replaces):
        dataset = Dataset(*algebra.dataset)
    start(t, dataset or Dataset())
    try:
        return _plan(algebra, t)
    except RecursionError:
        raise too_deep() from None


def _plan(algebra: Node, t: Translation) -> Plan:
    plan = t.plan
    relation = _translate(algebra.p, t)
    match plan.form:
        case "CONSTRUCT":
            part = _template_term
            plan.template = tuple((part(s), part(p), part(o)) for s, p, o in algebra.template)
            names = [v for triple in plan.template for v in triple if isinstance(v, str)]
            plan.variables = tuple(dict.fromkeys(v for v in names if not v.startswith("_:")))
        case "DESCRIBE":
            plan.described = tuple(algebra.described)
            plan.variables = tuple(dict.fromkeys(algebra.variables))
        case "SELECT":
            plan.variables = tuple(algebra.variables)
    relation = _select_variables(t, relation, plan.variables)
    alias = t.fresh()
    listed = [f"{alias}.{relation.columns[v].name}" for v in plan.variables]
    plan.columns = tuple(relation.columns[v] for v in plan.variables)
    plan.body, plan.order = relation.sql, relation.order
    plan.sql = f"SELECT {select(listed)} FROM ({relation.sql}) AS {alias}"
    plan.sql += order_by(relation.order, alias) + (" LIMIT 1" if plan.form == "ASK" else "")
    return plan


def _template_term(node: Term) -> str | Constant:
    return variable_name(node) if isinstance(node, Variable | BlankNode) else node


# -- operators -------------------------------------------------------------------------------------


def _translate(node: Node, t: Translation) -> Relation:
    return _OPERATORS[node.name](node, t)


def _join_seed(t: Translation, relation: Relation) -> Relation:
    return relation if t.seed is None else relations.join(t, relation, t.seed)


def _join(node: Node, t: Translation) -> Relation:
    joined = _translate(node.parts[0], t)
    for part in node.parts[1:]:
        joined = relations.join(t, joined, _translate(part, t))
    return joined


def _minus(node: Node, t: Translation) -> Relation:
    one = _translate(node.p1, t)
    with t.seeded(None):
        two = without_graph(t, _translate(node.p2, t))
    return relations.minus(t, one, two)


def _left_join(node: Node, t: Translation) -> Relation:
    one, two = _translate(node.p1, t), _translate(node.p2, t)
    residual = []
    for part in _conjuncts(node.expr):
        # Push conditions on the optional part alone down to it; EXISTS sees both sides.
        if variables(part) <= two.columns.keys() and not patterns(part):
            two = _apply_filters(t, two, [part])
        else:
            residual.append(part)
    one, two = relations.align_kinds(t, one, two)
    needed = {v for part in residual for v in variables(part)}
    if any(patterns(part) for part in residual):
        return _left_join_by_union(t, one, two, residual)
    a, b = t.fresh(), t.fresh()
    (left, left_texts), (right, right_texts) = (
        with_texts(t, relation, needed, alias) for relation, alias in ((one, a), (two, b))
    )
    scope = Scope(_joined_columns(one, two, a, b), {**right_texts, **left_texts})
    on = " AND ".join(condition(t, part, scope) for part in residual) or "TRUE"
    return relations.left_join(t, replace(one, sql=left), replace(two, sql=right), on, a, b)


def _joined_columns(one: Relation, two: Relation, a: str, b: str) -> dict[str, tuple[str, Column]]:
    """The variables in scope for a joined pair of solutions, as SQL."""
    listed, columns = relations.merge_columns(one, two, a, b)
    return {
        variable: (sql.partition(" AS ")[0], column)
        for sql, (variable, column) in zip(listed, columns.items(), strict=True)
    }


def _left_join_by_union(
    t: Translation, one: Relation, two: Relation, conditions: Sequence[Expr]
) -> Relation:
    """A left join as inner join plus anti-join, for conditions that ON cannot express."""
    matched = _apply_filters(t, relations.join(t, one, two), conditions)
    a, b = t.fresh(), t.fresh()
    same = " AND ".join(
        f"{b}.{c.name} IS NOT DISTINCT FROM {a}.{c.name}" for c in one.columns.values()
    )
    # In the inner join, `two` may bind a variable that `one` leaves unbound.
    unmatched = Relation(
        f"SELECT {select(names(one, a))} FROM ({one.sql}) AS {a} WHERE NOT EXISTS"
        f" (SELECT 1 FROM ({matched.sql}) AS {b} WHERE {same or 'TRUE'})",
        one.columns,
    )
    return relations.union(t, matched, unmatched)


def _conjuncts(node: Expr | None) -> list[Expr]:
    if isinstance(node, Node) and node.name == "And":
        return [conjunct for part in node.args for conjunct in _conjuncts(part)]
    return [] if node is None else [node]


def _apply_filters(t: Translation, relation: Relation, conditions: Sequence[Expr]) -> Relation:
    if not conditions:
        return relation
    relation, alias, source, scope = _evaluation(t, relation, conditions)
    where = " AND ".join(condition(t, part, scope) for part in conditions)
    listed = select(names(relation, alias))
    return replace(relation, sql=f"SELECT {listed} FROM {source} WHERE {where}")


def _evaluation(
    t: Translation, relation: Relation, expressions: Sequence[Expr]
) -> tuple[Relation, str, str, Scope]:
    """The relation over which expressions are evaluated, its alias and FROM item, their scope."""
    if any(map(needs_row, expressions)):
        relation = _number_rows(t, relation)
    alias = t.fresh()
    needed = {v for expression in expressions for v in variables(expression)}
    sql, texts = with_texts(t, relation, needed, alias)
    columns = {v: (f"{alias}.{c.name}", c) for v, c in relation.columns.items()}
    row = f"{alias}.{relation.row}" if relation.row else None
    scope = Scope(columns, texts, lambda node: _exists(t, node, relation, alias), row)
    return relation, alias, f"({sql}) AS {alias}", scope


def _exists(t: Translation, node: Node, outer: Relation, alias: str) -> str:
    """EXISTS as a correlated subquery; outer variables that its filters need are joined in."""
    free = [v for v in _free_variables(node.pattern) if v in outer.columns]
    seed = None
    if free:
        a = t.fresh()
        listed = select(f"{a}.{outer.columns[v].name}" for v in free)
        sql = f"SELECT DISTINCT {listed} FROM ({outer.sql}) AS {a}"
        seed = Relation(sql, {v: outer.columns[v] for v in free})
    with t.seeded(seed):
        inner = _translate(node.pattern, t)
    texts = {v for v, c in outer.columns.items() if c.kind == "text"}
    inner = relations.as_texts(t, inner, texts)
    # The outer SELECT is fixed, so its ids are converted to texts inside the comparison.
    b = t.fresh()
    conditions = []
    for variable, column in inner.columns.items():
        outer_column = outer.columns.get(variable)
        if outer_column is None:
            continue
        left = f"{alias}.{outer_column.name}"
        if column.kind == "text" and outer_column.kind == "id":
            left = t.dialect.texts("", [outer_column.name], alias)[1][0]
        right = f"{b}.{column.name}"
        if variable in free:
            conditions.append(f"{left} IS NOT DISTINCT FROM {right}")
        else:
            conditions.append(relations.matches(left, right, outer_column, column))
    where = " AND ".join(conditions) or "TRUE"
    word = "NOT EXISTS" if node.negated else "EXISTS"
    return f"{word} (SELECT 1 FROM ({inner.sql}) AS {b} WHERE {where})"


def _free_variables(node: Node) -> list[str]:
    """Free variables: used by a filter, but not bound in every solution of its group."""
    free: dict[str, None] = {}

    def collect(part: Node) -> set[str]:
        """The variables bound in every solution; collects the free ones on the way."""
        match part.name:
            case "BGP":
                return {
                    term.name for row in part.triples for term in row if isinstance(term, Variable)
                }
            case "Filter" | "Extend" | "LeftJoin":
                inner = collect(part.p1 if part.name == "LeftJoin" else part.p)
                optional = collect(part.p2) if part.name == "LeftJoin" else set()
                used = variables(part.expr)
                for exists in patterns(part.expr):
                    used |= set(_free_variables(exists.pattern))
                free.update(dict.fromkeys(sorted(used - inner - optional)))
                return inner | ({part.variable} if part.name == "Extend" else set())
            case "Union":
                return set.intersection(*map(collect, part.parts))
            case "Minus":
                collect(part.p2)
                return collect(part.p1)
            case "Join":
                return set().union(*map(collect, part.parts))
            case "Graph":
                own = {part.term.name} if isinstance(part.term, Variable) else set()
                return collect(part.p) | own
            case _:  # VALUES may have UNDEF; a subquery has its own scope
                return set()

    collect(node)
    return list(free)


def extend(t: Translation, relation: Relation, variable: str, expression: Expr) -> Relation:
    """Bind the value of an expression to a variable of each solution."""
    relation, alias, source, scope = _evaluation_in_select(t, relation, expression)
    result, kind, nullable = value(t, expression, scope)
    columns = {v: c for v, c in relation.columns.items() if v != variable}
    selected = names(replace(relation, columns=columns), alias)
    column = Column(t.name(variable), kind, nullable)
    listed = select([*selected, f"{result} AS {column.name}"])
    columns[variable] = column
    return replace(relation, sql=f"SELECT {listed} FROM {source}", columns=columns)


def _evaluation_in_select(
    t: Translation, relation: Relation, expression: Expr
) -> tuple[Relation, str, str, Scope]:
    """As `_evaluation`, with EXISTS in columns, because SQL does not allow it everywhere."""
    relation, exists_columns = _materialize_exists(t, relation, patterns(expression))
    relation, alias, source, scope = _evaluation(t, relation, [expression])
    if exists_columns:
        scope = replace(scope, exists=lambda node: f"{alias}.{exists_columns[id(node)]}")
    return relation, alias, source, scope


def _materialize_exists(
    t: Translation, relation: Relation, nodes: Sequence[Node]
) -> tuple[Relation, dict[int, str]]:
    """Add a column per EXISTS; returns the columns by the identity of their nodes."""
    exists_columns: dict[int, str] = {}
    sql = relation.sql
    for node in nodes:
        alias, name = t.fresh(), t.fresh("e")
        test = _exists(t, node, relation, alias)
        listed = select(
            [*names(relation, alias), *(f"{alias}.{n}" for n in exists_columns.values())]
        )
        sql = " UNION ALL ".join(
            f"SELECT {listed}, {truth} AS {name} FROM ({sql}) AS {alias} WHERE {where}"
            for truth, where in (("TRUE", test), ("FALSE", f"NOT ({test})"))
        )
        exists_columns[id(node)] = name
    return replace(relation, sql=sql), exists_columns


def _number_rows(t: Translation, relation: Relation) -> Relation:
    if relation.row:
        return relation
    alias, row = t.fresh(), t.fresh("row")
    listed = select([*names(relation, alias), f"{t.dialect.row_number()} AS {row}"])
    return replace(relation, sql=f"SELECT {listed} FROM ({relation.sql}) AS {alias}", row=row)


def _group(node: Node, t: Translation) -> Relation:
    with t.seeded(None):
        relation = _translate(node.p, t)
        for name, key in node.keys:
            if not isinstance(key, Variable) or key.name != name:
                relation = extend(t, relation, name, key)
        arguments: dict[int, str] = {}
        for number, aggregate in enumerate(node.aggregates):
            argument = aggregate.arg
            if isinstance(argument, Variable):
                arguments[number] = argument.name
            elif argument is not None:
                arguments[number] = f"\0argument{number}"
                relation = extend(t, relation, arguments[number], argument)
    keys = [name for name, _ in node.keys]
    return relations.group(t, relation, keys, node.aggregates, arguments, implicit=node.implicit)


def _project(node: Node, t: Translation) -> Relation:
    with t.seeded(None):  # a subquery has its own scope
        relation = _translate(node.p, t)
    return _select_variables(t, relation, node.variables)


def _select_variables(t: Translation, relation: Relation, variables: Sequence[str]) -> Relation:
    alias = t.fresh()
    columns = {v: relation.columns.get(v, Column(t.name(v), "id", True)) for v in variables}
    listed = [
        f"{alias}.{c.name}" if v in relation.columns else f"{relations.NULLS['id']} AS {c.name}"
        for v, c in columns.items()
    ]
    listed += [f"{alias}.{name}" for name, _ in relation.order]
    sql = f"SELECT {select(listed)} FROM ({relation.sql}) AS {alias}"
    return Relation(sql, columns, relation.order)


def _distinct(node: Node, t: Translation) -> Relation:
    relation = _translate(node.p, t)
    alias = t.fresh()
    selected = [f"{alias}.{column.name}" for column in relation.columns.values()]
    if relation.order:  # equal solutions keep the first sort key
        sort_keys = [
            f"{'max' if descending else 'min'}({alias}.{name}) AS {name}"
            for name, descending in relation.order
        ]
        sql = f"SELECT {select([*selected, *sort_keys])} FROM ({relation.sql}) AS {alias}"
        sql += f" GROUP BY {', '.join(selected)}" if selected else ""
    else:
        sql = f"SELECT DISTINCT {select(selected)} FROM ({relation.sql}) AS {alias}"
    return replace(relation, sql=sql, row=None)


def _order_by(node: Node, t: Translation) -> Relation:
    relation = _translate(node.p, t)
    for expression, descending in node.keys:
        evaluated, alias, source, scope = _evaluation_in_select(t, relation, expression)
        name = t.fresh("key")
        key = call(t, expression, scope, "key")
        listed = select([*names(evaluated, alias), f"{key} AS {name}"])
        order = (*relation.order, (name, descending))
        relation = replace(evaluated, sql=f"SELECT {listed} FROM {source}", order=order)
    return relation


def order_by(order: Iterable[tuple[str, bool]], alias: str) -> str:
    """The ORDER BY clause; each key is a column and whether it is descending."""
    # Unbound sorts before everything else.
    keys = [
        f"{alias}.{name} {'DESC NULLS LAST' if descending else 'ASC NULLS FIRST'}"
        for name, descending in order
    ]
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def _slice(node: Node, t: Translation) -> Relation:
    relation = _translate(node.p, t)
    alias = t.fresh()
    sql = f"SELECT {select(names(relation, alias))} FROM ({relation.sql}) AS {alias}"
    sql += order_by(relation.order, alias)
    if node.limit is not None:
        sql += f" LIMIT {min(node.limit, _MAX_LIMIT)}"
    if node.offset:
        sql += f" OFFSET {min(node.offset, _MAX_LIMIT)}"
    return replace(relation, sql=sql)


def _subquery(node: Node, t: Translation) -> Relation:
    with graph_hidden(t):  # a variable that a subquery does not select is another one
        relation = _translate(node.p, t)
    return _join_seed(t, replace(relation, order=(), row=None))


def _refuse(word: str, reason: str) -> Callable[[Node, Translation], Relation]:
    def refuse(node: Node, t: Translation) -> Relation:
        raise unsupported(t.parsed, word, node.span, reason)

    return refuse


_OPERATORS: dict[str, Callable[[Node, Translation], Relation]] = {
    "BGP": lambda node, t: _join_seed(t, basic_graph_pattern(t, node.triples)),
    "Join": _join,
    "Union": lambda node, t: relations.union(t, *(_translate(part, t) for part in node.parts)),
    "Minus": _minus,
    "LeftJoin": _left_join,
    "Filter": lambda node, t: _apply_filters(t, _translate(node.p, t), _conjuncts(node.expr)),
    "Extend": lambda node, t: extend(t, _translate(node.p, t), node.variable, node.expr),
    "Group": _group,
    "Project": _project,
    "Distinct": _distinct,
    "Reduced": lambda node, t: _translate(node.p, t),  # duplicates may stay
    "OrderBy": _order_by,
    "Slice": _slice,
    "Subquery": _subquery,
    "Values": lambda node, t: _join_seed(t, relations.values(t, node.variables, node.rows)),
    "Graph": lambda node, t: graph(node, t, _translate),
    "Service": _refuse("SERVICE", _SERVICE),
}
