"""A process that makes children which change a store, and kills them: run as a script.

It has loaded and compiled everything once, but has not touched a store itself (the library's
threads do not survive a fork), so that a child costs milliseconds. A line of stdin is one attempt,
as JSON: the path, the kind of work, its number, and when to kill: after so many steps, or so many
seconds after the work has begun. The answer is whether the child was killed, and how.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

PATHS = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
if TYPE_CHECKING:
    from corollary.store.places import Place

ROOT = Path(__file__).parents[2]


def update(kb: Any, number: int) -> None:
    """Terms, facts, tombstones, changes of a flag, and every fourth time a rule."""
    with kb.transaction() as tx:
        tx.insert(f'edge(2, "new {number}") . path(0, 1) .' if number % 2 else "edge(0, 1) .")
        tx.delete("edge(0, 1) . " if number % 2 else "path(0, 1) .")
        if number % 4 == 1:
            tx.add_rules(f"extra{number}(?x) :- path(?x, ?y) .")


def begin(path: Place) -> None:
    """A small store."""
    from corollary import KnowledgeBase

    kb = KnowledgeBase(PATHS)
    with kb.transaction() as tx:
        tx.insert("edge(0, 1) . edge(1, 2) .")
    kb.save(path)


def work(path: Place, kind: str, number: int, ready: int) -> None:
    """What a child does; it tells when it begins to commit."""
    from corollary import KnowledgeBase
    from corollary.store import Store
    from corollary.store.compaction import compact, vacuum

    if kind == "create":
        os.write(ready, b".")
        begin(path)
    elif kind == "compact":
        store = Store.open(path)
        os.write(ready, b".")
        compact(store, full=True)
    elif kind == "vacuum":
        store = Store.open(path)
        os.write(ready, b".")
        vacuum(store, keep=1, older_than=0.0)
    else:
        kb = KnowledgeBase.open(path)
        list(kb.state.reasoner.inconsistencies())
        os.write(ready, b".")
        update(kb, number)


def attempt(asked: dict[str, Any]) -> dict[str, Any]:
    """Fork, wait, kill."""
    from corollary.store import steps
    from corollary.store.places import store_path

    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            passed = 0

            def watch(step: str) -> None:
                nonlocal passed
                passed += 1
                if passed == asked.get("steps"):
                    os.kill(os.getpid(), signal.SIGKILL)

            steps.watch = watch
            work(store_path(asked["path"]), asked["kind"], asked["number"], write)
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    if "seconds" in asked and select.select([read], [], [], 30)[0]:
        time.sleep(asked["seconds"])
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(read)
    return {"killed": os.WIFSIGNALED(status), "status": status}


class Killer:
    """The process, from outside."""

    def __enter__(self) -> Self:
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.killing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=30)

    def kill(self, path: Place, kind: str, number: int, **when: float) -> bool:
        """Whether a child was killed at its work; if not, it has done it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"path": str(path), "kind": kind, "number": number, **when}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        assert answer["killed"] or not answer["status"], answer
        return bool(answer["killed"])


def main() -> None:
    """Load everything, then do what is asked."""
    import deltalake  # noqa: F401
    import pyarrow as pa
    import pyarrow.parquet

    from corollary import KnowledgeBase
    from corollary.core.dictionary import Dictionary
    from corollary.knowledge_base import stored  # noqa: F401
    from corollary.store import compaction, opening, term_hash  # noqa: F401

    kb = KnowledgeBase(PATHS + " edge(0, 1) . edge(1, 2) .")
    for number in range(8):
        update(kb, number)
    term_hash.hashes(kb.state.dictionary.texts_from(0))
    Dictionary.of(kb.state.dictionary.arrays()).encode_texts(pa.array(['"new"']))
    for line in sys.stdin:
        print(json.dumps(attempt(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
