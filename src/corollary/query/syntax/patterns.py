"""Group graph patterns to algebra (section 18.2.2).

The `scope` of a pattern node has its in-scope variables (section 18.2.1); variables that occur only
in FILTER, EXISTS or MINUS are not in scope.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from corollary.lang.syntax import Constant, Variable
from corollary.query.syntax.algebra import Expr, Node, TriplePattern
from corollary.query.syntax.expressions import ExpressionParser
from corollary.query.syntax.tokens import Mistake, Token
from corollary.query.syntax.triples import Scope


class PatternParser(ExpressionParser):
    """Reads patterns."""

    @abstractmethod
    def subquery(self) -> Node:
        """A SELECT in braces."""

    def group(self) -> Node:
        """A group in braces."""
        self.enter()
        self.expect("{")
        saved = self._triples, self._scope, self._block, self._paths
        self._triples, self._scope, self._paths = [], {}, True
        self.new_block()
        pattern = self.subquery() if self.at("SELECT") else self._members()
        self._triples, self._scope, self._block, self._paths = saved
        self.expect("}")
        self.leave()
        return pattern

    def _members(self) -> Node:
        pattern = Group()
        while True:
            # A filter does not end a basic graph pattern; every other member does.
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
        """Read a member other than triples and filters; False at the end of the group."""
        if self.at("{"):
            parts = self.separated(self.group, "UNION")
            pattern.join(parts[0] if len(parts) == 1 else _union(parts))
        elif self.accept("OPTIONAL"):
            pattern.optional(self.group())
        elif self.accept("MINUS"):
            pattern.minus(self.group())
        elif self.accept("BIND"):
            self._bind(pattern)
        elif self.accept("VALUES"):
            pattern.join(self.values())
        elif word := self.accept("GRAPH", "SERVICE"):
            self._graph_or_service(pattern, word)
        elif self.at("}"):
            return False
        else:
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
            message = f"{token.text} is bound before this BIND"
            raise Mistake(message, token.span, "use another variable")
        pattern.extend(variable, expression)

    def _graph_or_service(self, pattern: Group, word: Token) -> None:
        if word.kind == "SERVICE":
            self.accept("SILENT")
        term = self.variable() if self.at("variable") else self.iri()
        inner = self.group()
        scope: Scope = {term.name: None} if isinstance(term, Variable) else {}
        found = scope | inner.scope
        pattern.join(Node(word.kind.title(), term=term, span=word.span, p=inner, scope=found))

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
            raise Mistake("VALUES names a variable twice", start.span)
        self.expect("{")
        rows: list[tuple[Constant | None, ...]] = []
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
                    "write UNDEF for an unbound variable",
                )
            self.expect(")")
            rows.append(tuple(row))
        self.expect("}")
        return Node("Values", variables=names, rows=rows, scope=dict.fromkeys(names))

    def _cell(self) -> Constant | None:
        if self.accept("UNDEF"):
            return None
        term = self.constant()
        if term is None:
            raise self.unexpected("an IRI, a literal or UNDEF")
        return term


class Group:
    """Builds the algebra of a group, member by member."""

    def __init__(self) -> None:
        self.triples: list[TriplePattern] = []  # of the current basic graph pattern
        self.filters: list[Expr] = []
        self.scope: Scope = {}
        self._parts: list[Node] = []  # joined so far

    def join(self, part: Node) -> None:
        """Join another pattern."""
        self._end_triples()
        self._parts.append(part)
        self.scope.update(part.scope)

    def optional(self, part: Node) -> None:
        """OPTIONAL: the filters of its group become the condition of a left join."""
        inner, condition = (part.p, part.expr) if part.name == "Filter" else (part, None)
        self._replace("LeftJoin", p2=inner, expr=condition)
        self.scope.update(part.scope)

    def minus(self, part: Node) -> None:
        """MINUS, which binds nothing."""
        self._replace("Minus", p2=part)

    def extend(self, variable: Variable, expression: Expr) -> None:
        """BIND."""
        left = self._joined()
        self.scope[variable.name] = None
        self._parts = [
            Node("Extend", p=left, variable=variable.name, expr=expression, scope=self.scope)
        ]

    def finish(self) -> Node:
        """The algebra of the group."""
        pattern = self._joined()
        if self.filters:
            conditions = self.filters
            expr = conditions[0] if len(conditions) == 1 else Node("And", args=conditions)
            return Node("Filter", p=pattern, expr=expr, scope=self.scope)
        # Wrap the filter of a nested group, or OPTIONAL would take it for its own condition.
        return (
            Node("Join", parts=[pattern], scope=self.scope) if pattern.name == "Filter" else pattern
        )

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
