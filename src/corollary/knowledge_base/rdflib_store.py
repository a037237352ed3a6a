"""A store plugin of rdflib: `Graph(store="corollary")` is a graph that reasons.

The graph holds explicit and derived triples, and its queries are answered by Corollary's SPARQL.
Additions and removals are collected, and become one transaction when the graph is next read.
`graph.open(path)` opens a store; `Graph(store=CorollaryStore("rdfs"))` chooses rules, by default
those of OWL 2 RL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import pyarrow.compute as pc
import rdflib
from rdflib.query import Result
from rdflib.store import NO_STORE, VALID_STORE, Store
from rdflib.term import Identifier, Node

from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.rules import Rules
from corollary.knowledge_base.stores import is_store
from corollary.query.results import Solutions, TripleTable
from corollary.rdf.rdflib_terms import rdflib_rows

Triple = tuple[Node, Node, Node]
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

    context_aware = False
    formula_aware = False
    transaction_aware = True
    graph_aware = False

    def __init__(
        self,
        configuration: str | Rules | Iterable[Rules] | KnowledgeBase | None = None,
        identifier: Identifier | None = None,
    ) -> None:
        """Create a store; the configuration is a knowledge base, or its rules."""
        self._pending: list[tuple[bool, Triple]] = []
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
        """Insert a triple with the next transaction."""
        self._pending.append((True, triple))

    def remove(self, triple: Pattern, context: Any = None) -> None:
        """Delete the explicit triples that match."""
        self.commit()
        explicit = self._kb.match(*triple, which="explicit")
        self._pending += [(False, row) for row in _triples(explicit)]

    def commit(self) -> None:
        """Commit the collected changes as one transaction."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        self._declare(self._bound)
        with self._kb.transaction() as tx:
            rows: list[Triple] = []
            inserts = pending[0][0]
            for is_insert, triple in [*pending, (not pending[-1][0], pending[-1][1])]:
                if is_insert != inserts:
                    (tx.insert if inserts else tx.delete)(rows)
                    inserts, rows = is_insert, []
                rows.append(triple)

    def close(self, commit_pending_transaction: bool = False) -> None:
        """Commit the collected changes, whatever rdflib asks for: they were made."""
        self.commit()

    def rollback(self) -> None:
        """Drop the changes that are not committed."""
        self._pending = []

    # -- reading -----------------------------------------------------------------------------------

    def triples(self, triple_pattern: Pattern, context: Any = None) -> Iterator[tuple[Any, Any]]:
        """Iterate over the triples that match, explicit and derived."""
        for triple in _triples(self.knowledge_base.match(*triple_pattern)):
            yield triple, iter(())

    def __len__(self, context: Any = None) -> int:
        subjects = self.knowledge_base.match().table["subject"]
        return int(pc.sum(pc.invert(pc.starts_with(subjects, '"'))).as_py() or 0)

    def query(
        self,
        query: Any,
        initNs: Mapping[str, Any],  # noqa: N803  as rdflib names it
        initBindings: Mapping[str, Identifier],  # noqa: N803
        queryGraph: str,  # noqa: N803
        **kwargs: Any,
    ) -> Result:
        """Answer a query by Corollary's SPARQL."""
        if not isinstance(query, str) or initBindings:
            raise NotImplementedError  # rdflib then evaluates the query over `triples`
        self._declare(initNs)
        answer = self.knowledge_base.query(query)
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
        queryGraph: str,  # noqa: N803
        **kwargs: Any,
    ) -> None:
        """Execute a SPARQL Update request as one transaction, after the collected changes.

        Patterns match derived triples, too; only explicit ones can be deleted.
        """
        if not isinstance(update, str) or initBindings:
            raise NotImplementedError  # rdflib then evaluates the request over `triples`
        self._declare(initNs)
        self.knowledge_base.update(update)

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


def _triples(table: TripleTable) -> Iterator[Triple]:
    """The triples that RDF allows."""
    for subject, predicate, object_ in rdflib_rows(table.texts()):
        is_subject = subject is not None and not isinstance(subject, rdflib.Literal)
        if is_subject and object_ is not None and isinstance(predicate, rdflib.URIRef):
            yield cast("Triple", (subject, predicate, object_))
