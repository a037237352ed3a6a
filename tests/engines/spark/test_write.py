"""Files that tasks write, and what the driver compares with their reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corollary.core.checksum import has_its_content
from corollary.engines.spark import parquet
from corollary.engines.spark.parquet import WriteParquet, WrittenFile
from corollary.engines.spark.write import compare, write
from corollary.errors import OperationFailed


def rows(first: int, count: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.record_batch(
        {
            "relation": pa.array([f"r{n % 2}" for n in numbers], pa.string()),
            "arg0": pa.array(numbers, pa.int64()),
            "explicit": pa.array([n % 3 == 0 for n in numbers], pa.bool_()),
        }
    )


def written(folder: Path, batches: list[pa.RecordBatch]) -> list[WrittenFile]:
    reports = list(WriteParquet(folder, "zstd")(iter(batches)))
    return [
        WrittenFile.of(*row) for r in reports for row in zip(*r.to_pydict().values(), strict=True)
    ]


def test_a_task_reports_the_file_that_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 7)
    batches = [rows(0, 5), rows(5, 5), rows(0, 0), rows(10, 5)]
    [file] = written(tmp_path, batches)
    path = tmp_path / file.name
    assert (file.rows, file.bytes) == (15, path.stat().st_size)
    assert has_its_content(path)
    assert pq.ParquetFile(path).num_row_groups == 2
    table = pa.Table.from_batches(batches)
    assert pq.read_table(path).equals(table)
    expected: dict[tuple[str, bool], int] = {}
    for row in table.to_pylist():
        key = row["relation"], row["explicit"]
        expected[key] = expected.get(key, 0) + 1
    assert file.counts == expected
    compare([file], tmp_path, 15)


def test_a_task_without_rows_writes_no_file(tmp_path: Path) -> None:
    assert written(tmp_path, [rows(0, 0)]) == []
    assert list(tmp_path.iterdir()) == []
    compare([], tmp_path, 0)


def test_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def batches() -> list[pa.RecordBatch]:
        return [rows(0, 3), rows(0, 3).rename_columns(["a", "b", "c"])]

    with pytest.raises(pa.ArrowInvalid):
        written(tmp_path, batches())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match=r"E549: .* does not see"):
        written(tmp_path / "missing", [rows(0, 1)])


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "facts").write_text("a file")
    frame: Any = None
    with pytest.raises(OperationFailed, match="writing facts failed"):
        write(frame, tmp_path / "facts", "name")


@pytest.mark.parametrize("fault", ["missing", "short", "other rows", "other count", "fewer files"])
def test_any_difference_fails(tmp_path: Path, fault: str) -> None:
    files = [*written(tmp_path, [rows(0, 5)]), *written(tmp_path, [rows(5, 5)])]
    expected = 10
    path = tmp_path / files[0].name
    if fault == "missing":
        path.unlink()
    elif fault == "short":
        path.write_bytes(path.read_bytes()[:-1])
    elif fault == "other rows":
        files[0] = WrittenFile(files[0].name, 4, files[0].bytes, {})
        expected = 9
    elif fault == "other count":
        expected = 11
    else:
        files.pop()
    with pytest.raises(OperationFailed) as caught:
        compare(files, tmp_path, expected)
    assert caught.value.code == "E549"
