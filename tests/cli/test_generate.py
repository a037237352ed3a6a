"""`corollary generate` as a user calls it."""

import json
from pathlib import Path

import pytest

from corollary.cli import progress
from corollary.cli.main import main
from corollary.generate import clique
from corollary.generate.columns import Columns


def generate(*arguments: str | Path) -> int:
    return main(["generate", *map(str, arguments)])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_and_what_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate("clique", "--scale", "4", "--out", tmp_path / "a" / "b") == 0
    said = capsys.readouterr()
    assert said.out == "edge.facts  12 facts\nprogram.dl  rules\n"
    assert said.err.startswith("12 facts, 0.0 MiB, ")
    assert names(tmp_path / "a" / "b") == ["edge.facts", "generated.json", "program.dl"]


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("dag", "--scale", "0.01", "--seed", "3", "--out", tmp_path, "--json")
    assert generate(*arguments, "--compress", "gzip") == 0
    report = json.loads(capsys.readouterr().out)
    assert report.pop("seconds") > 0
    sizes = {name: (tmp_path / name).stat().st_size for name in ("edge.facts.gz", "program.dl")}
    assert report == {
        "dataset": "dag",
        "scale": 0.01,
        "seed": 3,
        "out": str(tmp_path),
        "files": [
            {"name": "edge.facts.gz", "facts": 1000, "bytes": sizes["edge.facts.gz"]},
            {"name": "program.dl", "facts": 0, "bytes": sizes["program.dl"]},
        ],
        "facts": 1000,
        "bytes": sum(sizes.values()),
    }


def test_what_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "edge.facts").write_text("mine")
    assert generate("clique", "--scale", "4", "--out", tmp_path) == 1
    assert "E430" in capsys.readouterr().err
    assert (tmp_path / "edge.facts").read_text() == "mine"
    assert names(tmp_path) == ["edge.facts"]


def test_force_replaces_the_whole_dataset(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert generate("clique", "--scale", "4", "--compress", "zstd", "--out", tmp_path) == 0
    assert generate("skos", "--scale", "0.01", "--out", tmp_path) == 1
    assert generate("skos", "--scale", "0.01", "--out", tmp_path, "--force") == 0
    assert names(tmp_path) == ["categories.nt", "generated.json", "notes.txt", "rules.dl"]


def test_force_reaches_no_other_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    folder = tmp_path / "data"
    assert generate("clique", "--scale", "4", "--out", folder) == 0
    (folder / "generated.json").write_text('{"files": ["../mine"]}')
    assert generate("clique", "--scale", "4", "--out", folder, "--force") == 0
    assert (tmp_path / "mine").exists()


@pytest.mark.parametrize("listed", ["not JSON", "[]", '{"files": 3}'])
def test_a_damaged_list_is_replaced(tmp_path: Path, listed: str) -> None:
    (tmp_path / "generated.json").write_text(listed)
    assert generate("clique", "--scale", "4", "--out", tmp_path) == 1
    assert generate("clique", "--scale", "4", "--out", tmp_path, "--force") == 0
    assert names(tmp_path) == ["edge.facts", "generated.json", "program.dl"]


def test_a_file_instead_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        assert generate("clique", "--scale", "4", "--out", place, "--json") == 1
        assert json.loads(capsys.readouterr().err)["error"]["code"] == "E401"
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("scale", ["0", "-1", "1.5", "inf", "nan"])
def test_a_bad_scale(tmp_path: Path, scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate("lubm", "--scale", scale, "--out", tmp_path / "out") == 2
    assert capsys.readouterr().err.startswith("E330: the scale of lubm must be ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["mesh", "--out", "x"],
        ["dag"],
        ["dag", "--out", "x", "--seed", "-1"],
        ["dag", "--out", "x", "--scale", "big"],
    ],
)
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        generate(*arguments)
    assert "usage: corollary generate" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_nothing_is_left_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def failing(self: Columns) -> memoryview:
        raise error

    monkeypatch.setattr(Columns, "lines", failing)
    assert generate("clique", "--scale", "4", "--out", tmp_path / "a" / "b") == 1
    assert names(tmp_path) == []


def test_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0)
    monkeypatch.setattr(clique, "BATCH", 10)
    assert generate("clique", "--scale", "4", "--out", tmp_path) == 0
    assert "file 1 of 2, 6 facts, 0.0 s" in capsys.readouterr().err
    assert generate("clique", "--scale", "4", "--out", tmp_path, "--force", "--quiet") == 0
    assert capsys.readouterr() == ("", "")
