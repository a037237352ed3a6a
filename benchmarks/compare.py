"""Compare this checkout with another one: interleaved, by minimum CPU time, and bytes of a store.

    git worktree add ../before origin/main
    python -m benchmarks.compare ../before --repeat 7

Every round runs all cases in a new process per checkout, so a slow phase of the machine affects
both. The first process of each compiles and is not counted. `spread` is the ratio of the other
checkout to itself: the minimum of its even rounds divided by that of its odd rounds. A ratio within
the spread is not significant.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

Case = Callable[[Path], float]

_ROOT = Path(__file__).resolve().parents[1]
_UNIVERSITIES = 3  # of LUBM: 0.4 M triples
_BYTES = "bytes of a store"


def _least(work: Callable[[], object], times: int) -> float:
    """The minimum CPU time of some work."""
    return min(_spent(work) for _ in range(times))


def _spent(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return process_time() - started


def _bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _rematerialization(kb: Any) -> Callable[[], object]:
    """The method that derives everything again; its name depends on the age of a checkout."""
    owner = getattr(kb, "state", kb)
    names = ("rematerialize", "_rematerialize", "_anew")
    method: Callable[[], object] = next(
        getattr(owner, name) for name in names if hasattr(owner, name)
    )
    return method


def prepare(folder: Path) -> None:
    """Write the data shared by all cases."""
    from corollary.cli.main import main

    scale = str(_UNIVERSITIES)
    main(["generate", "lubm", "--scale", scale, "--out", str(folder / "lubm"), "--quiet"])
    main(["generate", "dag", "--scale", "0.3", "--out", str(folder / "dag"), "--quiet"])
    turtle = "\n".join(f"<urn:s{i}> <urn:p{i % 7}> <urn:o{i % 97}>, {i} ." for i in range(20_000))
    (folder / "data.ttl").write_text(turtle)


def cases(folder: Path) -> Iterator[tuple[str, float]]:
    """The processor time of every case, in seconds; the size of a store in bytes (`_BYTES`)."""
    import corollary as co

    university = sorted(folder.glob("lubm/*.nt*"))
    loaded = co.KnowledgeBase(co.rules("rhodf"))
    yield "load LUBM, rhodf", _spent(lambda: loaded.load(*university))

    yield "closure of LUBM, rhodf", _least(_rematerialization(loaded), 5)
    triple = "<urn:x> <http://swat.cse.lehigh.edu/onto/univ-bench.owl#worksFor> <urn:y> ."

    def commit(change: str, text: str) -> None:
        with loaded.transaction() as tx:
            getattr(tx, change)(text)

    inserts, deletes = [], []
    for _ in range(40):
        inserts.append(_spent(lambda: commit("insert", triple)))
        deletes.append(_spent(lambda: commit("delete", triple)))
    yield "insert one triple", min(inserts)
    yield "delete one triple", min(deletes)
    many = "\n".join(f"<urn:x{i}> <urn:y{i % 9}> <urn:z{i}> ." for i in range(1000))
    work = triple.replace("<urn:x>", "<urn:x{}>")
    many += "\n".join(work.format(i) for i in range(1000))
    inserts, deletes = [], []
    for _ in range(10):
        inserts.append(_spent(lambda: commit("insert", many)))
        deletes.append(_spent(lambda: commit("delete", many)))
    yield "insert 2,000 triples", min(inserts)
    yield "delete 2,000 triples", min(deletes)
    query = (
        "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> SELECT ?x ?y ?z WHERE"
        " { ?x a ub:GraduateStudent . ?y a ub:University . ?z a ub:Department ."
        " ?x ub:memberOf ?z . ?z ub:subOrganizationOf ?y }"
    )
    yield "SPARQL join, cold", _spent(lambda: loaded.query(query))
    yield "SPARQL join, warm", _least(lambda: loaded.query(query), 10)
    store = folder / f"store-{os.getpid()}"
    yield "save a store", _spent(lambda: loaded.save(store))
    yield _BYTES, _bytes_of(store)
    yield "open a store", _least(lambda: co.KnowledgeBase.open(store).count("[?x, a, ?y]"), 5)
    stored = co.KnowledgeBase.open(store)

    def stored_commit() -> None:
        with stored.transaction() as tx:
            tx.insert(triple.replace("urn:x", f"urn:s{stored.version}"))

    stored_commit()
    yield "commit one triple to a store", _least(stored_commit, 15)

    def ontology() -> None:
        kb = co.KnowledgeBase(co.rules("owl-rl"))
        kb.load(folder / "lubm/univ-bench.nt", folder / "lubm/University0.nt")

    yield "one university, owl-rl", _least(ontology, 3)
    graph = co.KnowledgeBase(co.Program.load(folder / "dag/program.dl"))
    yield "DAG, load and closure", _spent(lambda: graph.load(*sorted(folder.glob("dag/*.facts*"))))
    yield "DAG, closure", _least(_rematerialization(graph), 5)

    def turtle() -> None:
        co.KnowledgeBase().load(folder / "data.ttl")

    yield "read Turtle", _least(turtle, 5)


def _measure(checkout: Path, folder: Path) -> dict[str, float]:
    """All cases in a process that imports this checkout."""
    environment = dict(os.environ) | {"PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, str(checkout), "--cases-in", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{checkout} failed:\n{done.stderr}")
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def main() -> int:
    """Print a table or JSON: seconds of both checkouts, their ratio, and the spread."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("--repeat", type=int, default=7, help="rounds (default: 7)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--cases-in", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cases_in is not None:
        print(json.dumps(dict(cases(options.cases_in))))
        return 0
    checkouts = {"here": _ROOT, "other": options.other.resolve()}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for number in range(options.repeat + 1):
            for which, checkout in checkouts.items():
                measured = _measure(checkout, folder)
                if number:
                    rounds[which].append(measured)
            print(f"round {number} of {options.repeat}", file=sys.stderr, flush=True)
    rows = []
    for case in rounds["here"][0]:
        here, other = ([each[case] for each in rounds[which]] for which in ("here", "other"))
        rows.append(
            (
                case,
                min(here),
                min(other),
                round(min(here) / min(other), 3),
                round(min(other[::2]) / min(other[1::2] or other), 3),
            )
        )
    if options.json:
        made = []
        for case, *figures in rows:
            unit = "bytes" if case == _BYTES else "seconds"
            names = (unit, f"other_{unit}", "ratio", "spread")
            made.append({"case": case} | dict(zip(names, figures, strict=True)))
        print(json.dumps({"name": "compare", "rows": made}))
        return 0
    print(f"{'case':32}{'here':>12}{'other':>12}{'ratio':>8}{'spread':>8}")
    for case, ours, theirs, ratio, spread in rows:
        if case == _BYTES:
            sizes = f"{ours:>12,.0f}{theirs:>12,.0f}"
        else:
            sizes = f"{ours * 1e3:>10.3f}ms{theirs * 1e3:>10.3f}ms"
        print(f"{case:32}{sizes}{ratio:>8}{spread:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
