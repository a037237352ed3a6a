"""The closure of P(x, z) :- P(x, y), E(y, z) over few nodes, with reachability bitsets.

Given base pairs F of P, a subject x reaches the nodes that the objects of F(x, y) reach along E.
The bitset of a node, its row R(y) = {z | E⁺(y, z)}, is computed once, successors first: R(y) is the
union of {z} and R(z) for all E(y, z), and one OR combines 64 nodes. Subjects share these rows. The
nodes of a cycle share one row. Bits are numbered in the order of ids, so pairs come out sorted.
Rule instances are not enumerated but counted from the pairs: a pair (x, y) of P accounts for one
instance per pair (y, z) of E.

Column 0 stands for all ids without a row: it has no bits, no steps and no height. Numbers are
unsigned: indexing with signed ones checks for wraparound, and the loops over words took four times
as long.

Measured (one core): 10,000 nodes, 100,000 edges, 22 M pairs in 60 ms, subject by subject 600 ms;
4,181 nodes, 6,838 edges, 43,000 pairs in 0.32 ms instead of 0.66 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.bits import lowest, ones
from corollary.core.engine import OnRound
from corollary.core.jit import compiled, inlined, quadratic
from corollary.engines.columnar.budget import Budget
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import Run
from corollary.engines.columnar.tuning import tuning
from corollary.engines.columnar.workers import Workers

Numbers = npt.NDArray[np.uint32]


class Rows(NamedTuple):
    """Reachability bitsets: their bits, bit counts and longest chains.

    Rows are in the order of their computation, columns in the order of ids.
    """

    columns: Keys  # for each id: row << 32 | column
    words: np.uint64  # words per row
    bits: Keys  # the rows, concatenated
    nodes: Keys  # for each column: out-degree << 32 | id
    sizes: Numbers  # bits set in each row
    heights: Numbers  # longest chain from each row


@dataclass(frozen=True)
class ClosureResult:
    """The new pairs, sorted; the number of rule instances evaluated, and their longest chain."""

    pairs: Keys
    instances: int
    rounds: int


def close(
    frontier: Run,
    steps: Keys,
    size: int,
    workers: Workers,
    budget: Budget,
    on_round: OnRound | None,
) -> ClosureResult | None:
    """Compute all pairs beyond the frontier; None if bitsets would not pay off.

    `steps` are sorted and repeat if several rules share them; ids are less than `size`.
    """
    if tuning.bitset_steps_ratio * len(frontier) < len(steps):
        return None
    rows = _rows(frontier.keys, steps, size, budget)
    if rows is None:
        return None
    parts = (
        frontier.sliced_by_subject(workers.threads)
        if len(frontier) > tuning.parallel_pairs_minimum
        else [frontier]
    )
    accepted_bound = tuning.closure_block_pairs if len(parts) == 1 else 0
    room = workers.map(lambda part: count(part.keys, accepted_bound, *rows), parts)
    budget.reserve(8 * sum(room), "closing a linear rule")
    out = np.empty(sum(room), np.uint64)

    def write_part(at: int) -> tuple[int, int, int]:
        part, begin = parts[at].keys, sum(room[:at])
        part_out = out[begin : begin + room[at]]
        written = np.zeros((2, len(rows.sizes)), np.uint64)
        place = n = instances = rounds = 0
        while place < len(part):
            place, n, more, chain = write(
                part, place, n, n + tuning.closure_block_pairs, *rows, written, part_out
            )
            instances += more
            rounds = max(rounds, chain)
            if on_round is not None:
                on_round(rounds, n)
        return n, instances, rounds

    done = workers.map(write_part, range(len(parts)))
    size = sum(n for n, _, _ in done)
    instances = sum(instances for _, instances, _ in done)
    return ClosureResult(out[:size], instances, max(rounds for _, _, rounds in done))


def _rows(frontier: Keys, steps: Keys, size: int, budget: Budget) -> Rows | None:
    columns = np.zeros(size, np.uint64)
    starts, order = np.zeros(size + 1, np.uint32), np.empty(size + 1, np.uint32)
    found, nodes, ordered = arrange(
        steps, frontier, tuning.bitset_nodes_limit, starts, columns, order
    )
    if nodes == 0:
        return None
    ends = np.ones(nodes, np.uint8)
    if not ordered:
        components(steps, starts, order, ends)
    order = order[:nodes]
    words = (found + 63) // 64
    if words > tuning.bitset_narrow_words:
        pairs = estimate(steps, frontier, starts, order, ends, found)
        if tuning.bitset_pair_words * pairs < words * (len(steps) + len(frontier) + 3 * found):
            return None
    budget.reserve(8 * words * found, "closing a linear rule")
    rows = Rows(
        columns,
        np.uint64(words),
        np.empty(found * words, np.uint64),
        np.empty(64 * words, np.uint64),
        np.empty(found, np.uint32),
        np.empty(found, np.uint32),
    )
    fill(steps, starts, order, ends, *rows)
    return rows


@compiled
def arrange(
    steps: Keys, frontier: Keys, limit: int, starts: Numbers, columns: Keys, order: Numbers
) -> tuple[int, int, bool]:
    """Number the ids that have a row, and sort the nodes of the steps topologically.

    `starts` (zeros) receives the offsets of each node's steps, `columns` (zeros) the number of each
    id. Returns the number of columns, the number of nodes (0 above `limit` columns), and whether
    the graph is acyclic, so that the order is complete.
    """
    low, one = np.uint64(0xFFFFFFFF), np.uint64(1)
    waiting = np.zeros(len(columns), np.uint32)  # steps from nodes that are not sorted yet
    for key in steps:
        starts[(key >> np.uint64(32)) + one] += np.uint32(1)
        waiting[key & low] += np.uint32(1)
    for key in frontier:
        columns[key & low] = 1
    tail = nodes = 0
    found = 1
    for x in range(len(columns)):
        # branch-free: all of these are hard to predict
        follows, leads = waiting[x] > 0, starts[x + 1] > 0
        order[tail] = x
        tail += leads and not follows
        nodes += leads or follows
        has_row = follows or (leads and columns[x] > 0)
        columns[x] = found if has_row else 0
        found += has_row
        starts[x + 1] += starts[x]
    if found > limit:
        return found, 0, False
    i = 0
    while i < tail:
        x = order[i]
        i += 1
        for j in range(starts[x], starts[x + np.uint32(1)]):
            z = steps[j] & low
            waiting[z] -= np.uint32(1)
            order[tail] = z
            tail += waiting[z] == 0
    return found, nodes, tail == nodes


@compiled
def components(steps: Keys, starts: Numbers, order: Numbers, ends: npt.NDArray[np.uint8]) -> int:
    """Sort nodes by strongly connected components, predecessors first (iterative Tarjan).

    `ends` becomes 1 at the first node of each component (the last one when read backward) and 0 at
    its other nodes. Returns the number of nodes.
    """
    low, one, none = np.uint64(0xFFFFFFFF), np.uint32(1), np.uint32(0xFFFFFFFF)
    size = len(starts) - 1
    has = np.zeros(size, np.uint8)
    for key in steps:
        has[key >> np.uint64(32)] = 1
        has[key & low] = 1
    number = np.zeros(size, np.uint32)  # order of discovery; `none` in completed components
    least = np.empty(size, np.uint32)
    cursor = np.empty(size, np.uint32)
    stack = np.empty(size, np.uint32)  # nodes of incomplete components
    path = np.empty(size, np.uint32)
    total = 0
    for x in range(size):
        total += int(np.int64(has[x]))
    at = total  # `order` is filled from its end, as components complete after their successors
    count = np.uint32(0)
    top = 0
    for root in range(size):
        if has[root] == 0 or number[root] != 0:
            continue
        depth = 0
        path[0] = root
        count += one
        number[root] = least[root] = count
        cursor[root] = starts[root]
        stack[top] = root
        top += 1
        while depth >= 0:
            x = path[depth]
            if cursor[x] < starts[x + one]:
                z = np.uint32(steps[cursor[x]] & low)
                cursor[x] += one
                if number[z] == 0:
                    count += one
                    number[z] = least[z] = count
                    cursor[z] = starts[z]
                    stack[top] = z
                    top += 1
                    depth += 1
                    path[depth] = z
                elif number[z] != none:
                    least[x] = min(least[x], number[z])
                continue
            if least[x] == number[x]:
                while True:
                    top -= 1
                    z = stack[top]
                    number[z] = none
                    at -= 1
                    order[at] = z
                    ends[at] = 0
                    if z == x:
                        break
                ends[at] = 1
            depth -= 1
            if depth >= 0:
                above = path[depth]
                least[above] = min(least[above], least[x])
    return total


@compiled
def estimate(
    steps: Keys,
    frontier: Keys,
    starts: Numbers,
    order: Numbers,
    ends: npt.NDArray[np.uint8],
    most: int,
) -> int:
    """Bound the number of pairs from above; exact for a forest if no node reaches `most` nodes."""
    low = np.uint64(0xFFFFFFFF)
    reached = np.zeros(len(starts), np.int64)
    n = 0
    last = len(order)
    for i in range(len(order) - 1, -1, -1):
        x = order[i]
        for j in range(starts[x], starts[x + np.uint32(1)]):
            n += reached[steps[j] & low] + 1
        if ends[i]:
            for k in range(i, last):
                reached[order[k]] = min(n, most)
            last = i
            n = 0
    pairs = 0
    for key in frontier:
        pairs += reached[key & low]
    return pairs


@quadratic
def fill(
    steps: Keys,
    starts: Numbers,
    order: Numbers,
    ends: npt.NDArray[np.uint8],
    columns: Keys,
    words: np.uint64,
    bits: Keys,
    nodes: Keys,
    sizes: Numbers,
    heights: Numbers,
) -> None:
    """Compute the rows of all columns; see `Rows` and `components`."""
    low, high, one = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
    six, low6 = np.uint64(6), np.uint64(63)
    for w in range(words):
        bits[w] = 0
    nodes[0] = sizes[0] = heights[0] = 0
    number = row = np.uint64(0)
    height = np.uint32(0)
    begins = True
    for i in range(len(order) - 1, -1, -1):
        x = order[i]
        if columns[x] == 0:
            continue  # it has no predecessor, so it is on no cycle
        first, last = starts[x], starts[x + np.uint32(1)]
        nodes[columns[x]] = (np.uint64(last - first) << high) | np.uint64(x)
        if begins:
            number += one
            row = number * words
            height = np.uint32(0)
            for w in range(words):
                bits[row + w] = 0
        columns[x] |= number << high
        # Later nodes of the same component have no row yet, but their bits are set.
        for j in range(first, last):
            z = columns[steps[j] & low]
            other = (z >> high) * words
            for w in range(words):
                bits[row + w] |= bits[other + w]
            bits[row + ((z & low) >> six)] |= one << (z & low6)
            if z >> high != number:
                height = max(height, heights[z >> high] + np.uint32(1))
        begins = ends[i] == 1
        if not begins:
            continue
        heights[number] = height
        size = 0
        for w in range(words):
            size += ones(bits[row + w])
        sizes[number] = size


@inlined
def next_subject(frontier: Keys, place: np.uint64) -> np.uint64:
    """Return the position of the next subject."""
    x = frontier[place] >> np.uint64(32)
    place += np.uint64(1)
    while place < np.uint64(len(frontier)) and frontier[place] >> np.uint64(32) == x:
        place += np.uint64(1)
    return place


@inlined
def reaches_itself(node: np.uint64, columns: Keys, words: np.uint64, bits: Keys) -> bool:
    """Test whether a node reaches itself."""
    column = columns[node]
    c = column & np.uint64(0xFFFFFFFF)
    word = bits[(column >> np.uint64(32)) * words + (c >> np.uint64(6))]
    return bool((word >> (c & np.uint64(63))) & np.uint64(1))


@inlined
def unite(
    frontier: Keys,
    place: np.uint64,
    end: np.uint64,
    columns: Keys,
    words: np.uint64,
    bits: Keys,
    row: Keys,
) -> None:
    """Compute the row of a subject: all that its objects reach, except these objects."""
    low, high, one = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
    six, low6 = np.uint64(6), np.uint64(63)
    a = (columns[frontier[place] & low] >> high) * words
    for w in range(words):
        row[w] = bits[a + w]
    for i in range(place + one, end):
        a = (columns[frontier[i] & low] >> high) * words
        for w in range(words):
            row[w] |= bits[a + w]
    for i in range(place, end):
        c = columns[frontier[i] & low] & low
        row[c >> six] &= ~(one << (c & low6))


@compiled
def count(
    frontier: Keys,
    accepted_bound: int,
    columns: Keys,
    words: np.uint64,
    bits: Keys,
    nodes: Keys,
    sizes: Numbers,
    heights: Numbers,
) -> int:
    """Count the new pairs, or return an upper bound that is at most `accepted_bound`."""
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    n = 0
    for key in frontier:
        n += sizes[columns[key & low] >> high]
    if n <= accepted_bound:
        return n
    row = np.empty(words, np.uint64)
    n = 0
    place = np.uint64(0)
    while place < np.uint64(len(frontier)):
        end = next_subject(frontier, place)
        if end == place + np.uint64(1):
            n += sizes[columns[frontier[place] & low] >> high]
            n -= reaches_itself(frontier[place] & low, columns, words, bits)
        else:
            unite(frontier, place, end, columns, words, bits, row)
            for w in range(words):
                n += ones(row[w])
        place = end
    return n


@compiled
def write(
    frontier: Keys,
    start: int,
    size: int,
    enough: int,
    columns: Keys,
    words: np.uint64,
    bits: Keys,
    nodes: Keys,
    sizes: Numbers,
    heights: Numbers,
    written: npt.NDArray[np.uint64],
    out: Keys,
) -> tuple[int, int, int, int]:
    """Append the new pairs of subjects from `start` on to the first `size`, up to `enough`.

    `written` (zeros) caches rows that alone made up the pairs of a subject: the position of these
    pairs in `out`, plus 1, and their number of instances.

    Returns the position of the next subject, the number of pairs, the instances and the longest
    chain.
    """
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    zero, one, six, top = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(1 << 63)
    row, filled = np.empty(words, np.uint64), np.empty(words, np.uint64)
    place, n, instances, longest = np.uint64(start), np.uint64(size), zero, np.uint32(0)
    while place < np.uint64(len(frontier)) and n < np.uint64(enough):
        head = frontier[place] & ~low
        end = next_subject(frontier, place)
        only = columns[frontier[place] & low] >> high
        # Otherwise the pairs differ from the row: the row contains the object, whose pair is known.
        alone = end == place + one and not reaches_itself(
            frontier[place] & low, columns, words, bits
        )
        if alone and written[0, only]:
            at = written[0, only] - one
            for i in range(np.uint64(sizes[only])):
                out[n + i] = head | (out[at + i] & low)
            n += np.uint64(sizes[only])
            instances += written[1, only]
            place = end
            continue
        if alone:
            written[0, only] = n + one
            for w in range(words):
                row[w] = bits[only * words + w]
        else:
            unite(frontier, place, end, columns, words, bits, row)
        before = instances
        for i in range(place, end):
            d = columns[frontier[i] & low]
            instances += nodes[d & low] >> high
            longest = max(longest, heights[d >> high])
        place = end
        k = zero
        for w in range(words):
            filled[k] = w
            k += np.uint64(row[w] != zero)
        for i in range(k):
            word, base = row[filled[i]], filled[i] << six
            stop = n + np.uint64(ones(word))
            if n + one < np.uint64(len(out)):
                # Most words have one or two bits: write two unconditionally.
                node = nodes[base | np.uint64(lowest(word))]
                out[n] = head | (node & low)
                instances += node >> high
                word &= word - one
                second = np.uint64(word != zero)
                node = nodes[base | np.uint64(lowest(word | top))]
                out[n + one] = head | (node & low)
                instances += (node >> high) * second
                n += one + second
                word &= word - second
            while n < stop:
                node = nodes[base | np.uint64(lowest(word))]
                out[n] = head | (node & low)
                instances += node >> high
                n += one
                word &= word - one
        if alone:
            written[1, only] = instances - before
    return int(place), int(n), int(np.int64(instances)), int(longest) + 1
