"""Validate what the grammar cannot check, and report all mistakes of a program at once.

`validate` sees rules as values. To underline a variable in a message, it tokenizes the text of the
rule again, so valid programs do not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from corollary.errors import Diagnostic, Source, Span, nearest
from corollary.lang.extrema import extremum_problems
from corollary.lang.functions import FUNCTIONS, LAZY
from corollary.lang.lexer import tokenize
from corollary.lang.operands import kind_of
from corollary.lang.printer import Printer
from corollary.lang.stratify import Graph
from corollary.lang.syntax import (
    QUADS,
    TRIPLE,
    TRIPLES_NAME,
    Aggregate,
    Atom,
    Bind,
    Constant,
    Expression,
    Filter,
    Negation,
    Operation,
    Rule,
    Variable,
    expression_variables,
    name_problem,
)


def validate(
    statements: Sequence[Rule], printer: Printer | None = None, *, whole: bool = True
) -> list[Diagnostic]:
    """All mistakes in rules and facts (rules without a body), in no particular order.

    Without `whole`, the statements are not a complete program: negation may be cyclic.

    >>> from corollary.lang.syntax import Atom, Rule, Variable
    >>> [d.code for d in validate([Rule(Atom("p", (Variable("x"),)), ())])]
    ['E208']
    """
    printer = printer or Printer()
    problems: list[Diagnostic] = []
    problems += _arities(statements)
    for rule in statements:
        if rule.body:
            problems += _safety(rule)
            for literal in rule.body:
                if isinstance(literal, Filter | Bind):
                    problems += _types(literal, rule)
        else:
            problems += _ground(rule)
    if whole:
        rules = [rule for rule in statements if rule.body and not rule.is_constraint]
        problems += _strata(rules, printer)
    return problems


def _arities(statements: Iterable[Rule]) -> Iterator[Diagnostic]:
    first: dict[str, tuple[int, Rule, Atom]] = {}
    for rule in statements:
        for atom in (rule.head, *(atom for atom, _ in rule.atoms())):
            if atom.relation == TRIPLES_NAME:  # an atom that was not parsed
                problem = name_problem(atom.relation)
                assert problem is not None, "the name is reserved"
                yield Diagnostic("E511", problem[0], _span(rule, atom.span), problem[1])
            known = first.setdefault(atom.relation, (len(atom.terms), rule, atom))
            if known[0] != len(atom.terms) and atom.relation != TRIPLE:
                where = _span(known[1], known[2].span)
                place = f"line {where.line}" if known[2].span else f"'{where.text}'"
                yield Diagnostic(
                    "E203",
                    f"'{atom.relation}' has {_arguments(len(atom.terms))} here,"
                    f" but {_arguments(known[0])} at its first use",
                    _span(rule, atom.span),
                    f"its first use is in {place}; a relation keeps its number of arguments",
                )


def _arguments(number: int) -> str:
    return "1 argument" if number == 1 else f"{number or 'no'} arguments"


def _ground(fact: Rule) -> Iterator[Diagnostic]:
    for variable in dict.fromkeys(fact.head.variables()):
        yield Diagnostic(
            "E208",
            f"a fact has constants only, but ?{variable.name} is a variable",
            _locate(fact, variable),
            f"for the string write \"{variable.name}\"; a rule needs a body after ':-'",
        )


def _safety(rule: Rule) -> Iterator[Diagnostic]:
    bound = rule.bound_variables()
    names = [variable.name for variable in bound]
    reported: set[Variable] = set()
    for aggregate in (literal for literal in rule.body if isinstance(literal, Aggregate)):
        for problem, variable in _aggregate(rule, aggregate):
            reported.add(variable)
            yield problem
    binds = [part for part in rule.body if isinstance(part, Bind)]
    missing = [v for bind in binds for v in expression_variables(bind.expression) if v not in bound]
    results = {bind.variable for bind in binds} - bound
    # A result without a value misses inputs, unless the BINDs need each other.
    missing = [variable for variable in missing if variable not in results] or missing
    reported |= results.difference(missing)
    uses = [(variable, "BIND") for variable in missing]
    uses += [(variable, "head") for variable in rule.head.variables()]
    uses += [
        (variable, "filter")
        for literal in rule.body
        if isinstance(literal, Filter)
        for variable in literal.variables()
    ]
    for variable, where in uses:
        if variable in bound or variable in reported:
            continue
        reported.add(variable)
        close = nearest(variable.name, names)
        yield Diagnostic(
            "E202",
            f"?{variable.name} stands in the {where}, but in no positive atom of the body",
            _locate(rule, variable, {"filter": "FILTER", "BIND": "BIND"}.get(where)),
            f"did you mean ?{close}?" if close else "bind it with an atom such as p(?x)",
        )


def _aggregate(rule: Rule, aggregate: Aggregate) -> Iterator[tuple[Diagnostic, Variable]]:
    def mistake(
        code: str, message: str, variable: Variable, after: str | None, hint: str | None
    ) -> tuple[Diagnostic, Variable]:
        text = f"?{variable.name} {message}"
        return Diagnostic(code, text, _locate(rule, variable, after), hint), variable

    inner = {variable for atom in aggregate.atoms for variable in atom.variables()}
    names = [variable.name for variable in inner]
    for variable in (*aggregate.group, *(binding.argument for binding in aggregate.bindings)):
        if variable not in inner:
            close = nearest(variable.name, names)
            hint = f"did you mean ?{close}?" if close else None
            yield mistake(
                "E210", "stands in no atom of this aggregate", variable, "AGGREGATE", hint
            )
    results: set[Variable] = set()
    for binding in aggregate.bindings:
        if binding.result in inner or binding.result in results:
            message = "already has a value inside this aggregate"
            hint = "give the result a name of its own"
            yield mistake("E211", message, binding.result, "AS", hint)
        results.add(binding.result)
    outside = set(rule.head.variables())
    for literal in rule.body:
        if literal is not aggregate:
            atom = literal.atom if isinstance(literal, Negation) else literal
            outside |= set(atom.variables())
    hidden = (inner - set(aggregate.group) - results) & outside
    for variable in sorted(hidden, key=lambda v: v.name):
        message = "is local to the aggregate, but is used outside it too"
        hint = f"add ?{variable.name} after ON to group by it, or rename one of the two"
        yield mistake("E212", message, variable, None, hint)


# "term": what has no order; "any": known only when the rule is evaluated.
_UNORDERED = "term"


def _types(part: Filter | Bind, rule: Rule) -> Iterator[Diagnostic]:
    problems: list[Diagnostic] = []

    def complain(operation: Operation, message: str) -> None:
        problems.append(Diagnostic("E209", message, _span(rule, operation.span or part.span)))

    def type_of(expression: Expression) -> str:
        if isinstance(expression, Variable):
            return "any"
        if not isinstance(expression, Operation):
            return _constant_type(expression)
        operator = expression.operator
        types = [type_of(argument) for argument in expression.arguments]
        if operator in FUNCTIONS or operator in LAZY:
            is_test = operator in FUNCTIONS and FUNCTIONS[operator].is_test
            return "boolean" if is_test else "any"
        known = [t for t in types if t != "any"]
        if operator in ("&&", "||", "!"):
            for t in known:
                if t != "boolean":
                    complain(expression, f"'{operator}' takes conditions, not a {t}")
            return "boolean"
        if operator in ("=", "!=", "IN", "NOT IN"):
            return "boolean"
        if operator in ("<", "<=", ">", ">="):
            for t in known:
                if t == _UNORDERED:
                    complain(
                        expression,
                        f"'{operator}' compares numbers, strings, booleans or times, not IRIs",
                    )
            if len(set(known)) > 1 and _UNORDERED not in known:
                complain(expression, f"'{operator}' cannot compare a {known[0]} with a {known[1]}")
            return "boolean"
        for t in known:
            if t != "number":
                complain(expression, f"'{operator}' takes numbers, not a {t}")
        return "number"

    found = type_of(part.expression)
    if isinstance(part, Filter) and found not in ("boolean", "any"):
        problems.append(
            Diagnostic(
                "E209",
                "a FILTER holds a condition that is true or false",
                _span(rule, part.span),
                "compare with something: FILTER(?x > 1)",
            )
        )
    yield from problems


def _constant_type(term: Constant) -> str:
    return kind_of(term) or _UNORDERED


def _strata(rules: Sequence[Rule], printer: Printer) -> Iterator[Diagnostic]:
    graph = Graph(rules)
    yield from extremum_problems(rules, graph, printer)
    for dependency in graph.dependencies:
        if dependency.reading == "positive":
            continue
        cycle = graph.cycle(dependency)
        if cycle is None:
            continue
        negated = dependency.reading == "negated"
        names = [predicate.describe(printer) for predicate in cycle]
        step = f"NOT {names[0]}" if negated else f"AGGREGATE({names[0]})"
        path = " → ".join([dependency.head.describe(printer), step, *names[1:]])
        what = "its own negation" if negated else "an aggregate over itself"
        advice = "break the cycle"
        if any(predicate.relation == QUADS for predicate in cycle):
            advice = "all named graphs are one relation; derive into a property without a graph"
        yield Diagnostic(
            "E205" if negated else "E206",
            f"{dependency.head.describe(printer)} depends on {what}: {path}",
            _span(dependency.rule, dependency.atom.span),
            f"{'negation' if negated else 'aggregation'} may only read what is complete before:"
            f" {advice}",
        )


def _span(rule: Rule, span: Span | None) -> Span:
    """The span of a message: the given one, else that of the rule, else the printed rule."""
    if span is not None:
        return span
    if rule.span is not None:
        return rule.span
    text = Printer().rule(rule)
    return Span(Source("<rule>", text), 0, len(text))


def _locate(rule: Rule, variable: Variable, after: str | None = None) -> Span:
    """The first occurrence of a variable in the text of a rule, behind a word if one is given."""
    whole = _span(rule, None)
    found = after is None
    for token in tokenize(whole.source, [], whole.start, whole.end):
        found = found or token.text == after
        if found and token.kind == "variable" and token.text == f"?{variable.name}":
            return Span(whole.source, token.start, token.end)
    return whole
