"""A store plugin of rdflib: `Graph(store="corollary")` is a graph that reasons.

The graph holds explicit and derived triples, and its queries are answered by Corollary's SPARQL.
`Dataset(store="corollary")` has named graphs: rules read the union of all graphs, the default graph
has the derived triples, and a named graph has its statements and what rules derive into it.
Additions and removals are collected, and become one transaction when the graph is next read.
`graph.open(path)` opens a store; `Graph(store=CorollaryStore("rdfs"))` chooses rules, by default
those of OWL 2 RL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any, cast

import rdflib
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.query import Result
from rdflib.store import NO_STORE, VALID_STORE, Store
from rdflib.term import Identifier, Node

from corollary.core.engine import Facts
from corollary.core.graphs import DEFAULT
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.graph_matches import (
    DATASET,
    match_default,
    match_everywhere,
    match_named,
    named_graphs,
    quad_texts,
    triple_texts,
)
from corollary.knowledge_base.patterns import is_pattern
from corollary.knowledge_base.rules import Rules
from corollary.knowledge_base.stores import is_store
from corollary.lang.syntax import IRI, Atom
from corollary.query.graphs import Dataset
from corollary.query.results import Solutions
from corollary.rdf.frames import constant_of
from corollary.rdf.rdflib_terms import rdflib_rows

Triple = tuple[Node, Node, Node]
Quad = tuple[Node, Node, Node, Node | None]
_Graph = Identifier | IRI | None  # the name of a graph, DEFAULT, or None for all
Pattern = tuple[Node | None, Node | None, Node | None]


class CorollaryStore(Store):
    """The triples of a knowledge base as a store of rdflib.

    >>> graph = rdflib.Graph(store=CorollaryStore("rdfs"))
    >>> _ = graph.parse(
    ...     format="turtle",
    ...     data='''
    ...     @prefix : <http://example.org/> .
    ...     @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    ...     :Cat rdfs:subClassOf :Pet . :tom a :Cat .''',
    ... )
    >>> ex = rdflib.Namespace("http://example.org/")
    >>> (ex.tom, rdflib.RDF.type, ex.Pet) in graph
    True
    """

    context_aware = True
    formula_aware = False
    transaction_aware = True

    def __init__(
        self,
        configuration: str | Rules | Iterable[Rules] | KnowledgeBase | None = None,
        identifier: Identifier | None = None,
    ) -> None:
        """Create a store; the configuration is a knowledge base, or its rules."""
        self._pending: list[tuple[bool, Quad]] = []
        self._named: set[Identifier] = set()  # graphs that rdflib has named, perhaps empty ones
        self._unnamed: set[Identifier] = set()  # graphs without a name, which stand for all
        self._in_dataset = False
        self._bound: dict[str, rdflib.URIRef] = {}
        if isinstance(configuration, KnowledgeBase):
            self._kb = configuration
        else:
            self._kb = KnowledgeBase(configuration or "owl-rl")
        super().__init__(None, identifier)

    @property
    def knowledge_base(self) -> KnowledgeBase:
        """The knowledge base, with all changes so far."""
        self.commit()
        return self._kb

    def open(self, configuration: str | tuple[str, str], create: bool = False) -> int | None:
        """Open the store at a path; with `create`, an empty one may be made there."""
        path = configuration if isinstance(configuration, str) else configuration[0]
        if is_store(path):
            self._kb = KnowledgeBase.open(path)
        elif create:
            self.knowledge_base.save(path)
        else:
            return NO_STORE
        return VALID_STORE

    # -- changes ---------------------------------------------------------------------------------

    def add(self, triple: Triple, context: Any = None, quoted: bool = False) -> None:
        """Insert a triple with the next transaction, into the graph that the context names."""
        graph = self._graph(context)
        if isinstance(graph, Identifier):
            self._named.add(graph)
        self._pending.append((True, (*triple, _named(graph))))

    def remove(self, triple: Pattern, context: Any = None) -> None:
        """Delete the explicit triples that match; without a context, from all graphs."""
        state, graph = self.knowledge_base.state, self._graph(context)
        pattern = state.pattern(triple)
        rows: list[Quad] = []
        if graph is None or graph is DEFAULT:
            own = match_default(state, pattern, derived=False)
            rows += [(*row, None) for row in _valid(triple_texts(state, own))]
        if graph is not DEFAULT:
            name = None if graph is None else constant_of(graph)
            quads = match_named(state, pattern, name, derived=False)
            rows += cast("list[Quad]", [*rdflib_rows(quad_texts(state, quads))])
        self._pending += [(False, row) for row in rows]

    def add_graph(self, graph: rdflib.Graph) -> None:
        """Name a graph that may be empty; stores do not keep the names of empty graphs."""
        name = self._graph(graph)
        if isinstance(name, Identifier):
            self._named.add(name)

    def remove_graph(self, graph: rdflib.Graph) -> None:
        """Delete all explicit statements of a graph, and its name."""
        self.remove((None, None, None), graph)
        self._named.discard(graph.identifier)

    def commit(self) -> None:
        """Commit the collected changes as one transaction."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        self._declare(self._bound)
        with self._kb.transaction() as tx:
            for is_insert, changes in groupby(pending, key=itemgetter(0)):
                (tx.insert if is_insert else tx.delete)([row for _, row in changes])

    def close(self, commit_pending_transaction: bool = False) -> None:
        """Commit the collected changes, whatever rdflib asks for: they were made."""
        self.commit()

    def rollback(self) -> None:
        """Drop the changes that are not committed."""
        self._pending = []

    # -- graphs ----------------------------------------------------------------------------------

    @property
    def graph_aware(self) -> bool:  # type: ignore[override]
        """True; a dataset asks for it, and only then blank nodes name graphs of their own."""
        self._in_dataset = True
        return True

    def _graph(self, context: Any) -> _Graph:
        """What a context of rdflib stands for: all graphs (None), the default graph, or a name.

        rdflib gives a graph without a name a blank node: such a graph stands for everything.
        """
        name = getattr(context, "identifier", context)
        if name is None or name in self._unnamed:
            return None
        if name == DATASET_DEFAULT_GRAPH_ID:
            return DEFAULT
        if isinstance(name, rdflib.BNode) and not self._in_dataset:
            self._unnamed.add(name)
            return None
        return cast("Identifier", name)

    def contexts(self, triple: Pattern | None = None) -> Iterator[rdflib.Graph]:  # type: ignore[override]
        """Iterate over the named graphs, or over all graphs that have a triple."""
        state = self.knowledge_base.state
        if triple is None or triple == (None, None, None):
            texts = [(name,) for name in named_graphs(state)]
            names = {name for (name,) in rdflib_rows(texts)} | self._named
            return iter([self._context(name) for name in sorted(names, key=str)])
        pattern = state.pattern(triple)
        return iter([one for found in self._contexts(pattern).values() for one in found])

    def _context(self, name: Any) -> rdflib.Graph:
        return rdflib.Graph(store=self, identifier=name)

    def _contexts(self, pattern: Atom) -> dict[Any, list[rdflib.Graph]]:
        """The graphs of each triple that matches."""
        state = self.knowledge_base.state
        found: dict[Any, list[rdflib.Graph]] = {}
        contexts: dict[Any, rdflib.Graph] = {}
        default = self._context(DATASET_DEFAULT_GRAPH_ID)
        for row in _valid(triple_texts(state, match_default(state, pattern))):
            found[row] = [default]
        for quad in rdflib_rows(quad_texts(state, match_named(state, pattern, None))):
            name = quad[3]
            if name not in contexts:
                contexts[name] = self._context(name)
            found.setdefault(quad[:3], []).append(contexts[name])
        return found

    # -- reading -----------------------------------------------------------------------------------

    def triples(
        self, triple_pattern: Pattern, context: Any = None
    ) -> Iterator[tuple[Triple, Iterator[rdflib.Graph]]]:
        """Iterate over the triples that match, explicit and derived, each with its graphs."""
        state, graph = self.knowledge_base.state, self._graph(context)
        pattern = state.pattern(triple_pattern)
        graphs = cache(partial(self._contexts, pattern))  # read if somebody asks for graphs

        def contexts(triple: Triple) -> Iterator[rdflib.Graph]:
            yield from graphs().get(triple, ())

        for triple in _valid(triple_texts(state, self._matching(pattern, graph))):
            yield triple, contexts(triple)

    def _matching(self, pattern: Atom, graph: _Graph) -> Facts:
        state = self.knowledge_base.state
        if graph is None:
            return match_everywhere(state, pattern)
        if graph is DEFAULT:
            return match_default(state, pattern)
        return match_named(state, pattern, constant_of(graph))

    def __len__(self, context: Any = None) -> int:
        state, graph = self.knowledge_base.state, self._graph(context)
        found = self._matching(state.pattern((None, None, None)), graph)
        subjects = (row[0] for row in triple_texts(state, found))
        return sum(not subject.startswith('"') for subject in subjects)

    def query(
        self,
        query: Any,
        initNs: Mapping[str, Any],  # noqa: N803  as rdflib names it
        initBindings: Mapping[str, Identifier],  # noqa: N803
        queryGraph: Any,  # noqa: N803
        **kwargs: Any,
    ) -> Result:
        """Answer a query by Corollary's SPARQL."""
        dataset = self._dataset(queryGraph)
        if not isinstance(query, str) or initBindings or dataset is None:
            raise NotImplementedError  # rdflib then evaluates the query over `triples`
        self._declare(initNs)
        kb = self.knowledge_base
        if is_pattern(query):
            answer = kb.query(query)
        else:
            with kb.state.guard:
                answer = kb.state.query_engine().query(query, kb.prefixes, dataset=dataset)
        if isinstance(answer, Solutions):
            return answer.to_rdflib()
        result = Result("ASK" if isinstance(answer, bool) else "CONSTRUCT")
        if isinstance(answer, bool):
            result.askAnswer = answer
        else:
            result.graph = answer.to_rdflib()
        return result

    def update(
        self,
        update: Any,
        initNs: Mapping[str, Any],  # noqa: N803
        initBindings: Mapping[str, Identifier],  # noqa: N803
        queryGraph: Any,  # noqa: N803
        **kwargs: Any,
    ) -> None:
        """Execute a SPARQL Update request as one transaction, after the collected changes.

        Patterns match derived triples, too; only explicit ones can be deleted.
        """
        dataset = self._dataset(queryGraph)
        is_named = dataset is not None and dataset.named == ()
        if not isinstance(update, str) or initBindings or dataset is None or is_named:
            raise NotImplementedError  # rdflib then evaluates the request over `triples`
        self._declare(initNs)
        with self.knowledge_base.transaction() as tx:
            tx.update(update, default_graph=dataset)

    def _dataset(self, graph: Any) -> Dataset | None:
        """The dataset of a query over a graph; None if our SPARQL cannot name the graph."""
        found = None if graph == "__UNION__" else self._graph(graph)
        if found is None:
            return Dataset()
        if found is DEFAULT:
            return DATASET
        return Dataset((IRI(str(found)),), ()) if isinstance(found, rdflib.URIRef) else None

    # -- namespaces ----------------------------------------------------------------------------

    def _declare(self, prefixes: Mapping[str, Any]) -> None:
        """Use prefixes in queries and in what the knowledge base prints."""
        state = self._kb.state
        state.prefixes = {**state.prefixes, **{name: str(iri) for name, iri in prefixes.items()}}

    def bind(self, prefix: str, namespace: rdflib.URIRef, override: bool = True) -> None:
        """Bind a prefix."""
        if override or prefix not in self._bound:
            self._bound = {p: n for p, n in self._bound.items() if n != namespace}
            self._bound[prefix] = namespace

    def namespace(self, prefix: str) -> rdflib.URIRef | None:
        """The namespace of a prefix."""
        return self._bound.get(prefix)

    def prefix(self, namespace: rdflib.URIRef) -> str | None:
        """The prefix of a namespace."""
        return next((p for p, n in self._bound.items() if n == namespace), None)

    def namespaces(self) -> Iterator[tuple[str, rdflib.URIRef]]:
        """Iterate over prefixes and namespaces."""
        yield from self._bound.items()


def _valid(rows: Iterable[Sequence[str]]) -> Iterator[Triple]:
    """The triples that RDF allows."""
    for subject, predicate, object_ in rdflib_rows(rows):
        is_subject = subject is not None and not isinstance(subject, rdflib.Literal)
        if is_subject and object_ is not None and isinstance(predicate, rdflib.URIRef):
            yield cast("Triple", (subject, predicate, object_))


def _named(graph: _Graph) -> Identifier | None:
    return graph if isinstance(graph, Identifier) else None
