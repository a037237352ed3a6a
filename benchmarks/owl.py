"""`reasonable` as a peer: an OWL 2 RL reasoner in Rust, on the ontology instead of its rules.

Its rule set is another one, so only the rates of derivation are compared. `reason` gives Python
objects, which takes most of its time; here the conversion is stopped at its first term, so that
what is measured is the reasoning alone.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import tables
from benchmarks.lubm_data import property_
from benchmarks.measure import least, peak_bytes, timed
from benchmarks.report import Row
from corollary.core.dictionary import Ids
from corollary.lang.printer import Printer
from corollary.lang.stratify import Predicate

_STRINGS = {property_(n) for n in ("name", "emailAddress", "telephone", "researchInterest")}


def missing() -> str | None:
    """Why the peer cannot be measured, None if it can."""
    found = importlib.util.find_spec("reasonable")
    return None if found else "reasonable is not installed (pip install 'corollary[bench]')"


def write(path: Path, facts: Mapping[Predicate, Ids]) -> None:
    """Write facts as N-Triples."""
    written = Printer(well_known=False).term
    with path.open("w", encoding="utf-8") as out:
        for predicate, rows in facts.items():
            # A line with places for the numbers: subject and object, or the member of a class.
            last = '"%d"' if predicate in _STRINGS else "<http://example.org/%d>"
            if predicate.member_of is not None:
                last = written(predicate.member_of)
            assert predicate.property is not None, "only triples can be written"
            line = f"<http://example.org/%d> {written(predicate.property)} {last} .\n"
            out.writelines(line % tuple(row) for row in rows.tolist())


class _Stopped(Exception):
    """Raised in place of the first term."""


def _stop(*_: object, **__: object) -> None:
    raise _Stopped


def reasonable(ontology: str, path: str, folder: str, repeat: int = 1) -> Row:
    """A row for the closure of an ontology and tables."""
    module: Any = importlib.import_module("reasonable")
    # It takes N-Triples as Turtle, by the suffix.
    schema, data = Path(folder) / "ontology.ttl", Path(folder) / "data.ttl"
    schema.write_bytes(Path(ontology).read_bytes())
    write(data, tables.load(path))
    reasoner = module.PyReasoner()
    for file in (schema, data):
        reasoner.load_file(str(file))
    explicit, facts = len(set(reasoner.get_base_triples())), len(set(reasoner.reason()))

    def reason() -> None:
        with mock.patch.multiple("rdflib", URIRef=_stop, BNode=_stop, Literal=_stop):
            try:
                reasoner.reason_full()
            except _Stopped:
                return
        raise RuntimeError("the conversion was not stopped: the time would not be comparable")

    time = least(timed(reason)[1] for _ in range(repeat))
    return {
        "explicit": explicit,
        "facts": facts,
        "derived": facts - explicit,
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "derived_per_second": (facts - explicit) / time.seconds,
        "seconds_per_fact": time.seconds / facts,
        "peak_bytes": peak_bytes(),
    }
