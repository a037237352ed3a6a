"""ρdf on real data: sizes and hashes of closures that an unrelated program computed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import pytest

from benchmarks.report import DATA
from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.core.terms import text_of
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from corollary.rdf import rules
from tests.conformance.graphs import read

DYNAMITE = DATA / "dynamite" / "base-onto+U0.nt.gz"
HISTORIES = DATA / "updates"
for needed in (DYNAMITE, HISTORIES):
    if not needed.exists():
        pytest.skip(f"the data are not here: {needed}", allow_module_level=True)

MORE = {"prp-trp", "prp-symp", "prp-inv1", "prp-inv2"}
PROGRAMS = {
    "rhodf": rules("rhodf"),
    "rhodf+trans/sym/inv": rules("rhodf").added(
        *(rule for rule in rules("owl-rl").rules if rule.name in MORE)
    ),
}


def closed(graph: Iterable[Atom], program: Program) -> set[Atom]:
    engine = ColumnarEngine(Dictionary())
    explicit = engine.facts(encode(graph, engine.dictionary))
    return set(decode(materialize(program, explicit, engine).facts, engine.dictionary))


def test_the_base_of_dynamite() -> None:
    assert len(closed(read(DYNAMITE), rules("rhodf"))) == 127_309


@pytest.mark.parametrize("rule_set", PROGRAMS)
@pytest.mark.parametrize("name", ["plant-ontology", "sequence-ontology", "schemaorg-ttl"])
def test_the_last_state_of_a_history(name: str, rule_set: str) -> None:
    expected = json.loads((HISTORIES / f"{name}.expected.json").read_text("utf-8"))[-1][rule_set]
    found = closed(read(HISTORIES / f"{name}.final.nt.gz"), PROGRAMS[rule_set])
    assert len(found) == expected["closure"]
    lines = sorted(f"{' '.join(map(text_of, fact.constants()))} ." for fact in found)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert digest == expected["sha256_sorted_nt"]
