"""The thresholds of specialization."""

from __future__ import annotations

from dataclasses import dataclass

from corollary.core.tuning import register, threshold


@dataclass
class RdfThresholds:
    """Sizes at which rules are specialized in another way."""

    narrowed_predicates_limit: int = threshold(
        512,
        "predicates",
        # To sort more rules into strata takes longer than what they save.
        "a rule over all triples is narrowed to each property and class up to this many",
    )


tuning = register("rdf", RdfThresholds())
