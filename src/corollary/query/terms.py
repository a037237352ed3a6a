"""Terms of the parser as terms of ours."""

from __future__ import annotations

from typing import Protocol

import rdflib

from corollary.core.terms import LANG_STRING
from corollary.lang.syntax import IRI, XSD, BlankNode, Constant, Literal


class Terms(Protocol):
    """What the translation asks of a dictionary."""

    def __len__(self) -> int: ...

    def find(self, term: Constant) -> int | None:
        """The id of a term, None if it has none."""
        ...


def constant(node: rdflib.term.Node) -> Constant:
    """The term that the parser read.

    >>> constant(rdflib.Literal("chat", lang="fr")).language
    'fr'
    """
    if isinstance(node, rdflib.URIRef):
        return IRI(str(node))
    if isinstance(node, rdflib.BNode):
        return BlankNode(str(node))
    assert isinstance(node, rdflib.Literal), f"not a term: {node!r}"
    if node.language is not None:
        return Literal(str(node), LANG_STRING, node.language)
    return Literal(str(node), XSD + "string" if node.datatype is None else str(node.datatype))
