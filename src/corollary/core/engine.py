"""The protocols between algorithms and engines.

All papers stand on one operator, Π[Ip, In : Δp, Δn] (Hu, Motik, Horrocks 2019, §4): the heads of
rule instances whose positive body holds in Ip, whose negative body is absent from In, and which use
at least one fact of Δp positively or of Δn negatively. `Engine.derive` is that operator,
`Engine.close` its fixpoint, and `Engine.support` its inverse. An algorithm is written over these,
once; an engine decides how sets are stored and rules are joined.

A set of facts is immutable and duplicate-free, and is kept by *narrow* predicates (`compile.home`):
a relation, a property, or a class.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from corollary.core.compile import CompiledRule
from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.stratify import Predicate


class Facts(Protocol):
    """An immutable set of facts; the operations share what they can with their operands."""

    def __len__(self) -> int: ...

    def predicates(self) -> Collection[Predicate]:
        """The narrow predicates that have facts."""
        ...

    def rows(self, predicate: Predicate) -> Ids:
        """The facts of a narrow predicate as an array with one row a fact, in sorted order."""
        ...

    def union(self, other: Self) -> Self: ...

    def difference(self, other: Self) -> Self: ...

    def intersection(self, other: Self) -> Self: ...

    def changed(self, deleted: Self, inserted: Self) -> tuple[Self, Self, Self]:
        """(self \\ deleted) ∪ inserted, and by what it differs: the facts that go and come."""
        ...

    def replaced(self, lost: Self, gained: Self, *, shared: Self | None = None) -> Self:
        """Without some of its facts, and with some that it has not; neither is looked for.

        `shared` is a set that has the same facts of these predicates as the result.
        """
        ...

    def only(self, predicates: Collection[Predicate]) -> Self:
        """The facts of these predicates; wide ones stand for all that they cover."""
        ...

    def without(self, predicates: Collection[Predicate]) -> Self:
        """The facts of all other predicates."""
        ...

    def renamed(self, predicate: Predicate, new: Predicate) -> Self:
        """The facts of one predicate as facts of another one, and nothing else."""
        ...


F = TypeVar("F", bound=Facts)


@dataclass(frozen=True)
class Derived(Generic[F]):
    """What `derive` and `close` give: heads without duplicates, and the instances considered.

    `counts` (if asked for) holds, for each predicate, the number of instances of each row of
    `facts.rows(predicate)`.
    """

    facts: F
    instances: int
    rounds: int = 1
    counts: Mapping[Predicate, npt.NDArray[np.int64]] | None = None


@dataclass(frozen=True)
class Difference(Generic[F]):
    """By what facts differ from those before, and the rule instances considered.

    `facts` are all of them afterwards, if an engine has made them anew.
    """

    inserted: F
    deleted: F
    instances: int
    facts: F | None = None


@dataclass(frozen=True)
class Support:
    """Instances of one rule: row i of `bindings` holds the values of the rule's bound variables."""

    rule: CompiledRule
    bindings: Ids


class Counts(Protocol[F]):
    """How many rule instances derive each fact: immutable, cheap to change a little."""

    def plus(self, derived: Derived[F]) -> Self:
        """With the instances of a counted `derive` added."""
        ...

    def minus(self, derived: Derived[F]) -> Self:
        """With the instances of a counted `derive` taken away."""
        ...

    def without(self, predicates: Collection[Predicate]) -> Self:
        """With the counts of these predicates set to 0; wide ones stand for all they cover."""
        ...

    def positive(self, facts: F) -> F:
        """Those of the facts that are derived at least once."""
        ...

    def of(self, facts: F) -> Mapping[Predicate, npt.NDArray[np.int64]]:
        """The count of each of the facts, in the order of `facts.rows(predicate)`."""
        ...

    def facts(self) -> F:
        """All facts whose count is not 0."""
        ...


OnRound = Callable[[int, int], None]  # round, facts derived so far; may raise to stop


class Engine(Protocol[F]):
    """How sets of facts are stored and rules are joined."""

    dictionary: Dictionary

    def facts(self, tables: Mapping[Predicate, Ids]) -> F:
        """A set of facts from rows (narrow predicates, duplicates allowed)."""
        ...

    def derive(
        self,
        rules: Sequence[CompiledRule],
        facts: F,
        *,
        negative: F | None = None,
        delta: F | None = None,
        negative_delta: F | None = None,
        heads: F | None = None,
        counted: bool = False,
    ) -> Derived[F]:
        """Π[facts, negative : delta, negative_delta]; without deltas, Π[facts, negative].

        `negative` is `facts` if left out; `delta` is a subset of `facts`, and `negative_delta` has
        nothing in common with `negative`. Each rule instance is considered once.

        With `heads`, only instances whose head is one of them are considered; and without deltas
        and counts, one instance of a head is enough, so that there may be fewer than all.
        """
        ...

    def close(
        self,
        rules: Sequence[CompiledRule],
        facts: F,
        delta: F,
        *,
        negative: F | None = None,
        on_round: OnRound | None = None,
    ) -> Derived[F]:
        """The least J with Π[facts ∪ J, negative : delta ∪ J] ⊆ facts ∪ J, less `facts`.

        `negative` is `facts` if left out: what the rules negate or aggregate is complete before.
        """
        ...

    def support(
        self,
        rules: Sequence[CompiledRule],
        heads: F,
        *,
        within: F,
        negative: F | None = None,
        unproved: F | None = None,
        several: bool = False,
    ) -> Iterator[Support]:
        """Instances whose head is in `heads` and whose body holds in `within`, rule by rule.

        The instances of a rule may come in several pieces, so that one who needs a few can stop.
        With `unproved`, the body may also hold there: instances with exactly one body fact that is
        not in `within` (at least two if `several`). Negated atoms read `negative`, which is
        `within` if left out.
        """
        ...

    def reclose(
        self, rule: CompiledRule, before: F, after: F, *, changed: F, known: F
    ) -> Difference[F]:
        """By what the closure under P(x, z) :- P(x, y), E(y, z), or E first, differs afterwards.

        `before` and `after` hold given facts of P and facts of E, `changed` those that only one of
        the two has, and `known` the facts of P that follow from `before`.
        """
        ...

    def reconnect(
        self, edge: Predicate, pair: Predicate, before: F, after: F, *, changed: F, known: F
    ) -> Difference[F]:
        """By what the pairs of all nodes of each connected component differ afterwards.

        `before`, `after` and `changed` hold facts of `edge`, taken without direction; the result is
        facts of `pair`, as is `known`, the pairs of `before`.
        """
        ...

    def components(self, edge: Predicate, least: Predicate, facts: F) -> F:
        """Each node of an edge and the least node that it is connected to, as facts of `least`.

        That is what the pairs of `reconnect` come from: a fact for each node, where the pairs of a
        component are the square of its nodes.
        """
        ...

    def counts(self) -> Counts[F]:
        """Counts that are all 0."""
        ...
