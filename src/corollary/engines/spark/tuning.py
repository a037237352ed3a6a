"""The thresholds that divide work between Spark's driver and its tasks."""

from __future__ import annotations

from dataclasses import dataclass

from corollary.core.tuning import register, threshold


@dataclass
class SparkThresholds:
    """Sizes up to which the driver evaluates work itself, or broadcasts data to tasks."""

    driver_facts_limit: int = threshold(
        250_000, "facts", "of a set that the driver keeps: some MB, and less time than a few jobs"
    )
    driver_pairs_ratio: int = threshold(
        20, "pairs", "of closures and components that the driver makes, per fact that it keeps"
    )
    task_edges_limit: int = threshold(
        5_000_000, "edges", "that one task can hold: 8 bytes each, and as much for their index"
    )
    broadcast_facts_limit: int = threshold(10_000, "facts", "of a relation sent to all tasks")
    replicated_facts_limit: int = threshold(
        5_000_000,
        "facts",
        # Like `task_edges_limit`: 8 bytes each, and the same for their index.
        "of a relation of a schema that every task has, even if rules derive it",
    )
    driver_finish_facts_limit: int = threshold(
        20_000, "facts", "the driver finishes when at most this many wait to be exchanged"
    )
    driver_rounds_limit: int = threshold(
        64, "rounds", "of the driver; a longer recursion returns to the tasks", minimum=1
    )
    driver_terms_limit: int = threshold(
        20_000, "terms", "that the driver compares itself where the others are in a table"
    )
    broadcast_terms_limit: int = threshold(
        500_000, "terms", "that a filter compares, up to which every task receives all of them"
    )
    driver_values_limit: int = threshold(
        200_000,
        "queries",
        # Values one by one take some 10 µs each; in tasks, one more job.
        "of a round, up to which the driver computes values itself",
    )
    driver_input_bytes_limit: int = threshold(
        1 << 20, "bytes", "of the sources of an update that the driver parses and encodes itself"
    )
    driver_texts_limit: int = threshold(
        500_000, "terms", "that sources have, up to which the driver keeps all their texts"
    )
    driver_literals_limit: int = threshold(100_000, "literals", "that the driver compares")
    lookup_keys_limit: int = threshold(
        1_000_000, "keys", "of one look-up: with more, a plan of local steps takes less time"
    )
    prefetched_facts_limit: int = threshold(
        1_000, "facts", "of a predicate that are fetched along with others"
    )
    prefetched_subjects_limit: int = threshold(
        1_000, "subjects", "of a look-up whose facts of all predicates are fetched along"
    )
    prefetched_predicates_limit: int = threshold(
        5_000, "predicates", "of chunks in which the facts of subjects are fetched along"
    )
    cached_chunks_facts_limit: int = threshold(
        1_000_000, "facts", "outside the chunks, above which no chunk cache is written"
    )
    cached_lookups_limit: int = threshold(
        100_000, "facts", "of each part of cached chunks that the driver has looked up"
    )
    cached_chunks_parts_limit: int = threshold(
        12, "parts", "of cached sets: every look-up reads all of them"
    )
    broadcast_later_rows_limit: int = threshold(
        1_000_000, "rows", "of later versions that are sent to every task"
    )


tuning = register("spark", SparkThresholds())
