"""Cache sets of facts beside a store, in the chunks in which they were derived.

Reading facts from tables into chunks, and deriving the facts of auxiliary relations, which are in
no table, takes longer than a small update. So both are cached in a folder:

    ID.json    sets: their predicates by part, the numbering of relations and partitions; terms
               that the driver needed
    ID.arrow   small sets of facts added to the parts of each set, and removed from them; facts of
               the parts that the driver has looked up (`looked_up`)
    ID-…/      a part: chunks as Parquet

A small update writes the first two and reuses the existing parts. Checksums of parts are verified
on load; parts are read when a job first needs them. The cache is optional: if it is missing or
corrupt, the tables are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException

from corollary.core.checksum import checksum, matches, seal, unseal
from corollary.core.dictionary import Dictionary
from corollary.core.files import remove
from corollary.core.partial import PartialDictionary
from corollary.engines.spark import looked_up
from corollary.engines.spark.base import Base, CachedChunks, Part, SparkRun
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.local import address
from corollary.engines.spark.packing import ARROW, DERIVED, SCHEMA, Key, chunk_batches
from corollary.engines.spark.task import merge_by_partition
from corollary.engines.spark.tuning import tuning
from corollary.engines.spark.write import write_all
from corollary.errors import OperationFailed
from corollary.lang.stratify import Predicate

_FORMAT = 3
_OURS = re.compile(r"[0-9a-f]{32}(\.json|\.arrow|-[0-9]+)")  # names of files and folders
_TERMS = 10_000  # maximum cached terms of the driver

Sets = Mapping[str, SparkFacts]


def save(run: SparkRun, folder: Path, name: str, sets: Sets, about: Any) -> bool:
    """Write sets and metadata about them to the cache under a name.

    Return False if the tables should be read instead: the sets have many parts, or there is no room
    for them.
    """
    few = sum(len(facts.small) + len(facts.removed) for facts in sets.values())
    parts, new = _parts(sets)
    if (
        few > tuning.cached_chunks_facts_limit
        or len({cached for found in parts.values() for cached, _ in found})
        > tuning.cached_chunks_parts_limit
    ):
        return False
    try:
        _write(run, folder, name, sets, parts, new, about)
    except (OSError, PySparkException, OperationFailed):  # disk full, or folder not writable
        _discard(folder, name)
        return False
    return True


def _write(
    run: SparkRun,
    folder: Path,
    name: str,
    sets: Sets,
    parts: Mapping[str, tuple[Part, ...]],
    new: Iterable[CachedChunks],
    about: Any,
) -> None:
    folder.mkdir(exist_ok=True)
    frames = {}
    for number, cached in enumerate(new):
        cached.folder = f"{name}-{number}"
        frames[cached.folder] = cached.frame
    write_all(frames, folder, compression="lz4")
    holders = {str(cached.folder): cached for found in parts.values() for cached, _ in found}
    described: dict[str, Any] = {
        "format": _FORMAT,
        "partitions": run.partitions,
        "names": list(run.names),
        "about": about,
        "terms": _terms(run.dictionary),
        "parts": {
            place: [[*cached.keys[p], n] for p, n in cached.counts.items()]
            for place, cached in holders.items()
        },
        "sets": {
            name: [[cached.folder, [cached.keys[p] for p in named]] for cached, named in found]
            for name, found in parts.items()
        },
    }
    tables = [
        run.tables_of(packed) for facts in sets.values() for packed in (facts.small, facts.removed)
    ]
    described["looked_up"] = {
        place: looked_up.describe(run, cached, tables) for place, cached in holders.items()
    }
    batches = [
        batch
        for number, table in enumerate(tables)
        for batch in chunk_batches(number, DERIVED, table)
    ]
    with (
        pa.OSFile(str(folder / f"{name}.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, ARROW) as out,
    ):
        for batch in batches:
            out.write_batch(batch)
    files = _files(folder, [f"{name}.arrow", *holders])
    described["files"] = {file: checksum(folder / file) for file in files}
    (folder / f"{name}.json").write_text(seal(described), encoding="utf-8")


def load(run: SparkRun, folder: Path, name: str) -> tuple[dict[str, SparkFacts], Any] | None:
    """Load the sets of a name and their metadata; None if they are not in the cache.

    The run must not have numbered any relation.
    """
    try:
        described = unseal((folder / f"{name}.json").read_bytes())
        if described["format"] != _FORMAT:
            return None
        files = described["files"]
        if {*files} != {*_files(folder, [f"{name}.arrow", *described["parts"]])}:
            return None
        if not all(matches(folder / file, expected) for file, expected in files.items()):
            return None
        with pa.memory_map(str(folder / f"{name}.arrow")) as source:
            tables = merge_by_partition(pa.ipc.open_file(source).read_all().to_batches())
    except (OSError, ValueError, KeyError, pa.ArrowInvalid):
        return None
    run.restore_numbering(described["names"], described["partitions"])
    if isinstance(run.dictionary, PartialDictionary):
        run.dictionary.learn({int(i): text for i, text in described["terms"].items()})
    cached = _cached(run, folder, described["parts"])
    for place, (chunks, _) in cached.items():
        looked_up.restore(run, chunks, described["looked_up"][place], tables)
    sets = {}
    for number, (set_name, parts) in enumerate(described["sets"].items()):
        few, removed = (run.facts_of(tables.get(2 * number + at, {})) for at in (0, 1))
        base = Base(
            run,
            tuple((cached[place][0], _named(cached[place][1], keys)) for place, keys in parts),
        )
        sets[set_name] = SparkFacts(run, few, base, removed)
    return sets, described["about"]


def clean(folder: Path, name: str) -> None:
    """Remove the files of sets of other names, except those that the sets of this name use."""
    try:
        described = unseal((folder / f"{name}.json").read_bytes())
        needed = {f"{name}.json", f"{name}.arrow", *described["parts"]}
    except (OSError, ValueError, KeyError):
        needed = set()
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name not in needed and _OURS.fullmatch(entry.name):
            remove(entry)


def _discard(folder: Path, name: str) -> None:
    """Remove the files written under a name."""
    for entry in folder.glob(f"{name}*"):
        if _OURS.fullmatch(entry.name):
            remove(entry)


def _parts(sets: Sets) -> tuple[dict[str, tuple[Part, ...]], list[CachedChunks]]:
    """Return the parts of each set, and the chunks that they use; merge new chunks.

    Chunks that belong to the same sets become one part.
    """
    members: dict[CachedChunks, dict[Predicate, list[str]]] = {}
    run = next(iter(sets.values())).run
    for name, facts in sets.items():
        for cached, named in facts.base.parts if facts.base is not None else ():
            for predicate in named:
                members.setdefault(cached, {}).setdefault(predicate, []).append(name)
    parts: dict[str, list[Part]] = {name: [] for name in sets}
    groups: dict[tuple[str, ...], list[Part]] = {}
    for cached, predicates in members.items():
        chosen: dict[tuple[str, ...], set[Predicate]] = {}
        for predicate, names in predicates.items():
            chosen.setdefault(tuple(names), set()).add(predicate)
        for owners, own in chosen.items():
            if cached.folder is None:
                groups.setdefault(owners, []).append((cached, frozenset(own)))
            else:
                for name in owners:
                    parts[name].append((cached, frozenset(own)))
    new = []
    for owners, found in groups.items():
        view = Base(run, tuple(found))
        chunks = view.chunks().where(f"kind = {DERIVED}")  # without reports
        counts = {key: view.counts[predicate] for key, predicate in view.keys().items()}
        [(cached, every)] = Base.of(run, chunks.coalesce(run.partitions), counts).parts
        looked_up.merge(run, cached, found)
        new.append(cached)
        for name in owners:
            parts[name].append((cached, every))
    return {name: Base(run, tuple(found)).parts for name, found in parts.items()}, new


def _cached(
    run: SparkRun, folder: Path, parts: Mapping[str, Iterable[Sequence[int]]]
) -> dict[str, tuple[CachedChunks, dict[Key, Predicate]]]:
    """Open the parts in files, with their predicates by key."""
    # Looks up all terms in one batch.
    run.predicates([(a, b, c, d) for rows in parts.values() for a, b, c, d, _ in rows])
    found = {}
    for place, rows in parts.items():
        reader = run.session.read.schema(SCHEMA)
        frame = run.frames.checkpoint(reader.parquet(address(folder / place)))
        base = Base.of(run, frame, {(a, b, c, d): n for a, b, c, d, n in rows})
        [(cached, _)] = base.parts
        cached.folder = place
        found[place] = cached, base.keys()
    return found


def _terms(dictionary: Dictionary) -> dict[int, str]:
    """Collect the terms that the driver used and will use again: those of the schema."""
    return dictionary.known(_TERMS) if isinstance(dictionary, PartialDictionary) else {}


def _files(folder: Path, places: Iterable[str]) -> list[str]:
    """List files, and the files in folders."""
    return [
        file.relative_to(folder).as_posix()
        for path in (folder / place for place in places)
        for file in (sorted(path.glob("*.parquet")) if path.is_dir() else [path])
    ]


def _named(names: Mapping[Key, Predicate], keys: Iterable[Sequence[int]]) -> frozenset[Predicate]:
    return frozenset(names[a, b, c, d] for a, b, c, d in keys)
