"""N-Triples and N-Quads by columns: what the library finds, and where it finds mistakes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.dictionary import Dictionary
from corollary.core.hashing import SLACK
from corollary.errors import InvalidInput
from corollary.rdf import lines as lines_module
from corollary.rdf.formats import read_text
from corollary.rdf.library import parse
from corollary.rdf.tokenizer import tokenize
from corollary.rdf.triples import Triples
from tests.rdf import texts
from tests.rdf.texts import Statement, documents, expected, expected_by_line


def statements(triples: Triples, dictionary: Dictionary) -> list[Statement]:
    """Statements as texts, labels without the part that keeps documents apart."""
    columns = [dictionary.texts(column).to_pylist() for column in triples.columns]
    return [
        tuple(re.sub(r"^_:d\d+\.", "_:", term) for term in row)  # type: ignore[misc]
        for row in zip(*columns, strict=True)
    ]


def read(text: str, format_: str, **options: object) -> list[Statement]:
    dictionary = Dictionary()
    return statements(read_text(text, dictionary, format=format_, **options), dictionary)  # type: ignore[arg-type]


@given(documents())
def test_differential_n_triples(text: str) -> None:
    assert sorted(read(text, "n-triples")) == sorted(expected(text, "n-triples"))


@given(documents(quads=True))
def test_differential_n_quads(text: str) -> None:
    assert sorted(read(text, "n-quads")) == sorted(expected(text, "n-quads"))


@pytest.mark.parametrize("format_", ["n-triples", "n-quads"])
@given(text=documents(quads=True, wrong=True))
def test_differential_mistakes(format_: str, text: str) -> None:
    right, refused = expected_by_line(text, format_)
    dictionary = Dictionary()
    triples = read_text(text, dictionary, format=format_, on_error="skip")
    assert sorted(statements(triples, dictionary)) == sorted(right)
    assert [skipped.line for skipped in triples.samples] == refused
    assert triples.skipped == len(refused)
    if refused:
        with pytest.raises(InvalidInput) as caught:
            read_text(text, Dictionary(), format=format_, name="data.nt")
        assert (caught.value.code, caught.value.file) == ("E320", "data.nt")
        assert caught.value.line == refused[0]


_changes = st.lists(
    st.tuples(
        st.integers(0, 400), st.sampled_from(b'<>"\\ \n\r._:@^#-\x00\x1f\x7f\x80\xc3\xe2\xff9aZ%')
    ),
    max_size=3,
)


@given(documents(quads=True), _changes, st.booleans())
def test_differential_changed_bytes(
    text: str, changes: list[tuple[int, int]], longer: bool
) -> None:
    data = bytearray(text.encode())
    for place, byte in changes:
        if longer:
            data.insert(place % (len(data) + 1), byte)
        elif data:
            data[place % len(data)] = byte
    right, refused = expected_by_line(bytes(data), "n-quads")
    dictionary = Dictionary()
    triples = read_text(bytes(data), dictionary, format="n-quads", on_error="skip")
    assert sorted(statements(triples, dictionary)) == sorted(right)
    assert [skipped.line for skipped in triples.samples] == refused


@given(documents(quads=True, wrong=True))
def test_differential_small_chunks(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "CHUNK", 7)
        found = read(text, "n-quads", on_error="skip")
    assert sorted(found) == sorted(expected_by_line(text, "n-quads")[0])


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"#", b"\r\n", b" ", b"<", b'"', b"_", b"<a", b"_:", b'"\\', b"\x00", b"\xff\n",
     b'<urn:a> <urn:b> "\xff" .\n', b'<urn:a> <urn:b> "\xed\xa0\x80" .\n',
     b'<urn:a> <urn:b> "\xf5\x80\x80\x80" .', b'<urn:a> <urn:b> "\xc0\x80" .',
     b'<urn:a> <urn:b> "\xe2\x82" .\n', b"<urn:\xff> <urn:b> <urn:c> .\n"],
)  # fmt: skip
def test_what_is_no_text(data: bytes) -> None:
    problems = [*parse(data, "n-triples")][:1]
    triples = read_text(data, Dictionary(), format="n-triples", on_error="skip")
    assert (len(triples), triples.skipped) == (0, len(problems))


def tokens(text: bytes, *, quads: bool = False) -> tuple[int, int]:
    data = np.frombuffer(bytearray(text + bytes(SLACK)), np.uint8)
    found = tokenize(data, len(text), quads=quads)
    return found.triples.shape[1], len(found.left)


@pytest.mark.parametrize(
    "line",
    ["<urn:s> <urn:p> <urn:o> .", " <urn:s>\t<urn:p>  <urn:o>.", "_:a <urn:p> _:b .\r",
     '<urn:s> <urn:p> "é \\"x\\"\\n" . # why', '<urn:s> <urn:p> "x"@en .',
     '<urn:s> <urn:p> ""@en-us .', f'<urn:s> <urn:p> "x"^^<{texts.XSD}string> .',
     "<http://e.org:80/é?%41#é> <urn:p> <urn:o> ."],
)  # fmt: skip
def test_lines_that_the_library_does_not_see(line: str) -> None:
    assert tokens(line.encode() + b"\n") == (1, 0)


def test_lines_that_are_left_to_the_library() -> None:
    for end in (
        '"\\u0041" .',
        '"x"@EN .',
        "_:a. .",
        "<urn:%> .",
        "<urn:o>",
        '"x" . <urn:a>',
        "1 .",
    ):
        assert tokens(f"<urn:s> <urn:p> {end}\n".encode()) == (0, 1)


def test_named_graphs_are_dropped() -> None:
    text = b"<urn:s> <urn:p> <urn:o> <urn:g> .\n" * 2 + b"<urn:s> <urn:p> <urn:o> <urn:h> .\n"
    assert tokens(text, quads=True) == (3, 0)
    assert tokens(text) == (0, 3)


def test_many_terms_and_long_ones() -> None:
    text = (
        "".join(f'<urn:s{n}> <urn:p{n % 1500}> "{"x" * (n % 40)}{n}" .\n' for n in range(10_000))
        + f'<urn:s> <urn:p> "{"y" * 5_000_000}" .\n'
    )
    dictionary = Dictionary()
    triples = read_text(text, dictionary, format="n-triples")
    assert statements(triples, dictionary) == expected(text, "n-triples")
    assert len(triples) == 10_001
