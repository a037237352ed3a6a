"""Rules in words, for people who read proofs."""

from __future__ import annotations

from collections.abc import Mapping

from corollary.lang.printer import Printer
from corollary.lang.syntax import (
    FALSE,
    IRI,
    RDF,
    TRIPLE,
    Aggregate,
    Atom,
    Bind,
    BodyLiteral,
    Filter,
    Negation,
    Rule,
    Term,
)

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_PHRASES = {
    RDF + "type": "is a",
    _RDFS + "subClassOf": "is a subclass of",
    _RDFS + "subPropertyOf": "is a subproperty of",
    _RDFS + "domain": "has the domain",
    _RDFS + "range": "has the range",
    _OWL + "sameAs": "is the same as",
    _OWL + "differentFrom": "is different from",
    _OWL + "inverseOf": "is the inverse of",
    _OWL + "equivalentClass": "is equivalent to the class",
    _OWL + "equivalentProperty": "is equivalent to the property",
    _OWL + "disjointWith": "is disjoint with",
    _OWL + "onProperty": "restricts the property",
    _OWL + "someValuesFrom": "requires some value from",
    _OWL + "allValuesFrom": "allows only values from",
    _OWL + "hasValue": "requires the value",
}


def in_words(rule: Rule, prefixes: Mapping[str, str]) -> str:
    """Write a rule as a sentence.

    >>> from corollary.lang.program import Program
    >>> [rule] = Program.parse("[?x, a, ?d] :- [?x, a, ?c], [?c, rdfs:subClassOf, ?d] .").rules
    >>> in_words(rule, {})
    'If ?x is a ?c and ?c is a subclass of ?d, then ?x is a ?d.'
    """
    printer = Printer(prefixes)
    body = " and ".join(_phrase(part, printer) for part in rule.body)
    if rule.head.relation == FALSE:
        return f"It is a contradiction that {body}."
    return f"If {body}, then {_phrase(rule.head, printer)}."


def _phrase(part: BodyLiteral, printer: Printer) -> str:
    match part:
        case Atom(relation=relation, terms=terms) if relation == TRIPLE:
            subject, property_, object_ = terms
            return f"{printer.term(subject)} {_verb(property_, printer)} {printer.term(object_)}"
        case Negation(atom):
            return f"it is not known that {_phrase(atom, printer)}"
        case Atom() | Bind() | Filter() | Aggregate():
            return printer.body_literal(part)


def _verb(term: Term, printer: Printer) -> str:
    phrase = _PHRASES.get(term.value) if isinstance(term, IRI) else None
    return phrase or printer.term(term)
