"""Completion in a shell, by argcomplete: commands, options, rule sets and stores.

`eval "$(register-python-argcomplete corollary)"` switches it on. The shell then calls the command
with the line so far in the environment, and only the command of that line is loaded.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corollary.cli.main import COMMANDS, load_command, parser


def complete() -> None:
    """Answer a shell that asks for completions, and exit; otherwise do nothing."""
    try:
        argcomplete = importlib.import_module("argcomplete")
    except ImportError:
        return
    argcomplete.autocomplete(completable(os.environ.get("COMP_LINE", "")))


def completable(line: str) -> argparse.ArgumentParser:
    """Create a parser that can complete a line: the command of the line has its arguments.

    >>> actions = completable("corollary check --ru")._actions
    >>> [commands] = [one for one in actions if isinstance(one, argparse._SubParsersAction)]
    >>> len(commands.choices) == len(COMMANDS)
    True
    """
    lazy = parser()
    full = argparse.ArgumentParser(prog=lazy.prog)
    full.add_argument("--version", action="version", version="")
    commands = full.add_subparsers(metavar="COMMAND")
    name = next((word for word in _words(line)[1:] if word in COMMANDS), None)
    for command, summary in COMMANDS.items():
        command_parser = commands.add_parser(command, help=summary)
        if command == name:
            load_command(command, command_parser)
            for action in command_parser._actions:
                completer = _COMPLETERS.get(action.metavar)  # type: ignore[arg-type]
                if completer is not None:
                    action.completer = completer  # type: ignore[attr-defined]
    return full


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # an open quotation mark
        return line.split()


def rules(prefix: str, **_: Any) -> list[str]:
    """Complete the name of a rule set, or the path of a file with rules.

    >>> rules("owl-")
    ['owl-horst', 'owl-rl', 'owl-rl+skos']
    """
    from corollary.knowledge_base.rules import NO_RULES
    from corollary.lang.program import PROGRAM_SUFFIXES
    from corollary.rdf.rulesets import RULE_SETS

    names = [name for name in (*RULE_SETS, NO_RULES) if name.startswith(prefix)]
    return names + [
        f"{path}/" if path.is_dir() else str(path)
        for path in _paths(prefix)
        if path.is_dir() or path.suffix in PROGRAM_SUFFIXES
    ]


def stores(prefix: str, **_: Any) -> list[str]:
    """Complete the path of a store, or of a folder on the way to one.

    >>> stores("no such folder/")
    []
    """
    return [
        str(path) if (path / "facts" / "_delta_log").is_dir() else f"{path}/"
        for path in _paths(prefix)
        if path.is_dir()
    ]


def _paths(prefix: str) -> Iterator[Path]:
    """The paths that begin with a text; hidden ones only if it names them."""
    folder, name = os.path.split(prefix)
    try:
        found = sorted(os.listdir(folder or "."))
    except OSError:
        return
    for one in found:
        if one.startswith(name) and (name.startswith(".") or not one.startswith(".")):
            yield Path(folder, one)


_COMPLETERS = {"STORE": stores, "NAME|FILE": rules}
