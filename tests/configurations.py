"""Histories of triples and rules, replayed by knowledge bases in every configuration.

A history is a program, first triples and changes. Whatever the algorithm, modules, specialization,
equality, mode, threads and thresholds: after every change the knowledge base holds what follows
from scratch, by the plainest settings, and tells by what that differs from before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from random import Random
from typing import Any

from corollary import KnowledgeBase
from corollary.algorithms.maintain import ALGORITHMS, Maintainer
from corollary.algorithms.reasoner import Options
from corollary.core.terms import text_of
from corollary.engines.columnar.budget import resident_memory
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, Atom, Rule
from corollary.rdf.equality import NEEDED
from corollary.testing import Crossings, draw, recorded_crossings, thresholds

Triple = tuple[str, str, str]  # terms as N-Triples writes them
EVERYTHING = "[?s, ?p, ?o]"
LIMIT = 1 << 30  # more bytes: where all terms are equal, everything is related to everything


@dataclass(frozen=True)
class Change:
    """Triples to delete and to insert (which wins), rules to remove and to add."""

    inserted: frozenset[Triple] = frozenset()
    deleted: frozenset[Triple] = frozenset()
    added: tuple[Rule, ...] = ()
    removed: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class State:
    """The rules and the explicit triples after a change."""

    program: Program
    explicit: frozenset[Triple]

    @cached_property
    def triples(self) -> frozenset[Triple]:
        """All triples that follow, from scratch and by the plainest settings."""
        kb = KnowledgeBase(
            self.program,
            algorithm="rematerialize",
            modules=False,
            specialize=False,
            limit_memory=resident_memory() + LIMIT,
        )
        with kb.transaction() as tx:
            tx.insert(as_text(self.explicit))
        return triples_of(kb)

    def by_reference(self) -> frozenset[Triple]:
        """The same by the reference evaluator, which shares no evaluation code with it."""
        facts = Program.parse("".join(f"[{s}, {p}, {o}] ." for s, p, o in self.explicit)).facts
        found = reference.materialize(self.program, facts)
        return frozenset(as_triple(fact) for fact in found if fact.relation == TRIPLE)


@dataclass(frozen=True)
class History:
    """A program, first triples, and changes of both."""

    name: str
    program: Program
    first: frozenset[Triple]
    changes: tuple[Change, ...]

    @cached_property
    def states(self) -> tuple[State, ...]:
        """The state at first and after every change."""
        state = State(self.program, self.first)
        found = [state]
        for change in self.changes:
            program = state.program.removed(*change.removed).added(*change.added)
            explicit = (state.explicit - change.deleted) | change.inserted
            state = State(program, explicit)
            found.append(state)
        return tuple(found)

    def __str__(self) -> str:
        lines = [f"history {self.name}", str(self.program), as_text(sorted(self.first))]
        for number, change in enumerate(self.changes, 1):
            lines.append(f"# change {number}")
            lines += [f"- {' '.join(triple)} ." for triple in sorted(change.deleted)]
            lines += [f"+ {' '.join(triple)} ." for triple in sorted(change.inserted)]
            lines += [f"- {rule}" for rule in change.removed]
            lines += [f"+ {rule}" for rule in change.added]
        return "\n".join(lines)


@dataclass(frozen=True)
class Configuration:
    """How a knowledge base derives; `limits` is a seed of thresholds, None for the defaults.

    With `resumes`, a new reasoner begins with the known facts before each change, as it does when
    a store is opened.
    """

    algorithm: str = "auto"
    modules: bool = True
    specialize: bool | None = None
    equality: str = "rules"
    mode: str = "materialized"
    threads: int = 1
    resumes: bool = False
    limits: int | None = None

    def options(self) -> dict[str, Any]:
        own = ("limits", "resumes")
        return {name: value for name, value in vars(self).items() if name not in own}

    def suits(self, program: Program) -> bool:
        """Whether the knowledge base accepts the configuration for the program."""
        if self.algorithm == "counting" and any(s.recursive for s in program.strata):
            return False
        if self.equality == "rewrite":
            names = {rule.name for rule in program.rules}
            return self.mode != "hybrid" and names.issuperset(NEEDED)
        return True


DIMENSIONS: Mapping[str, Sequence[Any]] = {
    "algorithm": [name for name in ALGORITHMS if name != "counting"],
    "modules": [True, False],
    "specialize": [None, True, False],
    "equality": ["rules", "rewrite"],
    "mode": ["materialized", "hybrid"],
    "threads": [1, 2],
    "resumes": [False, True],
}


def pairwise_cover(
    dimensions: Mapping[str, Sequence[Any]], valid: Any = lambda chosen: True, seed: int = 0
) -> list[dict[str, Any]]:
    """Few rows, such that every two values of two dimensions that may meet do so in one of them.

    Greedy: of all valid rows the one with the most pairs that are still missing.

    >>> len(pairwise_cover({"a": [1, 2], "b": [1, 2], "c": [1, 2]}))
    4
    """
    rows = [dict(zip(dimensions, values, strict=True)) for values in product(*dimensions.values())]
    rows = [row for row in rows if valid(row)]
    Random(seed).shuffle(rows)
    pairs = [frozenset(product([*row.items()], repeat=2)) for row in rows]
    missing = frozenset().union(*pairs)
    chosen = []
    while missing:
        best = max(range(len(rows)), key=lambda at: len(pairs[at] & missing))
        chosen.append(rows[best])
        missing -= pairs[best]
    return chosen


def configurations(program: Program, seed: int = 0) -> list[Configuration]:
    """Configurations that suit a program, in which every two settings meet."""

    def valid(chosen: dict[str, Any]) -> bool:
        return Configuration(**chosen).suits(program)

    return [
        Configuration(**row, limits=seed * 1000 + at if at % 4 else None)
        for at, row in enumerate(pairwise_cover(DIMENSIONS, valid, seed))
    ]


def random_configuration(program: Program, random: Random) -> Configuration:
    """Any configuration that suits the program, mostly with random thresholds."""
    while True:
        chosen = {name: random.choice(values) for name, values in DIMENSIONS.items()}
        if random.random() < 0.3:  # as most people use it
            chosen = {"modules": random.choice((True, False))}
        chosen["threads"] = random.choice((1, 2, 2, 17))
        limits = random.randrange(1 << 32) if random.random() < 0.8 else None
        found = Configuration(**chosen, limits=limits)
        if found.suits(program):
            return found


def replay(
    history: History,
    configuration: Configuration,
    checkpoints: Iterable[int] | None = None,
    crossings: Crossings | None = None,
) -> int:
    """Replay a history; returns how many states were compared.

    `checkpoints` are the numbers of states that are compared, all of them by default. What the
    transactions tell between two of them must add up to the difference. Which thresholds were
    crossed is recorded if asked.
    """
    numbers = range(len(history.states)) if checkpoints is None else checkpoints
    expected = {number: history.states[number].triples for number in numbers}
    try:
        limits = {} if configuration.limits is None else draw(configuration.limits)
        recorded = nullcontext() if crossings is None else recorded_crossings(crossings)
        with thresholds(**limits), recorded:
            _replayed(history, configuration, expected)
        return len(expected)
    except BaseException as error:
        error.add_note(f"{configuration} of {history.name}")
        raise


def _replayed(
    history: History, configuration: Configuration, expected: Mapping[int, frozenset[Triple]]
) -> None:
    kb = KnowledgeBase(history.program, **configuration.options())
    told = {*triples_of(kb)} if configuration.mode == "materialized" else None
    for number, change in enumerate((Change(history.first), *history.changes)):
        if configuration.resumes and configuration.mode == "materialized":
            resume(kb, configuration)
        with kb.transaction() as tx:
            tx.delete(as_text(change.deleted))
            tx.insert(as_text(change.inserted))
            if change.removed:
                tx.remove_rules(change.removed)
            if change.added:
                tx.add_rules(change.added)
        if told is not None:
            for sign, atom in tx.changes:
                if atom.relation == TRIPLE:
                    (told.add if sign == "+" else told.discard)(as_triple(atom))
        if number in expected:
            differs(triples_of(kb), expected[number], f"state {number}")
            if told is not None:
                differs(told, expected[number], f"changes up to state {number}")


def resume(kb: KnowledgeBase, configuration: Configuration) -> None:
    """Let a new reasoner begin with the facts that are known."""
    kept: Any = kb.state.reasoner
    options: Options[Any] = Options(
        algorithm=configuration.algorithm, modules=configuration.modules, known=kept.facts
    )
    new = type(kept)(kept.program, kept.explicit, kept.engine, options)
    if isinstance(new, Maintainer):
        new.begin()
    kb.state.reasoner = new


def differs(found: Iterable[Triple], expected: Iterable[Triple], what: str) -> None:
    """Raise if two sets of triples differ, with the first differences."""
    missing, surplus = sorted({*expected} - {*found}), sorted({*found} - {*expected})
    if missing or surplus:
        lines = [f"{what}: {len(missing)} missing, {len(surplus)} too many"]
        lines += [f"  missing  {' '.join(triple)}" for triple in missing[:8]]
        lines += [f"  too many {' '.join(triple)}" for triple in surplus[:8]]
        raise AssertionError("\n".join(lines))


def triples_of(kb: KnowledgeBase) -> frozenset[Triple]:
    """All triples, however many of them are derived on demand."""
    table = kb.facts(EVERYTHING)
    columns = [table.column(name).to_pylist() for name in ("subject", "predicate", "object")]
    return frozenset(zip(*columns, strict=True))


def as_triple(atom: Atom) -> Triple:
    subject, predicate, object_ = map(text_of, atom.constants())
    return subject, predicate, object_


def as_text(triples: Iterable[Triple]) -> str:
    """N-Triples; a comment if there is none, so that it is no empty text."""
    return "".join(f"{s} {p} {o} .\n" for s, p, o in triples) or "# nothing\n"


def minimized(history: History, configuration: Configuration) -> History:
    """A smaller history that fails too: changes, triples and rules are left out while it does."""

    def fails(candidate: History) -> bool:
        try:
            replay(candidate, configuration)
        except AssertionError:
            return True
        except Exception:
            return False
        return False

    for candidate in _smaller(history):
        if fails(candidate):
            return minimized(candidate, configuration)
    return history


def _smaller(history: History) -> Iterator[History]:
    for end in range(len(history.changes)):  # the first changes are enough
        yield replace(history, changes=history.changes[:end])
    for at in range(len(history.changes)):
        yield replace(history, changes=history.changes[:at] + history.changes[at + 1 :])
    yield from (replace(history, first=part) for part in _parts(history.first))
    for at, change in enumerate(history.changes):
        for smaller in (
            *(replace(change, inserted=part) for part in _parts(change.inserted)),
            *(replace(change, deleted=part) for part in _parts(change.deleted)),
        ):
            yield replace(
                history, changes=(*history.changes[:at], smaller, *history.changes[at + 1 :])
            )
    if not any(change.added or change.removed for change in history.changes):
        for rules in _parts(frozenset(history.program.rules)):
            yield replace(history, program=Program.of(rules, history.program.facts).with_axioms())
        for facts in _parts(frozenset(history.program.facts)):
            yield replace(history, program=Program.of(history.program.rules, facts).with_axioms())


def _parts(items: frozenset[Any]) -> Iterator[frozenset[Any]]:
    """The items without a part of them, large parts first."""
    ordered = sorted(items, key=repr)
    size = len(ordered)
    while size:
        size = size // 2 if size > 1 else 0
        for start in range(0, len(ordered), max(1, size)):
            yield items - {*ordered[start : start + max(1, size)]}
