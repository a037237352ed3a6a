"""`maplib` as a peer: triples in data frames, in Rust.

Its published package supports RDFS, which corresponds to the rules of ρdf here. Datalog, which OWL
2 RL would need, is part of an unpublished edition (0.20 stops with "not implemented").
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from benchmarks.measure import Time, least, peak_bytes, timed
from benchmarks.report import Row

NO_DATALOG = "not in the published package: Datalog, which OWL 2 RL would need"


def missing() -> str | None:
    """Why the peer cannot be measured, None if it can."""
    return None if importlib.util.find_spec("maplib") else "not installed (pip install maplib)"


def measured(path: str, repeat: int) -> Row:
    """Seconds from N-Triples to the closure under RDFS, and triples per property."""
    module: Any = importlib.import_module("maplib")
    times = []
    for _ in range(repeat):
        model = module.Model()
        _, load = timed(lambda model=model: model.read(path, format="ntriples"))  # type: ignore[misc]
        explicit = model.size()
        _, close = timed(model.infer_rdfs)
        times.append(Time(*(a + b for a, b in zip(load, close, strict=True))))
    answers = model.query(
        "SELECT ?p (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?p", include_transient=True
    )
    counts = {str(name): int(number) for name, number in answers.iter_rows()}
    time = least(times)
    return {
        "explicit": explicit,
        "facts": sum(counts.values()),
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "peak_bytes": peak_bytes(),
        "counts": counts,
    }
