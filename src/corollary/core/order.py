"""The order of terms as values: for the least and greatest of a group, over columns of ids.

Numbers come before all other values, and values of different kinds in the order of the names of
their kinds. Among equal values, such as 1 and 1.0, the one with the first `form` is the best.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.extrema import form
from corollary.lang.operands import ordering

Ranks = npt.NDArray[np.int64]

UNORDERED = np.int64(2**62)  # the rank of terms without an order, such as IRIs
_BULK = 2_000  # fewer take less time one by one


def ranks(ids: Ids, dictionary: Dictionary, *, greatest: bool) -> tuple[Ranks, Ranks]:
    """Rank ids by value (equal values share a rank), and by value and form; the best have rank 0.

    >>> from corollary.lang.syntax import XSD, Literal
    >>> dictionary = Dictionary()
    >>> texts = ["2", "1", "10", "01"]
    >>> ids = dictionary.encode([Literal(text, XSD + "integer") for text in texts])
    >>> [found.tolist() for found in ranks(ids, dictionary, greatest=False)]
    [[1, 0, 2, 0], [2, 1, 3, 0]]
    """
    distinct, place = np.unique(ids, return_inverse=True)
    bulk = _numbers(distinct, dictionary) if len(distinct) >= _BULK else None
    if bulk is not None:
        levels = np.unique(-bulk if greatest else bulk, return_inverse=True)[1].astype(np.int64)
    else:
        levels = _levels(distinct, dictionary, greatest)
    return levels[place], _by_form(levels, distinct, dictionary)[place]


def _numbers(ids: Ids, dictionary: Dictionary) -> npt.NDArray[np.float64] | None:
    """The values of terms that are all numbers, which doubles represent uniquely."""
    if dictionary.partial:
        return None
    from corollary.core.kinds import INTEGER_NUMBER, NUMBER, Kinds

    kinds, numbers = Kinds.of_dictionary(dictionary).of(ids, dictionary)
    return numbers if bool(((kinds == INTEGER_NUMBER) | (kinds == NUMBER)).all()) else None


def _levels(ids: Ids, dictionary: Dictionary, greatest: bool) -> Ranks:
    spaces: dict[str, list[tuple[Any, int]]] = {}
    levels = np.full(len(ids), UNORDERED)
    for at, term in enumerate(dictionary.terms(ids.tolist())):
        found = ordering(term)
        if found is not None:
            space, key = found
            spaces.setdefault(space, []).append((key, at))
    level = -1
    for space in sorted(spaces, key=lambda name: (name != "number", name)):
        members = spaces[space]
        members.sort(key=lambda pair: pair[0], reverse=greatest)
        before: Any = None
        for number, (key, at) in enumerate(members):
            level += number == 0 or key != before
            before, levels[at] = key, level
    return levels


def _by_form(levels: Ranks, ids: Ids, dictionary: Dictionary) -> Ranks:
    """Break ties between equal values by their forms."""
    order = np.argsort(levels, kind="stable")
    ordered = levels[order]
    same = np.concatenate([[False], ordered[1:] == ordered[:-1]]) & (ordered != UNORDERED)
    if same.any():
        starts = np.flatnonzero(~same)
        ends = np.append(starts[1:], len(order))
        several = ends - starts > 1
        for start, end in zip(starts[several].tolist(), ends[several].tolist(), strict=True):
            tied = order[start:end]
            forms = [form(term) for term in dictionary.terms(ids[tied].tolist())]
            order[start:end] = tied[sorted(range(len(tied)), key=forms.__getitem__)]
    found = np.empty(len(ids), np.int64)
    found[order] = np.arange(len(ids))
    found[levels == UNORDERED] = UNORDERED
    return found
