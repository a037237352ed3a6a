"""OWL 2 RL from files: load and close with Corollary, `reasonable` and `owlrl`.

LUBM of `--scale` universities: all three through Python, from N-Triples to the closure. `owlrl`
closes a part that takes seconds, and its time is scaled by the number of triples, which favors it,
because its time grows faster. Brick with six buildings: in full, including literals and shapes, and
compared with both fact by fact, up to the reasons listed in `owl` and `owlrl_peer`. Blank nodes are
replaced by IRIs, so they are equal for all. Then Datalog engines evaluate the same rules as
Corollary over the same triples (`datalog_peers`).
"""

from __future__ import annotations

import importlib
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import corollary as co
from benchmarks import datalog_peers, owl, owlrl_peer
from benchmarks.closing import shown
from benchmarks.isolate import isolated
from benchmarks.measure import least, peak_bytes, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.cli.main import main
from corollary.core.terms import term_of, text_of
from corollary.lang.syntax import TRIPLE, Atom

SUBSET = 3_000  # triples of LUBM, besides the ontology, that owlrl closes in seconds
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
        yield from datalog_peers.rows(case["case"], whole, folder, options)


def generated(scale: int, folder: Path) -> tuple[Path, Path]:
    """LUBM and its ontology in one file, and the part that `owlrl` closes."""
    data = folder / f"lubm-{scale}"
    if main(["generate", "lubm", "--scale", str(scale), "--out", str(data), "--quiet"]):
        raise RuntimeError(f"LUBM({scale}) was not generated")
    whole, part = folder / "lubm.nt", folder / "part.nt"
    _join(sorted(data.glob("*.nt")), whole)
    _cut(data / "univ-bench.nt", whole, part)
    return whole, part


def compared(
    case: Row, whole: Path, part: Path, folder: Path, options: Options, *, facts: bool
) -> Iterator[Row]:
    """A row for each reasoner; with `facts`, the closures are compared with Corollary's."""
    out = {name: folder / f"{name}.closure.nt" for name in ("ours", "reasonable", "owlrl")}
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
    for name, missing, measured, explained, arguments in (
        ("reasonable", owl.missing(), reasonable, owl.explained, {"path": str(whole)}),
        (
            "owlrl",
            owlrl_peer.missing(),
            owlrl_peer.measured,
            owlrl_peer.explained,
            {"path": str(part)},
        ),
    ):
        row = case | {"engine": name}
        if missing is not None:
            yield row | {"skipped": missing}
            continue
        target = str(out[name]) if facts else None
        found = isolated(measured, timeout=options.timeout, out=target, **arguments)
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
        if facts and out["ours"].exists():
            found |= differences(out["ours"], out[name], explained)
        yield row | found


def corollary(path: str, repeat: int, out: str | None = None, rules: str = "owl-rl") -> Row:
    """The first time in a process, including loading compiled code, and the minimum of others."""

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


def reasonable(path: str, out: str | None = None) -> Row:
    """From a file to a list of triples, as returned by its Python API; optionally to a file."""
    module: Any = importlib.import_module("reasonable")
    reasoner = module.PyReasoner()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.ttl"  # it takes N-Triples as Turtle, by the suffix
        data.write_bytes(Path(path).read_bytes())
        _, load = timed(lambda: reasoner.load_file(str(data)))
    triples, close = timed(reasoner.reason)
    peak = peak_bytes()
    if out is not None:
        terms = (map(owlrl_peer.from_rdflib, triple) for triple in triples)
        lines = [" ".join(map(text_of, triple)) + " .\n" for triple in terms]
        Path(out).write_text("".join(lines), encoding="utf-8")
    return {
        "facts": len(triples),
        "load_seconds": load.seconds,
        "seconds": load.seconds + close.seconds,
        "cpu_seconds": load.cpu_seconds + close.cpu_seconds,
        "peak_bytes": peak,
    }


def differences(
    ours: Path, theirs: Path, explained: Callable[[Atom, frozenset[Atom]], str | None]
) -> Row:
    """Count the facts that only one of the two derives, by reason; correct if each has one."""
    mine, others = _atoms(ours), _atoms(theirs)
    reasons = Counter(explained(fact, mine) or "without a reason" for fact in mine ^ others)
    return {"differ": dict(reasons.most_common()), "correct": "without a reason" not in reasons}


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
    "OWL 2 RL from files; peers: reasonable, owlrl, and under equal rules egglog and Soufflé",
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
            unit="seconds (hatched: estimated from a part)",
            estimated="measured_seconds",
            where=(("part", None),),
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
                Column("times", "× Corollary"),
                Column("first_seconds", "first in a process"),
                Column("times_first", "× Corollary"),
                Column("measured_seconds", "measured, then scaled"),
                Column("peak_bytes", "peak MB", 1e-6),
                "correct",
            ),
            where=(("part", None),),
        ),
        View(
            "Facts that only Corollary or only the peer derives, by reason",
            ("case", "engine", "differ"),
            where=(("part", None), ("correct", (True, False))),
        ),
        View(
            "The same rules over the same triples: seconds to close",
            (
                "case",
                "engine",
                "rules",
                Column("left_out", "rules omitted"),
                "explicit",
                "facts",
                "seconds",
                Column("times", "× Corollary"),
                Column("load_seconds", "read: s"),
                Column("peak_bytes", "peak MB", 1e-6),
                Column("correct", "same result"),
            ),
            where=(("part", "rules"),),
        ),
    ),
)
