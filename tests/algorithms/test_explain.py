"""Proofs are proofs, and none is higher than it must be."""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from corollary.core.proof import Proof
from corollary.errors import InvalidInput
from corollary.lang import reference
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.reference_expressions import evaluated, holds
from corollary.lang.syntax import Aggregate, Atom, Bind, Filter, Negation, Variable
from tests.algorithms.replay import Player, State, replay, states
from tests.dense import dense_programs
from tests.effort import first
from tests.engines.conformance import Sets
from tests.engines.factories import columnar
from tests.strategies import programs
from tests.streams import Commit, stream


def rounds(state: State) -> dict[Atom, int]:
    """For each fact the first round of naive evaluation that derives it; explicit facts are 0.

    What rules negate or aggregate is complete from the beginning.
    """
    found = dict.fromkeys(state.explicit, 0)
    size = -1
    while len(found) > size:
        size = len(found)
        known = Sets(frozenset(found), state.facts)
        new = {
            reference.substitute(rule.head, s)
            for rule in state.program.rules
            for s in known.instances(rule)
        }
        number = max(found.values(), default=0) + 1
        found |= dict.fromkeys(new - found.keys(), number)
    return found


def check(proof: Proof, state: State) -> None:
    """Every step is an instance of a rule, every leaf explicit or absent, no fact twice."""
    facts = {*state.facts}
    atoms = [node.fact for node in proof.nodes() if isinstance(node.fact, Atom)]
    assert len(atoms) == len({*atoms}), "each fact has one proof, so none supports itself"
    for node in proof.nodes():
        match node.kind:
            case "explicit":
                assert node.fact in state.explicit
                assert not node.premises
            case "absent":
                assert not node.premises
            case "aggregate":
                assert {premise.fact for premise in node.premises} <= facts
            case _:
                check_step(node, state, facts)


def check_step(node: Proof, state: State, facts: set[Atom]) -> None:
    assert node.rule in state.program.rules
    assert node.fact not in state.explicit
    assert isinstance(node.fact, Atom)
    premises = iter(node.premises)
    s = reference.matched(node.rule.head, node.fact, {})
    assert s is not None
    negated = []
    for literal in node.rule.body:
        if isinstance(literal, Filter | Bind):
            continue
        premise = next(premises).fact
        if isinstance(literal, Atom):
            assert isinstance(premise, Atom)
            s = reference.matched(literal, premise, s)
            assert s is not None
        elif isinstance(literal, Aggregate):
            assert isinstance(premise, Aggregate)
            results = [binding.result for binding in premise.bindings]
            row: dict[Variable, Any] = dict(
                zip(literal.variables(), [*premise.group, *results], strict=True)
            )
            assert row in list(reference.groups(literal, facts))
            assert all(s.get(variable, value) == value for variable, value in row.items())
            s |= row
        else:
            negated.append((literal, premise))
    assert not list(premises)
    for bind in node.rule.binds:
        value = evaluated(bind.expression, s)
        assert value is not None
        assert s.setdefault(bind.variable, value) == value
    for literal, absent in negated:
        assert isinstance(absent, Negation)
        assert not reference.join([s], literal.atom, facts)
        assert not reference.join([{}], absent.atom, facts)
        assert absent.atom == Atom(
            literal.atom.relation,
            tuple(s.get(t, t) if isinstance(t, Variable) else t for t in literal.atom.terms),
        )
    for literal in node.rule.body:
        if isinstance(literal, Filter):
            assert holds(literal.expression, s)


def check_all(player: Player, state: State, facts: Iterable[Atom]) -> None:
    least = rounds(state)
    for fact in facts:
        proof = player.maintainer.explain(fact)
        check(proof, state)
        assert proof.least
        assert proof.height == least[fact]
        for budget in (0, 2, 10, 50):
            cut = player.maintainer.explain(fact, budget=budget)
            check(cut, state)
            assert cut.height == proof.height if cut.least else cut.height >= proof.height
            assert ("cut short" in str(cut)) == (not cut.least)


def state_of(program: Program) -> State:
    facts = frozenset(reference.materialize(program))
    return State(Program.of(program.rules), frozenset(program.facts), facts)


@settings(max_examples=60)
@given(programs())
def test_oracle_proofs_of_random_programs(program: Program) -> None:
    state = state_of(program)
    check_all(Player(columnar, program, "auto"), state, sorted(state.facts, key=repr)[:30])


@settings(max_examples=60)
@given(dense_programs())
def test_oracle_proofs_of_dense_programs(program: Program) -> None:
    state = state_of(program)
    check_all(Player(columnar, program, "auto"), state, sorted(state.facts, key=repr)[::3])


@pytest.mark.parametrize("seed", first(3, range(12)))
def test_oracle_proofs_after_updates(seed: int) -> None:
    changes = stream(seed, commits=6)
    wanted = states(changes)
    random = Random(seed)
    for number, player in enumerate(replay(columnar, changes, "auto", wanted), 1):
        facts = sorted(wanted[number].facts, key=repr)
        check_all(player, wanted[number], random.sample(facts, min(8, len(facts))))


WIDE = [
    "path(?x, ?z) :- path(?x, ?y), path(?y, ?z) . path(?x, ?y) :- edge(?x, ?y) .",
    """path(?x, ?w) :- path(?x, ?y), path(?y, ?z), path(?z, ?w) . path(?x, ?y) :- edge(?x, ?y) .
       path(?x, ?z) :- edge(?x, ?y), mark(?y), path(?y, ?z) . mark(?x) :- path(?x, ?x) .""",
    """cousin(?x, ?y) :- edge(?p, ?x), edge(?p, ?y) .
       cousin(?x, ?y) :- edge(?u, ?x), cousin(?u, ?v), cousin(?v, ?u), edge(?v, ?y) .
       top(?x) :- cousin(?x, ?y), NOT edge(?x, ?y) .
       tops(?x, ?y) :- top(?x), cousin(?x, ?y), top(?y) .""",
]


@pytest.mark.parametrize("rules", WIDE)
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_oracle_proofs_in_wide_cones(rules: str, seed: int) -> None:
    """Random graphs, in which every way to cut a search short is needed."""
    random = Random(seed)
    nodes = range(random.choice((6, 10, 14)))
    edges = (f"edge({random.choice(nodes)}, {random.choice(nodes)}) . " for _ in [*nodes, *nodes])
    program = Program.parse(rules + "".join(edges))
    state = state_of(program)
    facts = random.sample(sorted(state.facts, key=repr), 6)
    check_all(Player(columnar, program, "auto"), state, facts)


def explained(text: str, fact: str, **options: int) -> Proof:
    player = Player(columnar, Program.parse(text), "auto")
    [atom] = Program.parse(f"{fact} .").facts
    return player.maintainer.explain(atom, **options)


CHAIN = """
    [copy] path(?x, ?y) :- edge(?x, ?y) .
    [join] path(?x, ?z) :- path(?x, ?y), path(?y, ?z) .
    edge(1, 2) . edge(2, 3) . edge(3, 4) . edge(4, 5) .
"""


def test_a_tree_names_what_was_shown_before() -> None:
    text = CHAIN + "loop(?x) :- path(?x, ?y), path(?y, ?x) . edge(2, 1) ."
    assert str(explained(text, "loop(1)")) == (
        "loop(1)   by loop(?x) :- path(?x, ?y), path(?y, ?x)\n"
        "├─ path(1, 2)   by [copy]\n"
        "│  └─ edge(1, 2)   explicit\n"
        "└─ path(2, 1)   by [copy]\n"
        "   └─ edge(2, 1)   explicit"
    )
    twice = explained("q(?x) :- p(?x) . r(?x) :- q(?x), q(?y), p(?y) . p(1) .", "r(1)")
    assert str(twice) == (
        "r(1)   by r(?x) :- q(?x), q(?y), p(?y)\n"
        "├─ q(1)   by q(?x) :- p(?x)\n"
        "│  └─ p(1)   explicit\n"
        "├─ q(1)   (proved above)\n"
        "└─ p(1)   explicit"
    )
    assert twice.size == 3
    assert twice.to_json()["premises"][1] == {
        "fact": "q(1)",
        "rule": "q(?x) :- p(?x)",
        "explicit": False,
        "kind": "derived",
        "premises": [],
        "repeated": True,
    }
    assert twice.to_dot().count("->") == 3


def test_heights_are_least() -> None:
    proof = explained(CHAIN, "path(1, 5)")
    assert (proof.height, proof.least) == (3, True)
    assert explained(CHAIN + "path(1, 4) .", "path(1, 5)").height == 2
    assert explained(CHAIN + "path(1, 5) .", "path(1, 5)").kind == "explicit"


def test_proofs_can_be_high() -> None:
    """Neither the search nor the proof recurses."""
    edges = "".join(f"edge({n}, {n + 1}) . " for n in range(1500))
    proof = explained(
        "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- edge(?x, ?y), path(?y, ?z) ." + edges,
        "path(0, 1500)",
    )
    assert (proof.height, proof.size) == (1500, 3000)
    # Trees of at most a hundred steps: each but the first repeats its root.
    trees = str(proof).split("\n\n")
    assert len(trees) == 15
    assert sum(tree.count("\n") + 1 for tree in trees) == 3000 + 14
    assert str(proof).count("(proved below)") == 14
    assert max(map(len, str(proof).splitlines())) < 500
    shown = json.loads(json.dumps(proof.to_json()))  # which refuses deep nesting
    assert shown["height"] == 1500
    assert len(shown["parts"]) == 14
    assert proof.to_dot().count("->") == 2999


def test_wide_cones_are_cut_short() -> None:
    nodes = range(40)
    edges = "".join(f"edge({n}, {n + 1}) . " for n in nodes)
    cut = explained(CHAIN + edges, "path(0, 40)", budget=200)
    assert not cut.least
    assert cut.height >= 7
    assert cut.to_json()["least"] is False
    assert explained(CHAIN + edges, "path(0, 40)").height == 7


def test_samples_of_aggregates() -> None:
    facts = "".join(f"e(1, {n}) . " for n in range(20))
    proof = explained(
        "n(?x, ?n) :- AGGREGATE(e(?x, ?y) ON ?x BIND count(?y) AS ?n) ." + facts, "n(1, 20)"
    )
    [aggregate] = proof.premises
    assert (aggregate.kind, aggregate.more, len(aggregate.premises)) == ("aggregate", True, 5)
    assert "the first 5 facts of more" in str(proof)
    assert json.loads(json.dumps(proof.to_json()))["premises"][0]["fact"] == (
        "AGGREGATE(e(1, ?y) ON 1 BIND count(?y) AS 20)"
    )


def test_aggregated_facts_do_not_count_for_the_height() -> None:
    edges = "".join(f"edge({n}, {n + 1}) . " for n in range(20))
    rule = "reach(?x, ?n) :- AGGREGATE(path(?x, ?y) ON ?x BIND count(?y) AS ?n) ."
    proof = explained(CHAIN + rule + edges, "reach(0, 20)", budget=5)
    assert (proof.height, proof.least) == (1, True)


def test_a_fact_that_is_not_there() -> None:
    with pytest.raises(InvalidInput, match=r"path\(5, 1\) is not in the materialization") as caught:
        explained(CHAIN, "path(5, 1)")
    assert caught.value.code == "E340"


def test_names_of_variables_do_not_matter() -> None:
    """A rule that is equal to a known one is shown as the program writes it now."""
    program = Program.parse("q(?x) :- p(?x) . p(1) .")
    player = Player(columnar, program, "auto")
    [rule] = Program.parse("[named] q(?a) :- p(?a) .").rules
    player.play(Commit(added=(rule,), removed=program.rules))
    [fact] = Program.parse("q(1) .").facts
    proof = player.maintainer.explain(fact)
    assert proof.rule is not None
    assert Printer().rule(proof.rule) == "[named] q(?a) :- p(?a) ."
