"""Symmetric and transitive relations: R(x, y) :- R(y, x) and R(x, z) :- R(x, y), R(y, z).

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §6, Algorithm 7.

Idea: R holds all pairs within each connected component of the graph of external facts.

Invariants: `forest` connects exactly what the external facts connect, without cycles; R holds all
pairs of each of its trees.

Differs from the paper: components are not kept as sets of nodes but as a spanning forest of
external facts, and the pairs of a component are those that its tree connects, so that the search of
the transitive module enumerates them.

Cost: one composition for each pair and each edge of its tree at a node, the size of the result;
the rules have an instance for every three nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from corollary.algorithms.modular.transitive import (
    Relation,
    X,
    Y,
    Z,
    described,
    extended,
    is_plain,
)
from corollary.core.compile import CompiledRule, compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Derived, Engine, F, OnRound
from corollary.lang.syntax import Rule


class SymmetricTransitive(Generic[F]):
    """The module of one relation with both rules."""

    def __init__(self, rule: CompiledRule, dictionary: Dictionary) -> None:
        self.relation = Relation(rule.source.head)
        self.name = f"symmetric-transitive {described(self.relation.predicate)}"
        self.forest: F | None = None  # C_R
        r, edge = self.relation.atom, self.relation.edge

        def compiled(*rules: Rule) -> Sequence[CompiledRule]:
            return [compile_rule(each, dictionary) for each in rules]

        self.turned = compiled(Rule(r(Y, X), (edge(X, Y),)))
        self.linear = compiled(
            Rule(r(X, Z), (r(X, Y), edge(Y, Z))), Rule(r(X, Z), (r(X, Y), edge(Z, Y)))
        )

    def add(self, engine: Engine[F], facts: F, delta: F, on_round: OnRound | None) -> Derived[F]:
        """Algorithm 7."""
        own = delta.only([self.relation.predicate])
        if not len(own):
            return Derived(own, 0, 0)
        given = own.renamed(self.relation.predicate, self.relation.external)
        known = self.forest if self.forest is not None else engine.facts({})
        # What is connected already stays connected by the same edges.
        forest = engine.forest(given, self.relation.external, known)
        fresh = forest.difference(known)
        self.forest = forest
        turned = engine.derive(self.turned, fresh)
        new = turned.facts.difference(facts)
        done = extended(
            self.linear,
            self.relation,
            engine,
            facts.union(new),
            own.union(new),
            fresh,
            forest,
            on_round,
        )
        instances = turned.instances + done.instances
        return Derived(new.union(done.facts), instances, done.rounds)


def is_symmetric(rule: CompiledRule) -> bool:
    """R(x, y) :- R(y, x)."""
    return (
        is_plain(rule)
        and len(rule.body) == 1
        and rule.body[0].arguments == rule.head.arguments[::-1]
    )
