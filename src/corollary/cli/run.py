"""`corollary run`: facts in, materialization out."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from typing import Any

from corollary.files.facts import read_facts, write_facts
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.reference import materialize
from corollary.lang.syntax import TRIPLE, Atom


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="materialize a Datalog program",
        description="Derive everything that follows from a program and its facts.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "program", metavar="PROGRAM.dl", help="rules and facts in the rule language"
    )
    parser.add_argument(
        "--facts",
        metavar="DIR",
        help="folder with <relation>.facts (tab-separated) or .csv files, and *.nt for triples;"
        " .gz and .zst too",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="folder for the materialization, one file for each relation; without it, facts"
        " are printed",
    )
    parser.add_argument(
        "--format",
        choices=("facts", "csv"),
        default="facts",
        help="tab- or comma-separated output files",
    )
    parser.add_argument(
        "--engine", choices=("reference",), default="reference", help="what evaluates the rules"
    )
    parser.add_argument("--json", action="store_true", help="print statistics as JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Materialize, write the facts, report."""
    started = time.perf_counter()
    program = Program.load(options.program)
    tables = read_facts(options.facts, program) if options.facts else []
    explicit = {*program.facts, *(fact for table in tables for fact in table.atoms())}
    read = time.perf_counter()
    facts = materialize(program, explicit)
    materialized = time.perf_counter()
    if options.out:
        write_facts(options.out, program, facts, suffix=f".{options.format}")
    elif not options.json:
        print_facts(program, facts)
    seconds = {
        "read": read - started,
        "materialize": materialized - read,
        "write": time.perf_counter() - materialized,
    }
    report = {
        "version": None,
        "explicit": len(explicit),
        "facts": len(facts),
        "inserted": len(facts),
        "deleted": 0,
        "rounds": None,
        "derivations": {},
        "seconds": {phase: round(spent, 6) for phase, spent in seconds.items()},
        "algorithm": "naive",
        "reason": "the reference engine evaluates naively",
        "engine": options.engine,
        "complete": True,
        "relations": relation_counts(program, facts),
    }
    if options.json:
        print(json.dumps(report))
    else:
        total = sum(seconds.values())
        derived = len(facts) - len(explicit)
        print(f"{len(facts):,} facts, {derived:,} derived, in {total:.2f} s", file=sys.stderr)


def print_facts(program: Program, facts: set[Atom]) -> None:
    """Print facts as the rule language writes them, in the order of their text."""
    printer = Printer(program.prefixes)
    for line in sorted(printer.atom(fact) for fact in facts):
        print(f"{line} .")


def relation_counts(program: Program, facts: set[Atom]) -> dict[str, int]:
    """The number of facts of each relation; triples under `triples`."""
    counts = Counter(fact.relation for fact in facts)
    shown = {relation: counts[relation] for relation in sorted(program.arities)}
    return shown | ({"triples": counts[TRIPLE]} if program.has_triples else {})
