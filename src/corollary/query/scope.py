"""Mistakes in queries that the grammar lets pass: about groups, and where variables are visible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rdflib
from pyparsing import ParseResults
from rdflib.plugins.sparql.parserutils import CompValue

_LISTS = (list, ParseResults)
_SELECTS = ("SelectQuery", "SubSelect")


class Mistake(Exception):
    """What is wrong, and the text that it is about."""

    def __init__(self, message: str, about: str) -> None:
        super().__init__(message)
        self.message, self.about = message, about


def check(tree: CompValue) -> None:
    """Raise a `Mistake` if there is one."""
    for node in _nodes(tree):
        if isinstance(node, CompValue):
            if node.name in _SELECTS:
                _check_select(node)
            elif node.name == "GroupGraphPatternSub":
                _check_binds(node)
            if node.name in ("InlineData", "ValuesClause"):
                _check_values(node)
        elif isinstance(node, str) and any("\ud800" <= c <= "\udfff" for c in node):
            raise Mistake("half of a surrogate pair is no character", "\\u")


def _check_select(node: CompValue) -> None:
    chosen = node.projection or []
    has_groups = node.groupby is not None
    aggregates = any(_aggregates(part.expr) for part in chosen if part.expr is not None)
    keys = _keys(node)
    if has_groups and not chosen:
        raise Mistake("SELECT * has no meaning with GROUP BY", "*")
    if has_groups or aggregates:
        for part in chosen:
            if part.var is not None and str(part.var) not in keys:
                _not_grouped(part.var)
            for variable in _outside_aggregates(part.expr):
                if str(variable) not in keys:
                    _not_grouped(variable)
            if part.evar is not None:
                keys.add(str(part.evar))
    seen: set[str] = set()
    visible = _visible(node.where)
    for part in chosen:
        if part.evar is None:
            continue
        if str(part.evar) in seen or str(part.evar) in visible:
            raise Mistake(f"?{part.evar} already has a meaning", f"?{part.evar}")
        seen.add(str(part.evar))


def _keys(node: CompValue) -> set[str]:
    if node.groupby is None:
        return set()
    found = set()
    for condition in node.groupby.condition:
        if isinstance(condition, CompValue) and condition.name == "GroupAs":
            variable = condition.var if condition.var is not None else _only(condition.expr)
        else:
            variable = _only(condition)
        if variable is not None:
            found.add(str(variable))
    return found


def _only(node: Any) -> rdflib.Variable | None:
    """The variable that an expression in brackets is."""
    while isinstance(node, CompValue) and set(node) == {"expr"}:
        node = node.expr
    return node if isinstance(node, rdflib.Variable) else None


def _not_grouped(variable: Any) -> None:
    raise Mistake(f"?{variable} has several values in a group", f"?{variable}")


def _check_binds(node: CompValue) -> None:
    visible: set[str] = set()
    for part in node.part or ():
        if part.name == "Bind" and str(part.var) in visible:
            raise Mistake(f"?{part.var} already has a meaning before BIND", f"?{part.var}")
        visible |= _visible(part)


def _check_values(node: CompValue) -> None:
    for row in node.value or ():
        # With one variable, rows need no brackets.
        number = len(row) if isinstance(row, _LISTS) else 1
        if number != len(node.var or ()):
            raise Mistake("VALUES has a row of another length", "VALUES")


def _visible(node: Any) -> set[str]:
    """The variables that a part of a pattern makes visible after it."""
    if isinstance(node, rdflib.Variable):
        return {str(node)}
    if isinstance(node, CompValue):
        if node.name in ("Filter", "MinusGraphPattern"):
            return set()
        if node.name == "Bind":
            return {str(node.var)}
        if node.name in ("InlineData", "ValuesClause"):
            return {str(variable) for variable in node.var or ()}
        if node.name in _SELECTS and node.projection:
            return {
                str(part.var if part.var is not None else part.evar) for part in node.projection
            }
        if node.name in _SELECTS:
            return _visible(node.where)
        return set().union(*(_visible(node[key]) for key in node))
    if isinstance(node, _LISTS):
        return set().union(*map(_visible, node))
    return set()


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    if isinstance(node, CompValue):
        for key in node:
            yield from _nodes(node[key])
    elif isinstance(node, _LISTS):
        for part in node:
            yield from _nodes(part)


def _aggregates(node: Any) -> bool:
    return any(isinstance(n, CompValue) and n.name.startswith("Aggregate_") for n in _nodes(node))


def _outside_aggregates(node: Any) -> Iterator[rdflib.Variable]:
    if isinstance(node, rdflib.Variable):
        yield node
    elif isinstance(node, CompValue):
        if not node.name.startswith("Aggregate_") and "EXISTS" not in node.name:
            for key in node:
                yield from _outside_aggregates(node[key])
    elif isinstance(node, _LISTS):
        for part in node:
            yield from _outside_aggregates(part)
