"""Rule changes (Kotowski, Bry, Brodt 2011), compared with rematerialization.

First the example of §9 of the paper, the deletion of an edge of a small graph: the unsure facts of
each algorithm, and its derivations. Then LUBM_L to LUBM_LE, which has nine more rules, and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks import lubm_data, lubm_one
from benchmarks.isolate import isolated
from benchmarks.maintaining import Agreement, Maintained, counted
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.lang.program import Program

ALGORITHMS = ("rematerialize", "fp", "bf", "dred", "bf-c", "auto")
EXAMPLE_ALGORITHMS = ("fp", "dred", "bf")
REACH = "reach(?s, ?d) :- edge(?s, ?d) . reach(?s, ?d) :- reach(?s, ?i), edge(?i, ?d) ." + "".join(
    f" edge({pair[0]}, {pair[1]}) ."
    for pair in ("ab", "ac", "be", "cf", "ed", "dg", "ef", "fg", "fh")
)
# One rule of LUBM_L whose head other rules derive too, so that its instances must be checked.
HEAD = "<http://swat.cse.lehigh.edu/onto/univ-bench.owl#Person>"


def run(options: Options) -> Iterator[Row]:
    """The example, LUBM(1), then data of each size."""
    for algorithm in EXAMPLE_ALGORITHMS:
        yield {"case": "example of the paper", "algorithm": algorithm} | example(algorithm)
    reason = lubm_one.missing(options.data)
    if reason is not None:
        yield {"case": "rule change", "skipped": reason}
        return
    for scale in (0, *options.scales):
        baseline: Row = {}
        agreement = Agreement()
        for algorithm in ALGORITHMS:
            case: Row = {"case": f"{scale:,}" if scale else "LUBM(1)", "algorithm": algorithm}
            row = isolated(
                measured,
                timeout=options.timeout,
                algorithm=algorithm,
                scale=scale,
                repeat=options.repeat,
                data=str(options.data),
            )
            if "failed" in row:
                yield case | row
                continue
            baseline = baseline or row
            for name in ("add", "remove", "remove_one"):
                row[f"{name}_speedup"] = baseline[f"{name}_ms"] / row[f"{name}_ms"]
            yield (
                case
                | row
                | {
                    "correct": row["correct"]
                    and agreement.holds(scale, (row["facts"], row["hashes"]))
                }
            )


def example(algorithm: str) -> Row:
    """Delete the edge e → f; U of the paper has nine more pairs, four of which are deleted."""
    program = Program.parse(REACH)
    dictionary = Dictionary()
    tables = encode(program.facts, dictionary)
    kept = Maintained(
        program.without_facts(), tables, algorithm, modules=False, dictionary=dictionary
    )
    gone = encode(Program.parse("edge(e, f) .").facts, dictionary)
    _, changes = kept.delete(gone)
    return (
        {"deleted": len(changes.deleted)}
        | counted(changes)
        | {"correct": len(changes.deleted) == 5}
    )


def measured(algorithm: str, scale: int, repeat: int, data: str) -> Row:
    """Minimum milliseconds to add nine rules, remove them, and remove one rule of LUBM_L."""
    dictionary = Dictionary()
    folder = Path(data)
    tables = lubm_data.generate(scale) if scale else lubm_one.read(folder, dictionary)
    small, large = lubm_one.rules(folder, "L"), lubm_one.rules(folder, "LE")
    nine = [rule for rule in large.rules if rule not in small]
    person = [r for r in small.rules if HEAD in f"<{getattr(r.head.terms[2], 'value', '')}>"]
    kept = Maintained(small, tables, algorithm, dictionary=dictionary)
    before, digest = len(kept.maintainer.facts), kept.digest()
    times: dict[str, list[float]] = {"add": [], "remove": [], "remove_one": []}
    sizes: list[int] = []
    hashes: list[str] = []
    for _ in range(repeat):
        seconds, _ = kept.change_rules(nine, [])
        times["add"].append(seconds * 1e3)
        with_nine, hashes = len(kept.maintainer.facts), [kept.digest()[:12]]
        seconds, changes = kept.change_rules([], nine)
        times["remove"].append(seconds * 1e3)
        seconds, _ = kept.change_rules([], person[:1])
        times["remove_one"].append(seconds * 1e3)
        hashes.append(kept.digest()[:12])
        sizes = [before, with_nine, len(kept.maintainer.facts)]
        kept.change_rules(person[:1], [])
    correct = kept.digest() == digest
    row: Row = {f"{name}_ms": min(spent) for name, spent in times.items()}
    return (
        row
        | {"facts": sizes, "hashes": hashes, "correct": correct}
        | {"removal": counted(changes)["reason"]}
    )


BENCHMARK = Benchmark(
    "rules",
    "rules added to and removed from LUBM_L, compared with rematerialization",
    unit="facts",
    scales=(1_000_000, 10_000_000),
    small=(30_000,),
    run=run,
    plots=(
        Plot(
            "Adding nine rules to LUBM_L",
            "case",
            "add_ms",
            "algorithm",
            unit="milliseconds",
            x_unit="explicit facts",
        ),
        Plot(
            "Removing them",
            "case",
            "remove_ms",
            "algorithm",
            unit="milliseconds",
            x_unit="explicit facts",
        ),
        Plot(
            "Removing one rule of LUBM_L", "case", "remove_one_ms", "algorithm", unit="milliseconds"
        ),
    ),
    views=(
        View(
            "The example of the paper: deleting the edge e → f",
            (
                "algorithm",
                Column("overdeleted", "unsure"),
                Column("checked", "checked"),
                "deleted",
                "derivations",
            ),
            where=(("case", "example of the paper"),),
        ),
        View(
            "Milliseconds, and speedup over rematerialization",
            (
                Column("case", "explicit facts"),
                "algorithm",
                Column("add_ms", "add nine"),
                Column("add_speedup", "×"),
                Column("remove_ms", "remove nine"),
                Column("remove_speedup", "×"),
                Column("remove_one_ms", "remove one"),
                Column("remove_one_speedup", "×"),
                Column("hashes", "facts with nine more and with one less", new=True),
                "correct",
            ),
            needs="add_ms",
        ),
    ),
)
