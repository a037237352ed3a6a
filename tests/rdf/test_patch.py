"""RDF Patch: what a file adds and deletes."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary.errors import InvalidInput
from corollary.rdf.patch import read_patch


def patch(tmp_path: Path, text: str) -> tuple[list[str], list[str]]:
    path = tmp_path / "change.rdfp"
    path.write_text(text)
    added, deleted = read_patch(path)
    return added["object"].to_pylist(), deleted["object"].to_pylist()


def test_the_last_word_counts(tmp_path: Path) -> None:
    text = """H id <urn:x> .
TX .
A <urn:a> <urn:p> "1" .
D <urn:a> <urn:p> "1" .
D <urn:a> <urn:p> "2" .
A <urn:a> <urn:p> "2" .
TC .
TX .
A _:b <urn:p> "3" .
TC .
"""
    added, deleted = patch(tmp_path, text)
    assert (sorted(added), deleted) == (['"2"', '"3"'], ['"1"'])


def test_what_is_taken_back_does_not_count(tmp_path: Path) -> None:
    text = 'TX .\nA <urn:a> <urn:p> "1" .\nTA .\nD <urn:a> <urn:p> "2" .\n'
    assert patch(tmp_path, text) == ([], ['"2"'])


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("A <urn:a> <urn:p> <urn:b> .\nX <urn:a> .\n", "E549", 2),
        ("TX .\nA <urn:a> <urn:p> <urn:b> .\n", "E549", None),
        ("\nA <urn:a> <urn:p> <urn:b> .\nA <urn:a> 1 .\n", "E320", 3),
    ],
)
def test_mistakes(tmp_path: Path, text: str, code: str, line: int | None) -> None:
    with pytest.raises(InvalidInput) as caught:
        patch(tmp_path, text)
    assert (caught.value.code, caught.value.line) == (code, line)
