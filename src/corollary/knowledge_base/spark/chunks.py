"""The chunk cache of a store, from which updates on Spark start (`engines.spark.chunk_cache`).

The cache belongs to one commit. If that is not the newest one, as after a commit of the embedded
engine or a compaction, the tables are read, and the next commit on Spark writes new chunks.
"""

from __future__ import annotations

from pathlib import Path

from corollary.algorithms.reasoner import Reasoner
from corollary.core.object_store import ObjectPath
from corollary.engines.spark import chunk_cache
from corollary.engines.spark.base import SparkRun
from corollary.engines.spark.facts import SparkFacts
from corollary.store import Snapshot, Store, Writer

_EXPLICIT, _ALL = "explicit", "all"


def _folder(run: SparkRun, store: Store) -> Path | None:
    """The folder of the chunks; None if a remote store has none that all tasks see."""
    if isinstance(store.path, ObjectPath):
        if not str(run.session.conf.get("spark.master")).startswith("local"):
            return None
        store.chunks_folder.mkdir(parents=True, exist_ok=True)
        store.path.store.use(store.chunks_folder)
    return store.chunks_folder


def save(run: SparkRun, writer: Writer, reasoner: Reasoner[SparkFacts]) -> None:
    """Cache the facts of a reasoner for the pending commit, if there is room."""
    folder = _folder(run, writer.store)
    if folder is None or reasoner.signature is None:
        return
    sets = {_EXPLICIT: reasoner.explicit, _ALL: reasoner.all_facts}
    chunk_cache.save(run, folder, writer.id, sets, reasoner.signature)
    if isinstance(writer.store.path, ObjectPath):
        writer.store.path.store.added(folder)


def load(run: SparkRun, snapshot: Snapshot) -> tuple[SparkFacts, SparkFacts, str | None] | None:
    """Load the explicit facts and all facts of a version, and the signature of their reasoner."""
    folder = _folder(run, snapshot.store)
    found = None if folder is None else chunk_cache.load(run, folder, snapshot.commit.id)
    if found is None:
        return None
    sets, signature = found
    return sets[_EXPLICIT], sets[_ALL], signature


def clean(writer: Writer) -> None:
    """Remove the caches of earlier commits after a commit."""
    chunk_cache.clean(writer.store.chunks_folder, writer.id)
