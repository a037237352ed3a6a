"""The oracle's strata with MIN and MAX: naive evaluation, keeping the best fact of each group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from corollary.lang.extrema import (
    Extremum,
    extrema_of,
    extremal_atoms,
    form,
    improving,
    recursion,
)
from corollary.lang.operands import ordering
from corollary.lang.reference_expressions import evaluated
from corollary.lang.stratify import Partition, Predicate, Stratum
from corollary.lang.syntax import TRIPLE, Atom, Constant, Rule, Variable
from corollary.lang.values import literal_of

Substitution = dict[Variable, Constant]


def extremal(
    stratum: Stratum,
    known: set[Atom],
    instances: Callable[[Rule, set[Atom]], list[Substitution]],
    substitute: Callable[[Atom, Substitution], Atom],
) -> set[Atom]:
    """All facts after a stratum with MIN or MAX: all rules are applied until no value improves.

    `instances` and `substitute` are those of the oracle.
    """
    partition = Partition(stratum.rules)
    extrema = extrema_of(stratum.rules, partition)
    stated = {fact for fact in known if partition.predicate(fact) in extrema}
    below, best = known - stated, dict[Any, Atom]()
    while True:
        facts = below | stated | set(best.values())
        candidates = set(stated)
        for rule in stratum.rules:
            extremum = extrema[partition.predicate(rule.head)]
            values = extremal_atoms(rule, extrema, partition)
            assert not isinstance(values, str), "the rules are valid"
            depends = recursion(rule, values, extremum)
            assert not isinstance(depends, str), "the rules are valid"
            for s in instances(rule, facts):
                candidate = substitute(rule.head, s)
                level = _level(candidate, extremum)
                if level is None:
                    continue
                for variable in depends.values:
                    before = _level(substitute(values[variable], s), extremum)
                    if before is not None and level < before:
                        raise improving(candidate, substitute(values[variable], s), extremum, rule)
                    at = extremum.place + (candidate.relation == TRIPLE)
                    if level == before and form(candidate.terms[at]) < form(s[variable]):  # type: ignore[arg-type]
                        terms = (*candidate.terms[:at], s[variable], *candidate.terms[at + 1 :])
                        candidate = replace(candidate, terms=terms)
                for guard in depends.guards:
                    value = evaluated(guard, s)
                    if value is not None and ordering(value) < ordering(literal_of(0)):  # type: ignore[operator]
                        raise improving(candidate, None, extremum, rule)
                candidates.add(candidate)
        found: dict[Any, Atom] = {}
        for candidate in sorted(candidates, key=lambda c: _form(c, extrema, partition)):
            extremum = extrema[partition.predicate(candidate)]
            group = _group(candidate, extremum)
            level = _level(candidate, extremum)
            rival = found.get(group)
            if level is not None and (rival is None or level < _level(rival, extremum)):
                found[group] = candidate
        if found == best:
            return facts
        best = found


def _form(fact: Atom, extrema: dict[Predicate, Extremum], partition: Partition) -> Any:
    extremum = extrema[partition.predicate(fact)]
    return form(fact.terms[extremum.place + (fact.relation == TRIPLE)])  # type: ignore[arg-type]


def _group(fact: Atom, extremum: Extremum) -> tuple[object, ...]:
    at = extremum.place + (fact.relation == TRIPLE)
    return (fact.relation, *fact.terms[:at], *fact.terms[at + 1 :])


def _level(fact: Atom, extremum: Extremum) -> Any:
    """A number of values first; None for a value without an order."""
    found = ordering(fact.terms[extremum.place + (fact.relation == TRIPLE)])  # type: ignore[arg-type]
    if found is None:
        return None
    space, key = found
    return space != "number", space, _Reversed(key) if extremum.function == "MAX" else key


@dataclass(frozen=True)
class _Reversed:
    key: Any

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.key < self.key)
