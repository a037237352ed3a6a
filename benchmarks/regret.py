"""The regret of `auto`: its time compared with that of the best other algorithm, row by row.

Each case is a program with data; each row is an update: a deletion of 100 facts up to a quarter of
all, its inverse, the removal of a rule, its inverse, or a commit of the history of an ontology. All
algorithms, rematerialization included, take turns in one process, so that they meet the same
machine; the time is the least CPU time of one thread. Rows whose best algorithm takes less than
5 ms are measured, but do not count: there constant costs decide.

An algorithm that has taken 20 times as long as the best one, and more than 0.2 s, is left out of
the larger updates of its case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import dag, lubm_data, lubm_one, ontology_histories
from benchmarks.generated import generated
from benchmarks.isolate import isolated
from benchmarks.maintaining import Maintained, Tables, sample
from benchmarks.measure import timed
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.generate import DATASETS
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Rule

ALGORITHMS = ("rematerialize", "bf", "dred", "fp", "bf-c", "dred-c", "auto")
SHARES = (0.0, 0.001, 0.01, 0.05, 0.1, 0.25)  # of E; 0 stands for 100 facts
BOUND, COUNTED_MS = 1.2, 5.0
_FEW = 100
_GIVE_UP, _GIVE_UP_MS = 20, 200.0
_RULES = 6  # rules that are removed and added again
_EVERY = 7  # commits of a history

# Facts that are derived from below a negation, and by rules with many constants.
WIDE = "".join(f"kind(?x, {n}) :- item(?x, ?y), tag(?y, {n}) . " for n in range(100)) + (
    "linked(?x, ?y) :- item(?x, ?y) . linked(?x, ?z) :- linked(?x, ?y), next(?y, ?z) . "
    "free(?x, ?n) :- tag(?y, ?n), item(?x, ?y), NOT banned(?x) . "
    "banned(?x) :- kind(?x, 3) . banned(?x) :- kind(?x, 4), NOT kind(?x, 5) ."
)


@dataclass(frozen=True)
class Case:
    """A program and its explicit facts at a scale."""

    load: Callable[[float, Path, Dictionary], tuple[Program, Mapping[Any, Any]]]
    factor: float = 1.0  # of the scale
    modules: bool = True


def _generated(name: str) -> Callable[[float, Path, Dictionary], tuple[Program, Tables]]:
    whole = DATASETS[name].whole
    return lambda scale, _, dictionary: generated(
        name, max(1, round(scale)) if whole else scale, dictionary
    )


def _lubm(scale: float, data: Path, _: Dictionary) -> tuple[Program, Tables]:
    return lubm_one.rules(data, "L"), lubm_data.generate(round(200_000 * scale))


def _graph(rules: str) -> Callable[[float, Path, Dictionary], tuple[Program, Tables]]:
    def load(scale: float, _: Path, __: Dictionary) -> tuple[Program, Tables]:
        edges = dag.random_dag(round(100_000 * scale))[0]
        return Program.parse(rules), {Predicate("edge"): edges}

    return load


def _wide(scale: float, _: Path, dictionary: Dictionary) -> tuple[Program, Tables]:
    rng = np.random.default_rng(3)
    number = round(20_000 * scale)
    pairs = (
        [f"item(i{x}, y{y})." for x, y in rng.integers(0, number, (2 * number, 2)).tolist()]
        + [f"tag(y{y}, {n})." for y, n in zip(*_columns(rng, number, 100), strict=True)]
        + [f"next(y{y}, y{y + 1})." for y in range(number) if y % 8]
    )
    program = Program.parse(WIDE + "".join(pairs))
    return program.without_facts(), encode(program.facts, dictionary)


def _columns(rng: np.random.Generator, number: int, tags: int) -> tuple[list[int], list[int]]:
    return rng.integers(0, number, number).tolist(), rng.integers(0, tags, number).tolist()


CASES = {
    "LUBM": Case(_lubm),
    "UOBM": Case(_generated("uobm")),
    "Claros": Case(_generated("claros"), 0.4),
    "Claros, no modules": Case(_generated("claros"), 0.2, modules=False),
    "SKOS": Case(_generated("skos"), 0.5),
    "DAG-R": Case(_graph(dag.QUADRATIC), 0.2),
    "DAG-R, linear": Case(_graph(dag.LINEAR), 0.2),
    "DAG-R, no modules": Case(_graph(dag.LINEAR), 0.02, modules=False),
    "tags": Case(_wide),
}


def run(options: Options) -> Iterator[Row]:
    """Deletions, insertions and rule changes of each case, then the histories."""
    for scale in options.scales:
        for name in CASES:
            case: Row = {"case": name, "scale": scale}
            if name == "LUBM" and (reason := lubm_one.missing(options.data)) is not None:
                yield case | {"skipped": reason}
                continue
            yield from _rows(case, measured, options, name=name, scale=scale)
    for name in ontology_histories.HISTORIES:
        case = {"case": name}
        if not (options.data / "updates" / f"{name}.rdfp.gz").exists():
            yield case | {"skipped": f"no {name}.rdfp.gz in {options.data / 'updates'}"}
            continue
        yield from _rows(case, history, options, name=name)


def _rows(
    case: Row, function: Callable[..., Row], options: Options, **arguments: object
) -> Iterator[Row]:
    found = isolated(
        function,
        timeout=options.timeout,
        repeat=options.repeat,
        data=str(options.data),
        **arguments,
    )
    if "failed" in found:
        yield case | found
    else:
        yield from (case | row for row in found["rows"])


def measured(name: str, scale: float, repeat: int, data: str) -> Row:
    """The updates of a case by all algorithms."""
    case, dictionary = CASES[name], Dictionary()
    program, tables = case.load(scale * case.factor, Path(data), dictionary)
    kept = {
        algorithm: Maintained(
            program, tables, algorithm, modules=case.modules, dictionary=dictionary
        )
        for algorithm in ALGORITHMS
    }
    explicit = sum(map(len, tables.values()))
    facts = len(kept["auto"].maintainer.facts)
    rows = []
    warm = sample(np.random.default_rng(0), tables, _FEW)
    compare(kept, partial(_delete, warm), partial(_insert, warm), repeat=2)
    active = dict(kept)
    for number in dict.fromkeys(max(_FEW, round(share * explicit)) for share in SHARES):
        some = sample(np.random.default_rng(1), tables, min(number, explicit))
        for row in compare(active, partial(_delete, some), partial(_insert, some), repeat):
            best = row["best_ms"]
            for algorithm, spent in row["ms"].items():
                if spent > max(_GIVE_UP_MS, _GIVE_UP * best) and algorithm != "auto":
                    active.pop(algorithm, None)
            kind = "delete" if row.pop("first") else "insert"
            rows.append({"update": f"{kind} {number:,} facts", "explicit": explicit} | row)
    chosen = program.rules[:: max(1, len(program.rules) // _RULES)]
    for place, rule in enumerate(chosen):
        for row in compare(kept, partial(_remove, rule), partial(_add, rule), repeat):
            kind = "remove" if row.pop("first") else "add"
            rows.append({"update": f"{kind} rule {place + 1}", "explicit": explicit} | row)
    return {"rows": [{"facts": facts} | row for row in rows]}


def _delete(some: Tables, kept: Maintained) -> Changes[Any]:
    return kept.delete(some)[1]


def _insert(some: Tables, kept: Maintained) -> Changes[Any]:
    return kept.insert(some)[1]


def _remove(rule: Rule, kept: Maintained) -> Changes[Any]:
    return kept.change_rules([], [rule])[1]


def _add(rule: Rule, kept: Maintained) -> Changes[Any]:
    return kept.change_rules([rule], [])[1]


def compare(
    kept: Mapping[str, Maintained],
    do: Callable[[Maintained], Changes[Any]],
    undo: Callable[[Maintained], Changes[Any]],
    repeat: int,
) -> list[Row]:
    """Times of an update and of its inverse by each algorithm, which take turns."""
    times: tuple[dict[str, list[float]], dict[str, list[float]]] = ({}, {})
    last: tuple[dict[str, Changes[Any]], dict[str, Changes[Any]]] = ({}, {})
    for turn in range(repeat):
        for algorithm, maintained in kept.items():
            if turn and _is_hopeless(algorithm, times):
                continue
            for way, action in enumerate((do, undo)):
                changes, time = timed(partial(action, maintained))
                times[way].setdefault(algorithm, []).append(time.cpu_seconds * 1e3)
                last[way][algorithm] = changes
    return [compared(times[way], last[way]) | {"first": way == 0} for way in (0, 1)]


def _is_hopeless(algorithm: str, times: tuple[dict[str, list[float]], ...]) -> bool:
    """Whether an algorithm need not be measured again, as it was much slower both ways."""
    return algorithm != "auto" and all(
        min(each[algorithm]) > 3 * min(map(min, each.values())) for each in times
    )


def compared(times: Mapping[str, list[float]], changes: Mapping[str, Changes[Any]]) -> Row:
    """The best algorithm of an update, and `auto` compared with it."""
    spent = {algorithm: min(each) for algorithm, each in times.items()}
    others = {algorithm: time for algorithm, time in spent.items() if algorithm != "auto"}
    best = min(others, key=others.__getitem__)
    sizes = {(len(each.inserted), len(each.deleted)) for each in changes.values()}
    statistics = changes["auto"].statistics
    counts = max(others[best], 0.0) >= COUNTED_MS
    regret = spent["auto"] / others[best]
    return {
        "best": best,
        "best_ms": others[best],
        "auto_ms": spent["auto"],
        "regret": regret,
        "counted": counts,
        "bounded": regret <= BOUND if counts else None,
        "reason": statistics.reason if statistics is not None else "",
        "ms": spent,
        "correct": len(sizes) == 1,
    }


def history(name: str, repeat: int, data: str) -> Row:
    """Some commits of a history under OWL 2 RL: `auto`, and starting over."""
    engine = ColumnarEngine(Dictionary())
    commits = ontology_histories.commits_of(name, Path(data) / "updates", engine)
    replay = ontology_histories.Replay.under("owl-rl", engine, commits)
    _, *replays = [replay.seconds() for _ in range(repeat + 1)]
    seconds = [min(times) for times in zip(*replays, strict=True)]
    slow = [place for place in range(1, len(commits)) if seconds[place] * 1e3 >= COUNTED_MS]
    places = sorted({*slow, *range(1, len(commits), _EVERY)})
    again, correct = replay.rematerialized(places, repeat)
    rows = []
    for place in places:
        spent = {"auto": seconds[place] * 1e3, "rematerialize": again[place] * 1e3}
        counts = spent["rematerialize"] >= COUNTED_MS
        regret = spent["auto"] / spent["rematerialize"]
        rows.append(
            {
                "update": f"commit {place + 1}",
                "best": "rematerialize",
                "best_ms": spent["rematerialize"],
                "auto_ms": spent["auto"],
                "regret": regret,
                "counted": counts,
                "bounded": regret <= BOUND if counts else None,
                "ms": spent,
                "correct": correct,
            }
        )
    return {"rows": rows}


BENCHMARK = Benchmark(
    "regret",
    "`auto` compared with the best algorithm, update by update",
    unit="times the data of each case",
    scales=(1,),
    small=(1,),
    run=run,
    views=(
        View(
            "Updates of which the best algorithm takes at least 5 ms",
            (
                "case",
                "update",
                "best",
                Column("best_ms", "ms"),
                Column("auto_ms", "auto: ms"),
                "regret",
                Column("bounded", "≤ 1.2"),
            ),
            where=(("counted", True),),
        ),
    ),
)
