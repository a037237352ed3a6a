"""A materialization on a standalone cluster of this machine.

Run as a program, it materializes on the cluster, kills one worker after the first round if asked
to, and prints what it found. It is no test itself: a process can have one Spark, and the tests have
one already.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.cluster import cluster, session_at, stop
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.reports import RoundReport
from corollary.lang.program import Program

PROGRAM = Program.parse(
    "near(?x, ?y) :- edge(?x, ?y) . near(?x, ?z) :- near(?x, ?y), back(?y, ?w), edge(?w, ?z) ."
    "back(?y, ?x) :- edge(?x, ?y) ."
    + "".join(f"edge({n}, {(n * 7 + 3) % 60}) ." for n in range(60))
    + "".join(f"edge({n}, {n + 1}) ." for n in range(60))
)


def main(folder: str, kill: str) -> None:
    """Materialize on a cluster, and print what was derived and by how many executors."""
    with cluster(Path(folder)) as (url, workers):
        session = session_at(url)
        context = session.sparkContext
        executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1
        killed = 0

        def on_report(report: RoundReport) -> None:
            nonlocal killed
            if kill == "kill" and not killed and report.number == 1:
                stop(workers[0])
                killed = report.number

        dictionary = Dictionary()
        engine = SparkEngine(
            dictionary,
            ColumnarEngine,
            session,
            small=3,
            partitions=4,
            finish=0,
            tiny=0,
            on_report=on_report,
        )
        from corollary.algorithms.seminaive import materialize

        facts = engine.facts(encode(PROGRAM.facts, dictionary))
        done = materialize(PROGRAM, facts, engine)
        rows = {p.relation: len(done.facts.rows(p)) for p in done.facts.predicates()}
        print(json.dumps({"rows": rows, "executors": executors, "killed": killed}))
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
