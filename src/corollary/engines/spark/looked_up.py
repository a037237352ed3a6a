"""Keep what the driver has looked up in chunks from one update to the next.

The facts of a schema, and those about its terms, are looked up by almost every update. They are
few, and chunks never change. So the chunk cache stores them: predicates of which the driver has all
facts, ids whose facts it has looked up, and facts that it found missing.

Invariant: an id or predicate counts as looked up only if all its facts are stored too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corollary.core.dictionary import Ids
from corollary.core.ids import in_order
from corollary.engines.spark.base import CachedChunks, Part, SparkRun
from corollary.engines.spark.packing import Key, Packed
from corollary.engines.spark.tuning import tuning
from corollary.lang.stratify import Predicate

Described = Mapping[str, Any]


def describe(run: SparkRun, cached: CachedChunks, tables: list[Packed]) -> Described:
    """Append tables of what was looked up in chunks, and return what they hold, by number."""
    whole = _small_predicates(cached)
    large = cached.fully_fetched - {*whole}  # what is known of them is forgotten
    facts, probed = cached.facts.without(large), cached.probed.without(large)
    ids = {k: known for k, known in cached.fetched_ids.items() if k[0] not in cached.fully_fetched}
    if len(facts) + len(probed) > tuning.cached_lookups_limit:
        facts, probed, ids = facts.only(whole), run.nothing, {}
    columns: dict[int, dict[Key, Ids]] = {}
    for (predicate, column), known in ids.items():
        columns.setdefault(column, {})[_key_of_ids(cached, predicate)] = known[:, None]
    return {
        "whole": [cached.keys[predicate] for predicate in whole],
        "facts": _append(tables, run.tables_of(facts)),
        "probed": _append(tables, run.tables_of(probed)),
        "columns": [[column, _append(tables, found)] for column, found in columns.items()],
    }


def restore(
    run: SparkRun, cached: CachedChunks, described: Described, tables: Mapping[int, Packed]
) -> None:
    """Restore what `describe` has described."""
    names = {key: predicate for predicate, key in cached.keys.items()}
    by_relation = {_key_of_ids(cached, predicate): predicate for predicate in cached.keys}
    cached.facts = run.facts_of(tables.get(described["facts"], {}))
    cached.probed = run.facts_of(tables.get(described["probed"], {}))
    cached.fully_fetched |= {names[a, b, c, d] for a, b, c, d in described["whole"]}
    for column, number in described["columns"]:
        for key, rows in tables.get(number, {}).items():
            cached.fetched_ids[by_relation[key], column] = in_order(rows[:, 0])


def merge(run: SparkRun, cached: CachedChunks, parts: Sequence[Part]) -> None:
    """Take the small predicates that are known completely in all the chunks that were merged."""
    known = run.nothing
    for predicate in cached.keys:
        own = [part for part, named in parts if predicate in named]
        if all(predicate in part.fully_fetched for part in own):
            cached.fully_fetched.add(predicate)
            for part in own:
                known = known.union(part.facts.only([predicate]))
    cached.facts = known


def _small_predicates(cached: CachedChunks) -> list[Predicate]:
    """Select the predicates that the driver has completely, the smallest first."""
    found, total = [], 0
    for predicate in sorted(cached.fully_fetched, key=lambda p: cached.counts[p]):
        total += cached.counts[predicate]
        if total > tuning.cached_lookups_limit:
            break
        found.append(predicate)
    return found


def _key_of_ids(cached: CachedChunks, predicate: Predicate) -> Key:
    return (*cached.keys[predicate][:3], 1)


def _append(tables: list[Packed], table: Packed) -> int:
    tables.append(table)
    return len(tables) - 1
