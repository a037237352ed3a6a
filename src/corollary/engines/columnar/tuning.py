"""The thresholds of the embedded engine."""

from __future__ import annotations

from dataclasses import dataclass

from corollary.core.tuning import register, threshold


@dataclass
class ColumnarThresholds:
    """Sizes at which the embedded engine switches between algorithms."""

    # Runs of a relation
    run_merge_ratio: int = threshold(
        4, "times", "a run is merged into the previous one unless that is larger", minimum=1
    )
    short_run_keys_limit: int = threshold(
        2048, "keys", "shorter runs are merged in any case: reading one more takes as long"
    )
    tombstone_ratio: int = threshold(
        16, "keys per tombstone", "runs with fewer are compacted", minimum=1
    )
    counter_run_merge_ratio: int = threshold(
        4, "times", "a run of counters is merged unless the previous one is larger", minimum=1
    )

    # Look-ups
    probe_keys_limit: int = threshold(
        64, "keys", "up to this many probes, membership is tested key by key"
    )
    index_probes_limit: int = threshold(64, "probes", "up to this many, no index is built")
    index_sparsity_limit: int = threshold(
        64, "ids per key", "sparser runs get no index", maximum=64
    )
    bitmap_index_ratio: int = threshold(
        32, "keys per probe", "a bitmap pays below: 1 ns a key, against 20 to 200 a probe"
    )
    offset_index_ratio: int = threshold(8, "keys per probe", "an index of offsets pays below")
    object_bitmap_sparsity_limit: int = threshold(
        64, "ids per pair", "objects of sparser pairs are sorted, not marked", maximum=1 << 12
    )
    set_comparison_keys_minimum: int = threshold(
        1 << 12, "keys", "above, sets are compared as a whole"
    )

    # Bodies of rules
    scanned_rules_limit: int = threshold(
        16, "rules", "up to this many are all evaluated; more are found by predicate and constant"
    )
    rows_of_constant_limit: int = threshold(
        1000,  # they are scanned in the time that evaluating a rule takes
        "rows",
        "of a relation for each atom with a constant; with more, all these atoms are evaluated",
    )
    join_piece_rows: int = threshold(
        1 << 21, "rows", "rows of a join's result that are processed at once", minimum=8
    )
    gathered_rows_limit: int = threshold(
        1 << 14, "rows", "smaller pieces are gathered before they are processed"
    )
    delta_scan_ratio: int = threshold(
        8, "times", "a relation of pairs up to this much larger than a delta is scanned"
    )
    first_scan_ratio: int = threshold(
        64, "times", "the same for the smallest atom of a body evaluated from scratch"
    )
    first_instances: int = threshold(
        4,
        "matches",
        "of a head that are tried first, if one instance suffices; then eight times as many",
        minimum=1,
    )
    all_instances_limit: int = threshold(
        1 << 12, "rows", "up to this many, all instances are found, even if one suffices"
    )
    sampled_rows_minimum: int = threshold(
        256, "rows", "with fewer, the next atom is not chosen by the matches of a sample"
    )
    merged_rows_minimum: int = threshold(
        1 << 14, "rows", "from here on, equal rows are merged before a join, if many are equal"
    )
    transposed_pairs_limit: int = threshold(
        1 << 14, "pairs", "up to this many, pairs are indexed by object to count matches"
    )
    small_atom_facts_limit: int = threshold(
        64, "facts", "up to this many, an atom of a body is looked up directly"
    )
    semijoin_pairs_minimum: int = threshold(
        1 << 12, "pairs", "from here on, semi-joins of pairs use bitmaps"
    )
    parallel_atom_facts_minimum: int = threshold(
        1 << 17, "facts", "an atom with at least this many is split between threads", minimum=1
    )

    # Derived facts
    unsorted_keys_limit: int = threshold(
        1 << 23, "keys", "more derived keys of a predicate are sorted before the rule ends"
    )
    known_bitmap_ratio: int = threshold(
        4, "times", "larger sets of known facts are subtracted by a merge, not in the bitmap"
    )
    head_bitmap_sparsity_limit: int = threshold(
        64, "ids per key", "denser unary sets are united in a bitmap", maximum=1 << 12
    )

    # Set operations
    radix_sort_pairs_minimum: int = threshold(1 << 10, "pairs", "fewer are sorted by comparison")
    insertion_merge_ratio: int = threshold(
        8, "times", "a set this much smaller is inserted into the larger one"
    )
    insertion_merge_keys_limit: int = threshold(1 << 18, "keys", "sets of more are merged instead")
    parallel_work_minimum: int = threshold(
        1_000_000, "ns of work", "from here on, work is split between threads"
    )

    # Closures
    parallel_pairs_minimum: int = threshold(
        1 << 15, "pairs", "larger frontiers and graphs are split between threads"
    )
    closure_block_pairs: int = threshold(
        1 << 20, "pairs", "pairs of a closure written at once", minimum=2, maximum=1 << 20
    )
    linear_delta_ratio: int = threshold(
        8, "times", "a linear rule is closed at once unless the relation exceeds its delta by more"
    )
    bitset_steps_ratio: int = threshold(
        8, "steps per pair", "bitsets of all nodes pay up to this many steps per frontier pair"
    )
    bitset_nodes_limit: int = threshold(
        1 << 14, "nodes", "bitsets of more (32 MiB) would not stay in the cache", maximum=1 << 14
    )
    bitset_narrow_words: int = threshold(
        32, "words", "rows up to this width always pay", maximum=1 << 10
    )
    bitset_pair_words: int = threshold(
        20, "words", "a pair found by search (6 ns) costs as much as this many words of a row"
    )
    reach_lists_pairs_minimum: int = threshold(
        1 << 16, "pairs", "smaller frontiers are closed by a search from each subject"
    )
    reach_lists_steps_ratio: int = threshold(
        8, "steps per pair", "lists of all nodes pay up to this many steps per frontier pair"
    )
    reach_list_room: int = threshold(
        64, "ids per node", "the first pool of lists; it grows", minimum=1, maximum=1 << 10
    )
    bit_matrix_pairs_minimum: int = threshold(
        1 << 17, "pairs", "smaller compositions gain nothing from bit matrices"
    )
    bit_matrix_sparsity_limit: int = threshold(
        64, "cells per pair", "sparser relations are not made into matrices", maximum=1 << 12
    )
    bit_matrix_bytes_limit: int = threshold(
        1 << 30, "bytes", "all matrices together", maximum=1 << 30
    )

    # Changes of closures and connected components
    component_local_edges_limit: int = threshold(
        64, "edges", "up to this many changed edges, only the components of their ends are computed"
    )
    closure_diff_all_ratio: int = threshold(
        8, "times", "if the graph is at most this much larger than the change, compare all of it"
    )
    closure_diff_lookup_ratio: int = threshold(
        64, "pairs per source", "larger relations are searched, not indexed"
    )
    closure_diff_nodes_limit: int = threshold(
        1 << 14, "nodes", "bitsets of more would not stay in the cache", maximum=1 << 14
    )
    closure_diff_compared_pairs_limit: int = threshold(
        1 << 20, "pairs", "up to this many, given pairs are compared with the edges"
    )
    closure_diff_edge_words: int = threshold(
        8, "words", "an edge met by a search costs as much as this many words of a row"
    )
    closure_diff_parallel_sources_minimum: int = threshold(
        64, "sources", "more are split between threads"
    )


tuning = register("columnar", ColumnarThresholds())
