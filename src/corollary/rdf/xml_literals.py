"""XML literals of RDF/XML documents in canonical form.

RDF/XML defines the value of `rdf:parseType="Literal"` as exclusive canonical XML; the parser
returns the text of the document.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from pyoxigraph import Literal, NamedNode, Quad

_XML_LITERAL = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral")
_TAG = re.compile(r'<[^<>"]+(?:"[^"]*"[^<>"]*)*>')
_DECLARATION = re.compile(r' xmlns(?::[^\s="]+)?="[^"]*"')


def canonical(quad: Quad) -> Quad:
    """Canonicalize the XML literal of a statement."""
    literal = quad.object
    if not isinstance(literal, Literal) or literal.datatype != _XML_LITERAL:
        return quad
    text = canonical_xml(literal.value)
    if text == literal.value:
        return quad
    object_ = Literal(text, datatype=_XML_LITERAL)
    return Quad(quad.subject, quad.predicate, object_, quad.graph_name)


def canonical_xml(content: str) -> str:
    """Convert the content of an element to exclusive canonical XML; unchanged if malformed.

    The library declares all namespaces that are in scope on each outermost element; canonical XML
    declares a namespace where it is used.

    >>> canonical_xml('<e:b z="1" a="2" xmlns:u="http://u/" xmlns:e="http://e/"/> &gt;')
    '<e:b xmlns:e="http://e/" a="2" z="1"></e:b> &gt;'
    """
    if "<" not in content and "&" not in content and "\r" not in content:
        return content
    # The library resolves references to carriage returns, which a parser reads as line ends. An
    # element cannot declare entities, which could make a short text long.
    wrapped = f"<x>{content.replace(chr(13), '&#xD;')}</x>"
    for text in (wrapped, _TAG.sub(_declared_once, wrapped)):
        try:
            return ElementTree.canonicalize(text, with_comments=True)[len("<x>") : -len("</x>")]
        except (ElementTree.ParseError, ValueError):
            pass
    return content


def _declared_once(tag: re.Match[str]) -> str:
    """Remove the duplicate namespace declarations that the library adds to a start tag."""
    seen: set[str] = set()

    def once(declaration: re.Match[str]) -> str:
        if declaration[0] in seen:
            return ""
        seen.add(declaration[0])
        return declaration[0]

    return _DECLARATION.sub(once, tag[0])
