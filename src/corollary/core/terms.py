"""Terms as canonical N-Triples text, and back.

Every term has one text and every text one term: IRIs in angle brackets, blank nodes as `_:label`,
literals in quotes with `@tag` or `^^<datatype>` (never that of strings). Of all the ways to escape
a character the shortest is canonical, and only what must be escaped is: quotes, backslashes and
control characters in literals, and what an IRI may not hold. Language tags are compared without
regard to case, and lower case is canonical. pyoxigraph writes terms like this too.
"""

from __future__ import annotations

import re
from dataclasses import replace

from corollary.lang.syntax import ESCAPES, IRI, LANG_STRING, XSD, BlankNode, Constant, Literal

# Surrogates are no characters, and UTF-8 cannot write them; Python strings may hold some.
_NOT_IN_LITERAL = re.compile(r'[\x00-\x1f"\\\x7f\ud800-\udfff]')
_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\\x7f\ud800-\udfff]')
_NOT_IN_LABEL = re.compile(r"[\x00-\x20\\\x7f\ud800-\udfff]")
_SHORT = {character: f"\\{letter}" for letter, character in ESCAPES.items()}
_ESCAPE = re.compile(r"\\(?:u([0-9A-F]{4})|(.))")
# Possessive: each character of a long text would else take some hundred bytes of memory.
_LITERAL = re.compile(r'"((?:[^"\\]++|\\.)*+)"(?:@(.*)|\^\^<(.*)>)?', re.DOTALL)


def text_of(term: Constant) -> str:
    """The canonical text of a term.

    >>> text_of(Literal("1", XSD + "integer")), text_of(IRI("http://example.org/a"))
    ('"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '<http://example.org/a>')
    """
    match term:
        case IRI(value):
            return f"<{_NOT_IN_IRI.sub(_numeric, value)}>"
        case BlankNode(label):
            return f"_:{_NOT_IN_LABEL.sub(_numeric, label)}"
        case Literal(lexical, datatype, language):
            quoted = f'"{_NOT_IN_LITERAL.sub(_shortest, lexical)}"'
            if language is not None:
                return f"{quoted}@{_NOT_IN_LABEL.sub(_numeric, language)}"
            if datatype == XSD + "string":
                return quoted
            return f"{quoted}^^<{_NOT_IN_IRI.sub(_numeric, datatype)}>"


def term_of(text: str) -> Constant:
    """The term of a canonical text.

    >>> term_of('"chat"@fr').language, term_of('"1"').datatype == XSD + "string"
    ('fr', True)
    """
    if text[0] == "<":
        return IRI(_unescaped(text[1:-1]))
    if text[0] == "_":
        return BlankNode(_unescaped(text[2:]))
    match = _LITERAL.fullmatch(text)
    assert match is not None, f"no canonical text of a term: {text}"
    lexical, language, datatype = match.groups()
    lexical = _unescaped(lexical)
    if language is not None:
        return Literal(lexical, LANG_STRING, _unescaped(language))
    return Literal(lexical) if datatype is None else Literal(lexical, _unescaped(datatype))


def canonical(term: Constant) -> Constant:
    """The term of the same text: a literal with a language tag has the datatype of such literals.

    >>> canonical(Literal("chat", language="FR")) == Literal("chat", LANG_STRING, "fr")
    True
    """
    if type(term) is Literal and term.language is not None and term.datatype != LANG_STRING:
        return replace(term, datatype=LANG_STRING)
    return term


def _numeric(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04X}"


def _shortest(match: re.Match[str]) -> str:
    return _SHORT.get(match.group()) or _numeric(match)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    code, short = match.groups()
    return chr(int(code, 16)) if code else ESCAPES[short]
