"""Plots of rows: one panel for each `Plot`, in one SVG or PNG file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.report import Row, written

_WIDTH, _HEIGHT = 7.0, 3.6  # inches of a panel
_WIDE = 20.0  # largest to smallest: from here on, logarithmic axes
_MANY = 12  # bars that still have their value written beside them


@dataclass(frozen=True)
class Plot:
    """What a panel shows: `y` by `x`, a line or group of bars for each value of `series`.

    Rows without `x` or `y` are left out, as are those that differ from `where`. Keys may be
    joined: `case + algorithm`.
    """

    title: str
    x: str
    y: str
    series: str = ""
    kind: Literal["bars", "lines"] = "bars"
    where: tuple[tuple[str, Any], ...] = ()

    def curves(self, rows: Sequence[Row]) -> dict[str, list[tuple[Any, float]]]:
        """The points of each series.

        >>> plot = Plot("times", "size", "seconds", "engine")
        >>> plot.curves([{"size": 1, "seconds": 2.0, "engine": "a"}, {"size": 1, "skipped": "b"}])
        {'a': [(1, 2.0)]}
        """
        found: dict[str, list[tuple[Any, float]]] = {}
        for row in rows:
            if any(row.get(key) != value for key, value in self.where) or row.get(self.y) is None:
                continue
            x, series = _value(row, self.x), _value(row, self.series) if self.series else ""
            if x is not None and series is not None:
                found.setdefault(written(series), []).append((x, float(row[self.y])))
        return found


def draw(plots: Sequence[Plot], rows: Sequence[Row], path: Path) -> bool:
    """Write the panels that have points; whether there was one."""
    panels = [(plot, curves) for plot in plots if (curves := plot.curves(rows))]
    if not panels:
        return False
    import matplotlib as mpl

    mpl.use("svg" if path.suffix == ".svg" else "agg")
    # So that the same rows give the same file.
    mpl.rcParams["svg.hashsalt"] = path.stem
    from matplotlib import pyplot

    size = (_WIDTH, _HEIGHT * len(panels))
    figure, axes = pyplot.subplots(len(panels), figsize=size, squeeze=False)
    for (plot, curves), axis in zip(panels, axes[:, 0], strict=True):
        (_lines if plot.kind == "lines" else _bars)(axis, plot, curves)
        axis.set_title(plot.title, fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3, axis="both" if plot.kind == "lines" else "x")
        if len(curves) > 1:
            axis.legend(fontsize=7, frameon=False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(path, metadata=metadata)
    pyplot.close(figure)
    return True


def _lines(axis: Any, plot: Plot, curves: dict[str, list[tuple[Any, float]]]) -> None:
    for name, points in curves.items():
        xs, ys = zip(*sorted(points), strict=True)
        axis.plot(xs, ys, marker="o", markersize=3, linewidth=1.2, label=name)
    axis.set_xlabel(plot.x.replace("_", " "))
    axis.set_ylabel(plot.y.replace("_", " "))
    points = [point for points in curves.values() for point in points]
    if _is_wide([x for x, _ in points]):
        axis.set_xscale("log")
    if _is_wide([y for _, y in points]):
        axis.set_yscale("log")


def _bars(axis: Any, plot: Plot, curves: dict[str, list[tuple[Any, float]]]) -> None:
    places = list(dict.fromkeys(x for points in curves.values() for x, _ in points))
    height = 0.8 / len(curves)
    for number, (name, points) in enumerate(curves.items()):
        at = [places.index(x) + (number - (len(curves) - 1) / 2) * height for x, _ in points]
        bars = axis.barh(at, [y for _, y in points], height * 0.9, label=name)
        if len(places) * len(curves) <= _MANY:
            axis.bar_label(bars, [written(y) for _, y in points], fontsize=7, padding=2)
    axis.set_yticks(range(len(places)), [written(place) for place in places], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel(plot.y.replace("_", " "))
    if _is_wide([y for points in curves.values() for _, y in points]):
        axis.set_xscale("log")


def _is_wide(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) >= _WIDE


def _value(row: Row, key: str) -> Any:
    parts = [row.get(part) for part in key.split(" + ")]
    if any(part is None for part in parts):
        return None
    return parts[0] if len(parts) == 1 else ", ".join(map(written, parts))
