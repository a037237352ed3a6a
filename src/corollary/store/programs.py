"""Programs in the table `rules`: one row a rule, found by a hash of the text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from corollary.errors import InvalidInput, InvalidProgram, Source
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Rule
from corollary.store import parquet
from corollary.store.delta import Table, damage
from corollary.store.layout import RULES_SCHEMA


def hash_of(program: Program) -> str:
    """The hash of the text of a program: its rules, constraints and axioms.

    >>> program = Program.parse("p(?x) :- q(?x) . p(1) .")
    >>> hash_of(program) == hash_of(program.without_facts())
    True
    >>> hash_of(program) == hash_of(program.with_axioms())
    False
    """
    rows = rows_of(program)
    return _hash(rows["name"], rows["rule"])


def _hash(names: Iterable[str | None], rules: Iterable[str | None]) -> str:
    digest = hashlib.sha256()
    for name, rule in zip(names, rules, strict=True):
        digest.update(f"{name or ''}\0{rule}\0".encode())
    return digest.hexdigest()[:32]


def rows_of(program: Program) -> dict[str, list[str | None]]:
    """The statements as text; IRIs are written out, so that a row stands alone."""
    printer = Printer(well_known=False)
    axioms = sorted((Rule(axiom, ()) for axiom in program.axioms), key=lambda rule: repr(rule.key))
    rules = (*program.rules, *program.constraints, *axioms)
    return {
        "name": [rule.name for rule in rules],
        "rule": [printer.rule(rule) for rule in rules],
    }


def write(table: Table, program: Program) -> str:
    """Add a program unless it is there; returns its hash."""
    name = hash_of(program)
    rows = rows_of(program)
    if rows["rule"] and not _find(table, name).num_rows:
        _refuse_unreadable(rows["rule"])
        count = len(rows["rule"])
        found = pa.table(
            {"program": [name] * count, "position": range(count), **rows}, schema=RULES_SCHEMA
        )
        file = parquet.write(table, found, RULES_SCHEMA)
        table.commit([file], RULES_SCHEMA)
    return name


def _refuse_unreadable(rules: list[str | None]) -> None:
    """Rules made of values may be none that the language can write."""
    try:
        Program.parse("\n".join(map(str, rules)))
    except InvalidProgram as error:
        raise InvalidInput(
            "E507", f"a rule cannot be written as text: {error.message}", error.hint
        ) from None


def read(table: Table, name: str, statements: int) -> Program:
    """The program of a hash, with so many rules, constraints and axioms."""
    if not statements:
        return Program()
    rows = _find(table, name).sort_by("position")
    # Two writers may have added the same program.
    first = dict(zip(rows["position"].to_pylist(), rows["rule"].to_pylist(), strict=True))
    text = "\n".join(first.values())
    if len(first) != statements:
        raise damage(
            table.folder,
            f"program {name} has {len(first)} rules and axioms instead of {statements}",
        )
    names = dict(zip(rows["position"].to_pylist(), rows["name"].to_pylist(), strict=True))
    if _hash(names.values(), first.values()) != name:
        raise damage(table.folder, f"program {name} has another checksum")
    try:
        return Program.parse(Source(f"{table.folder}", text)).with_axioms()
    except InvalidProgram as error:
        raise damage(table.folder, f"program {name} cannot be read: {error.message}") from None


def _find(table: Table, name: str) -> pa.Table:
    rows = parquet.read(table, table.files(), RULES_SCHEMA)
    return rows.filter(pc.equal(rows["program"], name))
