"""owl:sameAs by rules and by representatives: cliques, merged and split, explicit and derived.

There are `scale` terms in classes of equal size. Each member has FACTS facts of its own, with a few
properties. Equalities between the first member of a class and the others are stated (`explicit`),
or all members are values of a functional property of one subject (`derived`). The updates merge two
classes and split them again, and remove one member from a class and add it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.isolate import isolated
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.algorithms.maintain import Maintainer
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, TRIPLE
from corollary.rdf import rules
from corollary.reasoning.representatives import RepresentativeReasoner

MEMBERS = (1, 2, 5, 20, 50)  # of a class
FACTS = 10  # of each member
PROPERTIES = 5
EQUALITY = ("rules", "rewrite")
RULES = ("eq-*", "owl-rl")
SAME_AS = Predicate(TRIPLE, IRI("http://www.w3.org/2002/07/owl#sameAs"))
_NAME = "http://example.org/"
_FUNCTIONAL = f"[<{_NAME}is>, a, owl:FunctionalProperty] ."


def run(options: Options) -> Iterator[Row]:
    """Each size of classes, by rules and by representatives."""
    for scale in options.scales:
        for rule_set in RULES:
            for kind in ("explicit", "derived"):
                for members in MEMBERS:
                    yield from _compared(options, scale, rule_set, kind, members)


def _compared(
    options: Options, scale: int, rule_set: str, kind: str, members: int
) -> Iterator[Row]:
    wanted: list[int] | None = None
    for equality in EQUALITY:
        case: Row = {"case": f"{rule_set}, {kind}", "scale": scale, "members": members}
        row = isolated(
            measured,
            timeout=options.timeout,
            equality=equality,
            rule_set=rule_set,
            derived=kind == "derived",
            scale=scale,
            members=members,
            repeat=options.repeat,
        )
        case["engine"] = equality
        if "failed" in row:
            yield case | row
            continue
        sizes = row.pop("sizes")
        wanted = wanted or sizes
        yield case | row | {"correct": wanted == sizes}


def program(rule_set: str) -> Program:
    """owl-rl, or its rules of equality with functional properties."""
    if rule_set == "owl-rl":
        return rules("owl-rl")
    names = ("eq-sym", "eq-trans", "eq-rep-s", "eq-rep-p", "eq-rep-o", "prp-fp")
    return Program.of(rule for rule in rules("owl-rl").rules if rule.name in names)


class Cliques:
    """Terms in classes, with their facts."""

    def __init__(self, scale: int, members: int, *, derived: bool, dictionary: Dictionary) -> None:
        self.members, self.derived = members, derived
        first = len(dictionary)
        count = max(scale // members, 2) * members
        dictionary.encode(IRI(f"{_NAME}t{number}") for number in range(count))
        self.terms = np.arange(first, first + count, dtype=np.uint32)
        self.classes = self.terms.reshape(-1, members)
        owners = dictionary.encode(IRI(f"{_NAME}o{n}") for n in range(len(self.classes)))
        objects = dictionary.encode(IRI(f"{_NAME}v{number}") for number in range(count))
        rng = np.random.default_rng(7)
        self.is_ = Predicate(TRIPLE, IRI(f"{_NAME}is"))
        self.tables: dict[Predicate, Ids] = {}
        for number in range(PROPERTIES):
            subjects = np.repeat(self.terms, FACTS // PROPERTIES)
            values = rng.choice(objects, len(subjects))
            predicate = Predicate(TRIPLE, IRI(f"{_NAME}p{number}"))
            self.tables[predicate] = np.stack([subjects, values], axis=1)
        self.owners = owners
        rows = [self.link(number, member) for number, member in self._links()]
        if rows:
            self.tables[self.is_ if derived else SAME_AS] = np.concatenate(rows)

    def _links(self) -> Iterator[tuple[int, int]]:
        first = 0 if self.derived else 1
        for number in range(len(self.classes)):
            yield from ((number, member) for member in range(first, self.members))

    def link(self, number: int, member: int) -> Ids:
        """The fact that makes a term a member of its class."""
        one = self.owners[number] if self.derived else self.classes[number][0]
        return np.array([[one, self.classes[number][member]]], np.uint32)

    def bridge(self, number: int) -> dict[Predicate, Ids]:
        """The fact that merges two classes."""
        two = self.classes[number + 1][0]
        one = self.owners[number] if self.derived else self.classes[number][0]
        return {self.is_ if self.derived else SAME_AS: np.array([[one, two]], np.uint32)}

    def last(self, number: int) -> dict[Predicate, Ids]:
        """The fact that makes the last term a member of a class."""
        return {self.is_ if self.derived else SAME_AS: self.link(number, self.members - 1)}


def measured(
    equality: str, rule_set: str, derived: bool, scale: int, members: int, repeat: int
) -> Row:
    """Facts stored, seconds of materialization, milliseconds of updates."""
    chosen = program(rule_set)
    for size in (20, scale):  # the first run compiles code
        row = _measured(equality, chosen, derived, size, members, repeat)
    return row


def _measured(
    equality: str, chosen: Program, derived: bool, scale: int, members: int, repeat: int
) -> Row:
    engine = ColumnarEngine(Dictionary())
    dictionary = engine.dictionary
    axioms = [*chosen.facts, *Program.parse(_FUNCTIONAL).facts]
    cliques = Cliques(scale, members, derived=derived, dictionary=dictionary)
    explicit = engine.facts({**cliques.tables}).union(engine.facts(encode(axioms, dictionary)))
    make: Any = RepresentativeReasoner if equality == "rewrite" else Maintainer
    started = time.perf_counter()
    kept = make(chosen.without_facts(), explicit, engine)
    seconds = time.perf_counter() - started
    full = kept.count() if equality == "rewrite" else len(kept.facts)
    stored = kept.stored if equality == "rewrite" else full
    sizes, times = [full], {"merge": 0.0, "split": 0.0, "leave": 0.0, "join": 0.0}
    for number in range(repeat):
        bridge = engine.facts(cliques.bridge(2 * number % max(len(cliques.classes) - 1, 1)))
        last = engine.facts(cliques.last(2 * number % len(cliques.classes)))
        empty = engine.facts({})
        for name, changes in (
            ("merge", Changes(bridge, empty)),
            ("split", Changes(empty, bridge)),
            ("leave", Changes(empty, last)),
            ("join", Changes(last, empty)),
        ):
            started = time.perf_counter()
            done = kept.update(changes)
            spent = 1e3 * (time.perf_counter() - started)
            times[name] = min(times[name] or spent, spent)
            sizes += [len(done.inserted), len(done.deleted)]
    return {
        "facts": full,
        "stored": stored,
        "seconds": seconds,
        **{f"{name}_ms": spent for name, spent in times.items()},
        "sizes": sizes,
    }


BENCHMARK = Benchmark(
    "equality",
    "owl:sameAs by rules and by representatives: cliques that merge and split",
    unit="terms in classes",
    scales=(1_000,),
    small=(200,),
    run=run,
    plots=(
        Plot("owl:sameAs: materialization", "case + members", "seconds", "engine", unit="seconds"),
    ),
    views=(
        View(
            "owl:sameAs by rules and by representatives",
            (
                "case",
                Column("members", "members of a class"),
                Column("engine", "equality"),
                "facts",
                "stored",
                "seconds",
                "merge_ms",
                "split_ms",
                "leave_ms",
                "join_ms",
                "correct",
            ),
        ),
    ),
)
