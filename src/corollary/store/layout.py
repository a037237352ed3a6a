"""What the folders and tables of a store look like, and how a fact is a row.

    STORE/facts/    relation, arg0 … argN, explicit, deleted, version   its commits are the versions
    STORE/terms/    id, term, hash                                      only ever appended to
    STORE/changes/  version, commit, change, relation, arg0 … argN, explicit
    STORE/rules/    program, position, name, rule
    STORE/cache/    columns for the embedded engine, made again if they are missing
    STORE/chunks/   facts for updates on Spark, made again if they are missing
    STORE/corollary-store.json   the marker: Corollary made the folders beside it

Arguments are ids of terms. Of the rows of a fact the one with the highest `version` counts; with
`deleted` it says that the fact is gone. A triple has the relation `triples`, its subject, its
property and its object.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from corollary.lang.syntax import TRIPLES_NAME

FORMAT: Final = 2  # of what is written; a store with a higher one is refused
FACTS, TERMS, CHANGES, RULES = "facts", "terms", "changes", "rules"
CACHE, CHUNKS = "cache", "chunks"
TABLES = (FACTS, TERMS, CHANGES, RULES)
MARKER = "corollary-store.json"
TRIPLES: Final = TRIPLES_NAME
WIDTH: Final = 3  # arguments that the tables have at least
MODES = ("materialized", "hybrid")

# What a row of `changes` says of its fact: it came, it went, it was derived and is explicit now,
# it was explicit and is derived now.
INSERTED, DELETED, MADE_EXPLICIT, MADE_DERIVED = "inserted", "deleted", "explicit", "derived"

FORMATS = ("text", "arrow", "parquet", "nt", "rdfp")  # of differences between versions
WHICH = ("all", "explicit", "derived")  # facts of them

TERMS_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("term", pa.string(), nullable=False),
        pa.field("hash", pa.int64(), nullable=False),
    ]
)
RULES_SCHEMA = pa.schema(
    [
        pa.field("program", pa.string(), nullable=False),  # a hash of its text
        pa.field("position", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("rule", pa.string(), nullable=False),
    ]
)


def arguments(width: int) -> list[str]:
    """The names of the columns of arguments.

    >>> arguments(2)
    ['arg0', 'arg1']
    """
    return [f"arg{number}" for number in range(width)]


def width_of(names: list[str]) -> int:
    """How many arguments there are among the names of columns.

    >>> width_of(["relation", "arg0", "arg1", "explicit"])
    2
    """
    return sum(name.startswith("arg") for name in names)


def facts_schema(width: int) -> pa.Schema:
    """The columns of `facts`."""
    return pa.schema(
        [
            pa.field("relation", pa.string(), nullable=False),
            *(pa.field(name, pa.int64()) for name in arguments(width)),
            pa.field("explicit", pa.bool_(), nullable=False),
            pa.field("deleted", pa.bool_(), nullable=False),
            pa.field("version", pa.int64(), nullable=False),
        ]
    )


def changes_schema(width: int) -> pa.Schema:
    """The columns of `changes`; `explicit` is what the fact is, or was if it went."""
    return pa.schema(
        [
            pa.field("version", pa.int64(), nullable=False),
            pa.field("commit", pa.string(), nullable=False),
            pa.field("change", pa.string(), nullable=False),
            pa.field("relation", pa.string(), nullable=False),
            *(pa.field(name, pa.int64()) for name in arguments(width)),
            pa.field("explicit", pa.bool_(), nullable=False),
        ]
    )
