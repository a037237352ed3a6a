"""One damaged file of a store, and what may come of it: the right answers, or E503.

The checks run in a process of their own (run as a script), so that a crash of it is seen. A line of
stdin names a damaged store and a sound one; the answer says what was refused, or what went wrong.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from corollary.store.layout import TABLES
from tests.store.killing import PATHS

ROOT = Path(__file__).parents[2]
REFUSALS = {"E503"}
HOWS = (
    *("flip start", "flip middle", "flip end", "flip"),
    *("truncate", "shorten", "zeros", "append", "empty", "remove", "folder", "loop", "other"),
)
_DERIVED = ("cache", "chunks", "checkpoint", "marker")  # kinds that `repair` makes again


class Fault(NamedTuple):
    """A file of a store, and what happens to it."""

    file: str
    how: str
    seed: int = 0

    @property
    def kind(self) -> str:
        """What kind of file it is."""
        folder, _, name = self.file.partition("/")
        if not name:
            return "marker"
        if "checkpoint" in name:
            return "checkpoint"
        if "_delta_log" in name:
            return f"{folder} log"
        return f"{folder} {Path(name).name}" if folder == "cache" else folder

    def apply(self, store: Path) -> None:
        """Damage the file."""
        path = store / self.file
        data = bytearray(path.read_bytes())
        chance = random.Random(f"{self.seed} {self.how} {len(data)}")
        how = self.how if data else "remove"
        if how in ("remove", "folder", "loop"):
            path.unlink()
            if how == "folder":
                path.mkdir()
            elif how == "loop":
                path.symlink_to(path.name)
            return
        if how == "other":  # the content of another file of the kind
            others = [f for f in files(store) if f != self.file and Fault(f, "").kind == self.kind]
            path.write_bytes((store / chance.choice(others or [self.file])).read_bytes())
            return
        if how.startswith("flip"):
            places = {
                "flip start": range(min(len(data), 16)),
                "flip middle": range(len(data) // 2, len(data) // 2 + 1),
                "flip end": range(max(0, len(data) - 16), len(data)),
            }
            data[chance.choice(places.get(how, range(len(data))))] ^= 1 << chance.randrange(8)
        elif how == "zeros":  # as after a power failure
            data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
        elif how == "append":
            data += chance.choice([b"\n", bytes(8), chance.randbytes(100), bytes(data)])
        else:
            del data[{"truncate": len(data) // 2, "shorten": len(data) - 1, "empty": 0}[how] :]
        path.write_bytes(data)


def build(path: Path) -> None:
    """A store with terms, facts, tombstones, changed rules, checkpoints and an older cache."""
    from corollary import KnowledgeBase
    from corollary.store import Store

    kb = KnowledgeBase(PATHS)
    with kb.transaction() as tx:
        tx.insert("edge(0, 1) . edge(1, 2) . wide(1, 2, 3, 4) .")
        tx.insert("[<urn:a>, a, <urn:C>] . [<urn:a>, <urn:p>, 'text'] .")
    kb.save(path)
    for number in range(4):
        with kb.transaction() as tx:
            tx.insert(f'edge(2, "new {number}") .')
            if number == 2:
                tx.delete("edge(0, 1) .")
                tx.add_rules("reached(?x) :- path(?y, ?x) .")
                store = Store.open(path)
                for table in (store.facts, store.terms):
                    table.open().create_checkpoint()


def files(store: Path) -> list[str]:
    """All files of a store, in an order that does not depend on the random parts of names."""

    def place(path: Path) -> tuple[str, int, str]:
        folder, *rest = path.relative_to(store).parts
        named_at_random = folder in TABLES and "_delta_log" not in rest
        return folder, path.stat().st_mtime_ns if named_at_random else 0, path.name

    found = sorted((p for p in store.rglob("*") if p.is_file()), key=place)
    return [path.relative_to(store).as_posix() for path in found]


def sample(store: Path, hows: tuple[str, ...], each: int, seed: int = 0) -> Iterator[Fault]:
    """Faults of every kind of file: so many files of a kind, each in every way."""
    chance = random.Random(seed)
    kinds: dict[str, list[str]] = {}
    for file in files(store):
        kinds.setdefault(Fault(file, "").kind, []).append(file)
    for kind in sorted(kinds):
        for how in hows:
            for file in chance.sample(kinds[kind], min(each, len(kinds[kind]))):
                yield Fault(file, how, chance.randrange(2**32))


# -- the process -----------------------------------------------------------------------------------


class Checker:
    """The process, from outside."""

    def __init__(self, sound: Path) -> None:
        self._sound = sound
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.communicate(timeout=60)

    def check(self, place: Path, fault: Fault) -> list[str]:
        """Damage a copy of the store and look at it; what was refused.

        Raises `AssertionError` if anything but right answers and refusals came of it.
        """
        if self._process is None:
            paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.store.faults", str(self._sound)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env=dict(os.environ, PYTHONPATH=paths),
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._sound, place)
        fault.apply(place)
        print(json.dumps({"path": str(place), "fault": fault}), file=process.stdin, flush=True)
        line = process.stdout.readline()
        if not line:
            self._process = None
            raise AssertionError(f"{fault}: the process ended with status {process.wait(60)}")
        answer: dict[str, Any] = json.loads(line)
        assert "error" not in answer, f"{fault}: {answer['error']}"
        refused: list[str] = answer["refused"]
        return refused


def _content(path: Path, version: int | None) -> list[Any]:
    """What a version holds, by way of the cache and of the tables."""
    from corollary import KnowledgeBase
    from tests.spark.data import held, stored

    return [held(KnowledgeBase.open(path, at_version=version)), stored(path, version)]


def _changes(path: Path, first: int, second: int) -> list[str]:
    from corollary.knowledge_base.differences import diff
    from corollary.store import Store

    return sorted(diff(Store.open(path), first, second).lines())


def _update(path: Path) -> None:
    from corollary import KnowledgeBase

    with KnowledgeBase.open(path).transaction() as tx:
        tx.insert('edge("new 3", "another") . edge("new 1", 7) .')
        tx.delete("edge(1, 2) .")


def _expected(sound: Path, place: Path) -> dict[str, Any]:
    """What the versions of a sound store hold, before and after an update."""
    from corollary.store import Store

    shutil.copytree(sound, place)
    newest = Store.open(place).latest()
    found: dict[str, Any] = {str(v): _content(place, v)[0] for v in range(newest + 1)}
    found["changes"] = _changes(place, 1, newest)
    _update(place)
    found[str(newest + 1)] = _content(place, None)[0]
    return found | {"newest": newest}


def _look(path: Path, fault: Fault, expected: dict[str, Any]) -> list[str]:
    """Open, verify, update and repair a damaged store; what was refused."""
    from corollary.errors import CorollaryError
    from corollary.knowledge_base.verify import verify_store
    from corollary.store import Store
    from corollary.store.repair import repair

    refused: list[str] = []
    newest = expected["newest"]
    # Without its last log entry a store is at the version before.
    lost = fault == (f"facts/_delta_log/{newest:020d}.json", "remove", fault.seed)
    codes = REFUSALS | ({"E505"} if lost else set())

    def attempt(name: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except CorollaryError as error:
            if error.code not in codes or (error.code == "E503" and not error.file):
                raise
            refused.append(name)
            return None

    def read(newest: int, when: str) -> None:
        for version in sorted({1, 3, 4, newest - 1, newest} & {*range(newest + 1)}):
            found = attempt(f"{when} {version}", partial(_content, path, version))
            for content in found or ():
                assert content == expected[str(version)], f"{when}: version {version} is wrong"

    verified = attempt("verify", lambda: verify_store(path))
    problems = verified.problems if verified is not None else []
    assert {error.code for error in problems} <= REFUSALS, problems
    read(newest, "read")
    changes = attempt("changes", lambda: _changes(path, 1, newest))
    assert changes in (None, expected["changes"]), "changes are wrong"
    attempt("update", lambda: _update(path))
    if not lost:
        made = attempt("latest", lambda: Store.open(path).latest())
        made = newest if made is None else made
        assert made == newest + ("update" not in refused), "an update is there or not"
        read(made, "after an update")
        attempt("repair", lambda: repair(path))
        read(made, "after a repair")
        if fault.kind.startswith(_DERIVED):
            assert verify_store(path).problems == [], "a repair has left something"
    return refused


def main() -> None:
    """Do what is asked."""
    sound = Path(sys.argv[1])
    place = sound.with_name(f"{sound.name}-{os.getpid()}")
    try:
        expected = _expected(sound, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    for line in sys.stdin:
        asked = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"refused": _look(Path(asked["path"]), Fault(*asked["fault"]), expected)}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
