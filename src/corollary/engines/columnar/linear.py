"""P(x, z) :- P(x, y), E(y, z): linear compositions, closed subject by subject.

The pairs of a subject depend on pairs of that subject only, so that each subject is closed by
itself: its new pairs wait in a queue, and bits over the objects tell the known ones. The bits are
read off in order at the end, so that nothing is sorted or merged. Each rule instance is considered
once, as in rounds; `rounds` counts the longest chain. P(x, z) :- E(x, y), P(y, z) is the same with
subjects and objects exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from corollary.core.bits import lowest
from corollary.core.engine import OnRound
from corollary.core.jit import compiled
from corollary.engines.columnar import kernels, lists, shared
from corollary.engines.columnar.budget import Budget
from corollary.engines.columnar.compose import Finished, Shape, turned
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import EMPTY, HIGH, Relation, Run, largest_node
from corollary.engines.columnar.shared import Closed
from corollary.engines.columnar.tuning import tuning
from corollary.engines.columnar.workers import Workers
from corollary.lang.stratify import Predicate


def direction(rules: Sequence[Shape]) -> bool | None:
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
    rules: Sequence[Shape],
    old: ColumnarFacts,
    delta: ColumnarFacts,
    workers: Workers,
    on_round: OnRound | None,
) -> Finished | None:
    """The remaining pairs; None if the rules are not linear, or rounds are better."""
    backwards = direction(rules)
    if backwards is None:
        return None
    head = rules[0].head
    changed, before = delta.relations[head], old.relations.get(head)
    if before is not None and len(before) > tuning.linear_delta_ratio * len(changed):
        return None
    if backwards and before is None and _are_edges(rules, old, changed):
        # Paths of edges are the same from either end, and need no turning this way.
        forwards = [Shape(head, head, rules[0].left, False, False)]
        found = finish(forwards, old, delta, workers, on_round)
        if found is None:
            return None
        reached = found.relations.get(head, Relation(2))
        return replace(found, instances=_instances(changed.keys(), reached.keys()))
    frontier = turned(changed.run(), backwards)
    known = turned(before.run(), backwards) if before is not None else Run(EMPTY)
    steps = _steps(rules, backwards, old)
    if len(steps) == 0:
        return Finished({}, 0, 1)
    runs = (steps,) if frontier is steps and not known else (frontier, known, steps)
    size = max(kernels.largest_low(run.keys) for run in runs) + 1
    size = max(size, int(steps.keys[-1] >> HIGH) + 1)
    done = search(frontier, known, steps, size, workers, old.space.budget, on_round)
    return _finished(head, done.pairs, backwards, done.instances, done.rounds)


def search(
    frontier: Run,
    known: Run,
    steps: Run,
    size: int,
    workers: Workers,
    budget: Budget,
    on_round: OnRound | None = None,
) -> Closed:
    """What the pairs of the frontier lead to, in the way that suits the graph.

    Known pairs, which are not in the result either, are closed already; ids are less than `size`.
    """
    if not known:
        for close in (shared.close, lists.close):
            closed = close(frontier, steps.keys, size, workers, budget, on_round)
            if closed is not None:
                return closed
    starts, targets = kernels.offsets(steps.keys, HIGH, size), kernels.halves(steps.keys)[1]

    def follow(part: Run) -> tuple[Keys, int, int]:
        marks = np.zeros(size, np.uint8)  # of the objects that are known
        # Bits of the new objects, of the words that have any, and of the words of these.
        bits, used, top = (np.zeros((size >> shift) + 1, np.uint64) for shift in (6, 12, 18))
        queue = np.empty(size + 1, np.uint32)
        # Pages that are never written take no memory, and a copy would take twice as much.
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
    done = workers.map(follow, parts)
    pairs = [keys for keys, _, _ in done]
    whole = np.concatenate(pairs) if len(pairs) > 1 else pairs[0]
    instances = sum(instances for _, instances, _ in done)
    rounds = max((rounds for _, _, rounds in done), default=0)
    return Closed(whole, instances, rounds)


def _instances(edges: Keys, pairs: Keys) -> int:
    """How many instances P(x, z) :- E(x, y), P(y, z) has: those of y are edges to it by pairs."""
    size = 1 + max(largest_node(edges), largest_node(pairs))
    into = np.bincount(kernels.halves(edges)[1], minlength=size)
    out = np.diff(kernels.offsets(edges, HIGH, size)) + np.diff(kernels.offsets(pairs, HIGH, size))
    return int(into @ out)


def _are_edges(rules: Sequence[Shape], facts: ColumnarFacts, pairs: Relation) -> bool:
    """Whether there is one rule, and the pairs are its edges."""
    edges = facts.relations.get(rules[0].left)
    if len(rules) > 1 or rules[0].left_swapped or edges is None or len(edges) != len(pairs):
        return False
    return edges.runs == pairs.runs or np.array_equal(edges.keys(), pairs.keys())


def _finished(
    head: Predicate, pairs: Keys, backwards: bool, instances: int, rounds: int
) -> Finished:
    run = turned(Run(pairs), backwards)
    return Finished({head: Relation(2, (run,))} if len(run) else {}, instances, rounds)


def _steps(rules: Sequence[Shape], backwards: bool, facts: ColumnarFacts) -> Run:
    """The pairs (y, z) of all the rules' E, as often as there are rules with them."""
    found = []
    for shape in rules:
        fixed, swapped = (
            (shape.left, not shape.left_swapped)
            if backwards
            else (shape.right, shape.right_swapped)
        )
        relation = facts.relations.get(fixed)
        if relation is not None and len(relation):
            found.append(turned(relation.run(), swapped))
    if len(found) == 1:
        return found[0]
    return Run(np.sort(np.concatenate([run.keys for run in found])) if found else EMPTY)


@compiled
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
    enough: int,
) -> tuple[Keys, int, int, int, int]:
    """Close subject after subject from `place` on, until `out` holds `enough` pairs.

    Gives the new pairs in order behind the first n of `out` (which may have grown), their number,
    the place of the next subject, the instances, and the longest chain.
    """
    instances = longest = 0
    many = len(used) > 64  # else all words of `used` are looked at, and `top` is not needed
    # Places are unsigned: signed ones are checked for being counted from the end.
    low32, zero, one = np.uint64(0xFFFFFFFF), np.uint64(0), np.uint64(1)
    six, low6 = np.uint32(6), np.uint32(63)
    at_known = 0
    while place < len(frontier) and n < enough:
        x = frontier[place] >> np.uint64(32)
        head = x << np.uint64(32)
        # What is known of x: its old pairs and those of the frontier.
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
        given = tail
        level, chain, i = tail, 0, zero
        while i < tail:
            y = queue[i]
            begin, end = np.uint64(starts[y]), np.uint64(starts[y + np.uint32(1)])
            instances += int(end - begin)
            for j in range(begin, end):
                # without a branch: whether z is new is hard to predict
                z = targets[j]
                queue[tail] = z
                tail += one - np.uint64(marks[z])
                marks[z] = 1
            i += one
            if i == level:
                chain += 1
                level = tail
        longest = max(longest, chain)
        new = int(tail - given)
        if n + new > len(out):
            grown = np.empty(max(n + new, 2 * len(out)), np.uint64)
            grown[:n] = out[:n]
            out = grown
        for j in range(first_known, at_known):
            marks[known[j] & low32] = 0
        for k in range(given):
            marks[queue[k]] = 0
        # Put the new objects in order: set their bits, read them off, clear everything.
        for k in range(given, tail):
            z = queue[k]
            marks[z] = 0
            w = z >> six
            u = w >> six
            bits[w] |= one << np.uint64(z & low6)
            used[u] |= one << np.uint64(w & low6)
            if many:
                top[u >> six] |= one << np.uint64(u & low6)
        at = np.uint64(n)
        for t in range(len(top)):
            pending = top[t] if many else ~np.uint64(0) >> np.uint64(64 - len(used))
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
