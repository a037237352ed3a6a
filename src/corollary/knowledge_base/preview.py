"""Previews: the changes that a transaction would make, without making them.

A preview applies the changes to a fork with a dictionary of its own, so nothing remains of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from corollary.algorithms import constraints
from corollary.core.proof import Proof
from corollary.knowledge_base.inconsistencies import Inconsistency, prove_examples
from corollary.knowledge_base.state import KnowledgeState
from corollary.knowledge_base.transaction import Applied, TransactionChanges
from corollary.lang.syntax import Atom, Rule

if TYPE_CHECKING:
    from corollary.knowledge_base.persistence import Committed

_EXAMPLES = 3  # proofs of a new contradiction


@dataclass(frozen=True, eq=False)
class Preview(TransactionChanges):
    """The changes that a transaction would make, and the contradictions it would introduce.

    `version` is the current version.
    """

    contradictions: tuple[Inconsistency, ...] = ()
    """The new violations by constraint, each with up to three proofs."""
    state: KnowledgeState | None = field(default=None, repr=False)
    applied: Applied | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return super().__repr__().replace("changes of", "preview based on")


def contradictions(state: KnowledgeState) -> dict[Rule, constraints.Inconsistency]:
    """The violated constraints, with all violations."""
    return {one.rule: one for one in state.reasoner.inconsistencies(examples=None)}


def new_contradictions(
    state: KnowledgeState,
    before: Mapping[Rule, constraints.Inconsistency],
    prefixes: Mapping[str, str],
) -> Iterator[Inconsistency]:
    """The violations that a state has and did not have before, with proofs."""

    def explain(fact: Atom) -> Proof:
        return replace(state.reasoner.explain(fact), prefixes=prefixes)

    for rule, now in contradictions(state).items():
        known = {_key(one) for one in before[rule].examples} if rule in before else set()
        fresh = [one for one in now.examples if _key(one) not in known]
        if fresh:
            examples = tuple(fresh[:_EXAMPLES])
            found = constraints.Inconsistency(rule, len(fresh), examples)
            yield prove_examples(found, explain, prefixes)


def _key(violation: constraints.Violation) -> frozenset[object]:
    return frozenset((v.name, term) for v, term in violation.substitution.items())


def preview_of(
    changes: TransactionChanges,
    state: KnowledgeState,
    applied: Applied,
    found: Iterable[Inconsistency],
) -> Preview:
    """The preview with the changes of a fork."""
    return Preview(
        **{name: value for name, value in vars(changes).items() if name in _FIELDS},
        contradictions=tuple(found),
        state=state,
        applied=applied,
    )


def planned_commit(state: KnowledgeState, preview: Preview) -> Committed:
    """The version that a transaction would commit to the store of a state."""
    from corollary.knowledge_base.persistence import Committed  # loads the store
    from corollary.knowledge_base.stored import VersionChanges, counted

    fork, applied = preview.state, preview.applied
    assert fork is not None, "a preview has a state"
    assert applied is not None, "and an update"
    assert state.store is not None, "only stores have commits"
    after = fork.reasoner.explicit
    changes = VersionChanges.of(applied.done, applied.requested, applied.before, after)
    counts = counted(state.store.relations, changes)
    update = preview.statistics
    statistics = changes.statistics(counts, update, "columnar", update.seconds)
    return Committed(state.store.version + 1, statistics, changes)


_FIELDS = TransactionChanges.__dataclass_fields__.keys()
