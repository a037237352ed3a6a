"""Verify that a store is intact, and equals the closure of its explicit facts and rules."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from corollary.core.object_store import StorePath, fresh_copies
from corollary.errors import CorollaryError, OperationFailed
from corollary.knowledge_base.persistence import open_state, refuse_too_large
from corollary.knowledge_base.results import results_of
from corollary.knowledge_base.state import KnowledgeState
from corollary.store import Store
from corollary.store.check import cache_differs, check_caches, check_files
from corollary.store.places import Place, store_path


@dataclass
class Verified:
    """The result of a verification."""

    version: int
    facts: int
    problems: list[CorollaryError] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def verify_store(
    path: Place,
    *,
    version: int | None = None,
    derive: bool = True,
    threads: int = 1,
    limit_memory: int | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Verified:
    """Read all files of a version and rematerialize it; the store is not modified."""
    with fresh_copies(store_path(path)) as fresh:
        return _verified(fresh, version, derive, threads, limit_memory, on_progress)


def _verified(
    path: StorePath,
    version: int | None,
    derive: bool,
    threads: int,
    limit_memory: int | None,
    on_progress: Callable[[str], None] | None,
) -> Verified:
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
    state = open_state(
        path,
        at_version=snapshot.version,
        threads=threads,
        limit_memory=limit_memory,
        write_cache=False,
    )
    if cache_differs(snapshot, state.dictionary):
        problem = "the column cache differs from the tables"
        hint = "'corollary repair' rebuilds it"
        found.problems.append(OperationFailed("E509", problem, hint, file=str(store.path)))
    found.problems += _compared(state, store)
    found.seconds["derive"] = round(time.perf_counter() - started, 6)
    return found


def _compared(state: KnowledgeState, store: Store) -> list[CorollaryError]:
    stored, derived = (
        results_of(reasoner.facts) for reasoner in (state.reasoner, state.rematerialize())
    )
    missing, extra = derived.difference(stored), stored.difference(derived)
    if not len(missing) and not len(extra):
        return []
    return [
        OperationFailed(
            "E509",
            f"the store is not the closure of its explicit facts: {len(missing):,} facts are"
            f" missing, {len(extra):,} do not follow",
            "rebuild the store from its explicit facts",
            file=str(store.path),
        )
    ]
