"""Facts as arrays in a file, so that all engines get the same ones, each in its own process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from corollary.core.dictionary import Ids
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, TRIPLE, TYPE


def label(predicate: Predicate) -> str:
    """A predicate as text; classes begin with `a`.

    >>> label(Predicate("edge")), label(Predicate(TRIPLE, TYPE, IRI("http://e/C")))
    ('edge', 'a http://e/C')
    """
    match predicate:
        case Predicate(relation, None):
            return relation
        case Predicate(_, IRI(value), None):
            return value
        case Predicate(_, _, IRI(value)):
            return f"a {value}"
    raise ValueError(f"no label for {predicate}")


def labelled(text: str) -> Predicate:
    """The predicate of a label.

    >>> all(label(labelled(text)) == text for text in ("edge", "http://e/p", "a http://e/C"))
    True
    """
    if text.startswith("a "):
        return Predicate(TRIPLE, TYPE, IRI(text[2:]))
    return Predicate(TRIPLE, IRI(text)) if ":" in text else Predicate(text)


def save(path: Path | str, tables: Mapping[Predicate, Ids]) -> None:
    """Write the tables to one file."""
    # Not under the labels: in the archive a slash would begin a folder.
    arrays: dict[str, Any] = {f"table{number}": rows for number, rows in enumerate(tables.values())}
    np.savez(path, labels=np.array([label(predicate) for predicate in tables]), **arrays)


def load(path: Path | str) -> dict[Predicate, Ids]:
    """The tables of a file."""
    with np.load(path) as arrays:
        return {
            labelled(str(text)): arrays[f"table{number}"]
            for number, text in enumerate(arrays["labels"])
        }
