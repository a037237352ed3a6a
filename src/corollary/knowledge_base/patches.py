"""RDF Patch files as transactions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.transaction import TransactionChanges
from corollary.rdf.patch import read_patch


def apply_patch(
    kb: KnowledgeBase, path: str | Path, *, limit_input_bytes: int | None = None
) -> Iterator[TransactionChanges]:
    """Make the transactions of a file, one after the other; yields what each has changed.

    The headers of a transaction become the message of its commit.
    """
    patch = read_patch(path, kb._dictionary, limit_input_bytes=limit_input_bytes)
    for transaction in patch:
        message = ", ".join(f"{name} {value}" for name, value in transaction.headers.items())
        with kb.transaction(message=message or f"from {Path(path).name}") as tx:
            for added, triples in transaction.requests:
                tx._request(triples.tables(kb._dictionary), inserts=added)
        yield tx.changes
