"""Options and results of benchmarks: rows, as a table or as JSON."""

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
    """Options of a benchmark run."""

    scales: Sequence[int]
    repeat: int = 3
    timeout: float = 600.0  # seconds for one case
    data: Path = DATA
    only: Sequence[str] = ()  # fence: the cases to measure
    skip_spark: bool = False  # fence
    check: Path | None = None  # fence: the folder of the budgets


@dataclass(frozen=True)
class Benchmark:
    """A named function that yields rows.

    A row with `"correct": False` (wrong result) or `"within": False` (exceeded budget) fails the
    run; `"correct": None` means that there is nothing to compare with. `"skipped"` is the reason
    why a case was not measured, `"failed"` the error. `paper` describes the machine and the data
    of the figures of the paper that are shown for comparison.
    """

    name: str
    summary: str
    unit: str  # what `--scale` counts
    scales: tuple[int, ...]
    small: tuple[int, ...]  # when all benchmarks are run
    run: Callable[[Options], Iterator[Row]]
    plots: tuple[Plot, ...] = ()
    views: tuple[View, ...] = ()
    paper: str = ""
    merges: bool = False  # saving keeps earlier rows of cases that were not measured

    def text(self, rows: Sequence[Row]) -> str:
        """Format the rows for a terminal: through the views if any, else all columns."""
        from benchmarks.views import text

        shown = text(self.views, rows) if self.views else table(rows)
        return f"{shown}\n\nFigures of the paper: {self.paper}" if self.paper else shown


def report(name: str, rows: Iterable[Row]) -> dict[str, Any]:
    """The object that `--json` prints."""
    return {"name": name, "machine": machine(), "commit": commit(), "rows": list(rows)}


def save(
    benchmark: Benchmark, rows: Sequence[Row], command: str, load: float, folder: Path
) -> None:
    """Write a report with its command, tables and plots into a folder.

    `load` is the load of the machine before the run: other work lengthens times.
    """
    from benchmarks.plots import draw

    folder.mkdir(parents=True, exist_ok=True)
    name = benchmark.name
    if benchmark.merges:
        rows = merge(rows, folder / f"{name}.json")
    saved = {"name": name, "command": command, "load": round(load, 2)} | report(name, rows)
    text = json.dumps(saved, indent=1, default=str, ensure_ascii=False) + "\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    (folder / f"{name}.txt").write_text(listing(benchmark, saved), encoding="utf-8")
    draw(benchmark.plots, rows, folder / f"{name}.svg")


def merge(rows: Sequence[Row], path: Path) -> list[Row]:
    """Replace rows of a saved report by those that a run has measured."""
    saved = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    merged = {row["case"]: row for row in saved}
    for row in rows:
        if "skipped" not in row or row["case"] not in merged:
            merged[row["case"]] = row
    return list(merged.values())


def listing(benchmark: Benchmark, saved: Mapping[str, Any]) -> str:
    """Format a saved report as text."""
    return (
        f"$ {saved['command']}\n\n{benchmark.text(saved['rows'])}\n\n{written(saved['machine'])}\n"
    )


def machine() -> dict[str, Any]:
    """Describe this machine."""
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
    """The checked-out commit, with `-dirty` if tracked files have uncommitted changes.

    Saved results, and the page that shows them, do not count.
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
    """Format rows as text: one table per run of rows with the same keys.

    >>> print(table([{"case": "a", "facts": 1200}, {"case": "b", "facts": 7}]))
    case  facts
    a     1,200
    b         7
    """
    return "\n\n".join(_block(list(block)) for _, block in groupby(rows, key=tuple))


def _block(rows: Sequence[Row]) -> str:
    return aligned([list(rows[0]), *([written(value) for value in row.values()] for row in rows)])


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Align headings and cells in columns of text; columns of numbers to the right."""
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
    """Whether a cell is a number or empty."""
    return not cell or cell[0].isdigit() or cell[0] == "-"


def written(value: object) -> str:
    """Format a value for a table."""
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
