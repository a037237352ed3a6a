"""Rule bodies as pipelines of joins over columns.

A table of bindings (a column of ids for each variable that is still needed) is joined with the
atoms of a body, the most restrictive one next. An atom whose variables are all bound, or not needed
afterwards, is a semi-join. Each row has a weight, the number of rule instances that it represents,
so instances are counted without enumerating all of them. Large joins are evaluated in pieces to
bound memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.calls import computed
from corollary.core.compile import Argument, Condition, constant_id
from corollary.core.dictionary import Ids
from corollary.core.expressions import holds
from corollary.engines.columnar import kernels
from corollary.engines.columnar.budget import checkpoint
from corollary.engines.columnar.by_value import ValueIndex, link
from corollary.engines.columnar.facts import Space
from corollary.engines.columnar.relation import HIGH, NONE, Relation, Run
from corollary.engines.columnar.tuning import tuning

_LONG = 5  # a body with this many atoms is long
_TOGETHER = 1 << 21  # distinct rows of a long body that are collected before they continue
MAX_INSTANCES = 1 << 62  # weights saturate here
_LARGE = 1 << 16  # rows; larger join results are checked against the budget

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


@dataclass(frozen=True)
class Body:
    """A rule body: atoms, negated atoms (an anti-join each), and conditions."""

    atoms: tuple[JoinAtom, ...]
    absent: tuple[JoinAtom, ...] = ()
    present: tuple[JoinAtom, ...] = ()  # checked like `absent`, but must have a match
    conditions: tuple[Condition, ...] = ()
    needed: frozenset[int] = frozenset()  # variables of the head, or all requested ones


def solve(body: Body, space: Space, first: int | None = None) -> Iterator[Table]:
    """Evaluate a body and yield its bindings in pieces; the atom `first` (a delta) comes first."""
    for atom in body.atoms:
        if not atom.relation.runs:
            return iter(())
    atoms = [atom.distinct(space) for atom in body.atoms]
    absent = [atom.distinct(space) for atom in body.absent]
    present = [atom.distinct(space) for atom in body.present]
    pipeline = _Pipeline(space, body, atoms, absent, present)
    start = starting_atom(atoms, first) if atoms else None
    return pipeline.run(Table(1), list(range(len(atoms))), start)


def starting_atom(atoms: Sequence[JoinAtom], first: int | None) -> int:
    """Choose the delta, else the smallest atom; prefer pairs that join with it if it is a set.

    Unless there are many more pairs, scanning them and looking up their subjects or objects in the
    set costs less than finding the pairs of each element, and needs no index.
    """
    soon = tuning.delta_scan_ratio if first is not None else tuning.first_scan_ratio
    if first is None:
        first = min(range(len(atoms)), key=lambda at: len(atoms[at].relation))
    atom = atoms[first]
    if len(atom.arguments) == 1:
        for at, other in enumerate(atoms):
            if (
                len(other.arguments) == 2
                and min(other.arguments) >= 0
                and atom.variables() < other.variables()
                and len(other.relation) < soon * len(atom.relation)
            ):
                return at
    return first


class _Pipeline:
    def __init__(
        self,
        space: Space,
        body: Body,
        atoms: list[JoinAtom],
        absent: list[JoinAtom],
        present: list[JoinAtom],
    ) -> None:
        self.space = space
        self.atoms = atoms
        self.checks = [(s, False) for s in absent] + [(s, True) for s in present]
        self.conditions = body.conditions
        self.needed = body.needed
        # Each atom of a long body may hold a pending piece, so pieces are smaller.
        self.share = max(1, len(atoms) // _LONG)
        self.shared: list[frozenset[int]] = []
        if self.checks:
            binding = frozenset(c.target for c in body.conditions if c.target is not None)
            binding = binding.union(*(atom.variables() for atom in atoms))
            # A check runs once the variables that it shares with the atoms are bound.
            self.shared = [source.variables() & binding for source, _ in self.checks]

    def run(self, table: Table, left: list[int], first: int | None) -> Iterator[Table]:
        table = self._check(table, set())
        yield from self._step(table, left, first)

    def _step(self, table: Table, left: list[int], first: int | None) -> Iterator[Table]:
        while table.rows and left:
            at = first if first is not None else self._choose(table, left)
            first = None
            left = [other for other in left if other != at]
            atom = self.atoms[at]
            bound = set(table.columns)
            wanted = self._wanted(left, bound)
            new = atom.variables() - bound
            if new & wanted:
                for piece, rest in self._joined(atom, table, wanted, new, left):
                    yield from self._step(piece, rest, None)
                return
            counts = matches(atom, table, self.space)
            result = table.filtered(counts > 0)
            if new:  # existential: the row represents all of its matches
                counts = counts[counts > 0].astype(np.int64, copy=False)
                weights = counts if result.weights is None else product(result.weights, counts)
                result = Table(result.rows, result.columns, weights)
            table = self._check(result, bound)
        if table.rows:
            yield table

    def _joined(
        self, atom: JoinAtom, table: Table, wanted: set[int], new: frozenset[int], left: list[int]
    ) -> Iterator[tuple[Table, list[int]]]:
        """Join the table with an atom that binds variables, in pieces, each with the atoms left."""
        bound = set(table.columns)
        linked = link(atom.arguments, bound, self.conditions) if self.conditions else None
        if linked is not None:
            found = expand_by_value(atom, table, *linked, self.space)
        else:
            found = expand(atom, table, self.space, max(1, tuning.join_piece_rows // self.share))
        # Merge rows that agree in all variables still needed. Otherwise, a long body would
        # enumerate all of its matches, of which there may be exponentially many.
        distinct = self.share > 1 and not bound | new <= wanted
        waiting: list[Table] = []
        rest, rows = left, 0
        for piece in found if len(atom.relation.runs) == 1 else batch(found):
            if piece.rows > _LARGE:
                checkpoint()
            keep = {v: c for v, c in piece.columns.items() if v in wanted or v in new}
            result, unmet = self._met(Table(piece.rows, keep, piece.weights), left)
            result = self._check(result, bound)
            keep = {v: c for v, c in result.columns.items() if v in wanted}
            result = Table(result.rows, keep, result.weights)
            if not result.rows:
                continue
            rest = unmet
            if not distinct:
                yield result, rest
                continue
            waiting.append(distinct_rows(result))
            rows += waiting[-1].rows
            if rows > _TOGETHER:
                waiting = [distinct_rows(_together(waiting))]
                rows = waiting[0].rows
                if rows > _TOGETHER // 2:
                    yield waiting.pop(), rest
                    rows = 0
        if waiting:
            yield distinct_rows(_together(waiting)), rest

    def _met(self, table: Table, left: list[int]) -> tuple[Table, list[int]]:
        """Apply atoms whose variables are all bound before any condition.

        A condition may read the text of terms, which a dictionary may have to fetch.
        """
        if not self.conditions:
            return table, left
        rest = []
        for at in left:
            atom = self.atoms[at]
            if not table.rows or not atom.arguments or not atom.variables() <= set(table.columns):
                rest.append(at)
            else:
                table = table.filtered(matches(atom, table, self.space) > 0)
        return table, rest

    def _wanted(self, left: list[int], bound: set[int]) -> set[int]:
        """Return the variables that are still needed after an atom has been joined."""
        wanted = set(self.needed)
        for at in left:
            wanted |= self.atoms[at].variables()
        for condition in self.conditions:
            if not bound.issuperset(condition.variables):
                wanted.update(condition.all_variables)
        for shared in self.shared:
            if not bound >= shared:
                wanted |= shared
        return wanted

    def _choose(self, table: Table, left: list[int]) -> int:
        """Rank the atoms: checks first, then by bound arguments, then smaller relations first."""

        if len(left) == 1:
            return left[0]

        def cost(at: int) -> tuple[int, int, int]:
            atom = self.atoms[at]
            fixed = sum(a < 0 or a in table.columns for a in atom.arguments)
            if fixed == len(atom.arguments):
                return 0, 0, len(atom.relation)
            # A bound subject and property have few objects, whatever the number of triples; a bound
            # class may have many members.
            return (1 if fixed else 2), -fixed, len(atom.relation)

        return min(left, key=cost)

    def _check(self, table: Table, before: set[int]) -> Table:
        """Apply the conditions and checks whose variables have just become bound."""
        if not self.conditions and not self.checks:
            return table
        bound = set(table.columns)
        start = not before
        for condition in self.conditions:
            variables = set(condition.variables)
            if table.rows and variables <= bound and (start or not variables <= before):
                columns = {v: table.columns[v] for v in variables}
                if condition.target is not None:
                    table = self._computed(condition.target, condition, columns, table)
                    bound.add(condition.target)
                    continue
                mask = holds(condition.expression, columns, table.rows, self.space.dictionary)
                table = table.filtered(mask)
        for (source, wanted), shared in zip(self.checks, self.shared, strict=True):
            if table.rows and shared <= bound and (start or not shared <= before):
                table = table.filtered((matches(source, table, self.space) > 0) == wanted)
        return table

    def _computed(
        self, target: int, condition: Condition, columns: dict[int, Ids], table: Table
    ) -> Table:
        """Bind a variable to the value of an expression, or compare it if it is bound."""
        values, valid = computed(condition.expression, columns, table.rows, self.space.dictionary)
        known = table.columns.get(target)
        if known is not None:
            return table.filtered(valid & (known == values))
        result = table.filtered(valid)
        result = Table(result.rows, dict(result.columns), result.weights)
        result.columns[target] = values if result.rows == len(values) else values[valid]
        return result


def matches(source: JoinAtom, table: Table, space: Space) -> Counts | npt.NDArray[np.bool_]:
    """Count the facts of the source that match each row; a mask if at most one can match."""
    relation = source.relation
    positions = [p for p, a in enumerate(source.arguments) if a < 0 or a in table.columns]
    if not positions and source.arguments:
        return np.full(table.rows, len(relation), np.int64)
    columns = [_values(source.arguments[p], table) for p in positions]
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


def expand(
    source: JoinAtom, table: Table, space: Space, size: int | None = None
) -> Iterator[Table]:
    """Join the table with the source, in pieces of about `size` rows.

    The default is `tuning.join_piece_rows`.
    """
    size = size or tuning.join_piece_rows
    positions = [p for p, a in enumerate(source.arguments) if a < 0 or a in table.columns]
    free = [p for p in range(len(source.arguments)) if p not in positions]
    for run in source.relation.runs:
        if not positions:
            yield from _scan(run, source, table, space, size)
            continue
        columns = [_values(source.arguments[p], table) for p in positions]
        low, high, index, order = _ranges(run, positions, columns, source.relation.arity, space)
        sizes = high - low
        for start, stop in pieces(sizes, size):
            total = int(sizes[start:stop].sum())
            if not total:
                continue
            if total > _LARGE:
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
    if rows > _LARGE:
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
                yield _together(small)
                small, rows = [], 0
    if small:
        yield _together(small)


def _together(tables: list[Table]) -> Table:
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
