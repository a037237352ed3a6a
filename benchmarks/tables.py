"""Facts as arrays in a file, shared by engines in separate processes."""

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
    """Parse the label of a predicate.

    >>> all(label(labelled(text)) == text for text in ("edge", "http://e/p", "a http://e/C"))
    True
    """
    if text.startswith("a "):
        return Predicate(TRIPLE, TYPE, IRI(text[2:]))
    return Predicate(TRIPLE, IRI(text)) if ":" in text else Predicate(text)


def save(path: Path | str, tables: Mapping[Predicate, Ids]) -> None:
    """Write the tables to one file."""
    # Not named by labels: a slash would create a folder in the archive.
    arrays: dict[str, Any] = {f"table{number}": rows for number, rows in enumerate(tables.values())}
    np.savez(path, labels=np.array([label(predicate) for predicate in tables]), **arrays)


def load(path: Path | str) -> dict[Predicate, Ids]:
    """The tables of a file."""
    with np.load(path) as arrays:
        return {
            labelled(str(text)): arrays[f"table{number}"]
            for number, text in enumerate(arrays["labels"])
        }
