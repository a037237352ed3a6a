"""`reasonable` as a peer: an OWL 2 RL reasoner in Rust, applied to the ontology.

It has different rules, so only derivation rates are compared. `reason` spends most of its time on
creating Python objects; here the conversion stops at the first term, so only reasoning is measured.
`explained` gives the reasons for differences between the closures.
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
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.printer import Printer
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, TYPE, Atom, Literal

_STRINGS = {property_(n) for n in ("name", "emailAddress", "telephone", "researchInterest")}

_OWL, _RDFS = (WELL_KNOWN_PREFIXES[name] for name in ("owl", "rdfs"))
_SAME, _THING, _NOTHING = (IRI(_OWL + name) for name in ("sameAs", "Thing", "Nothing"))
_AXIOMATIC = (IRI(_OWL + "AnnotationProperty"), IRI(_RDFS + "Datatype"))
_SUBCLASS, _SUBPROPERTY = IRI(_RDFS + "subClassOf"), IRI(_RDFS + "subPropertyOf")
_EQUIVALENT = (IRI(_OWL + "equivalentClass"), IRI(_OWL + "equivalentProperty"))
_DOMAIN_RANGE = (IRI(_RDFS + "domain"), IRI(_RDFS + "range"))


def missing() -> str | None:
    """Why the peer cannot be measured, None if it can."""
    found = importlib.util.find_spec("reasonable")
    return None if found else "reasonable is not installed (pip install 'corollary[bench]')"


def explained(fact: Atom, ours: frozenset[Atom]) -> str | None:
    """The reason why only one of the two derives a fact; None if unknown.

    >>> from corollary.lang.syntax import TRIPLE
    >>> explained(Atom(TRIPLE, (IRI("a"), TYPE, _THING)), frozenset())
    'every subject is an owl:Thing, which no rule of OWL 2 RL says'
    """
    subject, property_, object_ = fact.constants()
    if fact not in ours:
        thing = property_ == TYPE and object_ == _THING
        return "every subject is an owl:Thing, which no rule of OWL 2 RL says" if thing else None
    if property_ == _SAME and subject == object_:
        return "eq-ref"
    if isinstance(subject, Literal):
        return "dt-type2 and others: triples whose subject is a literal"
    if property_ == TYPE and object_ in _AXIOMATIC:
        return "prp-ap and dt-type1: axiomatic triples"
    if property_ in (_SUBCLASS, _SUBPROPERTY, *_EQUIVALENT) and subject == object_:
        return "scm-cls, scm-op and scm-dp: reflexive triples"
    if property_ == _SUBCLASS and (object_ == _THING or subject == _NOTHING):
        return "scm-cls: owl:Thing and owl:Nothing"
    if property_ in (_SUBPROPERTY, *_EQUIVALENT):
        return "scm-eqc, scm-eqp and scm-spo"
    if property_ in _DOMAIN_RANGE:
        return "scm-dom and scm-rng"
    return None


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
