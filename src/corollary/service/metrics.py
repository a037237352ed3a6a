"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counts requests and their times by route; other values are read when they are shown.

    >>> metrics = Metrics()
    >>> metrics.request("/sparql", "GET", 200, 0.004)
    >>> [line for line in metrics.lines({}) if line.startswith("corollary_requests_total")]
    ['corollary_requests_total{method="GET",route="/sparql",status="200"} 1']
    """

    def __init__(self) -> None:
        self._requests: Counter[Labels] = Counter()
        self._errors: Counter[str] = Counter()
        self._times: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request. Routes are patterns, so clients cannot create labels."""
        self._requests[("method", method), ("route", route), ("status", str(status))] += 1
        times = self._times.setdefault(route, [0] * (len(_BOUNDS) + 1))
        times[bisect_left(_BOUNDS, seconds)] += 1
        self._sums[route] += seconds  # type: ignore[assignment]

    def error(self, code: str) -> None:
        """Count an error by its code."""
        self._errors[code] += 1

    def lines(self, gauges: Mapping[str, tuple[str, str, float]]) -> Iterator[str]:
        """The text, line by line; `gauges` maps names to type, meaning and value."""
        yield from _family("corollary_requests_total", "counter", "Requests by route and status.")
        yield from _samples("corollary_requests_total", self._requests.items())
        yield from _family("corollary_errors_total", "counter", "Errors by code.")
        errors = (((("code", code),), n) for code, n in self._errors.items())
        yield from _samples("corollary_errors_total", errors)
        name = "corollary_request_seconds"
        yield from _family(name, "histogram", "Time until a response begins.")
        for route, counts in sorted(self._times.items()):
            total = 0
            for bound, count in zip((*map(str, _BOUNDS), "+Inf"), counts, strict=True):
                total += count
                yield f'{name}_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'{name}_sum{{route="{route}"}} {self._sums[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {total}'
        for name, (kind, meaning, value) in gauges.items():
            yield from _family(name, kind, meaning)
            yield f"{name} {value:g}"


def _family(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _samples(name: str, values: Iterable[tuple[Labels, int]]) -> Iterator[str]:
    for labels, value in sorted(values):
        listed = ",".join(f'{key}="{text}"' for key, text in labels)
        yield f"{name}{{{listed}}} {value}"
