"""Whether a store is whole, and is what follows from its explicit facts and rules."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corollary.errors import CorollaryError, OperationFailed
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.persistence import refuse_too_large
from corollary.lang.syntax import is_auxiliary
from corollary.store import Store
from corollary.store.check import cache_differs, check_caches, check_files


@dataclass
class Verified:
    """What was found."""

    version: int
    facts: int
    problems: list[CorollaryError] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def verify_store(
    path: str | Path,
    *,
    version: int | None = None,
    derive: bool = True,
    threads: int = 1,
    limit_memory: int | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Verified:
    """Read all files of a version, and derive it again; nothing is changed."""
    store = Store.open(path)
    snapshot = store.snapshot(version)
    found = Verified(snapshot.version, snapshot.statistics.facts)
    started = time.perf_counter()
    found.problems += check_files(snapshot, on_progress)
    readable = not found.problems
    found.problems += check_caches(store)
    found.seconds["files"] = round(time.perf_counter() - started, 6)
    if not readable or not derive:
        return found
    refuse_too_large(store, limit_memory)
    started = time.perf_counter()
    kb = KnowledgeBase._open(
        path,
        at_version=snapshot.version,
        threads=threads,
        limit_memory=limit_memory,
        write_cache=False,
    )
    if cache_differs(snapshot, kb._dictionary):
        problem = "the column cache is not what the tables are"
        hint = "'corollary repair' makes it again"
        found.problems.append(OperationFailed("E509", problem, hint, file=str(store.path)))
    found.problems += _compared(kb, store)
    found.seconds["derive"] = round(time.perf_counter() - started, 6)
    return found


def _compared(kb: KnowledgeBase, store: Store) -> list[CorollaryError]:
    fresh = kb._anew()
    mine: Any = _results(kb._maintainer.facts)
    right: Any = _results(fresh.facts)
    missing, extra = right.difference(mine), mine.difference(right)
    if not len(missing) and not len(extra):
        return []
    return [
        OperationFailed(
            "E509",
            f"the store is not what follows from its explicit facts: {len(missing):,} facts are"
            f" missing, {len(extra):,} do not follow",
            "build the store again from its explicit facts",
            file=str(store.path),
        )
    ]


def _results(facts: Any) -> Any:
    return facts.without([p for p in facts.predicates() if is_auxiliary(p.relation)])
