"""Parses SPARQL text to algebra; errors carry their span in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from corollary.errors import Diagnostic, InvalidInput, InvalidProgram, Source, Span
from corollary.query.syntax.algebra import Node
from corollary.query.syntax.queries import QueryParser
from corollary.query.syntax.tokens import Mistake, expand
from corollary.query.syntax.updates import UpdateParser

T = TypeVar("T")

_NAME = "<query>"
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Parsed:
    """A parsed query."""

    source: Source
    algebra: Node
    base: str | None


def parse(text: str, prefixes: Mapping[str, str], name: str = _NAME) -> Parsed:
    """Parse a query to its algebra.

    >>> parse("ASK { ?s ?p ?o }", {}).algebra.name
    'ASK'
    """
    return _read(text, name, lambda source, expanded: _query(source, expanded, prefixes))


def check_syntax(text: str, name: str = _NAME) -> None:
    """Raise if a query is invalid whatever prefixes are declared outside it."""
    _read(text, name, lambda source, expanded: _query(source, expanded, None))


def _query(source: Source, expanded: str, prefixes: Mapping[str, str] | None) -> Parsed:
    parser = QueryParser(expanded, prefixes)
    return Parsed(source, parser.query(), parser.base)


def parse_update(text: str, prefixes: Mapping[str, str], name: str = "<update>") -> list[Parsed]:
    """Parse an update request to its operations; see `query.syntax.updates`.

    >>> [one.algebra.name for one in parse_update("CLEAR ALL ; INSERT DATA { <a> <b> 1 }", {})]
    ['Clear', 'InsertData']
    """

    def operations(source: Source, expanded: str) -> list[Parsed]:
        parser = UpdateParser(expanded, prefixes)
        return [Parsed(source, operation, parser.base) for operation in parser.request()]

    return _read(text, name, operations)


def _read(text: str, name: str, read: Callable[[Source, str], T]) -> T:
    source = Source(name, text)
    expanded = None
    try:
        _check_characters(text)
        expanded = expand(text)
        return read(source, expanded.text)
    except Mistake as error:
        start, end = error.span if expanded is None else expanded.span(*error.span)
        raise error_at(source, error.code, error.message, (start, end), error.hint) from None
    except RecursionError:
        raise too_deep() from None


def _check_characters(text: str) -> None:
    if surrogate := _SURROGATE.search(text):
        raise Mistake("unpaired surrogate is not a character", surrogate.span())


def too_deep() -> InvalidInput:
    """The error for a query nested deeper than the stack allows."""
    return InvalidInput("E560", "the query is nested too deeply")


def unsupported(parsed: Parsed, word: str, span: tuple[int, int], reason: str) -> InvalidInput:
    """The error for an unsupported construct at a span of the text."""
    span = expand(parsed.source.text).span(*span)
    return error_at(parsed.source, "E561", f"{word} is not supported", span, reason)


def error_at(
    source: Source, code: str, message: str, span: tuple[int, int], hint: str | None
) -> InvalidInput:
    """An error at a span of the text."""
    start, end = min(span[0], len(source.text)), max(span[1], span[0] + 1)
    return InvalidProgram([Diagnostic(code, message, Span(source, start, end), hint)])
