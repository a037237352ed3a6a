"""Descriptions of generated datasets: their files and scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from corollary.errors import InvalidInput
from corollary.generate.columns import Columns


@dataclass(frozen=True)
class File:
    """A file: facts that are drawn lazily, or the text of a program."""

    name: str
    facts: Callable[[], Iterable[Columns]] = tuple
    text: str = ""


@dataclass(frozen=True)
class Dataset:
    """A kind of data that can be generated.

    `unit` is what scale 1 stands for, `whole` restricts the scale to whole numbers, `least` and
    `most` bound it.
    """

    name: str
    summary: str
    unit: str
    make: Callable[[float, int], Sequence[File]]
    least: float
    most: int
    whole: bool = False

    def files(self, scale: float, seed: int = 0) -> Sequence[File]:
        """The files of a scale; draws nothing yet.

        >>> Dataset("none", "", "nothing", lambda scale, seed: (), least=1, most=9).files(-1)
        Traceback (most recent call last):
        corollary.errors.InvalidInput: E330: the scale of none must be above 0, found -1
          hint: scale 1 is nothing
        """
        if not 0 < scale < math.inf:  # false for NaN too
            raise self._bad_scale("above 0", scale)
        if self.whole and scale != math.floor(scale):
            raise self._bad_scale("a whole number", scale)
        if not self.least <= scale <= self.most:
            raise self._bad_scale(f"between {self.least:g} and {self.most:,}", scale)
        return self.make(scale, seed)

    def _bad_scale(self, wanted: str, found: float) -> InvalidInput:
        return InvalidInput(
            "E330",
            f"the scale of {self.name} must be {wanted}, found {found:g}",
            f"the scale counts {self.unit}" if self.whole else f"scale 1 is {self.unit}",
        )
