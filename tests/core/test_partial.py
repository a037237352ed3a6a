"""A dictionary of a few terms gives the ids that the dictionary of all terms gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.dictionary import Dictionary
from corollary.core.partial import PartialDictionary
from corollary.core.terms import term_of
from corollary.errors import OperationFailed
from corollary.lang.syntax import IRI, XSD, Constant, Literal
from corollary.testing import thresholds

CONSTANTS = st.sampled_from(
    [
        IRI("urn:a"),
        IRI("urn:b"),
        Literal("1"),
        Literal("1", XSD + "integer"),
        Literal("x", language="EN"),
    ]
)


def partial(texts: list[str], known: dict[Constant, int]) -> PartialDictionary:
    return PartialDictionary(
        known,
        len(texts),
        fetch=lambda ids: [texts[number] for number in ids],
        look_up=lambda wanted: [texts.index(t) if t in texts else None for t in wanted],
    )


@given(st.lists(CONSTANTS), st.lists(CONSTANTS), st.integers(0, 5), st.integers(0, 4))
def test_differential_ids(
    first: list[Constant], then: list[Constant], known: int, room: int
) -> None:
    with thresholds(remembered_texts_limit=room, remembered_terms_limit=room):
        compare(first, then, known)


def compare(first: list[Constant], then: list[Constant], known: int) -> None:
    whole = Dictionary()
    whole.encode(first)
    texts = whole.texts_from(0).to_pylist()
    some = partial(texts, {term_of(text): at for at, text in enumerate(texts[:known])})
    assert [some.find(term) for term in then] == [whole.find(term) for term in then]
    assert some.encode(then).tolist() == whole.encode(then).tolist()
    assert len(some) == len(whole)
    every = np.arange(len(whole))
    assert some.texts(every).to_pylist() == whole.texts(every).to_pylist()
    assert list(some.terms(every.tolist())) == list(whole.terms(every.tolist()))
    assert some.texts_from(len(texts)).to_pylist() == whole.texts_from(len(texts)).to_pylist()
    assert some.encode_texts(whole.texts_from(0)).tolist() == every.tolist()


def test_limits() -> None:
    with pytest.raises(OperationFailed, match="32 bits"):
        PartialDictionary({}, 5, lambda ids: ["" for _ in ids], max_terms=4)
    dictionary = PartialDictionary({}, 3, fetch=lambda ids: ["" for _ in ids], max_terms=3)
    with pytest.raises(OperationFailed, match="32 bits"):
        dictionary.encode([IRI("urn:new")])
    with pytest.raises(IndexError, match="no term has the id 3"):
        dictionary.texts([3])
    assert dictionary.encode_texts(pa.array([], pa.string())).tolist() == []
