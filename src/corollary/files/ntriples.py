"""N-Triples, a line at a time; as rules may derive it, a literal may be a subject."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from corollary.errors import Diagnostic, InvalidInput, Source
from corollary.lang.parser import Parser
from corollary.lang.printer import Printer, quote
from corollary.lang.syntax import XSD, Constant, Literal

_IRI, _BLANK = r"<[^\x00-\x20<>\"{}|^`]*>", r"_:\w(?:[\w.\-]*[\w\-])?"
_LITERAL = r'"(?:[^"\\\n\r]|\\.)*"(?:\^\^' + _IRI + r"|@[A-Za-z]+(?:-[A-Za-z0-9]+)*)?"
_TERM = f"({_IRI}|{_BLANK}|{_LITERAL})"
_LINE = re.compile(rf"[ \t]*(?:{_TERM}[ \t]*({_IRI})[ \t]*{_TERM}[ \t]*\.)?[ \t]*(?:\#.*)?\Z")
_printer = Printer(well_known=False)


def read_triple(line: str, path: Path, number: int) -> tuple[Constant, ...]:
    """Subject, predicate and object of a line; nothing for an empty line or a comment.

    >>> read_triple('<http://e/s> <http://e/p> "o" .', Path("data.nt"), 1)[2]
    Literal(lexical='o', datatype='http://www.w3.org/2001/XMLSchema#string', language=None)
    """
    match = _LINE.match(line.rstrip("\r\n"))
    if match is None:
        raise InvalidInput(
            "E305",
            "expected a triple: subject, predicate, object and a full stop",
            "N-Triples writes every IRI in full, in angle brackets",
            file=str(path),
            line=number,
            column=1,
        )
    terms = []
    for place, text in enumerate(match.groups(), 1):
        term = _term(text) if text is not None else None
        if isinstance(term, Diagnostic):
            column = match.start(place) + term.span.column
            raise InvalidInput(
                "E305", term.message, term.hint, file=str(path), line=number, column=column
            )
        if term is not None:
            terms.append(term)
    return tuple(terms)


@lru_cache(maxsize=65536)
def _term(text: str) -> Constant | Diagnostic:
    parser = Parser(Source("term", text))
    return parser.alone(Parser.constant) or parser.problems[0]


def write_ntriples_term(term: Constant) -> str:
    """A term as N-Triples writes it.

    >>> write_ntriples_term(Literal("1", XSD + "integer"))
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    if isinstance(term, Literal) and term.language is None and term.datatype != XSD + "string":
        return f"{quote(term.lexical)}^^{_printer.iri(term.datatype)}"
    return _printer.term(term)
