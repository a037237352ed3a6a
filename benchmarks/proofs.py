"""Facts with many proofs: cliques that survive or split, and a chain with two supports.

A clique is the symmetric and transitive closure of random edges, computed by its rules. Deleting an
edge inside it changes nothing else, but DRed deletes and rederives all pairs; deleting the bridge
between two cliques removes half of the pairs. In the chain, every constant is in A and in B, both
imply C₁, and each Cᵢ implies the next; one of the two supports is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.isolate import isolated
from benchmarks.maintaining import Agreement, Maintained, Tables, counted
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.dictionary import Ids
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate

CLIQUE = "r(?y, ?x) :- r(?x, ?y) . r(?x, ?z) :- r(?x, ?y), r(?y, ?z) ."
R = Predicate("r")
ALGORITHMS = ("dred", "bf", "auto", "fp", "dred-c", "bf-c", "auto with modules")
_EDGES_PER_NODE = 3
_CHAIN = 1_000
_LONG = 1.0  # seconds of a deletion that is not repeated


def run(options: Options) -> Iterator[Row]:
    """Cliques of each size, then the chain."""
    for scale in options.scales:
        for case in ("stays", "splits"):
            slowest: Row = {}
            agreement = Agreement()
            for algorithm in ALGORITHMS:
                row = {"case": f"clique {case}", "scale": scale, "algorithm": algorithm} | isolated(
                    clique,
                    timeout=options.timeout,
                    algorithm=algorithm,
                    nodes=scale,
                    splits=case == "splits",
                    repeat=options.repeat,
                )
                yield compared(row, slowest, agreement)
    for coarse in (False, True):
        slowest, agreement = {}, Agreement()
        for algorithm in ("dred", "bf", "auto", "fp", "dred-c", "bf-c", "counting"):
            if coarse and algorithm == "counting":
                continue
            row = {
                "case": "chain" + (", one stratum" if coarse else ""),
                "scale": _CHAIN,
                "algorithm": algorithm,
            } | isolated(
                chain,
                timeout=options.timeout,
                algorithm=algorithm,
                length=min(_CHAIN, 10 * max(options.scales)),
                coarse=coarse,
                repeat=options.repeat,
            )
            yield compared(row, slowest, agreement)


def compared(row: Row, first: Row, agreement: Agreement) -> Row:
    """Add the speedup and the reduction of derivations to the first row; compare the facts."""
    if "hash" in row:
        row["correct"] = row["correct"] and agreement.holds(row["case"], row["hash"])
    if not first:
        first.update(row)
    if "failed" not in row | first:
        row["speedup"] = first["milliseconds"] / row["milliseconds"]
        row["fewer_derivations"] = first["derivations"] / max(1, row["derivations"])
    return row


def clique(algorithm: str, nodes: int, splits: bool, repeat: int) -> Row:
    """The median over edges of the minimum over repeated deletions."""
    edges, gone = graph(nodes, splits)
    name, _, modules = algorithm.partition(" with ")
    kept = Maintained(Program.parse(CLIQUE), {R: edges}, name, modules=bool(modules))
    facts, before = len(kept.maintainer.facts), kept.digest()
    times: list[float] = []
    row, after = {}, ""
    for edge in gone:
        spent = []
        for _ in range(repeat + 1):
            seconds, changes = kept.delete({R: edge[None]})
            spent.append(seconds * 1e3)
            if not times and len(spent) == 1:  # after the first edge, by all algorithms
                after = kept.digest()
            kept.insert({R: edge[None]})
            if seconds > _LONG:
                break
        times.append(min(spent[1:] or spent))
        row = {"deleted": len(changes.deleted)} | counted(changes)
        if spent[-1] > 1e3 * _LONG:
            break
    wanted = 2 * (nodes // 2) * (nodes - nodes // 2) if splits else 0
    correct = abs(row["deleted"] - wanted) <= 2 and kept.digest() == before
    median = float(np.median(times))
    return {"facts": facts, "milliseconds": median, "hash": after[:12], "correct": correct} | row


def graph(nodes: int, splits: bool) -> tuple[Ids, Ids]:
    """Edges of a connected graph, and some of them to delete: the bridge, or edges on cycles."""
    rng = np.random.default_rng(1)
    half = nodes // 2
    if splits:
        parts = [
            np.concatenate([ring(low, high), rng.integers(low, high, (_EDGES_PER_NODE * half, 2))])
            for low, high in ((0, half), (half, nodes))
        ]
        bridge = np.array([[0, nodes - 1]])
        edges = np.unique(np.concatenate([*parts, bridge]), axis=0).astype(np.uint32)
        return edges, bridge.astype(np.uint32)
    edges = np.concatenate([ring(0, nodes), rng.integers(0, nodes, (_EDGES_PER_NODE * nodes, 2))])
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0).astype(np.uint32)
    return edges, rng.permutation(edges)[:9]


def ring(low: int, high: int) -> Ids:
    """A cycle through the nodes."""
    nodes = np.arange(low, high)
    return np.stack([nodes, np.roll(nodes, 1)], axis=1).astype(np.uint32)


def chain(algorithm: str, length: int, coarse: bool, repeat: int) -> Row:
    """A chain with as many constants as steps; deletes one of the two supports of each."""
    steps = "".join(f"c{i}(?x) :- c{i - 1}(?x) .\n" for i in range(2, length + 1))
    program = Program.parse(f"c1(?x) :- a(?x) .\nc1(?x) :- b(?x) .\n{steps}")
    constants = np.arange(_CHAIN, dtype=np.uint32)[:, None]
    tables: Tables = {Predicate("a"): constants, Predicate("b"): constants}
    kept = Maintained(program, tables, algorithm, coarse=coarse)
    before, after = kept.digest(), ""
    spent, row = [], {}
    for _ in range(repeat + 1):
        seconds, changes = kept.delete({Predicate("a"): constants})
        spent.append(seconds * 1e3)
        row = {"deleted": len(changes.deleted)} | counted(changes)
        after = kept.digest()
        kept.insert({Predicate("a"): constants})
    return {
        "facts": len(kept.maintainer.facts),
        "milliseconds": min(spent[1:]),
        "hash": after[:12],
        "correct": row["deleted"] == _CHAIN and kept.digest() == before,
        "derivations_per_constant": row["derivations"] / _CHAIN,
    } | row


BENCHMARK = Benchmark(
    "proofs",
    "deletions of facts with many proofs: cliques and a chain",
    unit="nodes",
    scales=(300,),
    small=(40,),
    run=run,
    plots=(
        Plot(
            "Deletions of facts with many proofs",
            "case",
            "milliseconds",
            "algorithm",
            unit="milliseconds",
        ),
    ),
    views=(
        View(
            "Milliseconds",
            ("case", "scale", "facts", "deleted"),
            across="algorithm",
            values=("milliseconds",),
        ),
        View(
            "Facts after a deletion: a hash, by each algorithm",
            ("case",),
            across="algorithm",
            values=(Column("hash", new=True),),
        ),
        View(
            "Rule instances considered",
            ("case", "scale"),
            across="algorithm",
            values=("derivations",),
        ),
    ),
)
