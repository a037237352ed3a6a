"""`Changes`: the request and the result of an update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from corollary.core.engine import F
from corollary.core.statistics import Statistics
from corollary.lang.syntax import Rule


@dataclass(frozen=True)
class Changes(Generic[F]):
    """Facts inserted and deleted, rules added and removed.

    As a request, the facts are explicit ones; a fact that is both inserted and deleted is inserted,
    and a rule that is both added and removed is added. As a result, the facts are the exact diff of
    the materialization, and `statistics` describes how it was computed.
    """

    inserted: F
    deleted: F
    added_rules: tuple[Rule, ...] = ()
    removed_rules: tuple[Rule, ...] = ()
    statistics: Statistics | None = None


def composed(first: Changes[F], second: Changes[F]) -> Changes[F]:
    """Compose the changes of two consecutive updates."""
    statistics = first.statistics
    if statistics is not None and second.statistics is not None:
        statistics.include(second.statistics)
    return Changes(
        first.inserted.difference(second.deleted).union(second.inserted.difference(first.deleted)),
        first.deleted.difference(second.inserted).union(second.deleted.difference(first.inserted)),
        statistics=statistics,
    )
