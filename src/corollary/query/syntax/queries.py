"""Query forms and solution modifiers to algebra (section 18.2.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from corollary.lang.syntax import IRI, Variable
from corollary.query.syntax.algebra import Expr, Node, TriplePattern, operands, walk
from corollary.query.syntax.patterns import PatternParser
from corollary.query.syntax.tokens import Mistake, Token
from corollary.query.syntax.triples import Scope

_FORMS = ("SELECT", "CONSTRUCT", "DESCRIBE", "ASK")
_UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")


class _Item(NamedTuple):
    """An item of SELECT: a variable, optionally with its expression."""

    token: Token
    name: str
    expression: Expr | None = None


class _Key(NamedTuple):
    """A key of GROUP BY; an expression without a name cannot be referred to."""

    token: Token
    name: str | None
    expression: Expr


class QueryParser(PatternParser):
    """Reads queries."""

    def query(self) -> Node:
        """The whole text: a node named by the form of the query.

        Its parts are `p`, `variables` (SELECT, DESCRIBE), `template` (CONSTRUCT), `described`
        (DESCRIBE) and `dataset`, the graphs of FROM and FROM NAMED if present.
        """
        self.prologue()
        word = self.token
        if word.kind in _UPDATES:
            raise Mistake(
                "this is an update, not a query",
                word.span,
                "use kb.update, or corollary update --sparql",
                "E568",
            )
        if word.kind not in _FORMS:
            raise self.unexpected("SELECT, CONSTRUCT, DESCRIBE or ASK")
        forms = {"CONSTRUCT": self._construct, "DESCRIBE": self._describe, "ASK": self._ask}
        algebra = forms.get(word.kind, self._select)()
        self.expect("end")
        return algebra

    def subquery(self) -> Node:
        """A SELECT in braces; its order matters only for its own LIMIT."""
        query = self._select(inner=True)
        return Node("Subquery", p=query.p, scope=dict.fromkeys(query.variables))

    # -- forms -------------------------------------------------------------------------------------

    def _select(self, *, inner: bool = False) -> Node:
        self.expect("SELECT")
        duplicates = self.accept("DISTINCT", "REDUCED")
        star = self.accept("*")
        items = [] if star else self._items()
        dataset = None if inner else self._dataset()
        pattern = self._where()
        modifiers = self._modifiers()
        values = self.values() if self.accept("VALUES") else None
        if star:
            if modifiers.keys is not None or modifiers.aggregates():
                raise Mistake(
                    "SELECT * cannot be used with GROUP BY or aggregates",
                    star.span,
                    "list the grouping keys",
                )
            visible = pattern.scope if values is None else pattern.scope | values.scope
            items = [_Item(star, name) for name in visible]
        algebra, variables = self._apply_modifiers(pattern, items, modifiers, values)
        algebra = Node("Project", p=algebra, variables=variables)
        if duplicates is not None:
            algebra = Node(duplicates.kind.title(), p=algebra)
        algebra = _slice(algebra, modifiers)
        return Node("SELECT", p=algebra, variables=variables, dataset=dataset)

    def _items(self) -> list[_Item]:
        items: list[_Item] = []
        self._aggregates = True
        while True:
            token = self.token
            if token.kind == "variable":
                items.append(_Item(token, self.variable().name))
            elif self.accept("("):
                expression = self.expression()
                self.expect("AS")
                token = self.token
                items.append(_Item(token, self.variable().name, expression))
                self.expect(")")
            elif items:
                break
            else:
                raise self.unexpected("variables or *")
        self._aggregates = False
        return items

    def _construct(self) -> Node:
        self.expect("CONSTRUCT")
        template = self._template() if self.at("{") else None
        dataset = self._dataset()
        if template is None:
            self.expect("WHERE")
            self.new_block()
            template = self._template()
            pattern = Node("BGP", triples=template, scope=dict(self._scope))
        else:
            pattern = self._where()
        algebra = self._apply_trailing(pattern)
        return Node("CONSTRUCT", p=algebra, template=template, dataset=dataset)

    def _template(self) -> list[TriplePattern]:
        """Triples in braces, without paths; their blank node labels are local to the template."""
        self.expect("{")
        self._triples, self._scope, self._paths = [], {}, False
        self.triples("}")
        self.expect("}")
        self._labels.clear()
        self._paths = True
        return self._triples

    def _describe(self) -> Node:
        self.expect("DESCRIBE")
        star = self.accept("*")
        resources: list[Variable | IRI] = []
        while not star and (not resources or self.at("variable", "iri", "pname")):
            resources.append(self.variable() if self.at("variable") else self.iri())
        dataset = self._dataset()
        pattern = self._where() if self.at("WHERE", "{") else Node("BGP", triples=[], scope={})
        algebra = self._apply_trailing(pattern)
        resources += [Variable(name) for name in pattern.scope] if star else []
        return Node(
            "DESCRIBE",
            p=algebra,
            variables=[term.name for term in resources if isinstance(term, Variable)],
            described=[term for term in resources if not isinstance(term, Variable)],
            dataset=dataset,
        )

    def _ask(self) -> Node:
        self.expect("ASK")
        dataset = self._dataset()
        return Node("ASK", p=self._apply_trailing(self._where()), dataset=dataset)

    def _dataset(self) -> tuple[tuple[IRI, ...], tuple[IRI, ...]] | None:
        graphs: tuple[list[IRI], list[IRI]] = ([], [])
        while self.accept("FROM"):
            is_named = self.accept("NAMED") is not None
            graphs[is_named].append(self.iri())
        return (tuple(graphs[0]), tuple(graphs[1])) if any(graphs) else None

    def _where(self) -> Node:
        self.accept("WHERE")
        return self.group()

    def _apply_trailing(self, pattern: Node) -> Node:
        """The solution modifiers of a form without a SELECT list."""
        modifiers = self._modifiers()
        values = self.values() if self.accept("VALUES") else None
        algebra, _ = self._apply_modifiers(pattern, [], modifiers, values)
        return _slice(algebra, modifiers)

    # -- modifiers ---------------------------------------------------------------------------------

    def _modifiers(self) -> _Modifiers:
        modifiers = _Modifiers()
        if self.accept("GROUP"):
            self.expect("BY")
            modifiers.keys = [self._key()]
            while self.at("variable") or self.begins_constraint():
                modifiers.keys.append(self._key())
        self._aggregates = True
        if self.accept("HAVING"):
            modifiers.having.append(self.constraint())
            while self.begins_constraint():
                modifiers.having.append(self.constraint())
        if self.accept("ORDER"):
            self.expect("BY")
            modifiers.order.append(self._order())
            while self.at("variable", "ASC", "DESC") or self.begins_constraint():
                modifiers.order.append(self._order())
        self._aggregates = False
        while word := self.accept("LIMIT", "OFFSET"):
            token = self.expect("integer")
            if word.kind in modifiers.slice:
                raise Mistake(f"duplicate {word.kind}", word.span)
            digits = token.text
            modifiers.slice[word.kind] = int(digits) if len(digits) <= 18 else 10**18
        return modifiers

    def _key(self) -> _Key:
        token = self.token
        if token.kind == "variable":
            variable = self.variable()
            return _Key(token, variable.name, variable)
        if token.kind != "(":
            return _Key(token, None, self.constraint())
        self.advance()
        expression = self.expression()
        name = self.variable().name if self.accept("AS") else None
        self.expect(")")
        if name is None and isinstance(expression, Variable):
            name = expression.name
        return _Key(token, name, expression)

    def _order(self) -> tuple[Expr, bool]:
        if word := self.accept("ASC", "DESC"):
            return self.bracketed(self.expression), word.kind == "DESC"
        return (self.variable() if self.at("variable") else self.constraint()), False

    def _apply_modifiers(
        self, pattern: Node, items: Sequence[_Item], modifiers: _Modifiers, values: Node | None
    ) -> tuple[Node, list[str]]:
        """Apply GROUP BY, HAVING, SELECT expressions and ORDER BY; returns the variables too."""
        expressions = [item.expression for item in items if item.expression is not None]
        grouped = modifiers.keys is not None or modifiers.aggregates(expressions)
        algebra, visible = pattern, dict(pattern.scope)
        having, order = modifiers.having, modifiers.order
        if grouped:
            keys = _keys(modifiers.keys or [], pattern.scope)
            _check_grouped(items, keys)
            names = {item.name for item in items if item.expression is not None}
            lifting = _AggregateLifter(keys, names)
            items = [item._replace(expression=lifting.lift(item.expression)) for item in items]
            having = [lifting.lift(expression, sample=True) for expression in having]
            order = [(lifting.lift(expression, sample=True), down) for expression, down in order]
            algebra = Node(
                "Group",
                p=pattern,
                keys=[(name, expression) for name, expression in keys.items()],
                aggregates=lifting.aggregates,
                implicit=modifiers.keys is None,
            )
            visible |= dict.fromkeys(keys)
        if having:
            expr = having[0] if len(having) == 1 else Node("And", args=having)
            algebra = Node("Filter", p=algebra, expr=expr)
        if values is not None:
            algebra = Node("Join", parts=[algebra, values])
            visible |= values.scope
        seen: set[str] = set()
        for item in items:
            if item.expression is None:
                continue
            if item.name in visible or item.name in seen:
                raise Mistake(
                    f"{item.token.text} is already bound",
                    item.token.span,
                    "use another variable after AS",
                )
            seen.add(item.name)
            algebra = Node("Extend", p=algebra, variable=item.name, expr=item.expression)
        if order:
            algebra = Node("OrderBy", p=algebra, keys=order)
        return algebra, list(dict.fromkeys(item.name for item in items))


class _Modifiers:
    """The solution modifiers of a query."""

    def __init__(self) -> None:
        self.keys: list[_Key] | None = None
        self.having: list[Expr] = []
        self.order: list[tuple[Expr, bool]] = []
        self.slice: dict[str, int] = {}  # LIMIT and OFFSET

    def aggregates(self, expressions: Sequence[Expr] = ()) -> bool:
        """Whether the modifiers or the expressions of SELECT contain aggregates."""
        candidates = [*self.having, *(expression for expression, _ in self.order), *expressions]
        return any(
            isinstance(node, Node) and node.name == "Aggregate"
            for expression in candidates
            for node in walk(expression)
        )


def _slice(algebra: Node, modifiers: _Modifiers) -> Node:
    limits = modifiers.slice
    if not limits:
        return algebra
    return Node("Slice", p=algebra, offset=limits.get("OFFSET", 0), limit=limits.get("LIMIT"))


def _keys(listed: Sequence[_Key], scope: Scope) -> dict[str, Expr]:
    keys: dict[str, Expr] = {}
    for number, key in enumerate(listed):
        name = f"\0key{number}" if key.name is None else key.name
        if isinstance(key.expression, Variable) and key.expression.name == name:
            keys.setdefault(name, key.expression)
            continue
        if name in scope or name in keys:
            hint = "use another variable after AS"
            raise Mistake(f"?{name} is already bound", key.token.span, hint)
        keys[name] = key.expression
    return keys


def _check_grouped(items: Sequence[_Item], keys: Mapping[str, Expr]) -> None:
    allowed = set(keys)
    for item in items:
        used = {item.name} if item.expression is None else _unaggregated(item.expression)
        for name in sorted(used - allowed):
            raise Mistake(
                f"?{name} is neither a grouping key nor aggregated",
                item.token.span,
                "group by it, or use an aggregate such as SAMPLE",
            )
        allowed.add(item.name)


def _unaggregated(expression: Expr) -> set[str]:
    """The variables of an expression outside aggregates."""
    names: set[str] = set()
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Variable):
            names.add(node.name)
        elif isinstance(node, Node) and node.name != "Aggregate":
            pending.extend(operands(node))
    return names


class _AggregateLifter:
    """Lifts aggregates out of expressions; each becomes a variable of the group."""

    def __init__(self, keys: Mapping[str, Expr], names: set[str]) -> None:
        self.aggregates: list[Node] = []
        self._known = {*keys, *names}
        self._samples: dict[str, Variable] = {}

    def lift(self, node: Any, *, sample: bool = False) -> Any:
        """Replace aggregates by variables; with `sample`, wrap other variables in SAMPLE."""
        if isinstance(node, Variable):
            return self._sample(node) if sample and node.name not in self._known else node
        if not isinstance(node, Node) or node.name == "Exists":
            return node
        if node.name == "Aggregate":
            return self._add(node)
        lift = partial(self.lift, sample=sample)
        parts: dict[str, Any] = {}
        for name, part in node.__dict__.items():
            if isinstance(part, list):
                # The operands of Arithmetic are pairs of an operator and an operand.
                parts[name] = [
                    (p[0], lift(p[1])) if isinstance(p, tuple) else lift(p) for p in part
                ]
            else:
                parts[name] = lift(part)
        return Node(node.name, **parts)

    def _sample(self, variable: Variable) -> Variable:
        if variable.name not in self._samples:
            aggregate = Node(
                "Aggregate", function="SAMPLE", distinct=False, arg=variable, separator=" "
            )
            self._samples[variable.name] = self._add(aggregate)
        return self._samples[variable.name]

    def _add(self, aggregate: Node) -> Variable:
        result = f"\0aggregate{len(self.aggregates)}"
        self.aggregates.append(Node("Aggregate", **(aggregate.__dict__ | {"result": result})))
        return Variable(result)
