"""Previews: the changes that a transaction would make, without making them.

A preview applies the changes to a fork with a dictionary of its own, so nothing remains of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from corollary.algorithms import constraints
from corollary.core.changes import Changes
from corollary.core.engine import Facts
from corollary.core.proof import Proof
from corollary.core.readable import without_auxiliary
from corollary.knowledge_base.graphs import graphs_of
from corollary.knowledge_base.inconsistencies import Inconsistency, prove_examples
from corollary.knowledge_base.state import KnowledgeState
from corollary.knowledge_base.transaction import Applied
from corollary.knowledge_base.transaction_changes import TransactionChanges
from corollary.lang.syntax import Atom, Filter, Rule, is_auxiliary

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

    def _repr_html_(self) -> str:
        """The first changes, and the contradictions."""
        new = "".join(f"<div>new: {one._repr_html_()}</div>" for one in self.contradictions)
        return super()._repr_html_() + new


def new_contradictions(
    state: KnowledgeState,
    fork: KnowledgeState,
    changes: Changes[Facts],
    prefixes: Mapping[str, str],
) -> Iterator[Inconsistency]:
    """The violations that a changed fork has and its state has not, with readable proofs."""

    def explain(fact: Atom) -> Proof:
        return replace(fork.reasoner.explain(fact), prefixes=prefixes)

    old = frozenset(state.reasoner.program.constraints)
    rules = fork.reasoner.program.constraints
    settings = fork.settings
    is_whole = settings.mode == "materialized" and settings.equality == "rules"
    narrow = [rule for rule in rules if is_whole and rule in old and _is_monotonic(rule)]
    found = list(_violated(fork, narrow, changes.inserted)) if narrow else []
    others = [rule for rule in rules if rule not in frozenset(narrow)]
    if others:
        after = _violated(fork, others) if is_whole else _all_violated(fork)
        before: list[constraints.Inconsistency] = []
        if again := [one.rule for one in after if one.rule in old]:
            before = _violated(state, again) if is_whole else _all_violated(state)
        found += _difference(after, {one.rule: one for one in before})
    for one in sorted(found, key=lambda one: rules.index(one.rule)):
        proved = prove_examples(replace(one, examples=one.examples[:_EXAMPLES]), explain, prefixes)
        readable = map(without_auxiliary, proved.proofs)
        proofs = (replace(proof, graphs=graphs_of(fork, proof)) for proof in readable)
        yield replace(proved, proofs=tuple(proofs))


def _is_monotonic(rule: Rule) -> bool:
    """Whether every new violation of a constraint has a fact that the changes list as new."""
    return all(
        not is_auxiliary(part.relation) if isinstance(part, Atom) else isinstance(part, Filter)
        for part in rule.body
    )


def _violated(
    state: KnowledgeState, rules: Sequence[Rule], delta: Facts | None = None
) -> list[constraints.Inconsistency]:
    """All violations of some constraints of a materialization, or those with facts of `delta`."""
    reasoner = state.reasoner
    found = constraints.inconsistencies(
        reasoner.program, reasoner.all_facts, state.engine, examples=None, rules=rules, delta=delta
    )
    return list(found)


def _all_violated(state: KnowledgeState) -> list[constraints.Inconsistency]:
    """All violations of all constraints, as the reasoner finds them."""
    return list(state.reasoner.inconsistencies(examples=None))


def _difference(
    after: Iterable[constraints.Inconsistency], before: Mapping[Rule, constraints.Inconsistency]
) -> Iterator[constraints.Inconsistency]:
    """The violations that are new."""
    for one in after:
        known = {_key(v) for v in before[one.rule].examples} if one.rule in before else set()
        fresh = tuple(v for v in one.examples if _key(v) not in known)
        if fresh:
            yield constraints.Inconsistency(one.rule, len(fresh), fresh)


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
