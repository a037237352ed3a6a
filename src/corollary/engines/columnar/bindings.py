"""Tables of bindings, and how an atom matches them: semi-joins and joins by index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.compile import Argument, constant_id
from corollary.core.dictionary import Ids
from corollary.engines.columnar import kernels
from corollary.engines.columnar.by_value import ValueIndex
from corollary.engines.columnar.facts import Space
from corollary.engines.columnar.relation import HIGH, NONE, Relation, Run
from corollary.engines.columnar.tuning import tuning

MAX_INSTANCES = 1 << 62  # weights saturate here
LARGE = 1 << 16  # rows; larger join results are checked against the budget

Counts = npt.NDArray[np.int64]


@dataclass
class Table:
    """Bindings: row i represents `weights[i]` rule instances (1 without weights)."""

    rows: int
    columns: dict[int, Ids] = field(default_factory=dict)
    weights: Counts | None = None

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_], count: int) -> Table:
        """Select rows by number or by mask."""
        weights = None if self.weights is None else self.weights[rows]
        return Table(count, {v: column[rows] for v, column in self.columns.items()}, weights)

    def filtered(self, mask: npt.NDArray[np.bool_]) -> Table:
        """Select the rows of a mask."""
        count = int(np.count_nonzero(mask))
        return self if count == self.rows else self.take(mask, count)

    def instances(self) -> int:
        """Count the rule instances in the table."""
        if self.weights is None:
            return self.rows
        if self.rows and int(self.weights.max()) > MAX_INSTANCES // self.rows:
            return int(self.weights.sum(dtype=np.float64))
        return int(self.weights.sum())


@lru_cache(maxsize=1 << 16)
def _variables(arguments: tuple[Argument, ...]) -> frozenset[int]:
    return frozenset(a for a in arguments if a >= 0)


@lru_cache(maxsize=1 << 16)
def _repeats(arguments: tuple[Argument, ...]) -> bool:
    return len([a for a in arguments if a >= 0]) > len(_variables(arguments))


class JoinAtom(NamedTuple):
    """An atom to join with: its arguments and the facts that it reads."""

    arguments: tuple[Argument, ...]
    relation: Relation

    def variables(self) -> frozenset[int]:
        return _variables(self.arguments)

    def distinct(self, space: Space) -> JoinAtom:
        """Eliminate repeated variables: keep the facts whose repeated arguments are equal."""
        if not _repeats(self.arguments):
            return self
        columns = space.packing.unpack(self.relation.keys(), len(self.arguments))
        mask = np.ones(len(self.relation), bool)
        first: dict[int, int] = {}
        kept: list[int] = []
        for position, argument in enumerate(self.arguments):
            if argument >= 0 and argument in first:
                mask &= columns[position] == columns[first[argument]]
            else:
                first[argument] = position
                kept.append(position)
        relation = space.of_columns([columns[p][mask] for p in kept], int(mask.sum()))
        return JoinAtom(tuple(self.arguments[p] for p in kept), relation)


def matches(source: JoinAtom, table: Table, space: Space) -> Counts | npt.NDArray[np.bool_]:
    """Count the facts of the source that match each row; a mask if at most one can match."""
    relation = source.relation
    positions, columns = known_columns(source, table)
    if not positions and source.arguments:
        return np.full(table.rows, len(relation), np.int64)
    if len(positions) == len(source.arguments):
        probes = columns[0] if len(columns) == 1 else space.packing.pack(columns, table.rows)
        return relation.contains(probes)
    counts = np.zeros(table.rows, np.int64)
    for run in relation.runs:
        low, high, *_ = _ranges(run, positions, columns, relation.arity, space)
        counts += high - low
    for run in relation.tombstones:
        low, high, *_ = _ranges(run, positions, columns, relation.arity, space)
        counts -= high - low
    return counts


def longest_matches(source: JoinAtom, table: Table, space: Space) -> tuple[Counts, int] | None:
    """The most matches of each row in one run, and all matches; None if the row has no influence.

    Tombstones are not subtracted.
    """
    positions, columns = known_columns(source, table)
    if not positions:
        return None
    longest, total = np.zeros(table.rows, np.int64), 0
    for run in source.relation.runs:
        low, high, *_ = _ranges(run, positions, columns, source.relation.arity, space)
        longest = np.maximum(longest, high - low)
        total += int((high - low).sum())
    return longest, total


def expand(
    source: JoinAtom,
    table: Table,
    space: Space,
    size: int | None = None,
    window: tuple[int, int] | None = None,
) -> Iterator[Table]:
    """Join the table with the source, in pieces of about `size` rows.

    The default is `tuning.join_piece_rows`. A window selects some of the matches that each row has
    in each run, by their positions.
    """
    size = size or tuning.join_piece_rows
    positions, columns = known_columns(source, table)
    free = [p for p in range(len(source.arguments)) if p not in positions]
    for run in source.relation.runs:
        if not positions:
            yield from _scan(run, source, table, space, size)
            continue
        low, high, index, order = _ranges(run, positions, columns, source.relation.arity, space)
        if window is not None:
            low, high = np.minimum(low + window[0], high), np.minimum(low + window[1], high)
        sizes = high - low
        for start, stop in pieces(sizes, size):
            total = int(sizes[start:stop].sum())
            if not total:
                continue
            if total > LARGE:
                _reserve(space, total, len(table.columns) + len(free), int(sizes.sum()))
            rows, places = kernels.expand(low[start:stop], high[start:stop], total)
            if start:
                rows += start
            result = table.take(rows, total)
            if order is None:
                result.columns[source.arguments[free[0]]] = kernels.gather(index.keys, places)
            else:
                facts = run.columns(source.relation.arity, space.packing)
                places = order[places]
                for p in free:
                    result.columns[source.arguments[p]] = facts[p][places]
            yield _alive(result, source, space)


def expand_by_value(
    source: JoinAtom, table: Table, known: int, free: int, space: Space
) -> Iterator[Table]:
    """Join rows with facts whose term `free` has the same value as the row's term `known`."""
    facts = space.packing.unpack(source.relation.keys(), source.relation.arity)
    index = ValueIndex(facts[source.arguments.index(free)], space.dictionary)
    low, high = index.ranges(table.columns[known])
    for start, stop in pieces(high - low, tuning.join_piece_rows):
        total = int((high - low)[start:stop].sum())
        if total:
            _reserve(space, total, len(table.columns) + len(facts), int((high - low).sum()))
            rows, places = kernels.expand(low[start:stop], high[start:stop], total)
            result = table.take(rows + start, total)
            for argument, column in zip(source.arguments, facts, strict=True):
                result.columns[argument] = column[index.order[places]]
            yield result


def _reserve(space: Space, rows: int, columns: int, whole: int) -> None:
    """Reserve memory for a piece of a join's result."""
    if rows > LARGE:
        purpose = f"a join with {whole:,} results, {rows:,} at a time,"
        space.budget.reserve(rows * (24 + 4 * columns), purpose)


def batch(tables: Iterable[Table]) -> Iterator[Table]:
    """Concatenate small tables, such as those of small runs, into fewer larger ones."""
    small: list[Table] = []
    rows = 0
    for table in tables:
        if table.rows >= tuning.gathered_rows_limit:
            yield table
        elif table.rows:
            small.append(table)
            rows += table.rows
            if rows >= tuning.gathered_rows_limit:
                yield concatenated(small)
                small, rows = [], 0
    if small:
        yield concatenated(small)


def concatenated(tables: list[Table]) -> Table:
    if len(tables) == 1:
        return tables[0]
    weights = None
    if any(table.weights is not None for table in tables):
        weights = np.concatenate(
            [np.ones(t.rows, np.int64) if t.weights is None else t.weights for t in tables]
        )
    columns = {v: np.concatenate([t.columns[v] for t in tables]) for v in tables[0].columns}
    return Table(sum(table.rows for table in tables), columns, weights)


def product(left: Counts, right: Counts) -> Counts:
    """Multiply counts, saturating at `MAX_INSTANCES` instead of overflowing, to 0 at worst."""
    if not len(left) or int(left.max()) <= MAX_INSTANCES // int(right.max()):
        return left * right
    exact = left.astype(np.float64) * right
    return np.where(exact < MAX_INSTANCES, left * right, MAX_INSTANCES)


def distinct_rows(table: Table) -> Table:
    """Merge rows with equal values into one row, whose weight is the sum of theirs."""
    if table.rows < 2:
        return table
    weights = np.ones(table.rows, np.int64) if table.weights is None else table.weights
    if not table.columns:
        return Table(1, {}, _sums(weights, np.zeros(1, np.int64)))
    keys = np.zeros(table.rows, np.uint64)
    for column in table.columns.values():
        keys = np.unique(keys << HIGH | column, return_inverse=True)[1].astype(np.uint64)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=np.uint64(len(keys))))
    if len(starts) == table.rows:
        return table
    rows = order[starts]
    columns = {v: column[rows] for v, column in table.columns.items()}
    return Table(len(starts), columns, _sums(weights[order], starts))


def _sums(weights: Counts, starts: npt.NDArray[np.int64]) -> Counts:
    sums = np.add.reduceat(weights, starts)
    if int(weights.max()) > MAX_INSTANCES // len(weights):
        exact = np.add.reduceat(weights.astype(np.float64), starts)
        sums = np.where(exact < MAX_INSTANCES, sums, MAX_INSTANCES)
    return sums


def _scan(run: Run, source: JoinAtom, table: Table, space: Space, most: int) -> Iterator[Table]:
    """Compute the cross product of the rows and the facts of a run."""
    arity = source.relation.arity
    step = max(1, most // max(1, table.rows))
    for start in range(0, len(run), step):
        if step >= len(run):
            facts = run.columns(arity, space.packing)
        else:
            facts = space.packing.unpack(run.keys[start : start + step], arity)
        size = min(step, len(run) - start)
        if table.rows == 1 and not table.columns:
            result = Table(
                size, {}, None if table.weights is None else np.repeat(table.weights, size)
            )
        else:
            whole = table.rows * len(run)
            _reserve(space, table.rows * size, len(table.columns) + len(facts), whole)
            result = table.take(np.repeat(np.arange(table.rows), size), table.rows * size)
            facts = [np.tile(column, table.rows) for column in facts]
        for argument, column in zip(source.arguments, facts, strict=True):
            result.columns[argument] = column
        yield _alive(result, source, space)


def _alive(result: Table, source: JoinAtom, space: Space) -> Table:
    """Drop the rows that come from tombstones."""
    if not source.relation.tombstones or not result.rows:
        return result
    columns = [_values(argument, result) for argument in source.arguments]
    return result.filtered(~source.relation.is_tombstone(space.packing.pack(columns, result.rows)))


def _ranges(
    run: Run, positions: list[int], columns: list[Ids], arity: int, space: Space
) -> tuple[Counts, Counts, Run, Counts | None]:
    """Look up index ranges; also return the index and, for wide facts, the permutation of rows."""
    probes = space.packing.pack(columns, len(columns[0]))
    if arity == 2:
        index = run if positions == [0] else run.transposed
        return *index.ranges(probes, HIGH), index, None
    index, order = run.by(tuple(positions), arity, space.packing)
    return *index.ranges(probes, NONE), index, order


def known_columns(source: JoinAtom, table: Table) -> tuple[list[int], list[Ids]]:
    """The positions of an atom that a row determines, and their values."""
    positions = [p for p, a in enumerate(source.arguments) if a < 0 or a in table.columns]
    return positions, [_values(source.arguments[p], table) for p in positions]


def _values(argument: Argument, table: Table) -> Ids:
    if argument >= 0:
        return table.columns[argument]
    return np.full(table.rows, constant_id(argument), np.uint32)


def pieces(sizes: Counts, size: int) -> Iterator[tuple[int, int]]:
    """Split the rows into ranges whose join results have about `size` rows each."""
    if len(sizes) <= tuning.gathered_rows_limit and int(sizes.sum()) <= size:
        yield 0, len(sizes)
        return
    ends = np.cumsum(sizes)
    start = done = 0
    while start < len(sizes):
        stop = int(np.searchsorted(ends, done + size, side="right"))
        stop = min(max(stop, start + 1), len(sizes))
        yield start, stop
        done = int(ends[stop - 1])
        start = stop
