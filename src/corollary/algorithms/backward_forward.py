"""Backward/Forward: delete only facts without a proof.

Paper: Motik, Nenov, Piro, Horrocks: Incremental Update of Datalog Materialisation: the
Backward/Forward Algorithm, AAAI 2015, Algorithms 1–3.

Idea: before the consequences of a fact are deleted, backward chaining collects the facts that could
support it, and forward chaining among these decides which of them are true. A fact that is still
true stays, with all its consequences.

Invariants (after every call of `Search.prove`): ◇ every checked fact is proved, or the bodies of
all its instances hold only checked facts and facts known to be true; no disproved fact is true; the
proved facts are the checked ones that are true.

Differs from the paper, which checks one fact at a time, depth first:
- All facts of a deletion round are checked together. Goals pass through stages, and none advances
  while another is in an earlier stage: explicit or derived by true facts; instances with one body
  atom not known to be true; the other instances, a few goals at a time. So proofs close to explicit
  facts are found first, and the search ends early as in the paper.
- Explicit facts and lower strata count as true without being checked.
- All disproved facts are deleted at once: they are facts of I without a proof, which the paper's
  loop would reach later.
- When all goals are proved, facts checked on the way but still undecided are dropped, whereas the
  paper decides them too; they are checked again when needed.
- The guard H ∈ C of rule (8) is part of the join, and a new goal is first tried with the facts
  known to be true; so no fact needs to be delayed (Y), and still no derivation is considered twice
  (Theorem 1).

Cost: depends on the support of the deleted facts, not on their consequences.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cached_property
from typing import Generic

from corollary.algorithms.stratum import Algorithm, Removal, StratumUpdate
from corollary.algorithms.tuning import tuning
from corollary.core.engine import F
from corollary.core.tables import body_tables, first_rows, joined


class BackwardForward(Algorithm[F]):
    """Delete exactly the facts without a proof."""

    def __init__(self, candidates: F | None = None) -> None:
        """`candidates` are the facts that lose an instance to lower strata, if already computed."""
        self._candidates = candidates

    def delete(self, update: StratumUpdate[F]) -> Generator[int, None, Removal[F]]:
        """Algorithm 1. Yields the number of checked facts beyond the allowance, see `choose`."""
        search = self.search(update)
        update.statistics.consider("checked", 0)
        deleted, remaining = update.nothing, update.propagating  # D \ P, I \ O
        new = self.candidates(update)
        seen = new  # D
        while len(new):
            yield from search.prove(new)
            unproved = search.disproved.difference(deleted)
            if not len(unproved):
                break
            deleted = deleted.union(unproved)
            if not update.old_recursive:
                break
            lost = update.consequences(unproved, remaining, phase="deletion propagation").facts
            remaining = remaining.difference(unproved)
            new = lost.difference(seen).difference(deleted)
            seen = seen.union(new)
            update.statistics.rounds += 1
            yield search.excess
        return Removal(deleted, update.nothing)

    def candidates(self, update: StratumUpdate[F]) -> F:
        """E⁻, and the facts that lose an instance to lower strata."""
        if self._candidates is not None:
            return self._candidates
        return update.candidates(phase="deletion propagation")

    def search(self, update: StratumUpdate[F]) -> Search[F]:
        """Create the search for proofs in a stratum."""
        return Search(update)


class Search(Generic[F]):
    """Algorithms 2 and 3: decide which facts of a stratum have a proof from the new E."""

    def __init__(self, update: StratumUpdate[F]) -> None:
        self.update = update
        self.checked = update.nothing  # C
        self.proved = update.nothing  # P
        self.disproved = update.nothing  # S
        self.excess = 0  # checked facts beyond the allowance of the goals
        self._expandable = update.nothing  # goals without an explored instance
        self._exhaustible = update.nothing  # goals with only the first instances explored
        self._batch = 1  # goals whose remaining instances are explored together

    @cached_property
    def true(self) -> F:
        """Lower strata, explicit and proved facts."""
        update = self.update
        return update.facts.without(update.stratum.predicates).union(
            update.only_own(update.explicit)
        )

    @cached_property
    def own(self) -> F:
        """The old facts of the stratum."""
        return self.update.only_own(self.update.facts)

    def prove(self, goals: F) -> Generator[int, None, None]:
        """Decide the goals: afterwards each is proved or disproved."""
        fresh = goals.difference(self.checked)
        self.excess -= tuning.goal_checked_facts_allowance * len(fresh)
        limit = max(tuning.backward_batch_facts, len(goals))
        while True:
            if len(fresh):
                self._enter(fresh, goals)
            if not self.update.stratum.recursive:
                return
            if not len(goals.difference(self.proved)):
                # Undecided facts that were checked on the way are no goals: drop them.
                self.checked = self.proved.union(self.disproved)
                self._expandable = self._exhaustible = self.update.nothing
                return
            yield self.excess
            self._expandable = self._expandable.difference(self.proved)
            self._exhaustible = self._exhaustible.difference(self.proved)
            if len(self._expandable):
                batch = self._some(self._expandable, limit)
                self._expandable = self._expandable.difference(batch)
                if self.update.stratum.nonlinear:
                    self._exhaustible = self._exhaustible.union(batch)
                fresh = self._open_facts(batch, several=False)
            elif len(self._exhaustible):
                batch = self._some(self._exhaustible, self._batch)
                self._batch = min(2 * self._batch, limit)
                self._exhaustible = self._exhaustible.difference(batch)
                # An instance that had two open atoms may have one now, as the other was proved.
                fresh = self._open_facts(batch, several=True)
                fresh = fresh.union(self._open_facts(batch, several=False))
            else:
                self._disprove()
                return

    def _disprove(self) -> None:
        """All instances are explored: facts that are not proved are not true."""
        self.disproved = self.checked.difference(self.proved)

    def _some(self, facts: F, number: int) -> F:
        if len(facts) <= number:
            return facts
        return self.update.engine.facts(first_rows(facts, number))

    def _enter(self, fresh: F, goals: F) -> None:
        """Check new facts: first against the facts known to be true, then saturate."""
        stratum = self.update.stratum
        self.update.statistics.consider("checked", len(fresh))
        self.excess += len(fresh)
        self.checked = self.checked.union(fresh)
        # R(x)ᴾ ← R(x)ᶜ ∧ R(x)ᴱ
        explicit = fresh.intersection(self.update.explicit)
        if len(explicit):
            self.proved = self.proved.union(explicit)
            fresh = fresh.difference(explicit)
        derived = self.derived_below(fresh)
        if not stratum.recursive:
            self.proved = self.proved.union(derived)
            self.disproved = self.checked.difference(self.proved)
            return
        others = fresh.difference(derived)
        derived = derived.union(
            self.update.supported(others, self.true, stratum.recursive, "saturation")
        )
        self._saturate(derived, goals)
        self._expandable = self._expandable.union(fresh.difference(self.proved))

    def derived_below(self, goals: F) -> F:
        """Select the goals that a nonrecursive rule derives."""
        update = self.update
        return update.supported(goals, update.facts, update.stratum.nonrecursive, "backward")

    def _saturate(self, delta: F, goals: F) -> None:
        """Hᴾ ← Hᶜ ∧ B₁ᴾ ∧ … ∧ Bₙᴾ to the fixpoint, or until all goals are proved."""
        update = self.update
        while len(delta):
            self.proved = self.proved.union(delta)
            self.true = self.true.union(delta)
            if not len(goals.difference(self.proved)):
                return
            undecided = self.checked.difference(self.proved).difference(self.disproved)
            derived = update.engine.derive(
                update.stratum.recursive, self.true, delta=delta, heads=undecided
            )
            delta = update.count("saturation", derived).facts

    def _open_facts(self, goals: F, *, several: bool) -> F:
        """Collect unchecked facts that could prove the goals together with true facts."""
        update = self.update
        rules = update.stratum.nonlinear if several else update.stratum.recursive
        unproved = self.own.difference(self.disproved)
        tables = []
        for support in update.engine.support(
            rules, goals, within=self.true, unproved=unproved, several=several
        ):
            update.statistics.count("backward", len(support.bindings))
            tables.append(body_tables(support, update.engine.dictionary, update.stratum.may_derive))
        body_facts = update.engine.facts(joined(tables)).intersection(unproved)
        return body_facts.difference(self.true).difference(self.checked)
