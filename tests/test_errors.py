"""Errors as objects, and their codes: one meaning, one title and one exit status each."""

from __future__ import annotations

import ast
import pickle
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corollary.errors import (
    CODES,
    CorollaryError,
    CorollaryWarning,
    Diagnostic,
    InvalidInput,
    InvalidProgram,
    LimitReached,
    OperationFailed,
    Source,
    Span,
)

_SOURCE = Source("rules.dl", "p(?x) :- q(?y) .\np(?x ?y) .\n")

# Constructors that differ from that of the base class.
MAKE: dict[type[CorollaryError], Callable[[], CorollaryError]] = {
    InvalidProgram: lambda: InvalidProgram(
        [
            Diagnostic("E202", "unsafe variable ?x", Span(_SOURCE, 2, 4), "use it in the body"),
            Diagnostic("E101", "unexpected ?y", Span(_SOURCE, 22, 24)),
        ]
    ),
    LimitReached: lambda: LimitReached("--limit-facts 10"),
}


ROOT = Path(__file__).parents[1]

# Exit status by what takes a code as its first argument: errors, and functions of the parser.
STATUS = {
    "InvalidInput": InvalidInput.exit_status,
    "Diagnostic": InvalidProgram.exit_status,
    "_fail": InvalidProgram.exit_status,
    "refuse": InvalidProgram.exit_status,
    "mistake": InvalidProgram.exit_status,
    "OperationFailed": OperationFailed.exit_status,
    "__init__": LimitReached.exit_status,
}


def raised_codes() -> Iterator[tuple[str, str, str]]:
    """Code, name of the callable that takes it, and module, for each place that raises an error."""
    for path in (ROOT / "src" / "corollary").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name(id=name) | ast.Attribute(attr=name),
                    args=[ast.Constant(value=str(code)), *_],
                ) if re.fullmatch(r"E\d{3}", code):
                    yield code, name, path.relative_to(ROOT / "src" / "corollary").as_posix()


def documented_statuses() -> dict[str, int]:
    """Exit status by code, from the table in docs/errors.md; each code is in one row."""
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    statuses: dict[str, int] = {}
    for first, last, status in re.findall(
        r"^\| (E\d+)(?:–(E\d+))? \| (\d) \|$", page, re.MULTILINE
    ):
        codes = {code for code in CODES if first <= code <= (last or first)}
        assert codes
        assert not codes & statuses.keys()
        statuses |= dict.fromkeys(codes, int(status))
    return statuses


def test_every_code_has_one_title() -> None:
    assert len({*CODES.values()}) == len(CODES)


def test_documents_the_exit_status_of_every_code() -> None:
    statuses: defaultdict[str, set[int]] = defaultdict(set)
    for code, name, _ in raised_codes():
        statuses[code].add(STATUS[name])
    documented = documented_statuses()
    assert documented.keys() == CODES.keys()
    assert {code: {documented[code]} for code in statuses} == dict(statuses)
    # Chosen at run time, or the last argument of a mistake in SPARQL.
    assert CODES.keys() - statuses.keys() <= {"E205", "E206", "E568"}


def test_raises_code_of_uncommitted_changes_for_scripts_only() -> None:
    assert {module for code, _, module in raised_codes() if code == "E310"} == {"lang/script.py"}


def test_raises_code_of_options_in_commands_only() -> None:
    modules = {module.partition("/")[0] for code, _, module in raised_codes() if code == "E313"}
    assert modules == {"cli"}


def test_raises_code_of_data_outside_commands_only() -> None:
    modules = {module for code, _, module in raised_codes() if code == "E341"}
    assert not [module for module in modules if module.startswith("cli/")]


def kinds(base: type[CorollaryError] = CorollaryError) -> Iterator[type[CorollaryError]]:
    yield base
    for kind in base.__subclasses__():
        yield from kinds(kind)


def made(kind: type[CorollaryError]) -> CorollaryError:
    if kind in MAKE:
        return MAKE[kind]()
    return kind("E301", "cannot read a.dl", "is it there?", file="a.dl", line=3, column=7)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_warnings_survive_pickling(protocol: int) -> None:
    warning = CorollaryWarning("W101", "2 statements", "names are dropped", count=2, file="a.nq")
    again = pickle.loads(pickle.dumps(warning, protocol))
    assert type(again) is CorollaryWarning
    assert str(again) == str(warning)
    assert again.as_json() == warning.as_json()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", list(kinds()))
def test_every_error_survives_pickling(kind: type[CorollaryError], protocol: int) -> None:
    error = made(kind)
    error.add_note("while testing")
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.render() == error.render()
    assert again.as_json() == error.as_json()
    assert again.args == error.args
    assert again.__notes__ == ["while testing"]
    assert {k: v for k, v in vars(again).items() if k != "diagnostics"} == {
        k: v for k, v in vars(error).items() if k != "diagnostics"
    }


POOL = """
import multiprocessing, sys
from corollary import InvalidProgram, Program

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            pool.apply(Program.parse, ("p(?x) :- q(?y) .",))
        except InvalidProgram as error:
            print(error.code, error.diagnostics[0].span.text)
"""


def test_an_error_comes_out_of_a_pool() -> None:
    done = subprocess.run([sys.executable, "-c", POOL], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("E202 ?x\n", "")
