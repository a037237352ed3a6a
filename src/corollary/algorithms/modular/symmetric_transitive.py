"""Symmetric and transitive relations: R(x, y) :- R(y, x) and R(x, z) :- R(x, y), R(y, z).

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §6, Algorithms
7–9.

Idea: R holds all pairs within each connected component of the graph of external facts.

Invariants: `state` (X_R) holds the external facts; R holds all pairs of its components.

Differs from the paper: the components are not kept but found where external facts change
(`Engine.reconnect`), so that nothing but X_R is kept, and Y_R is what is left of it after deletion.
As in the transitive module, `update` deletes and adds at once where X_R decides everything: an
external fact whose ends stay connected changes nothing.

Cost: the pairs that come or go, and a search that stops where the ends of a deleted fact meet; the
rules have an instance for every three nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from corollary.algorithms.modular.framework import Certain, Change
from corollary.algorithms.modular.transitive import OfExternal, X, Y, is_plain
from corollary.core.compile import CompiledRule
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Derived, Difference, Engine, F, OnRound
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom, Rule


class SymmetricTransitive(OfExternal[F]):
    """The module of one relation with both rules."""

    def __init__(self, rules: Sequence[CompiledRule], dictionary: Dictionary) -> None:
        super().__init__(rules, dictionary, "symmetric-transitive")
        r, edge, goal = self.relation.atom, self.relation.edge, self.relation.goal
        node = Predicate(f"NODE {self.relation.predicate!r}").relation
        x, y = Atom(node, (X,)), Atom(node, (Y,))
        self.ends = self.compiled(Rule(x, (goal(X, Y),)), Rule(y, (goal(X, Y),)))
        self.connected = self.compiled(Rule(y, (x, edge(X, Y))), Rule(x, (y, edge(X, Y))))
        self.between = self.compiled(Rule(r(X, Y), (edge(X, Y), x)))

    def add(self, engine: Engine[F], facts: F, delta: F, on_round: OnRound | None) -> Derived[F]:
        """Algorithm 7."""
        own, external = self.own(delta), self.external(engine)
        new = own.difference(external)
        if not len(new):
            return Derived(new, 0, 0)
        self.state = external.union(new)
        known = self.own(facts).difference(own) if len(external) else external
        found = self._reconnected(engine, external, self.state, new, known)
        return Derived(found.inserted.difference(facts), found.instances)

    def delete(
        self, engine: Engine[F], facts: F, negative: F, delta: F, certain: Certain
    ) -> Derived[F]:
        """Algorithm 8: all pairs of the components of deleted facts."""
        own = self.own(delta)
        if not len(own):
            return Derived(own, 0)
        external = self.external(engine)
        pairs = self._pairs(engine, self._near(engine, external, own))
        found = pairs.inserted.intersection(facts).difference(own)
        self.state = external.difference(own)
        return Derived(found.difference(certain(found)), pairs.instances)

    def rederive(self, engine: Engine[F], facts: F, deleted: F) -> Derived[F]:
        """Algorithm 9: the components of what is left."""
        own = self.own(deleted)
        pairs = self._pairs(engine, self._near(engine, self.external(engine), own))
        return Derived(pairs.inserted.intersection(own), pairs.instances)

    def support(self, engine: Engine[F], facts: F, goals: F) -> F:
        """The external facts of the components."""
        return self._near(engine, self.external(engine), self.own(goals))

    def update(self, engine: Engine[F], change: Change[F]) -> Difference[F]:
        """Compare the components of X_R before and after."""
        external = self.external(engine)
        self.state = external.replaced(change.lost, change.gained, shared=change.given)
        changed = change.lost.union(change.gained)
        return self._reconnected(engine, external, self.state, changed, self.own(change.before))

    def _near(self, engine: Engine[F], external: F, goals: F) -> F:
        """The external facts of the components of goals."""
        edges = self.edges(external)
        ends = engine.derive(self.ends, self.asked(goals)).facts
        nodes = ends.union(engine.close(self.connected, ends.union(edges), ends).facts)
        return engine.derive(self.between, nodes.union(edges)).facts

    def _pairs(self, engine: Engine[F], external: F) -> Difference[F]:
        nothing = engine.facts({})
        return self._reconnected(engine, nothing, external, external, nothing)

    def _reconnected(
        self, engine: Engine[F], before: F, after: F, changed: F, known: F
    ) -> Difference[F]:
        predicate = self.relation.predicate
        return engine.reconnect(predicate, predicate, before, after, changed=changed, known=known)


def is_symmetric(rule: CompiledRule) -> bool:
    """R(x, y) :- R(y, x)."""
    return (
        is_plain(rule)
        and len(rule.body) == 1
        and rule.body[0].arguments == rule.head.arguments[::-1]
    )
