"""Look-ups are bounded by the facts that they answer, not only by the ids that they ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Options
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark.base import TooManyFacts
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom
from corollary.testing import thresholds
from tests.engines.spark.inline import inline

RULES = Program.parse("""
member(?x, ?c) :- part(?x, ?h), group(?h, ?c) .
pair(?x, ?y) :- part(?x, ?h), near(?h, ?y) .
""")
SPOKES, SMALL = 600, 20


def facts(spokes: int) -> Program:
    """A hub with many parts, and some other facts."""
    lines = [f"part({n}, 100000) ." for n in range(spokes)]
    lines += [f"part({n}, {n + 1}) . group({n + 1}, {n % 7}) ." for n in range(40)]
    lines += ["group(100000, 1) . group(100000, 2) . near(100000, 5) . near(3, 4) ."]
    return Program.parse("\n".join(lines))


def test_a_task_stops_at_the_limit() -> None:
    dictionary = Dictionary()
    engine: Any = inline(dictionary, small=SMALL)
    base = engine.facts(encode(facts(SPOKES).facts, dictionary)).base
    hub = dictionary.encode(Program.parse("p(100000) .").facts[0].constants())
    part = Predicate("part")
    with pytest.raises(TooManyFacts):
        base.fetch({part: {1: hub}}, limit=SMALL)
    few = np.unique(dictionary.encode(Program.parse("p(7) .").facts[0].constants()))
    # What failed has left nothing behind; whole relations and few facts are no concern of it.
    assert len(base.fetch({part: {1: few}}, limit=SMALL)) == 1
    assert len(base.fetch({part: None}, limit=SMALL)) == SPOKES + 40
    assert len(base.fetch({part: {1: hub}}, limit=SMALL)) >= SPOKES


def look_up_subjects(subjects: int, predicates: int) -> int:
    """Probe a fact, then look up others of its subject; return the number of jobs."""
    limits = {"prefetched_subjects_limit": subjects, "prefetched_predicates_limit": predicates}
    jobs: list[int] = []
    with thresholds(**limits):
        dictionary = Dictionary()
        engine: Any = inline(dictionary, small=SMALL)
        base = engine.facts(encode(facts(SPOKES).facts, dictionary)).base
        real = engine.run.collect_by_partition

        def count(frame: Any) -> Any:
            jobs.append(1)
            return real(frame)

        engine.run.collect_by_partition = count
        some = Program.parse("part(3, 4) . part(4, 9) . near(3, 4) .")
        probed = engine.run.embedded.facts(encode(some.facts, dictionary))
        assert len(base.probe(probed)) == 2
        three = np.unique(dictionary.encode(Program.parse("p(3) .").facts[0].constants()))
        found = base.fetch({Predicate("group"): {0: three}, Predicate("part"): {0: three}})
        expected = Program.parse("group(3, 2) . part(3, 4) .").facts
        assert {*expected} <= {*decode(found, dictionary)}
    return len(jobs)


def test_the_facts_of_a_subject_are_fetched_together() -> None:
    assert look_up_subjects(1_000, 5_000) == 1
    assert look_up_subjects(0, 5_000) == 2
    assert look_up_subjects(1_000, 0) == 2


@pytest.mark.parametrize("algorithm", ["dred", "bf", "fp", "dred-c", "counting"])
@pytest.mark.parametrize("spokes", [4, SPOKES])
def test_updates_of_a_hub(algorithm: str, spokes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit all facts are planned over, in tasks; the driver never holds them."""
    changes = [
        (Program.parse("group(100000, 1) ."), Program()),
        (Program.parse("near(100000, 5) . part(3, 4) ."), Program.parse("group(100000, 9) .")),
    ]
    found: list[list[frozenset[Atom]]] = []
    asked: list[int] = []
    for make in (ColumnarEngine, lambda d: inline(d, small=SMALL)):
        dictionary = Dictionary()
        engine: Any = make(dictionary)
        explicit = engine.facts(encode(facts(spokes).facts, dictionary))
        maintainer = Maintainer(RULES, explicit, engine, Options(algorithm=algorithm))
        if make is not ColumnarEngine:
            real = engine.run.collect_by_partition

            def count(frame: Any, real: Any = real) -> Any:
                tables = real(frame)
                asked.append(sum(len(rows) for part in tables.values() for rows in part.values()))
                return tables

            monkeypatch.setattr(engine.run, "collect_by_partition", count)
        states = []
        for deleted, inserted in changes:
            gone, new = (engine.facts(encode(p.facts, dictionary)) for p in (deleted, inserted))
            maintainer.update(Changes(new, gone))
            counted = len(asked)
            states.append(frozenset(decode(maintainer.facts, dictionary)))
            del asked[counted:]  # reading the state is no look-up
        found.append(states)
    assert found[0] == found[1]
    limit = 4 * SMALL
    assert max(asked, default=0) <= 4 * limit + 3, "what all tasks send together"
