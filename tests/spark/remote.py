"""A remote store and executors that share no disk: `python -m tests.spark.remote FOLDER ADDRESS`.

The worker of a standalone cluster runs in a mount namespace of its own. The local cache of the
driver is in a folder that is another, empty one there.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from benchmarks.cluster import cluster, session_at
from corollary import spark
from corollary.core import local_cache
from tests.spark.unseen import ELSEWHERE, in_own_namespace


def main(folder: Path, address: str) -> None:
    """Build and update, and print what was done."""
    mine = folder / "mine"
    mine.mkdir()
    data, more = folder / "data.nt", folder / "more.nt"
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    sub = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    lines = [f"<urn:x{n}> {kind} <urn:A> .\n" for n in range(1000)]
    data.write_text("".join([f"<urn:A> {sub} <urn:B> .\n", *lines]))
    more.write_text(f"<urn:new> {kind} <urn:A> .\n")
    with cluster(folder, workers=1, prefix=in_own_namespace(ELSEWHERE, mine)) as (url, _):
        session = session_at(url, workers=1)
        os.environ[local_cache.FOLDER] = str(mine / "cache")
        built = spark.build(address, data, rules="rhodf", session=session)
        updated = spark.update(address, insert=more, session=session)
        report = {"built": built.facts, "updated": updated.inserted, "version": updated.version}
        print(json.dumps(report))
        session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
