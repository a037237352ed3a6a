"""Loading, closing and updating LUBM under ρdf: Fig. 5 and Table 2 of Urbani et al. (2013).

The six updates are those of the paper: one triple and 16,000 triples without consequences, 8,000
e-mail addresses, a subproperty axiom that is deleted (and two that are inserted), one and two
universities. The seconds of the paper are for LUBM(1000) on a machine with two Intel E5620 and
SSDs; its counting algorithm is compared with `dred-c`, because the rules are recursive.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import corollary as co
from benchmarks.isolate import isolated
from benchmarks.measure import least, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.algorithms import reasoner
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.generate import DATASETS
from corollary.generate.univ_bench import UB
from corollary.generate.write import write
from corollary.rdf.formats import read, read_text
from corollary.reasoning.specialization import SpecializedReasoner

# Seconds: addition, then removal by DRed and by counting.
PAPER = {
    1: (0.117, 2902.7, 0.117),
    2: (8.2, 2049.6, 25.7),
    3: (3.7, 2121.9, 25.4),
    4: (31.8, 2132.2, 51.0),
    5: (16.8, 2196.0, 74.6),
    6: (30.5, 3830.2, 135.8),
}
PAPER_TRIPLES_PER_SECOND = 227_000  # of input, closure of LUBM(8000)
ALGORITHMS = ("auto", "dred", "dred-c", "bf", "fp")
_EMPTY, _EMAILS = 16_000, 8_000
_SUB = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"


def run(options: Options) -> Iterator[Row]:
    """The stages at each size, then the updates at the last size with each algorithm."""
    for scale in options.scales:
        row: Row = {"case": "stages", "universities": scale}
        yield row | isolated(stages, timeout=options.timeout, scale=scale, repeat=options.repeat)
    yield {
        "case": "stages in the paper",
        "universities": 8_000,
        "triples_per_second": PAPER_TRIPLES_PER_SECOND,
    }
    wanted: dict[int, tuple[int, int]] = {}
    for algorithm in ALGORITHMS:
        found = isolated(
            updates,
            timeout=options.timeout,
            scale=options.scales[-1],
            algorithm=algorithm,
            repeat=options.repeat,
        )
        row = {"case": "updates", "universities": options.scales[-1], "algorithm": algorithm}
        if "failed" in found:
            yield row | found
            continue
        for update in found["rows"]:
            sizes = (update["inserted"], update["deleted"])
            same = wanted.setdefault(update["update"], sizes) == sizes
            yield row | update | {"correct": update["correct"] and same}
    for number, (added, dred, counting) in PAPER.items():
        yield {
            "case": "updates in the paper",
            "update": number,
            "add_seconds": added,
            "remove_seconds_dred": dred,
            "remove_seconds_counting": counting,
        }


def stages(scale: int, repeat: int) -> Row:
    """Seconds of reading and numbering terms, of sorted relations, and of the closure."""
    rules = co.rules("rhodf")
    with tempfile.TemporaryDirectory() as folder:
        write(DATASETS["lubm"], Path(folder), scale=scale, seed=0)
        engine = ColumnarEngine(Dictionary())
        read(f"{folder}/univ*.nt", engine.dictionary)  # loads compiled code
        engine = ColumnarEngine(Dictionary())
        triples, encode = timed(lambda: read(f"{folder}/*.nt", engine.dictionary))
    facts, index = timed(lambda: engine.facts(triples.tables(engine.dictionary)))
    SpecializedReasoner(rules, facts, engine)
    spent = least(
        timed(lambda: SpecializedReasoner(rules, facts, engine))[1] for _ in range(repeat)
    )
    size = len(SpecializedReasoner(rules, facts, engine).facts)
    return {
        "explicit": len(facts),
        "facts": size,
        "encode_seconds": encode.seconds,
        "index_seconds": index.seconds,
        "seconds": spent.seconds,
        "triples_per_second": len(facts) / spent.seconds,
    }


def updates(scale: int, algorithm: str, repeat: int) -> Row:
    """Minimum milliseconds of each update and its reverse."""
    engine = ColumnarEngine(Dictionary())
    with tempfile.TemporaryDirectory() as folder:
        write(DATASETS["lubm"], Path(folder), scale=scale + 2, seed=0)
        files = sorted(Path(folder).glob("*.nt"))
        new = [
            file for file in files if file.stem in (f"University{scale}", f"University{scale + 1}")
        ]
        start = _read([file for file in files if file not in new], engine)
        universities = [_read([file], engine) for file in new]
    kept = SpecializedReasoner(
        co.rules("rhodf"), start, engine, reasoner.Options(algorithm=algorithm)
    )
    size, nothing = len(kept.facts), engine.facts({})
    head_of, works_for = f"<{UB}headOf>", f"<{UB}worksFor>"
    axiom = _text(f"{head_of} {_SUB} {works_for} .", engine)
    new_axioms = _text(
        f"{head_of} {_SUB} <{UB}responsibleOf> . <{UB}responsibleOf> {_SUB} <{UB}Manager> .", engine
    )
    rows = []
    cases = {
        1: (_lines(1, "note", engine),) * 2,
        2: (_lines(_EMPTY, "note", engine),) * 2,
        3: (_lines(_EMAILS, "emailAddress", engine),) * 2,
        4: (new_axioms, axiom),
        5: (universities[0],) * 2,
        6: (universities[0].union(universities[1]),) * 2,
    }
    for number, (added, removed) in cases.items():
        ways = {"add": [], "remove": []}  # type: dict[str, list[float]]
        inserted = deleted = 0
        correct = True
        for _ in range(repeat + 1):
            done, time = timed(lambda added=added: kept.update(Changes(added, nothing)))  # type: ignore[misc]
            ways["add"].append(time.seconds * 1e3)
            inserted = len(done.inserted)
            if removed is not added:
                kept.update(Changes(nothing, added))
            done, time = timed(lambda removed=removed: kept.update(Changes(nothing, removed)))  # type: ignore[misc]
            ways["remove"].append(time.seconds * 1e3)
            deleted = len(done.deleted)
            if removed is not added:
                kept.update(Changes(removed, nothing))
            correct &= len(kept.facts) == size
        rows.append(
            {
                "update": number,
                "inserted": inserted,
                "deleted": deleted,
                "add_milliseconds": min(ways["add"][1:]),
                "remove_milliseconds": min(ways["remove"][1:]),
                "correct": correct,
            }
        )
    return {"rows": rows}


def _read(files: list[Path], engine: ColumnarEngine) -> ColumnarFacts:
    return engine.facts(read(files, engine.dictionary).tables(engine.dictionary))


def _lines(number: int, name: str, engine: ColumnarEngine) -> ColumnarFacts:
    """Triples with new subjects."""
    lines = (f'<http://example.org/new{at}> <{UB}{name}> "value {at}" .' for at in range(number))
    return _text("\n".join(lines), engine)


def _text(text: str, engine: ColumnarEngine) -> ColumnarFacts:
    return engine.facts(read_text(text, engine.dictionary).tables(engine.dictionary))


BENCHMARK = Benchmark(
    "dynamite",
    "stages and the six updates of LUBM under rhodf (Urbani et al. 2013, Fig. 5 and Table 2)",
    unit="universities",
    scales=(1, 2, 5, 10),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "Stages of LUBM under ρdf",
            "explicit",
            kind="lines",
            where=(("case", "stages"),),
            ys=(
                ("encode_seconds", "read and number terms"),
                ("index_seconds", "sort"),
                ("seconds", "close"),
            ),
            unit="seconds",
            x_unit="explicit triples",
        ),
        Plot(
            "Additions",
            "update",
            "add_milliseconds",
            "algorithm",
            unit="milliseconds",
            x_unit="update",
        ),
        Plot(
            "Removals",
            "update",
            "remove_milliseconds",
            "algorithm",
            unit="milliseconds",
            x_unit="update",
        ),
    ),
    views=(
        View(
            "Fig. 5: seconds of each stage, and triples of input closed a second",
            (
                "universities",
                "explicit",
                "facts",
                Column("encode_seconds", "read and number"),
                Column("index_seconds", "sort"),
                Column("seconds", "close"),
                Column("triples_per_second", "triples/s"),
            ),
            where=(("case", ("stages", "stages in the paper")),),
        ),
        View(
            "Table 2, additions: milliseconds",
            ("update", Column("inserted", "facts gained")),
            across="algorithm",
            values=("add_milliseconds",),
            where=(("case", "updates"),),
        ),
        View(
            "Table 2, removals: milliseconds",
            ("update", Column("deleted", "facts lost")),
            across="algorithm",
            values=("remove_milliseconds",),
            where=(("case", "updates"),),
        ),
        View(
            "Table 2 of the paper: seconds",
            (
                "update",
                Column("add_seconds", "add"),
                Column("remove_seconds_dred", "remove by DRed"),
                Column("remove_seconds_counting", "remove by counting"),
            ),
            where=(("case", "updates in the paper"),),
        ),
    ),
    paper="two quad-core Xeon E5620, 24 GB, an SSD; LUBM(8000) closed, LUBM(1000) updated",
)
