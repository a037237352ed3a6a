"""Triples that say nothing to a reader: what holds of everything, or of a term and itself, and
membership of classes without a name.

They are facts like all others; only what people read on screen leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence

from corollary.lang.syntax import (
    IRI,
    RDF,
    TRIPLE,
    TYPE,
    XSD,
    Atom,
    BlankNode,
    Literal,
    Term,
)

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_REFLEXIVE = {
    IRI(_OWL + "sameAs"), IRI(_OWL + "equivalentClass"), IRI(_OWL + "equivalentProperty"),
    IRI(_RDFS + "subClassOf"), IRI(_RDFS + "subPropertyOf"),
}  # fmt: skip
_THING, _NOTHING = IRI(_OWL + "Thing"), IRI(_OWL + "Nothing")
_OF_ALL = {_THING, IRI(_RDFS + "Resource")}
_SUBCLASS = IRI(_RDFS + "subClassOf")


def is_trivial(fact: Atom) -> bool:
    """Test whether a fact is trivial.

    >>> a = IRI("urn:a")
    >>> is_trivial(Atom(TRIPLE, (a, IRI(_OWL + "sameAs"), a))), is_trivial(Atom("p", (a, a)))
    (True, False)
    """
    return fact.relation == TRIPLE and is_trivial_triple(fact.terms)


def hidden_changes(count: int) -> str:
    """Say how many trivial changes a text leaves out.

    >>> hidden_changes(1), hidden_changes(2000)
    ('1 trivial change is not shown', '2,000 trivial changes are not shown')
    """
    if count == 1:
        return "1 trivial change is not shown"
    return f"{count:,} trivial changes are not shown"


def _is_datatype(term: Term | None) -> bool:
    """Whether a literal's membership in a class says no more than the literal."""
    return isinstance(term, IRI) and term.value.startswith((XSD, RDF, _RDFS))


def is_trivial_triple(terms: Sequence[Term | None]) -> bool:
    """Test whether a triple is trivial.

    >>> is_trivial_triple((IRI("urn:a"), TYPE, _THING))
    True
    >>> is_trivial_triple((IRI("urn:a"), TYPE, BlankNode("b")))  # of an unnamed class
    True
    """
    subject, property_, object_ = terms
    if property_ == TYPE:
        return (
            object_ in _OF_ALL
            or isinstance(object_, BlankNode)
            or (isinstance(subject, Literal) and _is_datatype(object_))
        )
    if property_ not in _REFLEXIVE:
        return False
    if subject == object_:
        return True
    return property_ == _SUBCLASS and (object_ in _OF_ALL or subject == _NOTHING)
