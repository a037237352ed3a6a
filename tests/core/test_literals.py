"""What is found of many literals at once is what is found of each alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.dictionary import Dictionary
from corollary.core.literals import NO_VALUE, Literals
from corollary.core.partial import PartialDictionary
from corollary.lang.datatypes import DATATYPES, data_value, datatypes_of
from corollary.lang.syntax import IRI, RDF, XSD, BlankNode, Constant, Literal

TEXTS = st.one_of(
    st.sampled_from(["", "a", " a", "a  b", "a b", "en-US", "abcdefghi", "a:b", "7", "07", "true"]),
    st.text(st.characters(codec="utf-8"), max_size=6),
    st.text(' aA1-_:."\\\t\n\r\u00b7\u00e9\u0301\U0001f600', max_size=5),
)
NAMES = [
    XSD + name for name in ("string", "token", "normalizedString", "NCName", "integer", "byte")
]
TERMS = st.one_of(
    st.builds(Literal, TEXTS),
    st.builds(Literal, TEXTS, st.sampled_from([*NAMES, RDF + "PlainLiteral"])),
    st.builds(lambda text: Literal(text, RDF + "langString", "en"), TEXTS),
    st.sampled_from([IRI("a"), BlankNode("b")]),
)


@given(st.lists(TERMS, min_size=1, max_size=8), st.lists(TERMS, max_size=8))
def test_alone_and_together(first: list[Constant], more: list[Constant]) -> None:
    """In two parts, so that terms come after others with their value."""
    dictionary, literals = Dictionary(), Literals()
    for terms in (first, [*first, *more]):
        ids = dictionary.encode(terms)
        is_literal = [isinstance(term, Literal) for term in terms]
        assert literals.is_literal(ids, dictionary).tolist() == is_literal
        for name in DATATYPES:
            expected = [isinstance(t, Literal) and name in datatypes_of(t) for t in terms]
            found = literals.has_datatype(ids, IRI(name), dictionary)
            assert found.tolist() == expected, name
        values = [data_value(term) if isinstance(term, Literal) else None for term in terms]
        numbers = literals.values(ids, dictionary)
        assert (numbers == NO_VALUE).tolist() == [value is None for value in values]
        same = np.array([[one == two for two in values] for one in values])
        assert ((numbers[:, None] == numbers[None]) == same).all()


@given(st.lists(st.lists(TERMS, min_size=1, max_size=6), min_size=1, max_size=4))
def test_a_dictionary_of_few_terms(parts: list[list[Constant]]) -> None:
    """Of terms in a table, with ids of any size, the same is found, and nothing is long."""
    whole = Dictionary()
    all_ids = whole.encode([term for terms in parts for term in terms])
    far = 2**31  # from where on ids are
    texts = whole.texts(np.arange(len(whole))).to_pylist()

    def look_up(wanted: list[str]) -> list[int | None]:
        return [far + texts.index(text) if text in texts else None for text in wanted]

    few = PartialDictionary(
        {}, far + len(texts), lambda ids: [texts[i - far] for i in ids], look_up
    )
    one, two = Literals(), Literals()
    at = 0
    seen: dict[int, int] = {}
    for terms in parts:
        ids = all_ids[at : at + len(terms)]
        at += len(terms)
        mine, theirs = (ids, whole), ((ids + far).astype(np.uint32), few)
        assert one.is_literal(*mine).tolist() == two.is_literal(*theirs).tolist()
        for name in NAMES:
            expected = one.has_datatype(mine[0], IRI(name), whole).tolist()
            assert two.has_datatype(theirs[0], IRI(name), few).tolist() == expected
        pairs = zip(one.values(*mine).tolist(), two.values(*theirs).tolist(), strict=True)
        for number, other in pairs:
            assert (number == NO_VALUE) == (other == NO_VALUE)
            assert seen.setdefault(number, other) == other
    assert len({*seen.values()}) == len(seen)
    assert max(len(two._bits.values), len(two._values.values)) <= len(texts)
