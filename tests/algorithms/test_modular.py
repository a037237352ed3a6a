"""Modules: found by shape, and the same facts as without them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary import KnowledgeBase
from corollary.algorithms import seminaive
from corollary.algorithms.maintain import KINDS
from corollary.algorithms.modular.recognize import recognize_modules
from corollary.core.compile import compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE
from corollary.testing import thresholds
from tests.algorithms.replay import replay, states
from tests.dense import SYMMETRIC, TRANSITIVE, composition, modular_program
from tests.effort import scaled
from tests.engines.factories import ENGINES, marks
from tests.streams import stream

every_engine = pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=marks(name)) for name in ("columnar", "spark")]
)


def names(text: str) -> list[str]:
    dictionary = Dictionary()
    rules = [compile_rule(rule, dictionary) for rule in Program.parse(text).rules]
    found = recognize_modules(rules, dictionary)
    assert {rule for module in found for rule in module.rules} == {*rules}
    return [module.name for module in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TRANSITIVE, ["transitive r"]),
        ("r(?a, ?c) :- r(?b, ?c), r(?a, ?b) .", ["transitive r"]),
        (TRANSITIVE + SYMMETRIC, ["symmetric-transitive r"]),
        (SYMMETRIC, ["recursive"]),
        ("[?x, <p>, ?z] :- [?x, <p>, ?y], [?y, <p>, ?z] .", ["transitive p"]),
        (
            TRANSITIVE + "s(?x, ?z) :- s(?x, ?y), s(?y, ?z) . r(?x, ?y) :- s(?x, ?y), r(?y, ?y) .",
            ["transitive r", "transitive s", "recursive"],
        ),
        # Near, but not the shape:
        ("r(?z, ?x) :- r(?x, ?y), r(?y, ?z) .", ["recursive"]),
        ("r(?x, ?z) :- r(?x, ?y), r(?z, ?y) .", ["recursive"]),
        ("r(?x, ?z) :- r(?x, ?y), s(?y, ?z) .", ["linear r"]),
        ("r(?x, ?z) :- r(?y, ?z), s(?x, ?y) .", ["linear r"]),
        ("r(?x, ?z) :- r(?x, ?y), s(?z, ?y) .", ["recursive"]),
        ("r(?x, ?z) :- r(?x, ?y), s(?y, ?z) . r(?x, ?z) :- r(?x, ?y), e(?y, ?z) .", ["recursive"]),
        ("r(?x, ?x) :- r(?x, ?y), r(?y, ?x) .", ["recursive"]),
        ("r(?x, ?z) :- r(?x, ?y), r(?y, ?z), NOT s(?x) .", ["recursive"]),
        ("r(?x, ?z) :- r(?x, ?y), r(?y, ?z), FILTER(?x != ?z) .", ["recursive"]),
        ("r(?x, ?z, 1) :- r(?x, ?y, 1), r(?y, ?z, 1) .", ["recursive"]),
        ("r(?x, ?z) :- r(?x, 1), r(1, ?z) .", ["recursive"]),
        # A variable property may be any: no module.
        (
            "[?x, <p>, ?z] :- [?x, <p>, ?y], [?y, <p>, ?z] . [?x, ?q, ?y] :- [?x, ?p, ?y],"
            " [?p, <sub>, ?q] .",
            ["recursive"],
        ),
    ],
)
def test_shapes(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1))
def test_with_and_without_modules(seed: int) -> None:
    check("columnar", modular_program(seed))


MODULAR = [name for name, kind in KINDS.items() if kind.modular is not None]


@pytest.mark.scaled
@pytest.mark.parametrize("algorithm", MODULAR)
@pytest.mark.parametrize("coarse", [False, True], ids=["fine", "coarse"])
def test_streams(algorithm: str, coarse: bool) -> None:
    """Facts and rules come and go, those of modules too; counters are right after every commit."""
    seeds, used = scaled(14), 0
    for seed in range(seeds):
        for program in (modular_program(seed), composition(seed)):
            found = stream(seed, program)
            for player in replay(
                ENGINES["columnar"], found, algorithm, states(found), coarse=coarse
            ):
                player.maintainer.verify()
                used += "modules" in player.reason
    assert used > 2 * seeds


@pytest.mark.scaled
@pytest.mark.parametrize("algorithm", MODULAR)
def test_streams_over_reopened_facts(algorithm: str) -> None:
    """Modules find out what is given to them, by rules with variable properties too."""
    for seed in range(scaled(10)):
        found = stream(seed, modular_program(seed))
        for player in replay(ENGINES["columnar"], found, algorithm, states(found), reopen=True):
            player.maintainer.verify()


@pytest.mark.scaled
@pytest.mark.parametrize("algorithm", MODULAR)
@pytest.mark.parametrize("change", [0, 10**9], ids=["small changes", "large changes"])
def test_modules_to_which_much_is_given(algorithm: str, change: int) -> None:
    """Their states are not kept; strata are updated without them, or closed again."""
    with thresholds(module_external_facts_minimum=0, module_change_facts=change):
        for seed in range(scaled(10)):
            found = stream(seed, modular_program(seed))
            for coarse in (False, True):
                for player in replay(
                    ENGINES["columnar"], found, algorithm, states(found), coarse=coarse
                ):
                    player.maintainer.verify()


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=marks("spark"))])
@pytest.mark.parametrize("seed", [3, 5])
def test_on_spark(engine: str, seed: int) -> None:
    check(engine, modular_program(seed))


def check(engine: str, program: Program) -> None:
    wanted = reference.materialize(program)
    for modules in (True, False):
        dictionary = Dictionary()
        made = ENGINES[engine](dictionary)
        explicit = made.facts(encode(program.facts, dictionary))
        found = seminaive.materialize(program, explicit, made, modules=modules)
        assert {*decode(found.facts, dictionary)} == wanted


@every_engine
def test_cliques_cost_the_size_of_the_result(engine: str) -> None:
    """Example 2 of the paper: a ring of n nodes has n³ instances; the module needs about 2 n²."""
    n = 12
    ring = "".join(f"r({at}, {(at + 1) % n}) ." for at in range(n))
    program = Program.parse(TRANSITIVE + SYMMETRIC + ring)
    work = {}
    for modules in (True, False):
        dictionary = Dictionary()
        made = ENGINES[engine](dictionary)
        explicit = made.facts(encode(program.facts, dictionary))
        found = seminaive.materialize(program, explicit, made, modules=modules)
        assert len(found.facts) == n * n
        work[modules] = found.statistics.derivations
    assert work[False]["recursive"] == n**3 + n**2
    assert work[True].keys() == {"symmetric-transitive r"}
    assert work[True]["symmetric-transitive r"] <= 2 * n**2


def test_a_chain_is_searched_once() -> None:
    """Example 1 of the paper: n² instances with an external fact, instead of n³."""
    n = 40
    chain = "".join(f"r({at}, {at + 1}) ." for at in range(n))
    dictionary = Dictionary()
    made = ENGINES["columnar"](dictionary)
    program = Program.parse(TRANSITIVE + chain)
    explicit = made.facts(encode(program.facts, dictionary))
    found = seminaive.materialize(program, explicit, made)
    assert len(found.facts) == n * (n + 1) // 2
    assert found.statistics.derivations == {"transitive r": n * (n - 1) // 2}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_linear_rules_read_edges_of_their_own_stratum(kind: str) -> None:
    """With a variable property in a head, all triples are one stratum, edges included."""
    rules = "[?x, <p>, ?z] :- [?x, <p>, ?y], [?y, <q>, ?z] . [?s, ?p, ?o] :- stated(?s, ?p, ?o) ."
    draw = random.Random(1)
    kb = KnowledgeBase(rules, algorithm="auto" if kind == "counting" else kind, specialize=False)
    known: set[str] = set()
    for _ in range(scaled(40)):
        changes = {
            (f"[{term}] ." if draw.random() < 0.7 else f"stated({term}) .", draw.random() < 0.7)
            for _ in range(draw.randint(1, 3))
            for term in [", ".join(f"<{draw.choice(part)}>" for part in ("abc", "pq", "abc"))]
        }
        with kb.transaction() as tx:
            for fact, is_new in sorted(changes):
                (tx.insert if is_new else tx.delete)(fact)
                (known.add if is_new else known.discard)(fact)
        facts = Program.parse(rules + " ".join(sorted(known)))
        derived = {atom for atom in reference.materialize(facts) if atom.relation == TRIPLE}
        assert kb.count("[?s, ?p, ?o]") == len(derived)
