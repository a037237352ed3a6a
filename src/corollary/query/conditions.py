"""Expressions in SQL: their logic as SQL's own, what is left as functions of terms.

SQL's NULL is SPARQL's error: `AND`, `OR` and `NOT` treat the one exactly as `&&`, `||` and `!`
treat the other, and a filter keeps what is true. What compares terms by identity compares ids; all
other expressions are functions that the database calls with the terms of their variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import rdflib
from rdflib.plugins.sparql.parserutils import CompValue

from corollary.query.expressions import EXISTS, ROW, compiled
from corollary.query.plan import Call, Column, Kind, Wanted
from corollary.query.relations import NULLS, Translation
from corollary.query.terms import constant

Exists = Callable[[CompValue], str]  # the SQL of an EXISTS


@dataclass(frozen=True)
class Scope:
    """What an expression sees: variables as SQL, and how to ask for EXISTS."""

    columns: Mapping[str, tuple[str, Column]]
    texts: Mapping[str, str] = field(default_factory=dict)  # variables that were looked up
    exists: Exists | None = None
    row: str | None = None


def condition(t: Translation, node: Any, scope: Scope) -> str:
    """An expression as a condition."""
    if isinstance(node, CompValue):
        name = node.name
        if name in ("ConditionalOrExpression", "ConditionalAndExpression"):
            parts = [condition(t, part, scope) for part in (node.expr, *(node.other or ()))]
            return f"({(' OR ' if 'Or' in name else ' AND ').join(parts)})"
        if name == "UnaryNot":
            return f"(NOT {condition(t, node.expr, scope)})"
        if name == "TrueFilter":
            return "TRUE"
        if name == "Builtin_BOUND":
            found = scope.columns.get(str(node.arg))
            return "FALSE" if found is None else f"({found[0]} IS NOT NULL)"
        if name in EXISTS:
            assert scope.exists is not None, "conditions say how to ask"
            return scope.exists(node)
        native = _identity(t, node, scope)
        if native is not None:
            return native
    return call(t, node, scope, "condition")


def _identity(t: Translation, node: CompValue, scope: Scope) -> str | None:
    """A comparison that ids decide: of a variable with IRIs, or by sameTerm."""
    if node.name == "RelationalExpression":
        wanted = node.other if isinstance(node.other, list) else [node.other]
        left: Any = node.expr
        if node.op in ("=", "!=") and isinstance(left, rdflib.URIRef):
            left, wanted = wanted[0], [left]
        if node.op not in ("=", "!=", "IN", "NOT IN") or not wanted:
            return None
        if not all(isinstance(term, rdflib.URIRef) for term in wanted):
            return None
        negated = node.op in ("!=", "NOT IN")
    elif node.name == "Builtin_sameTerm":
        left, other = node.arg1, node.arg2
        if isinstance(other, rdflib.Variable):
            one, two = _column(left, scope), _column(other, scope)
            return f"({one} = {two})" if one and two else None
        wanted, negated = [other], False
        if not isinstance(other, rdflib.URIRef | rdflib.Literal):
            return None
    else:
        return None
    found = _column(left, scope)
    if found is None:
        return None
    listed = ", ".join(str(t.id(constant(term))) for term in wanted)
    return f"({found} {'NOT IN' if negated else 'IN'} ({listed}))"


def _column(node: Any, scope: Scope) -> str | None:
    """The column of a variable that is held by ids."""
    found = scope.columns.get(str(node)) if isinstance(node, rdflib.Variable) else None
    return found[0] if found is not None and found[1].kind == "id" else None


def value(t: Translation, node: Any, scope: Scope) -> tuple[str, Kind, bool]:
    """An expression as a term: SQL, how it holds it, and whether it may have none."""
    if isinstance(node, rdflib.Variable):
        found = scope.columns.get(str(node))
        if found is None:
            return NULLS["id"], "id", True
        return found[0], found[1].kind, found[1].nullable
    if isinstance(node, rdflib.URIRef | rdflib.Literal):
        return f"CAST({t.id(constant(node))} AS BIGINT)", "id", False
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
    if isinstance(key, CompValue):
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
    return {str(v) for v in _leaves(node) if isinstance(v, rdflib.Variable)}


def patterns(node: Any) -> list[CompValue]:
    """The EXISTS patterns of an expression."""
    return [v for v in _leaves(node) if isinstance(v, CompValue) and v.name in EXISTS]


def needs_row(node: Any) -> bool:
    """Whether an expression tells solutions apart, or differs from one to the next."""
    apart = ("Builtin_BNODE", "Builtin_RAND", "Builtin_UUID", "Builtin_STRUUID")
    return any(isinstance(v, CompValue) and v.name in apart for v in _nodes(node))


def _leaves(node: Any) -> Iterable[Any]:
    return (v for v in _nodes(node) if not isinstance(v, CompValue) or v.name in EXISTS)


def _nodes(node: Any) -> Iterable[Any]:
    if isinstance(node, CompValue):
        yield node
        if node.name not in EXISTS:
            for key in node:
                if key != "_vars":
                    yield from _nodes(node[key])
    elif isinstance(node, list | tuple | set):
        for part in node:
            yield from _nodes(part)
    else:
        yield node
