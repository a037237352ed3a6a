"""Plots of rows: one panel for each `Plot`, in one SVG or PNG file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.report import Row, written
from benchmarks.views import Where, matches

_WIDTH = 7.0  # inches of a panel
_LINES = 3.6  # inches of its height with lines
_BAR, _REST = 0.18, 1.1  # inches of a bar, and around all of them
_GAP = 0.7  # bars between two groups of them
_WIDE = 20.0  # largest to smallest: from here on, logarithmic axes
_MANY = 40  # up to this many bars are labelled with their values

# One color for a thing in all plots. Blue is always Corollary, or what it does by itself.
_BLUE, _ORANGE, _GREEN, _RED, _PURPLE, _BROWN, _PINK, _GRAY, _OLIVE, _CYAN = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
    "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip
COLORS = {
    "auto": _BLUE,
    "corollary": _BLUE,
    "columnar": _BLUE,
    "bf": _ORANGE,
    "dred": _GREEN,
    "fp": _PURPLE,
    "dred-c": _RED,
    "bf-c": _BROWN,
    "counting": _OLIVE,
    "rematerialize": _GRAY,
    "duckdb": _OLIVE,
    "reasonable": _ORANGE,
    "owlrl": _RED,
    "maplib": _GREEN,
    "souffle": _PURPLE,
    "egglog": _BROWN,
    "pyoxigraph": _BROWN,
    "DataFrame joins": _PINK,
    "corollary on Spark": _CYAN,
    "kernels in tasks": _CYAN,
    "paper": _GRAY,
}
_OTHERS = (_BLUE, _ORANGE, _GREEN, _PURPLE, _BROWN, _CYAN, _PINK, _OLIVE, _RED, _GRAY)


@dataclass(frozen=True)
class Plot:
    """A panel: `y` by `x`, with a line or a group of bars for each value of `series`.

    Rows without `x` or `y`, or that do not satisfy `where`, are omitted. Keys may be combined:
    `case + algorithm`. Instead of `y` there may be several `ys` with names, each of them a series.
    Values are multiplied by `factor` to match `unit`.
    """

    title: str
    x: str
    y: str = ""
    series: str = ""
    kind: Literal["bars", "lines"] = "bars"
    where: Where = ()
    ys: tuple[tuple[str, str], ...] = ()
    unit: str = ""
    factor: float = 1
    x_unit: str = ""
    new: bool = False  # saved results may be older
    estimated: str = ""  # rows with this key are estimates: their bars are hatched

    def curves(self, rows: Sequence[Row]) -> dict[str, list[tuple[Any, float]]]:
        """The points of each series.

        >>> plot = Plot("times", "size", "seconds", "engine")
        >>> plot.curves([{"size": 1, "seconds": 2.0, "engine": "a"}, {"size": 1, "skipped": "b"}])
        {'a': [(1, 2.0)]}
        """
        found: dict[str, list[tuple[Any, float]]] = {}
        for row in rows:
            if not matches(row, self.where):
                continue
            x, series = _value(row, self.x), _value(row, self.series) if self.series else ""
            for key, name in self.ys or ((self.y, ""),):
                if x is not None and series is not None and row.get(key) is not None:
                    label = ", ".join(filter(None, (written(series), name)))
                    found.setdefault(label, []).append((x, float(row[key]) * self.factor))
        return found

    def estimates(self, rows: Sequence[Row]) -> set[tuple[str, Any]]:
        """The series and x of estimated values.

        >>> plot = Plot("times", "size", "seconds", "engine", estimated="scaled_from")
        >>> plot.estimates([{"size": 1, "seconds": 2.0, "engine": "a", "scaled_from": 0.1}])
        {('a', 1)}
        """
        if not self.estimated:
            return set()
        return {
            (written(_value(row, self.series)), _value(row, self.x))
            for row in rows
            if row.get(self.estimated) is not None and matches(row, self.where)
        }


def draw(plots: Sequence[Plot], rows: Sequence[Row], path: Path) -> bool:
    """Draw the panels that have points; returns whether there are any."""
    panels = [(plot, curves) for plot in plots if (curves := plot.curves(rows))]
    if not panels:
        return False
    import matplotlib as mpl

    mpl.use("svg" if path.suffix == ".svg" else "agg")
    # Makes the file a function of the rows.
    mpl.rcParams["svg.hashsalt"] = path.stem
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    heights = [_height(plot, curves) for plot, curves in panels]
    figure, axes = pyplot.subplots(
        len(panels),
        figsize=(_WIDTH, sum(heights)),
        squeeze=False,
        height_ratios=heights,
        layout=ConstrainedLayoutEngine(hspace=0.06),
    )
    for (plot, curves), axis in zip(panels, axes[:, 0], strict=True):
        colors = _colors(list(curves))
        if _is_lines(plot, curves):
            _lines(axis, plot, curves, colors)
        else:
            _bars(axis, plot, curves, colors, plot.estimates(rows))
        axis.set_title(plot.title, fontsize=10, loc="left", pad=8)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
        axis.set_axisbelow(True)
        axis.grid(alpha=0.3, axis="both" if _is_lines(plot, curves) else "x")
        if len(curves) > 1:
            # Beside the panel, where the legend cannot cover points.
            shown = dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
            axis.legend(
                shown.values(),
                shown.keys(),
                title=_title(plot, list(curves)),
                title_fontsize=8,
                fontsize=8,
                frameon=False,
                loc="upper left",
                bbox_to_anchor=(1.0, 1.0),
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(path, metadata=metadata)
    pyplot.close(figure)
    return True


def _title(plot: Plot, names: Sequence[str]) -> str | None:
    """The title of the legend, unless the series names are self-explanatory."""
    numbers = all(name[:1].isdigit() for name in names)
    return plot.series.replace(" + ", ", ") if "+" in plot.series or numbers else None


def _is_lines(plot: Plot, curves: dict[str, list[tuple[Any, float]]]) -> bool:
    """Whether to draw lines: a single point needs bars."""
    return plot.kind == "lines" and any(len(points) > 1 for points in curves.values())


def _height(plot: Plot, curves: dict[str, list[tuple[Any, float]]]) -> float:
    if _is_lines(plot, curves):
        return _LINES
    places = len({x for points in curves.values() for x, _ in points})
    return _REST + _BAR * (sum(map(len, curves.values())) + _GAP * places)


def _colors(names: Sequence[str]) -> dict[str, str]:
    """A color for each series: its fixed one, lightened if taken, or else an unused one.

    >>> _colors(["bf", "other"]) == {"bf": COLORS["bf"], "other": COLORS["auto"]}
    True
    >>> _colors(["auto", "auto with modules"])["auto with modules"]
    '#a5c9e1'
    """
    found: dict[str, str] = {}
    for name in names:
        first = name.partition(",")[0]
        own = COLORS.get(name) or COLORS.get(first) or COLORS.get(first.partition(" ")[0])
        if own is not None:
            free = [color for color in (own, _lighter(own)) if color not in found.values()]
            found |= {name: free[0]} if free else {}
    free = [color for color in _OTHERS if color not in found.values()]
    for number, name in enumerate(name for name in names if name not in found):
        found[name] = (free or _OTHERS)[number % len(free or _OTHERS)]
    return found


def _lighter(color: str) -> str:
    parts = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part * 0.4 + 255 * 0.6):02x}" for part in parts)


def _lines(
    axis: Any, plot: Plot, curves: dict[str, list[tuple[Any, float]]], colors: dict[str, str]
) -> None:
    for name, points in curves.items():
        xs, ys = zip(*sorted(points), strict=True)
        axis.plot(xs, ys, marker="o", markersize=3.5, linewidth=1.4, label=name, color=colors[name])
    axis.set_xlabel(plot.x_unit or plot.x.replace("_", " "), fontsize=9)
    axis.set_ylabel(plot.unit or plot.y.replace("_", " "), fontsize=9)
    points = [point for points in curves.values() for point in points]
    for values, scale, limit in (
        ([x for x, _ in points], axis.set_xscale, axis.set_xlim),
        ([y for _, y in points], axis.set_yscale, axis.set_ylim),
    ):
        if _is_wide(values):
            scale("log")
        else:
            limit(left=0) if limit == axis.set_xlim else limit(bottom=0)
    _plain(axis.xaxis, [x for x, _ in points])
    _plain(axis.yaxis, [y for _, y in points])


def _bars(
    axis: Any,
    plot: Plot,
    curves: dict[str, list[tuple[Any, float]]],
    colors: dict[str, str],
    estimates: set[tuple[str, Any]],
) -> None:
    groups: dict[Any, list[tuple[str, float]]] = {}
    for name, points in curves.items():
        for x, y in points:
            groups.setdefault(x, []).append((name, y))
    values = [y for points in curves.values() for _, y in points]
    at, ticks = 0.0, []
    for x, bars in groups.items():  # one below the other, as many as there are
        ticks.append(at + (len(bars) - 1) / 2)
        for name, y in bars:
            style = {"color": colors[name]}
            if (name, x) in estimates:
                style = {"facecolor": "white", "edgecolor": colors[name], "hatch": "////"}
            drawn = axis.barh(at, y, 0.9, label=name, **style)
            if len(values) <= _MANY:
                text = f"≈ {written(y)}, estimated" if (name, x) in estimates else written(y)
                axis.bar_label(drawn, [text], fontsize=7, padding=2)
            at += 1
        at += _GAP
    axis.set_yticks(ticks, [written(place) for place in groups], fontsize=8)
    axis.margins(y=0.01)
    axis.invert_yaxis()
    axis.set_ylabel(plot.x_unit, fontsize=9)
    axis.set_xlabel(plot.unit or plot.y.replace("_", " "), fontsize=9)
    if _is_wide(values):
        axis.set_xscale("log")
        axis.set_xlim(left=min(values) / 2, right=max(values) * 3)  # room for the values
    else:
        axis.set_xlim(right=max(values) * 1.12)
    _plain(axis.xaxis, values)


def _plain(axis: Any, values: Sequence[float]) -> None:
    """Numbers with thousands separators instead of powers of ten, as in tables."""
    from matplotlib import ticker

    if max(map(abs, values)) < 1e9:
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(ticker.NullFormatter())


def _is_wide(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) >= _WIDE


def _value(row: Row, key: str) -> Any:
    parts = [row.get(part) for part in key.split(" + ")]
    if any(part is None for part in parts):
        return None
    return parts[0] if len(parts) == 1 else ", ".join(map(written, parts))
