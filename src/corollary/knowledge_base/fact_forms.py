"""Facts and patterns in every form in which people write them.

A triple is a tuple of terms, text of the rule language such as `[:ann, a, :Person]`, Turtle text
such as `:ann a :Person`, or an atom; a term is an rdflib or pyoxigraph term, a Python value, or its
text. A tuple of four is a statement of a named graph; with None in place of the graph it is the
triple, whatever its graphs. Reading a pattern adds no term to the dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corollary.core.dictionary import Dictionary
from corollary.errors import InvalidInput, require_type
from corollary.knowledge_base.data import DataReader
from corollary.knowledge_base.patterns import read_pattern
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.syntax import (
    IRI,
    QUADS,
    TRIPLE,
    TRIPLE_COLUMNS,
    TYPE,
    Atom,
    Constant,
    Term,
    Variable,
)
from corollary.rdf import formats

FactForm = object  # every form of `read_fact`; a value of another type ends in an error
FORMS = "a triple is a tuple of terms, '[:s, :p, :o]', or ':s :p :o' in Turtle"


def read_fact(data: object, arities: Mapping[str, int], prefixes: Mapping[str, str]) -> Atom:
    """Read a fact or pattern in any form.

    >>> read_fact(("<urn:a>", "a", None), {}, {}) == read_fact("[<urn:a>, a, ?object]", {}, {})
    True
    >>> read_fact("<urn:a> a <urn:C>", {}, {}) == read_fact("[<urn:a>, a, <urn:C>] .", {}, {})
    True
    >>> quad = ("<urn:a>", "a", None, "<urn:g>")
    >>> read_fact(quad, {}, {}) == read_fact("[<urn:a>, a, ?object] <urn:g>", {}, {})
    True
    """
    if isinstance(data, Atom):
        return read_pattern(data, arities, prefixes)
    if _kind(data) in (("pyoxigraph", "Triple"), ("pyoxigraph", "Quad")):
        some: Any = data
        graph = getattr(some, "graph_name", None)
        named = None if _kind(graph) == ("pyoxigraph", "DefaultGraph") else graph
        data = (some.subject, some.predicate, some.object, named)
    if isinstance(data, tuple | list):
        if len(data) not in (3, 4):
            raise InvalidInput(
                "E345", f"expected a triple or a quad, found {len(data)} terms", FORMS
            )
        subject, predicate, object_, *graphs = data
        triple = triple_pattern(subject, predicate, object_, prefixes)
        if not graphs or graphs[0] is None:
            return triple
        reader = DataReader(Dictionary(), prefixes, {})
        return Atom(QUADS, (*triple.terms, _term(graphs[0], "graph", reader, reader.graph)))
    require_type(data, (Atom, str, tuple), "a fact", FORMS)
    return _text(str(data), arities, prefixes)


def triple_pattern(
    subject: object, predicate: object, object_: object, prefixes: Mapping[str, str]
) -> Atom:
    """Create the pattern of a triple; None stands for any term.

    >>> [*triple_pattern(None, "a", None, {}).variables()]
    [Variable(name='subject'), Variable(name='object')]
    """
    reader = DataReader(Dictionary(), prefixes, {})
    values = zip(TRIPLE_COLUMNS, (subject, predicate, object_), strict=True)
    terms = [_term(value, name, reader) for name, value in values]
    if not isinstance(terms[1], IRI | Variable):
        raise InvalidInput("E213", f"the predicate {predicate!r} is not an IRI", FORMS)
    return Atom(TRIPLE, tuple(terms))


def _term(
    value: object,
    name: str,
    reader: DataReader,
    constant: Callable[[object], Constant] | None = None,
) -> Term:
    """Read a term; `constant` reads terms other than variables, by default those of triples."""
    if value is None:
        return Variable(name)
    if isinstance(value, Variable):
        return value
    if _kind(value) in (("rdflib", "Variable"), ("pyoxigraph", "Variable")):
        return Variable(str(value).removeprefix("?"))
    if type(value) is str:
        if value.startswith("?"):
            return Variable(value[1:])
        if value == "a" and name == "predicate":
            return TYPE
    return reader.term(value) if constant is None else constant(value)


def _text(text: str, arities: Mapping[str, int], prefixes: Mapping[str, str]) -> Atom:
    """Read the rule language, or else Turtle; errors are about the syntax that is more likely."""
    try:
        return read_pattern(text, arities, prefixes)
    except InvalidInput as error:
        if error.code == "E344" or text.lstrip().startswith("["):
            raise
        try:
            return _turtle(text, prefixes)
        except InvalidInput as other:
            if other.code == "E345":
                raise
            raise error from None


def _turtle(text: str, prefixes: Mapping[str, str]) -> Atom:
    dictionary = Dictionary()
    statement = text if text.rstrip().endswith(".") else f"{text} ."
    found = formats.read_text(
        statement,
        dictionary,
        name="<triple>",
        keep_labels=True,
        prefixes=WELL_KNOWN_PREFIXES | dict(prefixes),
    )
    distinct = np.unique(np.stack(found.columns, axis=1), axis=0)
    if len(distinct) != 1:
        raise InvalidInput("E345", f"expected one triple, found {len(distinct):,}", FORMS)
    return Atom(TRIPLE, tuple(dictionary.terms(distinct[0].tolist())))


def _kind(value: object) -> tuple[str, str]:
    return type(value).__module__.split(".")[0], type(value).__name__
