"""Publish a store as Delta tables of terms, which every reader of Delta understands."""

from __future__ import annotations

from collections.abc import Mapping

from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.export import Exported, Which, export
from corollary.store.places import Place, store_path


def publish(
    path: Place,
    target: Place,
    *,
    which: Which = "all",
    at_version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Exported:
    """Write the current facts of a store as Delta tables: one per relation, `triples` for triples.

    The tables below `target`, a folder or an address, show one version, and remember it: publishing
    again merges what has changed since, and a table without changes gets no commit. `which` is
    `all`, `explicit` or `derived`. The store is opened in this process.

    >>> import tempfile, corollary as co
    >>> folder = tempfile.mkdtemp()
    >>> kb = co.KnowledgeBase("q(?x) :- p(?x) . p(1) .")
    >>> kb.save(f"{folder}/store")
    1
    >>> publish(f"{folder}/store", f"{folder}/tables").rows
    {'p': 1, 'q': 1}
    >>> publish(f"{folder}/store", f"{folder}/tables").changed
    {'p': 0, 'q': 0}
    """
    kb = KnowledgeBase.open(store_path(path, storage_options), at_version=at_version)
    return export(kb.state, store_path(target, storage_options), "delta", which)
