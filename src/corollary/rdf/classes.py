"""`Classes`: which terms are equal, with one of them to stand for all.

A value of two arrays: the terms that are equal to some other one, in order, and the representative
of each. All other terms represent themselves. Where classes merge, the representative of the
greatest stays, so that the least is rewritten.
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
    """Equal terms, by id.

    >>> classes = Classes().merged(np.array([[4, 2], [8, 9], [2, 6]], np.uint32))
    >>> classes.of(np.array([1, 2, 4, 6, 9], np.uint32)).tolist()
    [1, 2, 2, 2, 8]
    >>> [column.tolist() for column in classes.expanded([np.array([1, 8], np.uint32)])]
    [[1, 8, 9]]
    """

    terms: Ids = field(default_factory=lambda: _NONE)
    representatives: Ids = field(default_factory=lambda: _NONE)

    def __len__(self) -> int:
        """How many classes have more than one member."""
        return len(self._groups[0])

    def of(self, ids: Ids) -> Ids:
        """The representatives of terms."""
        if not len(self.terms) or not len(ids):
            return ids
        at = np.minimum(np.searchsorted(self.terms, ids), len(self.terms) - 1)
        return np.where(self.terms[at] == ids, self.representatives[at], ids)

    def of_one(self, term_id: int) -> int:
        """The representative of a term."""
        return int(self.of(np.array([term_id], np.uint32))[0])

    def has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Which of the terms are equal to some other one."""
        if not len(self.terms):
            return np.zeros(len(ids), np.bool_)
        at = np.minimum(np.searchsorted(self.terms, ids), len(self.terms) - 1)
        found: npt.NDArray[np.bool_] = self.terms[at] == ids
        return found

    @cached_property
    def _groups(self) -> tuple[Ids, Numbers, Numbers, Ids]:
        """The representatives in order, where their members begin, how many, the members."""
        order = np.argsort(self.representatives, kind="stable")
        found, starts, counts = np.unique(
            self.representatives[order], return_index=True, return_counts=True
        )
        return found, starts, counts, self.terms[order]

    @property
    def all(self) -> Ids:
        """The representatives of classes of more than one member, in order."""
        return self._groups[0]

    def sizes(self, representatives: Ids) -> Numbers:
        """How many members the classes of representatives have."""
        found, _, counts, _ = self._groups
        if not len(found):
            return np.ones(len(representatives), np.int64)
        at = np.minimum(np.searchsorted(found, representatives), len(found) - 1)
        return np.where(found[at] == representatives, counts[at], 1)

    def members(self, representatives: Ids) -> Ids:
        """The members of the classes of representatives, one class after the other."""
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
        """The members of one class."""
        found: list[int] = self.members(np.array([representative], np.uint32)).tolist()
        return found

    def expanded(self, columns: Sequence[Ids]) -> list[Ids]:
        """Rows of representatives as all rows of members that they stand for."""
        out = list(columns)
        for position in range(len(out)):
            if self.has(out[position]).any():
                sizes = self.sizes(out[position])
                members = self.members(out[position])
                out = [np.repeat(column, sizes) for column in out]
                out[position] = members
        return out

    def pairs(self, terms: Ids | None = None) -> Ids:
        """Terms (or some of them) with their representatives before them, if these are others."""
        terms = self.terms if terms is None else terms
        representatives = self.of(terms)
        other = terms != representatives
        return np.stack([representatives[other], terms[other]], axis=1)

    def merged(self, pairs: Ids, first: int | None = None) -> Classes:
        """With the classes of each pair made one; `first` represents its class in any case."""
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
        # Members of the classes that merge; all others stay as they are.
        moved = np.isin(self.representatives, old)
        terms = np.concatenate([self.terms[~moved], self.members(old)])
        representatives = np.concatenate(
            [self.representatives[~moved], np.repeat(new, self.sizes(old))]
        )
        order = np.argsort(terms)
        return Classes(terms[order], representatives[order])

    def without(self, representatives: Ids) -> Classes:
        """With these classes dissolved into single terms."""
        kept = ~np.isin(self.representatives, representatives)
        return Classes(self.terms[kept], self.representatives[kept]) if not kept.all() else self

    def moved(self, other: Classes) -> Ids:
        """The terms whose representatives differ."""
        if self is other:
            return _NONE
        mine = self.terms[self.representatives != other.of(self.terms)]
        theirs = other.terms[other.representatives != self.of(other.terms)]
        found: Ids = np.union1d(mine, theirs)
        return found
