"""Check whether a folder is a store, empty, or something else."""

from __future__ import annotations

from corollary.lang.syntax import QUAD_COLUMNS
from corollary.store import Store, marker
from corollary.store.places import Place, store_path

QUAD_WIDTH = len(QUAD_COLUMNS)  # so that the first named graph needs no version for a column


def is_store(path: Place) -> bool:
    """Test whether a folder holds a store.

    >>> is_store("nowhere")
    False
    """
    return any((store_path(path) / "facts" / "_delta_log").glob("*.json"))


def is_empty(path: Place) -> bool:
    """Test whether a folder holds a store without facts and rules.

    >>> is_empty("nowhere")
    False
    """
    return is_store(path) and Store.open(path).is_empty()


def empty_store(path: Place, width: int = 0) -> Store:
    """Open an empty store, or create one for facts of `width` arguments.

    >>> import tempfile
    >>> empty_store(tempfile.mkdtemp()).latest()
    0
    """
    return Store.open(path) if is_empty(path) else Store.create(path, width=max(width, QUAD_WIDTH))


def refuse_occupied(path: Place) -> None:
    """Fail if a folder is not free for a build to create a store in.

    >>> refuse_occupied("nowhere")
    """
    if not is_empty(path):
        marker.refuse_occupied(store_path(path))
