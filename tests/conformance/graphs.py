"""RDF graphs as atoms, their closure under a rule set, and whether one follows from another."""

from __future__ import annotations

import gzip
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest

from corollary.algorithms.constraints import Inconsistency, inconsistencies
from corollary.algorithms.seminaive import materialize_strata
from corollary.core.compile import CompiledRule, compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.datatypes import same_value
from corollary.lang.program import Program
from corollary.lang.syntax import IRI, TRIPLE, Atom, BlankNode, Constant, Literal, Rule
from corollary.rdf import rules

Triple = tuple[Constant, Constant, Constant]


def read(*paths: Path, base: str = "http://example.org/base") -> set[Atom]:
    """The triples of Turtle or N-Triples files; the blank nodes of each are its own."""
    found = set()
    for number, path in enumerate(paths):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        kind = pyoxigraph.RdfFormat.from_extension(path.name.removesuffix(".gz").split(".")[-1])
        for quad in pyoxigraph.parse(data, format=kind, base_iri=base):
            terms = [_term(part, number) for part in (quad.subject, quad.predicate, quad.object)]
            found.add(Atom(TRIPLE, tuple(terms)))
    return found


def _term(term: Any, number: int) -> Constant:
    if isinstance(term, pyoxigraph.NamedNode):
        return IRI(term.value)
    if isinstance(term, pyoxigraph.BlankNode):
        return BlankNode(f"b{number}x{term.value}")
    return Literal(term.value, term.datatype.value, term.language)


@dataclass(frozen=True)
class Closure:
    """What follows from a graph: its triples, and the constraints that it contradicts."""

    facts: frozenset[Atom]
    inconsistencies: tuple[Inconsistency, ...]


@cache
def _prepared(name: str) -> tuple[Program, ColumnarEngine, dict[Rule, CompiledRule]]:
    """A rule set compiled once for all cases; the dictionary only grows."""
    program, engine = rules(name), ColumnarEngine(Dictionary())
    return program, engine, {r: compile_rule(r, engine.dictionary) for r in program.rules}


def closure(graph: Iterable[Atom], name: str) -> Closure:
    """The materialization of a graph under a rule set, by the columnar engine."""
    program, engine, compiled = _prepared(name)
    explicit = engine.facts(encode([*program.facts, *graph], engine.dictionary))
    done = materialize_strata(program.strata, explicit, engine, compiled=compiled)
    found = tuple(inconsistencies(program, done.facts, engine))
    triples = (fact for fact in decode(done.facts, engine.dictionary) if fact.relation == TRIPLE)
    return Closure(frozenset(triples), found)


def entails(facts: Iterable[Atom], conclusion: Iterable[Atom], *, by_value: bool = False) -> bool:
    """Whether the facts hold the conclusion for some choice of its blank nodes.

    With `by_value`, a literal may be met by another one of the same value.
    """
    by_property: dict[Constant, list[Triple]] = {}
    for fact in facts:
        subject, property_, object_ = fact.constants()
        by_property.setdefault(property_, []).append((subject, property_, object_))
    # Triples with few blank nodes first: they decide most.
    goals: list[Triple] = [_triple(atom) for atom in conclusion]
    goals.sort(key=lambda goal: sum(isinstance(term, BlankNode) for term in goal))
    return any(True for _ in _solve(goals, by_property, {}, by_value))


def _triple(atom: Atom) -> Triple:
    subject, property_, object_ = atom.constants()
    return subject, property_, object_


def _solve(
    goals: list[Triple],
    facts: dict[Constant, list[Triple]],
    chosen: dict[Constant, Constant],
    by_value: bool,
) -> Iterator[None]:
    if not goals:
        yield
        return
    goal, *rest = goals
    for fact in facts.get(goal[1], ()):
        choice = dict(chosen)
        pairs = zip(goal, fact, strict=True)
        if all(_meets(wanted, term, choice, by_value) for wanted, term in pairs):
            yield from _solve(rest, facts, choice, by_value)


def _meets(
    wanted: Constant, term: Constant, chosen: dict[Constant, Constant], by_value: bool
) -> bool:
    if isinstance(wanted, BlankNode):
        return chosen.setdefault(wanted, term) == term
    if by_value and isinstance(wanted, Literal) and isinstance(term, Literal) and wanted != term:
        return same_value(wanted, term) is True
    return wanted == term


def ignored(suite: str) -> dict[str, str]:
    """The cases of a suite that are not passed, each with the reason (ignored.toml)."""
    text = (Path(__file__).parent / "ignored.toml").read_text(encoding="utf-8")
    found: dict[str, str] = tomllib.loads(text).get(suite, {})
    return found


def case(name: str, reasons: dict[str, str]) -> Any:
    """A parameter for a case; one with a reason must fail, so that no reason outlives its cause."""
    marks = [pytest.mark.xfail(reason=reasons[name], strict=True)] if name in reasons else []
    return pytest.param(name, id=name, marks=marks)
