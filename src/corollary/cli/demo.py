"""The tour: what `make demo` shows.

Each step prints the command that a user would type, and what it gives, with the time it took. The
data are those of one university of LUBM, with its ontology; everything happens in a temporary
folder.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from corollary.cli.main import main

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
DEPARTMENT = "http://www.Department0.University0.edu"

PREFIXES = f"PREFIX ub: <{UB}> PREFIX d: <{DEPARTMENT}/>"
STAFF = f"""{PREFIXES}
SELECT ?department (COUNT(?x) AS ?employees) WHERE {{
  ?x a ub:Employee ; ub:memberOf ?department
}} GROUP BY ?department ORDER BY DESC(?employees) LIMIT 5
"""
ANN = f"{PREFIXES} SELECT ?class WHERE {{ d:Ann a ?class }} ORDER BY ?class"

NEW = f"""\
@prefix ub: <{UB}> .
@prefix d: <{DEPARTMENT}/> .
d:Ann ub:headOf <{DEPARTMENT}> ; ub:teacherOf d:Logic .
d:Bob ub:takesCourse d:Logic ; ub:advisor d:Ann .
"""
GONE = f"<{DEPARTMENT}/Ann> <{UB}headOf> <{DEPARTMENT}> .\n"
AXIOM = f"<{UB}headOf> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <{UB}worksFor> .\n"
RULE = f"""\
@prefix ub: <{UB}> .
[classmates] [?x, ub:classmate, ?y] :-
    [?x, ub:takesCourse, ?c], [?y, ub:takesCourse, ?c],
    [?c, a, ub:GraduateCourse], FILTER(?x != ?y) .
"""

MISTAKES = """\
path(?x, ?z) :- path(?x, ?y), edge(?y, ?zz) .
win(?x) :- move(?x, ?y), NOT win(?y) .
path(1, 2, 3) .
"""

NEXT = """\
Where to go from here:
  docs/getting-started.md    the same with your own data, in five minutes
  docs/tutorials             for users of Datalog, and for ontology engineers
  docs/rdflib.md, spark.md   for users of rdflib, and of Spark
  corollary bench            every figure, measured on your machine
  corollary --help           all commands
"""


def demo() -> int:
    """Run the tour; the exit status is 1 if a step fails that should not."""
    tour = Tour()
    with tempfile.TemporaryDirectory(prefix="corollary-demo-") as folder, contextlib.chdir(folder):
        for step in (_build, _ask, _change, _look_back, _on_demand, _datalog):
            step(tour)
    spent = time.perf_counter() - tour.started
    print(f"\n{tour.bold(f'Done in {spent:.0f} s.')}\n\n{NEXT}", end="")
    return 1 if tour.failed else 0


class Tour:
    """Prints titles, files and commands, and runs the commands."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.failed = False
        self._number = 0
        colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._paint: Callable[[str, str], str] = (
            (lambda code, text: f"\033[{code}m{text}\033[0m") if colours else lambda _, text: text
        )

    def bold(self, text: str) -> str:
        """Text that stands out on a terminal."""
        return self._paint("1", text)

    def title(self, text: str) -> None:
        """Begin a step."""
        self._number += 1
        print(f"\n{self._paint('1;36', f'{self._number}. {text}')}", flush=True)

    def file(self, name: str, text: str) -> None:
        """Write a file and show it."""
        Path(name).write_text(text, encoding="utf-8")
        print(self._paint("2", f"# {name}"))
        print(self._paint("2", text.rstrip()), flush=True)

    def run(self, *arguments: str, fails: bool = False) -> None:
        """Run a command; `fails` where its failure is what is shown."""
        print(f"{self._paint('32', '$')} {self.bold(_shown(arguments))}", flush=True)
        started = time.perf_counter()
        with contextlib.redirect_stderr(sys.stdout):  # messages stand where they belong
            status = main(arguments)
        print(self._paint("2", f"({time.perf_counter() - started:.2f} s)"), flush=True)
        self.failed |= bool(status) != fails


def _shown(arguments: tuple[str, ...]) -> str:
    return " ".join(["corollary", *(_quoted(argument) for argument in arguments)])


def _quoted(argument: str) -> str:
    plain = argument and not set(argument) & set(" \n'\"{}[]<>?|&;")
    return argument if plain else "'" + argument.strip() + "'"


def _build(tour: Tour) -> None:
    tour.title("A university: its triples and its OWL ontology")
    tour.run("generate", "lubm", "--scale", "1", "--out", "lubm", "--quiet")
    tour.title("The pipeline on Spark: parse, encode, close the schema, materialize, commit")
    tour.run("build", "univ.store", "lubm", "--rules", "owl-rl")
    tour.run("info", "univ.store")


def _ask(tour: Tour) -> None:
    tour.title("Ask: who works where? Employees are not in the data, they follow")
    tour.run("query", "univ.store", STAFF)
    tour.title("Explain: a smallest proof, with the rules of the standard")
    tour.run("explain", "univ.store", f"[<{DEPARTMENT}/FullProfessor0>, a, <{UB}Employee>]")


def _change(tour: Tour) -> None:
    tour.title("Insert: what follows from four triples, and nothing else, is derived")
    tour.file("new.ttl", NEW)
    tour.run("update", "univ.store", "--insert", "new.ttl", "--changes", "-")
    tour.run("query", "univ.store", ANN)
    tour.title("Delete: Ann heads the department no longer")
    tour.file("gone.nt", GONE)
    tour.run("update", "univ.store", "--delete", "gone.nt", "--changes", "-")
    tour.title("Change an axiom: heads need not work for what they head")
    tour.file("axiom.nt", AXIOM)
    tour.run("update", "univ.store", "--delete", "axiom.nt", "--changes", "-")
    tour.title("Add a rule of your own")
    tour.file("classmates.dl", RULE)
    tour.run("update", "univ.store", "--add-rules", "classmates.dl")


def _look_back(tour: Tour) -> None:
    tour.title("Every change is a version: compare them, ask them")
    tour.run("log", "univ.store")
    tour.run("diff", "univ.store", "2", "3")
    tour.run("query", "univ.store", ANN, "--at-version", "2")


def _on_demand(tour: Tour) -> None:
    tour.title("Hybrid: only the schema is closed, answers are derived when they are asked for")
    tour.run("build", "hybrid.store", "lubm", "--mode", "hybrid", "--engine", "columnar", "--quiet")
    tour.run("query", "hybrid.store", STAFF)


def _datalog(tour: Tour) -> None:
    tour.title("Not only triples: Datalog over any relations, and mistakes told all at once")
    tour.file("mistakes.dl", MISTAKES)
    tour.run("run", "mistakes.dl", fails=True)


if __name__ == "__main__":
    sys.exit(demo())
