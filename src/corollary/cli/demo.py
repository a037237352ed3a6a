"""The guided tour of `make demo`.

Each step prints the command that a user would type, its output and its running time. The data are
one university of LUBM with its ontology; all files are in a temporary folder.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
import tempfile
import time
from pathlib import Path

from corollary.cli.bar import painted
from corollary.cli.main import main

ENGINE = "spark"  # of the first build
UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
DEPARTMENT = "http://www.Department0.University0.edu"
_COLORS = {"+ ": "32", "- ": "31"}  # insertions are green, deletions red

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
  docs/getting-started.md  the same with your own data, in five minutes
  docs/tutorials           for users of rdflib, Spark and Datalog, and for
                           ontology engineers
  docs/howto               delete data, change an axiom, travel in time, …
  corollary --help         all commands
  corollary bench peers    how fast, and who is faster, on your machine
"""


def demo(*, serve: bool = False) -> int:
    """Run the tour; the exit status is 1 if a step fails unexpectedly."""
    tour = Tour()
    with tempfile.TemporaryDirectory(prefix="corollary-demo-") as folder, contextlib.chdir(folder):
        for step in (_build, _ask, _change, _look_back, _on_demand, _datalog):
            step(tour)
        if serve:
            _serve(tour)
    spent = time.perf_counter() - tour.started
    print(f"\n{tour.paint('1', f'Done in {spent:.0f} s.')}\n\n{NEXT}", end="")
    return 1 if tour.failed else 0


class Tour:
    """Prints titles, files and commands, and runs the commands."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.failed = False
        self._number = 0

    def paint(self, code: str, text: str) -> str:
        """Color a text, if colors are enabled."""
        return painted(code, text, sys.stdout)

    def title(self, text: str) -> None:
        """Begin a step."""
        self._number += 1
        print(f"\n{self.paint('1;36', f'{self._number}. {text}')}", flush=True)

    def file(self, name: str, text: str) -> None:
        """Write a file and show it."""
        Path(name).write_text(text, encoding="utf-8")
        print(self.paint("2", f"# {name}"))
        print(self.paint("2", text.rstrip()), flush=True)

    def run(self, *arguments: str, fails: bool = False, long: bool = False) -> None:
        """Run a command; `fails` marks a step that demonstrates a failure.

        A `long` command shows its progress; the output of others is shown in color at their end.
        """
        command = shlex.join(["corollary", *map(str.strip, arguments)])
        print(f"{self.paint('32', '$')} {self.paint('1', command)}", flush=True)
        started = time.perf_counter()
        buffer = io.BytesIO()
        output = sys.stdout if long else io.TextIOWrapper(buffer, "utf-8", write_through=True)
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            status = main(arguments)  # in process, to keep messages in order
        for line in buffer.getvalue().decode().splitlines():
            print(self.paint(_COLORS[line[:2]], line) if line[:2] in _COLORS else line)
        print(self.paint("2", f"({time.perf_counter() - started:.2f} s)"), flush=True)
        self.failed |= bool(status) != fails


def _build(tour: Tour) -> None:
    tour.title("A university: its triples and its OWL ontology")
    tour.run("generate", "lubm", "--scale", "1", "--out", "lubm", long=True)
    tour.title("The pipeline on Spark: parse, encode, close the schema, materialize, commit")
    tour.run("build", "univ.store", "lubm", "--engine", ENGINE, long=True)
    tour.run("info", "univ.store")


def _ask(tour: Tour) -> None:
    tour.title("Ask: who works where? Employees are not in the data, they follow")
    tour.run("query", "univ.store", STAFF)
    tour.title("Explain: a smallest proof, with the rules of the standard")
    tour.run("explain", "univ.store", f"[<{DEPARTMENT}/FullProfessor0>, a, <{UB}Employee>]")


def _change(tour: Tour) -> None:
    tour.title("Insert: what follows from four triples, and nothing else, is derived")
    tour.file("new.ttl", NEW)
    tour.run("update", "univ.store", "--insert", "new.ttl", "--changes", "-", "--quiet")
    tour.run("query", "univ.store", ANN)
    tour.title("Delete: Ann heads the department no longer")
    tour.file("gone.nt", GONE)
    tour.run("update", "univ.store", "--delete", "gone.nt", "--changes", "-", "--quiet")
    tour.title("Change an axiom: heads need not work for what they head")
    tour.file("axiom.nt", AXIOM)
    tour.run("update", "univ.store", "--delete", "axiom.nt", "--changes", "-", "--quiet")
    tour.title("Add a rule of your own")
    tour.file("classmates.dl", RULE)
    tour.run("update", "univ.store", "--add-rules", "classmates.dl")


def _look_back(tour: Tour) -> None:
    tour.title("Time travel: every change is a version, which can be compared and queried")
    tour.run("log", "univ.store")
    tour.run("diff", "univ.store", "2", "3")
    tour.run("query", "univ.store", ANN, "--at-version", "2")


def _on_demand(tour: Tour) -> None:
    tour.title("Hybrid: only the schema is closed, answers are derived on demand")
    tour.run("build", "hybrid.store", "lubm", "--mode", "hybrid")
    tour.run("query", "hybrid.store", STAFF)


def _datalog(tour: Tour) -> None:
    tour.title("Not only triples: Datalog over any relations, and mistakes reported all at once")
    tour.file("mistakes.dl", MISTAKES)
    tour.run("run", "mistakes.dl", fails=True)


def _serve(tour: Tour) -> None:
    tour.title("The page: look at proofs, changes and contradictions; Ctrl-C ends it")
    tour.run("serve", "univ.store", "--open", "--quiet", long=True)


if __name__ == "__main__":
    sys.exit(demo(serve="--serve" in sys.argv))
