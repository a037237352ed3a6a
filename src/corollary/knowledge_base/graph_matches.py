"""Patterns in one graph: which triples a graph has, and which graphs have a triple.

The default graph is here what the SPARQL dataset of `DATASET` says: the explicit triples of the
default graph, and all derived ones. Named graphs have their statements, and what rules derive into
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from corollary.core.dictionary import Ids
from corollary.core.engine import Facts
from corollary.core.graphs import DEFAULT, DERIVED, REASON_OVER
from corollary.core.match import match_facts
from corollary.knowledge_base.graphs import default_graph, has_graphs, quads_of, unread_triples
from corollary.knowledge_base.results import triples_of
from corollary.lang.syntax import QUADS, Atom, Constant, Variable
from corollary.query.graphs import Dataset

if TYPE_CHECKING:
    from corollary.knowledge_base.state import KnowledgeState

DATASET = Dataset((DEFAULT, DERIVED))
"""What patterns match that name no graph: the default graph, and what is derived."""
_GRAPH = Variable("graph")
Row = tuple[str, ...]  # terms in N-Triples syntax


def match_everywhere(state: KnowledgeState, pattern: Atom) -> Facts:
    """The triples of all graphs that match, and the derived ones.

    >>> from corollary.knowledge_base.base import KnowledgeBase
    >>> kb = KnowledgeBase("[?y, <q>, ?x] :- [?x, <p>, ?y] .")
    >>> _ = kb.update("INSERT DATA { GRAPH <g> { <a> <p> <b> } }")
    >>> pattern = kb.state.pattern("[?s, ?p, ?o]")
    >>> len(match_everywhere(kb.state, pattern)), len(match_default(kb.state, pattern))
    (2, 1)
    """
    found, explicit = state.reasoner.match(pattern), state.reasoner.explicit
    if REASON_OVER in explicit.predicates():
        unread = unread_triples(explicit, state.engine)
        found = found.union(match_facts(pattern, unread, state.engine))
    return found


def match_default(state: KnowledgeState, pattern: Atom, *, derived: bool = True) -> Facts:
    """The triples of the default graph that match; with `derived`, also the derived ones."""
    explicit, engine = state.reasoner.explicit, state.engine
    matched = state.reasoner.match(pattern)
    own = matched.intersection(explicit)
    if REASON_OVER in explicit.predicates():
        own = match_facts(pattern, default_graph(explicit, engine), engine)
    elif has_graphs(explicit):
        own = default_graph(explicit, engine, own)
    return own.union(matched.difference(explicit)) if derived else own


def match_named(
    state: KnowledgeState, pattern: Atom, graph: Constant | None, *, derived: bool = True
) -> Facts:
    """The quads of a named graph, or of all of them, whose triples match."""
    found = state.reasoner.match(Atom(QUADS, (*pattern.terms, graph or _GRAPH)))
    return found if derived else found.intersection(state.reasoner.explicit)


def named_graphs(state: KnowledgeState) -> list[str]:
    """The names of all graphs that have statements, in N-Triples syntax."""
    everything = Atom(QUADS, tuple(Variable(name) for name in ("s", "p", "o", "g")))
    graphs = quads_of(state.reasoner.match(everything))[:, 3]
    return sorted({*state.dictionary.texts(graphs).to_pylist()})


def triple_texts(state: KnowledgeState, facts: Facts) -> Iterator[Row]:
    """The terms of triples, or of the triples of quads, which are distinct if the facts are."""
    rows = quads_of(facts)
    columns = [*rows.T[:3]] if len(rows) else triples_of(facts, state.dictionary).columns
    yield from _texts(state, columns)


def quad_texts(state: KnowledgeState, facts: Facts) -> Iterator[Row]:
    """The terms of quads."""
    yield from _texts(state, [*quads_of(facts).T])


def _texts(state: KnowledgeState, columns: Sequence[Ids]) -> Iterator[Row]:
    texts = [state.dictionary.texts(column) for column in columns]
    yield from zip(*(column.to_pylist() for column in texts), strict=True)
