"""The folders and tables of a store, and the layout of a fact as a row.

    STORE/facts/    relation, arg0 … argN, explicit, deleted, version   its commits are the versions
    STORE/terms/    id, term, hash                                      append-only
    STORE/changes/  version, commit, change, relation, arg0 … argN, explicit
    STORE/rules/    program, position, name, rule
    STORE/cache/    columns for the embedded engine, rebuilt if missing
    STORE/chunks/   facts for updates on Spark, rebuilt if missing
    STORE/corollary-store.json   the marker: Corollary created the folders beside it

Arguments are term ids. The row of a fact with the highest `version` is current; with `deleted` it
is a tombstone. A triple has the relation `triples`, its subject, its property and its object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from corollary.errors import InvalidInput
from corollary.lang.syntax import TRIPLES_NAME

FORMAT: Final = 3  # the format written; a store with a higher one is refused
FACTS, TERMS, CHANGES, RULES = "facts", "terms", "changes", "rules"
CACHE, CHUNKS = "cache", "chunks"
TABLES = (FACTS, TERMS, CHANGES, RULES)
MARKER = "corollary-store.json"
TRIPLES: Final = TRIPLES_NAME
WIDTH: Final = 3  # the minimal number of argument columns
MODES = ("materialized", "hybrid")

# Values of `change`: the fact was inserted, deleted, changed from derived to explicit, or changed
# from explicit to derived.
INSERTED, DELETED, MADE_EXPLICIT, MADE_DERIVED = "inserted", "deleted", "explicit", "derived"

FORMATS = ("text", "arrow", "parquet", "nt", "rdfp")  # output formats of a diff
WHICH = ("all", "explicit", "derived")  # which facts a diff shows

_INT, _TEXT, _FLAG = pa.int64(), pa.string(), pa.bool_()


def _schema(fields: Mapping[str, pa.DataType]) -> pa.Schema:
    """A schema; only arguments and the names of rules may be null."""
    return pa.schema(
        pa.field(name, kind, nullable=name.startswith("arg") or name == "name")
        for name, kind in fields.items()
    )


TERMS_SCHEMA = _schema({"id": _INT, "term": _TEXT, "hash": _INT})
# `program` is a hash of its text.
RULES_SCHEMA = _schema({"program": _TEXT, "position": _INT, "name": _TEXT, "rule": _TEXT})


def check_mode(mode: str) -> None:
    """Fail unless stores have this mode."""
    if mode not in MODES:
        raise InvalidInput("E580", f"unknown mode '{mode}'", f"choose {' or '.join(MODES)}")


def arguments(width: int) -> list[str]:
    """The names of the argument columns.

    >>> arguments(2)
    ['arg0', 'arg1']
    """
    return [f"arg{number}" for number in range(width)]


def width_of(names: list[str]) -> int:
    """The number of argument columns among column names.

    >>> width_of(["relation", "arg0", "arg1", "explicit"])
    2
    """
    return sum(name.startswith("arg") for name in names)


def facts_schema(width: int) -> pa.Schema:
    """The schema of `facts`."""
    columns = dict.fromkeys(arguments(width), _INT)
    flags = {"explicit": _FLAG, "deleted": _FLAG}
    return _schema({"relation": _TEXT, **columns, **flags, "version": _INT})


def changes_schema(width: int) -> pa.Schema:
    """The schema of `changes`; `explicit` describes a deleted fact before its deletion."""
    columns = dict.fromkeys(arguments(width), _INT)
    kinds = {"version": _INT, "commit": _TEXT, "change": _TEXT, "relation": _TEXT}
    return _schema({**kinds, **columns, "explicit": _FLAG})
