"""Every algorithm equals the oracle on random streams of changes of facts and rules."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from corollary.testing import thresholds
from tests.algorithms.replay import replay, states
from tests.dense import composition
from tests.effort import scaled
from tests.engines.factories import ENGINES, marks
from tests.fuzz.streams import check
from tests.streams import Commit, Stream, stream


def facts(text: str) -> frozenset[Atom]:
    return frozenset(Program.parse(text).facts)


SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=30)
@given(SEEDS)
def test_random_programs(seed: int) -> None:
    check(stream(seed))


@settings(max_examples=20)
@given(SEEDS)
def test_random_graphs(seed: int) -> None:
    check(stream(seed, composition(seed)))


@pytest.mark.scaled
@pytest.mark.parametrize("path", ["keys", "bits"])
def test_tombstones_with_keys_and_bits(path: str) -> None:
    """Small sets are compacted by each deletion; here tombstones remain, as in large ones."""
    limits = {"tombstone_ratio": 1}
    if path == "bits":
        limits["bit_matrix_pairs_minimum"] = 0
    with thresholds(**limits):
        for seed in range(scaled(12)):
            check(stream(seed, composition(seed)))
            if path == "keys":
                check(stream(seed))


def test_the_streams_hold_what_they_should() -> None:
    """Commits of all kinds, and programs that change their strata on the way."""
    commits = [commit for seed in range(40) for commit in stream(seed).commits]
    assert len(commits) == 400
    assert any(not (c.inserted or c.deleted or c.added or c.removed) for c in commits)
    assert any(len(c.deleted) > 8 and not c.inserted for c in commits)
    assert any(c.added and c.removed and c.inserted and c.deleted for c in commits)
    turned = negated = counted = 0
    for seed in range(40):
        seen = states(stream(seed))
        for before, after in pairwise(seen):
            old = {rule for stratum in before.program.strata for rule in stratum.recursive}
            new = {rule for stratum in after.program.strata for rule in stratum.recursive}
            kept = {*before.program.rules} & {*after.program.rules}
            turned += bool((old ^ new) & kept)
            for rule in {*after.program.rules} - {*before.program.rules}:
                negated += any(reading == "negated" for _, reading in rule.atoms())
                counted += any(reading == "aggregated" for _, reading in rule.atoms())
    assert min(turned, negated, counted) > 2, "rules become recursive or stop to be so"


ON_SPARK = {
    "counting": "p(?x) :- e(?x, ?y), NOT f(?y) . q(?x) :- p(?x) . q(?y) :- e(?x, ?y) .",
    "dred": "p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- p(?x, ?y), p(?y, ?z) .",
    "dred-c": "p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- e(?x, ?y), p(?y, ?z) .",
    "bf": "p(?x, ?y) :- e(?x, ?y) . p(?y, ?x) :- p(?x, ?y) . p(?x, ?z) :- p(?x, ?y), p(?y, ?z) .",
    "auto": "[?x, a, ?d] :- [?x, a, ?c], [?c, <sub>, ?d] . [?c, <sub>, ?e] :- [?c, <sub>, ?d],"
    " [?d, <sub>, ?e] . n(?d, ?k) :- AGGREGATE([?x, a, ?d] ON ?d BIND count(?x) AS ?k) .",
}
FIRST = """
    e(1, 2) . e(2, 3) . e(3, 1) . e(3, 4) . f(4) . f(2) .
    [1, a, <A>] . [2, a, <B>] . [<A>, <sub>, <B>] . [<B>, <sub>, <C>] .
"""
COMMITS = (
    Commit(inserted=facts("e(4, 5) . f(3) . [<A>, <sub>, <D>] ."), deleted=facts("e(2, 3) .")),
    Commit(deleted=facts("f(4) . e(3, 1) . [<A>, <sub>, <B>] ."), inserted=facts("p(7, 8) .")),
)


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=marks("spark"))])
@pytest.mark.parametrize("algorithm", ON_SPARK)
def test_on_spark(engine: str, algorithm: str) -> None:
    """The same code runs on the other engine."""
    program = Program.parse(ON_SPARK[algorithm] + FIRST)
    commits = COMMITS
    if program.arities.get("p") == 1:
        commits = (COMMITS[0], Commit(deleted=COMMITS[1].deleted, inserted=facts("p(7) .")))
    last = Commit(removed=program.rules[-1:])
    found = Stream(0, program, (*commits, last))
    players = list(replay(ENGINES[engine], found, algorithm, states(found)))
    assert len(players) == 3
    if algorithm != "auto":
        players[-1].maintainer.verify()
