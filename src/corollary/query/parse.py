"""SPARQL text to an algebra, by rdflib's parser; mistakes with their place in the text."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

import rdflib
from pyparsing import ParseBaseException, Suppress
from rdflib.plugins.sparql import parser as grammar
from rdflib.plugins.sparql.algebra import (
    translateGroupGraphPattern,
    translatePath,
    translateQuery,
    traverse,
)
from rdflib.plugins.sparql.parserutils import CompValue, Param

from corollary.errors import Diagnostic, InvalidInput, InvalidProgram, Source, Span
from corollary.query.scope import Mistake, check

_NAME = "<query>"
_UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")
# Strings, IRIs and comments, in which a word is no keyword.
_QUOTED = re.compile(
    r"'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
    r"|<[^<>\"{}|^`\\\s]*>|#[^\n]*",
    re.DOTALL,
)
_UNKNOWN_PREFIX = re.compile(r"Unknown namespace prefix : (.*)")
_lock = Lock()
_logger = logging.getLogger("rdflib.term")


@dataclass(frozen=True)
class Parsed:
    """A query as the parser understood it."""

    source: Source
    algebra: CompValue
    base: str | None


def parse(text: str, prefixes: Mapping[str, str], name: str = _NAME) -> Parsed:
    """The algebra of a query.

    >>> parse("ASK { ?s ?p ?o }", {}).algebra.name
    'AskQuery'
    """
    source = Source(name, text)
    with _reading(source):
        tree = _tree(text)
        query = translateQuery(tree, initNs=dict(prefixes))
    if "projection" not in tree[1] and query.algebra.name == "SelectQuery":
        query.algebra.PV = _in_order(query.algebra.PV, text)
    base = next((str(part.iri) for part in [*tree[0]][::-1] if part.name == "Base"), None)
    return Parsed(source, query.algebra, base)


def check_syntax(text: str, name: str = _NAME) -> None:
    """Raise the error of a query that `parse` would refuse whatever the prefixes are."""
    with _reading(Source(name, text)):
        _tree(text)


def _tree(text: str) -> Any:
    tree = grammar.parseQuery(text)
    check(tree[1])
    return tree


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """The library as we want it; its exceptions as errors with a place."""
    with _lock:  # whether literals are changed is a setting of the whole library
        normalized, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        # It logs a traceback for each literal without a value, which is no mistake.
        silent, _logger.disabled = _logger.disabled, True
        try:
            yield
        except ParseBaseException as error:
            raise _syntax(source, error) from None
        except Mistake as error:
            raise _at(source, error.about, "E560", error.message, None) from None
        except RecursionError:
            raise InvalidInput("E560", "the query is nested too deeply") from None
        except Exception as error:
            # The library raises bare exceptions for mistakes that its grammar lets pass.
            raise _mistake(source, str(error)) from None
        finally:
            rdflib.NORMALIZE_LITERALS = normalized
            _logger.disabled = silent


def exists_pattern(node: CompValue) -> CompValue:
    """The algebra of the pattern of an EXISTS; the library translates those of filters only."""
    if node.graph.name in ("GroupGraphPatternSub", "SubSelect"):
        # As the library does it: an attribute beside the item that the parser left.
        pattern = traverse(node.graph, visitPost=translatePath)
        node.graph = translateGroupGraphPattern(pattern)
    found: CompValue = node.graph
    return found


def _in_order(variables: Iterable[Any], text: str) -> list[Any]:
    """The variables of SELECT *, as they first occur."""
    places = {name[1:]: place for place, name in enumerate(re.findall(r"[?$]\w+", text)[::-1])}
    return sorted(variables, key=lambda v: (-places.get(str(v), -1), str(v)))


def unsupported(parsed: Parsed, word: str, reason: str) -> InvalidInput:
    """The error for something that is not supported, at its first place."""
    return _at(parsed.source, word, "E561", f"{word} is not supported", reason)


def _at(source: Source, word: str, code: str, message: str, hint: str | None) -> InvalidInput:
    hidden = _QUOTED.sub(lambda match: " " * len(match[0]), source.text)
    found = re.search(rf"(?<![\w?$:]){re.escape(word)}(?![\w:])", hidden, re.IGNORECASE)
    start, end = found.span() if found else (0, 1)
    return InvalidProgram([Diagnostic(code, message, Span(source, start, end), hint)])


def _syntax(source: Source, error: ParseBaseException) -> InvalidInput:
    start = min(error.loc, len(source.text))
    word = re.compile(r"[\w?$:]+|\S|\Z").match(source.text, start)
    found = word[0] if word else ""
    if found.upper() in _UPDATES:
        return _at(
            source, found, "E561", "updates are not supported", "change facts by transactions"
        )
    shown = f"unexpected {found!r}" if found else "unexpected end"
    return InvalidProgram(
        [
            Diagnostic(
                "E560",
                f"{shown} in a SPARQL query",
                Span(source, start, start + max(1, len(found))),
                None if len(error.msg) > 80 else error.msg[:1].lower() + error.msg[1:],
            )
        ]
    )


def _mistake(source: Source, message: str) -> InvalidInput:
    prefix = _UNKNOWN_PREFIX.match(message)
    if prefix is not None:
        start = source.text.find(f"{prefix[1]}:")
        span = Span(source, max(start, 0), max(start, 0) + len(prefix[1]) + 1)
        return InvalidProgram(
            [
                Diagnostic(
                    "E560",
                    f"unknown prefix {prefix[1]}:",
                    span,
                    f"begin the query with PREFIX {prefix[1]}: <…>",
                )
            ]
        )
    return InvalidProgram([Diagnostic("E560", message, Span(source, 0, 1))])


# In `!(^p)` the library's grammar drops p.
_inverse: Any = cast(Any, grammar.PathOneInPropertySet).exprs[-1]
_inverse.expr = Suppress("^") + Param("part", grammar.iri | grammar.A)
