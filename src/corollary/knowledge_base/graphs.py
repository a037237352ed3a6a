"""Named graphs: from changes of graphs to changes of explicit facts.

A request concerns graphs: its triples are those of the default graph, its quads those of named
graphs. The reasoner knows explicit facts only. `explicit_changes` translates one to the other, so
that a triple is explicit for as long as a graph has it; see `corollary.core.graphs` for the
relations that record the graphs. Without named graphs a request is what the reasoner gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from corollary.core.changes import Changes
from corollary.core.compile import TRIPLES, compile_rule
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine, Facts
from corollary.core.graphs import (
    DEFAULT,
    DEFAULTS,
    NAMESPACE,
    PSEUDO_GRAPHS,
    QUAD,
    REASON_OVER,
    RECORDS,
)
from corollary.core.proof import Proof
from corollary.core.tables import Tables, argument_columns, decode, encode, narrow, scatter
from corollary.errors import InvalidInput, require_type
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    IRI,
    QUADS,
    TRIPLE,
    TRIPLE_COLUMNS,
    TRIPLES_NAME,
    Atom,
    BlankNode,
    Constant,
    Rule,
    Variable,
)
from corollary.reasoning.engines import is_in_process

if TYPE_CHECKING:
    from corollary.knowledge_base.state import KnowledgeState

_WANTED = Predicate("_wanted")
_FOUND = Predicate("_found")
_BY_LOOKUP = 32  # look up quads of triples if there are this many times more quads than triples


@dataclass(frozen=True)
class Reach:
    """The graphs that rules read: all of them, or the default graph and named graphs by id."""

    default: bool = True
    graphs: Ids | None = None  # sorted; None: all named graphs

    @classmethod
    def of(cls, explicit: Facts, dictionary: Dictionary) -> Reach:
        """Read it from the explicit facts."""
        if REASON_OVER not in explicit.predicates():
            return cls()
        ids = np.sort(explicit.rows(REASON_OVER)[:, 0])
        is_default = ids == np.uint32(dictionary.id(DEFAULT))
        return cls(bool(is_default.any()), ids[~is_default])

    def quads(self, rows: Ids) -> Ids:
        """Select the quads that rules read."""
        return rows if self.graphs is None else rows[np.isin(rows[:, 3], self.graphs)]


def has_graphs(facts: Facts) -> bool:
    """Test whether facts record graphs."""
    known = facts.predicates()
    return QUAD in known or DEFAULTS in known or REASON_OVER in known


def explicit_changes(
    requested: Changes[Facts], before: Facts, engine: Engine[Facts]
) -> Changes[Facts]:
    """The changes of explicit facts for changes of graphs.

    >>> from corollary.knowledge_base.base import KnowledgeBase
    >>> kb = KnowledgeBase("[?y, <q>, ?x] :- [?x, <p>, ?y] .")
    >>> _ = kb.update("INSERT DATA { GRAPH <g> { <a> <p> <b> } GRAPH <h> { <a> <p> <b> } }")
    >>> print(kb.update("DROP GRAPH <g>"))
    - [<a>, <p>, <b>] <g>
    >>> print(kb.update("DROP GRAPH <h>"))
    - [<a>, <p>, <b>]
    - [<a>, <p>, <b>] <h>
    - [<b>, <q>, <a>]
    """
    inserted, deleted = requested.inserted, requested.deleted
    if not (has_graphs(before) or has_graphs(inserted) or has_graphs(deleted)):
        return requested
    graphs = _Graphs(before, engine)
    return graphs.changes(requested)


class _Graphs:
    """The graphs before a request."""

    def __init__(self, before: Facts, engine: Engine[Facts]) -> None:
        self.before, self.engine, self.dictionary = before, engine, engine.dictionary

    def changes(self, requested: Changes[Facts]) -> Changes[Facts]:
        before, (inserted, deleted) = self.before, (requested.inserted, requested.deleted)
        records, lost, gained = before.only(RECORDS), deleted.only(RECORDS), inserted.only(RECORDS)
        after = records.difference(lost).union(gained)
        new_triples, old_triples = inserted.only([TRIPLES]), deleted.only([TRIPLES])
        old_reach, reach = (Reach.of(r, self.dictionary) for r in (records, after))
        gained_triples = self.triples(_rows(gained))
        concerned = new_triples.union(old_triples).union(gained_triples)
        if QUAD in lost.predicates():
            concerned = concerned.union(self.triples(_rows(lost)))
        if REASON_OVER in lost.predicates() or REASON_OVER in gained.predicates():
            everything = before.only([TRIPLES]).union(self.triples(_rows(records)))
            concerned = concerned.union(everything).union(defaults_of(records, self.engine))
        old_quads = self.quads_of(concerned, records)
        quads = _rows(self._facts(old_quads).difference(lost).union(gained.only([QUAD])))
        default_graph = self.default_graph(concerned, before, old_reach, old_quads)
        default_graph = default_graph.difference(old_triples).union(new_triples)
        is_new = not len(old_quads) and reach.graphs is None
        named = gained_triples if is_new else self.triples(reach.quads(quads))
        explicit = named.union(default_graph) if reach.default else named
        recorded = default_graph.intersection(named) if reach.default else default_graph
        asserted = new_triples.union(gained_triples).intersection(explicit)
        old_defaults = defaults_of(records, self.engine).intersection(concerned)
        plain = (TRIPLES, DEFAULTS)
        return Changes(
            inserted.without(plain)
            .union(explicit.difference(before))
            .union(asserted)
            .union(self._recorded(recorded.difference(old_defaults))),
            deleted.without(plain)
            .union(concerned.intersection(before).difference(explicit))
            .union(self._recorded(old_defaults.difference(recorded))),
            requested.added_rules,
            requested.removed_rules,
        )

    def default_graph(
        self, concerned: Facts | None, explicit: Facts, reach: Reach, quads: Ids
    ) -> Facts:
        """The triples of the default graph, among those concerned; `quads` are theirs."""
        recorded = defaults_of(explicit, self.engine)
        triples = explicit.only([TRIPLES])
        if concerned is not None:
            recorded, triples = recorded.intersection(concerned), triples.intersection(concerned)
        if not reach.default:
            return recorded
        return triples.difference(self.triples(reach.quads(quads))).union(recorded)

    def quads_of(self, triples: Facts, records: Facts) -> Ids:
        """The quads of some triples."""
        quads = records.only([QUAD])
        if not len(triples) or not len(quads):
            return np.empty((0, 4), np.uint32)
        if len(triples) * _BY_LOOKUP < len(quads) or not is_in_process(self.engine):
            return self._looked_up(triples, quads)
        rows = quads.rows(QUAD)
        mask = np.zeros(len(rows), np.bool_)
        for predicate, columns, places in scatter(TRIPLES, [*rows.T[:3]], self.dictionary):
            if predicate in triples.predicates():
                wanted = triples.rows(predicate)
                mask[places] = np.isin(_keys(columns), _keys([*wanted.T]))
        return rows[mask]

    def _looked_up(self, triples: Facts, quads: Facts) -> Ids:
        """The quads of few triples, by a join."""
        subject, property_, object_, graph = (Variable(name) for name in "spog")
        row = (subject, property_, object_)
        wanted, quad = Atom(_WANTED.relation, row), Atom(QUADS, (*row, graph))
        head = Atom(_FOUND.relation, quad.terms)
        rule = compile_rule(Rule(head, (wanted, quad)), self.dictionary)
        tables = {_WANTED: np.stack(_columns(triples, self.dictionary), axis=1)}
        found = self.engine.derive([rule], quads.union(self.engine.facts(tables))).facts
        return found.rows(_FOUND) if _FOUND in found.predicates() else np.empty((0, 4), np.uint32)

    def _facts(self, quads: Ids) -> Facts:
        return self.engine.facts({QUAD: quads} if len(quads) else {})

    def triples(self, *quads: Ids) -> Facts:
        """The triples of quads."""
        return triples_of_quads(np.concatenate(quads), self.engine)

    def _recorded(self, triples: Facts) -> Facts:
        if not len(triples):
            return self.engine.facts({})
        rows = np.stack(_columns(triples, self.dictionary), axis=1)
        return self.engine.facts({DEFAULTS: rows})


# -- reading graphs --------------------------------------------------------------------------------


def quads_of(facts: Facts) -> Ids:
    """The quads among facts, one per row: subject, property, object and graph."""
    return _rows(facts)


def quads_of_triples(triples: Facts, explicit: Facts, engine: Engine[Facts]) -> Ids:
    """The explicit quads of some triples."""
    return _Graphs(explicit, engine).quads_of(triples, explicit.only(RECORDS))


def triples_of_quads(quads: Ids, engine: Engine[Facts]) -> Facts:
    """The triples of quads, without their graphs."""
    return engine.facts(narrow(TRIPLE, [*quads.T[:3]], engine.dictionary))


def defaults_of(records: Facts, engine: Engine[Facts]) -> Facts:
    """The triples that are recorded as those of the default graph (`DEFAULTS`)."""
    if DEFAULTS not in records.predicates():
        return engine.facts({})
    return engine.facts(narrow(TRIPLE, [*records.rows(DEFAULTS).T], engine.dictionary))


def default_graph(explicit: Facts, engine: Engine[Facts], among: Facts | None = None) -> Facts:
    """The triples of the default graph, perhaps `among` some triples."""
    if not has_graphs(explicit):
        triples = explicit.only([TRIPLES])
        return triples if among is None else triples.intersection(among)
    graphs = _Graphs(explicit, engine)
    records = explicit.only(RECORDS)
    quads = _rows(records) if among is None else graphs.quads_of(among, records)
    return graphs.default_graph(among, explicit, Reach.of(records, engine.dictionary), quads)


def unread_triples(explicit: Facts, engine: Engine[Facts]) -> Facts:
    """The triples of graphs that rules do not read, as far as they are not explicit."""
    graphs, records = _Graphs(explicit, engine), explicit.only(RECORDS)
    every = graphs.triples(_rows(records)).union(defaults_of(records, engine))
    return every.difference(explicit)


def graph_difference(old: Facts, new: Facts, engine: Engine[Facts]) -> tuple[Facts, Facts]:
    """What graphs lose and gain between two sets of explicit facts, as for a request."""
    lost, gained = old.difference(new), new.difference(old)
    if not (has_graphs(old) or has_graphs(new)):
        return lost, gained
    graphs = _Graphs(old, engine)
    concerned = lost.union(gained).only([TRIPLES])
    for facts in (lost, gained):
        concerned = concerned.union(graphs.triples(_rows(facts))).union(defaults_of(facts, engine))
    if REASON_OVER in (*lost.predicates(), *gained.predicates()):
        for facts in (old, new):
            concerned = concerned.union(facts.only([TRIPLES])).union(defaults_of(facts, engine))
    before, after = (default_graph(facts, engine, concerned) for facts in (old, new))
    kept = (TRIPLES, DEFAULTS)
    lost = lost.without(kept).union(before.difference(after))
    return lost, gained.without(kept).union(after.difference(before))


def into_graph(tables: Tables, graph: Constant, dictionary: Dictionary) -> Tables:
    """Put the triples of tables into a named graph; quads keep their graphs."""
    triples = {p: rows for p, rows in tables.items() if p.relation == TRIPLE and len(rows)}
    if not triples:
        return tables
    parts = []
    for predicate, rows in triples.items():
        columns = argument_columns(predicate, rows, dictionary)
        columns.append(np.full(len(rows), dictionary.encode([graph])[0], np.uint32))
        parts.append(np.stack(columns, axis=1))
    if QUAD in tables:
        parts.append(tables[QUAD])
    others = {p: rows for p, rows in tables.items() if p.relation != TRIPLE}
    return {**others, QUAD: np.concatenate(parts)}


def explicit_tables(tables: Tables, engine: Engine[Facts]) -> Facts:
    """The explicit facts of a new knowledge base with these graphs."""
    facts, nothing = engine.facts(tables), engine.facts({})
    return explicit_changes(Changes(facts, nothing), nothing, engine).inserted


def check_graph(graph: Constant) -> Constant:
    """Fail unless a term can name a graph that has statements.

    >>> check_graph(IRI("urn:g")).value
    'urn:g'
    """
    if not isinstance(graph, IRI | BlankNode):
        raise InvalidInput("E349", "the name of a graph is an IRI or a blank node")
    if graph in PSEUDO_GRAPHS or (isinstance(graph, IRI) and graph.value.startswith(NAMESPACE)):
        raise InvalidInput(
            "E349",
            f"<{graph.value}> is no graph that statements can be put into",
            "the default graph needs no name",
        )
    return graph


def held_triples(deleted: Facts, explicit: Facts, engine: Engine[Facts]) -> Facts:
    """The facts whose deletion from graphs was requested, as the triples that may still hold.

    A triple that another named graph has is not among those that were deleted from a named graph.
    """
    if QUAD not in deleted.predicates():
        return deleted
    triples = engine.facts(narrow(TRIPLE, [*deleted.rows(QUAD).T[:3]], engine.dictionary))
    return deleted.without(RECORDS).union(triples.difference(explicit))


def graph_tables(state: KnowledgeState, graph: Constant | None) -> Tables:
    """All explicit statements of a named graph, or of the default graph."""
    explicit = state.reasoner.explicit
    if graph is None:
        triples = own_default_graph(state)
        return {predicate: triples.rows(predicate) for predicate in triples.predicates()}
    rows, known = _rows(explicit), state.dictionary.find(graph)
    rows = rows[:0] if known is None else rows[rows[:, 3] == np.uint32(known)]
    return {QUAD: rows} if len(rows) else {}


def statements_of(state: KnowledgeState, graph: Constant) -> dict[str, tuple[Facts, Facts]]:
    """The explicit and derived statements of a graph, by relation: triples, and quads."""
    reasoner, engine = state.reasoner, state.engine
    nothing = engine.facts({})
    if graph == DEFAULT:
        triples = outside_of_graphs(state, "explicit"), outside_of_graphs(state, "derived")
        return {TRIPLES_NAME: triples, QUADS: (nothing, nothing)}
    subject, predicate, object_ = (Variable(name) for name in TRIPLE_COLUMNS)
    quads = reasoner.match(Atom(QUADS, (subject, predicate, object_, graph)))
    own = quads.intersection(reasoner.explicit)
    both = own, quads.difference(own)

    def triples_of(quads: Facts) -> Facts:
        return engine.facts(narrow(TRIPLE, [*_rows(quads).T[:3]], engine.dictionary))

    return {TRIPLES_NAME: (triples_of(both[0]), triples_of(both[1])), QUADS: both}


def graphs_of(state: KnowledgeState, proof: Proof) -> dict[Atom, tuple[Constant, ...]]:
    """The graphs of the explicit triples of a proof; none if there are no named graphs.

    >>> from corollary.knowledge_base.base import KnowledgeBase
    >>> kb = KnowledgeBase("[?y, <q>, ?x] :- [?x, <p>, ?y] .")
    >>> _ = kb.update("INSERT DATA { <a> <p> <b> GRAPH <g> { <a> <p> <b> } }")
    >>> print(kb.explain("[<b>, <q>, <a>]"))
    [<b>, <q>, <a>]   by [?y, <q>, ?x] :- [?x, <p>, ?y]
    └─ [<a>, <p>, <b>]   explicit in <urn:x-corollary:default>, <g>
    """
    explicit, engine, dictionary = state.reasoner.explicit, state.engine, state.dictionary
    if not has_graphs(explicit):
        return {}
    leaves = [node.fact for node in proof.nodes() if node.kind == "explicit"]
    triples = [fact for fact in leaves if isinstance(fact, Atom) and fact.relation == TRIPLE]
    wanted = engine.facts(encode(triples, dictionary))
    found: dict[Atom, list[Constant]] = {}
    for fact in decode(default_graph(explicit, engine, wanted), dictionary):
        found.setdefault(fact, []).append(DEFAULT)
    rows = quads_of_triples(wanted, explicit, engine)
    for row in rows[np.lexsort(rows.T)].tolist():
        *terms, graph = dictionary.terms(row)
        found.setdefault(Atom(TRIPLE, tuple(terms)), []).append(graph)
    return {fact: tuple(graphs) for fact, graphs in found.items()}


def outside_of_graphs(state: KnowledgeState, which: str) -> Facts:
    """The explicit triples of the default graph, and the derived triples of no named graph."""
    reasoner, engine = state.reasoner, state.engine
    found = engine.facts({})
    if which != "derived":
        found = default_graph(reasoner.explicit, engine)
    if which != "explicit":
        names = tuple(Variable(name) for name in TRIPLE_COLUMNS)
        every = reasoner.match(Atom(TRIPLE, names))
        quads = reasoner.match(Atom(QUADS, (*names, Variable("graph"))))
        named = engine.facts(narrow(TRIPLE, [*_rows(quads).T[:3]], engine.dictionary))
        found = found.union(every.difference(reasoner.explicit).difference(named))
    return found


def own_default_graph(state: KnowledgeState) -> Facts:
    """The triples of the default graph, without axioms of the program that no data state."""
    triples = default_graph(state.reasoner.explicit, state.engine)
    own = list(state.axioms.stated - state.axioms.asserted)
    if not own:
        return triples
    return triples.difference(state.engine.facts(encode(own, state.dictionary)))


ReasonOver = str | Iterable[object]
"""`union`, `default`, or the names of graphs."""


def reason_over_terms(graphs: ReasonOver, read: Callable[[object], Constant]) -> list[Constant]:
    """The graphs that rules read; none stands for all.

    >>> reason_over_terms("default", lambda term: IRI(str(term)))
    [IRI(value='urn:x-corollary:default')]
    """
    require_type(graphs, Iterable, "graphs", "give union, default or names of graphs")
    names: list[object] = [graphs] if isinstance(graphs, str) else list(graphs)
    if "union" in names:
        if len(names) > 1:
            raise InvalidInput("E349", "union is all graphs", "leave the other graphs out")
        return []
    if not names:
        raise InvalidInput("E349", "rules read no graph", "give union, default or names of graphs")
    return [DEFAULT if name in ("default", DEFAULT) else read(name) for name in names]


def graph_named(text: str, prefixes: Mapping[str, str]) -> Constant:
    """Read the name of a graph; that of the default graph is a name, too.

    >>> graph_named("http://example.org/g", {}), graph_named("default", {}) == DEFAULT
    (IRI(value='http://example.org/g'), True)
    """
    from corollary.knowledge_base.data import DataReader  # imports this module

    if text in ("default", DEFAULT.value, f"<{DEFAULT.value}>"):
        return DEFAULT
    return DataReader(Dictionary(), prefixes, {}).graph(text)


def reason_over_rows(graphs: Iterable[Constant], dictionary: Dictionary) -> Tables:
    """The facts that record which graphs rules read."""
    ids = dictionary.encode(graphs)
    return {REASON_OVER: ids.reshape(-1, 1)} if len(ids) else {}


# -- arrays ----------------------------------------------------------------------------------------


def _rows(facts: Facts) -> Ids:
    return facts.rows(QUAD) if QUAD in facts.predicates() else np.empty((0, 4), np.uint32)


def _columns(triples: Facts, dictionary: Dictionary) -> list[Ids]:
    parts = [
        argument_columns(predicate, triples.rows(predicate), dictionary)
        for predicate in triples.predicates()
    ]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _keys(columns: Sequence[Ids]) -> Ids:
    """One number for each row of one or two columns."""
    first = columns[0].astype(np.uint64)
    return first if len(columns) == 1 else first << np.uint64(32) | columns[1]  # type: ignore[return-value]


def parts_by_graph(quads: Ids) -> Iterator[tuple[int, Ids]]:
    """Group quads by graph."""
    order = np.argsort(quads[:, 3], kind="stable")
    ordered = quads[order]
    starts = np.flatnonzero(np.diff(ordered[:, 3])) + 1
    for part in np.split(ordered, starts) if len(ordered) else ():
        yield int(part[0, 3]), part
