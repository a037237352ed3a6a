"""OWL 2 RL from files, as people use it: load and close, beside `reasonable` and `owlrl`.

LUBM of `--scale` universities: all three through Python, from N-Triples to the closure; `owlrl` on
so much of it as takes seconds, its time scaled by the number of triples, which is kind to it, as
its time grows faster than that. Brick with six buildings: in full, literals and shapes included,
and compared with `owlrl` fact by fact, up to the reasons that `owlrl_peer` lists. Blank nodes are
given names, so that they are the same for all.
"""

from __future__ import annotations

import importlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import corollary as co
from benchmarks import owl, owlrl_peer
from benchmarks.closing import shown
from benchmarks.isolate import isolated
from benchmarks.measure import least, peak_bytes, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.cli.main import main
from corollary.core.terms import term_of
from corollary.lang.syntax import TRIPLE, Atom

SUBSET = 3_000  # triples of LUBM that owlrl closes in some seconds, beside the ontology
_TERM = re.compile(r'"(?:[^"\\]|\\.)*"(?:@[^ ]+|\^\^<[^>]*>)?|<[^>]*>|_:[^ ]+')


def run(options: Options) -> Iterator[Row]:
    """LUBM of each size, then Brick."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for scale in options.scales:
            whole, part = generated(scale, folder)
            case = {"case": f"LUBM({scale})"}
            yield from compared(case, whole, part, folder, options, facts=False)
        brick = options.data / "brick"
        if not brick.is_dir():
            yield {"case": "Brick", "skipped": f"no {brick}"}
            return
        whole = folder / "brick.nt"
        _named([brick / "Brick-1.3.ttl", *sorted((brick / "buildings").glob("*.ttl"))], whole)
        case = {"case": "Brick and six buildings"}
        yield from compared(case, whole, whole, folder, options, facts=True)


def generated(scale: int, folder: Path) -> tuple[Path, Path]:
    """LUBM and its ontology in one file, and so much of it as `owlrl` closes in seconds."""
    main(["generate", "lubm", "--scale", str(scale), "--out", str(folder / "lubm"), "--quiet"])
    whole, part = folder / "lubm.nt", folder / "part.nt"
    _join(sorted((folder / "lubm").glob("*.nt")), whole)
    _cut(folder / "lubm" / "univ-bench.nt", whole, part)
    return whole, part


def compared(
    case: Row, whole: Path, part: Path, folder: Path, options: Options, *, facts: bool
) -> Iterator[Row]:
    """A row for each reasoner; with `facts`, the closure is compared with that of `owlrl`."""
    out = {name: folder / f"{name}.closure.nt" for name in ("ours", "owlrl")}
    for file in out.values():
        file.unlink(missing_ok=True)
    ours = isolated(
        corollary,
        timeout=options.timeout,
        path=str(whole),
        repeat=options.repeat,
        out=str(out["ours"]) if facts else None,
    )
    yield case | {"engine": "corollary"} | shown(ours)
    for name, missing, measured, arguments in (
        ("reasonable", owl.missing(), reasonable, {"path": str(whole), "folder": str(folder)}),
        (
            "owlrl",
            owlrl_peer.missing(),
            owlrl_peer.measured,
            {"path": str(part), "out": str(out["owlrl"]) if facts else None},
        ),
    ):
        row = case | {"engine": name}
        if missing is not None:
            yield row | {"skipped": missing}
            continue
        found = isolated(measured, timeout=options.timeout, **arguments)
        if "seconds" not in found:
            if "stopped" in str(found.get("failed")) and "seconds" in ours:
                found["times_at_least"] = options.timeout / ours["seconds"]
            yield row | found
            continue
        if part is not whole and name == "owlrl":
            found["measured_seconds"] = found["seconds"]
            found["seconds"] *= ours["explicit"] / found["explicit"]
        if "seconds" in ours:
            found["times"] = found["seconds"] / ours["seconds"]
            found["times_first"] = found["seconds"] / ours["first_seconds"]
            scaled = found["seconds"] / found.get("measured_seconds", found["seconds"])
            found["times_cpu"] = scaled * found["cpu_seconds"] / ours["cpu_seconds"]
        if facts and name == "owlrl":
            found |= differences(out["ours"], out["owlrl"])
        yield row | found


def corollary(path: str, repeat: int, out: str | None = None, rules: str = "owl-rl") -> Row:
    """The first time in a process, which also loads what is compiled, and the least of others."""

    def closed() -> co.KnowledgeBase:
        kb = co.KnowledgeBase(co.rules(rules))
        kb.load(path)
        return kb

    kb, first = timed(closed)
    table = kb.facts("[?s, ?p, ?o]")
    explicit, facts = pc.sum(table["explicit"]).as_py(), len(table)
    if out is not None:
        _write(table, Path(out))
    properties = pc.value_counts(table["predicate"]).to_pylist()
    del kb, table
    time = least(timed(closed)[1] for _ in range(repeat))
    return {
        "explicit": explicit,
        "facts": facts,
        "first_seconds": first.seconds,
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "peak_bytes": peak_bytes(),
        "counts": {found["values"]: found["counts"] for found in properties},
    }


def reasonable(path: str, folder: str) -> Row:
    """From a file to a list of triples, as its Python API gives them."""
    module: Any = importlib.import_module("reasonable")
    data = Path(folder) / "reasonable.ttl"  # it takes N-Triples as Turtle, by the suffix
    data.write_bytes(Path(path).read_bytes())
    reasoner = module.PyReasoner()
    _, load = timed(lambda: reasoner.load_file(str(data)))
    found, close = timed(reasoner.reason)
    return {
        "facts": len(found),
        "load_seconds": load.seconds,
        "seconds": load.seconds + close.seconds,
        "cpu_seconds": load.cpu_seconds + close.cpu_seconds,
        "peak_bytes": peak_bytes(),
    }


def differences(ours: Path, theirs: Path) -> Row:
    """How many facts only one of the two has, by reason; right if each has one."""
    mine, others = _atoms(ours), _atoms(theirs)
    reasons = Counter(
        owlrl_peer.explained(fact, mine) or "without a reason" for fact in mine ^ others
    )
    return {"differ": dict(reasons), "correct": "without a reason" not in reasons}


def _atoms(path: Path) -> frozenset[Atom]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(Atom(TRIPLE, tuple(map(term_of, _TERM.findall(line)))) for line in lines)


def _write(table: pa.Table, path: Path) -> None:
    columns = table.select(["subject", "predicate", "object"])
    rows = zip(*(column.to_pylist() for column in columns.columns), strict=True)
    path.write_text("".join(f"{s} {p} {o} .\n" for s, p, o in rows), encoding="utf-8")


def _join(files: Iterable[Path], path: Path) -> None:
    with path.open("wb") as out:
        for file in files:
            out.write(file.read_bytes())


def _cut(ontology: Path, whole: Path, path: Path) -> None:
    with whole.open(encoding="utf-8") as lines:
        some = [line for _, line in zip(range(SUBSET), lines, strict=False)]
    path.write_text(ontology.read_text("utf-8") + "".join(some), encoding="utf-8")


def _named(files: Iterable[Path], path: Path) -> None:
    """Files as N-Triples, with IRIs for blank nodes."""
    ox: Any = importlib.import_module("pyoxigraph")
    found: dict[str, None] = {}
    for number, file in enumerate(files):
        for quad in ox.parse(path=str(file)):
            terms = (quad.subject, quad.predicate, quad.object)
            texts = (
                f"<urn:blank:{number}:{t.value}>" if isinstance(t, ox.BlankNode) else str(t)
                for t in terms
            )
            found[" ".join(texts) + " .\n"] = None
    path.write_text("".join(found), encoding="utf-8")


BENCHMARK = Benchmark(
    "reasoners",
    "OWL 2 RL from files: load and close, beside reasonable and owlrl",
    unit="universities",
    scales=(1, 10),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "OWL 2 RL from files: load and close",
            "case",
            "seconds",
            "engine",
            unit="seconds (owlrl on LUBM: scaled)",
        ),
    ),
    views=(
        View(
            "Seconds from N-Triples to the closure",
            (
                "case",
                "engine",
                "facts",
                "seconds",
                Column("times", "times ours"),
                Column("first_seconds", "first in a process"),
                Column("times_first", "times ours"),
                Column("measured_seconds", "measured, then scaled"),
                Column("peak_bytes", "peak MB", 1e-6),
                "correct",
            ),
        ),
        View(
            "Facts that only one of Corollary and owlrl has, by reason",
            ("case", "differ"),
            where=(("engine", "owlrl"), ("correct", (True, False))),
        ),
    ),
)
