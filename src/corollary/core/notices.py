"""Notices: collect surprises during a load or commit, and warn once per code.

Readers and engines report with `note` while they work. A load or commit gathers the notices, and
issues one warning per code at the end. Notices outside of a load or commit, such as those of an
explanation that reevaluates an aggregate, are dropped.
"""

from __future__ import annotations

import sys
import warnings
from contextvars import ContextVar
from dataclasses import dataclass, field

from corollary.errors import CorollaryWarning
from corollary.lang.growth import growing_values
from corollary.lang.program import Program

_HINTS = {
    "W101": "the names of graphs are dropped",
    "W102": "name their files in an import map, or load them too",
    "W103": "no effect with these rules",
    "W104": "a value of another type than the others leaves its group without a result",
    "W107": "state facts, name a file by @input, or give a folder by --facts",
    "W105": "it was read as a fact: delete the row if it names the columns",
    "W110": "it may never end: compare the value with a limit in a FILTER, or limit the facts",
}


@dataclass
class Notice:
    """The number of occurrences, and the place of the first."""

    count: int = 0
    file: str | None = None
    detail: str = ""
    terms: dict[str, int] = field(default_factory=dict)  # counts by term, of W103


class Notices:
    """Notices by code."""

    def __init__(self) -> None:
        self.by_code: dict[str, Notice] = {}

    def add(self, code: str, count: int, *, file: str | None = None, detail: str = "") -> None:
        """Count occurrences; the first file and detail are kept."""
        if not count:
            return
        known = self.by_code.setdefault(code, Notice(0, file, detail))
        known.count += count
        if code == "W103":
            known.terms[detail] = known.terms.get(detail, 0) + count

    def extend(self, other: Notices) -> None:
        """Add the counts of other notices."""
        for code, notice in other.by_code.items():
            if notice.terms:
                for term, count in notice.terms.items():
                    self.add(code, count, file=notice.file, detail=term)
            else:
                self.add(code, notice.count, file=notice.file, detail=notice.detail)

    def warnings(self) -> list[CorollaryWarning]:
        """Create one warning per code.

        >>> notices = Notices()
        >>> notices.add("W101", 2, file="data.nq")
        >>> print(*notices.warnings())
        W101: 2 statements of named graphs are merged into one graph (in data.nq); the names of\
 graphs are dropped
        """
        return [
            CorollaryWarning(
                code, _message(code, found), _HINTS[code], count=found.count, file=found.file
            )
            for code, found in sorted(self.by_code.items())
        ]

    def warn(self) -> None:
        """Issue Python warnings, and clear the notices."""
        if not self.by_code:
            return
        pending = self.warnings()
        self.by_code = {}
        for warning in pending:
            warnings.warn(warning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """How far the caller of this library is above the function that warns."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("corollary", "contextlib"):
            break
        level, frame = level + 1, frame.f_back
    return level


def _message(code: str, found: Notice) -> str:
    one, many = {
        "W101": ("statement of a named graph is merged", "statements of named graphs are merged"),
        "W102": ("owl:imports is not followed", "owl:imports are not followed"),
        "W103": ("axiom is read by no rule", "axioms are read by no rule"),
        "W104": ("group of an aggregate has no result", "groups of aggregates have no result"),
        "W105": ("table begins with what looks", "tables begin with what looks"),
        "W107": ("relation has neither rules nor facts", "relations have neither rules nor facts"),
        "W110": (
            "computed value flows back into its own recursion",
            "computed values flow back into their own recursion",
        ),
    }[code]
    end = {"W101": " into one graph", "W105": " like a header"}.get(code, "")
    text = f"{found.count:,} {one if found.count == 1 else many}{end}"
    if found.terms:
        by_term = sorted(found.terms.items(), key=lambda item: (-item[1], item[0]))
        shown = ", ".join(f"{term} {count:,}" for term, count in by_term[:10])
        return f"{text}: {shown}{', …' if len(by_term) > 10 else ''}"
    detail = f": {found.detail}" if found.detail else ""
    return f"{text}{detail}" + (f" (in {found.file})" if found.file else "")


_current: ContextVar[Notices | None] = ContextVar("notices", default=None)


def note_growth(program: Program) -> None:
    """Report values that rules compute from themselves, with the first cycle."""
    cycles = list(growing_values(program.rules))
    if cycles:
        note("W110", len(cycles), detail=" → ".join(map(str, cycles[0])))


def note(code: str, count: int, *, file: str | None = None, detail: str = "") -> None:
    """Report occurrences to the current notices, if any."""
    notices = _current.get()
    if notices is not None:
        notices.add(code, count, file=file, detail=detail)


class gathering:  # noqa: N801  used like a function; a generator would take twice as long
    """Collect all reports of the `with` block in `notices`."""

    __slots__ = ("_notices", "_token")

    def __init__(self, notices: Notices) -> None:
        self._notices = notices

    def __enter__(self) -> Notices:
        self._token = _current.set(self._notices)
        return self._notices

    def __exit__(self, *raised: object) -> None:
        _current.reset(self._token)
