"""One fact and a large relation: the cost of joining it and inserting it.

`first` is the first repetition, which builds the index that the others use; it is excluded from the
median and the maximum. Each insertion applies to the result of the previous one, so the maximum
includes merges of runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.isolate import isolated
from benchmarks.measure import peak_bytes
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.compile import compile_rule
from corollary.core.dictionary import Dictionary, Ids
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate

RULE = "path(?x, ?z) :- edge(?x, ?y), path(?y, ?z) ."
EDGE, PATH = Predicate("edge"), Predicate("path")

Action = Callable[[], None]

_FACTS_PER_NODE = 10
_REPETITIONS = 1_000
_WARM_UP = 10_000  # facts of the relation in the run that compiles


def run(options: Options) -> Iterator[Row]:
    """Each operation on a relation of each size."""
    for scale in options.scales:
        for operation in OPERATIONS:
            yield {"case": operation, "facts": scale} | isolated(
                measured, timeout=options.timeout, operation=operation, scale=scale
            )


def measured(operation: str, scale: int, repetitions: int = _REPETITIONS) -> Row:
    """Microseconds of an operation for each new fact, without its preparation."""
    spent = np.empty(0)
    for size in (min(scale, _WARM_UP), scale):
        bench = Bench(size, large=OPERATIONS[operation][0])
        prepare = OPERATIONS[operation][1]
        spent = np.empty(repetitions + 1)
        for number in range(len(spent)):
            act = prepare(bench, bench.random(1))
            started = time.perf_counter_ns()
            act()
            spent[number] = (time.perf_counter_ns() - started) / 1_000
    return {
        "repetitions": repetitions,
        "median_microseconds": float(np.median(spent[1:])),
        "max_microseconds": float(spent[1:].max()),
        "first_microseconds": float(spent[0]),
        "peak_bytes": peak_bytes(),
        "derived": bench.derived,
        "inserted": len(bench.facts) + len(bench.relation) - 2 * bench.size,
        "found": bench.found,
    }


class Bench:
    """A random relation, and operations with one more fact."""

    def __init__(self, scale: int, large: Predicate) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes = max(2, scale // _FACTS_PER_NODE)
        self.engine = ColumnarEngine(Dictionary())
        self.rule = compile_rule(Program.parse(RULE).rules[0], self.engine.dictionary)
        self.facts: ColumnarFacts = self.engine.facts({large: self.random(scale)})
        self.size = len(self.facts)
        self.relation = self.facts.relations[large]
        self.derived = self.found = 0

    def random(self, rows: int) -> Ids:
        return self.rng.integers(0, self.nodes, (rows, 2), np.uint32)

    def join_edge(self, fact: Ids) -> Action:
        """Join a new edge with the first column of `path`."""
        return self.derive(EDGE, fact)

    def join_path(self, fact: Ids) -> Action:
        """Join a new path with the second column of `edge`."""
        return self.derive(PATH, fact)

    def derive(self, predicate: Predicate, fact: Ids) -> Action:
        delta = self.engine.facts({predicate: fact})
        known = self.facts.union(delta)

        def act() -> None:
            self.derived += len(self.engine.derive([self.rule], known, delta=delta).facts)

        return act

    def insert(self, fact: Ids) -> Action:
        """Add a path to the set of facts."""
        one = self.engine.facts({PATH: fact})

        def act() -> None:
            self.facts = self.facts.union(one)

        return act

    def insert_key(self, fact: Ids) -> Action:
        """Add a path to the relation, below the set of facts."""
        one = self.engine.facts({PATH: fact}).relations[PATH]

        def act() -> None:
            self.relation = self.relation.union(one)

        return act

    def find_key(self, fact: Ids) -> Action:
        """Test whether the relation contains a path."""
        key = self.engine.facts({PATH: fact}).relations[PATH].keys()

        def act() -> None:
            self.found += int(self.relation.contains(key)[0])

        return act


# The predicate of the large relation, and what is done with a new fact.
OPERATIONS: dict[str, tuple[Predicate, Callable[[Bench, Ids], Action]]] = {
    "join one edge": (PATH, Bench.join_edge),
    "join one path": (EDGE, Bench.join_path),
    "insert one path": (PATH, Bench.insert),
    "insert one key": (PATH, Bench.insert_key),
    "find one key": (PATH, Bench.find_key),
}


BENCHMARK = Benchmark(
    "one_fact",
    "joining and inserting one fact, by the size of the relation",
    unit="facts",
    scales=(100_000_000,),
    small=(1_000_000,),
    run=run,
    plots=(
        Plot(
            "One fact and a large relation",
            "case",
            "median_microseconds",
            "facts",
            unit="microseconds, median",
        ),
    ),
    views=(
        View(
            "Microseconds",
            (
                Column("case", "operation"),
                "facts",
                Column("median_microseconds", "median"),
                Column("max_microseconds", "maximum of 1,000"),
                Column("first_microseconds", "first, builds the index"),
            ),
        ),
    ),
)
