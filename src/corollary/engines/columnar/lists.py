"""P(x, z) :- P(x, y), E(y, z) over many nodes: sorted lists of what each node reaches.

R(y) = {z | E⁺(y, z)} is made once for each node, successors first, by merging the lists of its
successors. A successor that is in the list already brings nothing: so in graphs that are like a
tree, with whatever shortcuts, a list is a copy of one other list with one node more. Nodes that
reach each other share one list. Lists take as much memory as the result, where rows of bits would
take the square of the number of nodes.

Measured (one core): 1 M nodes, 3 M edges, 42 M pairs: 1.0 s, subject by subject 5.7 s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.bits import fetch
from corollary.core.engine import OnRound
from corollary.core.jit import compiled, inlined
from corollary.engines.columnar import kernels, sets
from corollary.engines.columnar.budget import Budget, checkpoint
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import HIGH, Run
from corollary.engines.columnar.shared import Closed, behind, components
from corollary.engines.columnar.tuning import tuning
from corollary.engines.columnar.workers import Workers

Numbers = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
_LOW = np.int64(0xFFFFFFFF)

_AHEAD = 24  # pairs of the frontier before whose turn a list is fetched
_STEP = 1 << 24  # numbers of lists that one call makes, so that it can be stopped


class Lists(NamedTuple):
    """What the nodes reach.

    What is known of a node stands together, so that reading it costs one miss of the cache: where
    its list begins; its length << 32 | its id; the steps of all nodes of the list; the longest
    chain << 32 | its own steps.
    """

    nodes: Counts  # four numbers for each id
    pool: Numbers


def close(
    frontier: Run, steps: Keys, size: int, workers: Workers, budget: Budget, told: OnRound | None
) -> Closed | None:
    """All pairs beyond the frontier; None if it is so small that lists would not pay.

    `steps` are sorted, and may be repeated for several rules; ids are less than `size`.
    """
    if (
        tuning.reach_lists_steps_ratio * len(frontier) < len(steps)
        or size < tuning.reach_lists_ids_minimum
    ):
        return None
    lists = lists_of(steps, size, budget)
    parts = (
        frontier.sliced_by_subject(workers.threads)
        if len(frontier) > tuning.parallel_pairs_minimum
        else [frontier]
    )
    if frontier.keys is steps:
        return _written(parts, lists, workers, budget, told)

    def follow(part: Run) -> tuple[Keys, int, int]:
        longest = largest(part.keys, lists.nodes, size)
        buffers = np.empty((2, longest + 1), np.uint32)
        out = np.empty(longest + max(tuning.closure_block_pairs, 4 * len(part)), np.uint64)
        place = n = instances = rounds = 0
        while place < len(part):
            if len(out) - n < longest + tuning.closure_block_pairs:
                budget.reserve(8 * len(out), "closing a linear rule")
                grown = np.empty(2 * len(out) + longest, np.uint64)
                grown[:n] = out[:n]
                out = grown
            place, n, more, chain = unite(
                part.keys, place, n, n + tuning.closure_block_pairs, longest, *lists, buffers, out
            )
            instances += more
            rounds = max(rounds, chain)
            if told is not None:
                told(rounds, n)
        return out[:n], instances, rounds

    done = workers.map(follow, parts)
    pairs = [keys for keys, _, _ in done]
    return Closed(
        np.concatenate(pairs) if len(pairs) > 1 else pairs[0],
        sum(instances for _, instances, _ in done),
        max(rounds for _, _, rounds in done),
    )


def _written(
    parts: list[Run], lists: Lists, workers: Workers, budget: Budget, told: OnRound | None
) -> Closed:
    """Where pairs are steps, a subject has the list that it has as a node, less its steps."""
    rooms = workers.map(lambda part: room(part.keys, lists.nodes), parts)
    budget.reserve(8 * sum(rooms), "closing a linear rule")
    out = np.empty(sum(rooms), np.uint64)

    def follow(at: int) -> tuple[int, int]:
        part, begin = parts[at].keys, sum(rooms[:at])
        found = out[begin : begin + rooms[at]]
        place = n = instances = rounds = 0
        while place < len(part):
            place, n, more, chain = write(
                part, place, n, n + tuning.closure_block_pairs, *lists, found
            )
            instances += more
            rounds = max(rounds, chain)
            if told is not None:
                told(rounds, n)
        return instances, rounds

    done = workers.map(follow, range(len(parts)))
    return Closed(out, sum(more for more, _ in done), max(chain for _, chain in done))


def lists_of(steps: Keys, size: int, budget: Budget) -> Lists:
    """The lists of all nodes of the steps."""
    starts = kernels.offsets(steps, HIGH, size).astype(np.uint32)
    back = sets.swap(steps)
    order = np.empty(size + 1, np.uint32)
    count = level(back, kernels.offsets(back, HIGH, size), starts, order)
    ends = np.ones(size + 1, np.uint8)
    if count == 0:
        count = components(steps, starts, order, ends)
    places = np.full(size, count, np.uint32)
    nodes = np.zeros((count + 1, 4), np.int64)
    # Pages that are never written take no memory.
    pool = np.empty(tuning.reach_list_room * count, np.uint32)
    arrange(order[:count], starts, places, nodes)
    links, link_starts = np.empty(len(steps), np.uint32), np.zeros(count + 1, np.int64)
    link(order[:count], steps, starts, places, links, link_starts)
    # Twice: successors that are drawn together may be repeated.
    buffers = np.empty((3, 2 * count + 2), np.uint32)
    place, top = count, 0
    while place > 0:
        room = pool[: top + max(_STEP, 2 * count + 2)]
        place, top = fill(links, link_starts, starts, ends, place, top, buffers, nodes, room)
        checkpoint()
        if place > 0 and len(room) == len(pool):
            budget.reserve(4 * len(pool), "closing a linear rule")
            larger = np.empty(2 * len(pool) + count, np.uint32)
            larger[:top] = pool[:top]
            pool = larger
    return Lists(nodes[places], pool)


@compiled
def level(back: Keys, back_starts: npt.NDArray[np.int64], starts: Numbers, order: Numbers) -> int:
    """Put nodes into an order, predecessors first; gives their number, 0 if there is a cycle.

    The last ones have no steps; before them stand those that lead only there, in the same order;
    and so on. So nodes that stand together have successors that stand together, which is worth as
    much as half of the time of making the lists of a million nodes.
    """
    low, one = np.uint64(0xFFFFFFFF), np.uint32(1)
    size = len(starts) - 1
    waiting = np.empty(size, np.uint32)
    total = 0
    for x in range(size):
        waiting[x] = starts[x + 1] - starts[x]
        total += waiting[x] > 0 or back_starts[x + 1] > back_starts[x]
    at = total
    for x in range(size):
        if waiting[x] == 0 and back_starts[x + 1] > back_starts[x]:
            at -= 1
            order[at] = x
    done = total
    while done > at:
        done -= 1
        z = order[done]
        for j in range(back_starts[z], back_starts[z + one]):
            x = back[j] & low
            waiting[x] -= one
            if waiting[x] == 0:
                at -= 1
                order[at] = x
    return total if at == 0 else 0


@compiled
def arrange(order: Numbers, starts: Numbers, places: Numbers, nodes: Counts) -> None:
    """Tell the places of nodes, their ids and their steps."""
    for i in range(len(order)):
        x = order[i]
        places[x] = i
        nodes[i, 1] = x
        nodes[i, 3] = starts[x + np.uint32(1)] - starts[x]


@compiled
def link(
    order: Numbers,
    steps: Keys,
    starts: Numbers,
    places: Numbers,
    links: Numbers,
    link_starts: Counts,
) -> None:
    """The places of each node's successors, place by place: what `fill` reads stands together."""
    low, one = np.uint64(0xFFFFFFFF), np.uint32(1)
    n = np.uint64(0)
    for i in range(len(order)):
        x = order[i]
        for j in range(starts[x], starts[x + one]):
            links[n] = places[steps[j] & low]
            n += np.uint64(1)
        link_starts[i + 1] = n


@inlined
def distinct(a: Numbers, n: int) -> int:
    """Sort the first n numbers, and drop repetitions; gives how many are left."""
    if n > 16:
        a[:n].sort()
    else:
        for i in range(1, n):
            number, at = a[i], i
            while at > 0 and a[at - 1] > number:
                a[at] = a[at - 1]
                at -= 1
            a[at] = number
    k = 0
    for i in range(n):
        if k == 0 or a[k - 1] != a[i]:
            a[k] = a[i]
            k += 1
    return k


@inlined
def join(
    row: Numbers, n: int, pool: Numbers, begin: int, end: int, node: np.uint32, out: Numbers
) -> int:
    """Merge a list of the pool, and the node whose list it is, with a row."""
    i, j, k = 0, begin, 0
    waiting = True  # the node
    while i < n or j < end or waiting:
        least = np.uint32(0xFFFFFFFF)
        if i < n:
            least = row[i]
        if j < end:
            least = min(least, pool[j])
        if waiting:
            least = min(least, node)
        out[k] = least
        k += 1
        i += i < n and row[i] == least
        j += j < end and pool[j] == least
        waiting = waiting and node != least
    return k


@compiled
def fill(
    links: Numbers,
    link_starts: Counts,
    starts: Numbers,
    group_ends: npt.NDArray[np.uint8],
    place: int,
    top: int,
    buffers: npt.NDArray[np.uint32],
    nodes: Counts,
    pool: Numbers,
) -> tuple[int, int]:
    """Make the lists of the nodes before `place`, last ones first, while the pool has room."""
    one = np.uint32(1)
    row, other, chosen = buffers[0], buffers[1], buffers[2]
    while place > 0:
        begin = place - 1
        while group_ends[begin] == 0:
            begin -= 1
        alone = place - begin == 1
        # Successors outside of the group by their places: those that come first reach most.
        several = 0
        turns = False
        for i in range(begin, place):
            for j in range(link_starts[i], link_starts[i + 1]):
                at = links[j]
                chosen[several] = at
                several += int(at >= place)
                turns |= at < place
                if several == len(chosen):
                    several = distinct(chosen, several)
        several = distinct(chosen, several)
        contributors = n = 0
        first = length = total = height = middle = 0
        only = np.uint32(0)
        for i in range(several):
            at = chosen[i]
            z = np.uint32(nodes[at, 1] & _LOW)
            height = max(height, (nodes[at, 3] >> 32) + 1)
            if contributors == 1:
                # not merged yet: the list of one successor, and itself
                if has(pool, first, first + length, z):
                    continue
                n = join(row, 0, pool, first, first + length, only, other)
                row, other = other, row
            elif contributors > 1 and has(row, 0, n, z):
                continue
            contributors += 1
            begin_, length_ = nodes[at, 0], (nodes[at, 1] >> 32)
            if contributors == 1:
                only, first, length = z, begin_, length_
                middle = place_of(pool, first, first + length, z)
                total = nodes[at, 2]
                if middle == first + length or pool[middle] != z:
                    total += nodes[at, 3] & _LOW
            else:
                n = join(row, n, pool, begin_, begin_ + length_, z, other)
                row, other = other, row
        if top + max(n, length + 1) + place - begin > len(pool):
            return place, top
        start = top
        if contributors == 1 and alone and not turns:
            # a copy with one node more
            end = first + length
            copy(pool, first, middle, top)
            top += middle - first
            if middle == end or pool[middle] != only:
                pool[top] = only
                top += 1
            copy(pool, middle, end, top)
            top += end - middle
        elif contributors > 0 or turns:
            if contributors == 1:
                n = join(row, 0, pool, first, first + length, only, other)
                row, other = other, row
            if turns:  # all nodes of the group reach each other, and themselves
                for i in range(begin, place):
                    n = join(row, n, pool, 0, 0, np.uint32(nodes[i, 1] & _LOW), other)
                    row, other = other, row
            total = 0
            for i in range(n):
                pool[top] = row[i]
                top += 1
                total += starts[row[i] + one] - starts[row[i]]
        for i in range(begin, place):
            nodes[i, 0] = start
            nodes[i, 1] |= (top - start) << 32
            nodes[i, 2] = total
            nodes[i, 3] |= height << 32
        place = begin
    return place, top


@inlined
def place_of(pool: Numbers, begin: int, end: int, node: np.uint32) -> int:
    """Where a node is in a sorted list, or would be.

    Without branches, as they are hard to predict.
    """
    at, n = np.uint64(begin), np.uint64(end - begin)
    one = np.uint64(1)
    while n > one:
        half = n >> one
        at += half * np.uint64(pool[at + half - one] < node)
        n -= half
    return int(np.int64(at) + np.int64(n > np.uint64(0) and pool[at] < node))


@inlined
def has(pool: Numbers, begin: int, end: int, node: np.uint32) -> bool:
    """Whether a sorted list has a node."""
    at = place_of(pool, begin, end, node)
    return at < end and pool[at] == node


@inlined
def copy(pool: Numbers, begin: int, end: int, to: int) -> None:
    """Copy numbers within the pool."""
    source, target = np.uint64(begin), np.uint64(to)
    for i in range(np.uint64(end - begin)):
        pool[target + i] = pool[source + i]


@compiled
def room(frontier: Keys, nodes: Counts) -> int:
    """How many pairs the lists of all subjects have, less those of the frontier."""
    total, before = 0, np.uint64(0xFFFFFFFFFFFFFFFF)
    last = before
    for key in frontier:
        if key >> np.uint64(32) != before:
            before = key >> np.uint64(32)
            total += nodes[before, 1] >> 32
        total -= int(key != last)  # steps of several rules may be repeated
        last = key
    return total


@compiled
def write(
    frontier: Keys,
    start: int,
    size: int,
    enough: int,
    nodes: Counts,
    pool: Numbers,
    out: Keys,
) -> tuple[int, int, int, int]:
    """Write the new pairs of subjects from `start` on behind the first `size`, up to `enough`.

    Gives the place of the next subject, the number of pairs, the instances and the longest chain.
    """
    low, high, one = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
    place, n, met, longest = np.uint64(start), np.uint64(size), 0, 0
    behind_all, ahead = np.uint64(len(frontier)), np.uint64(_AHEAD)
    while place < behind_all and n < np.uint64(enough):
        head = frontier[place] & ~low
        x = head >> high
        if place + ahead < behind_all:
            fetch(pool, nodes[frontier[place + ahead] >> high, 0])
        known = frontier[place] & low
        first, length = np.uint64(nodes[x, 0]), np.uint64(nodes[x, 1] >> 32)
        met += nodes[x, 2]
        longest = max(longest, nodes[x, 3] >> 32)
        for j in range(length):
            z = np.uint64(pool[first + j])
            if z != known:
                out[n] = head | z
                n += one
                continue
            # What is in the frontier is known.
            while place < behind_all and frontier[place] == head | z:
                place += one
            known = frontier[min(place, behind_all - one)] & low
            if place == behind_all or frontier[place] >> high != x:
                known = one << high
    return int(place), int(n), met, longest


@compiled
def largest(frontier: Keys, nodes: Counts, size: int) -> int:
    """At most how many pairs one subject has."""
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    most = n = 0
    before = low
    for key in frontier:
        if key >> high != before:
            before = key >> high
            n = 0
        n += (nodes[key & low, 1] >> 32) + 1
        most = max(most, n)
    return min(most, size)


@compiled
def unite(
    frontier: Keys,
    start: int,
    size: int,
    enough: int,
    room: int,
    nodes: Counts,
    pool: Numbers,
    buffers: npt.NDArray[np.uint32],
    out: Keys,
) -> tuple[int, int, int, int]:
    """As `write`, where a subject has the lists of all its objects."""
    low, one = np.uint64(0xFFFFFFFF), np.uint64(1)
    row, other = buffers[0], buffers[1]
    place, n, met, longest = np.uint64(start), size, 0, 0
    while place < np.uint64(len(frontier)) and n < enough and n + room <= len(out):
        head = frontier[place] & ~low
        end = behind(frontier, place)
        count = 0
        for i in range(place, end):
            z = np.uint32(frontier[i] & low)
            longest = max(longest, (nodes[z, 3] >> 32) + 1)
            if has(row, 0, count, z):
                continue
            begin, length = nodes[z, 0], nodes[z, 1] >> 32
            count = join(row, count, pool, begin, begin + length, z, other)
            row, other = other, row
        # What is in the frontier is known.
        at_known = place
        for j in range(count):
            z = row[j]
            while at_known < end and frontier[at_known] & low < z:
                at_known += one
            out[n] = head | np.uint64(z)
            n += int(at_known == end or frontier[at_known] & low != z)
            met += nodes[z, 3] & _LOW
        place = end
    return int(place), n, met, longest
