"""The thresholds of the knowledge base: specialization and equality."""

from __future__ import annotations

from dataclasses import dataclass

from corollary.core.tuning import register, threshold


@dataclass
class KnowledgeBaseThresholds:
    """Sizes at which reasoners switch between algorithms."""

    narrowed_predicates_limit: int = threshold(
        512,
        "predicates",
        # Stratifying more rules takes longer than it saves.
        "a rule over all triples is narrowed to each property and class up to this many",
    )
    tuple_facts_limit: int = threshold(
        20_000,
        "facts",
        "up to this many explicit facts, rules about ontologies run tuple at a time",
    )
    tuple_facts_of_axiom: int = threshold(
        # Specializing to an axiom takes 500 µs, a fact tuple at a time 3 µs.
        170,
        "facts",
        "and this many more for each axiom; beyond, rules are specialized",
    )
    specialized_rules_limit: int = threshold(
        # LUBM has 690, and 0.3 ms for a triple; 12,310 take 20 ms to 5 s.
        1000,
        "rules",
        "so many rules are always specialized; with more, small updates run tuple at a time",
    )
    facts_of_specialized_rule: int = threshold(
        # A specialized rule takes 60 to 120 µs, a fact as written 3 to 6 µs.
        20,
        "facts",
        "and one more for so many explicit facts; with more, rules are evaluated as written",
        minimum=1,
    )
    distributed_rules_limit: int = threshold(
        # Each costs the driver more than in process, in every round.
        5_000,
        "rules",
        "but only up to so many outside this process",
    )
    index_memory_share: int = threshold(
        4, "shares", "of the available memory, of which the index may take one", minimum=1
    )
    pending_facts_limit: int = threshold(
        4096, "facts", "that updates tuple at a time have changed, and that are applied at once"
    )
    least_update_steps: int = threshold(
        50_000, "steps", "of a deletion tuple at a time, below which it never rematerializes"
    )
    least_tuple_steps: int = threshold(
        100_000_000, "steps", "of evaluation tuple at a time that are always allowed"
    )
    tuple_steps_of_fact: int = threshold(
        1000, "steps", "and this many for each fact; beyond, rules are specialized"
    )
    marked_classes_limit: int = threshold(
        64, "classes", "one rule marks the members of all classes if there are more"
    )
    lost_equalities_ratio: int = threshold(
        4, "times", "if fewer facts than this for each lost one, all equalities are found again"
    )


tuning = register("knowledge_base", KnowledgeBaseThresholds())
