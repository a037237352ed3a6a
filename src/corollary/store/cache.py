"""The column cache: arrays of one version beside the tables, mapped into memory when it is opened.

It is not part of the store. A cache names the commit that it belongs to, and the sizes and
checksums of its files. It is used only if the commit is one of this store and every byte is as it
was written; otherwise the tables are read, and a new cache takes its place. It is written into a
folder of another name first, which is then renamed.

Arrays are mapped so that writing to them changes this process alone: loops are compiled once, for
arrays that can be written to, and new terms are put into the room that is left for them.
"""

from __future__ import annotations

import mmap
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.checksum import checksum, is_unsealed, matches, seal, unseal
from corollary.core.hashing import SLACK
from corollary.core.term_store import TermArrays
from corollary.errors import CorollaryError
from corollary.store.columns import Columns, Label, Part, Values
from corollary.store.layout import CACHE

if TYPE_CHECKING:
    from corollary.store.store import Store

_FORMAT = 2
_DIRECTORY = "directory.json"
_FACTS, _TEXTS, _OFFSETS, _SLOTS = "facts.bin", "texts.bin", "offsets.bin", "slots.bin"
_TERM_FILES: dict[str, type[np.generic]] = {
    _TEXTS: np.uint8,
    _OFFSETS: np.int64,
    _SLOTS: np.uint64,
}
_ROOM = 1 << 16  # terms that may come without an array being copied
_LENGTH = 64  # bytes of a term that is not known yet
_OURS = re.compile(r"[0-9]+-[0-9a-f]{8}")  # folders with a cache
_UNFINISHED = re.compile(r"\.[0-9a-f]{32}")  # folders that a cache is being written into
_DAY = 24 * 3600.0


class Cached(NamedTuple):
    """What a cache holds."""

    version: int
    columns: Columns
    terms: TermArrays


def write(store: Store, version: int, parts: Iterable[Columns], terms: TermArrays) -> bool:
    """Write a cache, which takes the place of all others; without room for it there is none.

    The parts have different labels.
    """
    folder = store.path / CACHE
    new = folder / f".{uuid.uuid4().hex}"
    try:
        new.mkdir(parents=True)
        directory: dict[str, Any] = {
            "format": _FORMAT,
            "version": version,
            "commit": store.commit(version).id,
            "terms": terms.terms,
            "labels": _write_facts(new / _FACTS, parts),
        }
        used = _write_terms(new, terms) | {_FACTS: (new / _FACTS).stat().st_size}
        directory["files"] = {
            name: [(new / name).stat().st_size, length, checksum(new / name, length)]
            for name, length in used.items()
        }
        (new / _DIRECTORY).write_text(seal(directory), encoding="utf-8")
        old = [*folders(store), *unfinished(store, time.time() - _DAY)]
        new.rename(folder / f"{version}-{uuid.uuid4().hex[:8]}")
        for path in old:
            shutil.rmtree(path, ignore_errors=True)
    except OSError:  # a full disk, or a folder that cannot be written to
        shutil.rmtree(new, ignore_errors=True)
        return False
    return True


def read(store: Store, version: int, *, facts: bool = True) -> Cached | None:
    """The newest whole cache of this version or an earlier one; without `facts`, its terms alone.

    All bytes that are used are compared with their checksums, at about 3 GB/s on each core.
    """
    for _, path, directory in sorted(_directories(store, version), key=lambda x: -x[0]):
        try:
            return _read(path, directory, facts=facts)
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            continue
    return None


def folders(store: Store) -> list[Path]:
    """The folders of caches, whole or not."""
    return [path for path in _entries(store) if _OURS.fullmatch(path.name)]


def unfinished(store: Store, before: float) -> list[Path]:
    """Folders of writers that have not touched them since a time: they were killed."""
    found = []
    for path in _entries(store):
        try:
            if _UNFINISHED.fullmatch(path.name) and path.stat().st_mtime < before:
                found.append(path)
        except OSError:  # its writer has just finished
            continue
    return found


def problems(store: Store) -> Iterator[tuple[Path, str]]:
    """Files of caches that are damaged, and why; such a cache is never used."""
    for folder in folders(store):
        try:
            data = (folder / _DIRECTORY).read_bytes()
            if is_unsealed(data):
                continue  # of an earlier release, and not used
            directory = unseal(data)
            if directory["format"] != _FORMAT:
                continue
        except (OSError, ValueError, KeyError) as error:
            yield folder / _DIRECTORY, str(error)
            continue
        for name in (_FACTS, *_TERM_FILES):
            try:
                _check(folder / name, directory["files"][name])
            except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
                yield folder / name, str(error)


def _entries(store: Store) -> list[Path]:
    try:
        return list((store.path / CACHE).iterdir())
    except OSError:
        return []


def _directories(store: Store, version: int) -> list[tuple[int, Path, dict[str, Any]]]:
    found = []
    for folder in folders(store):
        try:
            directory = unseal((folder / _DIRECTORY).read_bytes())
            number = int(directory["version"])
            if directory["format"] != _FORMAT or number > version:
                continue
            if store.commit(number).id == directory["commit"]:
                found.append((number, folder, directory))
        except (CorollaryError, OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _write_facts(path: Path, parts: Iterable[Columns]) -> list[list[Any]]:
    """All arrays in one file, by label; explicit facts that are all facts are written once."""
    labels: list[list[Any]] = []
    with path.open("wb") as file:
        for columns in parts:
            for label in sorted(columns.facts):
                part, own = columns.facts[label], columns.explicit.get(label)
                start = _append(file, part.values)
                if own is None:
                    places = [0, 0]
                elif len(own.values) == len(part.values):
                    places = [start, len(own.values)]
                else:
                    places = [_append(file, own.values), len(own.values)]
                labels.append([*label, part.arity, start, len(part.values), *places])
    return labels


def _append(file: Any, values: Values) -> int:
    start: int = file.tell()
    file.write(_bytes(values))
    file.write(b"\0" * (-file.tell() % 8))
    return start


def _bytes(values: npt.NDArray[Any]) -> Any:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


def _write_terms(folder: Path, terms: TermArrays) -> dict[str, int]:
    """Write the arrays of the terms, with room for more; how many bytes of each file are used."""
    used = int(terms.offsets[terms.terms])
    room: dict[str, tuple[npt.NDArray[Any], int]] = {
        _TEXTS: (terms.texts[:used], used + _LENGTH * _ROOM + SLACK),
        _OFFSETS: (terms.offsets[: terms.terms + 1], terms.terms + 1 + _ROOM),
        _SLOTS: (terms.slots, len(terms.slots)),
    }
    for name, (values, length) in room.items():
        with (folder / name).open("wb") as file:
            file.write(_bytes(values))
            file.truncate(length * values.itemsize)  # the rest takes no place on the disk
    return {name: values.nbytes for name, (values, _) in room.items()}


def _check(path: Path, expected: Sequence[Any]) -> None:
    size, length, value = expected
    if path.stat().st_size != size:
        raise ValueError("it has another size")
    if not matches(path, value, length):
        raise ValueError("it has another checksum")


def _read(path: Path, directory: Mapping[str, Any], *, facts: bool) -> Cached:
    for name in (_FACTS, *_TERM_FILES) if facts else _TERM_FILES:
        _check(path / name, directory["files"][name])
    columns = _columns(path, directory) if facts else Columns({}, {})
    texts, offsets, slots = (_mapped(path / name, kind) for name, kind in _TERM_FILES.items())
    terms = TermArrays(texts, offsets, slots, directory["terms"])
    return Cached(directory["version"], columns, terms)


def _columns(path: Path, directory: Mapping[str, Any]) -> Columns:
    data = _mapped(path / _FACTS, np.uint8)
    facts: dict[Label, Part] = {}
    explicit: dict[Label, Part] = {}
    for relation, property_, member_of, arity, start, rows, own, own_rows in directory["labels"]:
        label = Label(relation, property_, member_of)
        facts[label] = whole = Part(arity, _values(data, arity, start, rows))
        if own_rows and own == start:
            explicit[label] = whole
        elif own_rows:
            explicit[label] = Part(arity, _values(data, arity, own, own_rows))
    return Columns(facts, explicit)


def _mapped(path: Path, kind: type[np.generic]) -> npt.NDArray[Any]:
    if not path.stat().st_size:
        return np.zeros(0, kind)
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), kind)


def _values(data: npt.NDArray[np.uint8], arity: int, start: int, rows: int) -> Values:
    if arity <= 2:
        return data[start : start + 8 * rows].view(np.uint64)
    return data[start : start + 4 * arity * rows].view(np.uint32).reshape(rows, arity)
