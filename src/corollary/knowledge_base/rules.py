"""Rules by name: built-in rule sets, `.dl` files, programs, and several of them together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from corollary.lang.program import Program
from corollary.rdf.rulesets import rules

NO_RULES = "none"

Rules = str | Path | Program


def read_rules(given: Rules | Iterable[Rules]) -> Program:
    """The rules of rule sets (by name, or `none`), of `.dl` files and of programs, together.

    Facts among them are axioms.

    >>> len(read_rules(["rhodf", Program.parse("p(?x) :- q(?x) .")]).rules)
    7
    >>> len(read_rules("none"))
    0
    """
    if isinstance(given, Program):
        return given.with_axioms()
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".dl")):
        return Program.load(given).with_axioms()
    if isinstance(given, str):
        return Program() if given == NO_RULES else rules(given)
    program = Program()
    for one in given:
        found = read_rules(one)
        program = program | found if len(program) else found
    return program
