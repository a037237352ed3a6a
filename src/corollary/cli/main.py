"""`corollary`: arguments in, exit status out; every mistake as one clear message.

Results go to stdout, messages and progress to stderr. Exit status: 0 done, 1 the operation failed
(or `check` has found an inconsistency), 2 the input is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version

from corollary.cli import (
    apply,
    bench,
    build,
    check,
    compact,
    diff,
    explain,
    generate,
    info,
    log,
    query,
    run,
    stream,
    update,
    verify,
)
from corollary.cli.progress import interruptible
from corollary.errors import CorollaryError

COMMANDS = (
    run,
    apply,
    build,
    update,
    query,
    explain,
    check,
    info,
    log,
    diff,
    verify,
    compact,
    stream,
    generate,
    bench,
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
        command.add_arguments(commands)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    options = parser().parse_args(arguments)
    try:
        with interruptible():
            status: int | None = options.command(options)
    except CorollaryError as error:
        if options.json:
            print(json.dumps(error.as_json(), ensure_ascii=False), file=sys.stderr)
        else:
            print(error.render(), file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("stopped by Ctrl-C: the result is incomplete and was not written", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of stdout has gone, as in `corollary … | head`: nothing is left to say.
        sys.stderr.close()
        return 1
    return status or 0


if __name__ == "__main__":
    sys.exit(main())
