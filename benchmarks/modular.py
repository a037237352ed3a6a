"""Modules on and off, as in Tables 1 and 2 of Hu, Motik and Horrocks (2019), and more.

Small deletions and insertions change 1,000 random explicit facts, large deletions a quarter of all,
as in the paper. Its figures, shown for comparison, are for Claros-LE, LUBM-LE and DBpedia-SKOS,
which are larger than the similar data here, on two Xeon E5-2640.

*What runs* names what updates the strata with modules. Where all recursive rules of a stratum are
in modules, that is not Algorithm 3 of the paper but the diff of the module alone; one recursive
rule more, which derives nothing new, makes DRed^c-Mod run with Algorithms 5 and 6 (transitive) or 8
and 9 (symmetric and transitive). After the large deletion and after the facts have been inserted
again, a hash of the facts is compared with those of the other ways and of a materialization from
scratch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import graphs, lubm_one
from benchmarks.generated import generated
from benchmarks.isolate import isolated
from benchmarks.maintaining import Agreement, Maintained, Tables, recorded_algorithms, sample
from benchmarks.measure import forget_peak, least, limited, peak_bytes, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.generate.dag import random_dag
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate

TRANSITIVE = "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) ."
SYMMETRIC = "r(?x, ?y) :- r(?y, ?x) ."
LINEAR = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."

# Seconds with modules and without: materialization, small deletions and insertions, large deletions
PAPER = {
    "claros": ((733.55, 3593.32), (0.93, 1035.28), (0.17, 0.80), (314.33, 3616.93)),
    "LUBM-LE": ((291.90, 1100.22), (0.32, 3.87), (0.01, 0.01), (182.93, 1369.77)),
    "skos": ((103.23, 3623.37), (21.77, 691.32), (0.20, 2.78), (111.28, 3826.87)),
    "DAG-R": ((29.60, 3238.86), (64.92, 3005.11), (14.56, 116.78), (62.48, 4316.71)),
}
# A recursive rule that belongs to no module, and derives nothing that is not known.
OUTSIDE = {
    "claros": "[?x, <{0}>, ?y] :- [?x, <{0}>, ?y], [?x, <{0}>, <urn:nowhere>] .".format(
        "http://example.org/claros-like#relatedPlaces"
    ),
    "DAG-R": "r(nowhere, ?x) :- r(nowhere, ?x) .",
}
COLUMNS = ("materialization", "small_deletion", "small_insertion", "large_deletion")
SMALL = 1000
_SHORT = 5.0  # seconds of a closure that is repeated
_STEPS = 12  # closures and updates of a case, each with its limit
# The algorithm, whether with modules, and whether with a recursive rule outside of them.
WAYS = (
    ("dred-c", True, False),
    ("dred-c", True, True),
    ("dred-c", False, False),
    ("auto", True, False),
    ("auto", False, False),
)


def run(options: Options) -> Iterator[Row]:
    """The tables of the paper by DRed^c and by `auto`; then single cases."""
    scale = options.scales[0] / 100
    for case in PAPER:
        agreement = Agreement()
        for algorithm, modules, outside in WAYS:
            if not outside or case in OUTSIDE:
                row: Row = {"case": case, "algorithm": algorithm, "modules": modules}
                way = "with modules" if modules else "without"
                row["way"] = f"{algorithm} {way}{', one rule more' if outside else ''}"
                found = isolated(
                    measured,
                    timeout=_STEPS * options.timeout,
                    seconds=options.timeout,
                    name=case,
                    algorithm=algorithm,
                    modules=modules,
                    outside=outside,
                    scale=scale,
                    repeat=options.repeat,
                    data=str(options.data),
                )
                if "hash" in found:
                    found["correct"] &= agreement.holds(case, found["hash"])
                row |= found
                if algorithm == "dred-c" and not outside:
                    figures = (pair[not modules] for pair in PAPER[case])
                    row |= {f"paper {name}": s for name, s in zip(COLUMNS, figures, strict=True)}
                yield row
    yield {"case": "clique"} | isolated(cliques, timeout=options.timeout, nodes=int(1000 * scale))
    for depth in (4, 7):
        yield {"case": "sparse graph"} | isolated(
            sparse, timeout=options.timeout, nodes=int(1_000_000 * scale), depth=depth
        )
    for threads in (1, 2):
        yield {"case": "Debian, bookworm to trixie", "threads": threads} | isolated(
            debian, timeout=options.timeout, threads=threads, data=str(options.data)
        )


def loaded(case: str, scale: float, data: Path, dictionary: Dictionary) -> tuple[Program, Tables]:
    """The program and the explicit facts of a case."""
    if case == "DAG-R":
        return Program.parse(TRANSITIVE), {
            Predicate("r"): random_dag(int(100_000 * scale)).edges.astype(np.uint32)
        }
    if case == "LUBM-LE":
        return lubm_one.rules(data, "LE"), lubm_one.read(data, dictionary)
    return generated(case, scale, dictionary)


def measured(
    name: str,
    algorithm: str,
    modules: bool,
    outside: bool,
    scale: float,
    repeat: int,
    data: str,
    seconds: float,
) -> Row:
    """Seconds of materialization, and medians of updates without the first of each.

    Each closure and each update has a limit of its own: `seconds`.
    """
    if name == "LUBM-LE" and (reason := lubm_one.missing(Path(data))) is not None:
        return {"skipped": reason}
    dictionary = Dictionary()
    program, tables = loaded(name, scale, Path(data), dictionary)
    if outside:
        program = Program.of([*program.rules, *Program.parse(OUTSIDE[name]).rules], program.facts)
    with limited(seconds, "materialization"):
        kept = Maintained(program, tables, algorithm, modules=modules, dictionary=dictionary)
    if kept.seconds < _SHORT:  # again, without compilation
        kept = Maintained(program, tables, algorithm, modules=modules, dictionary=dictionary)
    before, digest = len(kept.maintainer.facts), kept.digest()
    rng = np.random.default_rng(0)
    number = min(SMALL, sum(map(len, tables.values())) // 10)
    deletions, insertions = [], []
    with recorded_algorithms() as runs:
        for _ in range(repeat + 1):
            some = sample(rng, tables, number)
            with limited(seconds, "small deletion"):
                deletions.append(kept.delete(some)[0])
            with limited(seconds, "small insertion"):
                insertions.append(kept.insert(some)[0])
        quarter = sample(rng, tables, sum(map(len, tables.values())) // 4)
        with limited(seconds, "large deletion"):
            large, changes = kept.delete(quarter)
    after = kept.digest()
    correct = after == kept.scratch_digest()
    kept.insert(quarter)
    return {
        "explicit": sum(map(len, tables.values())),
        "facts": before,
        "rules": len(program.rules),
        "materialization": kept.seconds,
        "small_deletion": median(deletions[1:]),
        "small_insertion": median(insertions[1:]),
        "large_deletion": large,
        "large_deleted": len(changes.deleted),
        "runs": ", ".join(sorted(runs)) or "no modules",
        "hash": after[:12],
        "correct": correct and kept.digest() == digest,
    }


def cliques(nodes: int) -> Row:
    """Milliseconds to delete one edge: within a clique, and the only one between two halves."""
    ends = np.stack(np.triu_indices(nodes, 1), axis=1).astype(np.uint32)
    half = nodes // 2
    apart = ends[(ends[:, 0] < half) == (ends[:, 1] < half)]
    bridge = np.array([[0, nodes - 1]], np.uint32)
    program = Program.parse(TRANSITIVE + SYMMETRIC)
    row: Row = {"nodes": nodes}
    cases = {"connected": (ends, ends[nodes : nodes + 20]), "splitting": (apart, bridge)}
    for name, (edges, gone) in cases.items():
        tables = {Predicate("r"): np.concatenate([edges, bridge])}
        kept = Maintained(program, tables, "auto")
        times, lost = [], 0
        for at in range(20):
            edge = {Predicate("r"): gone[at % len(gone)][None]}
            seconds, changes = kept.delete(edge)
            kept.insert(edge)
            times.append(1000 * seconds)
            lost = len(changes.deleted)
        row |= {f"{name}_ms": median(times), f"{name}_deleted": lost}
        row[f"{name}_closure_ms"] = 1000 * kept.seconds
    expected = [0, 2 * half * (nodes - half)]
    row["correct"] = [row["connected_deleted"], row["splitting_deleted"]] == expected
    return row


def sparse(nodes: int, depth: int) -> Row:
    """A tree-like graph with 3 edges per node: nanoseconds and bytes per pair."""
    # A node's parent is a fixed fraction of its number; it has edges to two more ancestors too.
    child = np.arange(1, nodes, dtype=np.int64)
    above = [child * (depth - 1) // depth]
    for _ in range(2):
        above.append(above[-1] * (depth - 1) // depth)
    edges = np.concatenate([np.stack([child, parent], axis=1) for parent in above])
    edges = edges[edges[:, 0] > edges[:, 1]]
    names = np.random.default_rng(0).permutation(nodes)
    rows = np.unique(names[edges].astype(np.uint32), axis=0)
    engine = ColumnarEngine(Dictionary(), threads=2)
    program = Program.parse(TRANSITIVE)
    explicit = engine.facts({Predicate("r"): rows})
    forget_peak()
    held = peak_bytes()
    times, facts = [], 0
    for _ in range(3):  # the first run also loads compiled code
        found, time = timed(lambda: materialize(program, explicit, engine).facts)
        times.append(time)
        facts = len(found)
        del found
    best = least(times)
    return {
        "nodes": nodes,
        "edges": len(rows),
        "facts": facts,
        "materialization": best.seconds,
        "ns_per_pair": 1e9 * best.seconds / facts,
        "cpu_ns_per_pair": 1e9 * best.cpu_seconds / facts,
        "bytes_per_pair": (peak_bytes() - held) / facts,
    }


def debian(threads: int, data: str) -> Row:
    """The closure of one release, and the diff to the next release as one update."""
    names: dict[str, int] = {}
    releases = []
    for name in ("Debian bookworm", "Debian trixie"):
        file, pairs = graphs.GRAPHS[name]
        if not (Path(data) / file).exists():
            return {"skipped": f"no {file} in {data}"}
        releases.append((np.unique(graphs.read(Path(data) / file, names), axis=0), pairs))
    (old, old_pairs), (new, new_pairs) = releases
    gone, come = (
        np.array(sorted({*map(tuple, a.tolist())} - {*map(tuple, b.tolist())}), np.uint32)
        for a, b in ((old, new), (new, old))
    )
    program, edge, path = Program.parse(LINEAR), Predicate("edge"), Predicate("path")
    closures, forth, back = [], [], []
    right = True
    for _ in range(10):
        kept = Maintained(program, {edge: old}, "auto", threads=threads)
        closures.append(kept.seconds)
        right &= len(kept.maintainer.facts.rows(path)) == old_pairs
        forth.append(kept.change({edge: come}, {edge: gone})[0])
        right &= len(kept.maintainer.facts.rows(path)) == new_pairs
        back.append(kept.change({edge: gone}, {edge: come})[0])
        right &= len(kept.maintainer.facts.rows(path)) == old_pairs
    return {
        "changed": len(gone) + len(come),
        "facts": old_pairs,
        "materialization": min(closures[1:]),
        "update": min(forth[1:]),
        "update_back": min(back[1:]),
        "correct": right,
    }


BENCHMARK = Benchmark(
    "modular",
    "modules on and off: materialization, small and large updates",
    unit="percent",
    scales=(100,),
    small=(5,),
    run=run,
    plots=(
        Plot("Materialization", "case", "materialization", "way", unit="seconds"),
        Plot("Deleting 1,000 facts", "case", "small_deletion", "way", unit="seconds"),
        Plot(
            "Inserting 1,000 facts",
            "case",
            "small_insertion",
            "way",
            unit="seconds",
        ),
        Plot("Deleting a quarter", "case", "large_deletion", "way", unit="seconds"),
    ),
    views=(
        View(
            "Seconds, with modules and without; the paper's by DRed^c",
            (
                "case",
                "explicit",
                "facts",
                "way",
                Column("runs", "what runs", new=True),
                *(
                    column
                    for name in COLUMNS
                    for column in (name, Column(f"paper {name}", "(paper)"))
                ),
                Column("hash", "facts after the large deletion", new=True),
                "correct",
            ),
            where=(("case", tuple(PAPER)),),
        ),
        View(
            "A clique, symmetric and transitive: milliseconds to delete one edge",
            (
                "nodes",
                Column("connected_ms", "stays connected"),
                Column("splitting_ms", "splits"),
                Column("splitting_deleted", "facts lost"),
                Column("splitting_closure_ms", "closure"),
                "correct",
            ),
            where=(("case", "clique"),),
        ),
        View(
            "Tree-like graphs, three edges per node, two threads",
            (
                "nodes",
                "edges",
                Column("facts", "pairs"),
                Column("materialization", "seconds"),
                Column("ns_per_pair", "ns per pair"),
                Column("bytes_per_pair", "bytes per pair"),
            ),
            where=(("case", "sparse graph"),),
        ),
        View(
            "Debian, bookworm to trixie as one update: seconds",
            (
                "threads",
                Column("changed", "edges changed"),
                Column("facts", "pairs"),
                Column("materialization", "closure"),
                "update",
                "update_back",
                "correct",
            ),
            where=(("case", "Debian, bookworm to trixie"),),
        ),
    ),
    paper="two Xeon E5-2640, 512 GB; larger data, except DAG-R, the same kind of graph",
)
