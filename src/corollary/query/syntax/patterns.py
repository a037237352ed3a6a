"""Group graph patterns to algebra (section 18.2.2).

A node of a pattern has the variables that are in scope after it as its `scope` (section 18.2.1);
what occurs only in FILTER, EXISTS or MINUS is not among them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from corollary.lang.syntax import Variable
from corollary.query.syntax.algebra import Node
from corollary.query.syntax.expressions import ExpressionParser
from corollary.query.syntax.tokens import Mistake
from corollary.query.syntax.triples import Scope


class PatternParser(ExpressionParser):
    """Reads patterns."""

    @abstractmethod
    def subquery(self) -> Node:
        """A SELECT in braces."""
        ...

    def group(self) -> Node:
        """A group in braces."""
        self.enter()
        self.expect("{")
        saved = self._triples, self._scope, self._block, self._paths
        self._triples, self._scope, self._paths = [], {}, True
        self.new_block()
        found = self.subquery() if self.at("SELECT") else self._members()
        self._triples, self._scope, self._block, self._paths = saved
        self.expect("}")
        self.leave()
        return found

    def _members(self) -> Node:
        pattern = Group()
        while True:
            # Filters do not end a basic graph pattern, anything else does.
            self._triples = pattern.triples
            self._scope = pattern.scope
            self.triples("}")
            if self.accept("FILTER"):
                pattern.filters.append(self.constraint())
            elif not self._member(pattern):
                return pattern.finish()
            else:
                self.new_block()
            self.accept(".")

    def _member(self, pattern: Group) -> bool:
        """Read what is neither triples nor a filter, if there is such a thing."""
        word = self.token
        match word.kind:
            case "{":
                parts = [self.group()]
                while self.accept("UNION"):
                    parts.append(self.group())
                pattern.join(parts[0] if len(parts) == 1 else _union(parts))
            case "OPTIONAL":
                self.advance()
                pattern.optional(self.group())
            case "MINUS":
                self.advance()
                pattern.minus(self.group())
            case "BIND":
                self.advance()
                self._bind(pattern)
            case "VALUES":
                self.advance()
                pattern.join(self.values())
            case "GRAPH" | "SERVICE":
                self.advance()
                self._elsewhere(pattern, word.kind, (word.start, word.end))
            case "}":
                return False
            case _:
                raise self.unexpected("a pattern or }")
        return True

    def _bind(self, pattern: Group) -> None:
        self.expect("(")
        expression = self.expression()
        self.expect("AS")
        token = self.token
        variable = self.variable()
        self.expect(")")
        if variable.name in pattern.scope:
            raise Mistake(
                f"{token.text} is bound before this BIND",
                (token.start, token.end),
                "use another variable",
            )
        pattern.extend(variable, expression)

    def _elsewhere(self, pattern: Group, word: str, span: tuple[int, int]) -> None:
        if word == "SERVICE":
            self.accept("SILENT")
        term = self.variable() if self.at("variable") else self.iri()
        inner = self.group()
        scope: Scope = {term.name: None} if isinstance(term, Variable) else {}
        pattern.join(Node(word.title(), span=span, p=inner, scope=scope | inner.scope))

    def values(self) -> Node:
        """The block after VALUES."""
        start = self.token
        if self.at("variable"):
            names, brackets = [self.variable().name], False
        else:
            self.expect("(")
            names, brackets = [], True
            while self.at("variable"):
                names.append(self.variable().name)
            self.expect(")")
        if len(set(names)) < len(names):
            raise Mistake("VALUES names a variable twice", (start.start, start.end))
        self.expect("{")
        rows: list[tuple[Any, ...]] = []
        while not self.at("}"):
            first = self.token
            if not brackets:
                rows.append((self._cell(),))
                continue
            self.expect("(")
            row = []
            while not self.at(")"):
                row.append(self._cell())
            if len(row) != len(names):
                raise Mistake(
                    f"a row of VALUES has {len(row)} terms for {len(names)} variables",
                    (first.start, self.token.end),
                    "UNDEF stands for no value",
                )
            self.expect(")")
            rows.append(tuple(row))
        self.expect("}")
        return Node("Values", variables=names, rows=rows, scope=dict.fromkeys(names))

    def _cell(self) -> Any:
        if self.accept("UNDEF"):
            return None
        found = self.constant()
        if found is None:
            raise self.unexpected("an IRI, a literal or UNDEF")
        return found


class Group:
    """The members of a group, combined as they come."""

    def __init__(self) -> None:
        self.triples: list[tuple[Any, Any, Any]] = []  # of the current basic graph pattern
        self.filters: list[Any] = []
        self.scope: Scope = {}
        self._parts: list[Node] = []  # that are joined

    def join(self, part: Node) -> None:
        """Join another pattern."""
        self._end_triples()
        self._parts.append(part)
        self.scope.update(part.scope)

    def optional(self, part: Node) -> None:
        """OPTIONAL: the filters of its group are the condition of the join."""
        inner, condition = (part.p, part.expr) if part.name == "Filter" else (part, None)
        self._replace("LeftJoin", p2=inner, expr=condition)
        self.scope.update(part.scope)

    def minus(self, part: Node) -> None:
        """MINUS, which binds nothing."""
        self._replace("Minus", p2=part)

    def extend(self, variable: Variable, expression: Any) -> None:
        """BIND."""
        left = self._joined()
        self.scope[variable.name] = None
        self._parts = [
            Node("Extend", p=left, variable=variable.name, expr=expression, scope=self.scope)
        ]

    def finish(self) -> Node:
        """The algebra of the group."""
        found = self._joined()
        if self.filters:
            conditions = self.filters
            expr = conditions[0] if len(conditions) == 1 else Node("And", args=conditions)
            return Node("Filter", p=found, expr=expr, scope=self.scope)
        # The filters of a group within this one are not filters of this one, which OPTIONAL
        # would take for its condition.
        return Node("Join", parts=[found], scope=self.scope) if found.name == "Filter" else found

    def _replace(self, name: str, **parts: Any) -> None:
        self._parts = [Node(name, p1=self._joined(), scope=self.scope, **parts)]

    def _end_triples(self) -> None:
        if self.triples:
            self._parts.append(Node("BGP", triples=self.triples, scope=self.scope))
            self.triples = []

    def _joined(self) -> Node:
        self._end_triples()
        if not self._parts:
            return Node("BGP", triples=[], scope=self.scope)
        if len(self._parts) == 1:
            return self._parts[0]
        return Node("Join", parts=self._parts, scope=self.scope)


def _union(parts: list[Node]) -> Node:
    scope: Scope = {}
    for part in parts:
        scope.update(part.scope)
    return Node("Union", parts=parts, scope=scope)
