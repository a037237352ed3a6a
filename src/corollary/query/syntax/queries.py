"""Query forms and solution modifiers to algebra (section 18.2.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from corollary.lang.syntax import Variable
from corollary.query.syntax.algebra import Node, operands, walk
from corollary.query.syntax.patterns import PatternParser
from corollary.query.syntax.tokens import Mistake, Token
from corollary.query.syntax.triples import Scope

_FORMS = ("SELECT", "CONSTRUCT", "DESCRIBE", "ASK")
_UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")


class _Item(NamedTuple):
    """What SELECT lists: a variable, with an expression if it has one."""

    token: Token
    name: str
    expression: Any = None


class _Key(NamedTuple):
    """What GROUP BY lists; an expression without a name is a key that nobody can refer to."""

    token: Token
    name: str | None
    expression: Any


class QueryParser(PatternParser):
    """Reads queries."""

    def query(self) -> Node:
        """The whole text: a node named by the form of the query.

        Its parts are `p`, `variables` (SELECT, DESCRIBE), `template` (CONSTRUCT), `described`
        (DESCRIBE) and `dataset`, the place of FROM if there is one.
        """
        self.prologue()
        word = self.token
        if word.kind in _UPDATES:
            raise Mistake(
                "updates are not supported",
                (word.start, word.end),
                "change facts by transactions",
                "E561",
            )
        if word.kind not in _FORMS:
            raise self.unexpected("SELECT, CONSTRUCT, DESCRIBE or ASK")
        read = {"SELECT": self._select, "CONSTRUCT": self._construct, "DESCRIBE": self._describe,
                "ASK": self._ask}[word.kind]  # fmt: skip
        found = read()
        self.expect("end")
        return found

    def subquery(self) -> Node:
        """A SELECT in braces; its order counts for nothing but its own LIMIT."""
        found = self._select_parts(inner=True)
        return Node("Subquery", p=found.p, scope=dict.fromkeys(found.variables))

    # -- forms -------------------------------------------------------------------------------------

    def _select(self) -> Node:
        return self._select_parts(inner=False)

    def _select_parts(self, *, inner: bool) -> Node:
        self.expect("SELECT")
        duplicates = self.accept("DISTINCT", "REDUCED")
        star = self.accept("*")
        items = [] if star else self._items()
        dataset = None if inner else self._dataset()
        pattern = self._where()
        modifiers = self._modifiers()
        values = self._trailing_values()
        if star:
            if modifiers.keys is not None or modifiers.aggregates():
                raise Mistake(
                    "SELECT * cannot be used with groups",
                    (star.start, star.end),
                    "list the keys of the groups",
                )
            visible = pattern.scope if values is None else pattern.scope | values.scope
            items = [_Item(star, name) for name in visible]
        found, variables = self._modified(pattern, items, modifiers, values)
        found = Node("Project", p=found, variables=variables)
        if duplicates is not None:
            found = Node(duplicates.kind.title(), p=found)
        found = _sliced(found, modifiers)
        return Node("SELECT", p=found, variables=variables, dataset=dataset)

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
        found = self._rest(pattern)
        return Node("CONSTRUCT", p=found, template=template, dataset=dataset)

    def _template(self) -> list[tuple[Any, Any, Any]]:
        """Triples in braces, without paths; their labels have nothing to do with patterns."""
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
        asked: list[Any] = []
        while not star and (not asked or self.at("variable", "iri", "pname")):
            asked.append(self.variable() if self.at("variable") else self.iri())
        dataset = self._dataset()
        pattern = self._where() if self.at("WHERE", "{") else Node("BGP", triples=[], scope={})
        found = self._rest(pattern)
        asked += [Variable(name) for name in pattern.scope] if star else []
        return Node(
            "DESCRIBE",
            p=found,
            variables=[term.name for term in asked if isinstance(term, Variable)],
            described=[term for term in asked if not isinstance(term, Variable)],
            dataset=dataset,
        )

    def _ask(self) -> Node:
        self.expect("ASK")
        dataset = self._dataset()
        return Node("ASK", p=self._rest(self._where()), dataset=dataset)

    def _dataset(self) -> tuple[int, int] | None:
        place = None
        while word := self.accept("FROM"):
            place = place or (word.start, word.end)
            self.accept("NAMED")
            self.iri()
        return place

    def _where(self) -> Node:
        self.accept("WHERE")
        return self.group()

    def _rest(self, pattern: Node) -> Node:
        """The modifiers of a form that lists no variables."""
        modifiers = self._modifiers()
        values = self._trailing_values()
        found, _ = self._modified(pattern, [], modifiers, values)
        return _sliced(found, modifiers)

    def _trailing_values(self) -> Node | None:
        return self.values() if self.accept("VALUES") else None

    # -- modifiers ---------------------------------------------------------------------------------

    def _modifiers(self) -> _Modifiers:
        found = _Modifiers()
        if self.accept("GROUP"):
            self.expect("BY")
            found.keys = [self._key()]
            while self.at("variable") or self.begins_constraint():
                found.keys.append(self._key())
        self._aggregates = True
        if self.accept("HAVING"):
            found.having.append(self.constraint())
            while self.begins_constraint():
                found.having.append(self.constraint())
        if self.accept("ORDER"):
            self.expect("BY")
            found.order.append(self._order())
            while self.at("variable", "ASC", "DESC") or self.begins_constraint():
                found.order.append(self._order())
        self._aggregates = False
        while word := self.accept("LIMIT", "OFFSET"):
            token = self.expect("integer")
            before = found.limit if word.kind == "LIMIT" else found.offset
            if before is not None:
                raise Mistake(f"{word.kind} is given twice", (word.start, word.end))
            number = int(token.text[-18:]) if len(token.text) <= 18 else 10**18
            if word.kind == "LIMIT":
                found.limit = number
            else:
                found.offset = number
        return found

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

    def _order(self) -> tuple[Any, bool]:
        if word := self.accept("ASC", "DESC"):
            self.expect("(")
            expression = self.expression()
            self.expect(")")
            return expression, word.kind == "DESC"
        return (self.variable() if self.at("variable") else self.constraint()), False

    def _modified(
        self, pattern: Node, items: Sequence[_Item], modifiers: _Modifiers, values: Node | None
    ) -> tuple[Node, list[str]]:
        """The pattern grouped, filtered, extended and ordered, and the variables of SELECT."""
        expressions = [item.expression for item in items if item.expression is not None]
        grouped = modifiers.keys is not None or modifiers.aggregates(expressions)
        found, visible = pattern, dict(pattern.scope)
        having, order = modifiers.having, modifiers.order
        if grouped:
            keys = _keys(modifiers.keys or [], pattern.scope)
            _check_grouped(items, keys)
            names = {item.name for item in items if item.expression is not None}
            lifting = _Lifting(keys, names)
            items = [item._replace(expression=lifting.lift(item.expression)) for item in items]
            having = [lifting.lift(expression, sample=True) for expression in having]
            order = [(lifting.lift(expression, sample=True), down) for expression, down in order]
            found = Node(
                "Group",
                p=pattern,
                keys=[(name, expression) for name, expression in keys.items()],
                aggregates=lifting.aggregates,
                implicit=modifiers.keys is None,
            )
            visible |= dict.fromkeys(keys)
        if having:
            expr = having[0] if len(having) == 1 else Node("And", args=having)
            found = Node("Filter", p=found, expr=expr)
        if values is not None:
            found = Node("Join", parts=[found, values])
            visible |= values.scope
        seen: set[str] = set()
        for item in items:
            if item.expression is None:
                continue
            if item.name in visible or item.name in seen:
                raise Mistake(
                    f"{item.token.text} is bound already",
                    (item.token.start, item.token.end),
                    "use another variable after AS",
                )
            seen.add(item.name)
            found = Node("Extend", p=found, variable=item.name, expr=item.expression)
        if order:
            found = Node("OrderBy", p=found, keys=order)
        return found, list(dict.fromkeys(item.name for item in items))


class _Modifiers:
    """What follows a pattern."""

    def __init__(self) -> None:
        self.keys: list[_Key] | None = None
        self.having: list[Any] = []
        self.order: list[tuple[Any, bool]] = []
        self.limit: int | None = None
        self.offset: int | None = None

    def aggregates(self, expressions: Sequence[Any] = ()) -> bool:
        """Whether there are aggregates in the modifiers or in expressions of SELECT."""
        asked = [*self.having, *(expression for expression, _ in self.order), *expressions]
        return any(
            isinstance(node, Node) and node.name == "Aggregate"
            for expression in asked
            for node in walk(expression)
        )


def _sliced(found: Node, modifiers: _Modifiers) -> Node:
    if modifiers.limit is None and modifiers.offset is None:
        return found
    return Node("Slice", p=found, offset=modifiers.offset or 0, limit=modifiers.limit)


def _keys(listed: Sequence[_Key], scope: Scope) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, key in enumerate(listed):
        name = f"\0key{number}" if key.name is None else key.name
        if isinstance(key.expression, Variable) and key.expression.name == name:
            found.setdefault(name, key.expression)
            continue
        if name in scope or name in found:
            span = (key.token.start, key.token.end)
            raise Mistake(f"?{name} is bound already", span, "use another variable after AS")
        found[name] = key.expression
    return found


def _check_grouped(items: Sequence[_Item], keys: Mapping[str, Any]) -> None:
    known = set(keys)
    for item in items:
        asked = {item.name} if item.expression is None else _unaggregated(item.expression)
        for name in sorted(asked - known):
            raise Mistake(
                f"?{name} has several values in a group",
                (item.token.start, item.token.end),
                "group by it, or use an aggregate such as SAMPLE",
            )
        known.add(item.name)


def _unaggregated(expression: Any) -> set[str]:
    """The variables of an expression outside aggregates."""
    found: set[str] = set()
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Variable):
            found.add(node.name)
        elif isinstance(node, Node) and node.name != "Aggregate":
            pending.extend(operands(node))
    return found


class _Lifting:
    """Takes aggregates out of expressions; each becomes a variable of the groups."""

    def __init__(self, keys: Mapping[str, Any], names: set[str]) -> None:
        self.aggregates: list[Node] = []
        self._known = {*keys, *names}
        self._samples: dict[str, Variable] = {}

    def lift(self, node: Any, *, sample: bool = False) -> Any:
        """An expression of groups; with `sample`, other variables have any of their values."""
        if isinstance(node, Variable):
            return self._sample(node) if sample and node.name not in self._known else node
        if not isinstance(node, Node) or node.name == "Exists":
            return node
        if node.name == "Aggregate":
            return self._add(node)
        parts: dict[str, Any] = {}
        for name, part in node.__dict__.items():
            if isinstance(part, list):
                parts[name] = [
                    (one[0], self.lift(one[1], sample=sample))
                    if isinstance(one, tuple)
                    else self.lift(one, sample=sample)
                    for one in part
                ]
            else:
                parts[name] = self.lift(part, sample=sample)
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
