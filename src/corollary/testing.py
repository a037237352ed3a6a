"""Set the thresholds of the system, so that tests reach every way of computing on small data.

Corollary computes the same consequences in many ways and chooses by size: bitmaps or binary
search, specialized rules or general ones, one thread or several. A case of ten facts normally
stays below all of these thresholds. Set them for a block instead:

>>> import corollary
>>> from corollary.testing import thresholds
>>> rules = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
>>> with thresholds(probe_keys_limit=0, bitset_steps_ratio=0):
...     kb = corollary.KnowledgeBase(rules + "edge(1, 2) . edge(2, 3) .")
...     kb.count("path")
3

`all_thresholds` lists them with their meaning, `random_thresholds` draws all of them from a seed,
and `recorded_crossings` says on which side of each threshold a block was. What was made within a
block (a knowledge base, an engine) must be used within it. Thresholds are values of the process:
blocks of several threads must not overlap, and tasks of Spark in other processes see the defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import corollary.algorithms.tuning
import corollary.engines.columnar.tuning
import corollary.engines.spark.tuning
import corollary.engines.tuples.tuning
import corollary.knowledge_base.tuning
import corollary.rdf.tuning  # noqa: F401  each registers the thresholds of its layer
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

# By the name of a threshold: the sides of it, below or not, that comparisons were decided for.
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

    >>> with thresholds(guarded_cases_limit=1) as values:
    ...     values
    {'guarded_cases_limit': 1}
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
    """Set every threshold to a value that the seed determines, for a block.

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

    A threshold that was compared with something smaller and with something larger has both outcomes
    in its set. A number that is passed to compiled code is not seen there. May be nested with
    `thresholds`, which must be the outer block.

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
    """A number that notes how comparisons with it, or with what is computed from it, come out."""

    outcomes: set[bool]

    def __new__(cls, value: int, outcomes: set[bool]) -> _Recorded:
        made = super().__new__(cls, value)
        made.outcomes = outcomes
        return made

    def _noted(self, exceeded: bool) -> None:
        self.outcomes.add(exceeded)

    # Whether the other number exceeds this one; equality counts as the comparison decides it.
    def __lt__(self, other: Any) -> bool:
        self._noted(bool(int(self) < other))
        return bool(int(self) < other)

    def __le__(self, other: Any) -> bool:
        self._noted(bool(int(self) <= other))
        return bool(int(self) <= other)

    def __gt__(self, other: Any) -> bool:
        self._noted(not int(self) > other)
        return bool(int(self) > other)

    def __ge__(self, other: Any) -> bool:
        self._noted(not int(self) >= other)
        return bool(int(self) >= other)

    def _computed(self, value: Any) -> Any:
        return _Recorded(value, self.outcomes) if isinstance(value, int) else value

    def __mul__(self, other: Any) -> Any:
        return self._computed(int(self) * other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        return self._computed(int(self) + other)

    __radd__ = __add__
