"""Recorded histories of real data, or excerpts of them, as histories that can be replayed.

The data are not part of the repository (`../shared/data`). An excerpt keeps the triples of some
subjects, chosen by a hash of their names: deletions then still delete what was inserted. Labels and
comments, which no rule reads, are kept for one subject of five.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32

import corollary as co
from corollary.lang.program import Program
from tests.configurations import Change, History, Triple
from tests.random_ontologies import known

DATA = Path(__file__).parents[1] / "../shared/data"
SKOS = "http://www.w3.org/2004/02/skos/core#"
RULES = ("rhodf", "rdfs", "owl-horst", "owl-rl", "skos")
Transaction = tuple[list[Triple], list[Triple]]  # inserted, deleted

_TRIPLE = re.compile(r"(<[^<>\"{}|^`\\\x00-\x20]*>|_:\S+) (<[^<>\"{}|^`\\\x00-\x20]*>) (.+) \.$")
_OBJECT = re.compile(r"<[^<>\"{}|^`\\\x00-\x20]*>|_:\S+|\".*\"(@\S+|\^\^<[^<>\"{}|^`\\\s]*>)?")


@cache
def program(name: str) -> Program:
    """The rules of a name: those of Corollary, or those of SKOS."""
    if name != "skos":
        return co.rules(name)
    return Program.load(Path(__file__).parent / "rulesets" / "skos.dl").with_axioms()


@dataclass(frozen=True)
class Recorded:
    """A recorded history: where it is, how to read it, and how much of it a small excerpt keeps."""

    folder: str
    read: Callable[[int], Iterator[Transaction]]
    share: int  # of this many subjects, one is in a small excerpt


def _patch(name: str) -> Callable[[int], Iterator[Transaction]]:
    def read(share: int) -> Iterator[Transaction]:
        transaction: dict[str, list[Triple]] = {"A": [], "D": []}
        path = DATA / "updates" / f"{name}.rdfp.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            for line in lines:
                kind, _, rest = line.rstrip("\n").partition(" ")
                if kind in transaction:
                    transaction[kind] += _parsed(rest, share)
                elif kind == "TC":
                    yield transaction["A"], transaction["D"]
                    transaction = {"A": [], "D": []}

    return read


def _parsed(line: str, share: int) -> list[Triple]:
    """The triple of a line, if it is in the excerpt.

    A few IRIs of schema.org's history are not valid; their triples are left out.
    """
    subject = line.partition(" ")[0]
    number = crc32(subject.encode())
    if number % share and not subject.startswith("_:"):
        return []
    match = _TRIPLE.match(line)
    if match is None or _OBJECT.fullmatch(match[3]) is None:
        return []
    if match[3].startswith('"') and number // 1000 % 5:
        return []
    return [(match[1], match[2], match[3])]


def _dynamite(share: int) -> Iterator[Transaction]:
    folder = DATA / "dynamite"

    def triples(path: Path) -> list[Triple]:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [triple for line in lines for triple in _parsed(line.strip(), share)]

    yield triples(folder / "base-onto+U0.nt.gz"), []
    for number in range(1, 5):
        added = triples(folder / "updates" / f"add_update{number}" / "update.nt.gz")
        removed = triples(folder / "updates" / f"remove_update{number}" / "update.nt.gz")
        yield added, []
        yield [], removed
        yield removed, added


def _debian(share: int) -> Iterator[Transaction]:
    """Dependencies of two releases, as a transitive property with an inverse, and back.

    An excerpt has the edges between some of the nodes.
    """
    depends, needed = "<urn:debian:depends>", "<urn:debian:neededBy>"

    def triples(release: str) -> set[Triple]:
        path = DATA / "graphs" / f"debian-{release}-depends.tsv.gz"
        found: set[Triple] = set()
        with gzip.open(path, "rb") as lines:
            for line in lines:
                ends = line.rstrip(b"\n").split(b"\t")
                if not any(crc32(end) % share for end in ends):
                    subject, object_ = (_package(end.decode()) for end in ends)
                    found.add((subject, depends, object_))
        return found

    old, new = triples("bookworm"), triples("trixie")
    schema: list[Triple] = [
        (depends, known("rdf:type"), known("owl:TransitiveProperty")),
        (depends, known("owl:inverseOf"), needed),
        (depends, known("rdfs:domain"), "<urn:debian:Package>"),
    ]
    yield [*schema, *sorted(old)], []
    yield sorted(new - old), sorted(old - new)
    yield [], schema[:1]
    yield [*schema[:1], *sorted(old - new)], sorted(new - old)


def _package(name: str) -> str:
    return f"<urn:debian:{re.sub(r'[^A-Za-z0-9.+-]', '_', name)}>"


HISTORIES = {
    "plant-ontology": Recorded("updates", _patch("plant-ontology"), 40),
    "sequence-ontology": Recorded("updates", _patch("sequence-ontology"), 40),
    "schemaorg-ttl": Recorded("updates", _patch("schemaorg-ttl"), 60),
    "brick-2019-2020": Recorded("updates", _patch("brick-2019-2020"), 40),
    "dynamite": Recorded("dynamite", _dynamite, 500),
    "debian": Recorded("graphs", _debian, 25),
}


@cache
def _transactions(name: str, share: int) -> tuple[Transaction, ...]:
    return tuple(HISTORIES[name].read(share))


def excerpt(
    name: str, rules: str, *, share: int | None = None, start: int = 0, changes: int = 8
) -> History:
    """One of `share` subjects; the first `start` transactions at once, then the next changes."""

    def kept(triples: list[Triple]) -> set[Triple]:
        return set(map(_as_skos, triples)) if rules == "skos" else set(triples)

    first: set[Triple] = set()
    found: list[Change] = []
    share = HISTORIES[name].share if share is None else share
    for number, (inserted, deleted) in enumerate(_transactions(name, share)):
        new, gone = kept(inserted), kept(deleted)
        if number <= start:
            first = (first - gone) | new
        elif new or gone:
            found.append(Change(frozenset(new), frozenset(gone)))
        if len(found) == changes:
            break
    return History(f"{name} {rules}", program(rules), frozenset(first), tuple(found))


def _as_skos(triple: Triple) -> Triple:
    """An ontology as a thesaurus: classes are concepts, and subclasses narrower ones."""
    subject, predicate, object_ = triple
    if predicate == known("rdfs:subClassOf"):
        related = crc32("".join(triple).encode()) % 9 == 0
        return subject, f"<{SKOS}{'related' if related else 'broader'}>", object_
    if object_ == known("owl:Class"):
        return subject, predicate, f"<{SKOS}Concept>"
    return subject, _SKOS.get(predicate, predicate), object_


_SKOS = {
    known("rdfs:label"): f"<{SKOS}prefLabel>",
    known("rdfs:comment"): f"<{SKOS}definition>",
    known("rdfs:seeAlso"): f"<{SKOS}exactMatch>",
    known("rdfs:isDefinedBy"): f"<{SKOS}inScheme>",
    known("rdfs:domain"): f"<{SKOS}topConceptOf>",
    known("rdfs:range"): f"<{SKOS}broadMatch>",
    known("owl:equivalentClass"): f"<{SKOS}exactMatch>",
    known("rdfs:subPropertyOf"): f"<{SKOS}narrower>",
    "<urn:debian:depends>": f"<{SKOS}broader>",
}
