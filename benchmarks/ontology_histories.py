"""Histories of real ontologies, replayed commit by commit, compared with starting over.

The histories are RDF Patches; each transaction is a commit. A commit is `AdaptiveReasoner.update`
over facts in memory; starting over is a materialization of the explicit facts after the commit,
also in memory. Times are CPU times of one thread, the minimum of `repeat` replays, after one that
loads compiled code. The first commit, which inserts everything, is not counted.

Starting over is measured at every tenth commit and the last one, which determine the mean. It is
also measured at each commit over a millisecond and at the slowest one, which may exceed the bound
for commits: 1.2 × starting over + 1 ms. At all these commits the facts are compared with those of
starting over, and at the end also with those that the columnar engine derives from the original
rules.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median

import corollary as co
from benchmarks.isolate import isolated
from benchmarks.measure import timed
from benchmarks.report import Options, Row
from corollary.algorithms.maintain import Maintainer
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.lang.program import Program
from corollary.rdf.formats import read_text
from corollary.reasoning.adaptive import AdaptiveReasoner

HISTORIES = ("plant-ontology", "sequence-ontology", "schemaorg-ttl", "brick-2019-2020")
RULE_SETS = ("rdfs", "owl-horst", "owl-rl")
_EVERY = 10  # commits: how often starting over is measured for its mean
_FACTOR, _SECONDS = 1.2, 1e-3  # bound of a commit: factor of starting over, and constant


def rows(options: Options) -> Iterator[Row]:
    """Each history under each rule set."""
    folder = options.data / "updates"
    for name in HISTORIES:
        for rules in RULE_SETS:
            case: Row = {"part": "history", "case": f"{rules}, {name}"}
            if not (folder / f"{name}.rdfp.gz").exists():
                yield case | {"skipped": f"no {name}.rdfp.gz in {folder}"}
                continue
            yield case | isolated(
                history,
                timeout=options.timeout,
                name=name,
                folder=str(folder),
                rules=rules,
                repeat=options.repeat,
            )


def history(name: str, folder: str, rules: str, repeat: int) -> Row:
    """The commits of a history under a rule set, and starting over."""
    engine = ColumnarEngine(Dictionary())
    commits = commits_of(name, Path(folder), engine)
    replay = Replay.under(rules, engine, commits)
    _, *replays = [replay.seconds() for _ in range(repeat + 1)]
    seconds = [min(times) for times in zip(*replays, strict=True)]
    again, correct = replay.rematerialized(_measured_commits(seconds), repeat)
    sample = [again[place] for place in _sampled_commits(len(commits))]
    counted = seconds[1:]
    worst = max(seconds[place] / (_FACTOR * again[place] + _SECONDS) for place in again)
    return {
        "facts": len(replay.facts),
        "commits": len(commits),
        "median_ms": median(counted) * 1e3,
        "worst_ms": max(counted) * 1e3,
        "total_ms": sum(counted) * 1e3,
        "rematerialize_ms": fmean(sample) * 1e3,
        "rematerialize_last_ms": sample[-1] * 1e3,
        "rematerialize_times": fmean(sample) * len(counted) / sum(counted),
        "worst_to_bound": worst,
        "bounded": worst <= 1,
        "correct": correct,
    }


def commits_of(name: str, folder: Path, engine: ColumnarEngine) -> list[Changes[ColumnarFacts]]:
    """The commits of a history."""
    commits = list(transactions(folder / f"{name}.rdfp.gz", engine))
    while commits and not len(commits[-1].inserted) and len(commits[-1].deleted) > 1000:
        commits.pop()  # the last one of Brick deletes everything
    return commits


def _sampled_commits(commits: int) -> list[int]:
    """Every tenth commit, and the last one.

    >>> _sampled_commits(25)
    [10, 20, 24]
    """
    return sorted({*range(_EVERY, commits, _EVERY), commits - 1})


def _measured_commits(seconds: Sequence[float]) -> list[int]:
    """The sampled commits, those that take longer than the bound's constant, and the slowest.

    >>> _measured_commits([9.0, 0.0001, 0.5, 0.0001])
    [2, 3]
    """
    places = range(1, len(seconds))
    slow = {place for place in places if seconds[place] > _SECONDS}
    slowest = max(places, key=seconds.__getitem__)
    return sorted({*_sampled_commits(len(seconds)), *slow, slowest})


@dataclass
class Replay:
    """The commits of a history over a reasoner that starts with axioms."""

    program: Program
    axioms: ColumnarFacts
    engine: ColumnarEngine
    commits: Sequence[Changes[ColumnarFacts]]
    facts: ColumnarFacts | tuple[()] = ()  # at the end

    @classmethod
    def under(
        cls, rules: str, engine: ColumnarEngine, commits: Sequence[Changes[ColumnarFacts]]
    ) -> Replay:
        """A replay under a rule set, starting with its axioms."""
        program = co.rules(rules)
        axioms = engine.facts(encode(program.facts, engine.dictionary))
        return cls(program.without_facts(), axioms, engine, commits)

    def seconds(self) -> list[float]:
        """CPU seconds of each commit."""
        maintainer = self._reasoner(self.axioms)
        return [
            timed(partial(maintainer.update, changes))[1].cpu_seconds for changes in self.commits
        ]

    def rematerialized(self, places: Sequence[int], repeat: int) -> tuple[dict[int, float], bool]:
        """Seconds to start over after these commits, and whether the facts are equal."""
        maintainer = self._reasoner(self.axioms)
        seconds: dict[int, float] = {}
        correct = True
        for place, changes in enumerate(self.commits):
            maintainer.update(changes)
            if place in places:
                start = partial(self._reasoner, maintainer.explicit)
                again, time = timed(start)
                others = (timed(start)[1] for _ in range(repeat - 1))
                seconds[place] = min(each.cpu_seconds for each in (time, *others))
                correct &= are_equal(maintainer.facts, again.facts)
        self.facts = maintainer.facts
        expected = Maintainer(self.program, maintainer.explicit, self.engine).facts
        return seconds, correct and are_equal(maintainer.facts, expected)

    def _reasoner(self, explicit: ColumnarFacts) -> AdaptiveReasoner[ColumnarFacts]:
        return AdaptiveReasoner(self.program, explicit, self.engine)


def are_equal(facts: ColumnarFacts, others: ColumnarFacts) -> bool:
    """Whether two sets of facts have the same content."""
    return len(facts) == len(others) == len(facts.intersection(others))


def transactions(path: Path, engine: ColumnarEngine) -> Iterator[Changes[ColumnarFacts]]:
    """The transactions of an RDF Patch."""
    lines: dict[str, list[str]] = {"A": [], "D": []}
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as patch:
        for line in patch:
            kind, _, rest = line.partition(" ")
            if kind in lines:
                lines[kind].append(rest)
            elif kind == "TC":
                yield Changes(_facts(lines["A"], engine), _facts(lines["D"], engine))
                lines = {"A": [], "D": []}


def _facts(lines: list[str], engine: ColumnarEngine) -> ColumnarFacts:
    text = "".join(lines)
    triples = read_text(text, engine.dictionary, format="n-triples", on_error="skip")
    return engine.facts(triples.tables(engine.dictionary))
