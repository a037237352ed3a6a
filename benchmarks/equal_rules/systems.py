"""Rule systems over one folder of work: each reads the facts, closes them and writes the result.

`seconds` is the time from file to file. Systems with a library tell `load_seconds`, `close_seconds`
(in memory) and `write_seconds` apart; programs are run by the command that the row shows. Each
uses one thread if it can be told so.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import os
import resource
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.equal_rules import dialects
from benchmarks.equal_rules.work import Work, compared, read_rows, rows_of
from benchmarks.measure import Time, least, peak_bytes, timed
from benchmarks.report import Row
from corollary.cli.main import main
from corollary.core.dictionary import Ids

PARTS = ("load", "close", "write")


@dataclass(frozen=True)
class System:
    """A peer: why it cannot take part (None if it can), and how it is measured."""

    name: str
    missing: Callable[[Work], str | None]
    measured: Callable[..., Row]


def corollary(folder: str, repeat: int) -> Row:
    """`corollary run`, in a process that has loaded compiled code."""
    path = Path(folder)
    work = Work.read(path)
    (path / "corollary.dl").write_text(dialects.corollary(work), encoding="utf-8")
    out = path / "corollary.out"
    command = ["run", str(path / "corollary.dl"), "--facts", folder, "--out", str(out), "--json"]

    def run() -> Row:
        shutil.rmtree(out, ignore_errors=True)
        with redirect_stdout(io.StringIO()) as told:
            status = main([*command, "--quiet"])
        if status:
            raise RuntimeError(f"exit status {status}")
        report: Row = json.loads(told.getvalue())
        return report

    run()
    times, closes = [], []
    for _ in range(repeat):
        report, time = timed(run)
        times.append(time)
        closes.append(report["seconds"]["materialize"])
    closure = read_rows(out / f"{work.output}.facts", work.arities()[work.output])
    return _described(compared(closure, path), times) | {"close_seconds": min(closes)}


def clingo(folder: str, repeat: int) -> Row:
    """Grounding a program without negation computes its only answer set."""
    module: Any = importlib.import_module("clingo")
    path = Path(folder)
    work = Work.read(path)
    program = dialects.clingo(work)

    def load() -> Any:
        control = module.Control(["--warn=none"])
        lines = (path / f"{work.input}.facts").read_text("ascii").splitlines()
        facts = (f"{work.input}({line.replace(chr(9), ',')})." for line in lines)
        control.add("base", [], "\n".join([program, *facts]))
        return control

    out, arity = path / "clingo.tsv", work.arities()[work.output]

    def write(control: Any) -> None:
        atoms = control.symbolic_atoms.by_signature(work.output, arity)
        _save(([term.number for term in atom.symbol.arguments] for atom in atoms), out)

    return _library(path, repeat, (load, _ground, write), lambda: read_rows(out, arity))


def _ground(control: Any) -> None:
    control.ground([("base", [])])


def nemo(folder: str, repeat: int) -> Row:
    """Nemo reads the facts while it reasons."""
    module: Any = importlib.import_module("nmo_python")
    path = Path(folder)
    work = Work.read(path)
    program = dialects.nemo(work, str(path.resolve() / f"{work.input}.facts"))
    output = module.NemoOutputManager(str(path / "nemo"), overwrite=True)

    steps = (
        lambda: module.NemoEngine(module.load_string(program)),
        lambda engine: engine.reason(),
        lambda engine: engine.write_result(work.output, output),
    )
    out, arity = path / "nemo" / "closure.tsv", work.arities()[work.output]
    return _library(path, repeat, steps, lambda: read_rows(out, arity))


def egglog(folder: str, repeat: int) -> Row:
    """`egglog` indexes the facts while it reads them."""
    os.environ["RAYON_NUM_THREADS"] = "1"
    module: Any = importlib.import_module("egglog.bindings")
    path = Path(folder)
    work = Work.read(path)
    out = path / "egglog.csv"

    def run(graph: Any, text: str) -> None:
        graph.run_program(*graph.parse_program(text))

    def load() -> Any:
        graph = module.EGraph(fact_directory=folder)
        run(graph, dialects.egglog(work))
        run(graph, f'(input {work.input} "{work.input}.facts")')
        return graph

    steps = (
        load,
        lambda graph: run(graph, "(run-schedule (saturate (run rules)))"),
        lambda graph: run(graph, f'(print-function {work.output} {2**31} :file "{out}" :mode csv)'),
    )
    arity = work.arities()[work.output]
    return _library(
        path, repeat, steps, lambda: read_rows(out, arity, ",", skip=("relation",), after=("text",))
    )


def kuzu(folder: str, repeat: int) -> Row:
    """Kùzu's recursive pattern: a shortest path between two nodes, which are never the same."""
    module: Any = importlib.import_module("kuzu")
    path = Path(folder)
    work = Work.read(path)
    edges = read_rows(path / f"{work.input}.facts", 2)
    _save(np.unique(edges).reshape(-1, 1).tolist(), path / "nodes.csv")
    _save(edges.tolist(), path / "edges.csv", ",")
    out, depth = path / "kuzu.csv", len(edges) + 1

    def load() -> Any:
        shutil.rmtree(path / "kuzu", ignore_errors=True)
        (path / "kuzu").unlink(missing_ok=True)
        connection = module.Connection(module.Database(str(path / "kuzu")), num_threads=1)
        connection.execute("CREATE NODE TABLE n(id INT64 PRIMARY KEY)")
        connection.execute("CREATE REL TABLE e(FROM n TO n)")
        connection.execute(f'COPY n FROM "{path / "nodes.csv"}" (header=false)')
        connection.execute(f'COPY e FROM "{path / "edges.csv"}" (header=false)')
        connection.execute(f"CALL var_length_extend_max_depth={depth}")
        return connection

    def close(connection: Any) -> None:
        connection.execute(
            f"COPY (MATCH (a:n)-[:e* SHORTEST 1..{depth}]->(b:n) RETURN a.id, b.id) "
            f'TO "{out}" (header=false)'
        )

    steps = (load, close, lambda connection: None)  # the query writes what it finds
    return _library(path, repeat, steps, lambda: read_rows(out, 2, ","))


def pyshacl(folder: str, repeat: int) -> Row:
    """SHACL rules, run until nothing is new."""
    rdflib: Any = importlib.import_module("rdflib")
    shacl_rules: Any = importlib.import_module("pyshacl").shacl_rules
    path = Path(folder)
    work = Work.read(path)
    _ntriples(path, work)
    shapes = rdflib.Graph().parse(data=dialects.shacl(work), format="turtle")
    out, arity = path / "pyshacl.nt", work.arities()[work.output]

    def load() -> Any:
        return rdflib.Graph().parse(path / "triples.nt", format="nt")

    closed: dict[int, Any] = {}

    def close(graph: Any) -> None:
        closed[0] = shacl_rules(graph, shacl_graph=shapes, advanced=True, iterate_rules=True)

    def write(_: Any) -> None:
        closed[0].serialize(out, format="nt", encoding="utf-8")

    return _library(path, repeat, (load, close, write), lambda: _numbers_of(out, arity))


@dataclass(frozen=True)
class Command:
    """A program on the path: its files, the command in their folder, and the file it writes."""

    program: str
    files: Callable[[Path, Work], None]
    arguments: Callable[[Work], Sequence[str]]
    rows: Callable[[Path, Work], Ids]
    cannot: Callable[[Work], str | None] = lambda work: None
    classes: str = ""  # that Java must find

    def missing(self, work: Work) -> str | None:
        """Why it cannot run here, with the command that would."""
        if (reason := self.cannot(work)) is not None:
            return reason
        if shutil.which(self.program) is None:
            return f"{self.program} is not on the path; it would run: {self.shown(work)}"
        if self.classes and self.classes not in os.environ.get("CLASSPATH", "").lower():
            return f"{self.classes} is not in CLASSPATH; it would run: {self.shown(work)}"
        return None

    def shown(self, work: Work) -> str:
        """The command as a person types it in the folder of the work."""
        return shlex.join([self.program, *self.arguments(work)])

    def measured(self, folder: str, repeat: int) -> Row:
        """Run it in the folder."""
        path = Path(folder)
        work = Work.read(path)
        self.files(path, work)
        command = [self.program, *self.arguments(work)]

        def run() -> None:
            with (path / "stdout").open("wb") as out:
                subprocess.run(command, cwd=path, stdout=out, stderr=subprocess.PIPE, check=True)

        times = []
        for _ in range(repeat):
            before = _children()
            _, time = timed(run)
            times.append(Time(time.seconds, _children() - before))
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        found = _described(compared(self.rows(path, work), path), times)
        return found | {"peak_bytes": peak, "command": self.shown(work)}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _ntriples(path: Path, work: Work) -> None:
    """The facts as N-Triples, with numbers as IRIs."""
    with (path / "triples.nt").open("w", encoding="ascii") as out:
        for row in read_rows(path / f"{work.input}.facts", 3).tolist():
            out.write(" ".join(f"<{dialects.NUMBER}{number}>" for number in row) + " .\n")


def _numbers_of(path: Path, arity: int) -> Ids:
    """The numbers of N-Triples whose terms are all numbers."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        terms = line.split()[:arity]
        if all(term.startswith(f"<{dialects.NUMBER}") for term in terms):
            found.append([int(term[len(dialects.NUMBER) + 1 : -1]) for term in terms])
    return rows_of(found, arity)


def _text(name: str, dialect: Callable[[Work], str], path: Path, work: Work) -> None:
    (path / name).write_text(dialect(work) + "\n", encoding="utf-8")


def _vlog_files(path: Path, work: Work) -> None:
    _text("rules.vlog", dialects.vlog, path, work)
    columns = (path / f"{work.input}.facts").read_text("ascii").replace("\t", ",")
    (path / "given.csv").write_text(columns, encoding="ascii")
    (path / "edb.conf").write_text(
        f"EDB0_predname={work.input}_given\nEDB0_type=INMEMORY\nEDB0_param0=.\nEDB0_param1=given\n",
        encoding="ascii",
    )


def _jena_files(path: Path, work: Work) -> None:
    _text("rules.jena", dialects.jena, path, work)
    _ntriples(path, work)


def _output(name: str, delimiter: str = "\t") -> Callable[[Path, Work], Ids]:
    def rows(path: Path, work: Work) -> Ids:
        file = path / name.format(output=work.output)
        return read_rows(file, work.arities()[work.output], delimiter)

    return rows


def _vlog_rows(path: Path, work: Work) -> Ids:
    text = (path / "vlog" / work.output).read_text("utf-8")
    lines = (line.replace("<", "").replace(">", "").split(",") for line in text.splitlines())
    arity = work.arities()[work.output]
    return rows_of(([int(number) for number in line[-arity:]] for line in lines), arity)


def _closures(work: Work) -> str | None:
    rules = sorted(len(atoms) for _, atoms in work.rules)
    linear = rules == [1, 2] and work.input != work.output
    return None if linear else "its queries have one recursive pattern, not rules"


def _triples(work: Work) -> str | None:
    return None if dialects.only_triples(work) else "its rules are about triples only"


COMMANDS = {
    "souffle": Command(
        "souffle",
        partial(_text, "rules.souffle", dialects.souffle),
        lambda work: ["-j1", "-F.", "-D.", "rules.souffle"],
        _output("{output}.csv"),
    ),
    "nemo (nmo)": Command(
        "nmo",
        partial(_text, "rules.rls", lambda work: dialects.nemo(work, f"{work.input}.facts")),
        lambda work: ["--import-dir=.", "--export-dir=.", "--overwrite-results", "rules.rls"],
        _output("closure.tsv"),
    ),
    "vlog": Command(
        "vlog",
        _vlog_files,
        lambda work: [
            "mat",
            "--edb=edb.conf",
            "--rules=rules.vlog",
            "--storemat_path=vlog",
            "--storemat_format=csv",
            "--decompressmat=1",
        ],
        _vlog_rows,
    ),
    # Needs CLASSPATH="$JENA_HOME/lib/*".
    "jena": Command(
        "java",
        _jena_files,
        lambda work: ["jena.RuleMap", "-il", "NT", "-ol", "NT", "rules.jena", "triples.nt"],
        lambda path, work: _numbers_of(path / "stdout", 3),
        cannot=_triples,
        classes="jena",
    ),
}


def _needs(module: str, package: str, also: Callable[[Work], str | None] | None = None) -> Any:
    """Whether a Python package is missing, or cannot express the work."""

    def missing(work: Work) -> str | None:
        if also is not None and (reason := also(work)) is not None:
            return reason
        found = importlib.util.find_spec(module) is not None
        return None if found else f"not installed (pip install {package})"

    return missing


def command_by_name(folder: str, repeat: int, name: str) -> Row:
    """A command, named so that it can be called in another process."""
    return COMMANDS[name].measured(folder, repeat)


SYSTEMS: Sequence[System] = (
    System("egglog", _needs("egglog", "egglog"), egglog),
    System("clingo", _needs("clingo", "clingo"), clingo),
    System("nemo", _needs("nmo_python", "nemo-python"), nemo),
    System("kuzu", _needs("kuzu", "kuzu", _closures), kuzu),
    System("pyshacl rules", _needs("pyshacl", "pyshacl", _triples), pyshacl),
    *(System(name, command.missing, command_by_name) for name, command in COMMANDS.items()),
)


def _library(
    path: Path,
    repeat: int,
    steps: tuple[Callable[[], Any], Callable[[Any], None], Callable[[Any], None]],
    result: Callable[[], Ids],
) -> Row:
    """Time the steps of a library: load, close, write. Reading the result back is not timed."""
    load, *others = steps
    times: list[list[Time]] = []
    for _ in range(repeat):
        loaded, first = timed(load)
        times.append([first, *(timed(partial(step, loaded))[1] for step in others)])
        del loaded
    whole = [Time(*map(sum, zip(*parts, strict=True))) for parts in times]
    least_parts = [least(found).seconds for found in zip(*times, strict=True)]
    parts = {f"{part}_seconds": time for part, time in zip(PARTS, least_parts, strict=True)}
    row = _described({}, whole)
    return row | parts | compared(result(), path)


def _described(found: Row, times: Sequence[Time]) -> Row:
    time = least(times)
    return found | {
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "peak_bytes": peak_bytes(),
    }


def _save(rows: Iterable[Sequence[int]], path: Path, delimiter: str = "\t") -> None:
    with path.open("w", encoding="ascii") as out:
        out.writelines(delimiter.join(map(str, row)) + "\n" for row in rows)
