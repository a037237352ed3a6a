"""Knowledge bases of commands: opened from a store, or loaded from files."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from corollary.cli import arguments
from corollary.cli.pandas_import import skip_pandas
from corollary.knowledge_base.imports import import_map_of
from corollary.knowledge_base.rules import Rules, read_rules

if TYPE_CHECKING:
    from corollary.cli.progress import Progress
    from corollary.knowledge_base.base import KnowledgeBase
    from corollary.knowledge_base.data import InputOptions
    from corollary.knowledge_base.transaction_changes import TransactionChanges


def open_store(
    options: argparse.Namespace, store: str | None = None, *, write_cache: bool = True
) -> KnowledgeBase:
    """Open the store of a command, at the version that `--at-version` gives."""
    from corollary.knowledge_base.base import KnowledgeBase

    skip_pandas()
    return KnowledgeBase.open(
        arguments.place_of(options, store),
        at_version=getattr(options, "at_version", None),
        algorithm=getattr(options, "algorithm", "auto"),
        threads=options.threads,
        limit_memory=options.limit_memory,
        write_cache=write_cache,
    )


def load_files(
    options: argparse.Namespace,
    rules: Rules | Iterable[Rules],
    sources: Sequence[str],
    progress: Progress,
) -> tuple[KnowledgeBase, TransactionChanges]:
    """Load files into a knowledge base with some rules."""
    from corollary.knowledge_base.base import KnowledgeBase

    skip_pandas()
    kb = KnowledgeBase(
        read_rules(rules),
        equality=getattr(options, "equality", "rules"),
        mode=getattr(options, "mode", None) or "materialized",
        materialize=getattr(options, "materialize", ()),
        reason_over=getattr(options, "reason_over", None) or "union",
        threads=options.threads,
        limit_memory=options.limit_memory,
    )
    return kb, kb.load(
        *sources,
        on_progress=progress.reading,
        import_map=import_map_of(getattr(options, "import_map", ())),
        fetch_imports=getattr(options, "fetch_imports", False),
        graph=getattr(options, "graph", None),
        **read_options(options),
    )


def read_options(options: argparse.Namespace) -> InputOptions:
    """Return the options for reading the files of a command."""
    return {"on_error": options.on_error, "limit_input_bytes": options.limit_input_bytes}
