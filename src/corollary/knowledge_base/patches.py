"""RDF Patch files as transactions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.transaction_changes import TransactionChanges
from corollary.rdf.patch import read_patch


def apply_patch(
    kb: KnowledgeBase, path: str | Path, *, limit_input_bytes: int | None = None
) -> Iterator[TransactionChanges]:
    """Apply the transactions of a file in order; yields the changes of each.

    The headers of a transaction become the message of its commit.
    """
    dictionary = kb.state.dictionary
    patch = read_patch(path, dictionary, limit_input_bytes=limit_input_bytes)
    for transaction in patch:
        message = ", ".join(f"{name} {value}" for name, value in transaction.headers.items())
        with kb.transaction(message=message or f"from {Path(path).name}") as tx:
            for inserts, triples in transaction.requests:
                (tx.insert if inserts else tx.delete)(triples)
        yield tx.changes
