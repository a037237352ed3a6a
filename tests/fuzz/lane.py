"""The type of a fuzzing lane: a function that checks the case of one seed."""

from __future__ import annotations

from collections.abc import Callable

# Named counts, summed over all seeds: {"streams": 1, "commits": 12}.
Figures = dict[str, int]

# Checks the case that a seed determines. Raises on any difference, with the case in a note.
Lane = Callable[[int], Figures]
