"""Real data through rules that are written out: the updates of seed 004, histories of ontologies.

The data are not part of the repository (`../shared/data`); without them the tests are skipped.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import corollary as co
from corollary.algorithms.maintain import KINDS, Maintainer
from corollary.algorithms.reasoner import Options
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, TYPE
from corollary.rdf.formats import read, read_text
from corollary.reasoning.specialization import SpecializedReasoner
from tests.test_specialize import MORE

DATA = Path(__file__).parents[1] / "../shared/data"
DYNAMITE, HISTORIES = DATA / "dynamite", DATA / "updates"

RHODF = co.rules("rhodf")
PROGRAMS = {"rhodf": RHODF, "rhodf+trans/sym/inv": RHODF | MORE}


def needs(folder: Path) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not folder.is_dir(), reason=f"{folder} is not there")


class _Dynamite:
    def __init__(self) -> None:
        self.dictionary = Dictionary()
        self.engine = ColumnarEngine(self.dictionary)
        self.base = self.read(DYNAMITE / "base-onto+U0.nt.gz")

    def read(self, path: Path) -> ColumnarFacts:
        return self.engine.facts(read(path, self.dictionary).tables(self.dictionary))

    def update(self, name: str) -> ColumnarFacts:
        return self.read(DYNAMITE / "updates" / name / "update.nt.gz")


@pytest.fixture(scope="module")
def dynamite() -> _Dynamite:
    return _Dynamite()


# Counting refuses the rules, which are recursive.
@needs(DYNAMITE)
@pytest.mark.parametrize("algorithm", [name for name in KINDS if name != "counting"])
def test_updates_of_dynamite(dynamite: _Dynamite, algorithm: str) -> None:
    """Each update alone, from the base: what is added later, and what is removed."""
    engine, base = dynamite.engine, dynamite.base
    nothing = engine.facts({})
    kept = SpecializedReasoner(RHODF, base, engine, Options(algorithm=algorithm))
    assert len(kept.facts) == 127_309
    for number in range(1, 5):
        added = dynamite.update(f"add_update{number}")
        removed = dynamite.update(f"remove_update{number}")
        start = kept.explicit
        kept.update(Changes(added, nothing))
        assert _same(kept.facts, RHODF, start.union(added), engine)
        kept.update(Changes(nothing, added.difference(start)))
        kept.update(Changes(nothing, removed))
        assert _same(kept.facts, RHODF, start.difference(removed), engine)
        kept.update(Changes(removed.intersection(start), nothing))
        assert len(kept.facts) == 127_309


def _same(
    facts: ColumnarFacts, program: Program, explicit: ColumnarFacts, engine: ColumnarEngine
) -> bool:
    anew = Maintainer(program, explicit, engine).facts
    return len(anew) == len(facts) == len(anew.intersection(facts))


@needs(HISTORIES)
@pytest.mark.parametrize("rules", PROGRAMS)
@pytest.mark.parametrize("name", ["plant-ontology", "sequence-ontology", "schemaorg-ttl"])
def test_histories(name: str, rules: str) -> None:
    """Every commit of an ontology as a transaction; counts and hashes at its checkpoints."""
    dictionary = Dictionary()
    engine = ColumnarEngine(dictionary)
    kept = SpecializedReasoner(PROGRAMS[rules], engine.facts({}), engine)
    text = (HISTORIES / f"{name}.expected.json").read_text(encoding="utf-8")
    expected = {check["tx"]: check[rules] for check in json.loads(text)}
    number = 0
    for number, (inserted, deleted) in enumerate(_transactions(name), 1):
        kept.update(Changes(_read(inserted, engine), _read(deleted, engine)))
        if number in expected:
            lines = _lines(kept.facts, dictionary)
            assert len(lines) == expected[number]["closure"]
            digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
            assert digest == expected[number]["sha256_sorted_nt"], number
    assert max(expected) == number


@needs(HISTORIES)
def test_history_as_written() -> None:
    """The first commits, against the rules as they were written, and every change."""
    dictionary = Dictionary()
    engine = ColumnarEngine(dictionary)
    program = PROGRAMS["rhodf+trans/sym/inv"]
    kept = SpecializedReasoner(program, engine.facts({}), engine)
    plain = Maintainer(program, engine.facts({}), engine)
    for number, (inserted, deleted) in enumerate(_transactions("schemaorg-ttl")):
        if number == 40:
            break
        changes = Changes(_read(inserted, engine), _read(deleted, engine))
        ours, theirs = kept.update(changes), plain.update(changes)
        for one, two in ((ours.inserted, theirs.inserted), (ours.deleted, theirs.deleted)):
            assert len(one) == len(two) == len(one.intersection(two))


def _transactions(name: str) -> Iterator[tuple[str, str]]:
    """What each transaction of an RDF Patch inserts and deletes, as N-Triples."""
    lines: dict[str, list[str]] = {"A": [], "D": []}
    path = HISTORIES / f"{name}.rdfp.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as patch:
        for line in patch:
            kind, _, rest = line.partition(" ")
            if kind in lines:
                lines[kind].append(rest)
            elif kind == "TC":
                yield "".join(lines["A"]), "".join(lines["D"])
                lines = {"A": [], "D": []}


def _read(text: str, engine: ColumnarEngine) -> ColumnarFacts:
    # A few IRIs of schema.org's history are not valid.
    found = read_text(text, engine.dictionary, format="n-triples", on_error="skip")
    return engine.facts(found.tables(engine.dictionary))


def _lines(facts: ColumnarFacts, dictionary: Dictionary) -> list[str]:
    """N-Triples in order."""
    lines: list[str] = []
    for predicate in facts.predicates():
        assert predicate.relation == TRIPLE
        assert predicate.property is not None
        rows = facts.rows(predicate)
        subjects = dictionary.texts(rows[:, 0]).to_pylist()
        if predicate.member_of is not None:
            property_, class_ = _texts(dictionary, TYPE, predicate.member_of)
            objects = [class_] * len(rows)
        else:
            (property_,) = _texts(dictionary, predicate.property)
            objects = dictionary.texts(rows[:, 1]).to_pylist()
        lines += [f"{s} {property_} {o} ." for s, o in zip(subjects, objects, strict=True)]
    return sorted(lines)


def _texts(dictionary: Dictionary, *terms: object) -> list[str]:
    return list(dictionary.texts(dictionary.encode(terms)).to_pylist())  # type: ignore[arg-type]
