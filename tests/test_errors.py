"""Errors as objects: they survive pickling, and so the way between processes."""

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from corollary.errors import (
    CorollaryError,
    CorollaryWarning,
    Diagnostic,
    InvalidProgram,
    LimitReached,
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
