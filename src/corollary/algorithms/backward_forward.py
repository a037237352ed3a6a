"""Backward/Forward: delete only what has no proof.

Paper: Motik, Nenov, Piro, Horrocks: Incremental Update of Datalog Materialisation: the
Backward/Forward Algorithm, AAAI 2015, Algorithms 1–3.

Idea: before the consequences of a fact are deleted, backward chaining looks for the facts that
could support it, and forward chaining among these decides which of them are true. A fact that is
still true is left alone with all its consequences.

Invariants (after every call of `Search.prove`): ◇ every checked fact is proved, or each of its
instances has only checked facts and facts known to be true in its body; no disproved fact is true;
the proved facts are the checked ones that are true.

Differs from the paper, which takes one fact at a time, depth first:
- All facts of a round of deletion are checked together. Goals go through stages, and none moves on
  while another has an earlier stage before it: explicit or derived by true facts; instances with
  one body atom that is not known to be true; the other instances, a few goals at a time. So proofs
  close to explicit facts are found first, and the search ends early as in the paper.
- Explicit facts and lower strata count as true without being checked.
- All facts that were disproved are deleted at once: they are facts of I without a proof, which the
  paper's loop would come to later.
- When all goals are proved, facts that were checked on the way but are not decided are forgotten,
  whereas the paper decides them too; they are checked again if something else asks for them.
- The guard H ∈ C of rule (8) is part of the join, and a new goal is first tried with the facts that
  are known to be true; so no fact needs to be delayed (Y), and still no derivation is considered
  twice (Theorem 1).

Cost: follows the support of what is deleted, not its consequences.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cached_property
from typing import Generic

from corollary.algorithms import step as common
from corollary.algorithms.step import Removal, Step
from corollary.algorithms.tuning import tuning
from corollary.core.engine import F
from corollary.core.tables import body_tables, first_rows, joined


class BackwardForward(Generic[F]):
    """Delete facts without a proof, and no others."""

    def __init__(self, candidates: F | None = None) -> None:
        """`candidates` are what loses an instance to lower strata, if that is known already."""
        self._candidates = candidates

    def delete(self, step: Step[F]) -> Generator[int, None, Removal[F]]:
        """Algorithm 1. Yields how many more facts were checked than should be, see `choose`."""
        search = self.search(step)
        deleted = processed = step.nothing  # D \ P, O
        new = self.candidates(step)
        seen = new  # D
        while len(new):
            yield from search.prove(new)
            unproved = search.disproved.difference(deleted)
            if not len(unproved):
                break
            deleted = deleted.union(unproved)
            if not step.kept_recursive:
                break
            found = step.consequences(unproved, processed, phase="deletion propagation").facts
            processed = deleted
            new = found.difference(seen).difference(deleted)
            seen = seen.union(new)
            step.statistics.rounds += 1
            yield search.excess
        step.statistics.consider("checked", search.size)
        return Removal(deleted, step.nothing)

    def candidates(self, step: Step[F]) -> F:
        """E⁻, and what loses an instance to lower strata."""
        if self._candidates is not None:
            return self._candidates
        return step.candidates(phase="deletion propagation")

    def search(self, step: Step[F]) -> Search[F]:
        """The search for proofs in a stratum."""
        return Search(step)

    def insert(self, step: Step[F], rederived: F) -> F:
        """Step DR5 of DRed."""
        return common.insert(step, rederived)


class Search(Generic[F]):
    """Algorithms 2 and 3: which facts of a stratum have a proof from the new explicit facts."""

    def __init__(self, step: Step[F]) -> None:
        self.step = step
        self.checked = step.nothing  # C
        self.proved = step.nothing  # P
        self.disproved = step.nothing  # S
        self.size = 0  # how many facts were checked
        self.excess = 0  # of these, beyond a few for each goal
        self._expandable = step.nothing  # goals whose instances were not looked at
        self._exhaustible = step.nothing  # goals of which only the first instances were
        self._batch = 1  # goals that look at all their instances at once

    @cached_property
    def true(self) -> F:
        """Lower strata, explicit and proved facts."""
        step = self.step
        return step.facts.without(step.stratum.predicates).union(step.only_own(step.explicit))

    @cached_property
    def own(self) -> F:
        """The old facts of the stratum."""
        return self.step.only_own(self.step.facts)

    def prove(self, goals: F) -> Generator[int, None, None]:
        """Decide the goals: afterwards they are proved, or disproved."""
        fresh = goals.difference(self.checked)
        self.excess -= tuning.goal_checked_facts_allowance * len(fresh)
        together = max(tuning.backward_batch_facts, len(goals))
        while True:
            if len(fresh):
                self._enter(fresh, goals)
            if not self.step.stratum.recursive:
                return
            if not len(goals.difference(self.proved)):
                # What was checked on the way and is not decided was never asked for.
                self.checked = self.proved.union(self.disproved)
                self._expandable = self._exhaustible = self.step.nothing
                return
            yield self.excess
            self._expandable = self._expandable.difference(self.proved)
            self._exhaustible = self._exhaustible.difference(self.proved)
            if len(self._expandable):
                batch = self._some(self._expandable, together)
                self._expandable = self._expandable.difference(batch)
                if self.step.stratum.nonlinear:
                    self._exhaustible = self._exhaustible.union(batch)
                fresh = self._open_facts(batch, several=False)
            elif len(self._exhaustible):
                batch = self._some(self._exhaustible, self._batch)
                self._batch = min(2 * self._batch, together)
                self._exhaustible = self._exhaustible.difference(batch)
                # An instance with two such atoms before may have one now, as the other was proved.
                fresh = self._open_facts(batch, several=True)
                fresh = fresh.union(self._open_facts(batch, several=False))
            else:
                self._disprove()
                return

    def _disprove(self) -> None:
        """Nothing is left to look at: what is not proved is not true."""
        self.disproved = self.checked.difference(self.proved)

    def _some(self, facts: F, number: int) -> F:
        if len(facts) <= number:
            return facts
        return self.step.engine.facts(first_rows(facts, number))

    def _enter(self, fresh: F, goals: F) -> None:
        """New facts to decide: try what is known to be true, then pass on what is proved."""
        stratum = self.step.stratum
        self.size += len(fresh)
        self.excess += len(fresh)
        self.checked = self.checked.union(fresh)
        # R(x)ᴾ ← R(x)ᶜ ∧ R(x)ᴱ
        explicit = fresh.intersection(self.step.explicit)
        if len(explicit):
            self.proved = self.proved.union(explicit)
            fresh = fresh.difference(explicit)
        found = self.derived_below(fresh)
        if not stratum.recursive:
            self.proved = self.proved.union(found)
            self.disproved = self.checked.difference(self.proved)
            return
        left = fresh.difference(found)
        found = found.union(self.step.supported(left, self.true, stratum.recursive, "saturation"))
        self._saturate(found, goals)
        self._expandable = self._expandable.union(fresh.difference(self.proved))

    def derived_below(self, goals: F) -> F:
        """Those goals that a nonrecursive rule derives."""
        step = self.step
        return step.supported(goals, step.facts, step.stratum.nonrecursive, "backward")

    def _saturate(self, delta: F, goals: F) -> None:
        """Hᴾ ← Hᶜ ∧ B₁ᴾ ∧ … ∧ Bₙᴾ to the fixpoint, or until all goals are proved."""
        step = self.step
        while len(delta):
            self.proved = self.proved.union(delta)
            self.true = self.true.union(delta)
            if not len(goals.difference(self.proved)):
                return
            undecided = self.checked.difference(self.proved).difference(self.disproved)
            derived = step.engine.derive(
                step.stratum.recursive, self.true, delta=delta, heads=undecided
            )
            delta = step.count("saturation", derived).facts

    def _open_facts(self, goals: F, *, several: bool) -> F:
        """Facts, not goals so far, that could prove the goals together with what is true."""
        step = self.step
        rules = step.stratum.nonlinear if several else step.stratum.recursive
        unproved = self.own.difference(self.disproved)
        tables = []
        for support in step.engine.support(
            rules, goals, within=self.true, unproved=unproved, several=several
        ):
            step.statistics.count("backward", len(support.bindings))
            tables.append(body_tables(support, step.engine.dictionary, step.stratum.may_derive))
        found = step.engine.facts(joined(tables)).intersection(unproved)
        return found.difference(self.true).difference(self.checked)
