"""Relations with `MIN` or `MAX` in a head: which rules may derive them, and in which direction.

An *extremal* relation keeps one value per group: the least (or greatest) of what its rules derive.
It may read itself if a better value never leads to a worse one. Then the result does not depend on
the order of evaluation. `directions` finds how an expression moves with the values that it reads;
what the signs of data decide is left to *guards*: expressions that must not be negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import NamedTuple

from corollary.errors import Diagnostic, InvalidInput, Source, Span
from corollary.lang.operands import kind_of, number
from corollary.lang.operands import term as term_of
from corollary.lang.printer import Printer
from corollary.lang.stratify import Graph, Partition, Predicate
from corollary.lang.syntax import (
    FALSE,
    TRIPLE,
    TYPE,
    XSD,
    Atom,
    Constant,
    Expression,
    Filter,
    Literal,
    Operation,
    Rule,
    Variable,
    expression_variables,
)
from corollary.lang.xsd import DECIMAL, DOUBLE, FLOAT

_STEADY, _UP, _DOWN = 0, 1, -1
_NUMERIC = ("+", "-", "*", "/")
_MONOTONE = {"CEIL", "FLOOR", "ROUND", XSD + "double"}
_LESS, _GREATER = ("<", "<="), (">", ">=")


class Extremum(NamedTuple):
    """`MIN` or `MAX`, and the place of the value among the open terms of an atom."""

    function: OneOf["MIN", "MAX"]
    place: int

    @property
    def comparison(self) -> str:
        """How a value that breaks the order compares with one that it follows from."""
        return "less" if self.function == "MIN" else "greater"


@dataclass(frozen=True)
class Recursion:
    """How the value of a rule's head depends on those of extremal atoms in its body."""

    values: tuple[Variable, ...]  # of the atoms on which the head's value depends
    guards: tuple[Expression, ...]  # must not be negative


def extremum_of(rule: Rule) -> Extremum | None:
    """The extremum of a rule's head.

    >>> from corollary.lang.program import Program
    >>> text = "near(?x, MIN(?d)) :- far(?x, ?d) . [?x, rdfs:label, MAX(?d)] :- far(?x, ?d) ."
    >>> [tuple(extremum_of(rule)) for rule in Program.parse(text).rules]
    [('MIN', 1), ('MAX', 1)]
    """
    bind = rule.extremum
    if bind is None or bind.extremum is None:
        return None
    place = rule.head.terms.index(bind.variable)
    return Extremum(bind.extremum, place - (rule.head.relation == TRIPLE))


def extrema_of(rules: Iterable[Rule], partition: Partition) -> dict[Predicate, Extremum]:
    """The extremal predicates of rules; the rules are valid."""
    return {
        partition.predicate(rule.head): extremum
        for rule in rules
        if (extremum := extremum_of(rule)) is not None
    }


def recursion(rule: Rule, values: Mapping[Variable, Atom], extremum: Extremum) -> Recursion | str:
    """How the head's value depends on the `values` of extremal atoms; or why it may not.

    >>> from corollary.errors import Source
    >>> from corollary.lang.parser import Parser
    >>> def of(head):
    ...     text = head + " :- d(?x, ?d), e(?x, ?y, ?w) ."
    ...     [rule] = Parser(Source("example", text)).statements()
    ...     found = recursion(rule, {Variable("d"): rule.body[0]}, Extremum("MIN", 1))
    ...     return found if isinstance(found, str) else len(found.guards)
    >>> of("d(?y, MIN(?d + ?w))"), of("d(?y, MIN(?d * ?w))"), of("d(?y, MIN(?w - ?d))")
    (0, 1, 'MIN(?w - ?d) does not grow with ?d')
    """
    function, printer = extremum.function, Printer()
    signs = dict.fromkeys(values, _UP)
    roots = {variable: frozenset([variable]) for variable in values}
    guards: list[Expression] = []
    for bind in rule.binds:
        used = [v for v in dict.fromkeys(bind.inputs()) if signs.get(v, _STEADY) != _STEADY]
        if not used and bind.variable not in values:
            continue
        sign = _sign(bind.expression, signs, guards)
        if sign is None or (bind.extremum is not None and sign == _DOWN):
            where = bind.extremum or "BIND"
            text = printer.expression(bind.expression)
            names = " and ".join(sorted(f"?{v.name}" for v in used))
            return f"{where}({text}) does not grow with {names}"
        if bind.variable in signs:
            return f"BIND compares ?{bind.variable.name} with another value"
        signs[bind.variable] = sign
        roots[bind.variable] = frozenset[Variable]().union(*(roots[v] for v in used))
    moving = {variable for variable, sign in signs.items() if sign != _STEADY}
    wanted = _DOWN if function == "MIN" else _UP
    for part in rule.body:
        if isinstance(part, Filter):
            used = [v for v in part.variables() if v in moving]
            if used and _condition(part.expression, signs, guards) not in (_STEADY, wanted):
                better = "smaller" if function == "MIN" else "greater"
                text = printer.expression(part.expression)
                return f"FILTER({text}) may hold for ?{used[0].name}, but not for a {better} value"
    for atom, _ in rule.atoms():
        own = [v for v, source in values.items() if source is atom]
        for variable in atom.variables():
            if variable in moving and variable not in own:
                return f"{printer.atom(atom)} joins on ?{variable.name}"
        if own and sum(term == own[0] for term in atom.terms) > 1:
            return f"{printer.atom(atom)} joins on ?{own[0].name}"
    result = rule.head.terms[extremum.place + (rule.head.relation == TRIPLE)]
    for term in rule.head.variables():
        if term in moving and term != result:
            return f"?{term.name} stands in the group of the head"
    found = frozenset[Variable]()
    if isinstance(result, Variable) and result in moving:
        if signs[result] == _DOWN:
            return f"?{result.name} does not grow with the value that it follows from"
        found = roots[result]
    return Recursion(tuple(v for v in values if v in found), tuple(dict.fromkeys(guards)))


def _sign(part: Expression, signs: Mapping[Variable, int], guards: list[Expression]) -> int | None:
    """How a number moves with its inputs: up, down, not at all, or None for anything else."""
    if not isinstance(part, Operation):
        return signs.get(part, _STEADY) if isinstance(part, Variable) else _STEADY
    if all(signs.get(v, _STEADY) == _STEADY for v in expression_variables(part)):
        return _STEADY
    operator, arguments = part.operator, part.arguments
    if operator == "IF":
        return _choice(part, signs, guards)
    inner = [_sign(argument, signs, guards) for argument in arguments]
    if operator in _MONOTONE and len(inner) == 1:
        return inner[0]
    if operator not in _NUMERIC or None in inner:
        return None
    if operator == "-":
        inner[-1] = _flipped(inner[-1])
    if operator in ("+", "-"):
        return _joined(*inner)
    moving = 0 if inner[0] != _STEADY else 1
    factor = arguments[1 - moving]
    if inner[1 - moving] != _STEADY or (operator == "/" and moving == 1):
        return None
    if isinstance(factor, Literal) and kind_of(factor) == "number":
        return inner[moving] if number(factor) >= 0 else _flipped(inner[moving])
    guards.append(factor)
    return inner[moving]


def _choice(part: Operation, signs: Mapping[Variable, int], guards: list[Expression]) -> int | None:
    """`IF` moves with both values if it chooses the smaller or the greater one of them."""
    condition, one, two = part.arguments
    steady = all(signs.get(v, _STEADY) == _STEADY for v in expression_variables(condition))
    chooses = (
        isinstance(condition, Operation)
        and condition.operator in (*_LESS, *_GREATER)
        and set(condition.arguments) == {one, two}
    )
    if not steady and not chooses:
        return None
    return _joined(_sign(one, signs, guards), _sign(two, signs, guards))


def _condition(
    part: Expression, signs: Mapping[Variable, int], guards: list[Expression]
) -> int | None:
    """How the truth of a condition moves with its inputs."""
    if all(signs.get(v, _STEADY) == _STEADY for v in expression_variables(part)):
        return _STEADY
    if not isinstance(part, Operation):
        return None
    if part.operator in ("&&", "||"):
        return _joined(*(_condition(argument, signs, guards) for argument in part.arguments))
    if part.operator == "!":
        return _flipped(_condition(part.arguments[0], signs, guards))
    if part.operator not in (*_LESS, *_GREATER):
        return None
    less, more = (_sign(argument, signs, guards) for argument in part.arguments)
    if part.operator in _GREATER:
        less, more = more, less
    return _joined(_flipped(less), more)


def _flipped(sign: int | None) -> int | None:
    return None if sign is None else -sign


def _joined(*signs: int | None) -> int | None:
    moving = set(signs) - {_STEADY}
    if None in moving or len(moving) > 1:
        return None
    return moving.pop() if moving else _STEADY


def extremal_atoms(
    rule: Rule, extrema: Mapping[Predicate, Extremum], partition: Partition
) -> dict[Variable, Atom] | str:
    """The values of the extremal atoms of a body, or why one has none."""
    found: dict[Variable, Atom] = {}
    for atom, reading in rule.atoms():
        extremum = extrema.get(partition.predicate(atom))
        if extremum is None or reading != "positive":
            continue
        value = atom.terms[extremum.place + (atom.relation == TRIPLE)]
        if not isinstance(value, Variable):
            return f"{Printer().atom(atom)} reads one value of its own recursion"
        if value in found:
            return f"two atoms join on ?{value.name}"
        found[value] = atom
    return found


def form(term: Constant) -> tuple[int, bool, str]:
    """The order of terms with equal values: 1 before 1.0 before 1e0, 01 before 1, then by text.

    Arithmetic that leaves a value as it is, such as `?d + 0.0`, never leads to an earlier form.
    """
    text = Printer().term(term)
    if not isinstance(term, Literal) or kind_of(term) != "number":
        return 0, False, text
    types = (DECIMAL, FLOAT, DOUBLE)
    rank = 1 + types.index(term.datatype) if term.datatype in types else 0
    return rank, term_of(number(term)) == term, text


def improving(head: Atom, value: Atom | None, extremum: Extremum, rule: Rule) -> InvalidInput:
    """The error of a recursive step to a better value; without `value`, of a negative factor."""
    printer = Printer()
    message = (
        f"{printer.atom(head)} follows from {printer.atom(value)}, and is {extremum.comparison}"
        if value is not None
        else f"{printer.atom(head)} follows by a negative factor"
    )
    return InvalidInput(
        "E355",
        f"{message}: a recursive {extremum.function} must not improve along its own recursion",
        f"the step is by the rule {printer.rule(rule)}",
    )


def extremum_problems(
    rules: Sequence[Rule], graph: Graph, printer: Printer
) -> Iterator[Diagnostic]:
    """The mistakes in the rules of extremal relations."""
    if all(rule.extremum is None for rule in rules):
        return
    extrema: dict[Predicate, Extremum] = {}
    predicate = graph.partition.predicate
    for rule in rules:
        bind, extremum = rule.extremum, extremum_of(rule)
        if bind is None or extremum is None:
            continue
        head = predicate(rule.head)
        known = extrema.setdefault(head, extremum)
        several = sum(getattr(part, "extremum", None) is not None for part in rule.body) > 1
        message = hint = None
        if several:
            message = "a head has one MIN or MAX"
            hint = "write a rule for each value"
        elif rule.head.relation == TRIPLE and (
            head.property is None or head.property == TYPE or extremum.place != 1
        ):
            message = f"{bind.extremum} is the object of a triple whose property is an IRI"
            if head.property is None and not isinstance(rule.head.terms[1], Variable):
                message += ", and no rule of the program derives triples of any property"
        elif known != extremum:
            message = f"{head.describe(printer)} has another MIN or MAX in another rule"
            hint = "all rules of a relation choose by the same argument and function"
        if message is not None:
            yield Diagnostic("E216", message, _span(rule, bind.span), hint)
    for rule, head in zip(rules, graph.heads, strict=True):
        yield from _recursion_problems(rule, head, extrema, graph, printer)


def _recursion_problems(
    rule: Rule,
    head: Predicate,
    extrema: Mapping[Predicate, Extremum],
    graph: Graph,
    printer: Printer,
) -> Iterator[Diagnostic]:
    own = {p: e for p, e in extrema.items() if graph.component[p] == graph.component[head]}
    if not own:
        return
    cycles = [d for d in graph.dependencies if d.rule is rule and d.reading == "positive"]
    cycles = [d for d in cycles if graph.component[d.body] == graph.component[head]]
    if not cycles:
        return
    dependency = cycles[0]
    path = graph.cycle(dependency) or [head]
    cycle = " → ".join(p.describe(printer) for p in [head, *path])
    functions = {extremum.function for extremum in own.values()}
    if head not in own or any(d.body not in own for d in cycles):
        stranger = next(p for p in [head, *(d.body for d in cycles)] if p not in own)
        problem = f"{stranger.describe(printer)} keeps all of its values: {cycle}"
        hint = "give its rules a MIN or MAX too, or take it out of the recursion"
    elif len(functions) > 1:
        problem, hint = f"it mixes MIN and MAX: {cycle}", "separate the two"
    else:
        [function] = functions
        values = extremal_atoms(rule, own, graph.partition)
        found = values if isinstance(values, str) else recursion(rule, values, own[head])
        if not isinstance(found, str):
            return
        problem = f"{found}: {cycle}"
        better = "smaller" if function == "MIN" else "greater"
        hint = f"a {better} value of the recursion must lead to a {better} value of the head"
    goal = "minimum" if "MIN" in functions else "maximum"
    yield Diagnostic(
        "E217",
        f"the recursion of {head.describe(printer)} has no {goal}: {problem}",
        _span(rule, dependency.atom.span),
        hint,
    )


def _span(rule: Rule, span: Span | None) -> Span:
    if span is not None or rule.span is not None:
        return span or rule.span  # type: ignore[return-value]
    text = Printer().rule(rule) if rule.head.relation != FALSE else FALSE
    return Span(Source("<rule>", text), 0, len(text))
