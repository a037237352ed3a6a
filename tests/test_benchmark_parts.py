"""What benchmarks are made of: their data, and the peer in SQL."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from benchmarks import (
    dag,
    figures,
    losses,
    lubm_data,
    lubm_one,
    page,
    regret,
    spark_model,
    sql,
    tables,
)
from benchmarks.maintaining import Maintained
from benchmarks.report import DATA, Row
from corollary.core.compile import narrow_predicate, narrow_terms
from corollary.core.dictionary import Dictionary, Ids
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom
from tests.reached import closure

needs_data = pytest.mark.skipif(
    lubm_one.missing(DATA) is not None, reason=f"LUBM(1) is not here: {lubm_one.missing(DATA)}"
)


def test_lubm_data_is_deterministic_and_without_duplicates() -> None:
    facts, again = lubm_data.generate(20_000), lubm_data.generate(20_000)
    for predicate, rows in facts.items():
        assert np.array_equal(rows, again[predicate])
        assert len(np.unique(rows, axis=0)) == len(rows)
    assert 0.8 < sum(map(len, facts.values())) / 20_000 < 1.2


def test_lubm_links_stay_within_a_department() -> None:
    facts = lubm_data.generate(20_000)

    def pairs(name: str) -> dict[int, int]:
        return dict(facts[lubm_data.property_(name)].tolist())

    department = pairs("memberOf") | pairs("worksFor")
    assert pairs("headOf").items() <= pairs("worksFor").items()
    assert all(department[a] == department[b] for a, b in pairs("advisor").items())
    # Ids of a department lie next to each other.
    order = [department[person] for person in sorted(department)]
    assert sum(a != b for a, b in pairwise(order)) == len(set(order)) - 1
    courses = {
        course: teacher for teacher, course in facts[lubm_data.property_("teacherOf")].tolist()
    }
    taken = facts[lubm_data.property_("takesCourse")].tolist()
    assert all(department[student] == department[courses[course]] for student, course in taken)


def test_tables_survive_a_file(tmp_path: Any) -> None:
    facts = {**lubm_data.generate(5_000), Predicate("edge"): np.array([[1, 2]], np.uint32)}
    tables.save(tmp_path / "facts.npz", facts)
    loaded = tables.load(tmp_path / "facts.npz")
    assert loaded.keys() == facts.keys()
    assert all(np.array_equal(loaded[predicate], rows) for predicate, rows in facts.items())


@pytest.mark.parametrize("edges", [20, 200])
def test_random_graphs_and_the_size_of_their_closure(edges: int) -> None:
    graph, pairs = dag.random_dag(edges)
    assert len(np.unique(graph, axis=0)) == len(graph)
    reached = closure(graph.tolist())
    assert not any(a == b for a, b in reached)
    assert len(reached) == pairs


# --- the peers ---

PROGRAMS = {
    "linear": dag.LINEAR,
    "quadratic": dag.QUADRATIC,
    "mutual": "odd(?x, ?z) :- edge(?x, ?y), even(?y, ?z) . even(?x, ?y) :- edge(?y, ?x) ."
    " even(?x, ?z) :- odd(?x, ?y), odd(?y, ?z) .",
    "constants": "p(?x) :- edge(?x, 1) . q(1, ?x) :- p(?x), edge(?x, ?x) . p(?y) :- q(?x, ?y) .",
    "triples": "[?x, a, <C>] :- [?x, <p>, ?y], [?y, a, <D>] . [?x, <p>, ?z] :- [?x, <p>, ?y],"
    " [?y, <p>, ?z] . [?y, a, <D>] :- [?x, a, <C>], [?x, <p>, ?y] .",
}


def random_facts(program: Program, count: int) -> list[Atom]:
    """Facts over a few constants, for every predicate that the program reads."""
    rng = np.random.default_rng(len(program))
    atoms = []
    for rule in program.rules:
        for atom, _ in rule.atoms():
            for _ in range(count):
                values = {v: Program.parse(f"c({rng.integers(5)}) .").facts[0].terms[0]
                          for v in atom.variables()}  # fmt: skip
                atoms.append(reference.substitute(atom, values))  # type: ignore[arg-type]
    return atoms


@pytest.mark.parametrize("name", PROGRAMS)
def test_rounds_in_sql_equal_the_oracle(name: str) -> None:
    program = Program.parse(PROGRAMS[name])
    facts = random_facts(program, 4)
    oracle = reference.materialize(program, facts)
    peer = sql.SemiNaive(program, {}, threads=1)
    for predicate, rows in encoded(facts, peer.dictionary).items():
        sql.insert(peer.connection, peer.known[predicate], rows)
    peer.materialize()
    wanted = encoded(oracle, peer.dictionary)
    assert peer.counts() == {predicate: len(rows) for predicate, rows in wanted.items()}
    for predicate, rows in wanted.items():
        found = peer.connection.execute(f"FROM {peer.known[predicate]}").fetchall()
        assert set(found) == set(map(tuple, rows.tolist()))


def encoded(facts: Any, dictionary: Dictionary) -> dict[Predicate, Ids]:
    rows: dict[Predicate, dict[tuple[int, ...], None]] = {}
    for fact in facts:
        terms = Atom("", narrow_terms(fact)).constants()
        rows.setdefault(narrow_predicate(fact), {})[tuple(dictionary.encode(terms).tolist())] = None
    return {predicate: np.array(list(found), np.uint32) for predicate, found in rows.items()}


def test_sql_refuses_what_it_cannot_say() -> None:
    for text in ("p(?x) :- q(?x), NOT r(?x) .", "[?x, ?p, ?z] :- [?x, ?p, ?z] ."):
        with pytest.raises(ValueError, match="SQL"):
            sql.SemiNaive(Program.parse(text), {}, threads=1)


@needs_data
def test_rounds_in_sql_over_lubm_one() -> None:
    explicit = lubm_one.read(DATA, Dictionary())
    wanted = lubm_one.expected(DATA, "L")
    peer = sql.SemiNaive(lubm_one.rules(DATA, "L"), explicit, threads=1)
    peer.materialize()
    counts = {tables.label(p).removeprefix("a "): count for p, count in peer.counts().items()}
    assert sum(counts.values()) == wanted.facts
    assert wanted.by_predicate.items() <= counts.items()


@pytest.mark.parametrize("seed", range(20))
def test_the_model_of_a_cluster_is_within_its_bounds(seed: int) -> None:
    """No schedule beats the longest task, the mean load or the driver; one core adds everything."""
    random = Random(seed)
    task = spark_model.Task
    trace = [
        spark_model.Job(
            random.random(),
            [
                [
                    task(random.random(), random.randrange(100))
                    for _ in range(random.randrange(1, 9))
                ]
                for _ in range(random.randrange(1, 4))
            ],
        )
        for _ in range(random.randrange(1, 5))
    ]
    stages = [tasks for job in trace for tasks in job.stages]
    driver = sum(job.driver for job in trace)
    whole = driver + sum(task.seconds for tasks in stages for task in tasks)
    assert spark_model.simulated(trace, 1, 1) == pytest.approx(whole)
    for executors, cores in ((1, 2), (3, 2), (50, 4)):
        without = spark_model.simulated(trace, executors, cores, network=float("inf"))
        least = sum(
            max(
                max(task.seconds for task in tasks),
                sum(task.seconds for task in tasks) / (executors * cores),
            )
            for tasks in stages
        )
        assert driver + least <= without + 1e-9
        assert without <= whole + 1e-9
        slow = spark_model.simulated(trace, executors, cores, network=10.0)
        assert slow >= without
        assert (slow > without) is (executors > 1 and any(t.fetched for s in stages for t in s))
    again = spark_model.from_json(spark_model.to_json(trace))
    assert spark_model.simulated(again, 3, 2) == spark_model.simulated(trace, 3, 2)
    more = spark_model.scaled(trace, 10)
    assert spark_model.simulated(more, 2, 2) >= spark_model.simulated(trace, 2, 2)


@pytest.mark.parametrize("seed", range(5))
def test_the_model_of_much_data(seed: int) -> None:
    """Repeated tasks are not scheduled one by one; a million times the data take no longer."""
    random = Random(seed)
    tasks = [spark_model.Task(random.random(), random.randrange(100)) for _ in range(7)]
    [more] = spark_model.scaled([spark_model.Job(0.0, [tasks])], 3_000)
    listed = replace(more, stages=[tasks * 3_000], factor=1.0)
    for executors, cores in ((1, 2), (4, 3)):
        expected = spark_model.simulated([listed], executors, cores, network=1e3)
        found = spark_model.simulated([more], executors, cores, network=1e3)
        assert found == pytest.approx(expected, rel=1e-3)
        [most] = spark_model.scaled([more], 1e6)
        whole = sum(t.seconds for t in tasks) * 3e9 / (executors * cores)
        assert spark_model.simulated([most], executors, cores) >= whole + most.driver


def test_losses_are_extracted_from_every_kind_of_row() -> None:
    saved: dict[str, list[Row]] = {
        "bf": [
            {"case": "d", "algorithm": name, "explicit_deleted": 9, "milliseconds": time}
            for name, time in (("auto", 3.0), ("bf", 2.0), ("dred", 1.0))
        ],
        "graphs": [
            {"case": "g", "engine": "columnar", "seconds": 2.0},
            {"case": "g", "engine": "columnar", "seconds": 1.05},
            {"case": "g", "engine": "duckdb", "seconds": 1.0},  # within the spread
            {"case": "h", "engine": "columnar", "seconds": 3.0},
            {"case": "h", "engine": "duckdb", "seconds": 1.0},
            {"case": "h", "engine": "wrong", "seconds": 0.1, "correct": False},
            {"case": "h", "engine": "souffle", "skipped": "not installed"},
        ],
    }
    found = [(loss.case, loss.faster, round(loss.factor, 2)) for loss in losses.losses(saved)]
    assert found == [("d, 9 deleted, by `auto`", "`dred`", 3.0), ("h", "duckdb", 3.0)]


def test_losses_to_systems_are_listed() -> None:
    saved: dict[str, list[Row]] = {
        "first-second": [
            {"case": "a", "system": "corollary", "cold_cpu_seconds": 0.9, "warm_cpu_seconds": 0.3},
            {"case": "a", "system": "x", "cold_cpu_seconds": 0.3, "warm_cpu_seconds": 0.3},
        ],
        "evolve": [
            {"stream": "s", "scale": 1, "system": "corollary", "total_seconds": 2.0},
            {"stream": "s", "scale": 1, "system": "corollary-bf", "total_seconds": 0.1},
            {"stream": "s", "scale": 1, "system": "clingo", "total_seconds": 1.0},
            {"stream": "s", "scale": 1, "system": "y", "total_seconds": 0.1, "correct": False},
        ],
    }
    found = [(loss.case, loss.faster, round(loss.factor, 2)) for loss in losses.losses(saved)]
    assert found == [("s, 1, all commits", "clingo", 2.0), ("a, cold", "x", 3.0)]


@pytest.mark.parametrize("path", page.PAGES, ids=lambda path: path.name)
def test_tables_and_figures_of_pages_are_those_of_saved_results(path: Path) -> None:
    text = path.read_text("utf-8")
    assert page.page(text) == text, "run python -m benchmarks.page"


def test_a_stale_figure_is_replaced() -> None:
    rows = {"dag": [{"engine": "a", "ms": 0.5, "n": 3}, {"engine": "b", "ms": 5.0}]}
    text = (
        "takes <!--= dag engine=a | ms / n -->9<!--/--> ms, <!--= dag | count() -->0<!--/--> rows"
    )
    expected = text.replace(">9<", ">0.167<").replace(">0<", ">2<")
    assert figures.filled(text, rows) == expected


@pytest.mark.parametrize("source", ["dag | ms", "dag engine=c | ms", "dag engine=b | n"])
def test_a_figure_needs_exactly_one_row(source: str) -> None:
    rows = {"dag": [{"engine": "a", "ms": 0.5, "n": 3}, {"engine": "b", "ms": 5.0}]}
    with pytest.raises(ValueError, match="rows match"):
        figures.figure(source, rows)


def test_regret_is_that_of_auto_over_the_best_other() -> None:
    program = Program.parse("p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- p(?x, ?y), e(?y, ?z) .")
    edges = np.array([[n, n + 1] for n in range(30)], np.uint32)
    tables = {Predicate("e"): edges}
    kept = {name: Maintained(program, tables, name) for name in ("rematerialize", "bf", "auto")}
    some = {Predicate("e"): edges[10:12]}
    rows = regret.compare(kept, lambda m: m.delete(some)[1], lambda m: m.insert(some)[1], 2)
    assert [row["first"] for row in rows] == [True, False]
    for row in rows:
        assert row["correct"]
        assert row["best_ms"] == min(row["ms"]["rematerialize"], row["ms"]["bf"])
        assert row["regret"] == row["ms"]["auto"] / row["best_ms"]
        assert row["counted"] == (row["best_ms"] >= regret.COUNTED_MS)
