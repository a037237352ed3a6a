"""Claros-like: places and objects of collections, with large cliques of related places.

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §7, measure
Claros-LE, whose `relatedPlaces` is symmetric and transitive and has large cliques, so that plain
rules consider up to n³ instances for n places. Claros itself is not public; this data has that
trait, a hierarchy of classes and a few hard rules, in a vocabulary and in proportions of its own.

Idea: places form components whose sizes fall like those of cities (largest / rank^0.8). Explicit
facts connect a component as a tree, with some edges more. An object was made in one place and found
in another of the same component, which relates the two places once more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corollary.generate.columns import Columns, Numbers, members, numbered, pick, triples
from corollary.generate.datasets import Dataset, File
from corollary.generate.draw import expand
from corollary.lang.syntax import TYPE

NAMESPACE = "http://example.org/claros-like#"
PLACES, OBJECTS_PER_PLACE = 5_000, 4  # at scale 1
LARGEST, SKEW = 0.08, 0.8  # the share of the places in the largest component, and the fall
CLASSES, BRANCHES = 121, 3  # a tree of classes, each with three below it: five levels
_INNER = (CLASSES - 1) // BRANCHES  # classes with others below them
COLLECTIONS = 50


def rules() -> str:
    """The program: the hierarchy of classes, and rules that are hard.

    >>> from corollary.lang.program import Program
    >>> len(Program.parse(rules()).rules)
    130
    """
    below = "".join(
        f"[?x, a, :Kind{(kind - 1) // BRANCHES}] :- [?x, a, :Kind{kind}] .\n"
        for kind in range(1, CLASSES)
    )
    return f"""\
% Objects, places, and places that are related: a symmetric and transitive relation.
@prefix : <{NAMESPACE}> .
[?x, :relatedPlaces, ?y] :- [?y, :relatedPlaces, ?x] .
[?x, :relatedPlaces, ?z] :- [?x, :relatedPlaces, ?y], [?y, :relatedPlaces, ?z] .
[?p, :relatedPlaces, ?q] :- [?x, :madeIn, ?p], [?x, :foundIn, ?q] .
[?x, :hasPlace, ?p] :- [?x, :madeIn, ?p] .
[?x, :hasPlace, ?p] :- [?x, :foundIn, ?p] .
[?p, a, :Place] :- [?x, :hasPlace, ?p] .
[?x, a, :Object] :- [?x, a, :Kind0] .
[?x, a, :Object] :- [?x, :inCollection, ?c] .
[?c, :coversRegionOf, ?q] :- [?x, :inCollection, ?c], [?x, :foundIn, ?p], [?p, :relatedPlaces, ?q] .
[?c, a, :CollectionOf0] :- [?x, :inCollection, ?c], [?x, a, :Kind1] .
% The hierarchy of classes.
{below}"""


def facts(scale: float, seed: int = 0) -> Iterator[Columns]:
    """The triples of the places and objects of a scale.

    >>> sum(map(len, facts(0.1))) > 10_000
    True
    """
    rng = np.random.default_rng(seed)
    places = max(2, round(PLACES * scale))
    sizes = component_sizes(places)
    component, number = expand(sizes)
    # The numbers of the places must not give the components away.
    iris = numbered(f"<{NAMESPACE}Place", rng.permutation(places), ">")
    yield members(NAMESPACE + "Place", iris)
    one, other = _related(sizes, component, number, rng)
    yield triples(NAMESPACE + "relatedPlaces", pick(iris, one), pick(iris, other))

    count = OBJECTS_PER_PLACE * places
    objects = numbered(f"<{NAMESPACE}Object", np.arange(count), ">")
    kinds = numbered(f"<{NAMESPACE}Kind", rng.integers(_INNER, CLASSES, count), ">")
    yield Columns(TYPE.value, (objects, kinds))
    yield triples(NAMESPACE + "label", objects, numbered('"object ', np.arange(count), '"'))
    made = rng.integers(0, places, count)
    yield triples(NAMESPACE + "madeIn", objects, pick(iris, made))
    first = np.cumsum(sizes) - sizes
    found = first[component[made]] + rng.integers(0, sizes[component[made]])
    yield triples(NAMESPACE + "foundIn", objects, pick(iris, found))
    # A collection takes from a few components only, as museums do.
    collections = (component[made] + rng.integers(0, 3, count)) % COLLECTIONS
    yield triples(
        NAMESPACE + "inCollection", objects, numbered(f"<{NAMESPACE}Collection", collections, ">")
    )


def component_sizes(places: int) -> Numbers:
    """How many places each component has; every 5,000 places have the same profile.

    >>> component_sizes(10_000)[:3].tolist(), int(component_sizes(10_000).sum())
    ([400, 230, 166], 10000)
    """
    sizes: list[int] = []
    for block in range(0, places, PLACES):
        left = here = min(PLACES, places - block)
        rank = 1
        while left:
            size = min(left, max(1, round(here * LARGEST / rank**SKEW)))
            sizes.append(size)
            left, rank = left - size, rank + 1
    return np.array(sizes)


def _related(
    sizes: Numbers, component: Numbers, number: Numbers, rng: np.random.Generator
) -> tuple[Numbers, Numbers]:
    """Every place but the first of a component with an earlier one, and every second with two."""
    first = np.cumsum(sizes) - sizes
    later = np.flatnonzero(number > 0)
    again = later[rng.integers(0, 2, len(later)) == 0]
    one = np.concatenate([later, again])
    other = first[component[one]] + rng.integers(0, number[one])
    pairs = np.unique(np.stack([one, other], axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]


DATASET = Dataset(
    "claros",
    "Claros-like: places in large cliques of a symmetric and transitive relation, and objects",
    unit="5,000 places and 20,000 objects",
    make=lambda scale, seed: (
        File("claros.nt", lambda: facts(scale, seed)),
        File("rules.dl", text=rules()),
    ),
    least=0.0004,  # two places
    most=1_000,  # all is drawn in memory
)
