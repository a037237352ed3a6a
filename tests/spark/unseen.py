"""A build whose executors do not see the store: `python -m tests.spark.unseen FOLDER`.

The workers of a standalone cluster run in a mount namespace of their own, where the folder of the
store is another, empty one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.cluster import cluster, session_at
from corollary import spark
from corollary.errors import CorollaryError

ELSEWHERE = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"']


def main(folder: Path) -> None:
    """Build, and print the error and what is left of the store."""
    shared = folder / "shared"
    shared.mkdir()
    data = folder / "data.nt"
    data.write_text("".join(f"<urn:{n}> <urn:p> <urn:{n + 1}> .\n" for n in range(100)))
    with cluster(folder, workers=1, prefix=[*ELSEWHERE, str(shared)]) as (url, _):
        session = session_at(url, workers=1)
        code, message = "", ""
        try:
            spark.build(shared / "store", data, rules="rhodf", session=session)
        except CorollaryError as error:
            code, message = error.code, error.message
        print(json.dumps({"code": code, "message": message, "left": [*map(str, shared.iterdir())]}))
        session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
