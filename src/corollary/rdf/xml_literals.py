"""XML literals of RDF/XML documents in canonical form.

RDF/XML says that the value of `rdf:parseType="Literal"` is exclusive canonical XML; the library
that parses the documents gives their text.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from pyoxigraph import Literal, NamedNode, Quad

_XML_LITERAL = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral")
_TAG = re.compile(r'<[^<>"]+(?:"[^"]*"[^<>"]*)*>')
_DECLARATION = re.compile(r' xmlns(?::[^\s="]+)?="[^"]*"')


def canonical(quad: Quad) -> Quad:
    """A statement of an RDF/XML document, with its XML literal in canonical form."""
    literal = quad.object
    if not isinstance(literal, Literal) or literal.datatype != _XML_LITERAL:
        return quad
    text = canonical_xml(literal.value)
    if text == literal.value:
        return quad
    object_ = Literal(text, datatype=_XML_LITERAL)
    return Quad(quad.subject, quad.predicate, object_, quad.graph_name)


def canonical_xml(content: str) -> str:
    """The content of an element as exclusive canonical XML; unchanged if it is malformed.

    The library declares all namespaces that are in scope on each outermost element; canonical XML
    declares a namespace where it is used.

    >>> canonical_xml('<e:b z="1" a="2" xmlns:u="http://u/" xmlns:e="http://e/"/> &gt;')
    '<e:b xmlns:e="http://e/" a="2" z="1"></e:b> &gt;'
    """
    if "<" not in content and "&" not in content and "\r" not in content:
        return content
    # The library resolves references to carriage returns, which a parser takes for line ends. An
    # element cannot declare entities, so that a short text does not become a long one.
    wrapped = f"<x>{content.replace(chr(13), '&#xD;')}</x>"
    for text in (wrapped, _TAG.sub(_declared_once, wrapped)):
        try:
            return ElementTree.canonicalize(text, with_comments=True)[len("<x>") : -len("</x>")]
        except (ElementTree.ParseError, ValueError):
            pass
    return content


def _declared_once(tag: re.Match[str]) -> str:
    """A start tag without the second declaration that the library adds for an element's own."""
    seen: set[str] = set()

    def once(declaration: re.Match[str]) -> str:
        if declaration[0] in seen:
            return ""
        seen.add(declaration[0])
        return declaration[0]

    return _DECLARATION.sub(once, tag[0])
