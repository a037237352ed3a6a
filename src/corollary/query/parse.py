"""SPARQL text to an algebra; mistakes with their place in the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from corollary.errors import Diagnostic, InvalidInput, InvalidProgram, Source, Span
from corollary.query.syntax.algebra import Node
from corollary.query.syntax.queries import QueryParser
from corollary.query.syntax.tokens import Mistake, expand

_NAME = "<query>"


@dataclass(frozen=True)
class Parsed:
    """A query as the parser understood it."""

    source: Source
    algebra: Node
    base: str | None


def parse(text: str, prefixes: Mapping[str, str], name: str = _NAME) -> Parsed:
    """The algebra of a query.

    >>> parse("ASK { ?s ?p ?o }", {}).algebra.name
    'ASK'
    """
    return _parse(text, prefixes, name)


def check_syntax(text: str, name: str = _NAME) -> None:
    """Raise the error of a query that `parse` would refuse whatever the prefixes are."""
    _parse(text, None, name)


def _parse(text: str, prefixes: Mapping[str, str] | None, name: str) -> Parsed:
    source = Source(name, text)
    expanded = None
    try:
        _check_characters(text)
        expanded = expand(text)
        parser = QueryParser(expanded.text, prefixes)
        return Parsed(source, parser.query(), parser.base)
    except Mistake as error:
        start, end = error.span if expanded is None else expanded.span(*error.span)
        raise located(source, error.code, error.message, (start, end), error.hint) from None
    except RecursionError:
        raise too_deep() from None


def _check_characters(text: str) -> None:
    if text.isascii():
        return
    for place, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            raise Mistake("half of a surrogate pair is not a character", (place, place + 1))


def too_deep() -> InvalidInput:
    """The error for a query whose parts are nested deeper than the stack."""
    return InvalidInput("E560", "the query is nested too deeply")


def unsupported(parsed: Parsed, word: str, span: tuple[int, int], reason: str) -> InvalidInput:
    """The error for something that is not supported, where the text has it."""
    span = expand(parsed.source.text).span(*span)
    return located(parsed.source, "E561", f"{word} is not supported", span, reason)


def located(
    source: Source, code: str, message: str, span: tuple[int, int], hint: str | None
) -> InvalidInput:
    """An error with its place in the text."""
    start, end = min(span[0], len(source.text)), max(span[1], span[0] + 1)
    return InvalidProgram([Diagnostic(code, message, Span(source, start, end), hint)])
