"""What a benchmark is given and what it gives: rows, as a table or as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.plots import Plot
    from benchmarks.views import View

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
RESULTS = ROOT / "benchmarks" / "results"

Row = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """How a benchmark is run."""

    scales: Sequence[int]
    repeat: int = 3
    timeout: float = 600.0  # seconds for one case
    data: Path = DATA


@dataclass(frozen=True)
class Benchmark:
    """A named function that yields rows.

    A row with `"correct": False` makes the run fail (None: nothing to compare it with); one with
    `"skipped"` says why there is none, one with `"failed"` what went wrong. `paper` says on which
    machine and which data the figures of a paper were measured that stand beside ours.
    """

    name: str
    summary: str
    unit: str  # what `--scale` counts
    scales: tuple[int, ...]
    small: tuple[int, ...]  # where all benchmarks are run one after another
    run: Callable[[Options], Iterator[Row]]
    plots: tuple[Plot, ...] = ()
    views: tuple[View, ...] = ()
    paper: str = ""

    def text(self, rows: Sequence[Row]) -> str:
        """The rows for a terminal: by the views if there are any, else all of them."""
        from benchmarks.views import text

        shown = text(self.views, rows) if self.views else table(rows)
        return f"{shown}\n\nThe paper's figures: {self.paper}" if self.paper else shown


def report(name: str, rows: Iterable[Row]) -> dict[str, Any]:
    """The object that `--json` prints."""
    return {"name": name, "machine": machine(), "commit": commit(), "rows": list(rows)}


def save(
    benchmark: Benchmark, rows: Sequence[Row], command: str, load: float, folder: Path
) -> None:
    """Write a report with its command, its tables, and its plots, into a folder.

    `load` is that of the machine before the run: other work makes times longer.
    """
    from benchmarks.plots import draw

    folder.mkdir(parents=True, exist_ok=True)
    name = benchmark.name
    found = {"name": name, "command": command, "load": round(load, 2)} | report(name, rows)
    text = json.dumps(found, indent=1, default=str, ensure_ascii=False) + "\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    (folder / f"{name}.txt").write_text(listing(benchmark, found), encoding="utf-8")
    draw(benchmark.plots, rows, folder / f"{name}.svg")


def listing(benchmark: Benchmark, found: Mapping[str, Any]) -> str:
    """A saved report as text."""
    return (
        f"$ {found['command']}\n\n{benchmark.text(found['rows'])}\n\n{written(found['machine'])}\n"
    )


def machine() -> dict[str, Any]:
    """What the times depend on."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def commit() -> str | None:
    """The commit that was measured, with `-dirty` if tracked files were changed since.

    Results that were saved just before, and the page that shows them, do not count.
    """
    head = _git("rev-parse", "HEAD")
    others = (".", ":!benchmarks/results", ":!docs/benchmarks.md")
    return (
        f"{head}-dirty" if head and _git("status", "--porcelain", "-uno", "--", *others) else head
    )


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def table(rows: Sequence[Row]) -> str:
    """The rows as text: a table for each run of rows with the same keys.

    >>> print(table([{"case": "a", "facts": 1200}, {"case": "b", "facts": 7}]))
    case  facts
    a     1,200
    b         7
    """
    return "\n\n".join(_block(list(block)) for _, block in groupby(rows, key=tuple))


def _block(rows: Sequence[Row]) -> str:
    return aligned([list(rows[0]), *([written(value) for value in row.values()] for row in rows)])


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Headings and cells as columns of text; those of numbers are set to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numeric = [all(is_number(line[at]) for line in lines[1:]) for at in range(len(widths))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def is_number(cell: str) -> bool:
    """Whether a cell is a number, or nothing."""
    return not cell or cell[0].isdigit() or cell[0] == "-"


def written(value: object) -> str:
    """A value as a table shows it."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "NO"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        case Mapping():
            return ", ".join(f"{key} {written(part)}" for key, part in value.items())
    return str(value)
