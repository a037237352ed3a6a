"""UOBM-like: LUBM's universities, and what ties their people together.

Paper: Ma, Yang, Qiu, Xie, Pan, Liu: Towards a Complete OWL Ontology Benchmark, ESWC 2006. UOBM adds
to LUBM links between universities and relations that are symmetric or transitive. This data does
the same in a vocabulary of its own; its proportions are ours, not those of UOBM.

Idea: every university has towns of its own, a few of them large. Its people come from them, a few
from towns of earlier universities. Explicit `sameHomeTownWith` facts connect the people of a town
as a tree; the relation is symmetric and transitive, and follows from `hometown` too, so that each
of its facts has as many proofs as the town has people. `isFriendOf` is symmetric only.

Invariants: as LUBM's; of each town one student is known without drawing (`anchors`), so that links
to earlier universities need nothing of these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from corollary.generate import lubm
from corollary.generate.columns import Columns, Numbers, join, members, numbered, pick, triples
from corollary.generate.datasets import Dataset
from corollary.generate.draw import some

NAMESPACE = "http://example.org/uobm-like#"
TOWNS = 150  # of a university; every one has 15 departments, each with ten students for them
HOBBIES, LIKED = 40, (0, 3)
FRIENDS = (0, 2)
FROM_ELSEWHERE = 50  # one in this many comes from a town of an earlier university
FRIEND_ELSEWHERE = 20  # one in this many has a friend in an earlier university
_STREAM = 1  # apart from the one that draws the university
_DEPARTMENTS = lubm.DEPARTMENTS[0]

RULES = f"""\
% What ties people together: symmetric and transitive relations, with many proofs for each fact.
@prefix : <{NAMESPACE}> .
[?x, :sameHomeTownWith, ?y] :- [?x, :hometown, ?town], [?y, :hometown, ?town] .
[?x, :sameHomeTownWith, ?y] :- [?y, :sameHomeTownWith, ?x] .
[?x, :sameHomeTownWith, ?z] :- [?x, :sameHomeTownWith, ?y], [?y, :sameHomeTownWith, ?z] .
[?x, :isFriendOf, ?y] :- [?y, :isFriendOf, ?x] .
[?x, :knows, ?y] :- [?x, :isFriendOf, ?y] .
[?x, :knows, ?y] :- [?x, ub:advisor, ?y] .
[?x, a, :Enthusiast] :- [?x, :likes, ?hobby] .
[?x, a, ub:Person] :- [?x, :hometown, ?town] .
[?hobby, a, :Hobby] :- [?x, :likes, ?hobby] .
[?town, a, :Town] :- [?x, :hometown, ?town] .
[?x, :sharesHobbyWith, ?y] :- [?x, :isFriendOf, ?y], [?x, :likes, ?h], [?y, :likes, ?h] .
"""


def university(number: int, seed: int = 0) -> Iterator[Columns]:
    """The triples of one university: LUBM's, then what ties its people.

    >>> names = {columns.relation.rpartition("#")[2] for columns in university(0)}
    >>> sorted(names & {"hometown", "isFriendOf", "likes", "sameHomeTownWith"})
    ['hometown', 'isFriendOf', 'likes', 'sameHomeTownWith']
    """
    drawn = lubm.University(number, seed)
    yield from drawn.facts()
    yield from _ties(drawn, number, np.random.default_rng([_STREAM, seed, number]))


def _ties(drawn: lubm.University, number: int, rng: np.random.Generator) -> Iterator[Columns]:
    groups = (drawn.undergraduates, drawn.graduates, drawn.staff)
    people = pa.concat_arrays([group.iris for group in groups])
    count = len(people)
    towns = _towns(drawn, count, rng)
    region = np.full(count, number)
    if number:
        elsewhere = rng.integers(0, FROM_ELSEWHERE, count) == 0
        elsewhere[_own_anchors(drawn)] = False
        region[elsewhere] = rng.integers(0, number, int(elsewhere.sum()))
    yield triples(NAMESPACE + "hometown", people, town_iris(region, towns))
    for one, other in _same_town(people, region, towns, number, rng):
        yield triples(NAMESPACE + "sameHomeTownWith", one, other)

    one, friend = some(rng, np.full(count, count), FRIENDS)
    apart = one != friend
    yield triples(NAMESPACE + "isFriendOf", pick(people, one[apart]), pick(people, friend[apart]))
    if number:
        one = np.flatnonzero(rng.integers(0, FRIEND_ELSEWHERE, count) == 0)
        friends = anchors(rng.integers(0, number, len(one)), rng.integers(0, TOWNS, len(one)))
        yield triples(NAMESPACE + "isFriendOf", pick(people, one), friends)
    one, hobby = some(rng, np.full(count, HOBBIES), LIKED)
    yield triples(
        NAMESPACE + "likes", pick(people, one), numbered(f"<{NAMESPACE}Hobby", hobby, ">")
    )


def _towns(drawn: lubm.University, count: int, rng: np.random.Generator) -> Numbers:
    """The number of everyone's town: the first towns are the largest."""
    weights = 1 / np.sqrt(np.arange(1, TOWNS + 1))
    towns: Numbers = rng.choice(TOWNS, count, p=weights / weights.sum())
    towns[_own_anchors(drawn)] = np.arange(TOWNS)
    return towns


def _own_anchors(drawn: lubm.University) -> Numbers:
    """The rows of the students that `anchors` names; undergraduates come first."""
    student, department = np.divmod(np.arange(TOWNS), _DEPARTMENTS)
    return drawn.undergraduates.rows(department, student)


def _same_town(
    people: pa.Array, region: Numbers, towns: Numbers, number: int, rng: np.random.Generator
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Everyone with one other of the town: of this university, or the anchor of an earlier one."""
    own = np.flatnonzero(region == number)
    own = own[np.argsort(towns[own], kind="stable")]
    first = np.searchsorted(towns[own], towns[own])
    later = np.arange(len(own)) > first
    other = rng.integers(first[later], np.arange(len(own))[later])
    yield pick(people, own[later]), pick(people, own[other])
    away = np.flatnonzero(region != number)
    yield pick(people, away), anchors(region[away], towns[away])


def anchors(universities: Numbers, towns: Numbers) -> pa.Array:
    """A student of these universities who comes from these of their towns.

    >>> anchors(np.array([3]), np.array([16])).to_pylist()
    ['<http://www.Department1.University3.edu/UndergraduateStudent1>']
    """
    student, department = np.divmod(towns, _DEPARTMENTS)
    host = join(numbered("Department", department, ".University"), numbered("", universities))
    return join("<http://www.", host, ".edu/", numbered("UndergraduateStudent", student, ">"))


def town_iris(universities: Numbers, towns: Numbers) -> pa.Array:
    """The towns with these numbers that belong to these universities."""
    return join(numbered(f"<{NAMESPACE}Town", universities, "-"), numbered("", towns, ">"))


def facts(scale: int, seed: int = 0) -> Iterator[Columns]:
    """The triples of as many universities, one university after the other."""
    for number in range(scale):
        yield from university(number, seed)
    yield from _others(scale)


def _others(scale: int) -> Iterator[Columns]:
    yield lubm.other_universities(scale)
    yield members(f"{NAMESPACE}Hobby", numbered(f"<{NAMESPACE}Hobby", np.arange(HOBBIES), ">"))


DATASET = Dataset(
    "uobm",
    "UOBM-like: LUBM, with people tied by symmetric and transitive relations",
    unit="universities, about 185,000 triples each",
    make=lambda scale, seed: lubm.university_files(
        int(scale), seed, university, _others, rules=RULES
    ),
    least=1,
    most=100_000,
    whole=True,
)
