"""Redundant rule instances: which ones are skipped, and that nothing is lost."""

from __future__ import annotations

from random import Random

import pytest

import corollary as co
from corollary.engines.tuples import layout as at
from corollary.engines.tuples.program import is_supported
from corollary.engines.tuples.redundancy import redundancy_of
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Rule
from corollary.testing import draw, thresholds
from tests.effort import first
from tests.streams import Commit
from tests.test_tuples import Player

_NODES = [f"<{name}>" for name in "abcde"]
_LABELS = [
    "rdfs:subClassOf",
    "rdfs:subPropertyOf",
    "rdfs:domain",
    "owl:equivalentClass",
    "owl:sameAs",
    "a",
]
_OTHER_RULES = """
    [?x, rdfs:subClassOf, ?y] :- [?x, <a>, ?y] .
    [?x, owl:sameAs, ?y] :- [?x, ?p, ?y], [?y, ?p, ?x] .
    path(?x, ?y) :- [?x, <b>, ?y] .
    path(?x, ?z) :- path(?y, ?z), path(?x, ?y) .
    [?x, <c>, ?z] :- path(?x, ?y), [?y, <c>, ?z] .
    reached(?y) :- path(?x, ?y), reached(?x) .
    reached(?x) :- [?x, a, <a>] .
    loop(?x) :- path(?x, ?x), [?x, rdfs:subClassOf, ?x] .
    path(?x, ?y) :- path(?y, ?x), FILTER(!sameTerm(?x, ?y)) .
"""


def _pool() -> list[Rule]:
    rules = [
        rule
        for rule in co.rules("owl-rl").rules
        if is_supported([rule])
        and (rule.name or "").startswith(("scm-", "cax-", "prp-", "eq-"))
        and not (rule.name or "").startswith(("scm-op", "scm-dp", "scm-int", "scm-uni"))
        and len(rule.body) <= 3
    ]
    return [*rules, *Program.parse(_OTHER_RULES).rules]


def _shuffled(rule: Rule, random: Random) -> Rule:
    """The same rule with its atoms in another order, so that another one may skip."""
    return Rule(rule.head, tuple(random.sample(rule.body, len(rule.body))), rule.name)


def _facts(random: Random, number: int) -> frozenset[Atom]:
    text = []
    for _ in range(number):
        label = random.choice(_LABELS if random.random() < 0.8 else _NODES)
        other = random.choice(_NODES)
        if label == "a" and random.random() < 0.4:
            other = random.choice(["owl:TransitiveProperty", "owl:SymmetricProperty", "owl:Class"])
        text.append(f"[{random.choice(_NODES)}, {label}, {other}] .")
    return frozenset(Program.parse(" ".join(text)).facts)


def check_changes(seed: int) -> None:
    """Change axioms, data and rules; after each commit, compare with the reference evaluator."""
    random = Random(seed)
    pool = [_shuffled(rule, random) for rule in _pool()]
    pool = random.sample(pool, random.randint(4, len(pool) // 2))
    rules, spare = pool[len(pool) // 4 :], pool[: len(pool) // 4]
    with thresholds(**(draw(seed) | {"least_tuple_steps": 1 << 40})):
        player = Player(Program.of(rules, sorted(_facts(random, random.randint(2, 12)), key=repr)))
        before = player.expected()
        assert player.decode(player.kept.facts) == before
        for _ in range(8):
            explicit = sorted(player.decode(player.kept.explicit), key=repr)
            deleted = random.sample(explicit, min(len(explicit), random.randrange(4)))
            inserted = _facts(random, random.randrange(4))
            if random.random() < 0.3 and before:  # a fact that follows already
                derived = [fact for fact in before if fact.relation == "[]"]
                inserted |= frozenset(
                    random.sample(sorted(derived, key=repr), min(2, len(derived)))
                )
            added: tuple[Rule, ...] = ()
            removed: tuple[Rule, ...] = ()
            if rules and random.random() < 0.3:
                removed = tuple(random.sample(rules, 1))
            if spare and random.random() < 0.3:
                added = (spare.pop(),)
            rules = [rule for rule in rules if rule not in removed] + list(added)
            spare += removed
            if random.random() < 0.15:
                player.reopen()
            done = player.play(Commit(inserted, frozenset(deleted) - inserted, added, removed))
            after = player.expected()
            assert player.decode(player.kept.facts) == after
            assert player.decode(done.inserted) == after - before
            assert player.decode(done.deleted) == before - after
            before = after


@pytest.mark.parametrize("seed", first(60, range(300)))
def test_oracle_skipped_instances(seed: int) -> None:
    check_changes(seed)


def _considered(text: str) -> tuple[int, int]:
    """The instances considered to materialize a program of rules of OWL 2 RL, and the facts."""
    program = co.rules("owl-rl") | Program.parse(text)
    player = Player(program)
    return sum(player.kept.statistics.derivations.values()), len(player.kept.facts)


@pytest.mark.parametrize(
    "shape",
    [
        "[<{0}>, rdfs:subClassOf, <{1}>] .",
        "[<{0}>, rdfs:subPropertyOf, <{1}>] . [<{0}>, rdfs:domain, <{0}>] .",
        "[<p>, a, owl:TransitiveProperty] . [<{0}>, <p>, <{1}>] .",
        "[<{0}>, rdfs:subClassOf, <{1}>] . [<{1}>, rdfs:subClassOf, <{0}>] .",
        "[<{0}>, owl:equivalentClass, <{1}>] . [<x>, a, <0>] .",
    ],
)
def test_long_chains_take_few_instances_of_each_fact(shape: str) -> None:
    short, long = (
        _considered(" ".join(shape.format(n, n + 1) for n in range(size))) for size in (12, 48)
    )
    assert long[0] / long[1] < 1.2 * short[0] / short[1]


def test_deletions_below_a_chain_take_few_instances() -> None:
    rules = [rule for rule in co.rules("owl-rl").rules if rule.name in ("scm-sco", "cax-sco")]
    chain = [f"[<{n}>, rdfs:subClassOf, <{n + 1}>] ." for n in range(60)]
    player = Player(Program.parse(" ".join([*chain, "[<x>, a, <0>] ."])).added(*rules))
    deleted = frozenset(Program.parse("[<x>, a, <0>] .").facts)
    done = player.play(Commit(deleted=deleted))
    assert len(done.deleted) == 61
    assert done.statistics is not None
    assert sum(done.statistics.derivations.values()) < 3 * 61


def test_facts_of_a_transitive_rule_are_skipped_along_it() -> None:
    text = """
        [?c, rdfs:subClassOf, ?e] :- [?c, rdfs:subClassOf, ?d], [?d, rdfs:subClassOf, ?e] .
        [?x, a, ?d] :- [?x, a, ?c], [?c, rdfs:subClassOf, ?d] .
        [?p, rdfs:domain, ?d] :- [?p, rdfs:domain, ?c], [?c, rdfs:subClassOf, ?d] .
        [?x, a, ?c] :- [?x, ?p, ?y], [?p, rdfs:domain, ?c] .
        pair(?c, ?d) :- [?c, rdfs:subClassOf, ?d] .
    """
    redundancy = redundancy_of(Program.parse(text).rules)
    transitive, _, domain, _, none = redundancy.derived
    assert transitive
    assert domain
    assert not none
    skipped = [[mask & ~at.REFLEXIVE for mask in masks] for masks in redundancy.skipped]
    assert skipped[0] == [transitive, 0]
    assert skipped[1] == [0, transitive]
    assert skipped[3] == [0, domain]
    assert skipped[4] == [0]


@pytest.mark.parametrize(
    "text",
    [
        "p(?x, ?z) :- p(?x, ?y), e(?y, ?z) . q(?x) :- p(?x, ?y) .",  # not transitive
        "p(?x, ?z) :- p(?x, ?y), p(?y, ?z), FILTER(!sameTerm(?x, ?z)) .",
        "p(?x, ?z) :- p(?x, ?y), p(?y, ?z) . q(?x, ?y) :- r(?x), p(?x, ?y) .",
        "p(?z, ?x) :- p(?x, ?y), p(?y, ?z) .",  # its premises do not lead to the same fact
    ],
)
def test_other_facts_are_not_skipped(text: str) -> None:
    redundancy = redundancy_of(Program.parse(text).rules)
    last = redundancy.skipped[-1]
    assert not any(mask & ~at.REFLEXIVE for mask in last)
