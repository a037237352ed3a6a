"""Symmetric and transitive relations: R(x, y) :- R(y, x) and R(x, z) :- R(x, y), R(y, z).

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §6, Algorithms
7–9.

Idea: R holds all pairs within each connected component of the graph of external facts.

Invariants: `state` (X_R) holds the external facts; R holds all pairs of its components.

Differs from the paper: the components are not stored but recomputed where external facts change
(`graphs.reconnect`), so that X_R is the only state, and Y_R is the rest of it after deletion. As in
the transitive module, where X_R decides everything `update` computes insertions and deletions at
once: an external fact whose ends stay connected changes nothing.

Cost: the pairs inserted or deleted, and the external facts of the affected components, read until
they connect all nodes; the rules themselves have an instance for every three nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from corollary.algorithms.modular.framework import Certain
from corollary.algorithms.modular.transitive import ClosedExternal, X, Y, is_plain
from corollary.core.compile import CompiledRule
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Derived, Difference, Engine, F
from corollary.core.graph_engine import reconnect
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom, Rule


class SymmetricTransitive(ClosedExternal[F]):
    """The module of one symmetric and transitive relation."""

    def __init__(self, rules: Sequence[CompiledRule], dictionary: Dictionary) -> None:
        super().__init__(rules, dictionary, "symmetric-transitive")
        r, edge, goal = self.relation.atom, self.relation.edge, self.relation.goal
        node = Predicate(f"NODE {self.relation.predicate!r}").relation
        x, y = Atom(node, (X,)), Atom(node, (Y,))
        self.ends = self.compiled(Rule(x, (goal(X, Y),)), Rule(y, (goal(X, Y),)))
        self.connected = self.compiled(Rule(y, (x, edge(X, Y))), Rule(x, (y, edge(X, Y))))
        self.between = self.compiled(Rule(r(X, Y), (edge(X, Y), x)))

    def delete(
        self, engine: Engine[F], facts: F, negative: F, delta: F, certain: Certain
    ) -> Derived[F]:
        """Algorithm 8: all pairs of the components of deleted facts."""
        own = self.own(delta)
        if not len(own):
            return Derived(own, 0)
        external = self.x_r(engine)
        pairs = self._pairs(engine, self._near(engine, external, own))
        lost = pairs.inserted.intersection(facts).difference(own)
        self.state = external.difference(own)
        return Derived(lost.difference(certain(lost)), pairs.instances)

    def rederive(self, engine: Engine[F], facts: F, deleted: F) -> Derived[F]:
        """Algorithm 9: all pairs of the remaining components."""
        own = self.own(deleted)
        pairs = self._pairs(engine, self._near(engine, self.x_r(engine), own))
        return Derived(pairs.inserted.intersection(own), pairs.instances)

    def support(self, engine: Engine[F], facts: F, goals: F) -> F:
        """The external facts of the components."""
        return self._near(engine, self.x_r(engine), self.own(goals))

    def _near(self, engine: Engine[F], external: F, goals: F) -> F:
        """Return the external facts of the components that the goals belong to."""
        edges = self.edges(external)
        ends = engine.derive(self.ends, self.goals(goals)).facts
        nodes = ends.union(engine.close(self.connected, ends.union(edges), ends).facts)
        return engine.derive(self.between, nodes.union(edges)).facts

    def _pairs(self, engine: Engine[F], external: F) -> Difference[F]:
        nothing = engine.facts({})
        return self.closure_diff(engine, nothing, external, external, nothing)

    def closure_diff(
        self, engine: Engine[F], before: F, after: F, changed: F, known: F
    ) -> Difference[F]:
        """The diff of the connected pairs."""
        predicate = self.relation.predicate
        return reconnect(engine, predicate, predicate, before, after, changed=changed, known=known)


def is_symmetric(rule: CompiledRule) -> bool:
    """R(x, y) :- R(y, x)."""
    return (
        is_plain(rule)
        and len(rule.body) == 1
        and rule.body[0].arguments == rule.head.arguments[::-1]
    )
