"""Compositions over few nodes: relations as bit matrices.

P(x, z) :- Q(x, y), R(y, z) ORs, for each pair (x, y), the row of y into the row of x: 64 instances
in one step. `close` uses matrices for strata whose rules are all compositions, once the pairs fill
more than 1/64 of the matrix, so that bits take less space than keys.

Context-free reachability needs them. Measured, with bits and with keys (one core): Dyck
reachability over 3,000 pairs of brackets between 1,500 nodes, 3.3 M pairs, 0.10 s and 0.38 s; the
same generation in a tree of 4,000 nodes, as two compositions, 9.3 M pairs, 0.06 s and 0.39 s.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from corollary.core.bits import lowest, ones
from corollary.core.engine import OnRound
from corollary.core.jit import compiled, quadratic
from corollary.engines.columnar.budget import Budget, resident_memory
from corollary.engines.columnar.compose import Composition, FixpointResult, oriented
from corollary.engines.columnar.facts import ColumnarFacts, appended
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import Relation, nodes_of
from corollary.engines.columnar.tuning import tuning
from corollary.engines.columnar.workers import Workers
from corollary.lang.stratify import Predicate

Bits = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]

_WORK = 1 << 28  # words read per call at most: about 0.1 s


def nodes(
    rules: list[Composition], full: ColumnarFacts, budget: Budget
) -> npt.NDArray[np.uint32] | None:
    """Return the ids that the matrices cover; None if keys are better than bits."""
    predicates = {p for shape in rules for p in (shape.head, shape.left, shape.right)}
    heads = {shape.head for shape in rules}
    relations = [full.relations[p] for p in predicates if p in full.relations]
    pairs = sum(len(full.relations[p]) for p in heads if p in full.relations)
    if pairs < tuning.bit_matrix_pairs_minimum:
        return None
    ids = nodes_of([run for relation in relations for run in relation.runs])
    size = len(ids)
    room = 5 * len(predicates) * size * size // 8
    if (
        size * size > tuning.bit_matrix_sparsity_limit * pairs
        or room > tuning.bit_matrix_bytes_limit
    ):
        return None
    if budget.limit is not None and resident_memory() + room > budget.limit:
        return None
    return ids


class Matrix:
    """Rows of bits with the number of bits and the first and last used word of each row."""

    def __init__(self, size: int) -> None:
        self.bits: Bits = np.zeros((size, (size + 63) // 64), np.uint64)
        self.counts: Counts = np.zeros(size, np.int64)
        self.first: Counts = np.zeros(size, np.int64)
        self.last: Counts = np.zeros(size, np.int64)

    def measure(self) -> None:
        measure(self.bits, self.counts, self.first, self.last)


def finish(
    rules: list[Composition],
    old: ColumnarFacts,
    delta: ColumnarFacts,
    workers: Workers,
    on_round: OnRound | None,
) -> FixpointResult | None:
    """Evaluate the remaining rounds with matrices; None if keys are better than bits."""
    budget = old.space.budget
    ids = nodes(rules, appended(old, delta), budget)
    if ids is None:
        return None
    size = len(ids)
    local = np.zeros(int(ids[-1]) + 1, np.int64)
    local[ids] = np.arange(size)

    def matrix(relation: Relation | None, transposed: bool = False) -> Matrix:
        matrix = Matrix(size)
        for run in () if relation is None else relation.live_runs():
            set_bits(matrix.bits, local, oriented(run, transposed).keys)
        matrix.measure()
        return matrix

    heads = dict.fromkeys(shape.head for shape in rules)
    before = {p: matrix(old.relations.get(p)) for p in heads}
    changed = {p: matrix(delta.relations.get(p)) for p in heads}
    full = {p: Matrix(size) for p in heads}
    for p in heads:
        full[p].bits = before[p].bits | changed[p].bits
        full[p].measure()
    start = {p: full[p].bits.copy() for p in heads}
    fixed: dict[tuple[Predicate, bool], Matrix] = {}
    for shape in rules:
        for p, transposed in (
            (shape.left, shape.left_transposed),
            (shape.right, shape.right_transposed),
        ):
            if p not in heads and (p, transposed) not in fixed:
                fixed[p, transposed] = matrix(old.relations.get(p), transposed)

    def multiply(target: Matrix, left: Matrix, right: Matrix) -> int:
        # Bounded work per part, so that threads can be stopped in between.
        parts = max(workers.threads, size * size * target.bits.shape[1] // _WORK)
        bounds = np.linspace(0, size, min(parts, size) + 1).astype(np.int64).tolist()
        arguments = (left.bits, right.bits, right.counts, right.first, right.last, target.bits)
        return sum(workers.map(lambda rows: or_rows(*arguments, *rows), list(pairwise(bounds))))

    known = sum(int(m.counts.sum()) for m in full.values())
    instances = rounds = 0
    while any(matrix.counts.any() for matrix in changed.values()):
        rounds += 1
        derived = {p: Matrix(size) for p in heads}
        for shape in rules:
            target = derived[shape.head]
            right = full.get(shape.right) or fixed[shape.right, shape.right_transposed]
            if shape.left in heads:
                instances += multiply(target, changed[shape.left], right)
            if shape.right in heads:
                left = before.get(shape.left) or fixed[shape.left, shape.left_transposed]
                instances += multiply(target, left, changed[shape.right])
        for p in heads:
            before[p].bits |= changed[p].bits
            changed[p].bits = derived[p].bits & ~full[p].bits
            full[p].bits |= changed[p].bits
            changed[p].measure()
            full[p].measure()
        if on_round is not None:
            on_round(rounds, sum(int(m.counts.sum()) for m in full.values()) - known)
    budget.reserve(8 * sum(int(m.counts.sum()) for m in full.values()), "writing the pairs")
    found = {p: Relation.of(2, pairs(full[p].bits & ~start[p], ids)) for p in heads}
    return FixpointResult(found, instances, rounds)


@compiled
def set_bits(bits: Bits, local: npt.NDArray[np.int64], keys: Keys) -> None:
    """Set the bits of pairs."""
    for key in keys:
        x = local[key >> np.uint64(32)]
        z = local[key & np.uint64(0xFFFFFFFF)]
        bits[x, z >> 6] |= np.uint64(1) << np.uint64(z & 63)


@compiled
def measure(bits: Bits, counts: Counts, first: Counts, last: Counts) -> None:
    """Compute the number of bits of each row, and the range of words that contains them."""
    for x in range(bits.shape[0]):
        total = 0
        low, high = bits.shape[1], 0
        for k in range(bits.shape[1]):
            if bits[x, k]:
                total += ones(bits[x, k])
                low = min(low, k)
                high = k + 1
        counts[x], first[x], last[x] = total, low, high


@quadratic
def or_rows(
    left: Bits,
    right: Bits,
    counts: Counts,
    first: Counts,
    last: Counts,
    target: Bits,
    start: int,
    stop: int,
) -> int:
    """target[x] |= right[y] for all (x, y) in left with start ≤ x < stop; the instances."""
    instances = 0
    for x in range(start, stop):
        row = target[x]
        for k in range(left.shape[1]):
            word = left[x, k]
            while word:
                bit = word & (~word + np.uint64(1))
                y = (k << 6) + lowest(bit)
                word ^= bit
                if counts[y]:
                    instances += counts[y]
                    other = right[y]
                    for j in range(first[y], last[y]):
                        row[j] |= other[j]
    return instances


@compiled
def pairs(bits: Bits, ids: npt.NDArray[np.uint32]) -> Keys:
    """Convert a matrix to sorted keys."""
    total = 0
    for x in range(bits.shape[0]):
        for k in range(bits.shape[1]):
            total += ones(bits[x, k])
    out = np.empty(total, np.uint64)
    n = 0
    for x in range(bits.shape[0]):
        high = np.uint64(ids[x]) << np.uint64(32)
        for k in range(bits.shape[1]):
            word = bits[x, k]
            while word:
                bit = word & (~word + np.uint64(1))
                out[n] = high | np.uint64(ids[(k << 6) + lowest(bit)])
                n += 1
                word ^= bit
    return out
