"""`Classes`: equivalence classes of terms, each with a representative.

An immutable value of two arrays: the sorted terms that equal another term, and the representative
of each. All other terms represent themselves. A merged class keeps the representative of its
largest part, so the fewest facts are rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from corollary.core.connected import components
from corollary.core.dictionary import Ids

Numbers = npt.NDArray[np.int64]

_NONE = np.empty(0, np.uint32)


@dataclass(frozen=True, eq=False)
class Classes:
    """Equivalence classes of term ids.

    >>> classes = Classes().merged(np.array([[4, 2], [8, 9], [2, 6]], np.uint32))
    >>> classes.of(np.array([1, 2, 4, 6, 9], np.uint32)).tolist()
    [1, 2, 2, 2, 8]
    >>> [column.tolist() for column in classes.expanded([np.array([1, 8], np.uint32)])]
    [[1, 8, 9]]
    """

    terms: Ids = field(default_factory=lambda: _NONE)
    representatives: Ids = field(default_factory=lambda: _NONE)

    def __len__(self) -> int:
        """Count the classes with several members."""
        return len(self._groups[0])

    def of(self, ids: Ids) -> Ids:
        """Map terms to their representatives."""
        if not len(self.terms) or not len(ids):
            return ids
        at, found = _find(self.terms, ids)
        return np.where(found, self.representatives[at], ids)

    def of_one(self, term_id: int) -> int:
        """Return the representative of a term."""
        return int(self.of(np.array([term_id], np.uint32))[0])

    def has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return a mask of the terms that equal another term."""
        if not len(self.terms):
            return np.zeros(len(ids), np.bool_)
        return _find(self.terms, ids)[1]

    @cached_property
    def _groups(self) -> tuple[Ids, Numbers, Numbers, Ids]:
        """The sorted representatives, the starts and sizes of their classes, and the members."""
        order = np.argsort(self.representatives, kind="stable")
        found, starts, counts = np.unique(
            self.representatives[order], return_index=True, return_counts=True
        )
        return found, starts, counts, self.terms[order]

    @property
    def nontrivial(self) -> Ids:
        """The sorted representatives of classes with several members."""
        return self._groups[0]

    def sizes(self, representatives: Ids) -> Numbers:
        """Return the sizes of the classes of representatives."""
        found, _, counts, _ = self._groups
        if not len(found):
            return np.ones(len(representatives), np.int64)
        at, is_class = _find(found, representatives)
        return np.where(is_class, counts[at], 1)

    def members(self, representatives: Ids) -> Ids:
        """Return the members of the classes of representatives, concatenated."""
        found, starts, _, members = self._groups
        sizes = self.sizes(representatives)
        out = np.repeat(representatives, sizes)
        if not len(found):
            return out
        nontrivial = sizes > 1
        first = starts[np.searchsorted(found, representatives[nontrivial])]
        lengths = sizes[nontrivial]
        ends = np.cumsum(lengths)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
        out[np.repeat(nontrivial, sizes)] = members[np.repeat(first, lengths) + within]
        return out

    def members_of(self, representative: int) -> list[int]:
        """Return the members of one class."""
        found: list[int] = self.members(np.array([representative], np.uint32)).tolist()
        return found

    def expanded(self, columns: Sequence[Ids]) -> list[Ids]:
        """Expand rows of representatives to all rows of their members."""
        out = list(columns)
        for position in range(len(out)):
            if self.has(out[position]).any():
                sizes = self.sizes(out[position])
                members = self.members(out[position])
                out = [np.repeat(column, sizes) for column in out]
                out[position] = members
        return out

    def pairs(self, terms: Ids | None = None) -> Ids:
        """Pair representatives with the other members of their classes; by default, of all."""
        terms = self.terms if terms is None else terms
        representatives = self.of(terms)
        other = terms != representatives
        return np.stack([representatives[other], terms[other]], axis=1)

    def merged(self, pairs: Ids, first: int | None = None) -> Classes:
        """Merge the classes of each pair; `first` always represents its class."""
        pairs = self.of(pairs.reshape(-1)).reshape(-1, 2)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        if not len(pairs):
            return self
        old, label = components(pairs)
        weight = self.sizes(old)
        if first is not None:
            weight = np.where(old == first, np.iinfo(np.int64).max, weight)
        order = np.lexsort((old, -weight, label))
        labels, best = np.unique(label[order], return_index=True)
        new = old[order][best][np.searchsorted(labels, label)]
        # Only members of merged classes change.
        moved = np.isin(self.representatives, old)
        terms = np.concatenate([self.terms[~moved], self.members(old)])
        representatives = np.concatenate(
            [self.representatives[~moved], np.repeat(new, self.sizes(old))]
        )
        order = np.argsort(terms)
        return Classes(terms[order], representatives[order])

    def without(self, representatives: Ids) -> Classes:
        """Dissolve classes into single terms."""
        remaining = ~np.isin(self.representatives, representatives)
        return (
            Classes(self.terms[remaining], self.representatives[remaining])
            if not remaining.all()
            else self
        )

    def moved(self, other: Classes) -> Ids:
        """Return the terms whose representatives differ."""
        if self is other:
            return _NONE
        mine = self.terms[self.representatives != other.of(self.terms)]
        theirs = other.terms[other.representatives != self.of(other.terms)]
        found: Ids = np.union1d(mine, theirs)
        return found


def _find(ordered: Ids, ids: Ids) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Search ids in a nonempty sorted array; returns their positions and a mask of matches."""
    at = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
    return at, np.asarray(ordered[at] == ids)
