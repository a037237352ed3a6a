"""Random streams of changes of facts and rules, from a seed.

Facts and rules come from the same small pools as those of `dense`, so that commits delete what
others inserted, insert what is derived, and bring rules back that were removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from corollary.errors import InvalidProgram
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Rule
from tests.dense import dense_program, more_facts


@dataclass(frozen=True)
class Commit:
    """Explicit facts to insert and delete, rules to add and remove."""

    inserted: frozenset[Atom] = frozenset()
    deleted: frozenset[Atom] = frozenset()
    added: tuple[Rule, ...] = ()
    removed: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Stream:
    """A program with its first facts, and commits."""

    seed: int
    program: Program
    commits: tuple[Commit, ...]

    def __repr__(self) -> str:
        text = Printer()
        lines = [f"seed {self.seed}", str(self.program)]
        for number, commit in enumerate(self.commits, 1):
            lines.append(f"commit {number}:")
            lines += [f"  + {text.atom(a)} ." for a in sorted(commit.inserted, key=repr)]
            lines += [f"  - {text.atom(a)} ." for a in sorted(commit.deleted, key=repr)]
            lines += [f"  + {text.rule(rule)}" for rule in commit.added]
            lines += [f"  - {text.rule(rule)}" for rule in commit.removed]
        return "\n".join(lines)


def stream(
    seed: int, program: Program | None = None, commits: int = 10, others: Iterable[Rule] = ()
) -> Stream:
    """The stream of a seed; every program on its way is valid.

    Commits add rules that were removed, and `others` that the program does not begin with.
    """
    random = Random(seed)
    start = dense_program(random.getrandbits(64)) if program is None else program
    pool = {*start.rules, *dense_program(random.getrandbits(64)).rules} - {*start.rules}
    spare = sorted(pool, key=lambda rule: repr(rule.key)) if program is None else [*others]
    rules, facts = Program.of(start.rules), set(start.facts)
    ever = set(facts)
    made = []
    for _ in range(commits):
        commit = _commit(random, rules, facts, ever, spare)
        made.append(commit)
        rules = rules.removed(*commit.removed).added(*commit.added)
        facts = (facts - commit.deleted) | commit.inserted
        ever |= facts
        spare = [rule for rule in {*spare, *commit.removed} if rule not in commit.added]
        spare.sort(key=lambda rule: repr(rule.key))
    return Stream(seed, start, tuple(made))


def _commit(
    random: Random, rules: Program, facts: set[Atom], ever: set[Atom], spare: list[Rule]
) -> Commit:
    known = sorted(facts, key=repr)
    kind = random.random()
    inserted: frozenset[Atom] = frozenset()
    deleted: frozenset[Atom] = frozenset()
    if kind < 0.05:
        return Commit()
    if kind < 0.1:
        return Commit(deleted=frozenset(facts))
    if kind < 0.15:
        return Commit(inserted=frozenset(ever))  # everything comes back
    if kind < 0.75:
        deleted = frozenset(random.sample(known, min(len(known), random.choice((0, 1, 1, 2, 6)))))
    if kind > 0.45:
        others = more_facts(rules | Program.of((), known), random.getrandbits(64))
        back = sorted(ever - facts, key=repr)
        inserted = frozenset(random.sample(sorted(others, key=repr), min(len(others), 3)))
        inserted |= frozenset(random.sample(back, min(len(back), random.choice((0, 2)))))
    removed: tuple[Rule, ...] = ()
    added: tuple[Rule, ...] = ()
    if rules.rules and random.random() < 0.3:
        removed = tuple(
            random.sample(rules.rules, random.choice((1, 1, 2)) % len(rules.rules) or 1)
        )
    left = rules.removed(*removed)
    if spare and random.random() < 0.4:
        for rule in random.sample(spare, min(len(spare), random.choice((1, 1, 2)))):
            try:
                left = left.added(rule)
            except InvalidProgram:
                continue
            added = (*added, rule)
    return Commit(inserted, deleted, added, removed)
