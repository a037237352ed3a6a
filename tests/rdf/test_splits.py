"""Splits of files, read apart from each other, hold what the whole files hold."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corollary.core.dictionary import Dictionary
from corollary.rdf import files, formats
from corollary.rdf.splits import Part, PartReader, Split, splits_of
from tests.rdf.texts import Statement, documents, expected_by_line

FILES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def statements(part: Part) -> list[Statement]:
    columns = [part.terms.take(pa.array(column)).to_pylist() for column in part.facts["triples"]]
    return list(zip(*columns, strict=True))


def plain(rows: list[Statement]) -> list[Statement]:
    """Without what tells the blank nodes of documents apart."""
    return sorted(
        tuple(re.sub(r"^_:d\w+\.", "_:", term) for term in row)  # type: ignore[misc]
        for row in rows
    )


def cut(path: Path, wanted: int, format_: str = "n-triples") -> list[Split]:
    return list(splits_of(files.File(path, format_), "d0f0.", path.stat().st_size, wanted))


@FILES
@given(text=documents(quads=True, wrong=True), wanted=st.integers(1, 120))
def test_differential_splits(tmp_path: Path, text: str, wanted: int) -> None:
    path = tmp_path / "data.nq"
    path.write_bytes(text.encode())
    splits = cut(path, wanted, "n-quads")
    parts = [PartReader("skip").files([split]) for split in splits]
    right, refused = expected_by_line(text, "n-quads")
    assert plain([row for part in parts for row in statements(part)]) == sorted(right)
    found, before = [], 0
    for part in parts:
        found += [before + (sample.line or 0) for _, sample in part.samples]
        before += sum(part.lines)
    assert found == refused
    # Several splits of a task share its terms.
    assert plain(statements(PartReader("skip").files(splits))) == sorted(right)


def test_blank_nodes_of_a_document_are_the_same_in_all_splits(tmp_path: Path) -> None:
    path = tmp_path / "data.nt"
    path.write_text("".join(f"_:b <urn:p> <urn:o{number}> .\n" for number in range(9)))
    parts = [PartReader().files([split]) for split in cut(path, 40)]
    assert len(parts) > 3
    assert {row[0] for part in parts for row in statements(part)} == {"_:d0f0.b"}


@pytest.mark.parametrize("name", ["data.ttl", "data.ttl.gz", "data.owl", "data.nt.gz"])
def test_other_files_are_one_split(tmp_path: Path, name: str) -> None:
    text = b"# data\n" + b"<urn:a> <urn:p> _:b .\n" * 50
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    [file] = files.find(path)
    [split] = splits_of(file, "d0f0.", path.stat().st_size, 10)
    part = PartReader().files([split])
    assert {*statements(part)} == {("<urn:a>", "<urn:p>", "_:d0f0.b")}
    whole = formats.read(path, Dictionary())
    assert len(part.facts["triples"][0]) == len(whole) == 50


def test_a_mistake_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "data.nt"
    path.write_text("<urn:a> <urn:p> <urn:b> .\n" * 3 + "oops\n" + "<urn:a> <urn:p> <urn:c> .\n")
    first, second = cut(path, 60)
    part = PartReader().files([first])
    assert part.error is None
    part = PartReader().files([second])
    assert part.error is not None
    assert (part.error.code, part.error.line, part.failed) == ("E320", 1, 0)
    skipping = PartReader("skip").files([first, second])
    assert (skipping.skipped, skipping.error, skipping.lines) == (1, None, [3, 2])
    assert [(number, sample.line) for number, sample in skipping.samples] == [(1, 1)]


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    missing = PartReader("skip").files([Split(str(tmp_path / "no.nt"), "n-triples", "d0.", 0, 9)])
    damaged = tmp_path / "bad.nt.gz"
    damaged.write_bytes(gzip.compress(b"<urn:a> <urn:p> <urn:b> .\n" * 99)[:-20])
    part = PartReader("skip").files([Split(str(damaged), "n-triples", "d0.")])
    assert missing.error is not None
    assert part.error is not None
    assert (missing.error.code, part.error.code) == ("E301", "E306")


def test_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "data.nt"
    path.write_bytes(files.MARK + b"<urn:a> <urn:p> <urn:b> .\r\n" * 4)
    rows = [row for split in cut(path, 30) for row in statements(PartReader().files([split]))]
    assert rows == [("<urn:a>", "<urn:p>", "<urn:b>")] * 4


@given(text=documents(), size=st.integers(1, 4))
def test_differential_lines_that_others_read(text: str, size: int) -> None:
    lines = text.encode().split(b"\n")
    arrays = [
        pa.array(lines[start : start + size], pa.binary()) for start in range(0, len(lines), size)
    ]
    part = PartReader("skip").lines([(Split("x.nt", "n-triples", "d0f0."), arrays)])
    right, _ = expected_by_line(text, "n-triples")
    assert plain(statements(part)) == sorted(right)
