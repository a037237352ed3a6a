"""The dictionary: terms as values and as texts, one id for each."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.dictionary import Dictionary
from corollary.core.term_store import Spans, spans_of_array, spans_of_texts
from corollary.core.terms import canonical, term_of, text_of
from corollary.errors import OperationFailed
from corollary.lang.syntax import IRI, LANG_STRING, XSD, BlankNode, Constant, Literal
from corollary.testing import thresholds
from tests.strategies import wild_constants

_texts = st.text(max_size=12)
anything = st.one_of(
    st.builds(IRI, _texts),
    st.builds(BlankNode, _texts),
    st.builds(Literal, _texts, _texts),
    st.builds(Literal, _texts, st.just(LANG_STRING), _texts),
    wild_constants,
)


@given(anything)
def test_texts_read_back(term: Constant) -> None:
    text = text_of(term)
    assert term_of(text) == canonical(term)
    assert text_of(term_of(text)) == text
    text.encode()


@given(st.lists(anything, max_size=8))
def test_terms_differ_if_their_texts_do(terms: list[Constant]) -> None:
    assert len({canonical(t) for t in terms}) == len({text_of(t) for t in terms})


class Simple:
    """What a dictionary is, in a few lines."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def encode(self, terms: list[Constant]) -> list[int]:
        return [self.ids.setdefault(text_of(term), len(self.ids)) for term in terms]


# Few terms that come again and again, as values and as texts, and now and then any other.
_common: list[Constant] = [
    *(IRI(f"urn:{n}") for n in range(6)),
    *(Literal(text) for text in ("", "1", "eightlet", "eightletters", "eightlettert")),
    Literal("1", XSD + "integer"),
    Literal("01", XSD + "integer"),
    Literal("1", language="en"),
    Literal("1", LANG_STRING, "en"),
    BlankNode("b"),
    IRI("b"),
    Literal("b"),
]
_terms = st.lists(st.one_of(st.sampled_from(_common), anything), max_size=8)


@given(st.lists(st.tuples(st.booleans(), _terms), max_size=6), st.booleans())
def test_oracle_simple_dictionary(steps: list[tuple[bool, list[Constant]]], forget: bool) -> None:
    simple, dictionary = Simple(), Dictionary()
    # Forget the values of terms that are held as texts.
    with thresholds(**({"remembered_terms_limit": 2} if forget else {})):
        for as_texts, terms in steps:
            if as_texts:
                array = pa.array(map(text_of, terms), pa.string())
                ids = dictionary.encode_texts(array)
            else:
                ids = dictionary.encode(iter(terms))
            assert ids.dtype == np.uint32
            assert ids.tolist() == simple.encode(terms)
            assert len(dictionary) == len(simple.ids)
            assert dictionary.terms(ids.tolist()) == [canonical(term) for term in terms]
        everything = range(len(dictionary))
        assert dictionary.texts(everything).to_pylist() == list(simple.ids)
        assert [dictionary.id(dictionary.term(n)) for n in everything] == list(everything)
        again = Dictionary()
        assert again.encode_texts(dictionary.texts_from(0)).tolist() == list(everything)
        assert dictionary.texts_from(2).to_pylist() == list(simple.ids)[2:]


def test_many_terms_by_bytes() -> None:
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 50_000, 200_000)
    texts = pa.array([f"<urn:{'x' * (n % 30)}{n}>" for n in numbers.tolist()])
    dictionary = Dictionary()
    ids = np.concatenate(
        [dictionary.encode_texts(texts.slice(at, 999)) for at in range(0, 200_000, 999)]
    )
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    assert np.array_equal(ids, order[inverse])
    assert dictionary.texts(ids).equals(texts.cast(pa.large_string()))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.string_view()])
def test_arrays_of_every_kind(kind: pa.DataType) -> None:
    array = pa.array(["<a>", "<b>", "<a>", "<c>"], kind)
    assert Dictionary().encode_texts(array).tolist() == [0, 1, 0, 2]
    assert Dictionary().encode_texts(array.slice(1, 2)).tolist() == [0, 1]
    assert Dictionary().encode_texts(pa.chunked_array([array, array])).tolist() == [0, 1, 0, 2] * 2
    assert Dictionary().encode_texts(pa.array([], kind)).tolist() == []
    assert (
        spans_of_array(array).hashes().tolist()
        == spans_of_texts([b"<a>", b"<b>", b"<a>", b"<c>"]).hashes().tolist()
    )


def test_hashes_depend_on_the_bytes_alone() -> None:
    for size in range(20):
        found = {
            int(Spans(data, np.array([start]), np.array([start + size])).hashes()[0])
            for start in (0, 3)
            for filler in (b"\0", b"\xff")
            for data in [
                np.frombuffer(bytearray(filler * start + b"a" * size + filler * 9), np.uint8)
            ]
        }
        assert len(found) == 1


def test_no_more_terms_than_ids() -> None:
    dictionary = Dictionary(max_terms=2)
    assert dictionary.encode([Literal("a"), Literal("b"), Literal("a")]).tolist() == [0, 1, 0]
    with pytest.raises(OperationFailed) as caught:
        dictionary.encode([Literal("c")])
    assert caught.value.code == "E404"
    with pytest.raises(OperationFailed) as caught:
        dictionary.encode_texts(pa.array(['"a"', '"c"']))
    assert caught.value.code == "E404"
    assert len(dictionary) == 2
    assert dictionary.encode_texts(pa.array(['"b"'])).tolist() == [1]
    assert dictionary.term(1) == Literal("b")


def test_an_id_that_was_not_given() -> None:
    few, many = Dictionary(), Dictionary()
    few.id(IRI("a"))
    many.encode_texts(pa.array(["<a>"]))
    for dictionary in (few, many):
        with pytest.raises(IndexError):
            dictionary.term(1)
    with pytest.raises(ValueError, match="null"):
        many.encode_texts(pa.array(["<a>", None]))


def test_a_few_terms_load_no_compiler() -> None:
    code = (
        "import sys; import corollary; from corollary.core.dictionary import Dictionary;"
        "from corollary.lang.syntax import Literal;"
        "d = Dictionary(); d.term(d.id(Literal('a')));"
        "assert not {'numba', 'pyarrow'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.lists(anything, max_size=8), st.lists(anything, max_size=8), st.booleans())
def test_asking_adds_nothing(known: list[Constant], asked: list[Constant], stored: bool) -> None:
    dictionary = Dictionary()
    ids = dictionary.encode(known).tolist()
    if stored:  # as texts, so that values are forgotten
        texts = dictionary.texts_from(0)
        dictionary = Dictionary()
        dictionary.encode_texts(texts)
    assert [dictionary.find(term) for term in known] == ids
    size, seen = len(dictionary), set(map(canonical, known))
    for term in asked:
        assert (dictionary.find(term) is None) == (canonical(term) not in seen)
    assert len(dictionary) == size
