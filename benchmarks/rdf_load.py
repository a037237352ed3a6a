"""Reading N-Triples: parse and number the terms; peer: pyoxigraph and a Python dictionary.

The data are LUBM(1) from the original generator, replicated with different university numbers, on
disk and uncompressed (in the cache of the system). `speedup` is the rate of Corollary with one
thread, per CPU second, divided by that of the peer.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyoxigraph

from benchmarks.isolate import isolated
from benchmarks.measure import least, peak_bytes, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.dictionary import Dictionary, Ids
from corollary.rdf import formats

FILE = "lubm/lubm-1.nt.gz"
_STATEMENTS = 100_543  # of the file
_UNIVERSITIES = 1000  # more than the file mentions
_WARM_UP = b"<urn:s> <urn:p> _:o .\n"


class Loaded(NamedTuple):
    """What was read."""

    columns: tuple[Ids, ...]
    terms: int


def run(options: Options) -> Iterator[Row]:
    """Each reader over files of each size."""
    source = options.data / FILE
    if not source.exists():
        yield {"case": "load", "skipped": f"no {FILE} in {options.data}"}
        return
    for scale in options.scales:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.nt"
            replicate(source, path, max(1, round(scale / _STATEMENTS)))
            arguments = {"path": str(path), "repeat": options.repeat}
            ours: Row = {}
            for name, threads in (("corollary", 1), ("corollary", 2)):
                row = isolated(load, timeout=options.timeout, **arguments, threads=threads)
                ours = ours or row
                yield _shown(name, threads, row, ours)
            yield _shown("pyoxigraph + dict", 1, isolated(
                peer, timeout=options.timeout, **arguments), ours)  # fmt: skip


def replicate(source: Path, path: Path, copies: int) -> None:
    """Replicate the data with different universities."""
    text = gzip.decompress(source.read_bytes())
    with path.open("wb") as file:
        for copy in range(copies):
            shift = copy * _UNIVERSITIES
            file.write(re.sub(rb"University(\d+)", partial(_renumbered, shift), text))


def _renumbered(shift: int, match: re.Match[bytes]) -> bytes:
    return b"University%d" % (int(match[1]) + shift)


def load(path: str, repeat: int, threads: int) -> Row:
    """Corollary's reader."""
    formats.read_text(_WARM_UP, Dictionary(), format="n-triples")

    def once() -> Loaded:
        dictionary = Dictionary()
        triples = formats.read(path, dictionary, threads=threads)
        return Loaded(triples.columns, len(dictionary))

    return _measured(once, repeat, path)


def peer(path: str, repeat: int) -> Row:
    """The parser of pyoxigraph, and numbers from a Python dictionary."""

    def once() -> Loaded:
        numbers: dict[object, int] = {}
        number = numbers.setdefault
        rows = [
            (
                number(quad.subject, len(numbers)),
                number(quad.predicate, len(numbers)),
                number(quad.object, len(numbers)),
            )
            for quad in pyoxigraph.parse(path=path, format=pyoxigraph.RdfFormat.N_TRIPLES)
        ]
        return Loaded(tuple(np.array(rows, np.uint32).T), len(numbers))

    return _measured(once, repeat, path)


def _measured(once: Callable[[], Loaded], repeat: int, path: str) -> Row:
    times = []
    for _ in range(repeat):
        loaded, time = timed(once)
        times.append(time)
    time = least(times)
    size = Path(path).stat().st_size
    statements = len(loaded.columns[0])
    return {
        "statements": statements,
        "distinct": len(np.unique(np.stack(loaded.columns, axis=1), axis=0)),
        "terms": loaded.terms,
        "bytes": size,
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "statements_per_second": statements / time.seconds,
        "statements_per_cpu_second": statements / time.cpu_seconds,
        "peak_bytes": peak_bytes(),
    }


def _shown(engine: str, threads: int, row: Row, ours: Row) -> Row:
    """A row with the reader, whether its result is equal, and its relative speed."""
    about: Row = {"case": "load", "engine": engine, "threads": threads}
    if "failed" in row or "failed" in ours:
        return about | row
    same = all(row[key] == ours[key] for key in ("statements", "distinct", "terms"))
    speedup = ours["statements_per_cpu_second"] / row["statements_per_cpu_second"]
    return about | row | {"speedup": speedup, "correct": same}


BENCHMARK = Benchmark(
    "rdf_load",
    "reading N-Triples of LUBM into columns of ids; peer: pyoxigraph and a Python dictionary",
    unit="statements",
    scales=(1_300_000,),
    small=(100_000,),
    run=run,
    plots=(
        Plot("Reading N-Triples", "threads", "seconds", "engine", unit="seconds", x_unit="threads"),
    ),
    views=(
        View(
            "Reading N-Triples and numbering terms",
            (
                "engine",
                "threads",
                "statements",
                "terms",
                "seconds",
                Column("cpu_seconds", "cpu: s"),
                Column("statements_per_second", "statements/s"),
                Column("speedup", "Corollary: × faster"),
                "correct",
            ),
        ),
    ),
)
