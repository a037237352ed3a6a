"""`corollary`: parse arguments, run a command, report errors, return the exit status.

Results go to stdout, messages and progress to stderr. Exit status: 0 done, 1 the operation failed
(or `check` has found an inconsistency), 2 the input is wrong.

A command is the module `corollary.cli.<name>`, imported when the command is called: its
`add_arguments` completes the parser of the command.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from corollary.cli import pandas_import
from corollary.cli.interrupts import interruptible
from corollary.cli.warning_lines import reported
from corollary.errors import CorollaryError

# Importing modules creates many objects and no garbage: collecting it every 700 objects, which is
# the default, takes a tenth of the time of a short command.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000

COMMANDS = {
    "run": "materialize a Datalog program",
    "apply": "replay a script of changes of facts and rules",
    "build": "build a store from files and their consequences",
    "update": "change the facts and rules of a store",
    "revert": "undo a version of a store, or bring one back",
    "query": "answer a SPARQL query",
    "explain": "prove a fact of a store",
    "schema": "show the classes and properties of a store",
    "check": "find inconsistencies, each with its proof",
    "info": "summarize the content of a store",
    "log": "list the versions of a store",
    "diff": "compare two versions of a store",
    "sync": "make relations equal to Delta tables",
    "serve": "serve a store over HTTP, with a page to look at it",
    "export": "write the facts as RDF, Parquet or Delta tables",
    "verify": "recompute a store and compare",
    "repair": "rebuild caches and other derived files of a store",
    "clone": "copy a store, also while others write to it",
    "purge": "erase statements from all versions of a store",
    "compact": "merge the small files of a store",
    "vacuum": "remove files that no version needs",
    "stream": "apply files of changes as they arrive in a folder (Spark Structured Streaming)",
    "generate": "generate synthetic data for experiments and benchmarks",
    "warm": "compile the loops for large inputs ahead of their first use",
    "bench": "run a benchmark, also of the peers that are installed",
}


def parser() -> argparse.ArgumentParser:
    """Create the parser of the command line; the parsers of commands are filled when called."""
    main_parser = argparse.ArgumentParser(
        prog="corollary",
        description="Keeps the consequences of rules up to date.",
        epilog="Run 'corollary COMMAND --help' for details.",
    )
    main_parser.add_argument(
        "--version", action=_PrintVersion, nargs=0, help="show program's version number and exit"
    )
    commands = main_parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, action=_Commands
    )
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary)
    return main_parser


def load_command(name: str, command_parser: argparse.ArgumentParser) -> None:
    """Import a command and add its arguments to its parser."""
    importlib.import_module(f"corollary.cli.{name}").add_arguments(command_parser)


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Loads only the command that is called."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,  # as argparse declares it
        option_string: str | None = None,
    ) -> None:
        load_command(values[0], self.choices[values[0]])
        super().__call__(parser, namespace, values, option_string)


class _PrintVersion(argparse.Action):
    """Reads the version on demand: loading package metadata takes 20 ms."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"corollary {version('corollary')}")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        from corollary.cli.completion import complete

        complete()
    options = argparse.Namespace(json=False)
    pandas_import.own_process = arguments is None
    if arguments is None:
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        # Importing a command takes time: Ctrl-C may interrupt it, too.
        with interruptible(), reported():
            options = parser().parse_args(arguments)
            status: int | None = options.command(options)
    except CorollaryError as error:
        if options.json:
            print(json.dumps(error.as_json(), ensure_ascii=False), file=sys.stderr)
        else:
            print(error.render(), file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt as error:
        outcome = error.args[0] if error.args else "nothing was written"
        print(f"stopped by Ctrl-C: the result is incomplete, and {outcome}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of stdout has closed the pipe, as in `corollary … | head`: print nothing more.
        sys.stderr.close()
        return 1
    return status or 0


if __name__ == "__main__":
    sys.exit(main())
