"""The oracle: naive bottom-up evaluation over Python sets.

Every other evaluator is compared with it, so it shares no evaluation code with them: all rules of a
stratum are applied to all facts until a fixpoint. A substitution maps variables to terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

from corollary.lang import syntax
from corollary.lang.builtins import text_of_value
from corollary.lang.operands import ordering
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.reference_expressions import evaluated, holds
from corollary.lang.reference_extrema import extremal
from corollary.lang.syntax import Atom, Constant, Rule, Variable
from corollary.lang.values import kind_of, literal_of, sum_of, value_of

Substitution = dict[Variable, Constant]


def materialize(
    program: Program,
    facts: Iterable[Atom] = (),
    on_round: Callable[[int, int, int, int], object] = lambda *_: None,
) -> set[Atom]:
    """The materialization of a program and `facts`.

    `on_round` gets the number of the stratum, of all strata, of the round and of the facts.

    >>> p = Program.parse("p(?x, ?z) :- e(?x, ?y), p(?y, ?z) . p(?x, ?y) :- e(?x, ?y) .")
    >>> len(materialize(p, Program.parse("e(1, 2) . e(2, 3) . e(3, 4) .").facts))
    9
    """
    known = {*program.facts, *facts}
    for number, stratum in enumerate(program.strata, 1):
        if stratum.is_extremal:
            known = extremal(stratum, known, instances, substitute)
            on_round(number, len(program.strata), 1, len(known))
            continue
        size, round_ = -1, 0
        while len(known) > size:
            size, round_ = len(known), round_ + 1
            for rule in stratum.rules:
                known |= {substitute(rule.head, s) for s in instances(rule, known)}
            on_round(number, len(program.strata), round_, len(known))
    return known


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
