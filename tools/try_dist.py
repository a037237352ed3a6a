"""Try an installed distribution: run the examples of the README with it, in an empty folder.

    python -m tools.try_dist build/fresh

The argument is a virtual environment in which the distribution is installed, without the extras of
development. Its commands run as a user's would: nothing of the checkout is on the path.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_EXAMPLE = re.compile(r"```(dl|sh|python)\n((?:(?!```).)*)```\n```\n(.*?)```", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Run the examples; 1 if the output of one differs, or the version."""
    [environment] = arguments
    commands = Path(environment).resolve() / "bin"
    readme = (ROOT / "README.md").read_text("utf-8")
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    declared = re.findall(r'^version = "(.*)"$', pyproject, re.MULTILINE)
    failures = 0
    with tempfile.TemporaryDirectory(prefix="corollary-try-") as folder:
        steps = [("corollary --version", f"corollary {declared[0]}\n"), *examples(readme)]
        for script, expected in steps:
            output = run(script, commands, Path(folder))
            if output != expected:
                failures += 1
                print(f"{script}\nprinted\n{output}\ninstead of\n{expected}", file=sys.stderr)
    print(f"{len(steps) - failures} of {len(steps)} examples behave as documented")
    return 1 if failures else 0


def examples(text: str) -> Iterator[tuple[str, str]]:
    r"""Each example of a text as a script with its output.

    >>> [*examples("```dl\n% a.dl\np(1) .\n```\n```\n$ corollary run a.dl\np(1) .\n```")]
    [("cat > a.dl <<'END'\n% a.dl\np(1) .\nEND\ncorollary run a.dl", 'p(1) .\n')]
    >>> [*examples("```sh\n.venv/bin/corollary log s\n```\n```\n1\n```")]
    [('corollary log s\n', '1\n')]
    """
    for language, code, output in _EXAMPLE.findall(text):
        if language == "sh":
            yield code.replace(".venv/bin/", ""), output
        elif language == "python":
            yield f"python - <<'END'\n{code}END\n", output
        else:  # a program, whose first line names its file, and its session
            name = code.partition("\n")[0].removeprefix("% ")
            command, _, answer = output.partition("\n")
            yield f"cat > {name} <<'END'\n{code}END\n{command.removeprefix('$ ')}", answer


def run(script: str, commands: Path, folder: Path) -> str:
    """What a script prints in a folder, with the commands of an environment."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    path = os.pathsep.join([str(commands), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        ["sh", "-ec", script],
        cwd=folder,
        env=kept | {"PATH": path, "COLUMNS": "120", "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        print(f"$ {shlex.join(done.args)}\n{done.stderr}", file=sys.stderr)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
