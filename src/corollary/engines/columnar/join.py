"""Rule bodies as pipelines of joins over columns.

A table of bindings (a column of ids for each variable that is still needed) is joined with the
atoms of a body, the most restrictive one next. An atom whose variables are all bound, or not needed
afterwards, is a semi-join. Each row has a weight, the number of rule instances that it represents,
so instances are counted without enumerating all of them. Large joins are evaluated in pieces to
bound memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from corollary.core.calls import computed
from corollary.core.compile import Condition
from corollary.core.dictionary import Ids
from corollary.core.expressions import holds
from corollary.engines.columnar.bindings import (
    LARGE,
    Counts,
    JoinAtom,
    Table,
    batch,
    concatenated,
    distinct_rows,
    expand,
    expand_by_value,
    longest_matches,
    matches,
    product,
)
from corollary.engines.columnar.budget import checkpoint
from corollary.engines.columnar.by_value import link
from corollary.engines.columnar.facts import Space
from corollary.engines.columnar.tuning import tuning

_LONG = 5  # a body with this many atoms is long
_TOGETHER = 1 << 21  # distinct rows of a long body that are collected before they continue
_SAMPLED_ROWS = 16  # whose matches are counted to choose the next atom
_SAMPLED_MERGE = 1 << 10  # rows that show whether many are equal
_ROW = 1 << 30  # from here on, columns hold numbers of rows instead of values of variables


@dataclass(frozen=True)
class Body:
    """A rule body: atoms, negated atoms (an anti-join each), and conditions."""

    atoms: tuple[JoinAtom, ...]
    absent: tuple[JoinAtom, ...] = ()
    present: tuple[JoinAtom, ...] = ()  # checked like `absent`, but must have a match
    conditions: tuple[Condition, ...] = ()
    needed: frozenset[int] = frozenset()  # variables of the head, or all requested ones
    once: bool = False  # one instance for each fact of the first atom suffices


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
        self.needed = set(body.needed)
        # Each atom of a long body may hold a pending piece, so pieces are smaller.
        self.share = max(1, len(atoms) // _LONG)
        self.once = body.once and self.share == 1
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
                table = self._merged(table, wanted | atom.variables())
                longest = self._longest(atom, table) if self.once and bound else None
                if longest is not None:
                    yield from self._first_instances(atom, table, wanted, left, longest)
                    return
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

    def _merged(self, table: Table, needed: set[int]) -> Table:
        """Drop the columns that are not needed, and merge rows that have become equal if many have.

        A hub that is joined with several atoms would otherwise be multiplied by each of them.
        """
        if table.rows < tuning.merged_rows_minimum or table.columns.keys() <= needed:
            return table
        kept = Table(
            table.rows, {v: c for v, c in table.columns.items() if v in needed}, table.weights
        )
        size = min(_SAMPLED_MERGE, kept.rows)
        rows = np.arange(size) * (kept.rows // size)
        is_worth_it = distinct_rows(kept.take(rows, size)).rows <= size // 2
        return distinct_rows(kept) if is_worth_it else kept

    def _longest(self, atom: JoinAtom, table: Table) -> Counts | None:
        """The most matches of each row in a run; None if they are so few that all are joined."""
        if self.conditions and link(atom.arguments, set(table.columns), self.conditions):
            return None
        found = longest_matches(atom, table, self.space)
        if found is None:
            return None
        longest, total = found
        is_few = total <= tuning.all_instances_limit or total <= tuning.first_instances * table.rows
        return None if is_few else longest

    def _first_instances(
        self, atom: JoinAtom, table: Table, wanted: set[int], left: list[int], longest: Counts
    ) -> Iterator[Table]:
        """Find an instance for each row: join with a few matches of the row first, then with more.

        A head with many instances usually has one among the first matches.
        """
        row = _ROW + len(left)
        self.needed.add(row)
        new = atom.variables() - set(table.columns)
        open_ = np.arange(table.rows)
        found = np.zeros(table.rows, bool)
        start, stop = 0, tuning.first_instances
        while len(open_):
            some = table.take(open_, len(open_))
            some.columns[row] = open_.astype(np.uint32)
            pieces_ = self._joined(atom, some, wanted | {row}, new, left, (start, stop))
            for piece, rest in pieces_:
                for result in self._step(piece, rest, None):
                    found[result.columns.pop(row)] = True
                    yield result
            open_ = open_[~found[open_] & (longest[open_] > stop)]
            start, stop = stop, 8 * stop
        self.needed.discard(row)

    def _joined(
        self,
        atom: JoinAtom,
        table: Table,
        wanted: set[int],
        new: frozenset[int],
        left: list[int],
        window: tuple[int, int] | None = None,
    ) -> Iterator[tuple[Table, list[int]]]:
        """Join the table with an atom that binds variables, in pieces, each with the atoms left."""
        bound = set(table.columns)
        linked = link(atom.arguments, bound, self.conditions) if self.conditions else None
        if linked is not None:
            found = expand_by_value(atom, table, *linked, self.space)
        else:
            size = max(1, tuning.join_piece_rows // self.share)
            found = expand(atom, table, self.space, size, window)
        # Merge rows that agree in all variables still needed. Otherwise, a long body would
        # enumerate all of its matches, of which there may be exponentially many.
        distinct = self.share > 1 and not bound | new <= wanted
        waiting: list[Table] = []
        rest, rows = left, 0
        for piece in found if len(atom.relation.runs) == 1 else batch(found):
            if piece.rows > LARGE:
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
                waiting = [distinct_rows(concatenated(waiting))]
                rows = waiting[0].rows
                if rows > _TOGETHER // 2:
                    yield waiting.pop(), rest
                    rows = 0
        if waiting:
            yield distinct_rows(concatenated(waiting)), rest

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
        if (counted := self._fewest(table, left)) is not None:
            return counted

        def cost(at: int) -> tuple[int, int, int]:
            atom = self.atoms[at]
            fixed = sum(a < 0 or a in table.columns for a in atom.arguments)
            if fixed == len(atom.arguments):
                return 0, 0, len(atom.relation)
            # A bound subject and property have few objects, whatever the number of triples; a bound
            # class may have many members.
            return (1 if fixed else 2), -fixed, len(atom.relation)

        return min(left, key=cost)

    def _fewest(self, table: Table, left: list[int]) -> int | None:
        """The atom with the fewest matches for a sample of rows, where indexes can tell.

        None if the table or all relations are small, or if an index would have to be built.
        """
        if not table.columns or table.rows < tuning.sampled_rows_minimum:
            return None
        joined = [at for at in left if any(a in table.columns for a in self.atoms[at].arguments)]
        if len(joined) < 2:
            return None
        for at in joined:
            atom = self.atoms[at]
            if atom.variables() <= table.columns.keys():
                return None  # a check comes first
            if len(atom.arguments) != 2:
                return None
            is_subject = atom.arguments[0] < 0 or atom.arguments[0] in table.columns
            runs = atom.relation.runs
            if not is_subject and not all(run.has_transposed for run in runs):
                return None
        rows = np.linspace(0, table.rows - 1, _SAMPLED_ROWS).astype(np.int64)
        some = table.take(rows, len(rows))
        return min(
            joined, key=lambda at: (int(matches(self.atoms[at], some, self.space).sum()), at)
        )

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
