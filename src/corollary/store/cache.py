"""The column cache: arrays of one version beside the tables, mapped into memory when it is opened.

It is no part of the store. A cache says to which commit it belongs; if that is not a commit of this
store, or a file has another size than it should, it is as if there were none. It is written into a
folder of another name first, which is then renamed.

Arrays are mapped so that writing to them changes this process alone: loops are compiled once, for
arrays that can be written to, and new terms are put into the room that is left for them.
"""

from __future__ import annotations

import json
import mmap
import shutil
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.hashing import SLACK
from corollary.core.term_store import TermArrays
from corollary.errors import CorollaryError
from corollary.store.columns import Columns, Label, Part, Values
from corollary.store.layout import CACHE

if TYPE_CHECKING:
    from corollary.store.store import Store

_FORMAT = 1
_DIRECTORY = "directory.json"
_FACTS, _TEXTS, _OFFSETS, _SLOTS = "facts.bin", "texts.bin", "offsets.bin", "slots.bin"
_TERM_FILES: dict[str, type[np.generic]] = {
    _TEXTS: np.uint8,
    _OFFSETS: np.int64,
    _SLOTS: np.uint64,
}
_ROOM = 1 << 16  # terms that may come without an array being copied
_LENGTH = 64  # bytes of a term that is not known yet


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
        directory = {
            "format": _FORMAT,
            "version": version,
            "commit": store.commit(version).id,
            "terms": terms.terms,
            "labels": _write_facts(new / _FACTS, parts),
        }
        _write_terms(new, terms)
        directory["sizes"] = {path.name: path.stat().st_size for path in new.iterdir()}
        (new / _DIRECTORY).write_text(json.dumps(directory), encoding="utf-8")
        old = [path for path in folder.iterdir() if path != new]
        new.rename(folder / f"{version}-{uuid.uuid4().hex[:8]}")
        for path in old:
            shutil.rmtree(path, ignore_errors=True)
    except OSError:  # a full disk, or a folder that cannot be written to
        shutil.rmtree(new, ignore_errors=True)
        return False
    return True


def read(store: Store, version: int) -> Cached | None:
    """The newest cache of this version or an earlier one."""
    for _, path, directory in sorted(_directories(store, version), key=lambda x: -x[0]):
        try:
            return _read(path, directory)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _directories(store: Store, version: int) -> list[tuple[int, Path, dict[str, Any]]]:
    found = []
    for path in (store.path / CACHE).glob(f"[0-9]*/{_DIRECTORY}"):
        try:
            directory = json.loads(path.read_text(encoding="utf-8"))
            number = int(directory["version"])
            if directory["format"] != _FORMAT or number > version:
                continue
            if store.commit(number).id == directory["commit"]:
                found.append((number, path.parent, directory))
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


def _write_terms(folder: Path, terms: TermArrays) -> None:
    """The arrays of the terms, with room for more."""
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


def _read(path: Path, directory: Mapping[str, Any]) -> Cached:
    sizes = directory["sizes"]
    for name in (_FACTS, *_TERM_FILES):
        if (path / name).stat().st_size != sizes[name]:
            raise ValueError(f"{name} has another size")
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
    texts, offsets, slots = (_mapped(path / name, kind) for name, kind in _TERM_FILES.items())
    terms = TermArrays(texts, offsets, slots, directory["terms"])
    return Cached(directory["version"], Columns(facts, explicit), terms)


def _mapped(path: Path, kind: type[np.generic]) -> npt.NDArray[Any]:
    if not path.stat().st_size:
        return np.zeros(0, kind)
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), kind)


def _values(data: npt.NDArray[np.uint8], arity: int, start: int, rows: int) -> Values:
    if arity <= 2:
        return data[start : start + 8 * rows].view(np.uint64)
    return data[start : start + 4 * arity * rows].view(np.uint32).reshape(rows, arity)
