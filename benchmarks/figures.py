"""Figures in running text: each is computed from saved results, so that none goes stale unseen.

A figure stands between two comments, the first of which says where it comes from:

    <!--= updates algorithm=auto changed=1 scale=10000000 | delete_ms -->0.357<!--/-->

that is, a benchmark, conditions on its rows (`key=value`), and an expression over the keys of the
rows that satisfy them: a key, or `key / key`, or `key / OTHER`, where OTHER is another selection in
brackets. Several rows need `min(key)`, `max(key)`, `sum(key)` or `count()`. `| .2g` at the end is a
format; `times 1000` before it changes the unit. `python -m benchmarks.page` fills in all of them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from benchmarks.report import Row, written

_FIGURE = re.compile(r"(<!--= (.*?) -->)(.*?)(<!--/-->)", re.DOTALL)
_FUNCTIONS: dict[str, Callable[[Sequence[float]], float]] = {"min": min, "max": max, "sum": sum}

Reports = Mapping[str, Sequence[Row]]


def filled(text: str, reports: Reports) -> str:
    """Replace the figures of a text; those of benchmarks without saved results stay.

    >>> reports = {"dag": [{"engine": "a", "s": 0.5}, {"engine": "b", "s": 5.0}]}
    >>> filled("<!--= dag engine=b | s / [dag engine=a | s] | .0f -->?<!--/--> times", reports)
    '<!--= dag engine=b | s / [dag engine=a | s] | .0f -->10<!--/--> times'
    """
    return _FIGURE.sub(lambda found: found[1] + figure(found[2], reports) + found[4], text)


def figure(source: str, reports: Reports) -> str:
    """The text of one figure.

    >>> reports = {"dag": [{"case": "x y", "n": 1500}, {"case": "z", "n": 20}]}
    >>> figure("dag case='x y' | n", reports), figure("dag | max(n) times 0.001 | .1f", reports)
    ('1,500', '1.5')
    """
    inner = re.search(r"\[(.*?)\]", source)
    rest = source.replace(inner[0], "@") if inner else source
    selection, expression, *formats = (part.strip() for part in rest.split("|"))
    expression, _, factor = expression.partition(" times ")
    key, _, divisor = (part.strip() for part in expression.partition("/"))
    value = _value(selection, key, reports)
    if divisor == "@" and inner:
        other_selection, other_key = (part.strip() for part in inner[1].split("|"))
        value /= _value(other_selection, other_key, reports)
    elif divisor:
        value /= _value(selection, divisor, reports)
    if factor:
        value *= float(factor)
    return format(value, formats[0]) if formats else written(value)


def _value(selection: str, key: str, reports: Reports) -> float:
    name, *conditions = shlex.split(selection)
    pairs = [condition.partition("=")[::2] for condition in conditions]
    rows = [
        row
        for row in reports[name]
        if all(str(row.get(condition)) == value for condition, value in pairs)
    ]
    if key == "count()":
        return len(rows)
    called = re.fullmatch(r"(min|max|sum)\((.*)\)", key)
    values = [row[called[2] if called else key] for row in rows if row.get(_plain(key)) is not None]
    if called and values:
        return _FUNCTIONS[called[1]](values)
    if len(values) != 1:
        raise ValueError(f"{len(values)} rows match {selection!r} | {key!r}, not one")
    number: float = values[0]
    return number


def _plain(key: str) -> str:
    called = re.fullmatch(r"\w+\((.*)\)", key)
    return called[1] if called else key
