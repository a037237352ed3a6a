"""The guided tour of `make demo`.

Each step shows one thing: the command that a user would type, and its output, which fits a screen
and is the same every time; times are not shown until the end. The data are one university of LUBM
with its ontology and four triples about two people; all files are in a temporary folder.
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

ENGINE = "spark"  # of the last build
UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
_COLORS = {"+ ": "32", "- ": "31"}  # insertions are green, deletions red

UB_PREFIX = f"@prefix ub: <{UB}> ."
PREFIXES = f"""\
{UB_PREFIX}
@prefix d: <http://www.Department0.University0.edu/> .
@prefix edu: <http://www.> ."""
SPARQL_PREFIXES = PREFIXES.replace("@prefix", "PREFIX").replace("> .", ">")

PEOPLE = f"""\
{PREFIXES}
d:Ann ub:headOf edu:Department0.University0.edu ; ub:teacherOf d:Logic .
d:Eve ub:headOf edu:Department0.University0.edu ; ub:takesCourse d:Logic .
ub:Course <http://www.w3.org/2002/07/owl#disjointWith> ub:Person .
"""
STAFF = f"""\
{SPARQL_PREFIXES}
SELECT ?department (COUNT(?x) AS ?employees) WHERE {{
  ?x a ub:Employee ; ub:memberOf ?department
}} GROUP BY ?department ORDER BY DESC(?employees) ?department LIMIT 5
"""
HEADS = f"""\
{SPARQL_PREFIXES}
SELECT ?employee WHERE {{
  ?employee a ub:Employee ; ub:headOf edu:Department0.University0.edu
}} ORDER BY ?employee
"""
AXIOM = f"""\
{UB_PREFIX}
ub:headOf <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> ub:worksFor .
"""
MISTAKE = f"""\
{PREFIXES}
d:Logic ub:advisor d:Ann .
"""
RULE = f"""\
{UB_PREFIX}
[same-department] [?x, ub:sharesOfficeWith, ?y] :-
    [?x, ub:headOf, ?department], [?y, ub:headOf, ?department], FILTER(?x != ?y) .
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
        for step in (_build, _explain, _axiom, _look_back, _what_if, _rule, _on_demand, _spark):
            step(tour)
        if serve:
            _serve(tour)
    spent = time.perf_counter() - tour.started
    print(f"\n{NEXT}", end="")
    print(tour.paint("2", f"({spent:.0f} s)"), file=sys.stderr)
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

    def query(self, store: str, name: str, *arguments: str) -> None:
        """Answer the query in a file."""
        self.run("query", store, name, *arguments, "--quiet")

    def run(self, *arguments: str, long: bool = False) -> None:
        """Run a command; the output of a `long` one is shown while it runs."""
        print(
            f"{self.paint('32', '$')} {self.paint('1', shlex.join(['corollary', *arguments]))}",
            flush=True,
        )
        buffer = io.BytesIO()
        output = sys.stdout if long else io.TextIOWrapper(buffer, "utf-8", write_through=True)
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            status = main(arguments)  # in process, to keep messages in order
        for line in buffer.getvalue().decode().splitlines():
            print(self.paint(_COLORS[line[:2]], line) if line[:2] in _COLORS else line)
        sys.stdout.flush()
        self.failed |= bool(status)


def _build(tour: Tour) -> None:
    tour.title("Derive what follows from 101,792 triples with their ontology, and two people")
    tour.file("people.ttl", PEOPLE)
    tour.file("staff.rq", STAFF)
    tour.run("generate", "lubm", "--scale", "1", "--out", "lubm", "--quiet")
    tour.run("build", "univ.store", "lubm", "people.ttl", "--rules", "owl-rl", "--quiet")
    tour.query("univ.store", "staff.rq")


def _explain(tour: Tour) -> None:
    tour.title("Ask why: a smallest proof, by the rules of the standard")
    tour.run("explain", "univ.store", "[d:Eve, a, ub:Person]", "--quiet")


def _axiom(tour: Tour) -> None:
    tour.title("Change an axiom, and see who is no longer an employee")
    print(
        "Heads need not work for what they head. Ann stays, since she teaches; Eve was a person as"
    )
    print("an employee and an employee as a person, and such circles fall as a whole.")
    tour.file("axiom.ttl", AXIOM)
    tour.run("update", "univ.store", "--delete", "axiom.ttl", "--quiet")
    tour.run("diff", "univ.store", "1", "2", "--quiet")


def _look_back(tour: Tour) -> None:
    tour.title("Every change is a version: ask an older one, or undo it")
    tour.file("heads.rq", HEADS)
    tour.query("univ.store", "heads.rq", "--at-version", "1")
    tour.query("univ.store", "heads.rq")
    tour.run("revert", "univ.store", "2", "--quiet")
    tour.query("univ.store", "heads.rq")


def _what_if(tour: Tour) -> None:
    tour.title(
        "Try a change: the contradiction it would cause, with its proof; nothing is committed"
    )
    tour.file("mistake.ttl", MISTAKE)
    tour.run("update", "univ.store", "--insert", "mistake.ttl", "--dry-run", "--quiet")


def _rule(tour: Tour) -> None:
    tour.title("Rules change like facts: add one of your own to a store that is already there")
    tour.file("office.dl", RULE)
    tour.run("update", "univ.store", "--add-rules", "office.dl", "--quiet")
    tour.run("diff", "univ.store", "3", "4", "--quiet")


def _on_demand(tour: Tour) -> None:
    tour.title("Hybrid: store what is given, derive answers on demand; they are those of step 1")
    build = ("build", "hybrid.store", "lubm", "people.ttl", "--rules", "owl-rl")
    tour.run(*build, "--mode", "hybrid", "--quiet")
    tour.query("hybrid.store", "staff.rq")


def _spark(tour: Tour) -> None:
    tour.title("The same on Spark, from a laptop to a cluster, in the same kind of store")
    build = ("build", "spark.store", "lubm", "people.ttl", "--rules", "owl-rl")
    tour.run(*build, "--engine", ENGINE, "--quiet")
    tour.query("spark.store", "staff.rq")


def _serve(tour: Tour) -> None:
    tour.title("The page: look at proofs, changes and contradictions; Ctrl-C ends it")
    tour.run("serve", "univ.store", "--open", "--quiet", long=True)


if __name__ == "__main__":
    sys.exit(demo(serve="--serve" in sys.argv))
