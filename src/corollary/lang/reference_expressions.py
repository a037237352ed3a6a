"""The oracle's expressions: evaluated term by term, without any plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from corollary.lang import syntax
from corollary.lang.builtins import arithmetic, negate
from corollary.lang.forms import COMPARISONS
from corollary.lang.functions import FUNCTIONS
from corollary.lang.operands import Fault, Value, boolean, equal, number, term
from corollary.lang.syntax import Constant, Variable

Substitution = Mapping[Variable, Constant]
Result = TypeVar("Result")


def evaluated(expression: syntax.Expression, s: Substitution) -> Constant | None:
    """The term of an expression's value; None if it is an error.

    >>> from corollary.lang.syntax import Operation, Literal, XSD
    >>> one = Literal("1", XSD + "integer")
    >>> evaluated(Operation("+", (one, one)), {}).lexical
    '2'
    """
    return attempt(lambda: term(evaluate(expression, s)))


def holds(expression: syntax.Expression, s: Substitution) -> bool:
    """Whether an expression is true: neither false nor an error."""
    return attempt(lambda: boolean(evaluate(expression, s))) is True


def attempt(compute: Callable[[], Result]) -> Result | None:
    """What is computed, None if it is an error."""
    try:
        return compute()
    except (Fault, ArithmeticError):
        return None


def evaluate(expression: syntax.Expression, s: Substitution) -> Value:
    """The value of an expression; raises `Fault` for an error."""
    if not isinstance(expression, syntax.Operation):
        return s[expression] if isinstance(expression, Variable) else expression
    sign, arguments = expression.operator, expression.arguments
    if sign == "IF":
        return evaluate(arguments[1 if boolean(evaluate(arguments[0], s)) else 2], s)
    if sign in ("&&", "||", "IN", "NOT IN"):  # errors do not decide
        left = evaluate(arguments[0], s) if "IN" in sign else None
        test = boolean if left is None else lambda value: equal(left, value)
        rest = arguments if left is None else arguments[1:]
        found = {attempt(lambda a=a: test(evaluate(a, s))) for a in rest}  # type: ignore[misc]
        decisive = sign != "&&"
        if decisive not in found and None in found:
            raise Fault
        return (decisive in found) == (sign in ("||", "IN"))
    tried = [attempt(lambda a=a: evaluate(a, s)) for a in arguments]  # type: ignore[misc]
    values = [value for value in tried if value is not None]
    if len(values) < len(tried) and (sign != "COALESCE" or not values):
        raise Fault
    match sign, values:
        case "COALESCE", [value, *_]:
            return value
        case "!", [value]:
            return not boolean(value)
        case "+", [value]:
            return number(value)
        case "-", [value]:
            return negate(value)
        case (("+" | "-" | "*" | "/"), [one, two]):
            return arithmetic(sign, one, two)
    return COMPARISONS[sign](*values) if sign in COMPARISONS else FUNCTIONS[sign].call(*values)
