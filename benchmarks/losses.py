"""Where Corollary is slower: every case of the saved results in which something else is faster.

`python -m benchmarks.page` inserts the table into `docs/where-we-lose.md`, so that a loss appears
there as soon as it is measured, and cannot be left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.report import Row

FACTOR = 1.1  # smaller differences are within the spread of one run


@dataclass(frozen=True)
class Loss:
    """A case, what was faster, and both times in seconds."""

    benchmark: str
    case: str
    faster: str
    theirs: float
    ours: float

    @property
    def factor(self) -> float:
        """How many times slower Corollary is."""
        return self.ours / self.theirs


def losses(saved: Mapping[str, Sequence[Row]]) -> list[Loss]:
    """All losses in the rows of the benchmarks, the largest factor of each benchmark first.

    >>> rows = [{"query": "q1", "warm_seconds": 0.002, "pyoxigraph_warm": 0.001}]
    >>> [(loss.case, loss.faster, loss.factor) for loss in losses({"sparql": rows})]
    [('q1, warm', 'pyoxigraph', 2.0)]
    """
    found = [
        loss
        for name, rows in saved.items()
        for loss in _LOSSES.get(name, _against_engines)(name, rows)
        if loss.factor > FACTOR
    ]
    return sorted(found, key=lambda loss: (loss.benchmark, -loss.factor))


def markdown(found: Sequence[Loss]) -> str:
    """Format losses as a table."""
    lines = ["| benchmark | case | faster | its ms | Corollary's ms | factor |", "| --- " * 6 + "|"]
    for loss in found:
        cells = (
            f"`{loss.benchmark}`",
            loss.case,
            loss.faster,
            f"{loss.theirs * 1e3:,.3g}",
            f"{loss.ours * 1e3:,.3g}",
            f"{loss.factor:.3g}×",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _queries(name: str, rows: Sequence[Row]) -> Iterator[Loss]:
    for row in rows:
        for state in ("cold", "warm"):
            if "query" in row and f"pyoxigraph_{state}" in row:
                theirs, ours = row[f"pyoxigraph_{state}"], row[f"{state}_seconds"]
                yield Loss(name, f"{row['query']}, {state}", "pyoxigraph", theirs, ours)


def _deletions(name: str, rows: Sequence[Row]) -> Iterator[Loss]:
    """`auto` against every single algorithm."""
    groups: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if "milliseconds" in row and "algorithm" in row:
            size = row.get("explicit_deleted", "")
            case = f"{row['case']}, {size:,} deleted" if size else row["case"]
            if isinstance(row.get("scale"), int):
                case += f", scale {row['scale']:,}"
            groups[case][row["algorithm"]] = row["milliseconds"] / 1e3
    for case, seconds in groups.items():
        ours = seconds.pop("auto", None)
        ours = seconds.pop("auto with modules", ours)  # the default
        if ours is not None and seconds:
            best = min(seconds, key=lambda algorithm: seconds[algorithm])
            yield Loss(name, f"{case}, by `auto`", f"`{best}`", seconds[best], ours)


def _modules(name: str, rows: Sequence[Row]) -> Iterator[Loss]:
    """Small deletions against a materialization from scratch."""
    for row in rows:
        if row.get("algorithm") == "auto" and row["modules"] and "small_deletion" in row:
            scratch, update = row["materialization"], row["small_deletion"]
            yield Loss(name, f"{row['case']}, a small deletion", "materialization", scratch, update)


def _first_second(name: str, rows: Sequence[Row]) -> Iterator[Loss]:
    """Commands on small data, against the same work by other systems."""
    for state in ("cold", "warm"):
        key = f"{state}_cpu_seconds"
        yield from _against_systems(name, rows, ("case",), key, state)


def _streams(name: str, rows: Sequence[Row]) -> Iterator[Loss]:
    """All commits of a stream, against systems with a correct state or rules of their own."""
    right = [row for row in rows if row.get("correct") is not False]
    yield from _against_systems(name, right, ("stream", "scale"), "total_seconds", "all commits")


def _against_systems(
    name: str, rows: Sequence[Row], keys: Sequence[str], seconds: str, state: str
) -> Iterator[Loss]:
    """Rows that agree in some keys, and differ in the system."""

    def case(row: Row) -> tuple[object, ...]:
        return tuple(row.get(key) for key in keys)

    ours = {case(row): row[seconds] for row in rows if _is_ours(row) and seconds in row}
    for row in rows:
        own = ours.get(case(row))
        if not str(row.get("system")).startswith("corollary") and seconds in row and own:
            title = ", ".join(str(part) for part in (*case(row), state))
            yield Loss(name, title, str(row["system"]), row[seconds], own)


def _is_ours(row: Row) -> bool:
    return row.get("system") == "corollary"


def _against_engines(name: str, rows: Sequence[Row]) -> Iterator[Loss]:
    """Rows of equal cases that differ in the engine."""
    ours: dict[tuple[object, ...], float] = {}
    for row in rows:
        if row.get("engine") in _OUR_ENGINES and "seconds" in row:
            key = _case(row)
            ours[key] = min(row["seconds"], ours.get(key, row["seconds"]))
    for row in rows:
        theirs, own = row.get("seconds"), ours.get(_case(row))
        if row.get("engine") in _OUR_ENGINES or not isinstance(theirs, float) or own is None:
            continue
        if "engine" in row and row.get("correct") is not False:
            case = row.get("case") or row.get("work") or name
            yield Loss(name, str(case), str(row["engine"]), theirs, own)


def _case(row: Row) -> tuple[object, ...]:
    keys = ("part", "case", "work", "scale", "rule", "stream", "threads")
    return tuple(row.get(key) for key in keys)


_OUR_ENGINES = {"columnar", "corollary", "corollary on Spark", "spark", "rewrite", "rules"}
_LOSSES = {
    "sparql": _queries,
    "bf": _deletions,
    "growing": _deletions,
    "proofs": _deletions,
    "modular": _modules,
    "first-second": _first_second,
    "evolve": _streams,
}
