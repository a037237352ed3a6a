"""The benchmarks at a tiny scale: what they report is right. No time is checked."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import benchmarks
from benchmarks import __main__ as command
from benchmarks import (
    bf,
    closing,
    dag,
    datalog_peers,
    dynamite,
    equality,
    fence,
    fence_work,
    growing,
    hybrid,
    lubm_one,
    maintaining,
    modular,
    ontology_axioms,
    ontology_histories,
    owlrl_peer,
    page,
    peers,
    proofs,
    reasoners,
    rules,
    scale,
    scaling,
    updates,
    views,
)
from benchmarks.equal_rules.work import compared
from benchmarks.isolate import isolated
from benchmarks.measure import peak_bytes
from benchmarks.plots import Plot, draw
from benchmarks.report import DATA, Benchmark, Options, Row, merge, table
from benchmarks.views import Column, View
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import RDF, XSD
from tests.reached import closure

needs_data = pytest.mark.skipif(
    lubm_one.missing(DATA) is not None, reason=f"LUBM(1) is not here: {lubm_one.missing(DATA)}"
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Row]:
    """The rows of a benchmark that ends well."""
    assert command.main([*arguments, "--json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert list(report) == ["name", "machine", "commit", "rows"]
    assert {"cpu", "cores", "memory_bytes", "python"} <= report["machine"].keys()
    rows: list[Row] = report["rows"]
    assert not any(row.get("correct") is False for row in rows)
    assert not any("failed" in row for row in rows)
    return rows


@pytest.mark.parametrize(
    "name", [module.name for module in pkgutil.iter_modules(benchmarks.__path__, "benchmarks.")]
)
def test_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


# --- the command line ---


def test_lists_the_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in ("lubm", "dag", "graphs", "one_fact", "rules10k"))


def test_runs_all_at_their_small_scale(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(options: Options) -> Iterator[Row]:
        yield {"case": "a", "scales": options.scales, "correct": True}

    monkeypatch.setattr(
        command,
        "BENCHMARKS",
        {name: Benchmark(name, "", "", (5,), (1,), rows) for name in ("one", "two")},
    )
    assert [row["benchmark"] for row in run(capsys)] == ["one", "two"]
    assert [row["scales"] for row in run(capsys, "two")] == [[5]]
    assert [row["scales"] for row in run(capsys, "two", "--scale", "2k,3")] == [[2000, 3]]


def test_a_wrong_result_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(options: Options) -> Iterator[Row]:
        yield {"case": "a", "correct": False}

    monkeypatch.setattr(command, "BENCHMARKS", {"wrong": Benchmark("wrong", "", "", (), (), rows)})
    assert command.main(["wrong"]) == 1
    assert "NO" in capsys.readouterr().out


def test_rows_with_other_keys_begin_another_table() -> None:
    text = table([{"a": 1}, {"a": 2}, {"a": 3, "b": None}])
    assert text.splitlines() == ["a", "1", "2", "", "a  b", "3  -"]


ROWS: list[Row] = [
    {"case": "a", "n": 1, "by": "auto", "seconds": 0.5, "correct": True},
    {"case": "a", "n": 1, "by": "bf", "seconds": 2.0, "correct": True},
    {"case": "a", "n": 9, "by": "auto", "skipped": "not installed"},
]


def test_views_choose_columns_and_name_what_is_missing() -> None:
    view = View("times", ("n",), across="by", values=(Column("seconds", "ms", 1e3),))
    assert view.grid(ROWS) == [
        ["n", "auto", "bf"],
        ["1", "500", "2,000"],
        ["9", "not installed", ""],
    ]
    flat = View("times", ("by", Column("seconds", "s"), "correct"), where=(("n", (1, 9)),))
    assert flat.grid(ROWS)[-1] == ["auto", "", "not installed"]
    assert View("none", ("by", "seconds"), where=(("case", "b"),)).grid(ROWS) == []
    wrong = views.text([flat], [*ROWS, {"by": "dred", "correct": False}])
    assert "wrong result: by dred" in wrong


@pytest.mark.parametrize("name", command.BENCHMARKS)
def test_views_and_plots_speak_of_keys_that_there_are(name: str) -> None:
    """Of what was saved: a heading without a cell, or a plot without a point, is a mistake."""
    found = page.saved(name)
    if found is None:
        pytest.skip(f"nothing was saved of {name}")
    rows, benchmark = found["rows"], command.BENCHMARKS[name]
    assert [plot.title for plot in benchmark.plots if not plot.new and not plot.curves(rows)] == []
    for view in benchmark.views:
        grid = view.grid(rows)
        columns = dict(enumerate(zip(*grid, strict=True)))
        empty = [cells[0] for cells in columns.values() if not any(cells[1:])]
        assert set(empty) <= OPTIONAL, f"{view.title}: nothing under {empty}"


# What only some machines or sizes have: scaled times, what failed, a second series of a paper.
OPTIONAL = {"scaled from: s", "target", "correct", "souffle", "skew", "× ours", "read: s"}


def failing() -> Row:
    raise ValueError("that went wrong")


def sleeping() -> Row:
    import time

    time.sleep(60)
    return {}


def test_a_case_that_fails_or_takes_too_long() -> None:
    row = isolated(failing, timeout=60)
    assert row == {"correct": False, "failed": "exit status 1: ValueError: that went wrong"}
    assert isolated(sleeping, timeout=0.5) == {"failed": "stopped after 0.5 s"}


def test_memory_is_that_of_the_process_alone() -> None:
    held = np.ones(40_000_000)  # 320 MB
    assert peak_bytes() > held.nbytes > isolated(remembering, timeout=60)["peak"]


def remembering() -> Row:
    return {"peak": peak_bytes()}


# --- the data ---


# --- the benchmarks ---

MEASURED = {"seconds", "cpu_seconds", "explicit", "facts", "derived", "derived_per_second",
            "seconds_per_fact", "peak_bytes", "bytes_per_fact", "correct"}  # fmt: skip


@needs_data
@pytest.mark.long
def test_lubm(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(capsys, "lubm", "--scale", "7k", "--repeat", "1")
    assert [row["facts"] for row in rows[:2]] == [137_931, 251_651]
    assert rows[2]["case"] == "proportions to LUBM(1)"
    closures = {
        (row["engine"], row.get("threads")): row for row in rows if row["case"] == "closure"
    }
    assert list(closures)[:3] == [("columnar", 1), ("columnar", 2), ("duckdb rounds", 1)]
    for row in list(closures.values())[:3]:
        assert row.keys() >= MEASURED
        assert row["facts"] == row["explicit"] + row["derived"]
    assert [row.get("correct") for row in closures.values()][:3] == [None, True, True]
    assert closures["duckdb rounds", 1]["speedup"] > 0
    last = list(closures.values())[3]
    assert last["engine"] == "reasonable"
    assert "skipped" in last or (last["derived"] > 0 and last["speedup"] > 0)


def instances(edges: int) -> list[int]:
    """How many instances the two programs have; those of their first rule are the edges."""
    graph, _ = dag.random_dag(edges)
    known = closure(graph.tolist())
    into, out = Counter(b for _, b in known), Counter(a for a, _ in known)
    linear = sum(into[a] for a, _ in graph.tolist())
    return [len(graph) + linear, len(graph) + sum(into[node] * out[node] for node in into)]


@pytest.mark.slow
def test_dag(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(capsys, "dag", "--scale", "500", "--repeat", "1")
    engines = [(row["engine"], row["rule"]) for row in rows]
    assert engines == [
        ("columnar", "linear"),
        ("duckdb recursive", "linear"),
        ("souffle", "linear"),
        ("columnar", "quadratic"),
        ("columnar", "transitive module"),
    ]
    souffle = rows.pop(2)
    for row in rows:
        assert row.keys() >= MEASURED
        assert row["derived"] == row["pairs"]
    assert [rows[0]["instances"], rows[2]["instances"]] == instances(500)
    assert rows[3]["instances"] == rows[0]["instances"]
    assert rows[0]["instances_per_second"] > 0
    assert "skipped" in souffle or souffle["correct"]


@pytest.mark.long
def test_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(capsys, "graphs", "--repeat", "1")
    if all("skipped" in row for row in rows):
        pytest.skip(rows[0]["skipped"])
    pairs = [row["derived"] for row in rows[:-1]]
    assert pairs == [3_854_089] * 4 + [3_926_255] * 4 + [49_633] * 4
    assert rows[-1] == {
        "case": "GO, every pair",
        "facts": 49_633,
        "expected": 49_633,
        "correct": True,
    }


@pytest.mark.long
def test_one_fact(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["case"]: row for row in run(capsys, "one_fact", "--scale", "20k")}
    for row in rows.values():
        assert row["facts"] == 20_000
        assert row["repetitions"] == 1_000
        assert 0 < row["median_microseconds"] <= row["max_microseconds"]
    # Each node has about ten facts, so that a new one joins with about ten.
    assert 5_000 < rows["join one edge"]["derived"] < 15_000
    assert 5_000 < rows["join one path"]["derived"] < 15_000
    assert 900 < rows["insert one path"]["inserted"] <= 1_001
    assert rows["insert one path"]["inserted"] == rows["insert one key"]["inserted"]


def test_rules10k(capsys: pytest.CaptureFixture[str]) -> None:
    [row] = run(capsys, "rules10k", "--scale", "305", "--repeat", "1")
    assert row["rules"] == 305
    assert 1 < row["strata"] < 305


@needs_data
@pytest.mark.long
def test_peers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All but Spark, which has tests of its own; what is not installed is told of."""
    monkeypatch.setattr(reasoners, "SUBSET", 100)
    monkeypatch.setattr(peers, "FACTS", 7_000)
    monkeypatch.setattr(peers, "EDGES", 500)
    monkeypatch.setattr(peers, "_on_spark", lambda scale, options: iter(()))
    rows = run(capsys, "peers", "--scale", "1", "--repeat", "1")
    works = list(dict.fromkeys(row["work"] for row in rows))
    assert len(works) == 11
    for row in rows:
        if work_updates := row["work"].startswith(("delete", "remove")):
            ours = row["engine"] == "corollary"
            assert row.get("does") == ("updates" if ours else "starts over"), row
        assert work_updates or row.get("does") is None
    for work in works:
        ours, *others = (row for row in rows if row["work"] == work)
        assert (ours["engine"], ours["times"]) == ("corollary", 1)
        assert others
        for row in others:
            assert "skipped" in row or row["times"] > 0
            assert (
                row.get("correct") is not None
                or row["engine"] in ("reasonable", "owlrl")
                or ("skipped" in row)
            )
    assert {row["engine"] for row in rows} >= {"reasonable", "owlrl", "maplib", "clingo", "jena"}


@pytest.mark.long
def test_modular(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modular, "PAPER", {"DAG-R": modular.PAPER["DAG-R"]})
    rows = run(capsys, "modular", "--scale", "1", "--repeat", "1")
    cases = {row["way"]: row for row in rows if row["case"] == "DAG-R"}
    assert {way: row["runs"] for way, row in cases.items()} == {
        "dred-c with modules": "diff of the module alone",
        "dred-c with modules, one rule more": "Algorithm 3",
        "dred-c without": "no modules",
        "auto with modules": "diff of the module alone",
        "auto without": "no modules",
    }
    assert len({row["hash"] for row in cases.values()}) == 1


@needs_data
@pytest.mark.long
def test_scale(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to where memory ends: the row says what a person sees."""
    monkeypatch.setattr(scale, "LIMIT", "100M")
    rows = run(capsys, "scale", "--scale", "1,2")
    assert [row["case"] for row in rows] == ["generate", "build"], "larger sizes are left out"
    assert re.match("E406: .*--engine spark", rows[1]["ends with"])


@pytest.mark.long
def test_scale_of_one_university(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["case"]: row for row in run(capsys, "scale", "--scale", "1")}
    assert not any("ends with" in row for row in rows.values())
    whole = rows["build, all of it"]
    assert (whole["explicit"], whole["facts"]) == (101_574 + 218, rows["store"]["facts"])
    assert 0 < rows["store"]["bytes_per_fact_on_disk"] < scale.RDFOX_BYTES < whole["bytes_per_fact"]
    assert [rows[f"{flag} {n}"]["correct"] for n in (1, 100) for flag in ("insert", "delete")] == [
        True
    ] * 4


@pytest.mark.long
def test_scaling(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "FACTS", 7_000)
    monkeypatch.setattr(scaling, "MASTERS", ())  # `tests/engines/spark` has the cluster
    rows = run(capsys, "scaling", "--scale", "1,2", "--repeat", "1")
    closures = [row for row in rows if row["case"] == "LUBM_L in process"]
    assert [(row["scale"], row["threads"]) for row in closures] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert [row["growth"] for row in closures[:2]] == [1, 1]
    assert closures[0]["gain"] == 1
    assert closures[3]["gain"] == closures[2]["seconds"] / closures[3]["seconds"]
    assert all(row["correct"] for row in rows)


@needs_data
@pytest.mark.long
def test_updates(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "ALGORITHMS", ("auto", "dred-c"))
    rows = run(capsys, "updates", "--scale", "7k")
    assert [(row["algorithm"], row["changed"]) for row in rows] == [
        ("auto", 1), ("auto", 1000), ("dred-c", 1), ("dred-c", 1000)
    ]  # fmt: skip
    for row in rows:
        assert row["correct"]
        assert 0 < row["delete_ms"] <= row["delete_ms_max"]
        assert row["deleted"] > 0.9 * row["changed"]


@needs_data
@pytest.mark.long
def test_growing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "ALGORITHMS", ("rematerialize", "bf", "auto"))
    rows = run(capsys, "growing", "--scale", "7k", "--repeat", "1")
    curves = [row for row in rows if row["case"] == "deletion"]
    assert len(curves) == 3 * len(growing.SHARES)
    assert all(row["correct"] and row["deleted"] >= row["explicit_deleted"] for row in curves)
    last = rows[-1]
    assert last["best"] in ("rematerialize", "bf")
    assert last["auto_to_best"] == last["auto_milliseconds"] / last["best_milliseconds"]


@pytest.mark.long
def test_proofs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "ALGORITHMS", ("dred", "bf"))
    rows = {(r["case"], r["algorithm"]): r for r in run(capsys, "proofs", "--scale", "20")}
    for case in ("clique stays", "clique splits"):
        assert rows[case, "dred"]["DR2"] > 10 * rows["clique stays", "bf"]["derivations"]
    assert rows["clique splits", "bf"]["deleted"] == 200
    assert rows["chain", "dred"]["derivations_per_constant"] == 2
    assert rows["chain, one stratum", "dred"]["derivations_per_constant"] == 400
    assert rows["chain, one stratum", "bf"]["derivations_per_constant"] == 2


@needs_data
@pytest.mark.long
def test_rules_that_come_and_go(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "ALGORITHMS", ("rematerialize", "bf"))
    rows = run(capsys, "rules", "--scale", "7k", "--repeat", "1")
    examples, rows = rows[:3], rows[3:]
    # U of the paper's Table 1 beside the edge: ef bf af eg eh bg bh ag ah
    assert [row["overdeleted"] for row in examples[:2]] == [9, 9]
    assert [row["facts"][:2] for row in rows[:2]] == [[137_931, 251_651]] * 2
    assert rows[0]["remove_speedup"] == 1


@needs_data
@pytest.mark.long
def test_bf(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bf, "ALGORITHMS", ("dred", "bf"))
    monkeypatch.setattr(bf, "PAPER", {"Claros-L": bf.PAPER["Claros-L"]})
    monkeypatch.setattr(bf, "_SHARES", (0.02,))
    rows = run(capsys, "bf", "--scale", "1", "--repeat", "1")
    [point] = [row for row in rows if "as fast as" in row["case"]]
    assert point["explicit_deleted"] == round(0.02 * point["explicit"])
    ours = [row for row in rows if "algorithm" in row]
    assert all(row["correct"] for row in ours)
    for algorithm in ("dred", "bf"):
        sizes = [row["explicit_deleted"] for row in ours if row["algorithm"] == algorithm]
        assert sizes == bf.sizes_up_to(point["explicit_deleted"])
    hashes = {(row["explicit_deleted"], row["hash"]) for row in ours}
    assert len(hashes) == len(ours) / 2, "another state at each step, the same by both algorithms"
    assert len([row for row in rows if row["case"] == "Claros-L in the paper"]) == 6


@pytest.mark.long
def test_dynamite(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamite, "ALGORITHMS", ("auto", "counting"))
    rows = run(capsys, "dynamite", "--scale", "1", "--repeat", "1")
    updates = [row for row in rows if row["case"] == "updates"]
    assert [row["update"] for row in updates] == [1, 2, 3, 4, 5, 6] * 2
    assert all(row["correct"] for row in updates)
    assert all(row["add_file_milliseconds"] >= row["add_milliseconds"] for row in updates)
    assert len({row["hash_added"] for row in updates}) == 6
    counting = {row["update"]: row for row in updates if row["algorithm"] == "counting"}
    assert counting[4]["inserted"] > 1, "an added rule has consequences"
    assert len([row for row in rows if row["case"] == "updates in the paper"]) == 6


def test_an_update_that_does_nothing_does_not_pass() -> None:
    """The count is restored by an insertion after it; the hash in between is not."""
    agreement = maintaining.Agreement()
    edge = Predicate("edge")
    rows = np.array([[1, 2], [2, 3]], np.uint32)
    for algorithm in ("bf", "dred"):
        kept = maintaining.Maintained(Program.parse(modular.LINEAR), {edge: rows}, algorithm)
        before = kept.digest()
        kept.delete({edge: rows[:1]})
        assert kept.digest() == kept.scratch_digest() != before
        assert agreement.holds("deleted", kept.digest())
        kept.insert({edge: rows[:1]})
        assert kept.digest() == before
    assert not agreement.holds("deleted", before)


@pytest.mark.parametrize(
    ("outside", "runs"), [(False, {"diff of the module alone"}), (True, {"Algorithm 3"})]
)
def test_names_what_updates_a_module(outside: bool, runs: set[str]) -> None:
    rules = modular.TRANSITIVE + (modular.OUTSIDE["DAG-R"] if outside else "")
    rows = np.array([[at, at + 1] for at in range(5, 90)], np.uint32)
    kept = maintaining.Maintained(Program.parse(rules), {Predicate("r"): rows}, "dred-c")
    with maintaining.recorded_algorithms() as found:
        kept.delete({Predicate("r"): rows[40:41]})
    assert found == runs
    assert kept.digest() == kept.scratch_digest()


def test_saved_results(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert (
        command.main(["rules10k", "--scale", "10", "--repeat", "1", "--save", str(tmp_path)]) == 0
    )
    saved = json.loads((tmp_path / "rules10k.json").read_text(encoding="utf-8"))
    assert saved["command"].startswith("corollary bench rules10k --scale 10")
    assert saved["rows"][0]["rules"] == 10
    assert (tmp_path / "rules10k.txt").read_text(encoding="utf-8").startswith("$ corollary bench")


# --- budgets ---


def fence_cases(monkeypatch: pytest.MonkeyPatch, *groups: str) -> None:
    for module in (fence, fence_work):
        monkeypatch.setattr(module, "GROUPS", {name: fence_work.GROUPS[name] for name in groups})


def test_saves_and_checks_budgets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fence_cases(monkeypatch, "dag", "lubm-1m")
    tiny = ["fence", "--scale", "1", "--repeat", "1", "--data", str(tmp_path)]
    assert command.main([*tiny, "--save", str(tmp_path)]) == 0
    path = tmp_path / "fence.json"
    saved = json.loads(path.read_text("utf-8"))
    linear, module, *skipped = saved["rows"]
    assert [linear["case"], module["case"]] == ["dag-linear", "dag-module"]
    assert linear["budget"] == pytest.approx(linear["cpu_ms"] / linear["reference_ms"])
    assert linear["tolerance"] == fence.TOLERANCE
    assert [row["case"] for row in skipped] == ["closure-1m", "update-1", "update-1000"]
    assert all("skipped" in row for row in skipped)

    linear["tolerance"], module["budget"] = 1e6, 1e-9
    path.write_text(json.dumps(saved), "utf-8")
    capsys.readouterr()
    assert command.main([*tiny, "--check", str(tmp_path)]) == 1
    exceeded = capsys.readouterr().out.partition("Exceeded budgets")[2]
    assert "dag-module" in exceeded
    assert "dag-linear" not in exceeded
    assert command.main([*tiny, "--check", str(tmp_path), "--only", "dag-linear"]) == 0


def test_saving_some_budgets_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "fence.json"
    path.write_text(json.dumps({"rows": [{"case": "a", "n": 1}, {"case": "b", "n": 1}]}), "utf-8")
    rows: list[Row] = [
        {"case": "a", "n": 2},
        {"case": "b", "skipped": "no data"},
        {"case": "c", "n": 3},
    ]
    assert [row["n"] for row in merge(rows, path)] == [2, 1, 3]


def test_a_check_without_budgets_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for arguments in (
        ["fence", "--check", str(tmp_path)],
        ["fence", "--only", "unknown"],
        ["dag", "--check"],
    ):
        with pytest.raises(SystemExit) as stopped:
            command.main(arguments)
        assert stopped.value.code == 2
        assert "error: " in capsys.readouterr().err


@pytest.mark.long
def test_work_of_the_budgets(tmp_path: Path) -> None:
    """Every group that needs no Spark returns a positive time for each of its cases."""
    for name, group in fence_work.GROUPS.items():
        if group.on_spark or group.missing(DATA) is not None:
            continue
        run_cases = group.prepare(fence_work.Setup(tmp_path, DATA, 0.01))
        steps = run_cases()
        assert tuple(steps) == group.cases, name
        assert all(min(seconds) >= 0 < sum(seconds) for seconds in steps.values())


@pytest.mark.spark
@pytest.mark.long
def test_work_of_the_budgets_on_spark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fence_cases(monkeypatch, "spark")
    [row] = run(capsys, "fence", "--scale", "1", "--repeat", "1")
    assert row["case"] == "spark-lubm-10"
    assert row["budget"] > 0


def test_plots(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"case": "a", "size": size, "engine": engine, "seconds": size / 7}
        for size in (1, 10)
        for engine in ("x", "y")
    ]
    lines = Plot("lines", "size", "seconds", "engine", kind="lines")
    bars = Plot("bars", "case + size", "seconds", "engine", where=(("engine", "x"),))
    assert bars.curves(rows) == {"x": [("a, 1", 1 / 7), ("a, 10", 10 / 7)]}
    for name in ("one.svg", "two.svg", "three.png"):
        assert draw([lines, bars], rows, tmp_path / name)
    assert (tmp_path / "one.svg").stat().st_size > 1_000
    assert not draw([lines], [{"case": "skipped"}], tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


@pytest.mark.long
def test_equality(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equality, "MEMBERS", (1, 4))
    rows = run(capsys, "equality", "--scale", "40", "--repeat", "2")
    assert len(rows) == 16
    for row in rows:
        assert row["correct"]
        assert row["stored"] <= row["facts"]
    by_rules, by_representatives = rows[2:4]
    assert by_representatives["stored"] < by_rules["stored"] / 3


@needs_data
@pytest.mark.long
def test_ontology(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One history, a tiny ontology and its chain, GO, LUBM(1)."""
    monkeypatch.setattr(ontology_histories, "HISTORIES", ("brick-2019-2020",))
    monkeypatch.setattr(ontology_histories, "RULE_SETS", ("rdfs",))
    monkeypatch.setattr(ontology_axioms, "CHAIN", 100)
    rows = run(capsys, "ontology", "--scale", "100", "--repeat", "1")
    history, tree, chain, *go, lubm = rows
    assert [row["part"] for row in rows] == ["history", *["generated"] * 2, "go", "go", "lubm"]
    assert (history["commits"], history["facts"]) == (28, 44_987)
    assert history["correct"]
    assert history["bounded"] == (history["worst_to_bound"] <= 1)
    assert 0 < history["median_ms"] <= history["worst_ms"] <= history["total_ms"]
    assert chain["instances"] > tree["instances"] > tree["facts"]
    assert [row["pairs"] for row in go] == [49_633] * 2
    assert all(row["correct"] for row in (*go, lubm))


def test_an_ontology_that_is_too_large_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {
        "stopped after 2 s": "takes too long: stopped after 2 s",
        "exit status -9: no message": "does not fit into memory",
        "exit status 1: MemoryError": "does not fit into memory",
        "exit status 1: KeyError": None,
    }
    for failure, reason in reasons.items():
        monkeypatch.setattr(
            ontology_axioms, "isolated", lambda *_, failure=failure, **__: {"failed": failure}
        )
        row, _ = ontology_axioms.generated_rows(Options([10], 1, 2.0, DATA))
        assert row.get("skipped") == reason
        assert ("failed" in row) == (reason is None)


@needs_data
def test_rdf_load(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(capsys, "rdf_load", "--scale", "200k", "--repeat", "1")
    assert [(row["engine"], row["threads"]) for row in rows] == [
        ("corollary", 1), ("corollary", 2), ("pyoxigraph + dict", 1)
    ]  # fmt: skip
    for row in rows:
        assert row["correct"]
        assert row["statements"] == row["distinct"] == 2 * 100_543


@pytest.mark.long
def test_hybrid(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(capsys, "hybrid", "--scale", "1", "--repeat", "1")
    rules = [row for row in rows if row["case"] == "rules"]
    assert rules
    assert all(row["rules"] > 0 for row in rules)
    closure, *others = [row for row in rows if row["case"] != "rules"]
    assert closure["correct"]
    assert closure["derived"] < closure["full_derived"] / 100
    patterns = {row["pattern"]: row for row in others if row["case"] == "pattern"}
    assert patterns.keys() == hybrid.PATTERNS.keys()
    for name, row in patterns.items():
        assert row["correct"]
        if name in "1235":  # the paper's Table 6 has these, with 2 to 4 times fewer leaves
            paper = row["paper_leaves_without"] / row["paper_leaves"]
            assert row["leaves_without"] / row["leaves"] >= paper
    assert [row["pattern"] for row in others if row["case"] == "overhead"] == list(patterns)


def test_counts_that_differ_are_not_correct() -> None:
    row = {"derived": 2, "counts": {"path": 2}}
    assert closing.checked(row, {"path": 2})["correct"]
    assert not closing.checked(row, {"path": 3})["correct"]
    assert closing.shown(closing.checked(row, None)) == {"derived": 2, "correct": None}


def test_a_peer_that_is_absent_or_fails_has_a_row() -> None:
    row = closing.peer("other", failing, "not installed", {}, timeout=60)
    assert row == {"engine": "other", "skipped": "not installed"}
    row = closing.peer("other", failing, None, {}, timeout=60)
    assert row["engine"] == "other"
    assert "that went wrong" in row["failed"]


def test_store(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(capsys, "store", "--scale", "1")
    assert len(rows) == 6
    assert not any("failed" in row for row in rows)
    facts = {row["facts"] for row in rows if "facts" in row}
    assert len(facts) == 1
    [one] = [row for row in rows if "median_bytes" in row]
    assert one["correct"]
    assert one["max_bytes"] < 50_000  # kilobytes, not the store


@needs_data
def test_sparql(capsys: pytest.CaptureFixture[str]) -> None:
    *queries, total = run(capsys, "sparql", "--scale", "1", "--repeat", "1")
    assert len(queries) == 14
    assert all(row["correct"] and row["answers"] for row in queries)
    assert total["correct"]
    assert total["triples"] > 150_000


def test_peers_have_the_same_rules(tmp_path: Path) -> None:
    path = tmp_path / "triples.nt"
    below = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    path.write_text(f"<urn:x> <{RDF}type> <urn:a> .\n<urn:a> {below} <urn:b> .\n")
    rows = list(datalog_peers.rows("tiny", path, tmp_path, Options([], 1)))
    engines = ["corollary", "egglog", "clingo", "nemo", "souffle", "reasonable"]
    assert [row["engine"] for row in rows] == engines * 3
    assert (rows[0]["rules"], rows[0]["left_out"], rows[0]["facts"]) == (6, 0, 3)
    for row in rows:
        assert row["engine"] == "corollary" or "skipped" in row or row["correct"]
    found = compared(np.zeros((1, 3), np.uint32), tmp_path / "rhodf.datalog")
    assert (found["facts"], found["correct"]) == (1, False)


def test_closures_that_differ_without_a_reason_are_not_correct(tmp_path: Path) -> None:
    """A literal may be a subject, and have spaces as an object too."""
    type_, integer = f"<{RDF}type>", f"<{XSD}integer>"
    common = '<urn:a> <urn:p> "x y" .\n"7 \\"" <urn:same> "7 \\""@en .\n'
    ours, theirs = tmp_path / "ours.nt", tmp_path / "theirs.nt"
    ours.write_text(common + f'"7"^^{integer} {type_} <{XSD}long> .\n')
    theirs.write_text(common)
    found = reasoners.differences(ours, theirs, owlrl_peer.explained)
    assert found["correct"]
    assert list(found["differ"].values()) == [1]
    theirs.write_text(common + "<urn:a> <urn:p> <urn:c> .\n")
    found = reasoners.differences(ours, theirs, owlrl_peer.explained)
    assert not found["correct"]
    assert found["differ"]["without a reason"] == 1
