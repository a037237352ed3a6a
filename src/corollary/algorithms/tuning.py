"""The thresholds of the algorithms."""

from __future__ import annotations

from dataclasses import dataclass

from corollary.core.tuning import register, threshold


@dataclass
class AlgorithmThresholds:
    """Sizes at which an update or a search changes its strategy."""

    # Strata and modules
    module_companion_rules_limit: int = threshold(
        64,
        "rules",
        # Measured: under RDFS, where data derive axioms, the rules specialized for an ontology
        # form one stratum of 600 rules; an update takes 45 ms without modules, and 225 ms with
        # them.
        "a stratum with more rules outside its modules does not use modules",
    )
    counted_together_facts_limit: int = threshold(
        100, "facts", "up to this many changed facts count as relevant without a check"
    )
    module_external_ratio: int = threshold(
        4, "times", "a module needs this many times as many facts as its external facts", minimum=1
    )
    module_external_facts_minimum: int = threshold(
        10_000, "facts", "smaller modules may have external facts as if they had this many"
    )
    module_change_facts: int = threshold(
        5_000, "facts", "one change costs as much as rebuilding this many facts of the stratum"
    )

    # The choice of an algorithm
    rematerialize_changes_minimum: int = threshold(
        100, "facts", "up to this many changed facts, updates never rematerialize"
    )
    deletion_cost_facts: int = threshold(
        72, "facts", "an update spends as much on a deleted fact as on deriving this many"
    )
    insertion_cost_facts: int = threshold(
        48, "facts", "an update spends as much on an inserted fact as on deriving this many"
    )
    rematerialize_cost_facts: int = threshold(
        20_000, "facts", "rematerialization costs at least as much as deriving this many"
    )
    hard_search_facts_limit: int = threshold(
        1024, "facts", "checked beyond the allowance of all goals before DRed enters the race"
    )
    goal_checked_facts_allowance: int = threshold(
        8, "facts", "checked per goal without counting as hard"
    )
    backward_batch_facts: int = threshold(
        1024, "facts", "whose instances Backward/Forward explores in one step", minimum=4
    )

    # Proofs
    proof_heads_batch: int = threshold(
        64, "heads", "whose instances a proof search collects at once", minimum=1
    )
    proof_rule_instances_limit: int = threshold(
        1000, "instances", "per rule, from which a proof chooses one", minimum=1
    )

    # Hybrid reasoning
    hybrid_plans_limit: int = threshold(
        512, "plans", "query shapes whose rewritten rules are cached", minimum=1
    )


tuning = register("algorithms", AlgorithmThresholds())
