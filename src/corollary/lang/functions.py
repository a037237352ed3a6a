"""The functions of expressions, which map values to a value or raise `Fault`.

They are those of SPARQL 1.1 whose value depends on nothing but their arguments, and some more:
`isMembershipProperty` holds for rdf:_1, rdf:_2, …, `isWellFormed`, `hasDatatype` and `sameValue`
compare the values of literals (`datatypes`), and `SKOLEM` gives blank nodes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from corollary.lang import builtins, datatypes, forms
from corollary.lang.builtins import ARITIES, UNLIMITED
from corollary.lang.forms import Function as RowFunction
from corollary.lang.operands import Fault, Value, boolean, number, term
from corollary.lang.syntax import IRI, RDF, XSD, BlankNode, Constant, Literal

_MEMBERSHIP = re.compile(re.escape(RDF) + "_[1-9][0-9]*")


class Function(NamedTuple):
    """A function of at least `least` and at most `most` values; a test has true or false."""

    least: int
    most: int
    call: Callable[..., Value]
    is_test: bool = False


def _is_membership_property(value: Value) -> bool:
    return isinstance(value, IRI) and _MEMBERSHIP.fullmatch(value.value) is not None


def _known(answer: bool | None) -> bool:
    if answer is None:
        raise Fault
    return answer


def _has_datatype(value: Value, datatype: Value) -> bool:
    literal = term(value)
    if not isinstance(literal, Literal) or not isinstance(datatype, IRI):
        raise Fault
    return _known(datatypes.has_datatype(literal, datatype.value))


def _iri(value: Value) -> Value:
    return value if isinstance(value, IRI) else IRI(builtins.simple(value))


def skolem(name: Value, *values: Value) -> BlankNode:
    """The blank node of a name and terms: equal terms give the same one, others another.

    >>> skolem("address", "a", 1) == skolem("address", "a", 1) != skolem("address", "a1")
    True
    """
    digest = hashlib.sha256()
    for part in (builtins.simple(name), *map(term, values)):
        digest.update(f"{len(repr(part))} {part!r}".encode(errors="surrogatepass"))
    return BlankNode("sk" + digest.hexdigest()[:32])


# Spellings other than in capitals.
_NAMES = {
    "ISIRI": "isIRI",
    "ISURI": "isURI",
    "ISBLANK": "isBlank",
    "ISLITERAL": "isLiteral",
    "ISNUMERIC": "isNumeric",
    "SAMETERM": "sameTerm",
}
_TESTS = {*_NAMES, "LANGMATCHES", "CONTAINS", "STRSTARTS", "STRENDS", "REGEX"}

FUNCTIONS: dict[str, Function] = {
    **{
        _NAMES.get(name, name): Function(*ARITIES[name], call, name in _TESTS)
        for name, call in builtins.FUNCTIONS.items()
    },
    **{iri: Function(1, 1, cast) for iri, cast in builtins.CASTS.items()},
    "IRI": Function(1, 1, _iri),
    "URI": Function(1, 1, _iri),
    "SKOLEM": Function(1, UNLIMITED, skolem),
    "isMembershipProperty": Function(1, 1, _is_membership_property, is_test=True),
    "isWellFormed": Function(
        1, 1, lambda value: _known(datatypes.well_formed(term(value))), is_test=True
    ),
    "hasDatatype": Function(2, 2, _has_datatype, is_test=True),
    "sameValue": Function(
        2, 2, lambda one, two: _known(datatypes.same_value(term(one), term(two))), is_test=True
    ),
}
# Forms that evaluate some of their arguments only, with their numbers of arguments.
LAZY: dict[str, tuple[int, int]] = {"IF": (3, 3), "COALESCE": (1, UNLIMITED)}

# Functions of SPARQL that rules lack: the reason, and what to write instead.
_NOT_MAINTAINED = "its value is another one each time, so what it gives cannot be maintained"
REFUSED: dict[str, tuple[str, str]] = {
    "NOW": (_NOT_MAINTAINED, "load the time as a fact"),
    "RAND": (_NOT_MAINTAINED, "load random numbers as facts"),
    "UUID": (_NOT_MAINTAINED, 'SKOLEM("name", ?x) is the same blank node each time'),
    "STRUUID": (_NOT_MAINTAINED, "a hash such as SHA256(?x) is the same string each time"),
    "BNODE": (_NOT_MAINTAINED, 'SKOLEM("name", ?x) is the same blank node each time'),
    "BOUND": ("every variable of a rule has a value", "leave it out"),
    "EXISTS": ("the body of a rule says what exists", "write an atom, or NOT and an atom"),
}

_SPELLED = {name.lower(): name for name in (*FUNCTIONS, *LAZY) if not name.startswith(XSD)}


def spelled(name: str) -> str | None:
    """The spelling of a function's name, which is case-insensitive; None if there is none.

    >>> spelled("ISLITERAL"), spelled("substr"), spelled("sub")
    ('isLiteral', 'SUBSTR', None)
    """
    return _SPELLED.get(name.lower())


def is_function(operator: str) -> bool:
    """Whether an operator is written as a function: its name before its arguments.

    >>> is_function("STRLEN"), is_function("IF"), is_function("+")
    (True, True, False)
    """
    return operator in FUNCTIONS or operator in LAZY


def arity(name: str) -> tuple[int, int]:
    """The least and the greatest number of arguments of a function.

    >>> arity("SUBSTR")
    (2, 3)
    """
    if name in LAZY:
        return LAZY[name]
    return FUNCTIONS[name].least, FUNCTIONS[name].most


def applied(
    operator: str, arguments: list[RowFunction], constants: Mapping[int, Constant]
) -> RowFunction:
    """An operator applied to compiled arguments, of which some are constants, by position.

    Conditions are booleans; unlike in SPARQL, no other value counts as true or false.

    >>> applied("+", [lambda row: 1, lambda row: 2], {})([])
    3
    """
    match operator:
        case "||":
            return forms.any_of(arguments, boolean)
        case "&&":
            return forms.all_of(arguments, boolean)
        case "!":
            return forms.call(lambda value: not boolean(value), arguments)
        case "IF":
            condition, yes, no = arguments
            return forms.choose(condition, yes, no, boolean)
        case "COALESCE":
            return forms.first_value(arguments)
        case "IN" | "NOT IN":
            known = [c for place, c in constants.items() if place and isinstance(c, IRI | Literal)]
            others = [
                argument
                for place, argument in enumerate(arguments)
                if place and not isinstance(constants.get(place), IRI | Literal)
            ]
            return forms.member(arguments[0], known, others, negated=operator == "NOT IN")
        case "-" | "+" if len(arguments) == 1:
            return forms.call(builtins.negate if operator == "-" else number, arguments)
        case "+" | "-" | "*" | "/":
            return forms.call(lambda one, two: builtins.arithmetic(operator, one, two), arguments)
        case _ if operator in forms.COMPARISONS:
            return forms.call(forms.COMPARISONS[operator], arguments)
        case _:
            return forms.call(FUNCTIONS[operator].call, arguments)
