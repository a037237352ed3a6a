"""P(x, z) :- P(x, y), E(y, z): the closure of a linear rule, subject by subject.

The pairs of a subject depend only on pairs of that subject, so each one is closed by its own
breadth-first search: new objects go to a queue, and marks over the objects flag the known ones. A
bitmap returns the new objects in order, so nothing is sorted or merged. Each rule instance is
evaluated once, as in rounds; `rounds` is the longest chain. P(x, z) :- E(x, y), P(y, z) is the
transposed case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from corollary.core.bits import lowest
from corollary.core.engine import OnRound
from corollary.core.jit import quadratic
from corollary.engines.columnar import bitsets, kernels, reach_lists
from corollary.engines.columnar.bitsets import ClosureResult
from corollary.engines.columnar.budget import Budget
from corollary.engines.columnar.compose import Composition, FixpointResult, oriented
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import EMPTY, HIGH, Relation, Run, largest_node
from corollary.engines.columnar.tuning import tuning
from corollary.engines.columnar.workers import Workers
from corollary.lang.stratify import Predicate


def direction(rules: Sequence[Composition]) -> bool | None:
    """False if all rules are P(x, z) :- P(x, y), E(y, z), True if all have P on the right."""
    if len({shape.head for shape in rules}) != 1:
        return None
    head = rules[0].head
    if all(shape.left == head != shape.right for shape in rules):
        return False
    if all(shape.right == head != shape.left for shape in rules):
        return True
    return None


def finish(
    rules: Sequence[Composition],
    old: ColumnarFacts,
    delta: ColumnarFacts,
    workers: Workers,
    on_round: OnRound | None,
) -> FixpointResult | None:
    """Derive the remaining pairs; None if the rules are not linear or rounds are cheaper."""
    backwards = direction(rules)
    if backwards is None:
        return None
    head = rules[0].head
    changed, before = delta.relations[head], old.relations.get(head)
    if before is not None and len(before) > tuning.linear_delta_ratio * len(changed):
        return None
    if backwards and before is None and _are_edges(rules, old, changed):
        # Paths of edges are the same from either end; forwards needs no transposition.
        forwards = [Composition(head, head, rules[0].left, False, False)]
        result = finish(forwards, old, delta, workers, on_round)
        if result is None:
            return None
        reached = result.relations.get(head, Relation(2))
        return replace(result, instances=_instances(changed.keys(), reached.keys()))
    frontier = oriented(changed.run(), backwards)
    known = oriented(before.run(), backwards) if before is not None else Run(EMPTY)
    steps = _steps(rules, backwards, old)
    if len(steps) == 0:
        return FixpointResult({}, 0, 1)
    runs = (steps,) if frontier is steps and not known else (frontier, known, steps)
    size = max(kernels.largest_low(run.keys) for run in runs) + 1
    size = max(size, int(steps.keys[-1] >> HIGH) + 1)
    closed = search(frontier, known, steps, size, workers, old.space.budget, on_round)
    return _result(head, closed.pairs, backwards, closed.instances, closed.rounds)


def search(
    frontier: Run,
    known: Run,
    steps: Run,
    size: int,
    workers: Workers,
    budget: Budget,
    on_round: OnRound | None = None,
) -> ClosureResult:
    """Derive pairs from the frontier, with the representation that fits the graph.

    Known pairs are closed already and are not in the result; ids are less than `size`.
    """
    if not known:
        for close in (bitsets.close, reach_lists.close):
            closed = close(frontier, steps.keys, size, workers, budget, on_round)
            if closed is not None:
                return closed
    starts, targets = kernels.offsets(steps.keys, HIGH, size), kernels.halves(steps.keys)[1]

    def close_part(part: Run) -> tuple[Keys, int, int]:
        marks = np.zeros(size, np.uint8)  # of the known objects
        # A three-level bitmap of the new objects.
        bits, used, top = (np.zeros((size >> shift) + 1, np.uint64) for shift in (6, 12, 18))
        queue = np.empty(size + 1, np.uint32)
        # Pages that are never written take no memory; growing by copying would need twice as much.
        out: Keys = np.empty(16 * len(part), np.uint64)
        n = place = instances = rounds = 0
        while place < len(part):
            budget.reserve(16 * tuning.closure_block_pairs, "closing a linear rule")
            out, n, place, more, chain = reach(
                part.keys,
                place,
                known.keys,
                starts,
                targets,
                marks,
                bits,
                used,
                top,
                queue,
                out,
                n,
                n + tuning.closure_block_pairs,
            )
            instances += more
            rounds = max(rounds, chain)
            if on_round is not None:
                on_round(rounds, n)
        return out[:n], instances, rounds

    threads = workers.threads if len(frontier) > tuning.parallel_pairs_minimum else 1
    parts = frontier.sliced_by_subject(threads)
    results = workers.map(close_part, parts)
    pairs = [keys for keys, _, _ in results]
    whole = np.concatenate(pairs) if len(pairs) > 1 else pairs[0]
    instances = sum(instances for _, instances, _ in results)
    rounds = max((rounds for _, _, rounds in results), default=0)
    return ClosureResult(whole, instances, rounds)


def _instances(edges: Keys, pairs: Keys) -> int:
    """Count the instances of P(x, z) :- E(x, y), P(y, z): in-edges of y times its pairs."""
    size = 1 + max(largest_node(edges), largest_node(pairs))
    into = np.bincount(kernels.halves(edges)[1], minlength=size)
    out = np.diff(kernels.offsets(edges, HIGH, size)) + np.diff(kernels.offsets(pairs, HIGH, size))
    return int(into @ out)


def _are_edges(rules: Sequence[Composition], facts: ColumnarFacts, pairs: Relation) -> bool:
    """Test whether there is a single rule and the pairs are its edges."""
    edges = facts.relations.get(rules[0].left)
    if len(rules) > 1 or rules[0].left_transposed or edges is None or len(edges) != len(pairs):
        return False
    return edges.runs == pairs.runs or np.array_equal(edges.keys(), pairs.keys())


def _result(
    head: Predicate, pairs: Keys, backwards: bool, instances: int, rounds: int
) -> FixpointResult:
    run = oriented(Run(pairs), backwards)
    return FixpointResult({head: Relation(2, (run,))} if len(run) else {}, instances, rounds)


def _steps(rules: Sequence[Composition], backwards: bool, facts: ColumnarFacts) -> Run:
    """Collect the pairs (y, z) of the E of all rules, once per rule."""
    runs = []
    for shape in rules:
        fixed, transposed = (
            (shape.left, not shape.left_transposed)
            if backwards
            else (shape.right, shape.right_transposed)
        )
        relation = facts.relations.get(fixed)
        if relation is not None and len(relation):
            runs.append(oriented(relation.run(), transposed))
    if len(runs) == 1:
        return runs[0]
    return Run(np.sort(np.concatenate([run.keys for run in runs])) if runs else EMPTY)


@quadratic
def reach(
    frontier: Keys,
    place: int,
    known: Keys,
    starts: npt.NDArray[np.int64],
    targets: npt.NDArray[np.uint32],
    marks: npt.NDArray[np.uint8],
    bits: Keys,
    used: Keys,
    top: Keys,
    queue: npt.NDArray[np.uint32],
    out: Keys,
    n: int,
    limit: int,
) -> tuple[Keys, int, int, int, int]:
    """Close subject by subject from `place` on, until `out` holds `limit` pairs.

    Appends the new pairs in order to the first n of `out`. Returns `out` (which may have grown) and
    its length, the position of the next subject, the instances and the longest chain.
    """
    instances = longest = 0
    three_levels = len(used) > 64  # otherwise all words of `used` are scanned, without `top`
    # Indexes are unsigned: signed ones are checked for wraparound.
    low32, zero, one = np.uint64(0xFFFFFFFF), np.uint64(0), np.uint64(1)
    six, low6 = np.uint32(6), np.uint32(63)
    at_known = 0
    while place < len(frontier) and n < limit:
        x = frontier[place] >> np.uint64(32)
        head = x << np.uint64(32)
        # Mark the known objects of x: its old pairs and those of the frontier.
        at_known = kernels.gallop(known, head, at_known)
        first_known = at_known
        while at_known < len(known) and known[at_known] >> np.uint64(32) == x:
            marks[known[at_known] & low32] = 1
            at_known += 1
        tail = zero
        while place < len(frontier) and frontier[place] >> np.uint64(32) == x:
            z = np.uint32(frontier[place] & low32)
            marks[z] = 1
            queue[tail] = z
            tail += one
            place += 1
        frontier_size = tail
        level, chain, i = tail, 0, zero
        while i < tail:
            y = queue[i]
            begin, end = np.uint64(starts[y]), np.uint64(starts[y + np.uint32(1)])
            instances += int(end - begin)
            for j in range(begin, end):
                # branch-free: whether z is new is hard to predict
                z = targets[j]
                queue[tail] = z
                tail += one - np.uint64(marks[z])
                marks[z] = 1
            i += one
            if i == level:
                chain += 1
                level = tail
        longest = max(longest, chain)
        new = int(tail - frontier_size)
        if n + new > len(out):
            grown = np.empty(max(n + new, 2 * len(out)), np.uint64)
            grown[:n] = out[:n]
            out = grown
        for j in range(first_known, at_known):
            marks[known[j] & low32] = 0
        for k in range(frontier_size):
            marks[queue[k]] = 0
        # Sort the new objects: set their bits, read them in order, clear everything.
        for k in range(frontier_size, tail):
            z = queue[k]
            marks[z] = 0
            w = z >> six
            u = w >> six
            bits[w] |= one << np.uint64(z & low6)
            used[u] |= one << np.uint64(w & low6)
            if three_levels:
                top[u >> six] |= one << np.uint64(u & low6)
        at = np.uint64(n)
        for t in range(len(top)):
            pending = top[t] if three_levels else ~np.uint64(0) >> np.uint64(64 - len(used))
            top[t] = np.uint64(0)
            while pending:
                u = (np.uint32(t) << six) | np.uint32(lowest(pending))
                pending &= pending - one
                above = used[u]
                used[u] = np.uint64(0)
                while above:
                    w = (u << six) | np.uint32(lowest(above))
                    above &= above - one
                    word = bits[w]
                    bits[w] = np.uint64(0)
                    base = head | np.uint64(w << six)
                    while word:
                        out[at] = base | np.uint64(lowest(word))
                        word &= word - one
                        at += one
        n += new
    return out, n, place, instances, longest
