"""Override thresholds, so tests reach every code path on small data.

Corollary chooses among algorithms by size: bitmaps or binary search, specialized rules or general
ones, one thread or several. A test case of ten facts normally stays below all of these thresholds.
Override them for a block:

>>> import corollary
>>> from corollary.testing import thresholds
>>> rules = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
>>> with thresholds(probe_keys_limit=0, bitset_steps_ratio=0):
...     kb = corollary.KnowledgeBase(rules + "edge(1, 2) . edge(2, 3) .")
...     kb.count("path")
3

`all_thresholds` lists them with their meaning, `random_thresholds` draws all of them from a seed,
and `recorded_crossings` records on which side of each threshold a block was. Objects created within
a block (a knowledge base, an engine) must be used within it. Thresholds are process-wide: blocks of
several threads must not overlap, and Spark tasks in other processes see the defaults.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from corollary.core.tuning import Threshold, current, override, registered

__all__ = [
    "Crossings",
    "Threshold",
    "all_thresholds",
    "draw",
    "random_thresholds",
    "recorded_crossings",
    "thresholds",
]

# A layer registers its thresholds when it is imported, which commands do only when they need it.
for _package in (
    "algorithms",
    "engines.columnar",
    "engines.spark",
    "engines.tuples",
    "reasoning",
):
    importlib.import_module(f"corollary.{_package}.tuning")

# By the name of a threshold: the outcomes of comparisons with it.
Crossings = dict[str, set[bool]]


def all_thresholds() -> dict[str, Threshold]:
    """Every threshold by name, with its layer, default, unit and meaning.

    >>> all_thresholds()["probe_keys_limit"].unit
    'keys'
    """
    return registered()


@contextmanager
def thresholds(**overrides: int) -> Iterator[dict[str, int]]:
    """Set thresholds by name for a block; others keep their values.

    >>> with thresholds(specialized_rules_limit=1) as values:
    ...     values
    {'specialized_rules_limit': 1}
    """
    with override(overrides):
        yield overrides


def draw(seed: int) -> dict[str, int]:
    """Values for all thresholds from a seed: extremes, small numbers, and some of the defaults."""
    random = Random(seed)
    chosen = {}
    for name, known in sorted(registered().items()):
        values = (known.minimum, known.minimum + random.randrange(1, 40), known.maximum)
        value = random.choice((*values, values[1], known.default))
        chosen[name] = max(known.minimum, min(known.maximum, value))
    return chosen


@contextmanager
def random_thresholds(seed: int) -> Iterator[dict[str, int]]:
    """Set every threshold to a random value, from a seed, for a block.

    >>> with random_thresholds(7) as first:
    ...     pass
    >>> first == draw(7)
    True
    """
    chosen = draw(seed)
    with override(chosen):
        yield chosen


@contextmanager
def recorded_crossings(into: Crossings | None = None) -> Iterator[Crossings]:
    """Record the outcome of every comparison with a threshold in a block.

    A threshold that was compared with both a smaller and a larger number has two outcomes.
    Comparisons in compiled code are not recorded. May be nested with `thresholds`, which must be
    the outer block.

    >>> import corollary
    >>> with recorded_crossings() as crossings:
    ...     kb = corollary.KnowledgeBase("p(?x) :- q(?x), r(?x, ?y) . q(1) . r(1, 2) .")
    >>> crossings["small_atom_facts_limit"]
    {False}
    """
    crossings: Crossings = {} if into is None else into
    values = {}
    for name in registered():
        crossings.setdefault(name, set())
        values[name] = _Recorded(current(name), crossings[name])
    with override(values):
        yield crossings


class _Recorded(int):
    """A number that records the outcome of comparisons with it or with what is computed from it."""

    outcomes: set[bool]

    def __new__(cls, value: int, outcomes: set[bool]) -> _Recorded:
        number = super().__new__(cls, value)
        number.outcomes = outcomes
        return number

    def _record(self, exceeded: bool) -> bool:
        """Record whether the other number exceeds this one."""
        self.outcomes.add(bool(exceeded))
        return bool(exceeded)

    # Equality counts as the comparison decides it.
    def __lt__(self, other: float) -> bool:
        return self._record(int(self) < other)

    def __le__(self, other: float) -> bool:
        return self._record(int(self) <= other)

    def __gt__(self, other: float) -> bool:
        return not self._record(not int(self) > other)

    def __ge__(self, other: float) -> bool:
        return not self._record(not int(self) >= other)

    def _computed(self, value: Any) -> Any:
        return _Recorded(value, self.outcomes) if isinstance(value, int) else value

    def __mul__(self, other: Any) -> Any:
        return self._computed(int(self) * other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        return self._computed(int(self) + other)

    __radd__ = __add__
