"""Operations on graphs that an engine may have algorithms for, and what stands in for them.

Modules for transitive relations and equivalences maintain closures and connected components. An
engine that implements `GraphEngine` searches the graph; for any other `Engine`, the operations are
written over `derive` and `close`: they compute everything again and compare.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from corollary.core.compile import CompiledRule, compile_rule
from corollary.core.engine import Difference, Engine, F
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom, Rule, Variable


@runtime_checkable
class GraphEngine(Protocol[F]):
    """An engine with algorithms for closures and connected components."""

    def reclose(
        self, rule: CompiledRule, before: F, after: F, *, changed: F, known: F
    ) -> Difference[F]:
        """Diff of the closure under P(x, z) :- P(x, y), E(y, z), or with E first.

        `before` and `after` hold the base facts of P and the facts of E, `changed` their symmetric
        difference, and `known` the closure of `before`.
        """
        ...

    def reconnect(
        self, edge: Predicate, pair: Predicate, before: F, after: F, *, changed: F, known: F
    ) -> Difference[F]:
        """Diff of the pairs of nodes in the same connected component.

        `before`, `after` and `changed` hold undirected edges as facts of `edge`; the result, and
        `known`, the pairs of `before`, are facts of `pair`.
        """
        ...

    def components(self, edge: Predicate, least: Predicate, facts: F) -> F:
        """Pair each node with the least node of its component, as facts of `least`.

        This is the compact form of the pairs of `reconnect`: one fact per node instead of the
        square of the nodes of each component.
        """
        ...


def reclose(
    engine: Engine[F], rule: CompiledRule, before: F, after: F, *, changed: F, known: F
) -> Difference[F]:
    """`GraphEngine.reclose`, or the closure of `after` compared with `known`."""
    if isinstance(engine, GraphEngine):
        difference: Difference[F] = engine.reclose(
            rule, before, after, changed=changed, known=known
        )
        return difference
    base = after.only([rule.head.predicate])
    closed = engine.close([rule], after, base)
    return _compared(known, base.union(closed.facts), closed.instances)


def reconnect(
    engine: Engine[F],
    edge: Predicate,
    pair: Predicate,
    before: F,
    after: F,
    *,
    changed: F,
    known: F,
) -> Difference[F]:
    """`GraphEngine.reconnect`, or the pairs of `after` compared with `known`."""
    if isinstance(engine, GraphEngine):
        difference: Difference[F] = engine.reconnect(
            edge, pair, before, after, changed=changed, known=known
        )
        return difference
    pairs, instances = _pairs(engine, edge, after)
    return _compared(known, pairs.renamed(_PAIR, pair), instances)


def components(engine: Engine[F], edge: Predicate, least: Predicate, facts: F) -> F:
    """`GraphEngine.components`, or the least node that each node is connected to."""
    if isinstance(engine, GraphEngine):
        labels: F = engine.components(edge, least, facts)
        return labels
    pairs, _ = _pairs(engine, edge, facts)
    if not len(pairs):
        return pairs
    rows = pairs.rows(_PAIR)
    _, first = np.unique(rows[:, 0], return_index=True)  # rows are in order
    return engine.facts({least: rows[first]})


# The space keeps the names apart from relations of programs.
_EDGE, _PAIR = Predicate("COMPONENT edge"), Predicate("COMPONENT pair")


def _pairs(engine: Engine[F], edge: Predicate, facts: F) -> tuple[F, int]:
    """All pairs of connected nodes, and the number of rule instances considered."""
    x, y, z = (Variable(name) for name in "xyz")

    def rule(head: tuple[Variable, Variable], *body: Atom) -> CompiledRule:
        return compile_rule(Rule(Atom(_PAIR.relation, head), body), engine.dictionary)

    one, other = (Atom(_EDGE.relation, ends) for ends in ((x, y), (y, x)))
    edges = facts.only([edge]).renamed(edge, _EDGE)
    first = engine.derive([rule((x, y), one), rule((x, y), other)], edges)
    # The edges in both directions.
    both = first.facts.renamed(_PAIR, _EDGE).union(first.facts)
    linear = rule((x, z), Atom(_PAIR.relation, (x, y)), Atom(_EDGE.relation, (y, z)))
    closed = engine.close([linear], both, first.facts)
    return first.facts.union(closed.facts), first.instances + closed.instances


def _compared(known: F, facts: F, instances: int) -> Difference[F]:
    return Difference(facts.difference(known), known.difference(facts), instances, facts)
