"""Programs in the table `rules`: one row per rule, looked up by a hash of the text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from corollary.errors import InvalidInput, InvalidProgram, Source
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Rule
from corollary.store import parquet
from corollary.store.delta import Table, damage
from corollary.store.layout import RULES_SCHEMA

_PROGRAMS = 8  # parsed programs that a process remembers


def hash_of(program: Program) -> str:
    """The hash of the text of a program: its rules, constraints and axioms.

    >>> program = Program.parse("p(?x) :- q(?x) . p(1) .")
    >>> hash_of(program) == hash_of(program.without_facts())
    True
    >>> hash_of(program) == hash_of(program.with_axioms())
    False
    """
    return _hash(**rows_of(program))


def _hash(name: Iterable[str | None], rule: Iterable[str | None]) -> str:
    digest = hashlib.sha256()
    for label, text in zip(name, rule, strict=True):
        digest.update(f"{label or ''}\0{text}\0".encode())
    return digest.hexdigest()[:32]


def rows_of(program: Program) -> dict[str, list[str | None]]:
    """The statements as text, without prefixes, so that each row can be read alone."""
    printer = Printer(well_known=False)
    axioms = sorted((Rule(axiom, ()) for axiom in program.axioms), key=lambda rule: repr(rule.key))
    rules = (*program.rules, *program.constraints, *axioms)
    return {
        "name": [rule.name for rule in rules],
        "rule": [printer.rule(rule) for rule in rules],
    }


def write(table: Table, program: Program) -> str:
    """Add a program unless the table has it; returns its hash."""
    rows = rows_of(program)
    name = _hash(**rows)
    if rows["rule"] and not _find(table, name).num_rows:
        _refuse_unreadable(table, rows["rule"])
        count = len(rows["rule"])
        columns = {"program": [name] * count, "position": range(count), **rows}
        file = parquet.write(table, pa.table(columns, schema=RULES_SCHEMA), RULES_SCHEMA)
        table.commit([file], RULES_SCHEMA)
    return name


def _refuse_unreadable(table: Table, rules: Iterable[str | None]) -> None:
    """Reject rules, built from values, that the language cannot express as text."""
    try:
        _parse(_source(table, rules))
    except InvalidProgram as error:
        raise InvalidInput(
            "E507", f"a rule cannot be written as text: {error.message}", error.hint
        ) from None


def read(table: Table, name: str, statements: int) -> Program:
    """Read the program with a hash; `statements` counts its rules, constraints and axioms."""
    if not statements:
        return Program()
    rows = _find(table, name).sort_by("position")
    # Two writers may have added the same program.
    positions = rows["position"].to_pylist()
    rules = dict(zip(positions, rows["rule"].to_pylist(), strict=True))
    if len(rules) != statements:
        raise damage(
            table.folder,
            f"program {name} has {len(rules)} rules and axioms instead of {statements}",
        )
    names = dict(zip(positions, rows["name"].to_pylist(), strict=True))
    if _hash(names.values(), rules.values()) != name:
        raise damage(table.folder, f"program {name} has a different checksum")
    try:
        return _parse(_source(table, rules.values())).with_axioms()
    except InvalidProgram as error:
        raise damage(table.folder, f"program {name} cannot be read: {error.message}") from None


@lru_cache(_PROGRAMS)
def _parse(source: Source) -> Program:
    return Program.parse(source)


def _source(table: Table, rules: Iterable[str | None]) -> Source:
    return Source(str(table.folder), "\n".join(map(str, rules)))


def _find(table: Table, name: str) -> pa.Table:
    rows = parquet.read(table, table.files(), RULES_SCHEMA)
    return rows.filter(pc.equal(rows["program"], name))
