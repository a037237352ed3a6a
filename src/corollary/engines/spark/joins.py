"""Rule bodies and heads as plans of DataFrame joins.

Bindings are frames with a column `v<number>` for each variable and the column `unit`, so that there
is a row even where there are no variables. Each row is one rule instance: tables hold no row twice,
and the variables decide which fact stands at each atom.

This is the minimal version: conditions and aggregates are computed on the driver, over the distinct
values that they need, and joined back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from corollary.core.aggregates import NO_VALUE, aggregate
from corollary.core.compile import (
    TRIPLES,
    TYPES,
    Argument,
    CompiledRule,
    Condition,
    Grouping,
    Pattern,
    constant_id,
)
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.expressions import holds
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.tables import UNIT, Workspace, columns, distinct, from_arrow
from corollary.lang.syntax import TRIPLE, TYPE

Atoms = Sequence[tuple[Pattern, SparkFacts]]  # patterns, each with the facts that it reads

KEYS = ("relation", "property", "member_of")  # which predicate a derived fact belongs to


def variables(numbers: Sequence[int]) -> list[str]:
    """The names of the columns of variables."""
    return [f"v{number}" for number in numbers]


@dataclass(frozen=True)
class Reading:
    """How the atoms of a rule are read: one way in which Δ may enter an instance."""

    positive: Atoms
    absent: Atoms
    present: Atoms = ()

    def of_heads(self, rule: CompiledRule, heads: SparkFacts | None) -> Reading:
        """The same for these heads only: the head is one more atom."""
        if heads is None:
            return self
        return replace(self, positive=[(rule.head, heads), *self.positive])


@dataclass
class Operands:
    """The operands of Π[Ip, In : Δp, Δn]."""

    facts: SparkFacts
    negative: SparkFacts
    delta: SparkFacts | None = None
    negative_delta: SparkFacts | None = None

    @cached_property
    def old(self) -> SparkFacts:
        """Ip − Δp"""
        return self.facts if self.delta is None else self.facts.less(self.delta)

    @cached_property
    def negative_before(self) -> SparkFacts:
        """In ∪ Δn"""
        if self.negative_delta is None:
            return self.negative
        return self.negative.plus(self.negative_delta)

    def readings(self, rule: CompiledRule) -> Iterator[Reading]:
        """The ways to read a rule; no instance is found by two of them."""
        absent = [(pattern, self.negative) for pattern in rule.negated]
        if self.delta is None and self.negative_delta is None:
            yield Reading([(pattern, self.facts) for pattern in rule.body], absent)
        if self.delta is not None:
            # the first fact of Δp stands at position i
            for i, pattern in enumerate(rule.body):
                before = [(p, self.old) for p in rule.body[:i]]
                after = [(p, self.facts) for p in rule.body[i + 1 :]]
                yield Reading([(pattern, self.delta), *before, *after], absent)
        if self.negative_delta is not None:
            # no fact of Δp; the first negated atom that matches in Δn stands at position k
            for k, pattern in enumerate(rule.negated):
                yield Reading(
                    [(p, self.old) for p in rule.body],
                    [*((p, self.negative_before) for p in rule.negated[:k]), *absent[k:]],
                    [(pattern, self.negative_delta)],
                )


def body_readings(
    rule: CompiledRule, within: SparkFacts, unproved: SparkFacts | None, several: bool
) -> Iterator[tuple[Atoms, Atoms]]:
    """The body in `within`; or exactly one of its facts (at least two if `several`) not there.

    Each reading comes with what must not match: those atoms in `within`.
    """
    if unproved is None:
        yield [(pattern, within) for pattern in rule.body], []
        return
    places = [at for at, p in enumerate(rule.body) if unproved.table(p.predicate) is not None]
    for size in range(2, len(places) + 1) if several else (1,):
        for chosen in combinations(places, size):
            yield (
                [(p, unproved if at in chosen else within) for at, p in enumerate(rule.body)],
                [(rule.body[at], within) for at in chosen],
            )


class Joins:
    """Joins of one `derive` or `support`; the groups of an aggregate are computed once."""

    def __init__(self, negative: SparkFacts, dictionary: Dictionary, workspace: Workspace) -> None:
        self._negative = negative
        self._dictionary = dictionary
        self._workspace = workspace
        self._groups: dict[Grouping, DataFrame | None] = {}

    def instances(self, rule: CompiledRule, reading: Reading) -> DataFrame | None:
        """The rule's instances, a row each; None if there are surely none."""
        # … :- b₁, …, bₙ, groups …
        found = self.positive(reading.positive, rule.groupings)
        # …, NOT c₁, …, NOT cₘ
        for pattern, source in reading.absent:
            if found is not None and (others := matches(pattern, source)) is not None:
                found = _semi_join(found, others, pattern, rule.bound, "left_anti")
        # … where a NOT c was false before
        for pattern, source in reading.present:
            others = matches(pattern, source)
            if found is None or others is None:
                return None
            found = _semi_join(found, others, pattern, rule.bound, "left_semi")
        # …, FILTER(…)
        for condition in rule.conditions:
            if found is not None:
                found = self._filter(found, condition)
        return found

    def positive(self, atoms: Atoms, groupings: Sequence[Grouping] = ()) -> DataFrame | None:
        """The join of atoms and groups; None if it is surely empty."""
        parts: list[DataFrame] = []
        checks: list[DataFrame] = []  # atoms without variables
        for pattern, source in atoms:
            frame = matches(pattern, source)
            if frame is None:
                return None
            (parts if pattern.variables else checks).append(frame)
        for grouping in groupings:
            groups = self._grouped(grouping)
            if groups is None:
                return None
            parts.append(groups)
        found: DataFrame | None = None
        bound: set[str] = set()
        while parts:
            # In the order of the atoms, but those that join with what is bound come first.
            at = next((n for n, part in enumerate(parts) if bound & {*part.columns}), 0)
            part = parts.pop(at)
            shared = [name for name in part.columns if name in bound]
            if found is None:
                found = part
            else:
                found = found.join(part, shared) if shared else found.crossJoin(part)
            bound |= {*part.columns}
        found = self._workspace.one_row if found is None else found.withColumn(UNIT, f.lit(0))
        for check in checks:
            found = found.join(check, f.lit(True), "left_semi")
        return found

    def _filter(self, found: DataFrame, condition: Condition) -> DataFrame | None:
        """The rows for which the condition holds."""
        names = variables(condition.variables)
        if not names:
            return found if holds(condition.expression, {}, 1, self._dictionary)[0] else None
        rows = from_arrow(found.select(*names).distinct().toArrow(), len(names))
        values = {number: rows[:, at] for at, number in enumerate(condition.variables)}
        true = rows[holds(condition.expression, values, len(rows), self._dictionary)]
        return found.join(self._workspace.frame(true, names), names) if len(true) else None

    def _grouped(self, grouping: Grouping) -> DataFrame | None:
        if grouping not in self._groups:
            self._groups[grouping] = self._compute_groups(grouping)
        return self._groups[grouping]

    def _compute_groups(self, grouping: Grouping) -> DataFrame | None:
        """The groups that have all their values, with the rule's variables as columns."""
        # AGGREGATE(b₁, …, bₙ ON group BIND …)
        found = self.positive([(pattern, self._negative) for pattern in grouping.patterns])
        if found is None:
            return None
        # A row for every combination of the atoms' variables, also of those that are not used.
        used = [*dict.fromkeys([*grouping.group, *(inner for _, inner in grouping.functions)])]
        rows = from_arrow(found.select(*variables(used)).toArrow(), len(used))
        if not len(rows):
            return None
        keys = rows[:, [used.index(inner) for inner in grouping.group]]
        if grouping.group:
            groups, number = np.unique(keys, axis=0, return_inverse=True)
        else:
            groups, number = keys[:1], np.zeros(len(rows), np.int64)
        number = number.reshape(-1)
        order = np.argsort(number, kind="stable")
        results = [
            aggregate(
                function,
                rows[order, used.index(inner)],
                number[order],
                len(groups),
                self._dictionary,
            )
            for function, inner in grouping.functions
        ]
        table = np.column_stack([groups, *results])
        table = table[(table != NO_VALUE).all(axis=1)]
        # A group variable may be named twice; its values are the same.
        places = [grouping.outer.index(number) for number in dict.fromkeys(grouping.outer)]
        names = variables([grouping.outer[at] for at in places])
        return self._workspace.frame(table[:, places], names) if len(table) else None


def matches(pattern: Pattern, source: SparkFacts) -> DataFrame | None:
    """The facts that match a pattern, with its variables as columns; None if surely none do."""
    table = source.table(pattern.predicate)
    if table is None:
        return None
    names = columns(table.arity)
    first: dict[Argument, str] = {}
    conditions = []
    for name, argument in zip(names, pattern.arguments, strict=False):
        if argument < 0:
            conditions.append(f"{name} = {constant_id(argument)}L")
        elif first.setdefault(argument, name) != name:
            conditions.append(f"{name} = {first[argument]}")
    frame = table.frame.where(" AND ".join(conditions)) if conditions else table.frame
    if not first:
        return frame
    return frame.selectExpr(*(f"{name} AS v{number}" for number, name in first.items()))


def _semi_join(
    found: DataFrame, others: DataFrame, pattern: Pattern, bound: int, how: str
) -> DataFrame:
    """The bindings with (or without) a match; variables from `bound` on are existential."""
    shared = variables([number for number in pattern.variables if number < bound])
    if not shared:
        return found.join(others.limit(1), f.lit(True), how)
    return found.join(others.select(*shared), shared, how)


def head_rows(
    rule: CompiledRule, instances: DataFrame, relation: int, width: int, dictionary: Dictionary
) -> DataFrame:
    """The head of each instance: `KEYS`, then the arguments, filled up with -1 to `width`.

    Where the property or class is a variable, its value decides what predicate a row belongs to.
    """
    values = [f"v{a}" if a >= 0 else f"{constant_id(a)}L" for a in rule.head.arguments]
    predicate = rule.head.predicate
    property_, member_of = "-1L", "-1L"
    if predicate == TRIPLES:
        subject, property_, object_ = values
        is_type = f"{property_} = {dictionary.id(TYPE)}L"
        member_of = f"IF({is_type}, {object_}, -1L)"
        values = [subject, f"IF({is_type}, -1L, {object_})"]
    elif predicate.relation == TRIPLE:
        assert predicate.property is not None, "or it would be TRIPLES"
        property_ = f"{dictionary.id(predicate.property)}L"
        if predicate == TYPES:
            member_of = values.pop()
        elif predicate.member_of is not None:
            member_of = f"{dictionary.id(predicate.member_of)}L"
    values += ["-1L"] * (width - len(values))
    named = zip(
        (*KEYS, *columns(width)), (f"{relation}L", property_, member_of, *values), strict=True
    )
    return instances.selectExpr(*(f"{value} AS {name}" for name, value in named))


def bindings(instances: DataFrame, bound: int) -> Ids:
    """The values of the rule's variables for each instance."""
    names = variables(range(bound)) or [UNIT]
    return distinct(from_arrow(instances.select(*names).toArrow(), bound))
