"""Recursive minima and maxima: D(x, z, MIN(d + w)) :- D(x, y, d), E(y, z, w).

Paper: a module in the sense of Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs,
AAAI 2019; deletion follows Ramalingam, Reps: An Incremental Algorithm for a Generalization of the
Shortest-Path Problem, J. Algorithms 21, 1996.

Idea: the heads of rule instances are *candidates*; the relation has the best candidate of each
group, and all explicit facts. `close` improves groups until no candidate is better: only improved
facts are considered again. `update` deletes the facts that lost their derivations, computes the
candidates of their groups again, and improves from there.

Invariants: every fact that is not explicit is a candidate that no other one of its group beats. A
candidate is never better than the values it follows from (E355), so that the best ones have acyclic
derivations. A fact that may have lost a derivation remains if it follows from facts with strictly
better values; if one of these is deleted later, it is considered again.

Differs from the papers: all suspects of a round are considered together, not in the order of their
values; so a fact whose derivations all have steps of weight 0 may be deleted and derived again.

Cost: an update considers the candidates of the groups that it changes, and of those that they lead
to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
import numpy.typing as npt

from corollary.algorithms.modular.distances import Steps, distances, steps_of
from corollary.core.compile import CompiledRule, compile_rule, open_terms
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine, F, OnRound
from corollary.core.order import UNORDERED, ranks
from corollary.core.statistics import Statistics
from corollary.core.tables import atom_of
from corollary.lang.extrema import (
    Extremum,
    Recursion,
    extrema_of,
    extremal_atoms,
    improving,
    recursion,
)
from corollary.lang.stratify import Partition, Predicate, Stratum
from corollary.lang.syntax import TRIPLE, XSD, Atom, Bind, Literal, Rule, Variable

Tables = dict[Predicate, Ids]  # candidates, one row each
_ZERO = Literal("0", XSD + "integer")


@dataclass(frozen=True, eq=False)
class _Choice:
    """One rule, with heads that also have the values and the guards that they depend on."""

    rule: CompiledRule
    head: Predicate
    arity: int
    recursion: Recursion
    is_recursive: bool
    steps: Steps | None
    all: CompiledRule  # candidate(args, values, guards) :- body
    of_groups: CompiledRule  # the same :- group(…), body
    of_facts: CompiledRule  # the same :- suspect(args), body


@dataclass(frozen=True, eq=False)
class _Relation:
    """One extremal relation."""

    extremum: Extremum
    arity: int
    groups: Predicate  # facts are groups
    suspects: Predicate
    lookup: CompiledRule  # R(args) :- group(…), R(args)

    def group(self, rows: Ids) -> Ids:
        """Drop the value of each row."""
        groups: Ids = np.delete(rows, self.extremum.place, axis=1)
        return groups


@dataclass
class Improved(Generic[F]):
    """Facts after an update, and those of the relations that were lost and gained."""

    facts: F
    lost: F
    gained: F


class Extremal(Generic[F]):
    """The extremal relations of a stratum."""

    def __init__(
        self, source: Stratum, rules: Sequence[CompiledRule], dictionary: Dictionary
    ) -> None:
        partition = Partition(source.rules)
        self.predicates = source.predicates
        self.name = "extremal " + ", ".join(sorted(map(_described, source.predicates)))
        extrema = extrema_of(source.rules, partition)
        self._relations = {
            predicate: _relation(predicate, extrema[predicate], rules, dictionary)
            for predicate in source.predicates
        }
        self._choices = [
            _choice(rule, number, extrema, partition, self._relations, dictionary)
            for number, rule in enumerate(rules)
        ]

    def close(
        self,
        engine: Engine[F],
        below: F,
        explicit: F,
        statistics: Statistics,
        on_round: OnRound | None = None,
    ) -> F:
        """The facts of the relations; `below` are those of lower strata."""
        own = explicit.only(self.predicates)
        facts = below.union(own)
        recursive = [c for c in self._choices if c.is_recursive]
        if len(recursive) == 1 and recursive[0].steps is not None:
            searched = self._search(
                engine, recursive[0], recursive[0].steps, facts, own, statistics
            )
            if searched is not None:
                return searched.only(self.predicates)
        tables = self._candidates(engine, [c.all for c in self._choices], facts, statistics)
        improved = self._improve(engine, facts, own, tables, statistics, on_round)
        return improved.facts.only(self.predicates)

    def _search(
        self,
        engine: Engine[F],
        choice: _Choice,
        steps: Steps,
        facts: F,
        own: F,
        statistics: Statistics,
    ) -> F | None:
        """Close by Dijkstra's algorithm, if the numbers are fit for it."""
        base = [c.all for c in self._choices if not c.is_recursive]
        tables = self._candidates(engine, base, facts, statistics) if base else {}
        seeded = self._improve(engine, facts, own, tables, statistics, None, recursive=False)
        relation = self._relations[choice.head]
        seeds = seeded.facts.rows(choice.head)
        if not len(seeds):
            return seeded.facts
        found = distances(steps, engine, seeded.facts, seeds, relation.extremum.place)
        if found is None:
            return None
        better, worse = (engine.facts({choice.head: rows}) for rows in found)
        statistics.count(self.name, len(better))
        return seeded.facts.replaced(worse.difference(own), better)

    def update(
        self,
        engine: Engine[F],
        before: F,
        facts: F,
        explicit: F,
        deleted: F,
        inserted: F,
        lost: F,
        gained: F,
        statistics: Statistics,
    ) -> Improved[F]:
        """Update the relations for the changes of lower strata, and of their explicit facts.

        `facts` are the new ones of lower strata and the old ones of the relations.
        """
        own = explicit.only(self.predicates)
        old = before.only(self.predicates)
        lost = lost.intersection(old).difference(own)
        overdeleted = self._delete(engine, before, facts, own, deleted, inserted, lost, statistics)
        facts = facts.difference(overdeleted) if len(overdeleted) else facts
        tables = self._candidates(
            engine,
            [c.all for c in self._choices],
            facts,
            statistics,
            delta=inserted,
            negative_delta=deleted,
        )
        if len(overdeleted):
            goals = self._goals(engine, overdeleted)
            rules = [c.of_groups for c in self._choices]
            again = self._candidates(engine, rules, facts.union(goals), statistics)
            tables = _stacked([tables, again])
        new = gained.difference(facts)
        if len(new):
            facts = facts.union(new)
            stated: Tables = {p: new.rows(p) for p in new.predicates()}
            rules = [c.all for c in self._choices if c.is_recursive]
            more = self._candidates(engine, rules, facts, statistics, delta=new)
            tables = _stacked([tables, stated, more])
        improved = self._improve(engine, facts, own, tables, statistics, None)
        touched = overdeleted.union(new).union(improved.lost).union(improved.gained)
        now = touched.intersection(improved.facts)
        then = touched.intersection(old)
        return Improved(improved.facts, then.difference(now), now.difference(then))

    def _delete(
        self,
        engine: Engine[F],
        before: F,
        facts: F,
        own: F,
        deleted: F,
        inserted: F,
        lost: F,
        statistics: Statistics,
    ) -> F:
        """The facts that lost their derivations, and more of them in cycles of weight 0."""
        rules = [c.all for c in self._choices]
        recursive = [c.all for c in self._choices if c.is_recursive]
        old = facts.only(self.predicates)
        tables = self._candidates(
            engine, rules, before, statistics, delta=deleted, negative_delta=inserted, checked=False
        )
        suspects = engine.facts(tables).intersection(old).difference(own).difference(lost)
        # The instances that used changes of lower strata are done; the others hold in `facts` too,
        # and so does what keeps a suspect.
        remaining = facts
        overdeleted, new = engine.facts({}), lost
        while len(suspects) or len(new):
            if len(suspects):
                statistics.consider("checked", len(suspects))
                others = remaining.difference(new)
                new = new.union(
                    suspects.difference(self._supported(engine, others, suspects, statistics))
                )
            if not len(new):
                break
            overdeleted = overdeleted.union(new)
            tables = (
                self._candidates(engine, recursive, remaining, statistics, delta=new, checked=False)
                if recursive
                else {}
            )
            remaining = remaining.difference(new)
            suspects = engine.facts(tables).intersection(old).difference(own)
            suspects = suspects.difference(overdeleted)
            new = engine.facts({})
            statistics.rounds += 1
        statistics.consider("overdeleted", len(overdeleted))
        return overdeleted

    def _supported(self, engine: Engine[F], facts: F, suspects: F, statistics: Statistics) -> F:
        """The suspects that follow from strictly better values."""
        renamed = engine.facts({})
        for predicate, relation in self._relations.items():
            renamed = renamed.union(suspects.renamed(predicate, relation.suspects))
        tables = self._candidates(
            engine,
            [c.of_facts for c in self._choices],
            facts.union(renamed),
            statistics,
            strictly=True,
        )
        return engine.facts(tables).intersection(suspects)

    def _improve(
        self,
        engine: Engine[F],
        facts: F,
        own: F,
        tables: Tables,
        statistics: Statistics,
        on_round: OnRound | None,
        *,
        recursive: bool = True,
    ) -> Improved[F]:
        """Insert better candidates, and what follows from them, until none is better."""
        nothing = engine.facts({})
        lost = gained = nothing
        rules = [c.all for c in self._choices if c.is_recursive] if recursive else []
        rounds = 0
        while tables:
            worse, better = self._better(engine, facts, own, tables)
            if not len(worse) + len(better):
                break
            facts = facts.replaced(worse, better)
            lost, gained = lost.union(worse), gained.difference(worse).union(better)
            rounds += 1
            statistics.rounds += 1
            if on_round is not None:
                on_round(rounds, len(gained))
            tables = {}
            if rules and len(better):
                tables = self._candidates(engine, rules, facts, statistics, delta=better)
        return Improved(facts, lost, gained)

    def _better(self, engine: Engine[F], facts: F, own: F, tables: Tables) -> tuple[F, F]:
        """The candidates that are better than all facts of their groups, and these facts."""
        goals = engine.facts(
            {
                self._relations[p].groups: self._relations[p].group(rows)
                for p, rows in tables.items()
            }
        )
        lookups = [self._relations[p].lookup for p in tables]
        current = engine.derive(lookups, facts.union(goals)).facts
        worse: Tables = {}
        better: Tables = {}
        for predicate, rows in tables.items():
            relation = self._relations[predicate]
            known = current.rows(predicate)
            both = np.concatenate([known.reshape(-1, relation.arity), rows])
            is_known = np.arange(len(both)) < len(known)
            place, function = relation.extremum.place, relation.extremum.function
            _, rank = ranks(both[:, place], engine.dictionary, greatest=function == "MAX")
            groups = _numbered(relation.group(both))
            order = np.lexsort((~is_known, rank, groups))
            ordered = groups[order]
            first = order[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
            new = first[~is_known[first] & (rank[first] != UNORDERED)]
            is_beaten = is_known.copy()
            is_beaten[first] = False
            better[predicate] = both[new]
            worse[predicate] = both[is_beaten]
        return engine.facts(worse).difference(own), engine.facts(better).difference(own)

    def _goals(self, engine: Engine[F], facts: F) -> F:
        return engine.facts(
            {
                relation.groups: relation.group(facts.rows(predicate))
                for predicate, relation in self._relations.items()
                if len(facts.only([predicate]))
            }
        )

    def _candidates(
        self,
        engine: Engine[F],
        rules: Sequence[CompiledRule],
        facts: F,
        statistics: Statistics,
        *,
        negative: F | None = None,
        delta: F | None = None,
        negative_delta: F | None = None,
        checked: bool = True,
        strictly: bool = False,
    ) -> Tables:
        """The heads of instances of rules; if `checked`, refuses what breaks the order.

        With `strictly`, leave out those that do not follow from strictly better values.
        """
        derived = engine.derive(
            rules,
            facts,
            negative=negative,
            delta=delta,
            negative_delta=negative_delta,
        )
        statistics.count(self.name, derived.instances)
        found: list[Tables] = []
        for choice in self._choices:
            rows = derived.facts.rows(choice.all.head.predicate)
            if not len(rows):
                continue
            rows = rows.reshape(-1, len(choice.all.head.arguments))
            if rows.shape[1] > choice.arity:
                refusing = facts if checked else None
                rows = self._in_order(engine, choice, rows, refusing, strictly)
            elif strictly and choice.is_recursive:
                continue
            found.append({choice.head: np.ascontiguousarray(rows[:, : choice.arity])})
        return _stacked(found)

    def _in_order(
        self, engine: Engine[F], choice: _Choice, rows: Ids, facts: F | None, strictly: bool
    ) -> Ids:
        """The rows that have a value; refuses those better than what they follow from.

        Without `facts`, the rows were accepted before.
        """
        extremum = self._relations[choice.head].extremum
        end = choice.arity + len(choice.recursion.values)
        values = np.concatenate([rows[:, extremum.place], *rows[:, choice.arity : end].T])
        levels, forms = (
            found.reshape(-1, len(rows))
            for found in ranks(values, engine.dictionary, greatest=extremum.function == "MAX")
        )
        if end < rows.shape[1]:
            zero = engine.dictionary.encode([_ZERO])
            factors = np.concatenate([zero, *rows[:, end:].T])
            signs, _ = ranks(factors, engine.dictionary, greatest=False)
            negative = (signs[1:] < signs[0]).reshape(-1, len(rows)).any(axis=0)
            if facts is not None and negative.any():
                self._refuse(engine, choice, rows[negative][0], None, facts)
        for number, level in enumerate(levels[1:]):
            improves = levels[0] < level
            if facts is not None and improves.any():
                self._refuse(engine, choice, rows[improves][0], number, facts)
            # An equal value keeps its form; otherwise, it could replace what it follows from.
            keeps = (levels[0] == level) & (forms[0] < forms[number + 1])
            if keeps.any():
                rows = rows.copy()
                rows[keeps, extremum.place] = rows[keeps, choice.arity + number]
                forms[0][keeps] = forms[number + 1][keeps]
        valid = levels[0] != UNORDERED
        if strictly:
            valid &= (levels[1:] < levels[0]).all(axis=0)
            valid &= len(levels) > 1 or not choice.is_recursive
        rows = rows[valid]
        return rows

    def _refuse(
        self, engine: Engine[F], choice: _Choice, row: Ids, number: int | None, facts: F
    ) -> None:
        """Raise the error of a step to a better value, with the facts of the step."""
        head = engine.facts({choice.head: row[None, : choice.arity]})
        fact = atom_of(choice.head, engine.dictionary.terms(row[: choice.arity].tolist()))
        rule, partition = choice.rule.source, Partition([choice.rule.source])
        extrema = {p: relation.extremum for p, relation in self._relations.items()}
        values = extremal_atoms(rule, extrema, partition)
        value: Atom | None = None
        if number is not None and not isinstance(values, str):
            variable = choice.recursion.values[number]
            atoms = [part for part in rule.body if isinstance(part, Atom)]
            body = choice.rule.body[atoms.index(values[variable])]
            wanted = int(row[choice.arity + number])
            at = self._relations[body.predicate].extremum.place
            for support in engine.support([choice.rule], head, within=facts):
                for binding in support.bindings.tolist():
                    ids = [binding[a] if a >= 0 else -1 - a for a in body.arguments]
                    if ids[at] == wanted and value is None:
                        value = atom_of(body.predicate, engine.dictionary.terms(ids))
        extremum = self._relations[choice.head].extremum
        raise improving(fact, value, extremum, rule)


def _relation(
    predicate: Predicate,
    extremum: Extremum,
    rules: Sequence[CompiledRule],
    dictionary: Dictionary,
) -> _Relation:
    head = next(rule.source.head for rule in rules if rule.head.predicate is predicate)
    variables = tuple(Variable(f"v{n}") for n in range(len(open_terms(head, predicate))))
    atom = (
        Atom(TRIPLE, (variables[0], head.terms[1], variables[1]))
        if head.relation == TRIPLE
        else Atom(head.relation, variables)
    )
    group = Atom(f"GROUPS {predicate!r}", _without(variables, extremum.place))
    return _Relation(
        extremum,
        len(variables),
        Predicate(group.relation),
        Predicate(f"SUSPECTS {predicate!r}"),
        compile_rule(Rule(atom, (group, atom)), dictionary),
    )


def _choice(
    rule: CompiledRule,
    number: int,
    extrema: dict[Predicate, Extremum],
    partition: Partition,
    relations: dict[Predicate, _Relation],
    dictionary: Dictionary,
) -> _Choice:
    source, head = rule.source, rule.head.predicate
    values = extremal_atoms(source, extrema, partition)
    assert not isinstance(values, str), "the rules are valid"
    depends = recursion(source, values, extrema[head])
    assert not isinstance(depends, str), "the rules are valid"
    guards = [Variable(f"guard {n}") for n in range(len(depends.guards))]
    binds = [Bind(e, v) for e, v in zip(depends.guards, guards, strict=True)]
    terms = open_terms(source.head, head)
    candidate = Atom(f"CANDIDATES {number} {head!r}", (*terms, *depends.values, *guards))
    # An extremum is an ordinary BIND of these rules.
    body = tuple(
        Bind(part.expression, part.variable) if isinstance(part, Bind) else part
        for part in (*source.body, *binds)
    )
    relation = relations[head]
    group = Atom(relation.groups.relation, _without(terms, relation.extremum.place))
    suspect = Atom(relation.suspects.relation, terms)
    return _Choice(
        rule,
        head,
        len(terms),
        depends,
        bool(values),
        _steps(source, values, extrema[head], dictionary),
        *(
            compile_rule(Rule(candidate, (*first, *body)), dictionary)
            for first in ((), (group,), (suspect,))
        ),
    )


def _steps(
    rule: Rule, values: dict[Variable, Atom], extremum: Extremum, dictionary: Dictionary
) -> Steps | None:
    if extremum.function != "MIN" or len(values) != 1:
        return None
    [(value, atom)] = values.items()
    return steps_of(rule, atom, value, extremum.place, dictionary)


def _without(terms: Sequence[object], place: int) -> tuple:  # type: ignore[type-arg]
    return (*terms[:place], *terms[place + 1 :])


def _stacked(tables: Iterable[Tables]) -> Tables:
    parts: dict[Predicate, list[Ids]] = {}
    for table in tables:
        for predicate, rows in table.items():
            parts.setdefault(predicate, []).append(rows)
    return {p: np.concatenate(rows) for p, rows in parts.items() if sum(map(len, rows))}


def _numbered(rows: Ids) -> npt.NDArray[np.int64]:
    """A number for each distinct row."""
    if not rows.shape[1]:
        return np.zeros(len(rows), np.int64)
    found = rows[:, 0].astype(np.uint64)
    for column in rows.T[1:]:
        numbers = np.unique(found, return_inverse=True)[1].astype(np.uint64)
        found = numbers << np.uint64(32) | column
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def _described(predicate: Predicate) -> str:
    if predicate.property is not None:
        return str(getattr(predicate.property, "value", predicate.property))
    return predicate.relation
