"""Generate the page `docs/cli.md` from the arguments that the commands declare.

`python -m corollary.cli.reference` prints it; a test compares it with the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from corollary.cli.main import COMMANDS, load_command, parser

_OPENING = """\
# Command line

Results go to stdout, messages and progress to stderr; with `--json`, stdout has one JSON object.
Exit status: 0 done, 1 the operation failed, 2 the input is wrong. This page is written by
`python -m corollary.cli.reference`.

Shells complete commands, options, rule sets and stores with the extra `corollary[completion]`,
after `eval "$(register-python-argcomplete corollary)"`, which belongs into `~/.bashrc` or
`~/.zshrc`.
"""


def reference() -> str:
    """Generate the page.

    >>> reference().splitlines()[0]
    '# Command line'
    """
    [commands] = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    parts = [_OPENING]
    for name, command in commands.choices.items():
        load_command(name, command)
        parts += [f"\n## `corollary {name}`\n", *_described(command, COMMANDS[name])]
    return "\n".join(parts).rstrip() + "\n"


def _described(command: argparse.ArgumentParser, summary: str) -> Iterator[str]:
    text = command.description or summary
    yield f"{text[:1].upper()}{text[1:].rstrip('.')}.\n"
    rows = [row for action in command._actions if (row := _row(action, command))]
    if rows:
        yield "| argument | meaning |\n| --- | --- |"
        yield from rows
        yield ""


def _row(action: argparse.Action, command: argparse.ArgumentParser) -> str:
    if action.help is argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
        return ""
    metavar = action.metavar if isinstance(action.metavar, str) else None
    value = metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    if not action.option_strings:
        name = f"`{value}`"
    elif action.nargs == 0:
        name = ", ".join(f"`{flag}`" for flag in action.option_strings)
    else:
        name = ", ".join(f"`{flag} {value}`" for flag in action.option_strings)
    values = {**vars(action), "prog": command.prog}
    meaning = (action.help or "") % values
    return f"| {name.replace('|', chr(92) + '|')} | {meaning.replace('|', chr(92) + '|')} |"


if __name__ == "__main__":
    print(reference(), end="")
