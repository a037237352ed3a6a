"""The maintainer: what it promises beside the right facts."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from corollary.algorithms.backward_forward import Search
from corollary.algorithms.maintain import ALGORITHMS, Maintainer
from corollary.algorithms.reasoner import Options
from corollary.algorithms.stratum import StratumUpdate
from corollary.core.compile import CompiledRule
from corollary.core.engine import Derived
from corollary.core.tables import decode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.errors import InvalidInput, InvalidProgram, OperationFailed
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Rule
from corollary.testing import thresholds
from tests.algorithms.replay import Player
from tests.dense import composition, dense_program
from tests.engines.conformance import Sets
from tests.engines.factories import columnar
from tests.streams import Commit

CLOSURE = Program.parse("p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- p(?x, ?y), p(?y, ?z) .")
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
recursive_ones = pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a != "counting"])


def facts(text: str) -> frozenset[Atom]:
    return frozenset(Program.parse(text).facts)


def rules(text: str) -> tuple[Rule, ...]:
    return Program.parse(text).rules


# -- explicit and derived ------------------------------------------------------------------------


@every_algorithm
def test_explicit_facts_of_derived_predicates(algorithm: str) -> None:
    player = Player(columnar, Program.parse("q(?x) :- p(?x) . p(1) . q(2) ."), algorithm)
    assert player.facts == facts("p(1) . q(1) . q(2) .")
    # Inserting what is derived changes nothing, but is remembered …
    changes = player.play(Commit(inserted=facts("q(1) .")))
    assert len(changes.inserted) == len(changes.deleted) == 0
    # … so that it stays when the derivation goes.
    changes = player.play(Commit(deleted=facts("p(1) .")))
    assert player.decode(changes.deleted) == facts("p(1) .")
    # Deleting an explicit fact that is derived keeps it as derived.
    player.play(Commit(inserted=facts("p(2) .")))
    changes = player.play(Commit(deleted=facts("q(2) .")))
    assert len(changes.deleted) == 0
    assert player.facts == facts("q(1) . p(2) . q(2) .")
    # Deleting a fact that is not explicit does nothing.
    changes = player.play(Commit(deleted=facts("q(2) . p(9) .")))
    assert len(changes.deleted) == 0
    player.maintainer.verify()


@every_algorithm
def test_a_fact_that_is_inserted_and_deleted_is_inserted(algorithm: str) -> None:
    player = Player(columnar, Program.parse("q(?x) :- p(?x) ."), algorithm)
    both = facts("p(1) .")
    changes = player.play(Commit(inserted=both, deleted=both))
    assert player.decode(changes.inserted) == facts("p(1) . q(1) .")
    changes = player.play(Commit(inserted=both, deleted=both))
    assert len(changes.inserted) == len(changes.deleted) == 0


# -- rules ---------------------------------------------------------------------------------------


@recursive_ones
def test_rules_that_become_recursive_and_stop(algorithm: str) -> None:
    program = Program.parse("p(?x) :- a(?x) . q(?x) :- p(?x) . a(1) . q(2) .")
    player = Player(columnar, program, algorithm)
    back = rules("p(?x) :- q(?x) .")
    player.play(Commit(added=back))
    assert player.facts == facts("a(1) . p(1) . q(1) . q(2) . p(2) .")
    player.maintainer.verify()
    player.play(Commit(deleted=facts("a(1) .")))
    assert player.facts == facts("q(2) . p(2) .")
    player.maintainer.verify()
    player.play(Commit(removed=back, inserted=facts("a(3) .")))
    assert player.facts == facts("a(3) . p(3) . q(3) . q(2) .")
    player.maintainer.verify()


@every_algorithm
def test_rules_that_introduce_negation(algorithm: str) -> None:
    player = Player(columnar, Program.parse("p(?x) :- a(?x) . a(1) . a(2) . b(2) ."), algorithm)
    change = Commit(
        removed=rules("p(?x) :- a(?x) ."),
        added=rules("p(?x) :- a(?x), NOT q(?x) . q(?x) :- b(?x) ."),
        inserted=facts("a(3) . b(3) ."),
    )
    changes = player.play(change)
    assert player.facts == facts("a(1) . a(2) . a(3) . b(2) . b(3) . q(2) . q(3) . p(1) .")
    assert player.decode(changes.deleted) == facts("p(2) .")
    assert changes.added_rules == change.added
    player.maintainer.verify()


def test_a_rule_both_removed_and_added_stays() -> None:
    program = Program.parse("p(?x) :- a(?x) . a(1) .")
    player = Player(columnar, program, "dred-c")
    changes = player.play(Commit(removed=program.rules, added=program.rules))
    assert changes.added_rules == changes.removed_rules == ()
    assert player.facts == facts("a(1) . p(1) .")
    player.maintainer.verify()


def test_removing_the_last_rule_of_a_predicate_needs_no_look_at_its_instances() -> None:
    program = Program.parse("p(?x, ?y) :- a(?x), a(?y) . a(1) . a(2) . p(1, 1) .")
    changes = Player(columnar, program, "bf").play(Commit(removed=program.rules))
    assert changes.statistics is not None
    assert changes.statistics.derivations == {}
    assert len(changes.deleted) == 3


def test_unknown_rules_and_invalid_programs_change_nothing() -> None:
    player = Player(columnar, Program.parse("p(?x) :- a(?x) . a(1) ."), "auto")
    with pytest.raises(InvalidInput) as missing:
        player.play(Commit(removed=rules("p(?x) :- b(?x) ."), inserted=facts("a(2) .")))
    assert missing.value.code == "E307"
    with pytest.raises(InvalidProgram):
        player.play(Commit(added=rules("a(?x) :- c(?x), NOT p(?x) ."), inserted=facts("a(2) .")))
    assert player.facts == facts("a(1) . p(1) .")
    assert player.maintainer.program == Program.parse("p(?x) :- a(?x) .")


# -- counting ------------------------------------------------------------------------------------


def test_counting_refuses_recursion_by_the_name_of_the_cycle() -> None:
    text = "p(?x) :- q(?x) . q(?x) :- r(?x) . r(?x) :- p(?x), a(?x) . a(1) ."
    with pytest.raises(InvalidInput) as refused:
        Player(columnar, Program.parse(text), "counting")
    assert refused.value.code == "E309"
    assert "p → q → r → p" in refused.value.message
    player = Player(columnar, Program.parse("p(?x) :- q(?x) . q(1) ."), "counting")
    with pytest.raises(InvalidInput, match="p → q → p"):
        player.play(Commit(added=rules("q(?x) :- p(?x) ."), deleted=facts("q(1) .")))
    assert player.facts == facts("p(1) . q(1) .")
    player.maintainer.verify()


def test_verify_finds_a_wrong_count_and_a_wrong_fact() -> None:
    player = Player(columnar, CLOSURE | Program.parse("e(1, 2) . e(2, 3) ."), "dred-c")
    player.maintainer.verify()
    state = player.maintainer._state
    assert state.counters is not None
    good = state.counters.nonrecursive
    wrong = player.engine.derive([*state.strata.compiled.values()], state.facts, counted=True)
    state.counters.nonrecursive = good.plus(wrong)
    with pytest.raises(OperationFailed, match="nonrecursive"):
        player.maintainer.verify()
    state.counters.nonrecursive = good
    player.maintainer.verify()
    object.__setattr__(state, "facts", state.facts.union(player.encode(facts("p(7, 7) ."))))
    with pytest.raises(OperationFailed, match="materialization"):
        player.maintainer.verify()


def test_an_unknown_algorithm() -> None:
    engine = columnar(Player(columnar, CLOSURE, "auto").dictionary)
    with pytest.raises(InvalidInput, match="unknown algorithm 'magic'"):
        Maintainer(CLOSURE, engine.facts({}), engine, Options(algorithm="magic"))


# -- aggregates ----------------------------------------------------------------------------------


@every_algorithm
def test_only_the_touched_groups_of_an_aggregate_are_evaluated(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program.parse(
        "n(?x, ?c, ?s) :- AGGREGATE(e(?x, ?y) ON ?x BIND count(?y) AS ?c BIND sum(?y) AS ?s) ."
        "many(?x) :- n(?x, ?c, ?s), FILTER(?c > 1) ."
        + "".join(f"e({x}, {y}) ." for x in range(50) for y in range(2))
    )
    player = Player(columnar, program, algorithm)
    groups: list[int] = []
    grouped = ColumnarEngine._aggregate

    def counted(engine: ColumnarEngine, *arguments: Any) -> Any:
        source = grouped(engine, *arguments)
        groups.append(len(source.relation))
        return source

    monkeypatch.setattr(ColumnarEngine, "_aggregate", counted)
    changes = player.play(Commit(inserted=facts("e(3, 7) ."), deleted=facts("e(4, 0) .")))
    assert player.decode(changes.inserted) == facts("e(3, 7) . n(3, 3, 8) . n(4, 1, 1) .")
    assert player.decode(changes.deleted) == facts("e(4, 0) . n(3, 2, 1) . n(4, 2, 1) . many(4) .")
    if algorithm != "rematerialize":
        assert groups == [2]


# -- all or nothing ------------------------------------------------------------------------------


@recursive_ones
def test_an_update_that_is_interrupted_leaves_the_old_state(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = CLOSURE | Program.parse(
        "q(?x) :- p(?x, ?x) . r(?x) :- e(?x, ?y), NOT q(?x) ."
        "e(1, 2) . e(2, 3) . e(3, 1) . e(3, 4) ."
    )
    commit = Commit(
        facts("e(4, 1) ."), facts("e(3, 1) ."), rules("q(?y) :- e(?x, ?y) ."), program.rules[2:3]
    )
    right = Player(columnar, program, algorithm)
    right.play(commit)
    player = Player(columnar, program, algorithm)
    before = player.facts
    calls = 0
    derive = ColumnarEngine.derive

    def interrupted(engine: ColumnarEngine, *arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == stop:
            raise KeyboardInterrupt
        return derive(engine, *arguments, **options)

    stop = 0
    monkeypatch.setattr(ColumnarEngine, "derive", interrupted)
    while True:
        stop, calls = stop + 1, 0
        try:
            player.play(commit)
        except KeyboardInterrupt:
            calls = -(10**9)
            assert player.facts == before
            assert player.maintainer.program == Program.of(program.rules)
            player.maintainer.verify()
        else:
            break
    assert stop > 3
    assert player.facts == right.facts


# -- Backward/Forward ----------------------------------------------------------------------------


def deletions(seed: int) -> tuple[Program, frozenset[Atom]]:
    """A program without negation and aggregates, and facts to delete."""
    program = composition(seed) if seed % 2 else dense_program(seed)
    plain = [r for r in program.rules if all(isinstance(part, Atom) for part in r.body)]
    program = Program.of(plain, program.facts)
    chosen = Random(seed).sample(sorted(program.facts, key=repr), min(3, len(program.facts)))
    return program, frozenset(chosen)


@pytest.mark.parametrize("coarse", [False, True])
def test_invariants_of_the_search(coarse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """◇, S ∩ I′ = ∅ and P = C ∩ I′ (appendix of Motik et al. 2015), after every step."""
    seen = {"steps": 0, "decided": 0, "disproved": 0}
    truth: set[Atom] = set()
    player: Player
    prove, disprove = Search.prove, Search._disprove

    def sets(search: Search[Any]) -> list[set[Atom]]:
        return [*map(player.decode, (search.checked, search.proved, search.disproved))]

    def checked_prove(search: Search[Any], goals: Any) -> Any:
        for work in prove(search, goals):
            checked, proved, disproved = sets(search)
            seen["steps"] += 1
            assert proved <= checked & truth
            assert not disproved & truth
            yield work
        checked, proved, disproved = sets(search)
        seen["decided"] += 1
        assert player.decode(goals) <= proved | disproved <= checked
        assert proved == checked & truth
        assert not disproved & truth

    def checked_disprove(search: Search[Any]) -> None:
        checked, proved, _ = sets(search)
        seen["disproved"] += 1
        known = player.decode(search.true) | checked
        for rule in player.maintainer.program.rules:
            for s in reference.instances(rule, truth):
                if reference.substitute(rule.head, s) in checked - proved:
                    body = {reference.substitute(part, s) for part in rule.body}  # type: ignore[arg-type]
                    assert body <= known
        disprove(search)

    monkeypatch.setattr(Search, "prove", checked_prove)
    monkeypatch.setattr(Search, "_disprove", checked_disprove)
    for seed in range(60):
        program, gone = deletions(seed)
        player = Player(columnar, program, "bf", coarse=coarse)
        truth.clear()
        truth |= reference.materialize(Program.of(program.rules), {*program.facts} - gone)
        player.play(Commit(deleted=gone))
        assert player.facts == truth
    assert min(seen.values()) > 20


@pytest.mark.parametrize("coarse", [False, True])
def test_no_derivation_is_considered_twice(coarse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 1: no instance in two of the derivations that delete or saturate."""
    derive, count = ColumnarEngine.derive, StratumUpdate.count
    found: dict[int, tuple[Any, list[tuple[Rule, frozenset[Any]]]]] = {}
    considered: list[tuple[Rule, frozenset[Any]]] = []

    def recorded(
        engine: ColumnarEngine, rules: Sequence[CompiledRule], facts: Any, **options: Any
    ) -> Derived[Any]:
        derived = derive(engine, rules, facts, **options)
        if not options.get("counted"):
            known, delta, heads = (
                None if part is None else frozenset(decode(part, engine.dictionary))
                for part in (facts, options.get("delta"), options.get("heads"))
            )
            assert known is not None
            sets = Sets(known, frozenset(), delta or frozenset())
            instances = [
                (rule.source, frozenset(s.items()))
                for rule in rules
                for s in (sets.instances if delta is None else sets.new_instances)(rule.source)
                if heads is None or reference.substitute(rule.source.head, s) in heads
            ]
            if heads is not None and delta is None:  # one instance of a head is enough
                assert len(derived.facts) <= derived.instances <= len(instances)
            else:
                assert derived.instances == len(instances)
            found[id(derived)] = derived, instances
        return derived

    def labelled(update: StratumUpdate[Any], phase: str, derived: Derived[Any]) -> Derived[Any]:
        if phase in ("saturation", "deletion propagation"):
            considered.extend(found[id(derived)][1])
        return count(update, phase, derived)

    monkeypatch.setattr(ColumnarEngine, "derive", recorded)
    monkeypatch.setattr(StratumUpdate, "count", labelled)
    total = 0
    for seed in range(40):
        program, gone = deletions(seed)
        player = Player(columnar, program, "bf", coarse=coarse)
        found.clear()
        considered.clear()
        player.play(Commit(deleted=gone))
        assert len(considered) == len(set(considered))
        total += len(considered)
    assert total > 200


def test_facts_with_many_proofs_are_cheap_to_check() -> None:
    """A clique from random edges: the proof of a deleted edge is a short path."""
    random = Random(1)
    edges = {(random.randrange(40), random.randrange(40)) for _ in range(160)}
    program = Program.parse(
        "r(?y, ?x) :- r(?x, ?y) . r(?x, ?z) :- r(?x, ?y), r(?y, ?z) ."
        + "".join(f"r({a}, {b}) ." for a, b in edges)
    )
    gone = Commit(deleted=frozenset(program.facts[:1]))
    work = {}
    for algorithm in ("dred", "bf"):
        changes = Player(columnar, program, algorithm, modules=False).play(gone)
        assert changes.statistics is not None
        work[algorithm] = sum(changes.statistics.derivations.values())
        assert len(changes.deleted) == 0
    assert work["dred"] > 100_000
    assert work["bf"] < 300


# -- auto ----------------------------------------------------------------------------------------


def reason(player: Player, commit: Commit) -> str:
    changes = player.play(commit)
    assert changes.statistics is not None
    assert changes.statistics.algorithm == "auto"
    return changes.statistics.reason


def test_auto_says_what_it_chose() -> None:
    nodes = "".join(f"e({n}, {n + 1}) ." for n in range(300))
    program = CLOSURE | Program.parse("q(?x) :- e(?x, ?y) . " + nodes)
    for modules, recursive in ((True, "modules in 1 stratum"), (False, "stratum with recursion")):
        player = Player(columnar, program, "auto", modules=modules)
        assert reason(player, Commit()) == "no stratum is touched"
        said = reason(player, Commit(deleted=facts("e(299, 300) .")))
        assert "a check in 1 stratum without recursion" in said
        assert recursive in said
    everything = Commit(deleted=frozenset(program.facts))
    assert reason(player, everything).startswith("rematerialized: 299 of 299 explicit facts")


def test_auto_counts_what_rules_read() -> None:
    """Facts that no rule reads or derives are no reason to derive everything anew."""
    edges = "".join(f"e({n}, {n + 1}) ." for n in range(300))
    player = Player(columnar, CLOSURE | Program.parse(edges), "auto")
    more = "".join(f"unread({n}, {n + 1}) ." for n in range(3_000))
    assert reason(player, Commit(inserted=facts(more))) == "no stratum is touched"
    both = Commit(inserted=facts("e(7, 3) ."), deleted=facts(more))
    assert reason(player, both) == "modules in 1 stratum"


def test_auto_gives_up_a_search_that_takes_too_long() -> None:
    """Two halves of a clique that come apart: many facts to check for each one that is lost."""
    halves = [(a, b) for half in (0, 10) for a in range(half, half + 10) for b in (half, half + 3)]
    program = Program.parse(
        "r(?y, ?x) :- r(?x, ?y) . r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . r(0, 10) ."
        + "".join(f"r({a}, {b}) ." for a, b in halves)
    )
    gone = Commit(deleted=facts("r(0, 10) ."))
    player = Player(columnar, program, "auto", modules=False)
    with thresholds(hard_search_facts_limit=4):
        said = reason(player, gone)
    assert said == "DRed, faster than Backward/Forward, in 1 stratum with recursion"
    modular = Player(columnar, program, "auto")
    said = reason(modular, gone)
    assert said == "modules in 1 stratum"
    assert modular.facts == player.facts
    left = {*program.facts} - facts("r(0, 10) .")
    assert player.facts == reference.materialize(Program.of(program.rules), left)


def test_auto_is_deterministic() -> None:
    """The race between two algorithms takes the same course every time."""
    edges = [(n, (7 * n + k) % 60) for n in range(60) for k in (1, 5)]
    program = CLOSURE | Program.parse("".join(f"e({a}, {b}) ." for a, b in edges))
    gone = Commit(deleted=facts("".join(f"e({a}, {b}) ." for a, b in edges[:6])))
    runs = []
    for _ in range(3):
        player = Player(columnar, program, "auto", modules=False)
        with thresholds(hard_search_facts_limit=4):
            runs.append(player.play(gone).statistics)
    assert runs[0] is not None
    assert {"checked", "overdeleted"} <= runs[0].considered.keys(), "both algorithms ran"
    assert runs[0] == runs[1] == runs[2]
