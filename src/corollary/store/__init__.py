"""The store: versions of a materialization as Delta tables, shared by all engines and readers.

`facts/`, `terms/`, `changes/` and `rules/` are Delta tables (`layout`). A version is a commit of
`facts/`; everything else is written before it, so that a version appears atomically.
"""

from corollary.store.layout import FORMAT
from corollary.store.snapshot import Snapshot
from corollary.store.store import Store
from corollary.store.writer import Statistics, Writer

__all__ = ["FORMAT", "Snapshot", "Statistics", "Store", "Writer"]
