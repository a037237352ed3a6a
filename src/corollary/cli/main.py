"""`corollary`: arguments in, exit status out; every mistake as one clear message.

Results go to stdout, messages and progress to stderr. Exit status: 0 done, 1 the operation failed
(or `check` has found an inconsistency), 2 the input is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version

from corollary.cli.interrupts import interruptible
from corollary.cli.warned import reported
from corollary.errors import CorollaryError

COMMANDS = (
    "run",
    "apply",
    "build",
    "update",
    "query",
    "explain",
    "check",
    "info",
    "log",
    "diff",
    "verify",
    "repair",
    "compact",
    "stream",
    "generate",
    "bench",
)


def parser() -> argparse.ArgumentParser:
    """The arguments of all commands."""
    main_parser = argparse.ArgumentParser(
        prog="corollary",
        description="Keeps the consequences of rules up to date.",
        epilog="'corollary COMMAND --help' tells all about a command.",
    )
    main_parser.add_argument(
        "--version", action="version", version=f"corollary {version('corollary')}"
    )
    commands = main_parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        importlib.import_module(f"corollary.cli.{command}").add_arguments(commands)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    options = argparse.Namespace(json=False)
    try:
        # Commands are imported here, which takes a moment, so that Ctrl-C ends that too.
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
        # The reader of stdout has gone, as in `corollary … | head`: nothing is left to say.
        sys.stderr.close()
        return 1
    return status or 0


if __name__ == "__main__":
    sys.exit(main())
