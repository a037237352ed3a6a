"""SPARQL expressions in SQL: logical operators natively, the rest as user-defined functions.

SQL's NULL stands for SPARQL's error: `AND`, `OR` and `NOT` treat NULL exactly as `&&`, `||` and `!`
treat an error, and a filter keeps what is true. Comparisons by term identity compare ids; every
other expression becomes a function that the database calls with the terms of its variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from corollary.lang.syntax import IRI, Literal, Variable
from corollary.query.expressions import ROW, compile_expression
from corollary.query.plan import Call, Column, Kind, ResultKind
from corollary.query.relations import NULLS, Translation
from corollary.query.syntax.algebra import Expr, Node, walk

Exists = Callable[[Node], str]  # translates an EXISTS to SQL
# Each call registers a function with the database; a longer chain becomes a single function.
_MAX_CALLS = 8


@dataclass(frozen=True)
class Scope:
    """The scope of an expression: its variables and EXISTS patterns as SQL."""

    columns: Mapping[str, tuple[str, Column]]
    texts: Mapping[str, str] = field(default_factory=dict)  # variables whose texts are joined in
    exists: Exists | None = None
    row: str | None = None


def condition(t: Translation, node: Expr, scope: Scope) -> str:
    """Translate an expression to an SQL condition."""
    if isinstance(node, Node):
        match node.name:
            case "Or" | "And":
                return _logical(t, node, scope)
            case "Not":
                return f"(NOT {condition(t, node.arg, scope)})"
            case "Bound":
                column = scope.columns.get(node.variable.name)
                return "FALSE" if column is None else f"({column[0]} IS NOT NULL)"
            case "Exists":
                assert scope.exists is not None, "the scope translates EXISTS"
                return scope.exists(node)
        native = _identity(t, node, scope)
        if native is not None:
            return native
    return call(t, node, scope, "condition")


def _logical(t: Translation, node: Node, scope: Scope) -> str:
    """Translate a chain of `||` or `&&`."""
    args = merge_comparisons(node)
    parts: list[str] = []
    if len(args) > _MAX_CALLS:
        remaining: list[Expr] = []
        for arg in args:
            native = _native(t, arg, scope)
            if native is None:
                remaining.append(arg)
            else:
                parts.append(native)
        args = remaining if len(remaining) < 2 else [Node(node.name, args=remaining)]
        parts += [call(t, arg, scope, "condition") for arg in args]
    else:
        parts = [condition(t, arg, scope) for arg in args]
    return f"({(' OR ' if node.name == 'Or' else ' AND ').join(parts)})"


def _native(t: Translation, node: Expr, scope: Scope) -> str | None:
    """The SQL of a condition that needs no user-defined function; None if it needs one."""
    if not isinstance(node, Node):
        return None
    if node.name in ("Bound", "Exists") or patterns(node):
        return condition(t, node, scope)
    return _identity(t, node, scope)


def merge_comparisons(node: Node) -> list[Expr]:
    """The operands of a chain, with long runs of `?x = constant` merged into one IN.

    `?x = 1 || ?x = 2 || …` is `?x IN (1, 2, …)`, and `?x != 1 && ?x != 2 && …` is `NOT IN`.
    """
    sign = "=" if node.name == "Or" else "!="
    constants: dict[str, list[tuple[IRI | Literal, Node]]] = {}
    others: list[Expr] = []
    for arg in node.args:
        if isinstance(arg, Node) and arg.name == "Compare" and arg.op == sign:
            left, right = arg.left, arg.right
            if isinstance(right, Variable):
                left, right = right, left
            if isinstance(left, Variable) and isinstance(right, IRI | Literal):
                constants.setdefault(left.name, []).append((right, arg))
                continue
        others.append(arg)
    for name, listed in constants.items():
        if len(listed) > _MAX_CALLS:
            options = [term for term, _ in listed]
            negated = node.name == "And"
            others.append(Node("In", left=Variable(name), options=options, negated=negated))
        else:
            others += [arg for _, arg in listed]
    return others


def _identity(t: Translation, node: Node, scope: Scope) -> str | None:
    """A comparison decided by ids: of a variable with IRIs, or by sameTerm; else None."""
    terms: list[Expr]
    if node.name == "Compare" and node.op in ("=", "!="):
        left, terms, negated = node.left, [node.right], node.op == "!="
        if isinstance(left, IRI):
            left, terms = node.right, [left]
    elif node.name == "In" and node.options:
        left, terms, negated = node.left, node.options, node.negated
    elif node.name == "Call" and node.function == "SAMETERM":
        left, other = node.args
        if isinstance(other, Variable):
            one, two = _column(left, scope), _column(other, scope)
            return f"({one} = {two})" if one and two else None
        column = _column(left, scope)
        if column is None or not isinstance(other, IRI | Literal):
            return None
        return f"({column} = {t.id(other)})"
    else:
        return None
    column = _column(left, scope)
    iris = [term for term in terms if isinstance(term, IRI)]
    if column is None or len(iris) < len(terms):
        return None
    listed = ", ".join(str(t.id(iri)) for iri in iris)
    return f"({column} {'NOT IN' if negated else 'IN'} ({listed}))"


def _column(node: Expr, scope: Scope) -> str | None:
    """The column of a variable that is stored as ids."""
    column = scope.columns.get(node.name) if isinstance(node, Variable) else None
    return column[0] if column is not None and column[1].kind == "id" else None


def value(t: Translation, node: Expr, scope: Scope) -> tuple[str, Kind, bool]:
    """Translate an expression to a term: its SQL, its kind, and whether it may be NULL."""
    if isinstance(node, Variable):
        column = scope.columns.get(node.name)
        if column is None:
            return NULLS["id"], "id", True
        return column[0], column[1].kind, column[1].nullable
    if isinstance(node, IRI | Literal):
        return f"CAST({t.id(node)} AS BIGINT)", "id", False
    return call(t, node, scope, "value"), "text", True


def call(t: Translation, node: Expr, scope: Scope, result: ResultKind) -> str:
    """Translate an expression to a call of its own user-defined function."""
    expression = compile_expression(node, t.plan.clock, t.parsed.base)
    arguments: list[str] = []
    kinds: list[Kind] = []
    for key in expression.inputs:
        sql, kind = _input(key, scope)
        arguments.append(sql)
        kinds.append(kind)
    if not arguments:  # databases constant-fold functions without arguments
        arguments, kinds = ([scope.row or "0"], ["row"])
    name = t.function()
    t.plan.calls.append(Call(name, result, expression, tuple(kinds)))
    return f"{name}({', '.join(arguments)})"


def _input(key: str | Node, scope: Scope) -> tuple[str, Kind]:
    if isinstance(key, Node):
        assert scope.exists is not None, "the scope translates EXISTS"
        return scope.exists(key), "bool"
    if key == ROW:
        assert scope.row is not None, "the relation is numbered for such expressions"
        return f"CAST({scope.row} AS BIGINT)", "row"
    if key in scope.texts:
        return scope.texts[key], "text"
    column = scope.columns.get(key)
    return (NULLS["id"], "id") if column is None else (column[0], column[1].kind)


# -- inputs of an expression --------------------------------------------------------------


def variables(node: Expr) -> set[str]:
    """The variables of an expression outside EXISTS."""
    return {part.name for part in walk(node) if isinstance(part, Variable)}


def patterns(node: Expr) -> list[Node]:
    """The EXISTS patterns of an expression."""
    return [part for part in walk(node) if isinstance(part, Node) and part.name == "Exists"]


def needs_row(node: Expr) -> bool:
    """Whether the value of an expression differs from solution to solution."""
    return any(
        isinstance(part, Node) and part.name == "Call" and part.function in _BY_ROW
        for part in walk(node)
    )


_BY_ROW = ("BNODE", "RAND", "UUID", "STRUUID")
