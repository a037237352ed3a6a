"""LUBM(1) from the original generator, and its expected materialization.

The expected facts were computed by an unrelated engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Row
from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, TRIPLE, TYPE
from corollary.rdf import formats


@dataclass(frozen=True)
class Expected:
    """The materialization: its size, that of each predicate, and its hash."""

    facts: int
    by_predicate: dict[str, int]
    sha256: str


def missing(data: Path) -> str | None:
    """Why the check cannot be run, None if it can."""
    needed = ("lubm/lubm-1.nt.gz", "rulesets/LUBM_L.dl", "expected/lubm-1-L.json")
    absent = [name for name in needed if not (data / name).exists()]
    return f"no {absent[0]} in {data}" if absent else None


def rules(data: Path, name: str) -> Program:
    """LUBM_L or LUBM_LE."""
    return Program.load(data / "rulesets" / f"LUBM_{name}.dl")


def expected(data: Path, name: str) -> Expected:
    """The expected materialization under one of the rule sets."""
    found = json.loads((data / "expected" / f"lubm-1-{name}.json").read_text("utf-8"))
    summary = found["summary"]
    counts = {key.strip("<>"): count for key, count in found["per_predicate"].items()}
    return Expected(summary["materialised"], counts, summary["sha256_sorted_nt"])


def read(data: Path, dictionary: Dictionary) -> dict[Predicate, Ids]:
    """The explicit facts."""
    return read_triples(data / "lubm" / "lubm-1.nt.gz", dictionary)


def read_triples(path: Path, dictionary: Dictionary) -> dict[Predicate, Ids]:
    """The facts of a file of triples."""
    return dict(formats.read(path, dictionary).tables(dictionary))


def lines(facts: Facts, dictionary: Dictionary) -> Iterator[str]:
    """The facts as N-Triples; all terms are IRIs and plain strings."""
    written = Printer(well_known=False).term
    for predicate in facts.predicates():
        for row in facts.rows(predicate).tolist():
            terms = [*dictionary.terms(row), predicate.member_of]
            places = (terms[0], predicate.property, terms[1])
            yield " ".join([*(written(term) for term in places if term is not None), "."])


def digest(triples: Iterable[str]) -> str:
    """The hash of the sorted lines, without a newline at the end."""
    return hashlib.sha256("\n".join(sorted(triples)).encode()).hexdigest()


def check(data: str, name: str, threads: int = 1) -> Row:
    """Materialize LUBM(1) with one of the rule sets, and compare."""
    folder, dictionary = Path(data), Dictionary()
    engine = ColumnarEngine(dictionary, threads=threads)
    facts = materialize(rules(folder, name), engine.facts(read(folder, dictionary)), engine).facts
    wanted = expected(folder, name)
    counts = {iri: count_of(facts, iri) for iri in wanted.by_predicate}
    sha256 = digest(lines(facts, dictionary))
    return {
        "facts": len(facts),
        "expected": wanted.facts,
        "sha256": sha256,
        "correct": (len(facts), counts, sha256)
        == (wanted.facts, wanted.by_predicate, wanted.sha256),
    }


def count_of(facts: Facts, iri: str) -> int:
    """The number of facts of a property or class."""
    names = (Predicate(TRIPLE, IRI(iri)), Predicate(TRIPLE, TYPE, IRI(iri)))
    return len(facts.only(names))
