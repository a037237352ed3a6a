"""The cases of `corollary bench fence`.

A group prepares its data in a separate process and returns a function that runs each of its cases
once and returns the CPU seconds of their steps. The steps are the same in every run, so the minimum
of each step over the runs is meaningful; the time of a case is the sum of these minima.
"""

from __future__ import annotations

import gc
import importlib.util
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import corollary as co
from benchmarks import (
    closing,
    dag,
    graphs,
    lubm_data,
    lubm_one,
    one_fact,
    ontology_histories,
    ontology_lubm,
    spark,
    store,
    tables,
)
from benchmarks.maintaining import Maintained, sample
from benchmarks.measure import timed, tree_cpu_seconds
from benchmarks.reference import Reference
from benchmarks.report import Row
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.reasoning.specialization import SpecializedReasoner

Steps = dict[str, list[float]]  # case -> CPU seconds of each step
Run = Callable[[], Steps]

_REFERENCES = 3  # runs of the reference work between two runs of a group
_ONE_FACT_STEPS = 200
_UPDATES = {"update-1": (1, 100), "update-1000": (1_000, 10)}  # facts per update, updates
_COMMITS = 10  # insertions in a run, each followed by a deletion
_EDGE = Predicate("edge")
_UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
_PERSONS = f"[?x, a, <{_UB}Person>]"


@dataclass(frozen=True)
class Setup:
    """The folders of a group, and the scale of its generated data."""

    folder: Path  # temporary files, shared by all processes of one benchmark run
    data: Path  # real data, always of full size; may be missing
    share: float  # of the full size

    def scaled(self, size: int) -> int:
        return max(1, round(size * self.share))


@dataclass(frozen=True)
class Group:
    """Cases that share their data and a process."""

    cases: tuple[str, ...]
    prepare: Callable[[Setup], Run]
    missing: Callable[[Path], str | None] = lambda data: None  # the reason to skip it
    runs: int = 5
    on_spark: bool = False


def measure(group: str, folder: str, data: str, percent: int) -> Row:
    """CPU seconds of each case of a group, and of the reference work between its runs."""
    run = GROUPS[group].prepare(Setup(Path(folder), Path(data), percent / 100))
    run()  # compiles, and builds indexes and caches
    runs: list[Steps] = []
    with Reference() as reference:
        references = [reference.run() for _ in range(_REFERENCES)]
        for _ in range(GROUPS[group].runs):
            gc.collect()
            runs.append(run())
            references += [reference.run() for _ in range(_REFERENCES)]
    cases = {name: least_sum([steps[name] for steps in runs]) for name in GROUPS[group].cases}
    return {"cases": cases, "reference": least_sum(references)}


def least_sum(runs: Iterable[Sequence[float]]) -> float:
    """Sum over the steps of the minimum over the runs.

    >>> least_sum([[3, 1], [2, 5]])
    3
    """
    minima: list[float] = [min(times) for times in zip(*runs, strict=True)]
    return sum(minima)


def _spent(action: Callable[[], object]) -> float:
    return timed(action)[1].cpu_seconds


# --- materialization ---


def closure_10m(setup: Setup) -> Run:
    """LUBM data under LUBM_L, reloaded for each run, so that each builds its own indexes."""
    close = _closure(lubm_one.rules(setup.data, "L"), _lubm(setup, 10_000_000))
    return lambda: {"closure-10m": [close()]}


def lubm_1m(setup: Setup) -> Run:
    """A tenth of that; and updates of it with the algorithm `auto`."""
    program, facts = lubm_one.rules(setup.data, "L"), _lubm(setup, 1_000_000)
    close = _closure(program, facts)
    maintained = Maintained(program, facts, "auto")
    rng = np.random.default_rng(7)
    samples = {
        name: [sample(rng, facts, changed) for _ in range(updates)]
        for name, (changed, updates) in _UPDATES.items()
    }

    def update(some: dict[Predicate, Ids]) -> list[float]:
        (_, deleted), deletion = timed(lambda: maintained.delete(some))
        (_, inserted), insertion = timed(lambda: maintained.insert(some))
        assert len(deleted.deleted) == len(inserted.inserted)
        return [deletion.cpu_seconds, insertion.cpu_seconds]

    def run() -> Steps:
        steps = {name: [s for some in each for s in update(some)] for name, each in samples.items()}
        return {"closure-1m": [min(close() for _ in range(5))]} | steps

    return run


def dag_r(setup: Setup) -> Run:
    """DAG-R by the linear rule, and by the module for the quadratic rule."""
    edges = {_EDGE: dag.random_dag(setup.scaled(100_000))[0]}
    linear = _closure(Program.parse(dag.LINEAR), edges)
    module = _closure(Program.parse(dag.QUADRATIC), edges, modules=True)
    return lambda: {"dag-linear": [linear()], "dag-module": [module()]}


def debian(setup: Setup) -> Run:
    """The closure of a release, and an update to the next release and back."""
    names: dict[str, int] = {}
    old, new = (
        {*map(tuple, graphs.read(setup.data / file, names).tolist())} for file in _DEBIAN_FILES
    )
    program = Program.parse(dag.LINEAR)
    edges, deleted, inserted = (
        {_EDGE: np.array(sorted(pairs), np.uint32)} for pairs in (old, old - new, new - old)
    )
    close = _closure(program, edges, modules=True)
    maintained = Maintained(program, edges, "auto")

    def run() -> Steps:
        forth = _spent(lambda: maintained.change(inserted, deleted))
        back = _spent(lambda: maintained.change(deleted, inserted))
        return {"debian-closure": [close()], "debian-update": [forth, back]}

    return run


def _lubm(setup: Setup, facts: int) -> dict[Predicate, Ids]:
    path = setup.folder / f"lubm-{facts}.npz"
    if not path.exists():
        tables.save(path, lubm_data.generate(setup.scaled(facts)))
    return tables.load(path)


def _closure(
    program: Program, facts: dict[Predicate, Ids], *, modules: bool = False
) -> Callable[[], float]:
    def close() -> float:
        return _spent(closing.Columnar(program, 1, modules, facts).run)

    return close


# --- one fact ---


def one_of_many(setup: Setup) -> Run:
    """Join one fact with a large relation, and insert one into it."""

    def each(operation: str) -> list[float]:
        large, prepare = one_fact.OPERATIONS[operation]
        bench = one_fact.Bench(setup.scaled(1_000_000), large)
        prepare(bench, bench.random(1))()  # builds the index
        return [_spent(prepare(bench, bench.random(1))) for _ in range(_ONE_FACT_STEPS)]

    return lambda: {
        "one-fact-join": each("join one edge") + each("join one path"),
        "one-fact-insert": each("insert one path"),
    }


# --- ontologies ---


def axioms(setup: Setup) -> Run:
    """LUBM(1) under OWL 2 RL: the closure, and the removal and addition of an axiom."""
    rules, explicit, engine = ontology_lubm.loaded(1)
    maintainer = SpecializedReasoner(rules, explicit, engine)
    axiom = engine.facts(encode(Program.parse(ontology_lubm.AXIOM).facts, engine.dictionary))
    nothing = engine.facts({})

    def run() -> Steps:
        closure = _spent(lambda: SpecializedReasoner(rules, explicit, engine))
        removal = _spent(lambda: maintainer.update(Changes(nothing, axiom)))
        addition = _spent(lambda: maintainer.update(Changes(axiom, nothing)))
        return {"axiom-closure": [closure], "axiom-change": [removal, addition]}

    return run


def history(name: str, setup: Setup) -> Run:
    """Replay a history under each rule set, except for its first commit, which is the load."""
    engine = ColumnarEngine(Dictionary())
    commits = ontology_histories.commits_of(name, setup.data / "updates", engine)
    replays = {
        _history_case(name, rules): ontology_histories.Replay.under(rules, engine, commits)
        for rules in ontology_histories.RULE_SETS
    }
    return lambda: {case: replay.seconds()[1:] for case, replay in replays.items()}


def _history_case(name: str, rules: str) -> str:
    return f"history-{name}-{rules}"


# --- stores, and Spark ---


def stored(setup: Setup) -> Run:
    """Open a store, and commit one fact to a copy, since commits slow down opening."""
    folder = setup.folder / "stored"
    if not folder.exists():
        folder.mkdir()
        store.build(str(folder), setup.scaled(5))
    copy = Path(tempfile.mkdtemp(dir=setup.folder)) / "store"
    shutil.copytree(folder / "store", copy)
    kb = co.KnowledgeBase.open(copy)

    def commit(change: str, number: int) -> float:
        def transaction() -> None:
            with kb.transaction() as tx:
                getattr(tx, change)(f"[<http://example.org/{number}>, a, <{_UB}FullProfessor>] .")

        return _spent(transaction)

    def run() -> Steps:
        opening = _spent(lambda: co.KnowledgeBase.open(folder / "store").count(_PERSONS))
        # Unlike the steps of other cases, commits differ from run to run: take the minimum.
        commits = [(commit("insert", n), commit("delete", n)) for n in range(_COMMITS)]
        return {"store-open": [opening], "store-commit": [*map(min, zip(*commits, strict=True))]}

    return run


def on_spark(setup: Setup) -> Run:
    """LUBM(10) under ρdf on two cores; includes the CPU time of Java and the Python workers."""
    from corollary.engines.spark.session import build_session
    from corollary.knowledge_base.distributed import materialize

    session = build_session("local[2]", config={"spark.sql.adaptive.enabled": "false"})
    dictionary = Dictionary()
    folder = Path(tempfile.mkdtemp(dir=setup.folder))
    frame = session.read.parquet(str(spark.written(setup.scaled(10), folder, dictionary))).cache()
    frame.count()
    rules = co.rules("rhodf")

    def run() -> Steps:
        started = tree_cpu_seconds()
        assert materialize(frame, rules, dictionary).count
        return {"spark-lubm-10": [tree_cpu_seconds() - started]}

    for _ in range(2):  # the Java compiler takes a few runs to settle
        run()
    return run


def _missing_files(names: Sequence[str], data: Path) -> str | None:
    absent = [name for name in names if not (data / name).exists()]
    return f"no {absent[0]} in {data}" if absent else None


def _missing_spark(data: Path) -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    return None if Path("/proc/self/stat").exists() else "no /proc to read CPU times from"


_DEBIAN_FILES = [graphs.GRAPHS[name][0] for name in ("Debian bookworm", "Debian trixie")]

GROUPS: dict[str, Group] = {
    "lubm-1m": Group(("closure-1m", *_UPDATES), lubm_1m, lubm_one.missing),
    "lubm-10m": Group(("closure-10m",), closure_10m, lubm_one.missing),
    "dag": Group(("dag-linear", "dag-module"), dag_r),
    "debian": Group(
        ("debian-closure", "debian-update"), debian, partial(_missing_files, _DEBIAN_FILES)
    ),
    "one-fact": Group(("one-fact-join", "one-fact-insert"), one_of_many),
    "axioms": Group(("axiom-closure", "axiom-change"), axioms),
    **{
        name: Group(
            tuple(_history_case(name, rules) for rules in ontology_histories.RULE_SETS),
            partial(history, name),
            partial(_missing_files, [f"updates/{name}.rdfp.gz"]),
            runs=3,
        )
        for name in ontology_histories.HISTORIES
    },
    "store": Group(("store-open", "store-commit"), stored),
    "spark": Group(("spark-lubm-10",), on_spark, _missing_spark, on_spark=True),
}
