"""The functions of filters, which map terms to true, false, or None for an error.

`isIRI`, `isBlank`, `isLiteral` and `sameTerm` are those of SPARQL; `isMembershipProperty` holds for
rdf:_1, rdf:_2, …; the others compare the values of literals (`datatypes`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from corollary.lang.datatypes import has_datatype, same_value, well_formed
from corollary.lang.syntax import IRI, RDF, BlankNode, Constant, Literal

_MEMBERSHIP = re.compile(re.escape(RDF) + "_[1-9][0-9]*")


class Function(NamedTuple):
    """A function of `arity` terms."""

    arity: int
    call: Callable[..., bool | None]


def _is_membership_property(term: Constant) -> bool:
    return isinstance(term, IRI) and _MEMBERSHIP.fullmatch(term.value) is not None


def _has_datatype(term: Constant, datatype: Constant) -> bool | None:
    if not isinstance(term, Literal) or not isinstance(datatype, IRI):
        return None
    return has_datatype(term, datatype.value)


def _same_language(one: Constant, two: Constant) -> bool | None:
    """Whether two literals have the same language tag, or none."""
    if isinstance(one, Literal) and isinstance(two, Literal):
        return one.language == two.language
    return None


FUNCTIONS: dict[str, Function] = {
    "isIRI": Function(1, lambda term: isinstance(term, IRI)),
    "isBlank": Function(1, lambda term: isinstance(term, BlankNode)),
    "isLiteral": Function(1, lambda term: isinstance(term, Literal)),
    "isMembershipProperty": Function(1, _is_membership_property),
    "sameTerm": Function(2, lambda one, two: bool(one == two)),
    "isWellFormed": Function(1, well_formed),
    "hasDatatype": Function(2, _has_datatype),
    "sameValue": Function(2, same_value),
    "sameLanguage": Function(2, _same_language),
}

_SPELLED = {name.lower(): name for name in FUNCTIONS}


def spelled(name: str) -> str | None:
    """The spelling of a function's name, which is case-insensitive; None if there is none.

    >>> spelled("ISLITERAL"), spelled("substr")
    ('isLiteral', None)
    """
    return _SPELLED.get(name.lower())
