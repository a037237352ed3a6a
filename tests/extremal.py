"""Random programs with recursive minima and maxima over small graphs, and changes of them."""

from __future__ import annotations

from random import Random

from corollary.lang.program import Program
from corollary.lang.syntax import Rule
from tests.streams import Commit, Stream

# Recursions of one relation, `best`, over edges `e(from, to, weight)` and sources `s(node)`.
_BASES = (
    "best(?x, ?y, ?w) :- e(?x, ?y, ?w) .",
    "best(?x, ?y, MIN(?w)) :- e(?x, ?y, ?w), s(?x) .",
    "best(?x, ?x, 0) :- s(?x) .",
)
_STEPS = (
    "best(?x, ?z, MIN(?d + ?w)) :- best(?x, ?y, ?d), e(?y, ?z, ?w) .",
    "best(?x, ?z, MIN(?d + ?f)) :- best(?x, ?y, ?d), best(?y, ?z, ?f) .",
    "best(?x, ?z, MIN(?m)) :- best(?x, ?y, ?d), e(?y, ?z, ?w), BIND(?d + 2 * ?w AS ?m) .",
    "best(?x, ?z, MIN(IF(?d > ?w, ?d, ?w))) :- best(?x, ?y, ?d), e(?y, ?z, ?w), NOT s(?z) .",
    "best(?x, ?z, MIN(?d + ?w)) :- best(?x, ?y, ?d), e(?y, ?z, ?w), FILTER(?d < 7) .",
    "best(?x, ?z, MIN(?d)) :- best(?x, ?y, ?d), e(?z, ?y, _) .",
)
_OTHERS = (
    "far(?x, ?y) :- best(?x, ?y, ?d), FILTER(?d > 4) .",
    "lone(?x) :- s(?x), NOT best(?x, _, 3) .",
    "total(?x, ?t) :- AGGREGATE(best(?x, ?y, ?d) ON ?x BIND sum(?d) AS ?t) .",
    "widest(?y, MAX(?d)) :- best(?x, ?y, ?d) .",
    "widest(?z, MAX(IF(?d < ?w, ?d, ?w))) :- widest(?y, ?d), e(?y, ?z, ?w) .",
    "[?x, <cost>, MIN(?d)] :- best(?x, _, ?d) .",
    "[?y, <cost>, MIN(?d + ?w)] :- [?x, <cost>, ?d], e(?x, ?y, ?w) .",
    "least(MIN(?d)) :- best(_, _, ?d) .",
    "most(MAX(?d)) :- best(_, _, ?d), FILTER(?d < 9) .",
)
_WEIGHTS = ("0", "1", "2", "3", "1.0", "1.5", "2e0", "05")


def extremal_stream(seed: int, commits: int, *, nodes: int = 6) -> Stream:
    """The stream of a seed."""
    random = Random(seed)
    rules = [*random.sample(_BASES, random.randint(1, 2)), *random.sample(_STEPS, 1)]
    if random.random() < 0.4:
        rules += random.sample(_STEPS, 1)
    rules += random.sample(_OTHERS, random.randint(1, 5))
    program = Program.parse(" ".join(rules) + _facts(random, nodes, 2 * nodes))
    facts, present = {*program.facts}, {*program.rules}
    spare = [*Program.parse(" ".join((*_BASES, *_OTHERS[:3]))).rules]
    changes = []
    for _ in range(commits):
        deleted = frozenset(random.sample(sorted(facts, key=repr), min(len(facts), 3)))
        inserted = frozenset(Program.parse(_facts(random, nodes, 2)).facts)
        added: tuple[Rule, ...] = ()
        removed: tuple[Rule, ...] = ()
        if random.random() < 0.2:
            rule = random.choice(spare)
            if rule not in present:
                added = (rule,)
            elif rule.extremum is None and len(present) > 3:
                removed = (rule,)
            present = (present - {*removed}) | {*added}
        facts = (facts - deleted) | inserted
        changes.append(Commit(inserted, deleted, added, removed))
    return Stream(seed, program, tuple(changes))


def _facts(random: Random, nodes: int, number: int) -> str:
    found = []
    for _ in range(number):
        one, two = random.randrange(nodes), random.randrange(nodes)
        kind = random.random()
        weight = random.choice(_WEIGHTS)
        if kind < 0.8:
            found.append(f"e(n{one}, n{two}, {weight}) .")
        elif kind < 0.95:
            found.append(f"s(n{one}) .")
        else:
            found.append(f"best(n{one}, n{two}, {weight}) .")
    return " ".join(found)
