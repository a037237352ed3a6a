"""Call the command line in process, or as a process where signals and memory matter."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from typing import TextIO

from corollary.cli.main import main


def call(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, in a folder; the result is that of a real process."""
    words = [str(argument) for argument in arguments]
    out, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    status = execute(words, out, errors, folder or Path.cwd())
    return subprocess.CompletedProcess(words, status, _text(out), _text(errors))


def execute(words: list[str], out: TextIO, errors: TextIO, folder: Path) -> int:
    """Run a command in this process and return its exit status."""
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        contextlib.chdir(folder),
    ):
        try:
            return main(words)
        except SystemExit as stop:  # argparse: help, version and usage errors
            return int(stop.code or 0)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def spawn(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
    command = [sys.executable, "-m", "corollary.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120)
