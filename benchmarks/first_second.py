"""What a person waits for: processor time of small commands, from nothing and after `warm`."""

from __future__ import annotations

import gzip
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View

_CLOSURE = "path(?x, ?y) :- edge(?x, ?y) .\npath(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .\n"
_TWO_RULES = _CLOSURE + "edge(1, 2) .\nedge(2, 3) .\n"
_ASP = "path(X,Y) :- edge(X,Y). path(X,Z) :- path(X,Y), edge(Y,Z). edge(1,2). edge(2,3).\n"
_SOUFFLE = """.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.output path(IO=stdout)
path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). edge(1, 2). edge(2, 3).
"""
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_TRIPLES = f"""<urn:A> <{_RDFS}subClassOf> <urn:B> .
<urn:B> <{_RDFS}subClassOf> <urn:C> .
<urn:p> {_TYPE} <http://www.w3.org/2002/07/owl#TransitiveProperty> .
<urn:x> {_TYPE} <urn:A> .
"""
_REASONABLE = (
    "import sys, reasonable; r = reasonable.PyReasoner(); r.load_file(sys.argv[1]); r.reason()"
)
_OWLRL = (
    "import sys, rdflib, owlrl; g = rdflib.Graph().parse(sys.argv[1]);"
    " owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(g)"
)
_DEBIAN = "graphs/debian-bookworm-depends.tsv.gz"


def run(options: Options) -> Iterator[Row]:
    """Each case with an empty cache of compiled loops, then with the one that it leaves."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, command, limits in _cases(folder, options.data):
            cache = tempfile.mkdtemp(dir=folder)
            environment = {"NUMBA_CACHE_DIR": cache}
            cold = _cpu_seconds(command, folder, environment, 1, options.timeout)
            warm = _cpu_seconds(command, folder, environment, options.repeat, options.timeout)
            yield _row(case, "corollary", cold, warm, limits)
        for case, peer, command in _peers(folder):
            first = _cpu_seconds(command, folder, {}, 1, options.timeout)
            again = _cpu_seconds(command, folder, {}, options.repeat, options.timeout)
            yield _row(case, peer, first, again, None)


def _row(
    case: str,
    system: str,
    cold: float | None,
    warm: float | None,
    limits: tuple[float | None, float] | None,
) -> Row:
    row: Row = {"case": case, "system": system}
    if cold is None or warm is None:
        return row | {"failed": "the command failed or took too long"}
    row |= {"cold_cpu_seconds": round(cold, 3), "warm_cpu_seconds": round(warm, 3)}
    if limits is not None:
        row |= {"cold_goal": limits[0], "warm_goal": limits[1]}
    return row


def _cases(folder: Path, data: Path) -> Iterator[tuple[str, list[str], tuple[float | None, float]]]:
    command = [sys.executable, "-m", "corollary.cli.main"]
    (folder / "two.dl").write_text(_TWO_RULES)
    for name in ("four.nt", "four.ttl"):  # `reasonable` reads Turtle only
        (folder / name).write_text(_TRIPLES)
    yield "run, two rules", [*command, "run", "two.dl"], (1.0, 0.35)
    build = ["build", "--engine", "columnar", "--rules", "owl-rl"]
    yield "build, four triples", [*command, *build, "store", "four.nt"], (2.0, 0.7)
    subprocess.run(
        [*command, *build, "built", "four.nt"], cwd=folder, capture_output=True, check=True
    )
    query = ["query", "built", "SELECT * { ?s a ?o }"]
    yield "query, small store", [*command, *query], (None, 0.5)
    if (data / _DEBIAN).exists():
        (folder / "facts").mkdir()
        with gzip.open(data / _DEBIAN) as source, (folder / "facts/edge.facts").open("wb") as file:
            shutil.copyfileobj(source, file)
        (folder / "closure.dl").write_text(_CLOSURE)
        closure = ["run", "closure.dl", "--facts", "facts", "--out", "out"]
        yield "run, closure of Debian's dependencies", [*command, *closure], (None, 2.0)


def _peers(folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """The same small work by the peers that are installed."""
    (folder / "two.lp").write_text(_ASP)
    (folder / "two.souffle").write_text(_SOUFFLE)
    if shutil.which("clingo"):
        yield "run, two rules", "clingo", ["clingo", "two.lp", "--outf=3"]
    if shutil.which("souffle"):
        yield "run, two rules", "Soufflé, interpreted", ["souffle", "two.souffle"]
        yield "run, two rules", "Soufflé, compiled", ["souffle", "-c", "two.souffle"]
    for module, script in (("reasonable", _REASONABLE), ("owlrl", _OWLRL)):
        if importlib.util.find_spec(module) is not None:
            yield "build, four triples", module, [sys.executable, "-c", script, "four.ttl"]


def _cpu_seconds(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    repeat: int,
    timeout: float,
) -> float | None:
    """The least processor time of a command in a process of its own; None if it fails."""
    # As for a person: modules are compiled to bytecode once.
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    best = None
    for _ in range(repeat):
        shutil.rmtree(folder / "store", ignore_errors=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            subprocess.run(
                command,
                cwd=folder,
                env={**inherited, "PYTHONPYCACHEPREFIX": str(folder / "bytecode"), **environment},
                capture_output=True,
                check=True,
                timeout=timeout,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = spent if best is None else min(best, spent)
    return best


BENCHMARK = Benchmark(
    "first-second",
    "processor time of small commands, cold and warm",
    unit="runs",
    scales=(1,),
    small=(1,),
    run=run,
    views=(
        View(
            "The first second",
            (
                "case",
                "system",
                Column("cold_cpu_seconds", "cold: s"),
                Column("warm_cpu_seconds", "warm: s"),
                Column("cold_goal", "goal, cold"),
                Column("warm_goal", "goal, warm"),
            ),
        ),
    ),
)
