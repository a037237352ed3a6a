"""The embedded engine: sorted columns of numbers and compiled kernels, in one process.

Graph closures
==============

**The problem.** Most recursive rules that people write close a graph: P(x, z) :- P(x, y), E(y, z),
with P = E for a transitive relation. Semi-naive rounds would join, sort and merge all new pairs
once per step of the longest path. But the pairs of a subject depend on pairs of that subject only,
so a closure needs no rounds: it is one graph search per subject, and subjects that reach the same
nodes can share the work.

**A fresh closure** (`linear_closure`) chooses one of three representations of what a node reaches,
by sizes that are known before the work begins:

1. *Bitsets* (`bitsets`), for up to `bitset_nodes_limit` nodes: one row of bits per node, computed
   successors first. One OR combines 64 nodes, and subjects share rows. They win on small, dense
   graphs, where the pairs are a good part of the square of the nodes.
2. *Reachability lists* (`reach_lists`), for more nodes and at least `reach_lists_pairs_minimum`
   pairs: one sorted list per node, mostly a copy of the longest list of a successor. They win on
   large sparse graphs, where rows of bits would be mostly zeros.
3. A *search from each subject*, over marks and a queue: for few pairs, or if memory does not
   suffice for the others. It is also the only one that extends a relation that is closed already,
   as in semi-naive evaluation with a delta.

The cycles of a graph are no special case: the nodes of a strongly connected component share one row
or list.

**Changes** (`closure_diff`). Deletion in a closure defeats general algorithms: overdeletion reaches
nearly all pairs, and the search for alternative proofs explores them again. A module that holds the
old and the new edges needs neither. Only a subject that reaches the source of a changed edge can
gain or lose pairs; a backward search finds these subjects, each is searched over the new edges, and
what it reaches is compared with its known pairs. If this concerns most of the graph, the closure is
computed again, by bitsets or lists, and the two closures are compared as sorted arrays. Searches
read the edges through `layers`: a large run that versions share, a few added pairs and a few
tombstones, so that a small change does not merge the relation first.

**Symmetric and transitive relations** (`components`). All pairs of nodes of a connected component
are facts, so components represent the closure. A change computes again the components that contain
the ends of changed edges.

**Everything else.** Compositions of different relations, such as same generation or context-free
reachability, do run in rounds: subject by subject (`compose`), or over bit matrices while the nodes
are few and the pairs many (`bit_matrix`).

Invariant: all representations return the same pairs, sorted, and count each rule instance once. The
tests force each of them by thresholds, on relations with several runs and tombstones, and compare
them with one another and with the oracle.
"""
