"""Sets of facts beside a store, as the chunks that they were when they were derived.

Reading facts from tables into chunks, and deriving once more what no table has (the facts of
auxiliary relations), takes longer than a small update. So both are kept, in a folder:

    ID.json    sets: which predicates of which parts, how relations and partitions are numbered;
               terms that the driver needed
    ID.arrow   of each set, the few facts that it has beside its parts, and those that it lacks
    ID-…/      a part: chunks as Parquet

An update that changes little writes the first two, and goes on with the parts that were there.
Parts are read when a job first needs them, but compared with their checksums before. Nothing here
is needed: without it, or where a byte is wrong, tables are read.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from corollary.core.checksum import checksum, matches, seal, unseal
from corollary.core.dictionary import Dictionary
from corollary.core.partial import PartialDictionary
from corollary.engines.spark.base import Base, Held, Part, Workspace
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.local import address
from corollary.engines.spark.packing import ARROW, DERIVED, SCHEMA, Key, batch_of
from corollary.engines.spark.task import by_partition
from corollary.engines.spark.tuning import tuning
from corollary.engines.spark.write import written
from corollary.lang.stratify import Predicate

_FORMAT = 2
_OURS = re.compile(r"[0-9a-f]{32}(\.json|\.arrow|-[0-9]+)")  # names of files and folders
_TERMS = 10_000  # that the driver knew

Sets = Mapping[str, SparkFacts]


def save(workspace: Workspace, folder: Path, name: str, sets: Sets, about: Any) -> bool:
    """Keep sets under a name, with something about them.

    False if they should be read anew: when they are made of many parts, or without room for them.
    """
    few = sum(len(facts.small) + len(facts.removed) for facts in sets.values())
    parts, new = _parts(sets)
    if (
        few > tuning.cached_chunks_facts_limit
        or len({held for found in parts.values() for held, _ in found})
        > tuning.cached_chunks_parts_limit
    ):
        return False
    try:
        _write(workspace, folder, name, sets, parts, new, about)
    except (OSError, PySparkException):  # a full disk, or a folder that cannot be written to
        _discard(folder, name)
        return False
    return True


def _write(
    workspace: Workspace,
    folder: Path,
    name: str,
    sets: Sets,
    parts: Mapping[str, tuple[Part, ...]],
    new: Iterable[tuple[Held, DataFrame]],
    about: Any,
) -> None:
    folder.mkdir(exist_ok=True)
    for number, (held, frame) in enumerate(new):
        held.folder = f"{name}-{number}"
        written(frame, folder, held.folder, compression="lz4")
    holders = {str(held.folder): held for found in parts.values() for held, _ in found}
    described: dict[str, Any] = {
        "format": _FORMAT,
        "partitions": workspace.partitions,
        "names": list(workspace.names.values()),
        "about": about,
        "terms": _terms(workspace.dictionary),
        "parts": {
            place: [[*held.key(workspace, p), n] for p, n in held.counts.items()]
            for place, held in holders.items()
        },
        "sets": {
            name: [[held.folder, [held.key(workspace, p) for p in named]] for held, named in found]
            for name, found in parts.items()
        },
    }
    batches = [
        batch
        for number, facts in enumerate(sets.values())
        for at, packed in enumerate((facts.small, facts.removed))
        for batch in batch_of(2 * number + at, DERIVED, workspace.packed(packed))
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


def load(workspace: Workspace, folder: Path, name: str) -> tuple[dict[str, SparkFacts], Any] | None:
    """The sets of a name, and what was said about them; None if they are not there.

    The workspace must not have numbered any relation.
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
            tables = by_partition(pa.ipc.open_file(source).read_all().to_batches())
    except (OSError, ValueError, KeyError, pa.ArrowInvalid):
        return None
    workspace.adopt(described["names"], described["partitions"])
    if isinstance(workspace.dictionary, PartialDictionary):
        workspace.dictionary.learn({int(i): text for i, text in described["terms"].items()})
    holders = _holders(workspace, folder, described["parts"])
    sets = {}
    for number, (set_name, parts) in enumerate(described["sets"].items()):
        few, removed = (workspace.unpacked(tables.get(2 * number + at, {})) for at in (0, 1))
        base = Base(
            workspace,
            tuple((holders[place][0], _named(holders[place][1], keys)) for place, keys in parts),
        )
        sets[set_name] = SparkFacts(workspace, few, base, removed)
    return sets, described["about"]


def clean(folder: Path, name: str) -> None:
    """Remove what sets of other names are made of, and these are not."""
    try:
        described = unseal((folder / f"{name}.json").read_bytes())
        needed = {f"{name}.json", f"{name}.arrow", *described["parts"]}
    except (OSError, ValueError, KeyError):
        needed = set()
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name not in needed and _OURS.fullmatch(entry.name):
            _remove(entry)


def _discard(folder: Path, name: str) -> None:
    """Remove what was written under a name."""
    for entry in folder.glob(f"{name}*"):
        if _OURS.fullmatch(entry.name):
            _remove(entry)


def _remove(entry: Path) -> None:
    if entry.is_dir():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)


def _parts(sets: Sets) -> tuple[dict[str, tuple[Part, ...]], list[tuple[Held, DataFrame]]]:
    """The parts of sets that are in files, or will be: new ones are put together.

    Chunks that the same sets have become one part.
    """
    members: dict[Held, dict[Predicate, list[str]]] = {}
    workspace = next(iter(sets.values())).workspace
    for name, facts in sets.items():
        for held, named in facts.base.parts if facts.base is not None else ():
            for predicate in named:
                members.setdefault(held, {}).setdefault(predicate, []).append(name)
    parts: dict[str, list[Part]] = {name: [] for name in sets}
    groups: dict[tuple[str, ...], list[Part]] = {}
    for held, predicates in members.items():
        chosen: dict[tuple[str, ...], set[Predicate]] = {}
        for predicate, names in predicates.items():
            chosen.setdefault(tuple(names), set()).add(predicate)
        for owners, own in chosen.items():
            if held.folder is None:
                groups.setdefault(owners, []).append((held, frozenset(own)))
            else:
                for name in owners:
                    parts[name].append((held, frozenset(own)))
    new = []
    for owners, found in groups.items():
        view = Base(workspace, tuple(found))
        [(held, every)] = Base.of(
            workspace, [], view.counts, {p: key[3] for key, p in view.keys().items()}
        ).parts
        chunks = view.chunks().where(f"kind = {DERIVED}")  # there may be reports among them
        new.append((held, chunks.coalesce(workspace.partitions)))
        for name in owners:
            parts[name].append((held, every))
    return {name: Base(workspace, tuple(found)).parts for name, found in parts.items()}, new


def _holders(
    workspace: Workspace, folder: Path, parts: Mapping[str, Iterable[Sequence[int]]]
) -> dict[str, tuple[Held, dict[Key, Predicate]]]:
    """The parts in files, and their predicates by key."""
    counts: dict[str, dict[Key, int]] = {
        place: {(a, b, c, d): n for a, b, c, d, n in rows} for place, rows in parts.items()
    }
    names = workspace.predicates({key for found in counts.values() for key in found})
    holders = {}
    for place, found in counts.items():
        reader = workspace.session.read.schema(SCHEMA)
        frame = workspace.once(reader.parquet(address(folder / place)))
        base = Base.of(
            workspace,
            [frame],
            {names[key]: n for key, n in found.items()},
            {names[key]: key[3] for key in found},
        )
        [(held, _)] = base.parts
        held.folder = place
        holders[place] = held, names
    return holders


def _terms(dictionary: Dictionary) -> dict[int, str]:
    """Terms that the driver needed, and will need again: those of the schema."""
    return dictionary.known(_TERMS) if isinstance(dictionary, PartialDictionary) else {}


def _files(folder: Path, places: Iterable[str]) -> list[str]:
    """Files, and those in folders."""
    return [
        file.relative_to(folder).as_posix()
        for path in (folder / place for place in places)
        for file in (sorted(path.glob("*.parquet")) if path.is_dir() else [path])
    ]


def _named(names: Mapping[Key, Predicate], keys: Iterable[Sequence[int]]) -> frozenset[Predicate]:
    return frozenset(names[a, b, c, d] for a, b, c, d in keys)
