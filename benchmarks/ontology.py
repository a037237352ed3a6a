"""Ontologies: histories of real ones, generated ones of growing size, GO, and LUBM's axioms.

`--scale` is the number of classes of a generated ontology; LUBM(10) is measured from 10,000 classes
on. Everything runs on one thread, after a small run that loads compiled code. The modules
`ontology_histories`, `ontology_axioms` and `ontology_lubm` describe the measurements; the benchmark
`reasoners` compares other reasoners on an ontology.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import ontology_axioms, ontology_histories, ontology_lubm
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View


def run(options: Options) -> Iterator[Row]:
    """Histories, generated ontologies, GO, LUBM."""
    yield from ontology_histories.rows(options)
    yield from ontology_axioms.generated_rows(options)
    yield from ontology_axioms.go_rows(options)
    yield from ontology_lubm.rows(options)


_LOADED = (
    "facts",
    "instances",
    Column("cpu_seconds", "load: s"),
    Column("instance_ns", "ns per instance"),
    Column("insert_ms", "insert: ms"),
    Column("delete_ms", "delete: ms"),
)

BENCHMARK = Benchmark(
    "ontology",
    "ontologies: histories, growth, inserted and deleted axioms",
    unit="classes",
    scales=(1000, 10_000, 100_000, 300_000),
    small=(1000,),
    run=run,
    plots=(
        Plot(
            "Histories: median and worst commit, and starting over",
            "case",
            where=(("part", "history"),),
            ys=(
                ("median_ms", "median"),
                ("worst_ms", "worst"),
                ("rematerialize_ms", "starting over"),
            ),
            unit="milliseconds of processor time",
        ),
        Plot(
            "Generated ontologies under OWL 2 RL: an axiom",
            "case",
            where=(("part", "generated"),),
            ys=(("insert_ms", "insert it with a triple"), ("delete_ms", "delete it")),
            unit="milliseconds of processor time, median",
        ),
    ),
    views=(
        View(
            "Histories: milliseconds per commit, and starting over",
            (
                "case",
                "commits",
                "facts",
                Column("median_ms", "median"),
                Column("worst_ms", "worst"),
                Column("rematerialize_ms", "starting over"),
                Column("rematerialize_last_ms", "starting over, at the end"),
                Column("rematerialize_times", "×"),
                Column("worst_to_bound", "worst ÷ (1.2 × starting over + 1 ms)"),
                Column("bounded", "bound holds"),
                "correct",
            ),
            where=(("part", "history"),),
        ),
        View(
            "Generated ontologies under OWL 2 RL",
            ("case", *_LOADED, Column("peak_bytes", "peak MB", 1e-6)),
            where=(("part", "generated"),),
        ),
        View(
            "The Gene Ontology as rdfs:subClassOf axioms",
            ("case", *_LOADED, "pairs", Column("published", "published pairs"), "correct"),
            where=(("part", "go"),),
        ),
        View(
            "LUBM under OWL 2 RL: the closure, and removing and adding an axiom",
            (
                "case",
                "explicit",
                "facts",
                "rules",
                Column("cpu_seconds", "closure: s"),
                Column("first_cpu_seconds", "first: s"),
                Column("remove_ms", "remove: ms"),
                Column("add_ms", "add: ms"),
                "correct",
            ),
            where=(("part", "lubm"),),
        ),
    ),
)
