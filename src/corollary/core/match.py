"""Matching facts with a pattern: an atom whose constants and repeated variables select facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np

from corollary.core.compile import CompiledRule, compile_rule, narrow_predicate, narrow_terms
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine, F, Facts
from corollary.core.tables import argument_columns, is_known, narrow_atoms
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom, Rule, Variable


def match_facts(
    pattern: Atom, facts: F, engine: Engine[F], admissible: Mapping[int, Ids] | None = None
) -> F:
    """Select the facts that match a pattern.

    A pattern with a variable property or class is matched property by property and class by class,
    so that no table of all triples is built, which updates would have to maintain. Matching adds no
    term to the dictionary. `admissible` restricts positions of a triple pattern to sets of ids.

    >>> from corollary.core.tables import encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.lang.parser import parse_atom
    >>> from corollary.lang.program import Program
    >>> engine = ColumnarEngine(Dictionary())
    >>> edges = Program.parse("edge(1, 2) . edge(1, 1) . edge(2, 1) .").facts
    >>> facts = engine.facts(encode(edges, engine.dictionary))
    >>> [
    ...     len(match_facts(parse_atom(text, {}, ""), facts, engine))
    ...     for text in ("edge(?x, ?y)", "edge(1, ?y)", "edge(?x, ?x)", "edge(3, ?y)")
    ... ]
    [3, 2, 1, 0]
    """
    whole: list[Predicate] = []
    rules: list[CompiledRule] = []
    for atom in narrow_atoms(pattern, facts.predicates()):
        if selects_all(atom):
            whole.append(narrow_predicate(atom))
        elif is_known(atom, engine.dictionary):
            rules.append(compile_rule(Rule(atom, (atom,)), engine.dictionary))
    matches = facts.only(whole)
    if rules:
        matches = matches.union(engine.derive(rules, facts).facts)
    return _restrict(matches, admissible, engine) if admissible else matches


def selects_all(atom: Atom) -> bool:
    """Whether an atom matches every fact of its narrow predicate."""
    terms = narrow_terms(atom)
    return len({*terms}) == len(terms) and all(isinstance(term, Variable) for term in terms)


class TripleTables(Protocol):
    """Tables of triples by narrow predicate."""

    def rows(self, predicate: Predicate) -> Ids:
        """Subjects and objects of a property, or members of a class, one row per triple."""
        ...


def triple_columns(
    tables: TripleTables, predicates: Iterable[Predicate], dictionary: Dictionary
) -> tuple[Ids, Ids, Ids]:
    """Assemble the triples of narrow predicates: the ids of subjects, properties and objects."""
    parts = [[np.zeros(0, np.uint32)] * 3]
    for predicate in predicates:
        rows = tables.rows(predicate)
        if len(rows):
            parts.append(argument_columns(predicate, rows, dictionary))
    subject, property_, object_ = map(np.concatenate, zip(*parts, strict=True))
    return subject, property_, object_


def triple_rows(facts: Facts, dictionary: Dictionary) -> Ids:
    """Assemble triples, one per row: the ids of subject, property and object."""
    return np.stack(triple_columns(facts, facts.predicates(), dictionary), axis=1)


def _restrict(facts: F, admissible: Mapping[int, Ids], engine: Engine[F]) -> F:
    """Keep the triples with an admissible id at each restricted position."""
    tables = {}
    for predicate in facts.predicates():
        triples = triple_rows(facts.only([predicate]), engine.dictionary)
        mask = np.ones(len(triples), bool)
        for position, ids in admissible.items():
            mask &= np.isin(triples[:, position], ids)
        tables[predicate] = facts.rows(predicate)[mask]
    return engine.facts(tables)
