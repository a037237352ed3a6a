"""Existence checks: find the heads that have a rule instance, without a join.

Most rules of an ontology have one body atom whose variables appear in the head in one of a few
ways; for these, a membership test of keys is enough.
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
def membership_check(rule: CompiledRule) -> Check | None:
    """Choose the membership test that finds the heads a rule derives; None if it needs a join."""
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
        return {body[::-1]: _transposed, body[:1]: _has_object, body[1:]: _has_subject}.get(head)
    return None


def _same(keys: Keys, relation: Relation) -> Mask:
    """P(x, y) :- Q(x, y) and P(x) :- Q(x)."""
    return relation.contains(keys)


def _transposed(keys: Keys, relation: Relation) -> Mask:
    """P(y, x) :- Q(x, y)."""
    return relation.contains((keys << HIGH) | (keys >> HIGH))


def _has_object(keys: Keys, relation: Relation) -> Mask:
    """P(x) :- Q(x, y)."""
    return _have_match(keys, relation, transposed=False)


def _has_subject(keys: Keys, relation: Relation) -> Mask:
    """P(y) :- Q(x, y)."""
    return _have_match(keys, relation, transposed=True)


def _have_match(keys: Keys, relation: Relation, *, transposed: bool) -> Mask:
    counts = np.zeros(len(keys), np.int64)
    for run in relation.runs:
        low, high = (run.transposed if transposed else run).ranges(keys, HIGH)
        counts += high - low
    for run in relation.tombstones:
        low, high = (run.transposed if transposed else run).ranges(keys, HIGH)
        counts -= high - low
    return counts > 0
