"""Cells of facts files to terms and back.

A cell means what the same text means in a rule: `1` is a number, `true` a boolean, `<…>` an IRI,
`_:b` a blank node, `"…"` a string or, with `^^<…>` or `@tag`, another literal. Any other text is a
string of exactly these characters, so ordinary tables need no quotes.
"""

from __future__ import annotations

import re

from corollary.errors import Source
from corollary.lang.parser import Parser
from corollary.lang.printer import Printer
from corollary.lang.syntax import XSD, Constant, Literal

_PLAIN = re.compile(
    r"""(?P<integer>[+-]?[0-9]++)
      | (?P<decimal>[+-]?[0-9]*+\.[0-9]++)
      | (?P<double>[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)[eE][+-]?[0-9]++)
      | (?P<boolean>true|false)
      | (?P<written>".*"(?:@[\w-]+|\^\^<[^\x00-\x20<>]*>)?|<[^\x00-\x20<>]*>|_:\w[\w.\-]*)""",
    re.VERBOSE | re.DOTALL,
)
_STRING = XSD + "string"
_SEPARATORS = re.compile(r"[\t\n\r]")
_printer = Printer(well_known=False)


def read_cell(text: str) -> Constant:
    """The term of a cell.

    >>> read_cell("7").datatype == XSD + "integer", read_cell("7 up").lexical
    (True, '7 up')
    """
    match = _PLAIN.fullmatch(text)
    if match is None:
        return Literal(text)
    if match.lastgroup == "written":
        parser = Parser(Source("cell", text))
        return parser.read_whole(Parser.constant) or Literal(text)
    return Literal(text, f"{XSD}{match.lastgroup}")


def write_cell(term: Constant) -> str:
    """The shortest cell that stands for a term.

    >>> write_cell(Literal("a b")), write_cell(Literal("7"))
    ('a b', '"7"')
    """
    if isinstance(term, Literal) and term.datatype == _STRING and term.language is None:
        text = term.lexical
        means_itself = _PLAIN.fullmatch(text) is None or read_cell(text) == term
        if text and means_itself and not _SEPARATORS.search(text):
            return text
    return _printer.term(term)
