"""Generate the tables and plots of the documentation from saved results.

`python -m benchmarks.page` redraws the plots of all saved results and replaces the tables between
the markers of `docs/benchmarks.md` and `docs/where-we-lose.md`; the text around them is written by
hand. Figures in running text, there and in all other pages, are filled in by `benchmarks.figures`.
So every figure was measured, and its command, machine and commit are shown.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from benchmarks import figures, losses, plots, views
from benchmarks.__main__ import BENCHMARKS
from benchmarks.report import RESULTS, ROOT, Benchmark, listing

PAGE = ROOT / "docs" / "benchmarks.md"
LOSSES = ROOT / "docs" / "where-we-lose.md"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_MARKS = re.compile(r"(<!-- results: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_LOSSES = re.compile(r"(<!-- losses -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_COMMITS = re.compile(r"(<!-- commits -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_BUSY = 0.7  # load before a run above which other work disturbed it


def main() -> int:
    """Write the page, the plots and the tables."""
    for name, benchmark in BENCHMARKS.items():
        found = saved(name)
        if found is not None:
            plots.draw(benchmark.plots, found["rows"], RESULTS / f"{name}.svg")
            text = listing(benchmark, found)
            (RESULTS / f"{name}.txt").write_text(text, encoding="utf-8")
    for path in PAGES:
        before = path.read_text("utf-8")
        if (after := page(before)) != before:
            path.write_text(after, encoding="utf-8")
    return 0


def page(text: str) -> str:
    """Replace the results and the losses between the markers of a page, and its figures."""
    text = _MARKS.sub(lambda found: found[1] + section(found[2]) + found[4], text)
    text = _COMMITS.sub(lambda found: f"{found[1]}\n{commits()}\n\n{found[3]}", text)
    if not _LOSSES.search(text) and "<!--= " not in text:
        return text
    reports = {name: report["rows"] for name in BENCHMARKS if (report := saved(name))}
    if _LOSSES.search(text):
        table = losses.markdown(losses.losses(reports))
        text = _LOSSES.sub(lambda found: f"{found[1]}\n{table}\n\n{found[3]}", text)
    return figures.filled(text, reports)


def section(name: str) -> str:
    """The text between the markers of a benchmark."""
    found = saved(name)
    if found is None or name not in BENCHMARKS:
        return f"\nNot measured yet: `corollary bench {name} --save` fills in this part.\n\n"
    return "\n" + "\n\n".join(_parts(BENCHMARKS[name], found)) + "\n\n"


def commits() -> str:
    """Which benchmarks were saved at which commit, and whether other work ran."""
    found: dict[str, list[str]] = {}
    for name in BENCHMARKS:
        if (report := saved(name)) is not None:
            busy = report.get("load", 0) > _BUSY
            mark = " (other work ran)" if busy else ""
            found.setdefault((report["commit"] or "unknown")[:10], []).append(f"{name}{mark}")
    lines = ["| commit | results |", "| --- | --- |"]
    lines += [f"| {commit} | {', '.join(names)} |" for commit, names in found.items()]
    return "\n".join(lines)


def saved(name: str) -> dict[str, Any] | None:
    """The saved report of a benchmark."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def _parts(benchmark: Benchmark, found: dict[str, Any]) -> list[str]:
    parts = [_origin(benchmark, found)]
    rows = found["rows"]
    for view in benchmark.views or views.plain(rows):
        grid = view.grid(rows)
        if grid:
            parts.append(f"*{view.title}*\n\n{views.markdown(grid)}")
            if missing := view.missing(rows):
                names = ", ".join(f"*{column.title()}*" for column in missing)
                parts.append(f"These results are older than the columns {names}.")
        elif view.missing(rows):
            parts.append(f"These results are older than the table *{view.title}*.")
    if any(plot.curves(rows) for plot in benchmark.plots):
        parts.append(f"![{benchmark.summary}](../benchmarks/results/{benchmark.name}.svg)")
    return parts


def _origin(benchmark: Benchmark, found: dict[str, Any]) -> str:
    machine, commit = found["machine"], found["commit"] or "unknown"
    memory = round(machine["memory_bytes"] / 1e9)
    changed = " and changes" if commit.endswith("-dirty") else ""
    lines = [
        f"`{found['command']}`",
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {memory} GB, {machine['system']}, "
        f"Python {machine['python']}; commit {commit[:10]}{changed}.",
    ]
    if found.get("load", 0) > _BUSY:
        lines.append(
            f"Other work ran on the machine (load {found['load']} before the run): the times are "
            "too long, and only their ratios are meaningful."
        )
    if benchmark.paper:
        lines.append(f"Paper: {benchmark.paper}.")
    return "  \n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
