"""Loading, closing and updating LUBM under ρdf: Fig. 5 and Table 2 of Urbani et al. (2013).

The six updates are those of the paper: one triple and 16,000 triples without consequences, 8,000
e-mail addresses, a subproperty axiom that is deleted (and two that are inserted), one and two
universities. The seconds of the paper are for LUBM(1000) on a machine with two Intel E5620 and
SSDs. Its counting algorithm needs rules without recursion: `counting` runs over ρdf written out for
the schema, one rule per axiom, so that update 4 adds and removes rules.

Updates are timed twice: parsed and encoded, as changes are that a program makes, and from files of
N-Triples, as the paper times them. After each addition and each removal, a hash of the facts about
data is compared with those of the other algorithms.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import corollary as co
from benchmarks.isolate import isolated
from benchmarks.maintaining import Agreement, digest
from benchmarks.measure import least, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.algorithms import reasoner
from corollary.algorithms.maintain import Maintainer
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.generate import DATASETS
from corollary.generate.univ_bench import UB
from corollary.generate.write import write
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, TRIPLE
from corollary.rdf.formats import read
from corollary.reasoning.specialization import SpecializedReasoner

# Seconds: addition, then removal by DRed and by counting.
PAPER = {
    1: (0.117, 2902.7, 0.117),
    2: (8.2, 2049.6, 25.7),
    3: (3.7, 2121.9, 25.4),
    4: (31.8, 2132.2, 51.0),
    5: (16.8, 2196.0, 74.6),
    6: (30.5, 3830.2, 135.8),
}
PAPER_TRIPLES_PER_SECOND = 227_000  # of input, closure of LUBM(8000)
ALGORITHMS = ("auto", "dred", "counting", "dred-c", "bf", "fp")
_EMPTY, _EMAILS = 16_000, 8_000
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_SUB = f"<{_RDFS}subPropertyOf>"
# ρdf for one axiom.
WRITTEN_OUT = {
    IRI(f"{_RDFS}subClassOf"): "[?x, a, {1}] :- [?x, a, {0}] .",
    IRI(f"{_RDFS}subPropertyOf"): "[?x, {1}, ?y] :- [?x, {0}, ?y] .",
    IRI(f"{_RDFS}domain"): "[?x, a, {1}] :- [?x, {0}, ?y] .",
    IRI(f"{_RDFS}range"): "[?y, a, {1}] :- [?x, {0}, ?y] .",
}


def run(options: Options) -> Iterator[Row]:
    """The stages at each size, then the updates at the last size with each algorithm."""
    for scale in options.scales:
        row: Row = {"case": "stages", "universities": scale}
        yield row | isolated(stages, timeout=options.timeout, scale=scale, repeat=options.repeat)
    yield {
        "case": "stages in the paper",
        "universities": 8_000,
        "triples_per_second": PAPER_TRIPLES_PER_SECOND,
    }
    agreement = Agreement()
    for algorithm in ALGORITHMS:
        found = isolated(
            updates,
            timeout=options.timeout,
            scale=options.scales[-1],
            algorithm=algorithm,
            repeat=options.repeat,
        )
        row = {"case": "updates", "universities": options.scales[-1], "algorithm": algorithm}
        if "failed" in found:
            yield row | found
            continue
        for update in found["rows"]:
            hashes = (update["hash_added"], update["hash_removed"])
            same = agreement.holds(update["update"], hashes)
            yield row | update | {"correct": update["correct"] and same}
    for number, (added, dred, counting) in PAPER.items():
        yield {
            "case": "updates in the paper",
            "update": number,
            "add_seconds": added,
            "remove_seconds_dred": dred,
            "remove_seconds_counting": counting,
        }


def stages(scale: int, repeat: int) -> Row:
    """Seconds of reading and numbering terms, of sorted relations, and of the closure."""
    rules = co.rules("rhodf")
    with tempfile.TemporaryDirectory() as folder:
        write(DATASETS["lubm"], Path(folder), scale=scale, seed=0)
        engine = ColumnarEngine(Dictionary())
        read(f"{folder}/univ*.nt", engine.dictionary)  # loads compiled code
        engine = ColumnarEngine(Dictionary())
        triples, encode = timed(lambda: read(f"{folder}/*.nt", engine.dictionary))
    facts, index = timed(lambda: engine.facts(triples.tables(engine.dictionary)))
    SpecializedReasoner(rules, facts, engine)
    spent = least(
        timed(lambda: SpecializedReasoner(rules, facts, engine))[1] for _ in range(repeat)
    )
    size = len(SpecializedReasoner(rules, facts, engine).facts)
    return {
        "explicit": len(facts),
        "facts": size,
        "encode_seconds": encode.seconds,
        "index_seconds": index.seconds,
        "seconds": spent.seconds,
        "triples_per_second": len(facts) / spent.seconds,
    }


Outcome = tuple[Changes[ColumnarFacts], float, float]


class Kept:
    """LUBM under ρdf, kept up to date by one algorithm."""

    def __init__(self, algorithm: str, explicit: list[Path]) -> None:
        self.engine = ColumnarEngine(Dictionary())
        self.is_written_out = algorithm == "counting"
        options: reasoner.Options[ColumnarFacts] = reasoner.Options(algorithm=algorithm)
        start = self.read(explicit)
        self.reasoner: SpecializedReasoner[ColumnarFacts] | Maintainer[ColumnarFacts]
        if self.is_written_out:
            self.reasoner = Maintainer(self._rules(start), start, self.engine, options)
        else:
            self.reasoner = SpecializedReasoner(co.rules("rhodf"), start, self.engine, options)

    def read(self, files: list[Path]) -> ColumnarFacts:
        """Parse files, number their terms and sort the facts."""
        if not files:
            return self.engine.facts({})
        return self.engine.facts(read(files, self.engine.dictionary).tables(self.engine.dictionary))

    def update(self, added: list[Path], removed: list[Path]) -> Outcome:
        """The changes; milliseconds to read the files, and to update."""
        (inserted, deleted), reading = timed(lambda: (self.read(added), self.read(removed)))
        changes = Changes(inserted, deleted)
        if self.is_written_out:
            rules = (self._rules(inserted).rules, self._rules(deleted).rules)
            changes = Changes(inserted, deleted, *rules)
        done, time = timed(lambda: self.reasoner.update(changes))
        return done, reading.seconds * 1e3, time.seconds * 1e3

    def _rules(self, explicit: ColumnarFacts) -> Program:
        return written_out(explicit, self.engine.dictionary)

    def digest(self) -> str:
        """A hash of the facts about data."""
        return digest(about_data(self.reasoner.facts))[:12]


def about_data(facts: ColumnarFacts) -> ColumnarFacts:
    """Without axioms: rules that are written out derive none."""
    return facts.without([p for p in facts.predicates() if p.property in WRITTEN_OUT])


def written_out(explicit: ColumnarFacts, dictionary: Dictionary) -> Program:
    """ρdf for the axioms among facts: one rule each, and no recursion."""
    printer = Printer()
    return Program.parse(
        "\n".join(
            template.format(*map(printer.term, dictionary.terms(row)))
            for axiom, template in WRITTEN_OUT.items()
            for row in explicit.rows(Predicate(TRIPLE, axiom)).tolist()
        )
    )


def updates(scale: int, algorithm: str, repeat: int) -> Row:
    """Minimum milliseconds of each update and its reverse."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write(DATASETS["lubm"], place, scale=scale + 2, seed=0)
        files = sorted(place.glob("*.nt"))
        new = [place / f"University{scale + at}.nt" for at in range(2)]
        kept = Kept(algorithm, [file for file in files if file not in new])
        before = kept.digest()
        head_of, works_for = f"<{UB}headOf>", f"<{UB}worksFor>"
        other = (
            f"{head_of} {_SUB} <{UB}responsibleOf> .\n<{UB}responsibleOf> {_SUB} <{UB}Manager> ."
        )
        cases = {
            1: (_file(place / "one.nt", _lines(1, "note")),) * 2,
            2: (_file(place / "notes.nt", _lines(_EMPTY, "note")),) * 2,
            3: (_file(place / "mails.nt", _lines(_EMAILS, "emailAddress")),) * 2,
            4: (
                _file(place / "axioms.nt", other),
                _file(place / "axiom.nt", f"{head_of} {_SUB} {works_for} ."),
            ),
            5: (new[:1],) * 2,
            6: (new,) * 2,
        }
        rows = [_measured(kept, number, *files, repeat) for number, files in cases.items()]
    return {"rows": [row | {"correct": kept.digest() == before} for row in rows]}


def _measured(kept: Kept, number: int, added: list[Path], removed: list[Path], repeat: int) -> Row:
    row: Row = {"update": number}
    times: dict[str, list[float]] = {"add": [], "add_file": [], "remove": [], "remove_file": []}
    for _ in range(repeat + 1):
        done, reading, spent = kept.update(added, [])
        times["add"].append(spent)
        times["add_file"].append(reading + spent)
        row |= {"inserted": len(about_data(done.inserted)), "hash_added": kept.digest()}
        if removed is not added:
            kept.update([], added)
        done, reading, spent = kept.update([], removed)
        times["remove"].append(spent)
        times["remove_file"].append(reading + spent)
        row |= {"deleted": len(about_data(done.deleted)), "hash_removed": kept.digest()}
        if removed is not added:
            kept.update(removed, [])
    return row | {f"{name}_milliseconds": min(spent[1:]) for name, spent in times.items()}


def _lines(number: int, name: str) -> str:
    """Triples with new subjects."""
    return "\n".join(
        f'<http://example.org/new{at}> <{UB}{name}> "value {at}" .' for at in range(number)
    )


def _file(path: Path, text: str) -> list[Path]:
    path.write_text(text + "\n", encoding="utf-8")
    return [path]


BENCHMARK = Benchmark(
    "dynamite",
    "stages and the six updates of LUBM under rhodf (Urbani et al. 2013, Fig. 5 and Table 2)",
    unit="universities",
    scales=(1, 2, 5, 10),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "Stages of LUBM under ρdf",
            "explicit",
            kind="lines",
            where=(("case", "stages"),),
            ys=(
                ("encode_seconds", "read and number terms"),
                ("index_seconds", "sort"),
                ("seconds", "close"),
            ),
            unit="seconds",
            x_unit="explicit triples",
        ),
        Plot(
            "Additions",
            "update",
            "add_milliseconds",
            "algorithm",
            unit="milliseconds",
            x_unit="update",
        ),
        Plot(
            "Removals",
            "update",
            "remove_milliseconds",
            "algorithm",
            unit="milliseconds",
            x_unit="update",
        ),
    ),
    views=(
        View(
            "Fig. 5: seconds of each stage, and triples of input closed a second",
            (
                "universities",
                "explicit",
                "facts",
                Column("encode_seconds", "read and number"),
                Column("index_seconds", "sort"),
                Column("seconds", "close"),
                Column("triples_per_second", "triples/s"),
            ),
            where=(("case", ("stages", "stages in the paper")),),
        ),
        View(
            "Table 2, additions: milliseconds, parsed and encoded",
            ("update", Column("inserted", "facts gained")),
            across="algorithm",
            values=("add_milliseconds",),
            where=(("case", "updates"),),
        ),
        View(
            "Table 2, additions: milliseconds, from files of N-Triples",
            ("update", Column("inserted", "facts gained")),
            across="algorithm",
            values=(Column("add_file_milliseconds", new=True),),
            where=(("case", "updates"),),
        ),
        View(
            "Table 2, removals: milliseconds, parsed and encoded",
            ("update", Column("deleted", "facts lost")),
            across="algorithm",
            values=("remove_milliseconds",),
            where=(("case", "updates"),),
        ),
        View(
            "Table 2, removals: milliseconds, from files of N-Triples",
            ("update", Column("deleted", "facts lost")),
            across="algorithm",
            values=(Column("remove_file_milliseconds", new=True),),
            where=(("case", "updates"),),
        ),
        View(
            "Facts after each update: a hash, after the addition and after the removal",
            ("update",),
            across="algorithm",
            values=(
                Column("hash_added", "added", new=True),
                Column("hash_removed", "removed", new=True),
            ),
            where=(("case", "updates"),),
        ),
        View(
            "Table 2 of the paper: seconds",
            (
                "update",
                Column("add_seconds", "add"),
                Column("remove_seconds_dred", "remove by DRed"),
                Column("remove_seconds_counting", "remove by counting"),
            ),
            where=(("case", "updates in the paper"),),
        ),
    ),
    paper="two quad-core Xeon E5620, 24 GB, an SSD; LUBM(8000) closed, LUBM(1000) updated",
)
