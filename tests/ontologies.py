"""Random small ontologies with data, and streams of changes of both, from a seed.

The terms of the vocabulary stand among the others, so that data derive axioms: properties below
`rdfs:subClassOf`, classes below `owl:TransitiveProperty`, a transitive `rdfs:subPropertyOf`.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.syntax import IRI, TRIPLE, TYPE, Atom, Constant, Literal


def _known(name: str) -> IRI:
    prefix, local = name.split(":")
    return IRI(WELL_KNOWN_PREFIXES[prefix] + local)


THINGS = [IRI(f"urn:{name}") for name in "abc"]
CLASSES = [IRI(f"urn:{name}") for name in ("C", "D", "E")]
PROPERTIES = [IRI(f"urn:{name}") for name in ("p", "q", "r")]
ABOUT_CLASSES = [_known(f"rdfs:{name}") for name in ("subClassOf",)]
ABOUT_PROPERTIES = [_known("rdfs:subPropertyOf")]
KINDS = [_known("owl:TransitiveProperty"), _known("owl:SymmetricProperty")]
BETWEEN = [_known("rdfs:domain"), _known("rdfs:range")]
_OWL = [_known("owl:equivalentClass"), _known("owl:inverseOf"), _known("owl:equivalentProperty")]
_SAME = _known("owl:sameAs")
_FUNCTIONAL = _known("owl:FunctionalProperty")


@dataclass(frozen=True)
class Commit:
    """Triples to insert and to delete."""

    inserted: frozenset[Atom]
    deleted: frozenset[Atom]


def triple(random: Random, *, wild: float, owl: bool) -> Atom:
    """An axiom or a statement about things; `wild` says how often vocabulary is redefined."""

    def one(terms: list[IRI], others: list[IRI]) -> Constant:
        return random.choice(others if random.random() < wild else terms)

    classes_wild = [*KINDS, *PROPERTIES, *THINGS]
    properties_wild = [*ABOUT_CLASSES, *ABOUT_PROPERTIES, *BETWEEN, TYPE, *CLASSES]
    kind = random.randrange(9 if owl else 7)
    s: Constant
    p: Constant
    o: Constant
    if kind == 0:
        s, p, o = one(CLASSES, classes_wild), ABOUT_CLASSES[0], one(CLASSES, classes_wild)
    elif kind == 1:
        s, p = one(PROPERTIES, properties_wild), ABOUT_PROPERTIES[0]
        o = one(PROPERTIES, properties_wild)
    elif kind == 2:
        s, p = one(PROPERTIES, properties_wild), random.choice(BETWEEN)
        o = one(CLASSES, classes_wild)
    elif kind == 3:
        s, p = one(PROPERTIES, properties_wild), TYPE
        o = random.choice([*KINDS, _FUNCTIONAL] if owl else KINDS)
    elif kind == 4:
        s, p, o = one(THINGS, PROPERTIES), TYPE, one(CLASSES, classes_wild)
    elif kind in (5, 6):
        s, p = one(THINGS, [*CLASSES, *PROPERTIES]), one(PROPERTIES, properties_wild)
        o = one(THINGS, [*CLASSES, *PROPERTIES, *KINDS])
        if random.random() < 0.1:
            o = Literal("x")
    elif kind == 7:
        p = random.choice(_OWL)
        pool = CLASSES if p == _OWL[0] else PROPERTIES
        s, o = one(pool, properties_wild), one(pool, properties_wild)
    else:
        s, p, o = random.choice(THINGS), _SAME, one(THINGS, [*CLASSES, *PROPERTIES])
    return Atom(TRIPLE, (s, p, o))


def stream(seed: int, *, owl: bool = False, commits: int = 8) -> tuple[set[Atom], list[Commit]]:
    """The first triples, and commits that delete what others inserted."""
    random = Random(seed)
    wild = random.choice([0.0, 0.1, 0.4])

    def some(number: int) -> set[Atom]:
        return {triple(random, wild=wild, owl=owl) for _ in range(random.randrange(number))}

    first = some(14)
    now, made = set(first), []
    for _ in range(commits):
        known = sorted(now, key=repr)
        deleted = {atom for atom in known if random.random() < random.choice([0.1, 0.3])}
        inserted = some(4)
        made.append(Commit(frozenset(inserted), frozenset(deleted)))
        now = (now - deleted) | inserted
    return first, made
