"""The oracle: naive bottom-up evaluation over Python sets.

Every other evaluator is compared with it, so it shares no evaluation code with them: all rules of a
stratum are applied to all facts until a fixpoint. A substitution maps variables to terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from corollary.lang import syntax
from corollary.lang.builtins import text_of_value
from corollary.lang.extrema import (
    Extremum,
    extrema_of,
    extremal_atoms,
    form,
    improving,
    recursion,
)
from corollary.lang.operands import ordering
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.reference_expressions import evaluated, holds
from corollary.lang.stratify import Partition, Predicate, Stratum
from corollary.lang.syntax import TRIPLE, Atom, Constant, Rule, Variable
from corollary.lang.values import kind_of, literal_of, sum_of, value_of

Substitution = dict[Variable, Constant]


def materialize(program: Program, facts: Iterable[Atom] = ()) -> set[Atom]:
    """The materialization of a program and `facts`.

    >>> p = Program.parse("p(?x, ?z) :- e(?x, ?y), p(?y, ?z) . p(?x, ?y) :- e(?x, ?y) .")
    >>> len(materialize(p, Program.parse("e(1, 2) . e(2, 3) . e(3, 4) .").facts))
    9
    """
    known = {*program.facts, *facts}
    for stratum in program.strata:
        if stratum.is_extremal:
            known = extremal(stratum, known)
            continue
        size = -1
        while len(known) > size:
            size = len(known)
            for rule in stratum.rules:
                known |= {substitute(rule.head, s) for s in instances(rule, known)}
    return known


def extremal(stratum: Stratum, known: set[Atom]) -> set[Atom]:
    """All facts after a stratum with MIN or MAX: all rules are applied until no value improves."""
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


def violations(program: Program, known: set[Atom]) -> list[tuple[Rule, Substitution]]:
    """Every constraint with each substitution that makes its body true."""
    return [(rule, s) for rule in program.constraints for s in instances(rule, known)]


def instances(rule: Rule, known: set[Atom]) -> list[Substitution]:
    """Every substitution of the rule's bound variables that makes its body true."""
    found: list[Substitution] = [{}]
    for literal in rule.body:
        if isinstance(literal, Atom):
            found = join(found, literal, known)
        elif isinstance(literal, syntax.Aggregate):
            found = [s | g for g in groups(literal, known) for s in found if s | g == g | s]
    for bind in rule.binds:
        ways = [(s, evaluated(bind.expression, s)) for s in found]
        found = [{**s, bind.variable: v} for s, v in ways if v and s.get(bind.variable, v) == v]
    for literal in rule.body:
        if isinstance(literal, syntax.Negation):
            found = [s for s in found if not join([s], literal.atom, known)]
        elif isinstance(literal, syntax.Filter):
            found = [s for s in found if holds(literal.expression, s)]
    return found


def join(found: list[Substitution], atom: Atom, known: set[Atom]) -> list[Substitution]:
    """Extend the substitutions in all ways that turn the atom into a known fact."""
    facts = [fact for fact in known if fact.relation == atom.relation]
    return [way for s in found for fact in facts if (way := matched(atom, fact, s)) is not None]


def matched(atom: Atom, fact: Atom, given: Substitution) -> Substitution | None:
    """Extend the substitution so that the atom becomes the fact; None if impossible."""
    extended = dict(given)
    for term, constant in zip(atom.terms, fact.constants(), strict=True):
        value = extended.setdefault(term, constant) if isinstance(term, Variable) else term
        if value != constant:
            return None
    return extended


def substitute(atom: Atom, s: Substitution) -> Atom:
    return Atom(atom.relation, tuple(s[t] if isinstance(t, Variable) else t for t in atom.terms))


def groups(aggregate: syntax.Aggregate, known: set[Atom]) -> Iterator[Substitution]:
    """For each group its key and results as a substitution, unless a result has no value."""
    found: list[Substitution] = [{}]
    for atom in aggregate.atoms:
        found = join(found, atom, known)
    members: dict[tuple[Constant, ...], list[Substitution]] = {}
    for s in found:
        members.setdefault(tuple(s[v] for v in aggregate.group), []).append(s)
    for key, rows in members.items():
        row: dict[Variable, Any] = dict(zip(aggregate.group, key, strict=True))
        for b in aggregate.bindings:
            terms = [s[b.argument] for s in rows]
            terms = list(dict.fromkeys(terms)) if b.distinct else terms
            row[b.result] = combine(b.function, terms, b.separator)
        if None not in row.values():
            yield row


def combine(function: str, terms: list[Constant], separator: str = " ") -> Constant | None:
    """An aggregate function over the multiset of terms of one group; None: no value."""
    terms = sorted(terms, key=Printer().term)
    match function:
        case "count":
            return literal_of(len(terms))
        case "sample":
            return terms[0]
        case "group_concat":
            if any(isinstance(t, syntax.BlankNode) for t in terms):
                return None
            return syntax.Literal(separator.join(map(text_of_value, terms)))
        case "min" | "max":
            keys: list[Any] = list(map(ordering, terms))
            if None in keys or len({space for space, _ in keys}) > 1:
                return None
            best = min(keys) if function == "min" else max(keys)
            return next(t for t, key in zip(terms, keys, strict=True) if key == best)
    values: list[Any] = list(map(value_of, terms))
    if set(map(kind_of, values)) != {"number"}:
        return None
    total = sum_of(values)
    if function == "avg":
        total = total / len(terms) if isinstance(total, float) else Fraction(total) / len(terms)
    return literal_of(total)
