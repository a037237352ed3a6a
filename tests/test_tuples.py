"""Rules evaluated tuple at a time, compared with the reference evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import corollary as co
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.tuples import layout as at
from corollary.engines.tuples.program import is_supported
from corollary.errors import LimitReached, OperationFailed
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Rule, is_auxiliary
from corollary.reasoning.adaptive import AdaptiveReasoner
from corollary.reasoning.as_written import AsWrittenReasoner
from corollary.reasoning.specialization import SpecializedReasoner
from corollary.reasoning.tuples import TupleReasoner
from corollary.testing import draw, thresholds
from tests.effort import first
from tests.streams import Commit, stream

SUBCLASSES = "[?x, a, ?d] :- [?x, a, ?c], [?c, rdfs:subClassOf, ?d] ."


def _supported(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if is_supported([rule]))


class Player:
    """A maintainer that speaks in atoms."""

    def __init__(self, program: Program) -> None:
        self.dictionary = Dictionary()
        self.engine = ColumnarEngine(self.dictionary)
        rules = Program.of(_supported(program.rules))
        self.kept: TupleReasoner[Any] = TupleReasoner(
            rules, self.encode(program.facts), self.engine
        )

    def encode(self, atoms: Any) -> Any:
        return self.engine.facts(encode(atoms, self.dictionary))

    def decode(self, facts: Any) -> set[Atom]:
        return set(decode(facts, self.dictionary))

    def play(self, commit: Commit) -> Changes[Any]:
        return self.kept.update(
            Changes(
                self.encode(commit.inserted),
                self.encode(commit.deleted),
                _supported(commit.added),
                _supported(commit.removed),
            )
        )

    def reopen(self) -> None:
        kept = self.kept
        self.kept = TupleReasoner(kept.program, kept.explicit, self.engine, known=kept.facts)

    def expected(self) -> set[Atom]:
        found = reference.materialize(self.kept.program, self.decode(self.kept.explicit))
        return {fact for fact in found if not is_auxiliary(fact.relation)}


def check_stream(seed: int, limits: dict[str, int]) -> None:
    """Play a stream; after each commit, compare facts and changes with the oracle."""
    random = Random(seed)
    case = stream(seed, commits=8)
    with thresholds(**limits):
        player = Player(case.program)
        before = player.expected()
        assert player.decode(player.kept.facts) == before
        for commit in case.commits:
            if random.random() < 0.2:
                player.reopen()
            done = player.play(commit)
            after = player.expected()
            assert player.decode(player.kept.facts) == after
            assert player.decode(done.inserted) == after - before
            assert player.decode(done.deleted) == before - after
            player.kept.verify()
            before = after


@pytest.mark.parametrize("seed", first(10, range(40)))
def test_oracle_streams(seed: int) -> None:
    limits = draw(seed) if seed % 4 else {}
    limits |= {"least_tuple_steps": 1 << 40}  # no other way of evaluation is there
    check_stream(seed, limits)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_oracle_more_streams(seed: int) -> None:
    check_stream(seed, draw(seed) | {"least_tuple_steps": 1 << 40})


def test_reads_no_rule_of_an_earlier_program() -> None:
    """Where a run stopped says nothing of the rules of the next one, which may be fewer."""
    player = Player(Program.parse("q(?x) :- p(?x) . r(?x) :- q(?x) . p(1) ."))
    player.play(Commit())
    index = player.kept._index
    assert index is not None
    index._control[at.RULE] = 1 << 48  # beyond all memory
    player.play(Commit(frozenset(Program.parse("p(2) .").facts)))
    assert player.decode(player.kept.facts) == player.expected()


@pytest.mark.parametrize(
    "rules",
    [
        "q(?x) :- p(?x), NOT r(?x) .",
        "q(?x, ?n) :- p(?x), AGGREGATE(r(?x, ?y) ON ?x BIND COUNT(?y) AS ?n) .",
        "q(?a, ?b, ?c, ?d) :- p(?a, ?b), p(?c, ?d) .",
        "q(?x) :- p(?x, ?y), FILTER(?x < ?y) .",
        f"q(?x0) :- {', '.join(f'p(?x{n}, ?x{n + 1})' for n in range(13))} .",
        "q(?x) :- p(?x, ?y), FILTER(" + " && ".join(["sameValue(?x, ?y)"] * 6) + ") .",
    ],
)
def test_refuses_rules_for_other_evaluation(rules: str) -> None:
    assert not is_supported(Program.parse(rules).rules)


@pytest.mark.parametrize(
    "rules",
    [
        "q(1) :- e(?x, ?y) . e(1, 2) . e(2, 3) .",  # nothing is bound in a check
        "q(?x, ?y) :- n(?x), n(?y) . n(1) . n(2) . n(3) .",
        "q(?x, ?y) :- [?x, ?p, ?z], [?y, ?q, ?w] . [<a>, <p>, <b>] . [<c>, <q>, <a>] .",
        "q() :- e(?x, ?x) . e(1, 1) . e(1, 2) .",
        "q(?x) :- e(?x, ?y, ?x) . e(1, 2, 1) . e(1, 2, 3) .",
        "[?x, ?x, ?y] :- [?x, ?y, ?y] . [<a>, <b>, <b>] . [<b>, <b>, <b>] .",
        "q(?x, ?y) :- [?x, ?p, ?y], r(?p) . r(<p>) . [<a>, <p>, <b>] . [<a>, <q>, <b>] .",
        "_l(?x) :- [?s, ?p, ?x], FILTER(isLiteral(?x)) . q(?x, ?y) :- _l(?x), _l(?y),"
        ' FILTER(sameValue(?x, ?y)) . [<a>, <p>, 1] . [<a>, <p>, "01"^^xsd:integer] .',
        "_l(?x) :- [?s, ?p, ?x], FILTER(isLiteral(?x)) . q(?x, ?y) :- _l(?x), _l(?y),"
        ' FILTER(!sameValue(?x, ?y)) . [<a>, <p>, 1] . [<a>, <p>, "x"^^xsd:integer] .'
        " [<a>, <p>, 2] .",
        "q(?x, ?d) :- [?s, <p>, ?x], [?d, a, rdfs:Datatype], FILTER(hasDatatype(?x, ?d)) ."
        " [<a>, <p>, 300] . [xsd:byte, a, rdfs:Datatype] . [xsd:int, a, rdfs:Datatype] .",
        "q(?x) :- p(?x, ?y), FILTER(?y * 2 > 5 && !sameTerm(?x, ?y)) ."
        " p(1, 2) . p(3, 3) . p(1, 3) .",
    ],
)
@pytest.mark.parametrize("room", [1, 1024])
def test_oracle_shapes_of_rules(rules: str, room: int) -> None:
    program = Program.parse(rules)
    with thresholds(tuple_least_room=room, tuple_slice_steps=room):
        player = Player(program)
        assert player.decode(player.kept.facts) == player.expected()
        for fact in program.facts:
            for commit in (Commit(deleted=frozenset([fact])), Commit(inserted=frozenset([fact]))):
                player.play(commit)
                assert player.decode(player.kept.facts) == player.expected()
                player.kept.verify()


def test_deletion_of_most_facts_derives_everything_again() -> None:
    members = "".join(f"[<x{n}>, a, <c>] ." for n in range(9))
    program = Program.parse(f"{SUBCLASSES} {members} [<c>, rdfs:subClassOf, <d>] .")
    with thresholds(least_update_steps=0):
        player = Player(program)
        done = player.play(Commit(deleted=frozenset(program.facts[:6])))
    assert done.statistics is not None
    assert "rematerialized" in done.statistics.reason
    assert player.decode(player.kept.facts) == player.expected()


def test_deletion_of_much_derives_everything_again() -> None:
    edges = "".join(f"[<c{n}>, rdfs:subClassOf, <c{n + 1}>] ." for n in range(40))
    program = Program.parse(
        "[?c, rdfs:subClassOf, ?e] :- [?c, rdfs:subClassOf, ?d], [?d, rdfs:subClassOf, ?e] ."
        f"{SUBCLASSES} [<x>, a, <c0>] . {edges}"
    )
    for limit, reason in ((0, "rematerialized"), (1 << 40, "DRed")):
        with thresholds(least_update_steps=limit):
            player = Player(program)
            done = player.play(Commit(deleted=frozenset(program.facts[2:20])))
            assert done.statistics is not None
            assert reason in done.statistics.reason
            assert player.decode(player.kept.facts) == player.expected()


def test_cost_of_a_deletion_is_projected_from_a_sample() -> None:
    classes = "".join(f"[<c{n}>, rdfs:subClassOf, <c{n + 1}>] ." for n in range(9))
    members = "".join(f"[<x{n}>, a, <c{n % 9}>] ." for n in range(200))
    program = Program.parse(f"{SUBCLASSES} {classes} {members}")
    with thresholds(least_update_steps=0, sampled_deletions_minimum=8):
        for deleted, reason in ((10, "DRed"), (60, "rematerialized"), (150, "rematerialized")):
            player = Player(program)
            before = player.decode(player.kept.facts)
            done = player.play(Commit(deleted=frozenset(program.facts[9 : 9 + deleted])))
            assert done.statistics is not None
            assert reason in done.statistics.reason
            assert player.decode(done.deleted) == before - player.decode(player.kept.facts)
            assert not len(done.inserted)
            player.kept.verify()


def test_witness_of_a_sample_may_be_deleted_later() -> None:
    chain = [f"[<x>, a, <c{n}>] ." for n in range(20)]
    rules = "".join(f"[?x, a, <d>] :- [?x, a, <c{n}>] ." for n in range(20))
    program = Program.parse(f"{rules} [?x, a, <e>] :- [?x, a, <d>] . {''.join(chain)}")
    with thresholds(sampled_deletions_minimum=1, least_update_steps=1 << 40):
        player = Player(program)
        done = player.play(Commit(deleted=frozenset(program.facts)))
        assert done.statistics is not None
        assert "rematerialized" not in done.statistics.reason
        assert player.decode(player.kept.facts) == set()
        player.kept.verify()


def test_index_is_made_again_when_most_facts_are_dead() -> None:
    player = Player(Program.parse("q(?x) :- p(?x) ."))
    facts = Program.parse("".join(f"p({n}) ." for n in range(4000))).facts
    player.play(Commit(inserted=frozenset(facts)))
    player.play(Commit(deleted=frozenset(facts[10:])))
    player.play(Commit(inserted=frozenset(facts[5:20])))
    assert player.decode(player.kept.facts) == player.expected()
    player.kept.verify()


def test_failed_update_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program.parse(f"{SUBCLASSES} [<x>, a, <c>] . [<c>, rdfs:subClassOf, <d>] .")
    player = Player(program)
    before = player.expected()

    def stop(index: Any) -> None:
        raise KeyboardInterrupt

    commit = Commit(
        inserted=frozenset(Program.parse("[<y>, a, <c>] .").facts),
        deleted=frozenset(program.facts[:1]),
    )
    with thresholds(tuple_slice_steps=1):
        monkeypatch.setattr(player.kept, "_check", stop)
        with pytest.raises(KeyboardInterrupt):
            player.play(commit)
        assert player.decode(player.kept.facts) == before
        monkeypatch.undo()
        player.play(commit)
    assert player.decode(player.kept.facts) == player.expected() != before


def _classes(number: int) -> Iterator[str]:
    for n in range(number):
        yield f"<urn:c{n}> rdfs:subClassOf <urn:c{n + 1}> . <urn:x{n}> a <urn:c{n}> ."


def test_limits_of_the_engine_hold() -> None:
    engine = ColumnarEngine(Dictionary(), limit_facts=50)
    text = "".join(f"[<c{n}>, rdfs:subClassOf, <c{n + 1}>] . [<x>, a, <c0>] ." for n in range(99))
    facts = engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    with thresholds(tuple_slice_steps=10), pytest.raises(LimitReached):
        TupleReasoner(Program.parse(SUBCLASSES), facts, engine)
    with pytest.raises(OperationFailed) as caught:
        co.KnowledgeBase(co.rules("owl-rl"), limit_memory=1)
    assert caught.value.code == "E406"


def _inner(kb: co.KnowledgeBase) -> type:
    kept = kb.state.reasoner
    assert isinstance(kept, AdaptiveReasoner)
    return type(kept._inner)


def test_data_decide_how_rules_are_evaluated() -> None:
    kb = co.KnowledgeBase(co.rules("rhodf"))
    plain = co.KnowledgeBase(co.rules("rhodf"), specialize=False)
    with thresholds(tuple_facts_limit=100, tuple_facts_of_axiom=10):
        for text in (
            "\n".join(_classes(12)),
            "\n".join(f"<urn:y{n}> a <urn:c3> ." for n in range(400)),
        ):
            for one in (kb, plain):
                with one.transaction() as tx:
                    tx.insert(text)
            assert kb.count() == plain.count()
        assert _inner(kb) is SpecializedReasoner
        for one in (kb, plain):
            with one.transaction() as tx:
                tx.delete(text)
        assert _inner(kb) is TupleReasoner
        assert kb.count() == plain.count()


def test_explicit_facts_of_auxiliary_relations_are_no_results() -> None:
    """Whether rules mention the relation or not."""
    player = Player(Program.parse("q(?x) :- p(?x), _read(?x) . p(1) . _read(1) . _unread(2) ."))
    assert player.decode(player.kept.facts) == player.expected()
    player.play(Commit(inserted=frozenset(Program.parse("_other(3) .").facts)))
    assert player.decode(player.kept.facts) == player.expected()
    player.kept.verify()


def test_axioms_about_types_reach_all_classes() -> None:
    """Rules that read any property read rdf:type as well, once an axiom is about it."""
    kb = co.KnowledgeBase(co.rules("rhodf"))
    plain = co.KnowledgeBase(co.rules("rhodf"), specialize=False)
    for text in (
        "<urn:x> a <urn:C> . <urn:y> a <urn:D> .",
        "rdf:type rdfs:subPropertyOf <urn:is> . <urn:kind> rdfs:subPropertyOf rdf:type .",
        "<urn:z> a <urn:C> . <urn:z> <urn:kind> <urn:D> . <urn:v> a <urn:E> .",
        "rdf:type rdfs:domain <urn:Thing> .",
        "<urn:w> a <urn:D> .",
    ):
        for one in (kb, plain):
            with one.transaction() as tx:
                tx.insert(text)
        kb.state.reasoner.verify()
        assert kb.count() == plain.count()
    assert _inner(kb) is TupleReasoner


@pytest.mark.parametrize("share", [1, 1 << 40])
def test_updates_of_many_specialized_rules_use_an_index(share: int) -> None:
    limits = {"tuple_facts_limit": 0, "tuple_facts_of_axiom": 0, "index_memory_share": share}
    kb = co.KnowledgeBase(co.rules("owl-rl"))
    members = [f"<urn:y{n}> a <urn:c{n % 12}> ; <urn:p> <urn:y{n // 2}> ." for n in range(50)]
    with thresholds(**limits):
        with kb.transaction() as tx:
            tx.insert("\n".join([*_classes(12), *members]))
        assert _inner(kb) is SpecializedReasoner
        with thresholds(specialized_rules_limit=3, facts_of_specialized_rule=1):
            for text in ("<urn:new> a <urn:c3> .", "<urn:c3> rdfs:subClassOf <urn:c5> ."):
                for change in ("insert", "delete", "insert"):
                    with kb.transaction() as tx:
                        getattr(tx, change)(text)
                    kb.state.reasoner.verify()
                    assert _inner(kb) is (TupleReasoner if share == 1 else SpecializedReasoner)
        # A change of much more data is a matter of whole relations again.
        with kb.transaction() as tx:
            tx.insert("\n".join(f"<urn:z{n}> a <urn:c{n % 12}> ." for n in range(500)))
        assert _inner(kb) is SpecializedReasoner
        kb.state.reasoner.verify()


@pytest.mark.parametrize("algorithm", ["auto", "dred", "bf-c", "rematerialize"])
@pytest.mark.parametrize("name", ["rdfs", "owl-rl"])
def test_rules_stay_as_written_if_there_are_many(name: str, algorithm: str) -> None:
    """Whether a load, an update or a derived axiom asks for too many; and with data, few again."""
    kb = co.KnowledgeBase(co.rules(name), algorithm=algorithm)
    plain = co.KnowledgeBase(co.rules(name), specialize=False)
    limits = {"specialized_rules_limit": 200, "tuple_facts_limit": 0, "tuple_facts_of_axiom": 0}
    below = "<urn:below> rdfs:subPropertyOf rdfs:subClassOf . <urn:c2> <urn:below> <urn:d> ."
    data = "".join(f"<urn:y{n}> <urn:p{n % 7}> <urn:y{n // 2}> ." for n in range(99))
    evaluated = []
    with thresholds(**limits, facts_of_specialized_rule=9, index_memory_share=1 << 40):
        for inserted, deleted in (
            ("".join(_classes(4)), ""),
            (below, ""),
            ("".join(_classes(24)), ""),
            ("<urn:new> a <urn:c3> .", "<urn:c2> <urn:below> <urn:d> ."),
            (data.replace("urn:y", "urn:z") + data + data.replace("urn:y", "urn:v"), ""),
            (below, "".join(_classes(24))),
        ):
            for one in (kb, plain):
                with one.transaction() as tx:
                    tx.delete(deleted or "# nothing")
                    tx.insert(inserted)
            assert kb.count() == plain.count()
            rows = (
                {str(row) for row in one.facts("[?x, a, ?c]").to_pylist()} for one in (kb, plain)
            )
            assert next(rows) == next(rows)
            evaluated.append(_inner(kb))
    kb.state.reasoner.verify()
    assert {SpecializedReasoner, AsWrittenReasoner} <= {*evaluated}, evaluated


def test_many_derivations_are_evaluated_over_whole_relations() -> None:
    limits = {"least_tuple_steps": 0, "tuple_steps_of_fact": 20, "tuple_slice_steps": 100}
    every_pair = "[<urn:all>, <urn:met>, <urn:all>] :- [?x, <urn:p>, ?y], [?z, <urn:p>, ?w] ."
    text = "".join(f"<urn:{n}> <urn:p> <urn:{n + 1}> ." for n in range(60))
    with thresholds(**limits):
        kb = co.KnowledgeBase(co.rules("owl-rl") | co.Program.parse(every_pair))
        with kb.transaction() as tx:
            tx.insert(text)
        assert _inner(kb) is SpecializedReasoner
    assert kb.count("[?x, <urn:met>, ?y]") == 1


@pytest.mark.parametrize("room", [1, 1024])
def test_oracle_changes_of_rules(room: int) -> None:
    """Rules that need other indexes, relations without rules so far, values, and both at once."""
    base = "p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- p(?x, ?y), p(?y, ?z) ."
    facts = "e(1, 2) . e(2, 3) . e(3, 1) . r(2) . [<a>, <v>, 1] . [<b>, <v>, 01] ."
    changes = [
        ("q(?x) :- p(?x, ?y), r(?y) .", ""),
        ("s(?x, ?y) :- [?x, <v>, ?m], [?y, <v>, ?n], FILTER(sameValue(?m, ?n)) .", ""),
        ("p(?y, ?x) :- p(?x, ?y) .", "p(?x, ?z) :- p(?x, ?y), p(?y, ?z) ."),
        ("", "p(?x, ?y) :- e(?x, ?y) ."),
        ("p(?x, ?y) :- e(?y, ?x) .", "q(?x) :- p(?x, ?y), r(?y) ."),
        ("all(?x, ?p, ?y) :- [?x, ?p, ?y] .", ""),
        ("", "s(?x, ?y) :- [?x, <v>, ?m], [?y, <v>, ?n], FILTER(sameValue(?m, ?n)) ."),
    ]
    with thresholds(tuple_least_room=room, tuple_slice_steps=room):
        player = Player(Program.parse(base + facts))
        for added, removed in changes:
            before = player.expected()
            done = player.play(
                Commit(
                    added=Program.parse(added).rules if added else (),
                    removed=Program.parse(removed).rules if removed else (),
                    deleted=frozenset(Program.parse("e(2, 3) .").facts),
                )
            )
            after = player.expected()
            assert player.decode(player.kept.facts) == after
            assert player.decode(done.inserted) == after - before
            assert player.decode(done.deleted) == before - after
            assert done.statistics is not None
            assert "rematerialized" not in done.statistics.reason
            player.kept.verify()
            player.play(Commit(inserted=frozenset(Program.parse("e(2, 3) .").facts)))
            assert player.decode(player.kept.facts) == player.expected()


def test_rules_of_users_are_added_and_removed() -> None:
    kb = co.KnowledgeBase(co.rules("rhodf"))
    with kb.transaction() as tx:
        tx.insert("<urn:x> a <urn:C> . <urn:C> rdfs:subClassOf <urn:D> .")
    assert _inner(kb) is TupleReasoner
    with kb.transaction() as tx:
        tx.add_rules("[?x, <urn:p>, ?c] :- [?x, a, ?c] .")
    assert [str(sign) for sign, _ in tx.changes].count("+") == 2
    assert kb.count("[<urn:x>, <urn:p>, ?c]") == 2
    with kb.transaction() as tx:
        tx.add_rules("q(?x, ?c) :- [?x, a, ?c], NOT [?x, <urn:p>, ?c] .")
    assert _inner(kb) is SpecializedReasoner
    with kb.transaction() as tx:
        tx.remove_rules("[?x, <urn:p>, ?c] :- [?x, a, ?c] .")
    assert kb.count("q(<urn:x>, ?c)") == 2
