"""How much fits one machine: LUBM from files to a store, queried and updated, in bounded memory.

`--scale` counts universities; 1,000 have some 134 million explicit facts. Each step is a command in
a process of its own, as a person runs it, with `--limit-memory` of 24 GiB: `build` (whose report
tells reading, closing and writing apart), a first and a second query, an update of one fact, and
an update of a hundred. Where a step ends, the row shows the error, which is what the person sees.
Files, store and finished steps are in `build/scale`, so that a run that was interrupted resumes.
Bytes per fact are compared with the 36.9 that RDFox publishes, which include its indexes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.plots import Plot
from benchmarks.report import ROOT, Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.generate import DATASETS
from corollary.generate.univ_bench import UB
from corollary.generate.write import write

LIMIT = "24G"
WORK = ROOT / "build" / "scale"
BYTES = 60_000_000  # text, store and working files of a university
RDFOX_BYTES = 36.9  # per fact, published
_DEPARTMENT = "http://www.Department0.University0.edu"
QUERIES = {
    "query, few answers": f"SELECT ?x {{ ?x <{UB}worksFor> <{_DEPARTMENT}> }}",
    "query, a count of all employees": f"SELECT (COUNT(?x) AS ?n) {{ ?x a <{UB}Employee> }}",
}


@dataclass
class Log:
    """The rows of finished steps, in a file that an interrupted run leaves behind."""

    path: Path
    rows: dict[str, list[Row]] = field(default_factory=dict)
    resumed: bool = False

    @classmethod
    def of(cls, folder: Path) -> Log:
        """The log of a folder, which is created if it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "rows.json"
        known = path.exists()
        return cls(path, json.loads(path.read_text("utf-8")) if known else {}, known)

    def once(self, step: str, action: Callable[[], list[Row]]) -> list[Row]:
        """The rows of a step, which runs unless it has ended well before."""
        if step not in self.rows:
            rows = action()
            if any("ends with" in row for row in rows):
                return rows
            self.rows[step] = rows
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.rows), encoding="utf-8")
            part.replace(self.path)
        return self.rows[step]


def run(options: Options) -> Iterator[Row]:
    """Every step at each size, until one ends; larger sizes are then left out."""
    for scale in options.scales:
        needed = scale * BYTES
        folder = WORK / f"lubm-{scale}"
        log = Log.of(folder)
        base: Row = {"universities": scale}
        if not log.resumed and (free := shutil.disk_usage(folder).free) < needed:
            reason = f"needs {needed / 1e9:.0f} GB of disk, and {free / 1e9:.0f} are free"
            yield base | {"case": "build", "skipped": reason}
            shutil.rmtree(folder)
            return
        ended = False
        for row in _steps(folder, scale, options.timeout, log):
            yield base | row
            ended |= "ends with" in row
        if ended:
            return  # what is finished stays, for another try
        shutil.rmtree(folder)


def _steps(folder: Path, scale: int, timeout: float, log: Log) -> Iterator[Row]:
    yield from log.once("generate", lambda: _generated(folder, scale))
    yield from (built := log.once("build", lambda: _built(folder, timeout)))
    if "ends with" in built[-1]:
        return
    for file in (folder / "lubm").glob("*.nt"):
        file.unlink()  # the disk is for the store now
    store = str(folder / "store")
    for case, query in QUERIES.items():
        yield from log.once(case, partial(_asked, store, case, query, timeout))
    for number in (1, 100):
        facts = built[-1]["facts"]
        update = partial(_updated, folder, number, facts, timeout, log)
        yield from log.once(f"update {number}", update)


def _generated(folder: Path, scale: int) -> list[Row]:
    started = time.perf_counter()
    write(DATASETS["lubm"], folder / "lubm", scale=scale, seed=0, force=True)
    size = sum(file.stat().st_size for file in (folder / "lubm").glob("*.nt"))
    return [{"case": "generate", "seconds": time.perf_counter() - started, "text_bytes": size}]


def _built(folder: Path, timeout: float) -> list[Row]:
    files = sorted((folder / "lubm").glob("*.nt"))
    store = folder / "store"
    shutil.rmtree(store, ignore_errors=True)  # of a build that was interrupted
    rules = str(folder / "lubm" / "rules.dl")
    build = ["build", str(store), *map(str, files), "--rules", rules, "--engine", "columnar"]
    row, report = command([*build, "--json"], timeout)
    if "ends with" in row:
        return [{"case": "build"} | row]
    built = json.loads(report)
    facts, explicit = built["facts"], built["explicit"]
    seconds = built["seconds"]
    disk = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    cache = sum(file.stat().st_size for file in (store / "cache").rglob("*") if file.is_file())
    return [
        {"case": "read the files", "explicit": explicit, "seconds": seconds["read"]},
        {"case": "close", "facts": facts, "seconds": seconds["materialize"]},
        {
            "case": "store",
            "facts": facts,
            "seconds": seconds["commit"],
            "disk_bytes": disk,
            "bytes_per_fact_on_disk": (disk - cache) / facts,
        },
        {"case": "build, all of it", "explicit": explicit, "facts": facts}
        | row
        | {
            "bytes_per_fact": row["peak_bytes"] / facts,
            "rdfox_bytes_per_fact": RDFOX_BYTES,
        },
    ]


def _asked(store: str, case: str, query: str, timeout: float) -> list[Row]:
    row, answer = command(["query", store, query, "--json"], timeout)
    if "ends with" not in row:
        row["correct"] = len(json.loads(answer)["results"]["bindings"]) > 0
    return [{"case": case} | row]


def _updated(folder: Path, number: int, facts: int, timeout: float, log: Log) -> list[Row]:
    """Insert some facts, and delete them again."""
    new = folder / "new.nt"
    lines = (
        f"<http://example.org/{at}> <{UB}worksFor> <{_DEPARTMENT}> .\n" for at in range(number)
    )
    new.write_text("".join(lines), encoding="utf-8")
    update = ["update", str(folder / "store"), "--json"]
    if log.resumed:  # they may have been inserted when the run was interrupted
        command([*update, "--delete", str(new)], timeout)
    rows = []
    for flag, sign in (("insert", 1), ("delete", -1)):
        row, report = command([*update, f"--{flag}", str(new)], timeout)
        if "ends with" not in row:
            told = json.loads(report)
            changed = told["inserted" if sign == 1 else "deleted"]
            facts += sign * changed
            row["correct"] = changed >= number and told["facts"] == facts
            row["update_seconds"] = told["seconds"]["update"]
        rows.append({"case": f"{flag} {number}"} | row)
    return rows


def command(arguments: Sequence[str], timeout: float) -> tuple[Row, str]:
    """Run a command with the limit of memory; its time, peak and output, or the error it ends with.

    >>> row, _ = command(["query", "/nowhere", "ASK {}"], 60)
    >>> "E500" in row["ends with"]
    True
    """
    full = [sys.executable, "-m", "corollary.cli.main", *arguments, "--limit-memory", LIMIT]
    started = time.perf_counter()
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        process = subprocess.Popen([*full, "--quiet"], stdout=out, stderr=errors)
        killer = threading.Timer(timeout, process.kill)
        killer.start()
        peak = _watch(process)
        killer.cancel()
        out.seek(0)
        errors.seek(0)
        row: Row = {"seconds": time.perf_counter() - started, "peak_bytes": peak}
        if process.returncode:
            told = errors.read().strip() or f"killed after {row['seconds']:.0f} s"
            row["ends with"] = _message(told)
        return row, out.read()


def _message(told: str) -> str:
    """The error and its hint, as JSON or as text."""
    try:
        error = json.loads(told.splitlines()[-1])["error"]
    except (ValueError, KeyError, TypeError):
        return " ".join(told.split())
    return f"{error['code']}: {error['message']}; {error.get('hint') or ''}".rstrip("; ")


def _watch(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process, and return the most memory that it held."""
    peak = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text("ascii")
            if "VmHWM:" in status:
                peak = max(peak, int(status.partition("VmHWM:")[2].split()[0]) * 1024)
        except OSError:  # no /proc, or the process has ended
            pass
        time.sleep(0.02)
    return peak


BENCHMARK = Benchmark(
    "scale",
    "LUBM from files to a store, queried and updated, in 24 GiB of memory",
    unit="universities",
    scales=(10, 100, 1_000),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "Peak memory of each step",
            "universities + case",
            "peak_bytes",
            unit="GB",
            factor=1e-9,
        ),
    ),
    views=(
        View(
            "Every step",
            (
                "universities",
                "case",
                "explicit",
                "facts",
                "seconds",
                Column("update_seconds", "update alone: s"),
                Column("peak_bytes", "peak: MB", 1e-6),
                Column("text_bytes", "text: MB", 1e-6),
                Column("disk_bytes", "disk: MB", 1e-6),
                Column("ends with", "ends with"),
                "correct",
            ),
        ),
        View(
            "Bytes per fact, and what RDFox publishes",
            (
                "universities",
                "case",
                "facts",
                Column("bytes_per_fact", "peak memory of the build"),
                Column("bytes_per_fact_on_disk", "tables on disk"),
                Column("rdfox_bytes_per_fact", "RDFox in memory"),
            ),
            where=(("case", ("build, all of it", "store")),),
        ),
    ),
)
