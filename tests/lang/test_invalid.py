"""Every mistake in tests/invalid is reported with its code, place, sentence and hint."""

from pathlib import Path

import pytest

from corollary.errors import CODES, InvalidProgram, Source
from corollary.lang.program import Program

FOLDER = Path(__file__).parent.parent / "invalid"
CASES = sorted([*FOLDER.glob("*.dl"), *FOLDER.glob("*.srl")])


def render(path: Path) -> str:
    source = Source(path.name, path.read_text(encoding="utf-8"))
    with pytest.raises(InvalidProgram) as caught:
        Program.parse(source, syntax=path.suffix[1:])
    return caught.value.render() + "\n"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_diagnostics(path: Path) -> None:
    expected = path.with_suffix(".expected").read_text(encoding="utf-8")
    assert render(path) == expected
    code = path.stem.split("-")[0]
    assert code == "many" or code in expected


def test_every_code_of_the_language_has_a_case() -> None:
    covered = {path.stem.split("-")[0] for path in CASES}
    assert {code for code in CODES if code < "E300"} <= covered


def test_no_expectation_without_a_program() -> None:
    stray = {path.stem for path in FOLDER.glob("*.expected")} - {path.stem for path in CASES}
    assert stray == set()
