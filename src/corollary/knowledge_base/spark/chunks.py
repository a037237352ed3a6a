"""What an update on Spark begins with, beside the tables of a store (`engines.spark.chunk_cache`).

It belongs to one commit. Where that is not the newest one, as after a commit of the embedded engine
or a compaction, tables are read, and the next commit on Spark has chunks of its own.
"""

from __future__ import annotations

from typing import Any

from corollary.algorithms.maintain import Maintainer
from corollary.engines.spark import chunk_cache
from corollary.engines.spark.base import Workspace
from corollary.knowledge_base.general import GeneralMaintainer
from corollary.knowledge_base.ontology import Specialized
from corollary.store import Snapshot, Writer
from corollary.store.layout import CHUNKS

_EXPLICIT, _ALL = "explicit", "all"


def save(workspace: Workspace, writer: Writer, kept: Any) -> None:
    """Keep the facts of a maintainer for the commit that is being made, if there is room."""
    if type(kept) not in (Maintainer, Specialized, GeneralMaintainer):
        return  # a hybrid one, whose facts are few
    folder = writer.store.path / CHUNKS
    sets = {_EXPLICIT: kept.explicit, _ALL: kept.all_facts}
    chunk_cache.save(workspace, folder, writer.id, sets, kept.signature)


def load(workspace: Workspace, snapshot: Snapshot) -> tuple[Any, Any, str] | None:
    """The explicit facts and all facts of a version, and the signature of what derived them."""
    found = chunk_cache.load(workspace, snapshot.store.path / CHUNKS, snapshot.commit.id)
    if found is None:
        return None
    sets, signature = found
    return sets[_EXPLICIT], sets[_ALL], signature


def clean(writer: Writer) -> None:
    """Once a commit is made, forget what belongs to earlier ones."""
    chunk_cache.clean(writer.store.path / CHUNKS, writer.id)
