"""Computed terms: numbered without arrays of their texts, as if each were encoded by itself."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core import interning
from corollary.core.dictionary import Dictionary
from corollary.core.kinds import INTEGER_NUMBER, Kinds, kind_of
from corollary.core.terms import text_of
from corollary.errors import OperationFailed
from corollary.lang.syntax import IRI, Literal
from corollary.lang.xsd import INTEGER
from corollary.testing import thresholds
from tests.core.test_dictionary import anything

_LARGEST = 2**63 - 1
_numbers = st.one_of(
    st.integers(-12, 12),
    st.integers(-_LARGEST, _LARGEST),
    st.integers(1, 18).flatmap(lambda digits: st.integers(10**digits - 2, 10**digits + 1)),
    st.sampled_from([_LARGEST, -_LARGEST]),
)
_strings = st.one_of(st.sampled_from(["", "a", "sevenby", "eightbyt", 'q"\\\n']), st.text())


def _integers(values: list[int]) -> list[Literal]:
    return [Literal(str(value), INTEGER) for value in values]


@given(st.lists(_numbers), st.lists(_numbers))
def test_integers(known: list[int], values: list[int]) -> None:
    found, expected = Dictionary(), Dictionary()
    for dictionary in (found, expected):
        dictionary.encode(_integers(known))
    ids = found.encode_integers(np.array(values, np.int64))
    assert ids.tolist() == expected.encode(_integers(values)).tolist()
    assert found.texts_from(0).equals(expected.texts_from(0))


@given(
    st.lists(st.tuples(_strings, _strings), min_size=1),
    st.lists(st.one_of(st.integers(0, 1), _strings), min_size=1, max_size=5),
)
def test_concatenations(rows: list[tuple[str, str]], parts: list[int | str]) -> None:
    dictionary = Dictionary()
    columns = [dictionary.encode([Literal(row[n]) for row in rows]) for n in (0, 1)]
    inner, constants = [], [""]
    for part in parts:
        if isinstance(part, int):
            inner.append(columns[part])
            constants.append("")
        else:
            constants[-1] += text_of(Literal(part))[1:-1]
    if not inner:
        return
    ids = dictionary.encode_joined(inner, constants)
    expected = [
        Literal("".join(row[part] if isinstance(part, int) else part for part in parts))
        for row in rows
    ]
    assert dictionary.terms(ids.tolist()) == expected
    assert dictionary.encode(expected).tolist() == ids.tolist()


def test_many_terms_need_room_several_times() -> None:
    random = np.random.default_rng(3)
    values = np.concatenate([random.integers(-(10**6), 10**6, 150_000), np.arange(20_000)])
    found, expected = Dictionary(), Dictionary()
    ids = found.encode_integers(values)
    texts = pa.array([f'"{value}"^^<{INTEGER}>' for value in values.tolist()])
    assert np.array_equal(ids, expected.encode_texts(texts))
    assert found.texts_from(0).equals(expected.texts_from(0))
    long = found.encode([Literal("x" * size) for size in (70_000, 3, 0)])
    columns = [long[random.integers(0, 3, 300)] for _ in range(2)]
    joined = found.encode_joined(columns, ["<", "|", ">"])
    one, two = (found.terms(column.tolist()) for column in columns)
    wanted = [Literal(f"<{a.lexical}|{b.lexical}>") for a, b in zip(one, two, strict=True)]  # type: ignore[union-attr]
    assert found.terms(joined.tolist()) == wanted


def test_no_more_terms_than_ids() -> None:
    dictionary = Dictionary(max_terms=3)
    dictionary.encode(_integers([7, 8]))
    assert dictionary.encode_integers(np.array([8, 9, 7])).tolist() == [1, 2, 0]
    with pytest.raises(OperationFailed) as caught:
        dictionary.encode_integers(np.array([9, 10]))
    assert caught.value.code == "E404"
    assert len(dictionary) == 3
    assert dictionary.encode_integers(np.array([9])).tolist() == [2]


_forms = st.sampled_from(["7", "-7", "007", "-0", "+5", "-", "", "7x", "1" * 15, "1" * 16, "-" * 3])


@given(st.lists(st.one_of(anything, _forms.map(lambda form: Literal(form, INTEGER)))))
def test_kinds_are_those_of_each_text(terms: list[Any]) -> None:
    dictionary = Dictionary()
    ids = dictionary.encode([*terms, IRI("urn:x")])
    kinds, numbers = Kinds().of(ids, dictionary)
    expected = [kind_of(text) for text in dictionary.texts(ids).to_pylist()]
    assert list(zip(kinds.tolist(), numbers.tolist(), strict=True)) == expected
    valid = np.ones(len(ids), bool)
    values, largest = Kinds().integers(ids, dictionary, valid)
    assert valid.tolist() == [kind == INTEGER_NUMBER for kind, _ in expected]
    sizes = [abs(number) if kind == INTEGER_NUMBER else 0 for kind, number in expected]
    assert largest == max(sizes)
    assert np.abs(values).tolist() == sizes


def test_interpreted_loops_compute_what_compiled_ones_do() -> None:
    random = Random(5)
    values = [random.choice((-1, 1)) * random.getrandbits(random.randrange(63)) for _ in range(300)]
    texts = []
    for limit in (0, 1 << 14):
        with thresholds(interpreted_call_elements=limit):
            dictionary = Dictionary()
            store = dictionary._flushed()
            store._reserve(600, 1 << 16)
            ids = np.empty(len(values), np.uint32)
            suffix = np.frombuffer(bytearray(b'"^^<i>' + b"\0" * 8), np.uint8)
            loop: Any = interning.encode_integers
            inputs = (np.array(values), suffix, 6, 1 << 20, store._slots, store._texts)
            call = loop.interpreted if limit else loop.dispatcher
            with np.errstate(over="ignore"):
                count, done = call(*inputs, store._offsets, 0, ids)
            store._count = count
            texts.append((count, done, ids.tolist(), store.array().to_pylist()))
    assert texts[0] == texts[1]
    assert texts[0][1] == len(values)
