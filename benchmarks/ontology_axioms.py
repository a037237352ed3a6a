"""Ontologies loaded from files, and inserted and deleted axioms.

Generated ontologies under OWL 2 RL, and the Gene Ontology's hierarchy of cellular components as
`rdfs:subClassOf` axioms, whose pairs are compared with the published closure. All times are CPU
times of one thread: the minimum of `repeat` loads, after one that loads compiled code, and the
median of several transactions from text.
"""

from __future__ import annotations

import gzip
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import corollary as co
from benchmarks.graphs import GRAPHS, OFFSPRING
from benchmarks.isolate import isolated
from benchmarks.measure import least, peak_bytes, timed
from benchmarks.report import Options, Row
from corollary.lang.parser import WELL_KNOWN_PREFIXES

_TRANSACTIONS = 9
_LONG = 60  # seconds: a load that takes longer is not repeated
CHAIN = 1_000  # classes of the ontology with a chain of properties
_GO = "http://purl.obolibrary.org/obo/"
_PREFIXES = (
    "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
    "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
)
_SUBCLASS = f"<{WELL_KNOWN_PREFIXES['rdfs']}subClassOf>"


def generated_rows(options: Options) -> Iterator[Row]:
    """Ontologies of each size, and a small one with a chain of properties."""
    for classes in options.scales:
        case: Row = {"part": "generated", "case": f"owl-rl, {classes:,} classes"}
        yield case | _fitting(generated, options, classes=classes)
    case = {"part": "generated", "case": f"owl-rl, {CHAIN:,} classes, properties in a chain"}
    yield case | _fitting(generated, options, classes=CHAIN, chain=True)


def go_rows(options: Options) -> Iterator[Row]:
    """The Gene Ontology under RDFS and OWL 2 RL."""
    for rules in ("rdfs", "owl-rl"):
        case: Row = {"part": "go", "case": f"{rules}, GO cellular component"}
        absent = [
            name for name in (GRAPHS["GO"][0], OFFSPRING) if not (options.data / name).exists()
        ]
        if absent:
            yield case | {"skipped": f"no {absent[0]} in {options.data}"}
        else:
            yield case | _fitting(gene_ontology, options, rules=rules, data=str(options.data))


def _fitting(measure: Callable[..., Row], options: Options, **arguments: Any) -> Row:
    """Measure a case; a row with `skipped` if it exceeds memory or time."""
    row = isolated(measure, timeout=options.timeout, repeat=options.repeat, **arguments)
    reason = str(row.get("failed", ""))
    if reason.startswith("stopped after"):
        return {"skipped": f"takes too long: {reason}"}
    if "exit status -9" in reason or "memory" in reason.lower():
        return {"skipped": "does not fit into memory"}
    return row


def generated(classes: int, repeat: int, chain: bool = False) -> Row:
    """Load a generated ontology; insert axioms with a triple each, and delete the axioms."""
    _limit_memory()
    kb, row = _load(triples(classes, chain=chain), "owl-rl", repeat)
    inserted, deleted = [], []
    for number in range(_TRANSACTIONS):
        axiom = f"<urn:new{number}> rdfs:subClassOf <urn:C{classes - 1 - number}> ."
        member = f"<urn:y{number}> a <urn:new{number}> ."
        inserted.append(_transaction(kb, insert=f"{axiom} {member}"))
        deleted.append(_transaction(kb, delete=axiom))
    return row | {
        "insert_ms": median(inserted) * 1e3,
        "delete_ms": median(deleted) * 1e3,
        "peak_bytes": peak_bytes(),
    }


def gene_ontology(rules: str, data: str, repeat: int) -> Row:
    """Load GO; delete axioms and insert them again; compare the pairs with the published ones."""
    edges = _pairs(Path(data) / GRAPHS["GO"][0])
    axioms = [f"<{_GO}{child}> rdfs:subClassOf <{_GO}{parent}> ." for child, parent in edges]
    kb, row = _load(axioms, rules, repeat)
    published = {(child, parent) for parent, child in _pairs(Path(data) / OFFSPRING)}
    before = _subclasses(kb)
    inserted, deleted = [], []
    for axiom in Random(0).sample(axioms, _TRANSACTIONS):
        deleted.append(_transaction(kb, delete=axiom))
        inserted.append(_transaction(kb, insert=axiom))
    return row | {
        "insert_ms": median(inserted) * 1e3,
        "delete_ms": median(deleted) * 1e3,
        "pairs": len(before),
        "published": len(published),
        "correct": before == published == _subclasses(kb) and row["facts"] == kb.count(),
    }


def triples(classes: int, seed: int = 0, *, chain: bool = False) -> Iterator[str]:
    """A random ontology with data, in Turtle.

    Classes are a tree whose depth grows logarithmically; so are properties, unless they form one
    `chain`, which OWL 2 RL closes in cubic time.

    >>> len(list(triples(100))), len(list(triples(100, chain=True)))
    (279, 279)
    """
    random = Random(seed)
    for number in range(1, classes):
        parent = random.randrange(number // 8, number // 2 + 1) if number > 1 else 0
        yield f"<urn:C{number}> rdfs:subClassOf <urn:C{parent}> ."
        if number % 5 == 0:
            domain, range_ = random.randrange(number), random.randrange(number)
            above = number - 5 if chain else number // 10 * 5
            yield f"<urn:p{number}> rdfs:domain <urn:C{domain}> ; rdfs:range <urn:C{range_}> ."
            yield f"<urn:p{number}> rdfs:subPropertyOf <urn:p{above}> ."
        if number % 7 == 0:
            yield f"<urn:R{number}> owl:onProperty <urn:p{number // 5 * 5}> ."
            yield f"<urn:R{number}> owl:someValuesFrom <urn:C{number}> ."
            yield f"<urn:R{number}> rdfs:subClassOf <urn:C{number // 2}> ."
    for number in range(classes // 2):
        yield f"<urn:x{number}> a <urn:C{random.randrange(classes)}> ."
        property_ = 5 * random.randrange(1, classes // 5)
        yield f"<urn:x{number}> <urn:p{property_}> <urn:x{random.randrange(classes // 2)}> ."


def _load(
    lines: Iterator[str] | Sequence[str], rules: str, repeat: int
) -> tuple[co.KnowledgeBase, Row]:
    """Load a Turtle file with these lines; returns the knowledge base and the minimum time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ontology.ttl"
        path.write_text(_PREFIXES + "\n".join(lines), "utf-8")
        small = Path(folder) / "small.ttl"
        small.write_text(_PREFIXES + "\n".join(triples(100)), "utf-8")

        def load(file: Path = path) -> co.KnowledgeBase:
            kb = co.KnowledgeBase(co.rules(rules))
            kb.load(file)
            return kb

        load(small)
        kb, time = timed(load)
        times = [time]
        while len(times) < repeat and time.seconds < _LONG:
            del kb  # two may not fit into memory
            kb, time = timed(load)
            times.append(time)
    statistics = kb.state.last_update
    assert statistics is not None, "the file is not empty"
    instances = sum(statistics.derivations.values())
    seconds = least(times).cpu_seconds
    return kb, {
        "facts": kb.count(),
        "instances": instances,
        "cpu_seconds": seconds,
        "instance_ns": seconds / instances * 1e9,
    }


def _transaction(kb: co.KnowledgeBase, *, insert: str = "", delete: str = "") -> float:
    """CPU seconds of a transaction."""

    def commit() -> None:
        with kb.transaction() as tx:
            if insert:
                tx.insert(insert)
            if delete:
                tx.delete(delete)

    return timed(commit)[1].cpu_seconds


def _pairs(path: Path) -> list[tuple[str, str]]:
    """The first two columns of a gzipped TSV file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        cells = [line.rstrip("\n").split("\t") for line in lines]
    return [(first, second) for first, second, *_ in cells]


def _subclasses(kb: co.KnowledgeBase) -> set[tuple[str, str]]:
    """The pairs of a GO term and a strict superclass."""
    table = kb.facts(f"[?x, {_SUBCLASS}, ?y]")
    columns = (table[name].to_pylist() for name in ("subject", "object"))
    prefix = f"<{_GO}"
    return {
        (child.removeprefix(prefix)[:-1], parent.removeprefix(prefix)[:-1])
        for child, parent in zip(*columns, strict=True)
        if child != parent and child.startswith(prefix) and parent.startswith(prefix)
    }


def _limit_memory() -> None:
    """Limit allocations to the available memory, if the system reports it."""
    try:
        text = Path("/proc/meminfo").read_text("ascii")
    except OSError:
        return
    available = int(text.partition("MemAvailable:")[2].split()[0]) * 1024
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = available if most == resource.RLIM_INFINITY else min(available, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))
