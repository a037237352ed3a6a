"""The tour: what `make demo` shows.

Each step prints the command or program that a user would write, then what it gives.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from pathlib import Path

from corollary.cli.main import main

CAMPUS = """\
@prefix : <http://example.org/campus#> .
% A teaching assistant is a person who tutors a course; tutors are persons, what they teach courses.
[?x, a, :TA]     :- [?x, a, :Person], [?x, :tutors, ?y], [?y, a, :Course] .
[?x, a, :Person] :- [?x, a, :TA] .
[?x, a, :Person] :- [?x, :tutors, ?y] .
[?y, a, :Course] :- [?x, :tutors, ?y] .
[:john, :tutors, :math] . [:john, :tutors, :phys] . [:peter, :tutors, :math] .
"""

NETWORK = """\
path(?x, ?y) :- edge(?x, ?y) .
path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
node(?x) :- edge(?x, ?y) .
node(?y) :- edge(?x, ?y) .
apart(?x, ?y) :- node(?x), node(?y), NOT path(?x, ?y), NOT path(?y, ?x), FILTER(?x < ?y) .
reach(?x, ?n) :- AGGREGATE(path(?x, ?y) ON ?x BIND count(?y) AS ?n) .
"""

CLOSURE = """\
path(?x, ?y) :- edge(?x, ?y) .
path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
"""

CHANGES = """\
@prefix : <http://example.org/campus#> .
delete [:john, :tutors, :math] ;      # Peter still tutors math, and John physics: nothing follows
commit ;
delete [:john, :tutors, :phys] ;
insert [:mary, :tutors, :art] ;
commit ;
remove rule [?x, a, :Person] :- [?x, a, :TA] . ;
remove rule [?x, a, :Person] :- [?x, :tutors, ?y] . ;
commit ;
"""

MISTAKES = """\
path(?x, ?z) :- path(?x, ?y), edge(?y, ?zz) .
win(?x) :- move(?x, ?y), NOT win(?y) .
path(1, 2, 3) .
"""


def demo() -> None:
    """Run the tour in a temporary folder."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="corollary-demo-") as folder, contextlib.chdir(folder):
        _step("Rules over triples: everything that follows is derived")
        _run("campus.dl", CAMPUS)
        _step("Plain relations from files, with negation, filters and aggregates")
        Path("edge.facts").write_text("a\tb\nb\tc\na\td\ne\tf\n", encoding="utf-8")
        _run("network.dl", NETWORK, "--facts", ".")
        _step("A random graph of 3,000 nodes and 30,000 edges: its closure in process")
        _command("generate", "dag", "--scale", "0.3", "--out", "graph", "--quiet")
        _run("closure.dl", CLOSURE, "--facts", "graph", "--out", "closure")
        _step("Changes of facts and rules: exactly what comes and goes, by commit")
        _apply("campus.dl", CHANGES)
        _step("Mistakes: all at once, each with its place and what to do")
        _run("mistakes.dl", MISTAKES)
        _step("The same program on Spark, which takes a few seconds to start")
        _run("network.dl", NETWORK, "--facts", ".", "--engine", "spark", "--out", "spark")
        print(Path("spark/reach.facts").read_text(encoding="utf-8").rstrip())
    spent = time.perf_counter() - started
    print(f"\nDone in {spent:.1f} s. Next: docs/language.md, docs/algorithms, corollary --help")


def _step(title: str) -> None:
    print(f"\n=== {title}", flush=True)


def _run(name: str, text: str, *arguments: str) -> None:
    Path(name).write_text(text, encoding="utf-8")
    print(text.rstrip())
    _command("run", name, *arguments)


def _apply(program: str, script: str) -> None:
    Path("changes.updates").write_text(script, encoding="utf-8")
    print(script.rstrip())
    _command("apply", program, "--updates", "changes.updates")


def _command(*arguments: str) -> None:
    print(" ".join(["$ corollary", *arguments]), flush=True)
    with contextlib.redirect_stderr(sys.stdout):  # messages stand where they belong
        main(arguments)


if __name__ == "__main__":
    demo()
