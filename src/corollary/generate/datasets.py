"""What a generated dataset consists of: files of facts, programs, and what its scale counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from corollary.errors import InvalidInput
from corollary.generate.columns import Columns


@dataclass(frozen=True)
class File:
    """A file: facts that are drawn when they are written, or the text of a program."""

    name: str
    facts: Callable[[], Iterable[Columns]] = tuple
    text: str = ""


@dataclass(frozen=True)
class Dataset:
    """A kind of data that can be generated.

    `unit` says what one step of the scale is, `whole` that there are no halves of it, `least` the
    smallest scale.
    """

    name: str
    summary: str
    unit: str
    make: Callable[[float, int], Sequence[File]]
    whole: bool = False
    least: float = 0.0

    def files(self, scale: float, seed: int = 0) -> Sequence[File]:
        """The files of a scale; nothing is drawn yet.

        >>> Dataset("none", "", "nothing", lambda scale, seed: ()).files(-1)
        Traceback (most recent call last):
        corollary.errors.InvalidInput: the scale of none must be above 0, found -1
        """
        shown = f"{scale:g}"
        if self.whole and scale != math.floor(scale):
            raise self._bad_scale(f"a whole number of {self.unit}", shown)
        if not math.isfinite(scale) or scale <= 0:
            raise self._bad_scale("above 0", shown)
        if scale < self.least:
            raise self._bad_scale(f"at least {self.least:g}", shown)
        return self.make(scale, seed)

    def _bad_scale(self, wanted: str, found: str) -> InvalidInput:
        return InvalidInput(
            "E330",
            f"the scale of {self.name} must be {wanted}, found {found}",
            f"scale 1 is {self.unit}" if not self.whole else f"the scale counts {self.unit}",
        )
