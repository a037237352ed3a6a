"""`ToyEngine`: the least that an engine must do, with sets of tuples and nested loops.

It implements what `core.engine` requires and inherits the rest: `close`, `changed` and `replaced`
have defaults there, and the operations on graphs in `core.graph_engine`. All update algorithms,
modules and rule sets run on it, and it keeps the laws of `conformance`. It is slow: every join
scans.

An engine that is to be fast begins with `_Join.rows`, and with how `ToyFacts` finds facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from corollary.core.aggregates import NO_VALUE, aggregate
from corollary.core.calls import computed
from corollary.core.compile import CompiledRule, Grouping, Pattern, constant_id, covers
from corollary.core.delta import (
    DeltaPlan,
    Operand,
    delta_plans,
    full_plan,
    negative_delta_plans,
    unproved_plans,
)
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Counts, Derived, Engine, Facts, Support
from corollary.core.expressions import holds
from corollary.core.tables import argument_columns, scatter
from corollary.lang.stratify import Predicate

Row = tuple[int, ...]
Fact = tuple[Predicate, Row]
Binding = dict[int, int]  # values of variables


class ToyFacts(Facts):
    """A set of facts, by narrow predicate."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self.all = frozenset(facts)
        self.by_predicate: dict[Predicate, list[Row]] = {}
        for predicate, row in sorted(self.all, key=lambda fact: fact[1]):
            self.by_predicate.setdefault(predicate, []).append(row)

    def __len__(self) -> int:
        return len(self.all)

    def predicates(self) -> Collection[Predicate]:
        return self.by_predicate.keys()

    def rows(self, predicate: Predicate) -> Ids:
        rows = self.by_predicate.get(predicate, [])
        return np.array(rows, np.uint32).reshape(len(rows), len(rows[0]) if rows else 0)

    def union(self, other: ToyFacts) -> ToyFacts:
        return ToyFacts(self.all | other.all)

    def difference(self, other: ToyFacts) -> ToyFacts:
        return ToyFacts(self.all - other.all)

    def intersection(self, other: ToyFacts) -> ToyFacts:
        return ToyFacts(self.all & other.all)

    def only(self, predicates: Collection[Predicate]) -> ToyFacts:
        return ToyFacts(f for f in self.all if any(covers(p, f[0]) for p in predicates))

    def without(self, predicates: Collection[Predicate]) -> ToyFacts:
        return self.difference(self.only(predicates))

    def renamed(self, predicate: Predicate, new: Predicate) -> ToyFacts:
        return ToyFacts((new, row) for row in self.by_predicate.get(predicate, []))

    def matching(self, pattern: Pattern, dictionary: Dictionary) -> Iterator[Row]:
        """The arguments of all facts that a pattern reads; wide patterns read many predicates."""
        for predicate in self.by_predicate:
            if covers(pattern.predicate, predicate):
                rows = self.rows(predicate)
                columns = [*rows.T] if rows.shape[1] else []
                if pattern.wide:
                    columns = argument_columns(predicate, rows, dictionary)
                    columns = columns[-len(pattern.arguments) :] if columns else columns
                    if len(pattern.arguments) == 2:  # the member and its class
                        columns = [rows[:, 0], columns[-1]]
                if not columns:
                    yield from [()] * len(rows)
                else:
                    yield from zip(*(column.tolist() for column in columns), strict=True)


class ToyCounts(Counts[ToyFacts]):
    """The number of rule instances of each fact."""

    def __init__(self, numbers: Mapping[Fact, int]) -> None:
        self.numbers = {fact: number for fact, number in numbers.items() if number}

    def plus(self, derived: Derived[ToyFacts]) -> ToyCounts:
        return self._added(derived, 1)

    def minus(self, derived: Derived[ToyFacts]) -> ToyCounts:
        return self._added(derived, -1)

    def _added(self, derived: Derived[ToyFacts], sign: int) -> ToyCounts:
        numbers = Counter(self.numbers)
        for predicate, counts in (derived.counts or {}).items():
            rows = derived.facts.rows(predicate).tolist()
            for row, number in zip(rows, counts.tolist(), strict=True):
                numbers[predicate, tuple(row)] += sign * number
        return ToyCounts(numbers)

    def without(self, predicates: Collection[Predicate]) -> ToyCounts:
        dropped = self.facts().only(predicates).all
        return ToyCounts({f: number for f, number in self.numbers.items() if f not in dropped})

    def positive(self, facts: ToyFacts) -> ToyFacts:
        return ToyFacts(fact for fact in facts.all if self.numbers.get(fact, 0) > 0)

    def of(self, facts: ToyFacts) -> Mapping[Predicate, npt.NDArray[np.int64]]:
        return {
            predicate: np.array([self.numbers.get((predicate, row), 0) for row in rows], np.int64)
            for predicate, rows in facts.by_predicate.items()
        }

    def facts(self) -> ToyFacts:
        return ToyFacts(self.numbers)


class ToyEngine(Engine[ToyFacts]):
    """An engine that scans sets of facts."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary

    def facts(self, tables: Mapping[Predicate, Ids]) -> ToyFacts:
        return ToyFacts((p, tuple(row)) for p, rows in tables.items() for row in rows.tolist())

    def counts(self) -> ToyCounts:
        return ToyCounts({})

    def derive(
        self,
        rules: Sequence[CompiledRule],
        facts: ToyFacts,
        *,
        negative: ToyFacts | None = None,
        delta: ToyFacts | None = None,
        negative_delta: ToyFacts | None = None,
        heads: ToyFacts | None = None,
        counted: bool = False,
    ) -> Derived[ToyFacts]:
        nothing, absent = ToyFacts(()), facts if negative is None else negative
        changed, removed = delta or nothing, negative_delta or nothing
        operands = {
            Operand.FACTS: facts,
            Operand.OLD: facts.difference(changed),
            Operand.DELTA: changed,
            Operand.ABSENT: absent,
            Operand.WIDE_ABSENT: absent.union(removed),
            Operand.REMOVED: removed,
        }
        found: Counter[Fact] = Counter()
        for rule in rules:
            sizes = len(rule.body), len(rule.negated)
            plans: list[DeltaPlan] = [full_plan(*sizes)]
            if delta is not None or negative_delta is not None:
                plans = [*delta_plans(*sizes), *negative_delta_plans(*sizes)]
            for plan in plans:
                join = _Join(self.dictionary, rule, plan, operands)
                for binding in join.bindings():
                    head = join.head(binding)
                    if heads is None or head in heads.all:
                        found[head] += 1
        derived = ToyFacts(found)
        counts = ToyCounts(found).of(derived) if counted else None
        return Derived(derived, found.total(), counts=counts)

    def support(
        self,
        rules: Sequence[CompiledRule],
        heads: ToyFacts,
        *,
        within: ToyFacts,
        negative: ToyFacts | None = None,
        unproved: ToyFacts | None = None,
        several: bool = False,
    ) -> Iterator[Support]:
        others = ToyFacts(()) if unproved is None else unproved.difference(within)
        operands = {
            Operand.FACTS: within,
            Operand.UNPROVED: others,
            Operand.ABSENT: within if negative is None else negative,
        }
        for rule in rules:
            sizes = len(rule.body), len(rule.negated)
            plans = [full_plan(*sizes)]
            if unproved is not None:
                plans = unproved_plans(*sizes, range(len(rule.body)), several=several)
            rows = [
                [binding[variable] for variable in range(rule.bound)]
                for plan in plans
                for join in [_Join(self.dictionary, rule, plan, operands)]
                for binding in join.bindings()
                if join.head(binding) in heads.all
            ]
            yield Support(rule, np.array(rows, np.uint32).reshape(len(rows), rule.bound))


class _Join:
    """The instances of a rule under a plan."""

    def __init__(
        self,
        dictionary: Dictionary,
        rule: CompiledRule,
        plan: DeltaPlan,
        operands: Mapping[Operand, ToyFacts],
    ) -> None:
        self.dictionary = dictionary
        self.rule = rule
        self.plan = plan
        self.operands = operands

    def bindings(self) -> Iterator[Binding]:
        """The values of the variables in each instance."""
        atoms = [
            (pattern.arguments, self.rows(pattern, operand))
            for pattern, operand in zip(self.rule.body, self.plan.body, strict=True)
        ]
        atoms += [(g.outer, self._groups(g)) for g in self.rule.groupings]
        return filter(self._is_instance, _joined({}, atoms))

    def rows(self, pattern: Pattern, operand: Operand) -> list[Row]:
        """The arguments of the facts that an atom reads."""
        return [*self.operands[operand].matching(pattern, self.dictionary)]

    def head(self, binding: Binding) -> Fact:
        """The fact that an instance derives."""
        pattern = self.rule.head
        row = tuple(_value(argument, binding) for argument in pattern.arguments)
        if not pattern.wide:
            return pattern.predicate, row
        columns = [np.array([value], np.uint32) for value in row]
        [(predicate, narrow, _)] = scatter(pattern.predicate, columns, self.dictionary)
        return predicate, tuple(int(column[0]) for column in narrow)

    def _is_instance(self, binding: Binding) -> bool:
        """Compute the values of `BIND`s, then test the filters and the negated atoms."""
        for condition in self.rule.conditions:
            columns = {v: np.array([binding[v]], np.uint32) for v in condition.variables}
            if condition.target is None:
                if not holds(condition.expression, columns, 1, self.dictionary)[0]:
                    return False
                continue
            values, valid = computed(condition.expression, columns, 1, self.dictionary)
            if not valid[0] or binding.setdefault(condition.target, int(values[0])) != values[0]:
                return False
        for at, (pattern, operand) in enumerate(
            zip(self.rule.negated, self.plan.negated, strict=True)
        ):
            if self._matches(pattern, operand, binding):
                return False
            if at == self.plan.removed and not self._matches(pattern, Operand.REMOVED, binding):
                return False
        return True

    def _matches(self, pattern: Pattern, operand: Operand, binding: Binding) -> bool:
        return any(
            True for _ in _joined(binding, [(pattern.arguments, self.rows(pattern, operand))])
        )

    def _groups(self, grouping: Grouping) -> list[Row]:
        """The rows of an aggregate: the values of the group, then the results."""
        atoms = [(p.arguments, self.rows(p, Operand.ABSENT)) for p in grouping.patterns]
        groups: dict[Row, list[Binding]] = {}
        for binding in _joined({}, atoms):
            groups.setdefault(tuple(binding[v] for v in grouping.group), []).append(binding)
        rows = []
        for group, members in groups.items():
            results = [
                aggregate(
                    function,
                    np.array([binding[function.variable] for binding in members], np.uint32),
                    np.zeros(len(members), np.int64),
                    1,
                    self.dictionary,
                )[0]
                for function in grouping.functions
            ]
            if NO_VALUE not in results:
                rows.append((*group, *map(int, results)))
        return rows


def _joined(binding: Binding, atoms: Sequence[tuple[Row, list[Row]]]) -> Iterator[Binding]:
    """Extend a binding by facts for all atoms, in all ways."""
    if not atoms:
        yield dict(binding)
        return
    (arguments, rows), *others = atoms
    for row in rows:
        extended = dict(binding)
        if all(
            (extended.setdefault(a, value) if a >= 0 else constant_id(a)) == value
            for a, value in zip(arguments, row, strict=True)
        ):
            yield from _joined(extended, others)


def _value(argument: int, binding: Binding) -> int:
    return binding[argument] if argument >= 0 else constant_id(argument)
