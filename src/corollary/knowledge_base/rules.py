"""Rules by name: built-in rule sets, `.dl` and `.srl` files, programs, and combinations of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from corollary.errors import require_type
from corollary.lang.program import PROGRAM_SUFFIXES, Program
from corollary.rdf.rulesets import rules

NO_RULES = "none"

Rules = str | Path | Program


def read_rules(source: Rules | Iterable[Rules]) -> Program:
    """Combine the rules of rule sets (by name, or `none`), of `.dl` and `.srl` files and of
    programs.

    Facts among them are axioms.

    >>> len(read_rules(["rhodf", Program.parse("p(?x) :- q(?x) .")]).rules)
    7
    >>> len(read_rules("none"))
    0
    """
    if isinstance(source, Program):
        return source.with_axioms()
    if isinstance(source, Path) or (isinstance(source, str) and source.endswith(PROGRAM_SUFFIXES)):
        return Program.load(source).with_axioms()
    if isinstance(source, str):
        return Program() if source == NO_RULES else rules(source)
    require_type(source, Iterable, "rules", "a rule set such as 'owl-rl', a .dl file, or a program")
    program = Program()
    for one in source:
        found = read_rules(one)
        program = program | found if program else found
    return program
