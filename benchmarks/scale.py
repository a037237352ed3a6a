"""How much fits one machine: LUBM from files to a store, queried and updated, in bounded memory.

`--scale` counts universities; 1,000 have some 134 million explicit facts. Each step is a command in
a process of its own, as a person runs it, with `--limit-memory` of 24 GiB: `build` (whose report
tells reading, closing and writing apart), a first and a second query, an update of one fact, and
an update of a hundred. Where a step ends, the row shows the error, which is what the person sees.
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
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.generate import DATASETS
from corollary.generate.univ_bench import UB
from corollary.generate.write import write

LIMIT = "24G"
RDFOX_BYTES = 36.9  # per fact, published
_DEPARTMENT = "http://www.Department0.University0.edu"
QUERIES = {
    "query, few answers": f"SELECT ?x {{ ?x <{UB}worksFor> <{_DEPARTMENT}> }}",
    "query, a count of all employees": f"SELECT (COUNT(?x) AS ?n) {{ ?x a <{UB}Employee> }}",
}


def run(options: Options) -> Iterator[Row]:
    """Every step at each size, until one ends; larger sizes are then left out."""
    for scale in options.scales:
        needed = scale * 60_000_000  # text, store and working files of a university
        with tempfile.TemporaryDirectory(prefix="corollary-scale-") as name:
            folder = Path(name)
            base: Row = {"universities": scale}
            if (free := shutil.disk_usage(folder).free) < needed:
                reason = f"needs {needed / 1e9:.0f} GB of disk, and {free / 1e9:.0f} are free"
                yield base | {"case": "build", "skipped": reason}
                return
            ended = False
            for row in _steps(folder, scale, options.timeout):
                yield base | row
                ended |= "ends with" in row
            if ended:
                return


def _steps(folder: Path, scale: int, timeout: float) -> Iterator[Row]:
    started = time.perf_counter()
    write(DATASETS["lubm"], folder / "lubm", scale=scale, seed=0)
    files = sorted((folder / "lubm").glob("*.nt"))
    size = sum(file.stat().st_size for file in files)
    yield {"case": "generate", "seconds": time.perf_counter() - started, "text_bytes": size}
    store = folder / "store"
    rules = str(folder / "lubm" / "rules.dl")
    build = ["build", str(store), *map(str, files), "--rules", rules, "--engine", "columnar"]
    row, report = command([*build, "--json"], timeout)
    if "ends with" in row:
        yield {"case": "build"} | row
        return
    built = json.loads(report)
    for file in files:
        file.unlink()  # the disk is for the store now
    facts, explicit = built["facts"], built["explicit"]
    seconds = built["seconds"]
    yield {"case": "read the files", "explicit": explicit, "seconds": seconds["read"]}
    yield {"case": "close", "facts": facts, "seconds": seconds["materialize"]}
    disk = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    cache = sum(file.stat().st_size for file in (store / "cache").rglob("*") if file.is_file())
    yield {"case": "store", "facts": facts, "seconds": seconds["commit"]} | {
        "disk_bytes": disk,
        "bytes_per_fact_on_disk": (disk - cache) / facts,
    }
    yield (
        {"case": "build, all of it", "explicit": explicit, "facts": facts}
        | row
        | {
            "bytes_per_fact": row["peak_bytes"] / facts,
            "rdfox_bytes_per_fact": RDFOX_BYTES,
        }
    )
    for case, query in QUERIES.items():
        row, answer = command(["query", str(store), query, "--json"], timeout)
        if "ends with" not in row:
            row["correct"] = len(json.loads(answer)["results"]["bindings"]) > 0
        yield {"case": case} | row
    for number in (1, 100):
        lines = (
            f"<http://example.org/{at}> <{UB}worksFor> <{_DEPARTMENT}> .\n" for at in range(number)
        )
        (folder / "new.nt").write_text("".join(lines), encoding="utf-8")
        for flag, sign in (("insert", 1), ("delete", -1)):
            arguments = ["update", str(store), f"--{flag}", str(folder / "new.nt"), "--json"]
            row, report = command(arguments, timeout)
            if "ends with" not in row:
                update = json.loads(report)
                row["correct"] = update["inserted" if sign == 1 else "deleted"] >= number
                facts += sign * update["inserted" if sign == 1 else "deleted"]
                row["correct"] &= update["facts"] == facts
                row["update_seconds"] = update["seconds"]["update"]
            yield {"case": f"{flag} {number}"} | row


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
