"""Which heads have an instance at all: rule after rule, for the heads that are left.

Most rules of an ontology have one body atom that shares its variables with the head in one of a few
ways; for these, membership of keys decides, and no join is set up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from corollary.core.compile import CompiledRule
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import HIGH, Relation

Mask = npt.NDArray[np.bool_]
Check = Callable[[Keys, Relation], Mask]


@lru_cache(maxsize=1 << 14)
def check_of(rule: CompiledRule) -> Check | None:
    """How to find out which head keys a rule derives, if one atom decides by its keys."""
    if (
        len(rule.body) != 1
        or rule.negated
        or rule.conditions
        or rule.groupings
        or rule.head.wide
        or rule.body[0].wide
    ):
        return None
    head, body = rule.head.arguments, rule.body[0].arguments
    if min(body, default=-1) < 0 or len(set(body)) < len(body) or len(body) > 2:
        return None
    if head == body:
        return _same
    if len(body) == 2:
        return {body[::-1]: _swapped, body[:1]: _has_object, body[1:]: _has_subject}.get(head)
    return None


def _same(keys: Keys, relation: Relation) -> Mask:
    """P(x, y) :- Q(x, y) and P(x) :- Q(x)."""
    return relation.contains(keys)


def _swapped(keys: Keys, relation: Relation) -> Mask:
    """P(y, x) :- Q(x, y)."""
    return relation.contains((keys << HIGH) | (keys >> HIGH))


def _has_object(keys: Keys, relation: Relation) -> Mask:
    """P(x) :- Q(x, y)."""
    return _matched(keys, relation, swapped=False)


def _has_subject(keys: Keys, relation: Relation) -> Mask:
    """P(y) :- Q(x, y)."""
    return _matched(keys, relation, swapped=True)


def _matched(keys: Keys, relation: Relation, *, swapped: bool) -> Mask:
    counts = np.zeros(len(keys), np.int64)
    for run in relation.runs:
        low, high = (run.swapped if swapped else run).ranges(keys, HIGH)
        counts += high - low
    for run in relation.dead:
        low, high = (run.swapped if swapped else run).ranges(keys, HIGH)
        counts -= high - low
    return counts > 0
