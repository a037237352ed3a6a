"""The thresholds of the algorithms."""

from __future__ import annotations

from dataclasses import dataclass

from corollary.core.tuning import register, threshold


@dataclass
class AlgorithmThresholds:
    """Sizes at which an update or a search proceeds in another way."""

    # Strata and modules
    module_companion_rules_limit: int = threshold(
        64,
        "rules",
        # Under RDFS, where data derive axioms, the rules specialized for an ontology are one
        # stratum of 600 rules: an update takes 45 ms without modules, and 225 ms with them.
        "a stratum with more rules outside its modules has no modules",
    )
    counted_together_facts_limit: int = threshold(
        100, "facts", "up to this many changed facts count as relevant without a look"
    )
    module_given_ratio: int = threshold(
        4, "times", "a module needs this many times the facts that other rules give it", minimum=1
    )
    module_given_facts_minimum: int = threshold(
        10_000, "facts", "or this many times fewer given facts than this"
    )
    module_change_facts: int = threshold(
        5_000, "facts", "one change costs as much as closing this many facts of the stratum again"
    )

    # The choice of an algorithm
    rematerialize_changes_minimum: int = threshold(
        100, "facts", "up to this many changed facts, nothing is rematerialized"
    )
    change_cost_facts: int = threshold(
        48, "facts", "a changed fact costs an update as much as deriving this many"
    )
    rematerialize_cost_facts: int = threshold(
        20_000, "facts", "rematerialization costs at least as much as deriving this many"
    )
    hard_search_facts_limit: int = threshold(
        1024, "facts", "checked beyond the allowance of all goals, before DRed enters"
    )
    goal_checked_facts_allowance: int = threshold(
        8, "facts", "that a goal may need to be decided without counting as hard"
    )
    backward_batch_facts: int = threshold(
        1024, "facts", "whose instances Backward/Forward looks at in one step", minimum=4
    )

    # Proofs
    proof_heads_batch: int = threshold(
        64, "heads", "whose instances a search for a proof looks for at once", minimum=1
    )
    proof_rule_instances_limit: int = threshold(
        1000, "instances", "of a rule, among which one is chosen for a proof", minimum=1
    )

    # Hybrid reasoning
    hybrid_plans_limit: int = threshold(
        512, "plans", "kinds of queries whose rewritten rules are cached", minimum=1
    )


tuning = register("algorithms", AlgorithmThresholds())
