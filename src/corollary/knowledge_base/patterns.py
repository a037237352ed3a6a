"""Patterns in the syntax of users: an atom, or the name of a relation; also as queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from corollary.errors import InvalidInput, nearest, require_type
from corollary.knowledge_base.results import columns_of
from corollary.lang.parser import parse_atom
from corollary.lang.syntax import QUAD_COLUMNS, QUADS, TRIPLE, TRIPLES_NAME, Atom, Variable

if TYPE_CHECKING:
    from corollary.knowledge_base.state import KnowledgeState
    from corollary.query.results import Solutions
    from corollary.store import Snapshot

_NAME = re.compile(r"\s*([^\W\d]\w*)\s*\Z")
# Every SPARQL query contains braces, except DESCRIBE, which no parenthesis follows.
_ATOM = re.compile(r"\s*(?:\[|[^\W\d]\w*\s*\()[^{}]*[\])]\s*\.?\s*\Z")


def read_pattern(
    pattern: str | Atom, arities: Mapping[str, int], prefixes: Mapping[str, str]
) -> Atom:
    """Parse a pattern: an atom, its text, or the name of a relation for all of its facts.

    >>> len(read_pattern("path", {"path": 2}, {}).terms)
    2
    """
    if isinstance(pattern, str):
        name = _NAME.match(pattern)
        if name is not None:
            known = _arity(name[1], arities)
            return Atom(name[1], tuple(Variable(f"v{number}") for number in range(known)))
        pattern = parse_atom(pattern, prefixes, "<pattern>")
    require_type(pattern, Atom, "a pattern", "such as '[?x, a, :Person]' or 'path(1, ?y)'")
    if pattern.relation not in (TRIPLE, QUADS) and _arity(pattern.relation, arities) != len(
        pattern.terms
    ):
        raise InvalidInput(
            "E203",
            f"'{pattern.relation}' has {arities[pattern.relation]} arguments in the knowledge"
            f" base, but {len(pattern.terms)} here",
            "a relation keeps its number of arguments",
        )
    return pattern


def _arity(relation: str, arities: Mapping[str, int]) -> int:
    if relation == QUADS:
        return len(QUAD_COLUMNS)
    if relation in arities:
        return arities[relation]
    close = nearest(relation, arities)
    raise InvalidInput(
        "E344",
        f"there is no relation {relation}",
        f"did you mean {close}?" if close else "triples are written [?s, ?p, ?o]",
    )


def arities_of(snapshot: Snapshot) -> dict[str, int]:
    """Return the arities of the relations in the facts and rules of a version."""
    widths = {name: count.width for name, count in snapshot.statistics.relations.items()}
    widths.pop(TRIPLES_NAME, None)
    return widths | dict(snapshot.program.arities)


def materialized_patterns(snapshot: Snapshot) -> tuple[Atom, ...]:
    """Return the patterns that a hybrid store materializes in addition to those of schemas."""
    arities, prefixes = arities_of(snapshot), snapshot.program.prefixes
    return tuple(read_pattern(text, arities, prefixes) for text in snapshot.commit.materialize)


def is_pattern(query: str) -> bool:
    """Test whether a query is an atom rather than SPARQL.

    >>> is_pattern("[?x, a, :Person]"), is_pattern("path(1, ?y)"), is_pattern("ASK { ?s ?p ?o }")
    (True, True, False)
    """
    return _ATOM.match(query) is not None


def places_of(pattern: Atom) -> dict[str, int]:
    """Map each variable of a pattern to its first position."""
    found: dict[str, int] = {}
    for place, term in enumerate(pattern.terms):
        if isinstance(term, Variable):
            found.setdefault(term.name, place)
    return found


def match(state: KnowledgeState, pattern: Atom, limit_rows: int | None = None) -> Solutions | bool:
    """Return the values of a pattern's variables; without variables, whether the fact holds."""
    from corollary.query.database import refuse_rows
    from corollary.query.results import Solutions

    facts, dictionary = state.reasoner.match(pattern), state.dictionary
    places = places_of(pattern)
    if not places:
        return len(facts) > 0
    refuse_rows(len(facts), limit_rows)
    columns = columns_of(facts, len(pattern.terms), dictionary)
    return Solutions(
        pa.table({name: dictionary.texts(columns[place]) for name, place in places.items()})
    )
