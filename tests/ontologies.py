"""Random small ontologies with data, and streams of changes of both.

The terms of the vocabulary stand among the others, so that data derive axioms: properties below
`rdfs:subClassOf`, classes below `owl:TransitiveProperty`, a transitive `rdfs:subPropertyOf`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

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


def triples(*, wild: bool, owl: bool) -> st.SearchStrategy[Atom]:
    """Axioms and statements about things; if `wild`, of vocabulary as well."""

    def one(terms: list[IRI], others: list[IRI]) -> st.SearchStrategy[IRI]:
        usual = st.sampled_from(terms)
        return st.one_of(usual, usual, st.sampled_from(others)) if wild else usual

    def of(*terms: st.SearchStrategy[Constant]) -> st.SearchStrategy[Atom]:
        return st.builds(lambda s, p, o: Atom(TRIPLE, (s, p, o)), *terms)

    classes = one(CLASSES, [*KINDS, *PROPERTIES, *THINGS])
    vocabulary = [*ABOUT_CLASSES, *ABOUT_PROPERTIES, *BETWEEN, TYPE, *CLASSES]
    properties = one(PROPERTIES, vocabulary)
    things = one(THINGS, [*CLASSES, *PROPERTIES])
    objects = st.one_of(one(THINGS, [*CLASSES, *PROPERTIES, *KINDS]), st.just(Literal("x")))
    kinds = st.sampled_from([*KINDS, _FUNCTIONAL] if owl else KINDS)
    found = [
        of(classes, st.sampled_from(ABOUT_CLASSES), classes),
        of(properties, st.sampled_from(ABOUT_PROPERTIES), properties),
        of(properties, st.sampled_from(BETWEEN), classes),
        of(properties, st.just(TYPE), kinds),
        of(one(THINGS, PROPERTIES), st.just(TYPE), classes),
        of(things, properties, objects),
    ]
    if owl:
        found += [
            of(classes, st.just(_OWL[0]), classes),
            of(properties, st.sampled_from(_OWL[1:]), properties),
            of(st.sampled_from(THINGS), st.just(_SAME), things),
        ]
    return st.one_of(found)


@dataclass(frozen=True)
class Stream:
    """The first triples, and commits that delete what others inserted."""

    first: frozenset[Atom]
    commits: list[Commit]


@st.composite
def streams(draw: st.DrawFn, *, owl: bool = False, commits: int = 8) -> Stream:
    """A small ontology with data, and changes of both."""
    triple = triples(wild=draw(st.booleans()), owl=owl)
    first = draw(st.frozensets(triple, max_size=14))
    now, made = set(first), []
    for _ in range(draw(st.integers(1, commits))):
        known = sorted(now, key=repr)
        chosen = (
            st.frozensets(st.sampled_from(known), max_size=4) if known else st.just(frozenset())
        )
        commit = Commit(draw(st.frozensets(triple, max_size=4)), draw(chosen))
        made.append(commit)
        now = (now - commit.deleted) | commit.inserted
    return Stream(first, made)
