"""SKOS: categories below several others, as DBpedia's.

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §7, measure a
sample of DBpedia's categories under the rules of SKOS; `skos:broader` has long chains and cycles
there. This data has the same traits; its proportions are ours.

Idea: a category is below one to three earlier ones. Most of these are early ones, which makes a
bush; some are just before, which makes chains. A few categories are also above one of their own
broader ones, which makes cycles. At scale 1 the transitive relation is 60 times as large as the
explicit one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from corollary.generate.columns import Columns, Numbers, members, numbered, pick, triples
from corollary.generate.datasets import Dataset, File
from corollary.generate.draw import between, expand

SKOS = "http://www.w3.org/2004/02/skos/core#"
CATEGORY = "http://example.org/category/"
CATEGORIES = 10_000  # at scale 1
BROADER = (1, 3)
NEAR, NEAR_IN = 8, 4  # one broader category in four is one of the eight before
CYCLE_IN = 2_000  # one edge in this many leads back too
RELATED_IN = 4  # one category in this many is related to another

RULES = f"""\
% The rules of the SKOS reference; a name is the number of a statement there. S26, that the two
% transitive properties are inverse to each other, follows.
@prefix skos: <{SKOS}> .
[s22a] [?x, skos:broaderTransitive, ?y] :- [?x, skos:broader, ?y] .
[s22b] [?x, skos:narrowerTransitive, ?y] :- [?x, skos:narrower, ?y] .
[s24a] [?x, skos:broaderTransitive, ?z] :-
    [?x, skos:broaderTransitive, ?y], [?y, skos:broaderTransitive, ?z] .
[s24b] [?x, skos:narrowerTransitive, ?z] :-
    [?x, skos:narrowerTransitive, ?y], [?y, skos:narrowerTransitive, ?z] .
[s25a] [?x, skos:narrower, ?y] :- [?y, skos:broader, ?x] .
[s25b] [?x, skos:broader, ?y] :- [?y, skos:narrower, ?x] .
[s23] [?x, skos:related, ?y] :- [?y, skos:related, ?x] .
[s21a] [?x, skos:semanticRelation, ?y] :- [?x, skos:broaderTransitive, ?y] .
[s21b] [?x, skos:semanticRelation, ?y] :- [?x, skos:narrowerTransitive, ?y] .
[s21c] [?x, skos:semanticRelation, ?y] :- [?x, skos:related, ?y] .
[s19] [?x, a, skos:Concept] :- [?x, skos:semanticRelation, ?y] .
[s20] [?y, a, skos:Concept] :- [?x, skos:semanticRelation, ?y] .
"""


def facts(scale: float, seed: int = 0) -> Iterator[Columns]:
    """The triples of the categories of a scale.

    >>> sorted({columns.relation.rpartition("#")[2] for columns in facts(0.01)})
    ['broader', 'prefLabel', 'related', 'type']
    """
    count = max(2, round(CATEGORIES * scale))
    rng = np.random.default_rng(seed)
    iris = numbered(f"<{CATEGORY}C", np.arange(count), ">")
    yield members(SKOS + "Concept", iris)
    yield triples(SKOS + "prefLabel", iris, numbered('"Category ', np.arange(count), '"@en'))
    yield _between("broader", iris, hierarchy(count, rng))
    one = np.flatnonzero(rng.integers(0, RELATED_IN, count) == 0)
    other = (one + rng.integers(1, count, len(one))) % count
    yield _between("related", iris, np.stack([one, other], axis=1))


def hierarchy(count: int, rng: np.random.Generator) -> Numbers:
    """Pairs of a category and a broader one; category 0 is the top.

    >>> pairs = hierarchy(1000, np.random.default_rng(0))
    >>> bool((pairs[:, 0] != pairs[:, 1]).all()), len(np.unique(pairs, axis=0)) == len(pairs)
    (True, True)
    """
    below, _ = expand(between(rng, BROADER, count - 1))
    below += 1
    near = rng.integers(0, NEAR_IN, len(below)) == 0
    distance = np.minimum(rng.integers(1, NEAR + 1, len(below)), below)
    early = (rng.random(len(below)) ** 2 * below).astype(np.int64)
    above = np.where(near, below - distance, early)
    back = rng.integers(0, CYCLE_IN, len(below)) == 0
    pairs = np.stack([below, above], axis=1)
    return np.unique(np.concatenate([pairs, pairs[back][:, ::-1]]), axis=0)


def _between(name: str, iris: pa.Array, pairs: Numbers) -> Columns:
    return triples(SKOS + name, pick(iris, pairs[:, 0]), pick(iris, pairs[:, 1]))


DATASET = Dataset(
    "skos",
    "categories below several others, as DBpedia's, and the rules of SKOS",
    unit="10,000 categories",
    make=lambda scale, seed: (
        File("categories.nt", lambda: facts(scale, seed)),
        File("rules.dl", text=RULES),
    ),
    least=0.0002,  # two categories
    most=1_000,  # all is drawn in memory
)
