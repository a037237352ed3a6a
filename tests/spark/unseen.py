"""Builds whose executors lack a disk: `python -m tests.spark.unseen FOLDER FAULT`.

Workers of a standalone cluster run in a mount namespace of their own. With the fault `all`, the
folder of the store is another, empty one there; with `one`, only for the first of two workers; with
`spill`, the folder of Spark's temporary files is a full disk. Afterwards, except with `all`, the
build is repeated in this process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.cluster import cluster, session_at
from corollary import spark
from corollary.engines.spark import write
from corollary.engines.spark.parquet import WriteParquet
from corollary.errors import CorollaryError
from corollary.knowledge_base.base import KnowledgeBase
from corollary.testing import thresholds

ELSEWHERE = 'mount -t tmpfs none "$0" && exec "$@"'
FULL = 'mount -t tmpfs -o size=16k none "$0" && SPARK_LOCAL_DIRS="$0" exec "$@"'
RULES = "[?x, <urn:q>, ?z] :- [?x, <urn:p>, ?y], [?y, <urn:p>, ?z] ."


def in_own_namespace(script: str, place: Path) -> list[str]:
    """The command that prepares a folder in a mount namespace, and starts a worker there."""
    return ["unshare", "--mount", "sh", "-c", script, str(place)]


@dataclass(frozen=True)
class SlowWrite(WriteParquet):
    """Writes slowly, so that each of two executors gets a task."""

    def __call__(self, batches: Any) -> Iterator[Any]:
        time.sleep(1)
        yield from super().__call__(batches)


def main(folder: Path, fault: str) -> None:
    """Build, and print the error and what is left of the store."""
    shared, spill = folder / "shared", folder / "spill"
    for path in (shared, spill):
        path.mkdir()
    data, rules = folder / "data.nt", folder / "rules.dl"
    data.write_text("".join(f"<urn:{n}> <urn:p> <urn:{n + 1}> .\n" for n in range(100)))
    rules.write_text(RULES)
    sources = [data, rules]
    workers = 2 if fault == "one" else 1
    place, script = (spill, FULL) if fault == "spill" else (shared, ELSEWHERE)
    prefix = in_own_namespace(script, place)
    found: dict[str, Any] = {"code": "", "message": ""}
    with (
        cluster(folder, workers=workers, prefix=prefix, prefixed=1) as (url, _),
        thresholds(driver_facts_limit=20, driver_finish_facts_limit=0),
        patch.object(write, "WriteParquet", SlowWrite),
    ):
        session = session_at(url, workers=workers)
        try:
            spark.build(shared / "store", sources, rules="none", session=session)
        except CorollaryError as error:
            found |= {"code": error.code, "message": error.message}
        found["left"] = [*map(str, shared.iterdir())]
        session.stop()
    if fault != "all":
        spark.build(shared / "store", sources, rules="none", master="local[1]")
        found["again"] = KnowledgeBase.open(shared / "store").count()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
