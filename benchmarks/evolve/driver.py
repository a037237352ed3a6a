"""Run a system over a stream: send requests, time the answers, check the states."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Timer
from time import perf_counter

from benchmarks.evolve.streams import CHANGES, Step, Stream
from benchmarks.report import ROOT, Row

_TICKS = os.sysconf("SC_CLK_TCK")


class SystemFailed(Exception):
    """A system answered with an error, or not at all."""


@dataclass
class Connection:
    """A system that runs as a process."""

    process: subprocess.Popen[str]

    def ask(self, request: str) -> str:
        """Send a request; return the value of the answer, which may be empty."""
        assert self.process.stdin is not None, "it is a pipe"
        assert self.process.stdout is not None, "it is a pipe"
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        status, _, value = answer.rstrip("\n").partition(" ")
        if status != "ok":
            raise SystemFailed(f"{request}: {value or answer or 'the process has ended'}")
        return value

    def cpu_seconds(self) -> float:
        """Processor time of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def peak_bytes(self) -> int:
        """The most memory that the process has held."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


@contextmanager
def connected(command: Sequence[str], timeout: float) -> Iterator[Connection]:
    """Start a system, and end it; it is killed after `timeout` seconds."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), environment.get("PYTHONPATH")))
    )
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
    except OSError as error:
        raise SystemFailed(f"{command[0]!r} cannot be started: {error.strerror}") from None
    limit = Timer(timeout, process.kill)
    limit.start()
    try:
        yield Connection(process)
    except SystemFailed as error:
        if limit.finished.is_set():
            raise SystemFailed(f"stopped after {timeout:g} s ({error})") from None
        raise
    finally:
        limit.cancel()
        process.kill()
        process.communicate()


def run(stream: Stream, command: Sequence[str], *, timeout: float = 600.0) -> Row:
    """Replay a stream; `wrong` names the first step with a wrong state."""
    seconds: list[float] = []
    checked = 0
    wrong: int | None = None
    try:
        with connected(command, timeout) as system:
            for number, step in enumerate(stream.steps):
                seconds.append(_apply(system, stream, step, is_first=number == 0))
                if "count" not in step:
                    continue
                count = system.ask("count")
                if count == "?":  # its rules are not those of the stream
                    continue
                checked += 1
                right = count == str(step["count"])
                if not (right and system.ask("hash") == step["hash"]):
                    wrong = number
                    break
            row = {"cpu_seconds": system.cpu_seconds(), "peak_bytes": system.peak_bytes()}
            system.ask("quit")
    except SystemFailed as error:
        return {"failed": f"step {len(seconds)}: {error}"}
    commits = seconds[1:] or [0.0]
    return row | {
        "steps": len(seconds),
        "load_seconds": seconds[0],
        "median_ms": median(commits) * 1e3,
        "worst_ms": max(commits) * 1e3,
        "total_seconds": sum(commits),
        "checked": checked,
        "wrong": wrong,
        "correct": wrong is None if checked else None,
    }


def states(
    stream: Stream, command: Sequence[str], *, timeout: float = 600.0
) -> list[tuple[int, str]]:
    """The state that a system has after each commit: its count and its hash."""
    found = []
    with connected(command, timeout) as system:
        for number, step in enumerate(stream.steps):
            _apply(system, stream, step, is_first=number == 0)
            found.append((int(system.ask("count")), system.ask("hash")))
    return found


def _apply(system: Connection, stream: Stream, step: Step, *, is_first: bool) -> float:
    started = perf_counter()
    for change in CHANGES:
        if change in step:
            request = "load" if is_first and change == "insert" else change.replace("_", "-")
            system.ask(f"{request} {stream.folder / step[change]}")
    system.ask("commit")
    return perf_counter() - started
