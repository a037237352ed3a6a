"""Rules as written, and the choice among ways to evaluate them: what follows from scratch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import Any

import pytest

from corollary.algorithms.reasoner import Options
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE
from corollary.rdf.rulesets import rules
from corollary.reasoning.as_written import AsWrittenReasoner, closed_schema
from corollary.reasoning.materialized import materializing_reasoner
from corollary.reasoning.specialization import SpecializedReasoner
from corollary.reasoning.templates import schema_predicates
from corollary.testing import thresholds
from tests.configurations import History, Triple, as_triple
from tests.effort import first
from tests.engines.spark.inline import inline
from tests.random_ontologies import known as named
from tests.random_ontologies import random_history

DOMAIN = named("rdfs:domain")


def facts_of(engine: Any, triples: Iterable[Triple]) -> Any:
    """Triples as facts of an engine."""
    text = "".join(f"[{s}, {p}, {o}] ." for s, p, o in triples)
    return engine.facts(encode(Program.parse(text).facts, engine.dictionary))


def triples_of(engine: Any, facts: Any) -> frozenset[Triple]:
    """The triples among the facts of an engine."""
    atoms = decode(facts, engine.dictionary)
    return frozenset(as_triple(atom) for atom in atoms if atom.relation == TRIPLE)


def replay(
    history: History, make_engine: Any, make: Any, options: Options[Any] | None = None
) -> None:
    """Materialize, apply the changes, and compare with what follows from scratch."""
    engine = make_engine(Dictionary())
    first = history.states[0]
    axioms = [as_triple(fact) for fact in first.program.axioms]
    kept = make(
        first.program.without_facts(),
        facts_of(engine, [*first.explicit, *axioms]),
        engine,
        options,
    )
    known = triples_of(engine, kept.facts)
    assert known == first.triples
    for change, state in zip(history.changes, history.states[1:], strict=True):
        done = kept.update(
            Changes(
                facts_of(engine, change.inserted),
                facts_of(engine, change.deleted - {*axioms}),
                change.added,
                change.removed,
            )
        )
        found = triples_of(engine, kept.facts)
        assert found == state.triples, str(history)
        assert triples_of(engine, done.inserted) == found - known
        assert triples_of(engine, done.deleted) == known - found
        known = found


def replicating(dictionary: Dictionary, program: Program, **options: Any) -> Any:
    """An engine in partitions that replicates the schema."""
    return inline(dictionary, replicated=schema_predicates(program), **options)


def sizes_of(seed: int) -> dict[str, Any]:
    """Sizes of an engine at which nothing, some or most of the facts are on the driver."""
    random = Random(seed)
    small, finish = random.choice((0, 3, 30)), random.choice((0, 4, 50))
    return {"small": small, "finish": finish, "tiny": random.choice((0, 2, 10))}


@pytest.mark.parametrize("seed", range(8))
def test_columnar(seed: int) -> None:
    replay(random_history(seed), ColumnarEngine, AsWrittenReasoner)


@pytest.mark.parametrize("seed", [*range(20, 28), 47])
def test_partitions(seed: int) -> None:
    history = random_history(seed, changes=3)
    make = partial(replicating, program=history.program, **sizes_of(seed))
    replay(history, make, AsWrittenReasoner, Options(coarse=True))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30, 90))
def test_many_partitions(seed: int) -> None:
    history = random_history(seed)
    make = partial(replicating, program=history.program, **sizes_of(seed))
    replay(history, make, AsWrittenReasoner, Options(coarse=True))


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_medium(seed: int) -> None:
    history = random_history(seed, "medium", changes=2)
    make = partial(replicating, program=history.program, **sizes_of(seed))
    replay(history, make, AsWrittenReasoner, Options(coarse=True))


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_thresholds(seed: int) -> None:
    """Rules are specialized to few axioms and general for many, replicated or not."""
    history = random_history(seed, changes=3)
    limits = {"distributed_rules_limit": 0, "replicated_facts_limit": 2 * seed}
    for axioms in (0, 5, 1000):
        with thresholds(**(limits | {"distributed_rules_limit": axioms})):
            replay(
                history,
                partial(inline, **sizes_of(seed)),
                materializing_reasoner,
                Options(coarse=True),
            )


def test_choice_by_rules() -> None:
    text = "[<A>, rdfs:subClassOf, <B>] . [<B>, rdfs:subClassOf, <C>] . [<x>, a, <A>] ."
    for limit, expected in (
        (1, AsWrittenReasoner),  # fewer than the axioms
        (2, AsWrittenReasoner),  # fewer than the rules
        (3, SpecializedReasoner),
    ):
        engine: Any = inline(Dictionary())
        facts = engine.facts(encode(Program.parse(text).facts, engine.dictionary))
        with thresholds(distributed_rules_limit=limit):
            kept: Any = materializing_reasoner(rules("rhodf"), facts, engine)
        assert type(kept._inner) is expected
        assert len(kept.facts) == 6
        kept.verify()


def test_known_facts() -> None:
    """A maintainer that begins with known facts derives what changes, as a store's does."""
    history = random_history(3)
    first, second = history.states[:2]
    for make in (ColumnarEngine, partial(replicating, program=history.program, small=3)):
        engine: Any = make(Dictionary())
        program = first.program.without_facts()
        explicit = facts_of(engine, [*first.explicit, *map(as_triple, first.program.axioms)])
        once = AsWrittenReasoner(program, explicit, engine, Options(coarse=True))
        again = AsWrittenReasoner(program, explicit, engine, Options(known=once.facts, coarse=True))
        assert triples_of(engine, again.all_facts) == first.triples
        change = history.changes[0]
        again.update(
            Changes(
                facts_of(engine, change.inserted),
                facts_of(engine, change.deleted - {*map(as_triple, first.program.axioms)}),
                change.added,
                change.removed,
            )
        )
        assert triples_of(engine, again.facts) == second.triples


def test_schema_is_closed() -> None:
    """What follows from axioms alone is known before the first round."""
    text = (
        "[<A>, rdfs:subClassOf, <B>] . [<B>, rdfs:subClassOf, <C>] ."
        "[<p>, rdfs:domain, <A>] . [<x>, <p>, <y>] ."
    )
    engine = ColumnarEngine(Dictionary())
    facts = engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    closed = triples_of(engine, closed_schema(rules("owl-rl"), facts, engine))
    assert ("<p>", DOMAIN, "<C>") in closed
    assert all(subject in ("<A>", "<B>", "<C>", "<p>") for subject, _, _ in closed)


def test_types_stay_at_their_subjects() -> None:
    """Types are derived where they are: nothing is exchanged, however long the chain of classes."""
    chain = "".join(f"[<C{n}>, rdfs:subClassOf, <C{n + 1}>] ." for n in range(20))
    data = "".join(f"[<x{n}>, a, <C{n % 20}>] ." for n in range(60))
    for replicated in (True, False):
        engine: Any = inline(Dictionary(), small=0, finish=0, tiny=0)
        facts = engine.facts(encode(Program.parse(chain + data).facts, engine.dictionary))
        limits = {} if replicated else {"replicated_facts_limit": 0}
        with thresholds(distributed_rules_limit=0, **limits):
            kept = materializing_reasoner(rules("rhodf"), facts, engine, Options(coarse=True))
        assert len(kept.facts) == 20 * 21 // 2 + 3 * (20 * 21 // 2 + 20)
        assert (sum(report.exchanged for report in engine.reports) == 0) is replicated
