"""The functions of filters: each takes terms, and gives true, false, or None for an error.

`isIRI`, `isBlank`, `isLiteral` and `sameTerm` are those of SPARQL, and `isMembershipProperty` holds
of rdf:_1, rdf:_2 and so on. The others are about the values of literals (`datatypes`): whether a
literal is well-formed, has a value of a datatype, or the same value as another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from corollary.lang.datatypes import has_datatype, same_value, well_formed
from corollary.lang.syntax import IRI, RDF, BlankNode, Constant, Literal

_MEMBERSHIP = re.compile(re.escape(RDF) + "_[1-9][0-9]*")


class Function(NamedTuple):
    """A function: how many terms it takes, and what it says of them."""

    arity: int
    call: Callable[..., bool | None]


def _is_membership_property(term: Constant) -> bool:
    return isinstance(term, IRI) and _MEMBERSHIP.fullmatch(term.value) is not None


def _well_formed(term: Constant) -> bool | None:
    return well_formed(term) if isinstance(term, Literal) else None


def _has_datatype(term: Constant, datatype: Constant) -> bool | None:
    if not isinstance(term, Literal) or not isinstance(datatype, IRI):
        return None
    return has_datatype(term, datatype.value)


def _same_value(one: Constant, two: Constant) -> bool | None:
    if not isinstance(one, Literal) or not isinstance(two, Literal):
        return None
    return same_value(one, two)


FUNCTIONS: dict[str, Function] = {
    "isIRI": Function(1, lambda term: isinstance(term, IRI)),
    "isBlank": Function(1, lambda term: isinstance(term, BlankNode)),
    "isLiteral": Function(1, lambda term: isinstance(term, Literal)),
    "isMembershipProperty": Function(1, _is_membership_property),
    "sameTerm": Function(2, lambda one, two: bool(one == two)),
    "isWellFormed": Function(1, _well_formed),
    "hasDatatype": Function(2, _has_datatype),
    "sameValue": Function(2, _same_value),
}

_SPELLED = {name.lower(): name for name in FUNCTIONS}


def spelled(name: str) -> str | None:
    """The function of this name in any case, None if there is none.

    >>> spelled("ISLITERAL"), spelled("substr")
    ('isLiteral', None)
    """
    return _SPELLED.get(name.lower())
