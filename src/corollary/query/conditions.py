"""Expressions in SQL: their logic as SQL's own, what is left as functions of terms.

SQL's NULL is SPARQL's error: `AND`, `OR` and `NOT` treat the one exactly as `&&`, `||` and `!`
treat the other, and a filter keeps what is true. What compares terms by identity compares ids; all
other expressions are functions that the database calls with the terms of their variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from corollary.lang.syntax import IRI, Literal, Variable
from corollary.query.expressions import ROW, compiled
from corollary.query.plan import Call, Column, Kind, Wanted
from corollary.query.relations import NULLS, Translation
from corollary.query.syntax.algebra import Node, walk

Exists = Callable[[Node], str]  # the SQL of an EXISTS
# Each call is a function that the database has to know; longer chains are evaluated by one.
_MOST_CALLS = 8


@dataclass(frozen=True)
class Scope:
    """What an expression sees: variables as SQL, and how to ask for EXISTS."""

    columns: Mapping[str, tuple[str, Column]]
    texts: Mapping[str, str] = field(default_factory=dict)  # variables that were looked up
    exists: Exists | None = None
    row: str | None = None


def condition(t: Translation, node: Any, scope: Scope) -> str:
    """An expression as a condition."""
    if isinstance(node, Node):
        match node.name:
            case "Or" | "And":
                return _logical(t, node, scope)
            case "Not":
                return f"(NOT {condition(t, node.arg, scope)})"
            case "Bound":
                found = scope.columns.get(node.variable.name)
                return "FALSE" if found is None else f"({found[0]} IS NOT NULL)"
            case "Exists":
                assert scope.exists is not None, "conditions say how to ask"
                return scope.exists(node)
        native = _identity(t, node, scope)
        if native is not None:
            return native
    return call(t, node, scope, "condition")


def _logical(t: Translation, node: Node, scope: Scope) -> str:
    """A chain of `||` or `&&`."""
    args = merge_comparisons(node)
    parts: list[str] = []
    if len(args) > _MOST_CALLS:
        called: list[Any] = []
        for arg in args:
            native = _native(t, arg, scope)
            if native is None:
                called.append(arg)
            else:
                parts.append(native)
        args = called if len(called) < 2 else [Node(node.name, args=called)]
        parts += [call(t, arg, scope, "condition") for arg in args]
    else:
        parts = [condition(t, arg, scope) for arg in args]
    return f"({(' OR ' if node.name == 'Or' else ' AND ').join(parts)})"


def _native(t: Translation, node: Any, scope: Scope) -> str | None:
    """The SQL of a condition that is decided without a function, None if there is none."""
    if not isinstance(node, Node):
        return None
    if node.name in ("Bound", "Exists") or patterns(node):
        return condition(t, node, scope)
    return _identity(t, node, scope)


def merge_comparisons(node: Node) -> list[Any]:
    """The operands of a chain, with many comparisons of a variable with constants as one IN.

    `?x = 1 || ?x = 2 || …` is `?x IN (1, 2, …)`, and `?x != 1 && ?x != 2 && …` is `NOT IN`.
    """
    sign = "=" if node.name == "Or" else "!="
    constants: dict[str, list[Any]] = {}
    others: list[Any] = []
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
        if len(listed) > _MOST_CALLS:
            options = [term for term, _ in listed]
            negated = node.name == "And"
            others.append(Node("In", left=Variable(name), options=options, negated=negated))
        else:
            others += [arg for _, arg in listed]
    return others


def _identity(t: Translation, node: Node, scope: Scope) -> str | None:
    """A comparison that ids decide: of a variable with IRIs, or by sameTerm."""
    wanted: list[Any]
    if node.name == "Compare" and node.op in ("=", "!="):
        left, wanted, negated = node.left, [node.right], node.op == "!="
        if isinstance(left, IRI):
            left, wanted = node.right, [left]
    elif node.name == "In" and node.options:
        left, wanted, negated = node.left, node.options, node.negated
    elif node.name == "Call" and node.function == "SAMETERM":
        left, other = node.args
        if isinstance(other, Variable):
            one, two = _column(left, scope), _column(other, scope)
            return f"({one} = {two})" if one and two else None
        found = _column(left, scope)
        if found is None or not isinstance(other, IRI | Literal):
            return None
        return f"({found} = {t.id(other)})"
    else:
        return None
    found = _column(left, scope)
    if found is None or not all(isinstance(term, IRI) for term in wanted):
        return None
    listed = ", ".join(str(t.id(term)) for term in wanted)
    return f"({found} {'NOT IN' if negated else 'IN'} ({listed}))"


def _column(node: Any, scope: Scope) -> str | None:
    """The column of a variable that is held by ids."""
    found = scope.columns.get(node.name) if isinstance(node, Variable) else None
    return found[0] if found is not None and found[1].kind == "id" else None


def value(t: Translation, node: Any, scope: Scope) -> tuple[str, Kind, bool]:
    """An expression as a term: SQL, how it holds it, and whether it may have none."""
    if isinstance(node, Variable):
        found = scope.columns.get(node.name)
        if found is None:
            return NULLS["id"], "id", True
        return found[0], found[1].kind, found[1].nullable
    if isinstance(node, IRI | Literal):
        return f"CAST({t.id(node)} AS BIGINT)", "id", False
    return call(t, node, scope, "value"), "text", True


def call(t: Translation, node: Any, scope: Scope, wanted: Wanted) -> str:
    """An expression as a call of a function of its own."""
    expression = compiled(node, t.plan.clock, t.base)
    arguments: list[str] = []
    kinds: list[Kind] = []
    for key in expression.inputs:
        sql, kind = _input(key, scope)
        arguments.append(sql)
        kinds.append(kind)
    if not arguments:  # a database evaluates functions of nothing once for all rows
        arguments, kinds = ([scope.row or "0"], ["row"])
    name = t.function()
    t.plan.calls.append(Call(name, wanted, expression, tuple(kinds)))
    return f"{name}({', '.join(arguments)})"


def _input(key: Any, scope: Scope) -> tuple[str, Kind]:
    if isinstance(key, Node):
        assert scope.exists is not None, "conditions say how to ask"
        return scope.exists(key), "bool"
    if key == ROW:
        assert scope.row is not None, "rows are numbered where an expression asks"
        return f"CAST({scope.row} AS BIGINT)", "row"
    if key in scope.texts:
        return scope.texts[key], "text"
    found = scope.columns.get(key)
    return (NULLS["id"], "id") if found is None else (found[0], found[1].kind)


# -- what an expression asks for --------------------------------------------------------------


def variables(node: Any) -> set[str]:
    """The variables of an expression outside EXISTS."""
    return {part.name for part in walk(node) if isinstance(part, Variable)}


def patterns(node: Any) -> list[Node]:
    """The EXISTS patterns of an expression."""
    return [part for part in walk(node) if isinstance(part, Node) and part.name == "Exists"]


def needs_row(node: Any) -> bool:
    """Whether an expression tells solutions apart, or differs from one to the next."""
    return any(
        isinstance(part, Node) and part.name == "Call" and part.function in _BY_ROW
        for part in walk(node)
    )


_BY_ROW = ("BNODE", "RAND", "UUID", "STRUUID")
