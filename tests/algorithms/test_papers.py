"""The papers' examples of updates, set by set."""

from __future__ import annotations

from typing import Any

import pytest

from corollary.algorithms.stratum import StratumUpdate, finish
from corollary.core.tables import decode
from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from tests.algorithms.replay import Player
from tests.engines.factories import columnar
from tests.streams import Commit
from tests.test_papers import TUTORS


def facts(text: str) -> frozenset[Atom]:
    return frozenset(Program.parse(text).facts)


def deletion(text: str) -> Commit:
    return Commit(deleted=facts(text))


def statistics(player: Player, commit: Commit) -> tuple[dict[str, int], dict[str, int]]:
    """Derivations and facts considered, by phase."""
    found = player.play(commit).statistics
    assert found is not None
    return found.derivations, found.considered


# Motik, Nenov, Piro, Horrocks: Incremental Update of Datalog Materialisation: the
# Backward/Forward Algorithm. AAAI 2015.


@pytest.fixture
def removals(monkeypatch: pytest.MonkeyPatch) -> list[set[Atom]]:
    """What the algorithms overdelete, stratum by stratum."""
    seen: list[set[Atom]] = []

    def recorded(steps: Any) -> Any:
        removal = finish(steps)
        seen.append({*decode(removal.overdeleted, removal.overdeleted.space.dictionary)})
        return removal

    monkeypatch.setattr("corollary.algorithms.update.finish", recorded)
    return seen


def test_table_1_dred_overdeletes_all_but_i6(removals: list[set[Atom]]) -> None:
    player = Player(columnar, TUTORS, "dred", coarse=True)
    _, considered = statistics(player, deletion("Tutor(john, math) ."))
    # I1–I5; E1 itself belongs to no stratum
    assert removals == [
        facts("Person(peter) . TA(peter) . Course(math) . Person(john) . TA(john) .")
    ]
    assert considered == {"overdeleted": 5}
    assert facts("Course(phys) . TA(peter) .") <= player.facts


def test_table_1_bf_overdeletes_nothing(removals: list[set[Atom]]) -> None:
    player = Player(columnar, TUTORS, "bf", coarse=True)
    before = player.facts
    derivations, considered = statistics(player, deletion("Tutor(john, math) ."))
    assert removals == [set()]
    assert before - player.facts == facts("Tutor(john, math) .")
    # (I3)–(I5) are examined, as in §3, and (I6), with which (E3) proves (I5); all are proved.
    assert considered == {"checked": 4}
    assert derivations["deletion propagation"] == 3


def test_table_1_strata_alone_keep_the_course(removals: list[set[Atom]]) -> None:
    """Course is a stratum below Person and TA: it is rederived before these are looked at."""
    player = Player(columnar, TUTORS, "dred")
    statistics(player, deletion("Tutor(john, math) ."))
    assert removals == [facts("Course(math) ."), facts("Person(john) . TA(john) .")]


def chain(n: int) -> Program:
    steps = "".join(f"c{i}(?x) :- c{i - 1}(?x) .\n" for i in range(2, n + 1))
    return Program.parse(f"c1(?x) :- a(?x) .\nc1(?x) :- b(?x) .\n{steps} a(0) . b(0) .")


@pytest.mark.parametrize("n", [5, 40])
def test_introduction_dred_touches_the_whole_chain(n: int) -> None:
    derivations, considered = statistics(
        Player(columnar, chain(n), "dred", coarse=True), deletion("a(0) .")
    )
    assert considered == {"overdeleted": n}
    # DR2 derives C₁ … Cₙ, and DR4 and DR5 derive them again
    assert derivations == {"overdeletion": n, "rederivation": 1, "insertion": n - 1}


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("n", [5, 40])
def test_introduction_bf_touches_a_constant_number(n: int, coarse: bool) -> None:
    derivations, considered = statistics(
        Player(columnar, chain(n), "bf", coarse=coarse), deletion("a(0) .")
    )
    assert considered == {"checked": 1}
    assert derivations["deletion propagation"] == 1
    assert sum(derivations.values()) == 2


@pytest.mark.parametrize("algorithm", ["dred", "fp", "dred-c", "bf-c", "counting", "auto"])
def test_introduction_by_strata_every_algorithm_stops_at_once(algorithm: str) -> None:
    player = Player(columnar, chain(40), algorithm)
    derivations, _ = statistics(player, deletion("a(0) ."))
    assert sum(derivations.values()) <= 2


# Kotowski, Bry, Brodt: Reasoning as Axioms Change. RR 2011, Example 2.

EDGES = ["ab", "ac", "be", "cf", "ed", "dg", "ef", "fg", "fh"]
REACH = Program.parse(
    "reach(?s, ?d) :- edge(?s, ?d) . reach(?s, ?d) :- reach(?s, ?i), edge(?i, ?d) ."
    + "".join(f"edge({edge[0]}, {edge[1]}) ." for edge in EDGES)
)


def pairs(text: str) -> set[Atom]:
    """`"ef bf"` as reach facts."""
    return {*facts("".join(f"reach({pair[0]}, {pair[1]}) ." for pair in text.split()))}


def test_example_2_of_fp_update(monkeypatch: pytest.MonkeyPatch, removals: list[set[Atom]]) -> None:
    deltas: list[set[Atom]] = []
    consequences = StratumUpdate.consequences

    def recorded(update: StratumUpdate[Any], delta: Any, *arguments: Any, **options: Any) -> Any:
        deltas.append({*decode(delta, update.engine.dictionary)})
        return consequences(update, delta, *arguments, **options)

    monkeypatch.setattr(StratumUpdate, "consequences", recorded)
    player = Player(columnar, REACH, "fp")
    before = player.facts
    changes = player.play(deletion("edge(e, f) ."))
    # U, but for eEf, which belongs to no stratum
    assert removals == [pairs("ef bf af eg eh bg bh ag ah")]
    # K, and O: the facts of U that are supported otherwise
    kept = before - removals[0] - facts("edge(e, f) .")
    assert kept <= player.facts
    assert player.facts - kept == pairs("af bg eg ag ah")
    assert player.decode(changes.deleted) == pairs("ef eh bf bh") | facts("edge(e, f) .")
    # Table 1 has ef alone in its first Δ. By the rules of the example eEf gives af and bf at once,
    # as reach(a, e) and reach(b, e) hold in the old fixpoint; so everything comes a round earlier.
    assert deltas == [pairs("ef af bf"), pairs("eg eh ag ah bg bh")]


# Urbani et al.: DynamiTE. ISWC 2013, Fig. 4.

FIGURE_4 = Program.parse("""
    t5() :- t0(), t1() .  t4() :- t2() .  t4() :- t3() .  t5() :- t4() .  t6() :- t0() .
    t0() . t1() . t2() . t3() .
""")


def counts(player: Player) -> dict[str, int]:
    """Instances of each fact, and one more for explicit ones."""
    state = player.maintainer._state
    assert state.counters is not None
    found = state.counters.nonrecursive.of(state.facts)
    explicit = {p.relation for p in state.explicit.predicates()}
    return {p.relation: int(n[0]) + (p.relation in explicit) for p, n in found.items()}


def test_figure_4_of_counting() -> None:
    player = Player(columnar, FIGURE_4, "counting")
    assert counts(player) == {"t0": 1, "t1": 1, "t2": 1, "t3": 1, "t4": 2, "t5": 2, "t6": 1}
    changes = player.play(deletion("t0() ."))
    assert player.decode(changes.deleted) == facts("t0() . t6() .")
    assert counts(player) == {"t1": 1, "t2": 1, "t3": 1, "t4": 2, "t5": 1}
    player.maintainer.verify()
