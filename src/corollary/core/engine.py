"""The protocols between algorithms and engines.

All papers build on one operator, Π[Ip, In : Δp, Δn] (Hu, Motik, Horrocks 2019, §4): the heads of
rule instances whose positive body holds in Ip, whose negative body is absent from In, and which use
at least one fact of Δp positively or of Δn negatively. `Engine.derive` is that operator,
`Engine.close` its fixpoint, and `Engine.support` its inverse. An algorithm is written over these,
once; an engine decides how sets are stored and rules are joined.

A set of facts is immutable and duplicate-free, and is partitioned by *narrow* predicates
(`compile.narrow_predicate`): relations, properties and classes.
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
    """An immutable set of facts; results share storage with operands where possible.

    A class that inherits from it needs none of `columns`, `changed` and `replaced`.
    """

    def __len__(self) -> int: ...

    def predicates(self) -> Collection[Predicate]:
        """The narrow predicates that have facts."""
        ...

    def rows(self, predicate: Predicate) -> Ids:
        """The facts of a narrow predicate as an array, one row per fact, sorted."""
        ...

    def columns(self, predicate: Predicate) -> Sequence[Ids]:
        """The facts of a narrow predicate as columns, in any order; none without facts."""
        rows = self.rows(predicate)
        return [*rows.T] if len(rows) else []

    def union(self, other: Self) -> Self: ...

    def difference(self, other: Self) -> Self: ...

    def intersection(self, other: Self) -> Self: ...

    def changed(self, deleted: Self, inserted: Self) -> tuple[Self, Self, Self]:
        """(self \\ deleted) ∪ inserted, with the facts actually deleted and actually inserted."""
        lost = self.intersection(deleted).difference(inserted)
        gained = inserted.difference(self)
        return self.replaced(lost, gained), lost, gained

    def replaced(self, lost: Self, gained: Self, *, shared: Self | None = None) -> Self:
        """Remove `lost` and add `gained`. Unchecked: `lost ⊆ self`, `gained ∩ self = ∅`.

        `shared` is a set with the same facts of these predicates as the result, to share storage.
        """
        return self.difference(lost).union(gained)

    def only(self, predicates: Collection[Predicate]) -> Self:
        """The facts of these predicates; a wide predicate selects all that it covers."""
        ...

    def without(self, predicates: Collection[Predicate]) -> Self:
        """The facts of all other predicates."""
        ...

    def renamed(self, predicate: Predicate, new: Predicate) -> Self:
        """The facts of one predicate, renamed to another; all other facts are dropped."""
        ...


F = TypeVar("F", bound=Facts)


@dataclass(frozen=True)
class Derived(Generic[F]):
    """The result of `derive` and `close`: distinct heads, and the number of instances considered.

    `counts` (if requested) holds, for each predicate, the number of instances of each row of
    `facts.rows(predicate)`.
    """

    facts: F
    instances: int
    rounds: int = 1
    counts: Mapping[Predicate, npt.NDArray[np.int64]] | None = None


@dataclass(frozen=True)
class Difference(Generic[F]):
    """The changes of facts, and the number of rule instances considered.

    `facts` holds all facts afterwards, if the engine recomputed them.
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
    """The number of rule instances that derive each fact; immutable, with cheap small updates."""

    def plus(self, derived: Derived[F]) -> Self:
        """Add the instances of a counted `derive`."""
        ...

    def minus(self, derived: Derived[F]) -> Self:
        """Subtract the instances of a counted `derive`."""
        ...

    def without(self, predicates: Collection[Predicate]) -> Self:
        """Reset the counts of these predicates, and of those that wide ones cover."""
        ...

    def positive(self, facts: F) -> F:
        """Select the facts with a positive count."""
        ...

    def of(self, facts: F) -> Mapping[Predicate, npt.NDArray[np.int64]]:
        """The count of each of the facts, in the order of `facts.rows(predicate)`."""
        ...

    def facts(self) -> F:
        """All facts whose count is not 0."""
        ...


OnRound = Callable[[int, int], None]  # round, facts derived so far; may raise to stop


class Engine(Protocol[F]):
    """Stores sets of facts and evaluates rules over them.

    A class that inherits from it needs no `close`. Operations on graphs are optional
    (`graphs.GraphEngine`). `tests/engines/toy.py` is an engine of the least that is required.
    """

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

        `negative` defaults to `facts`; `delta` is a subset of `facts`, and `negative_delta` has
        nothing in common with `negative`. Each rule instance is considered once.

        With `heads`, only instances with one of these heads are considered; without deltas and
        counts, the engine may stop at the first instance of a head.
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

        `negative` defaults to `facts`: negated and aggregated predicates are already complete.
        """
        absent = negative if negative is not None else facts
        known, new = facts, delta
        instances = rounds = 0
        while len(new):
            found = self.derive(rules, known, negative=absent, delta=new)
            instances += found.instances
            rounds += 1
            new = found.facts.difference(known)
            known = known.union(new)
            if on_round is not None:
                on_round(rounds, len(known) - len(facts))
        return Derived(known.difference(facts), instances, rounds)

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

        The instances of a rule may arrive in several batches, so that callers can stop early.
        With `unproved`, the body may also hold there: instances with exactly one body fact that is
        not in `within` (at least two if `several`). Negated atoms read `negative`, by default
        `within`.
        """
        ...

    def counts(self) -> Counts[F]:
        """Create counts that are all 0."""
        ...
