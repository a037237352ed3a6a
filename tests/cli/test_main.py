"""The command line before a command runs: help, version, usage errors, imports."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

import corollary
from corollary.cli.main import COMMANDS, main

LIBRARIES = {"numpy", "pyarrow", "numba", "duckdb", "deltalake", "pyoxigraph", "pyspark"}
COMMON = {"cli", "cli.main", "cli.interrupts", "cli.pandas_import", "cli.warning_lines", "errors"}
LIGHT_COMMANDS = ["warm", "info", "log", "explain", "verify", "repair", "compact", "vacuum"]

# Runs a statement, then reports the modules that it loaded and the CPU time of the process.
PROBE = """
import atexit, json, sys, time
atexit.register(lambda: print(json.dumps([sorted(sys.modules), time.process_time()])))
"""
CALL = "from corollary.cli.main import main; sys.exit(main(sys.argv[1:]))"


def probe(statement: str, *arguments: str) -> tuple[int, set[str], float]:
    """Exit status, loaded modules and CPU seconds of a Python process."""
    process = subprocess.run(
        [sys.executable, "-c", PROBE + statement, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    modules, cpu_seconds = json.loads(process.stdout.splitlines()[-1])
    return process.returncode, set(modules), cpu_seconds


def own_modules(modules: set[str]) -> set[str]:
    return {module.partition(".")[2] for module in modules if module.startswith("corollary.")}


@pytest.mark.parametrize(
    ("argument", "status"), [("--version", 0), ("--help", 0), ("rum", 2), ("--verbose", 2)]
)
def test_imports_no_command_before_its_call(argument: str, status: int) -> None:
    returned, modules, cpu_seconds = probe(CALL, argument)
    assert returned == status
    assert not modules & LIBRARIES
    assert own_modules(modules) == COMMON
    assert cpu_seconds < 0.15


@pytest.mark.parametrize("command", LIGHT_COMMANDS)
def test_help_imports_no_library(command: str) -> None:
    status, modules, _ = probe(CALL, command, "--help")
    assert status == 0
    assert f"cli.{command}" in own_modules(modules)
    assert not modules & LIBRARIES


def test_a_query_of_a_store_imports_no_reasoner(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    program = (
        "path(?x, ?z) :- path(?x, ?y), path(?y, ?z) . [?x, a, ?d] :- [?x, a, ?c], path(?c, ?d) ."
    )
    corollary.KnowledgeBase(f"{program} [<x>, a, <c>] . path(<c>, <d>) .").save(store)
    status, modules, _ = probe(CALL, "query", store, "SELECT ?c { <x> a ?c }")
    assert status == 0
    assert "query.engine" in own_modules(modules)
    assert not own_modules(modules) & {
        "algorithms.maintain",
        "algorithms.explain",
        "algorithms.strata",
        "engines.columnar.closure_diff",
        "engines.columnar.linear_closure",
        "engines.tuples",
        "lang.srl",
        "reasoning.adaptive",
    }
    assert "numba" not in modules


def test_a_command_collects_garbage_rarely_in_its_own_process_only() -> None:
    before = gc.get_threshold()
    with pytest.raises(SystemExit):
        main(["--version"])
    assert gc.get_threshold() == before
    statement = (
        "import gc, sys; sys.argv = ['corollary', '--version']; from corollary.cli.main import main"
        "\nhow = gc.get_threshold()"
        "\ntry: main()\nexcept SystemExit: pass"
        "\nsys.exit(gc.get_threshold() <= how)"
    )
    assert probe(statement)[0] == 0


def test_imports_public_names_on_first_access() -> None:
    _, modules, _ = probe("import corollary")
    assert not own_modules(modules)
    assert {*corollary.__all__} <= {*dir(corollary)}
    assert all(getattr(corollary, name) is not None for name in corollary.__all__)
    names: dict[str, object] = {}
    exec("from corollary import *", names)
    assert {*corollary.__all__} <= {*names}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        corollary.nothing  # noqa: B018


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "bench"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: corollary {command} ")


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(f"\n    {command} " in text for command in COMMANDS)
    assert text.endswith("Run 'corollary COMMAND --help' for details.\n")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("corollary ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["rum"], "invalid choice: 'rum' (choose from"),
        (["info"], "the following arguments are required: STORE"),
    ],
)
def test_usage_errors(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err
