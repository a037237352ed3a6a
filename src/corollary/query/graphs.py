"""Datasets: which triples a pattern matches, and the patterns of `GRAPH`.

A pattern matches the *active graph*. That is a union of sources: a named graph, by its id, or one
of the pseudo-graphs of `core.graphs`. Inside `GRAPH ?g`, the patterns that need only joins read the
table of all quads, with the graph as a fourth column (`EachGraph`). A pattern whose result depends
on a graph as a whole, such as one with MINUS, EXISTS, a path or a subquery, is translated once for
each named graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from corollary.core.graphs import DEFAULT, DERIVED, EXPLICIT, PSEUDO_GRAPHS, UNION
from corollary.errors import require_type
from corollary.lang.syntax import IRI, Variable
from corollary.query import relations
from corollary.query.conditions import patterns
from corollary.query.plan import Column, Relation, Scan, Source
from corollary.query.relations import Translation, select
from corollary.query.syntax.algebra import Node

_SOURCES: Mapping[IRI, Source] = {
    UNION: "union",
    DEFAULT: "default",
    EXPLICIT: "explicit",
    DERIVED: "derived",
}


class Dataset(NamedTuple):
    """The graphs that form the default graph, and the named graphs; None stands for all."""

    default: tuple[IRI, ...] = (UNION,)
    named: tuple[IRI, ...] | None = None
    replaces: bool = False  # FROM and FROM NAMED of a query


@dataclass(frozen=True)
class Active:
    """The active graph: a union of sources. `variable` is bound to its only one in solutions."""

    sources: tuple[Source | int, ...]
    variable: str | None = None


@dataclass(frozen=True)
class EachGraph:
    """Any named graph, or one of those listed: a variable is bound to its name."""

    variable: str
    named: tuple[int, ...] | None


def dataset_of(default_graph: str | IRI | Dataset = "union") -> Dataset:
    """The dataset of a query without FROM.

    >>> dataset_of("default").default[0].value
    'urn:x-corollary:default'
    """
    if isinstance(default_graph, Dataset):
        return default_graph
    if isinstance(default_graph, IRI):
        return Dataset((default_graph,))
    require_type(default_graph, str, "a graph", "give its IRI, 'union' or 'default'")
    known = {"union": UNION, "default": DEFAULT}
    return Dataset((known.get(default_graph) or IRI(default_graph.strip("<>")),))


def start(t: Translation, dataset: Dataset) -> None:
    """Set the dataset of a translation."""
    t.dataset = dataset
    sources = (source for graph in dataset.default for source in _sources(t, graph))
    t.active = Active(tuple(dict.fromkeys(sources)))


def is_union(active: Active | EachGraph) -> bool:
    """Whether patterns match all triples."""
    return isinstance(active, Active) and active.sources == ("union",)


def _sources(t: Translation, graph: IRI) -> tuple[Source | int, ...]:
    if t.has_unread and graph in (UNION, EXPLICIT):
        return (_SOURCES[graph], "unread")
    return (_source(t, graph),)


def _source(t: Translation, graph: IRI) -> Source | int:
    return _SOURCES[graph] if graph in _SOURCES else t.id(graph)


# -- GRAPH -----------------------------------------------------------------------------------------


def graph(
    node: Node, t: Translation, translate: Callable[[Node, Translation], Relation]
) -> Relation:
    """Translate `GRAPH`."""
    if isinstance(node.term, Variable):
        return _every(node, t, translate)
    dataset: Dataset = t.dataset
    named = dataset.named
    if named is not None and node.term not in named:
        with _active(t, Active(())):
            return translate(node.p, t)
    with _active(t, Active(_sources(t, node.term))):
        found = translate(node.p, t)
    if node.p.name == "BGP" and not node.p.triples and node.term not in PSEUDO_GRAPHS:
        return relations.join(t, found, _drop_variables(t, _names(t, "", (t.id(node.term),))))
    return found


def _every(
    node: Node, t: Translation, translate: Callable[[Node, Translation], Relation]
) -> Relation:
    variable = node.term.name
    dataset: Dataset = t.dataset
    named = None if dataset.named is None else tuple(_source(t, g) for g in dataset.named)
    ids = None if named is None else tuple(one for one in named if isinstance(one, int))
    if _needs_joins_only(node.p):
        with _active(t, EachGraph(variable, ids)):
            return translate(node.p, t)
    if named is None:
        t.plan.graphs = tuple(t.graphs())
        named = t.plan.graphs
    parts = []
    for one in named:
        if not isinstance(one, int):
            continue  # ?g ranges over named graphs
        with _active(t, Active((one,), variable)):
            found = translate(node.p, t)
        parts.append(relations.join(t, found, _constant(t, variable, one)))
    if not parts:
        with _active(t, Active((), variable)):
            found = translate(node.p, t)
        return _nothing(t, relations.join(t, found, _constant(t, variable, -1)))
    return relations.union(t, *parts) if len(parts) > 1 else parts[0]


@contextmanager
def _active(t: Translation, active: Active | EachGraph) -> Iterator[None]:
    outer, t.active = t.active, active
    yield
    t.active = outer


@contextmanager
def graph_hidden(t: Translation) -> Iterator[None]:
    """Translate a subquery, which does not see the variable of the active graph."""
    active = t.active
    with _active(t, Active(active.sources) if isinstance(active, Active) else active):
        yield


def _needs_joins_only(node: Node) -> bool:
    """Whether all operators treat the graphs apart if their patterns bind the graph."""
    match node.name:
        case "BGP":
            return not any(isinstance(triple[1], Node) for triple in node.triples)
        case "Join" | "Union":
            return all(map(_needs_joins_only, node.parts))
        case "LeftJoin":
            inner = _needs_joins_only(node.p1) and _needs_joins_only(node.p2)
            return inner and _binds(node.p1) and (node.expr is None or not patterns(node.expr))
        case "Filter" | "Extend":
            inner = _needs_joins_only(node.p) and _binds(node.p)
            return inner and not patterns(node.expr)
        case _:
            return False


def _binds(node: Node) -> bool:
    """Whether every solution of a pattern has the graph: it contains a pattern of triples."""
    match node.name:
        case "BGP":
            return True
        case "Join":
            return any(map(_binds, node.parts))
        case "Union":
            return all(map(_binds, node.parts))
        case "LeftJoin":
            return _binds(node.p1)
        case "Filter" | "Extend":
            return _binds(node.p)
        case _:
            return False


# -- patterns of triples ---------------------------------------------------------------------------


def table(t: Translation, ids: Sequence[int | None]) -> tuple[str, Mapping[int, str]]:
    """The triples of the active graph as a FROM item, and its columns by position.

    `ids` are the constants of the pattern, as far as they are known. The fourth column of any
    named graph is the graph.
    """
    active = t.active
    columns = {0: "s", 1: "p", 2: "o"}
    where = [f"{name} = {term}" for name, term in zip("spo", ids, strict=True) if term is not None]
    if isinstance(active, EachGraph):
        if active.named is not None:
            where.append(_among(active.named))
        return f"({_select(t, 'quads', where, 'spog')})", {**columns, 3: "g"}
    graphs = tuple(source for source in active.sources if isinstance(source, int))
    parts = [_select(t, source, where) for source in active.sources if not isinstance(source, int)]
    if graphs or not parts:
        parts.append(_select(t, "quads", [*where, _among(graphs)]))
    if len(parts) > 1:
        return f"({' UNION '.join(parts)})", columns
    if len(graphs) > 1:  # a triple in several of them counts once
        return f"(SELECT DISTINCT s, p, o FROM ({parts[0]}) AS {t.fresh()})", columns
    return f"({parts[0]})", columns


def bound_graph(t: Translation) -> tuple[str, int] | None:
    """The variable that solutions bind to the only graph of the active one, and its id."""
    active = t.active
    if isinstance(active, Active) and active.variable is not None and active.sources:
        (source,) = active.sources
        assert isinstance(source, int), "a named graph"
        return active.variable, source
    return None


def no_triples(t: Translation) -> Relation:
    """The solutions of a pattern without triples: one, or in `GRAPH ?g` one for each graph."""
    if isinstance(t.active, EachGraph):
        return _names(t, t.active.variable, t.active.named)
    bound = bound_graph(t)
    return relations.UNIT if bound is None else _constant(t, *bound)


def _select(t: Translation, source: Source, where: Sequence[str], columns: str = "spo") -> str:
    scan = Scan(None, None, None, source=source)
    if scan not in t.plan.scans:
        t.plan.scans.append(scan)
    name, _ = t.dialect.scan(scan, t.plan)
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {', '.join(columns)} FROM {name} AS {t.fresh()}{condition}"


def _among(graphs: Sequence[int]) -> str:
    return f"g IN ({', '.join(map(str, graphs))})" if graphs else "FALSE"


def _names(t: Translation, variable: str, named: tuple[int, ...] | None) -> Relation:
    """The names of graphs that have statements; all that a dataset lists."""
    name = t.name(variable)
    if named is not None and variable:
        if not named:
            return _nothing(t, _constant(t, variable, -1))
        sql = " UNION ALL ".join(f"SELECT CAST({one} AS BIGINT) AS {name}" for one in named)
        return Relation(sql, {variable: Column(name)})
    inner = _select(t, "quads", [] if named is None else [_among(named)], "g")
    return Relation(
        f"SELECT DISTINCT g AS {name} FROM ({inner}) AS {t.fresh()}", {variable: Column(name)}
    )


def _drop_variables(t: Translation, relation: Relation) -> Relation:
    return Relation(f"SELECT 1 AS unit FROM ({relation.sql}) AS {t.fresh()}", {})


def _constant(t: Translation, variable: str, graph: int) -> Relation:
    name = t.name(variable)
    return Relation(f"SELECT CAST({graph} AS BIGINT) AS {name}", {variable: Column(name)})


def _nothing(t: Translation, relation: Relation) -> Relation:
    alias = t.fresh()
    listed = select(relations.names(relation, alias))
    return Relation(
        f"SELECT {listed} FROM ({relation.sql}) AS {alias} WHERE FALSE", relation.columns
    )


def without_graph(t: Translation, relation: Relation) -> Relation:
    """The right side of a MINUS, without the variable of the active graph, which is not shared."""
    bound = bound_graph(t)
    if bound is None or bound[0] not in relation.columns:
        return relation
    alias = t.fresh()
    columns = {v: c for v, c in relation.columns.items() if v != bound[0]}
    listed = select(f"{alias}.{c.name}" for c in columns.values())
    return Relation(f"SELECT {listed} FROM ({relation.sql}) AS {alias}", columns)
