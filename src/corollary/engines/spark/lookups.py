"""Look up the possible join partners of a few facts in large sets.

The few facts bind variables of a rule, and the bindings restrict the facts that the other atoms may
match to those with one of these values in a column. One job fetches them for all rules, a second
one those of the next atoms, and so on; the embedded engine evaluates the rules over the fetched
facts. These are a superset: no fact that an instance with one of the few facts could use is
missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corollary.core.compile import CompiledRule, Pattern, constant_id, covers
from corollary.core.dictionary import Ids
from corollary.core.ids import Contained, in_order, together
from corollary.core.partial import PartialDictionary
from corollary.engines.spark.base import TooManyFacts
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.task import ANY
from corollary.engines.spark.tuning import tuning
from corollary.lang.stratify import Predicate

Wanted = dict[Predicate, dict[int, Ids] | None]


@dataclass
class _Search:
    """The search for one rule from one atom: candidate bindings, and the pending atoms."""

    values: dict[int, Ids]
    pending: list[Pattern]
    negated: Sequence[Pattern]
    alone: frozenset[Pattern] = frozenset()  # pending atoms for which any match suffices
    equal: Sequence[tuple[int, int]] = ()  # pairs of variables with the same value
    compared: frozenset[int] = frozenset()  # variables that filters read


class Lookups:
    """Looks up the facts of `facts` and `negative` that instances with few facts can use.

    With `any_will_do`, one of several instances with the same head suffices.
    """

    def __init__(
        self,
        facts: SparkFacts,
        negative: SparkFacts | None,
        extra: SparkFacts | None = None,
        *,
        any_will_do: bool = False,
    ) -> None:
        self._facts = facts
        self._negative = facts if negative is None else negative
        self._extra = extra  # further facts that atoms may match
        self._any_will_do = any_will_do
        self._searches: list[_Search] = []
        self._seen: dict[str, Any] = {}
        self._contained = Contained()

    def begin(
        self, rule: CompiledRule, start: Pattern, facts: Any, pending: Sequence[Pattern]
    ) -> None:
        """Start a search at an atom of a rule, or at its head, with facts of the driver."""
        values = self._bound(start, self._tables(facts, start), {})
        if values is not None:
            alone = _alone(rule) if self._any_will_do else frozenset[Pattern]()
            equal, compared = _equal(rule), (v for c in rule.conditions for v in c.variables)
            self._searches.append(
                _Search(values, list(pending), rule.negated, alone, equal, frozenset(compared))
            )

    def run(self) -> tuple[Any, Any] | None:
        """Fetch facts and negative facts for the embedded engine; None if they are too many."""
        try:
            return self._run()
        except TooManyFacts:
            return None

    def _run(self) -> tuple[Any, Any] | None:
        while live := [search for search in self._searches if search.pending]:
            wanted: Wanted = {}
            also: Wanted = {}
            steps = []
            for search in live:
                self._compare(search)
                found = self._next(search)
                if found is None:
                    return None
                pattern, column, ids = found
                alone = pattern in search.alone
                if not self._want(wanted, self._facts, pattern, column, ids, alone=alone):
                    return None
                if self._extra is not None and not self._want(
                    also, self._extra, pattern, column, ids, alone=alone
                ):
                    return None
                steps.append((search, pattern))
            if max(_size(wanted), _size(also)) > tuning.lookup_keys_limit:
                return None
            view = self._view(self._facts, wanted, "f")
            more = None if self._extra is None else self._view(self._extra, also, "x")
            for search, pattern in steps:
                search.pending.remove(pattern)
                parts = self._tables(view, pattern)
                if more is not None:
                    parts += self._tables(more, pattern)
                values = self._bound(pattern, parts, search.values)
                if values is None:
                    search.pending, search.negated = [], ()
                else:
                    search.values = values
        wanted = {}
        for search in self._searches:
            for pattern in search.negated:
                column, ids = _least(pattern, search.values)
                if not self._want(wanted, self._negative, pattern, column, ids):
                    return None
        if _size(wanted) > tuning.lookup_keys_limit:
            return None
        self._prefetch()
        return self._view(self._facts, {}, "f"), self._view(self._negative, wanted, "n")

    def _prefetch(self) -> None:
        """Prefetch the texts that filters read in one job, rather than one job per rule."""
        dictionary = self._facts.run.dictionary
        if not isinstance(dictionary, PartialDictionary):
            return
        ids = [
            search.values[variable]
            for search in self._searches
            for variable in search.compared & search.values.keys()
        ]
        if ids:
            dictionary.prefetch(in_order(np.concatenate(ids)))

    @property
    def extra(self) -> Any | None:
        """The facts of `extra` that were looked up."""
        return None if self._extra is None else self._view(self._extra, {}, "x")

    def _compare(self, search: _Search) -> None:
        """Bind variables whose values equal those of bound variables."""
        terms = self._facts.run.terms
        if terms is None:
            return
        for one, two in search.equal:
            for known, other in ((one, two), (two, one)):
                if known in search.values and other not in search.values:
                    found = terms.same_values(search.values[known])
                    if found is not None:
                        search.values[other] = found

    def _next(self, search: _Search) -> tuple[Pattern, int | None, Ids] | None:
        """Choose the atom with the fewest values in one of its columns."""
        found = [(pattern, *_least(pattern, search.values)) for pattern in search.pending]
        known = [one for one in found if one[1] is not None]
        if known:
            return min(known, key=lambda one: len(one[2]))
        return found[0] if found else None

    def _want(
        self,
        wanted: Wanted,
        facts: SparkFacts,
        pattern: Pattern,
        column: int | None,
        ids: Ids,
        *,
        alone: bool = False,
    ) -> bool:
        """Request the facts that a pattern may match; false if it takes a whole large relation."""
        if facts.base is None:
            return True
        for predicate, count in facts.base.counts.items():
            if not covers(pattern.predicate, predicate):
                continue
            place, chosen = column, ids
            if pattern.wide and column is not None:
                narrow = self._narrowed(pattern, predicate, column, ids)
                if narrow is None:
                    continue
                place = None if narrow < 0 else narrow
            if place is None and count > facts.run.small // 4:
                if not alone:
                    return False
                # One more than the number of removed facts, which do not count.
                place, chosen = ANY, np.array([len(facts.removed.only([predicate])) + 1], np.uint32)
            if place is None:
                wanted[predicate] = None
            elif wanted.get(predicate, {}) is not None:
                places = wanted.setdefault(predicate, {})
                assert places is not None
                before = places.get(place)
                places[place] = chosen if before is None else together(before, chosen)
        return True

    def _narrowed(
        self, pattern: Pattern, predicate: Predicate, column: int, ids: Ids
    ) -> int | None:
        """Return the column of a narrow predicate; -1 for all its facts, None for no fact."""
        if column == 0:
            return 0
        dictionary = self._facts.run.dictionary
        if len(pattern.arguments) == 3 and column == 1:
            assert predicate.property is not None
            return -1 if dictionary.id(predicate.property) in ids else None
        if predicate.member_of is None:
            return 1
        return -1 if dictionary.id(predicate.member_of) in ids else None

    def _tables(self, facts: Any, pattern: Pattern) -> list[list[Ids]]:
        """Return the columns of all facts that a pattern may match."""
        number = self._facts.run.dictionary.id
        parts = []
        for predicate in facts.predicates():
            if not covers(pattern.predicate, predicate):
                continue
            rows = facts.rows(predicate)
            columns = [rows[:, at] for at in range(rows.shape[1])]
            if pattern.wide:
                if predicate.member_of is not None:
                    columns.append(np.full(len(rows), number(predicate.member_of), np.uint32))
                if len(pattern.arguments) == 3:
                    assert predicate.property is not None
                    columns.insert(1, np.full(len(rows), number(predicate.property), np.uint32))
            parts.append(columns)
        return parts

    def _bound(
        self, pattern: Pattern, parts: list[list[Ids]], values: Mapping[int, Ids]
    ) -> dict[int, Ids] | None:
        """Restrict the candidate bindings to matches of a pattern; None if nothing matches."""
        found: dict[int, list[Ids]] = {variable: [] for variable in pattern.variables}
        matched = False
        for columns in parts:
            chosen = np.ones(len(columns[0]) if columns else 1, bool)
            first: dict[int, Ids] = {}
            for argument, column in zip(pattern.arguments, columns, strict=True):
                if argument < 0:
                    chosen &= column == constant_id(argument)
                elif argument in first:
                    chosen &= column == first[argument]
                else:
                    first[argument] = column
                    if argument in values:
                        chosen &= self._contained(values[argument], column)
            if chosen.any():
                matched = True
                for variable, column in first.items():
                    found[variable].append(column[chosen])
        if not matched:
            return None
        return {**values, **{v: in_order(np.concatenate(ids)) for v, ids in found.items() if ids}}

    def _view(self, facts: SparkFacts, wanted: Wanted, name: str) -> Any:
        """Return the facts fetched so far."""
        if facts.base is None:
            return facts.small
        known = self._seen.setdefault(name, facts.run.embedded.facts({}))
        if wanted:
            fetched = facts.base.fetch(wanted, limit=facts.run.looked_up_limit)
            known = self._seen[name] = known.union(fetched)
        return known.difference(facts.removed).union(facts.small)


def _equal(rule: CompiledRule) -> list[tuple[int, int]]:
    """Find the pairs of variables that filters of a rule equate."""
    found = []
    for condition in rule.conditions:
        match condition.expression:
            case ("sameValue", (int(one), int(two))) if one != two:
                found.append((one, two))
    return found


def _alone(rule: CompiledRule) -> frozenset[Pattern]:
    """Find the atoms of a rule that share no variable with the rest of the rule."""
    others = [rule.head, *rule.body, *rule.negated]
    if rule.conditions or rule.groupings:
        return frozenset()
    return frozenset(
        pattern
        for pattern in rule.body
        if not any(
            {*pattern.variables} & {*other.variables} for other in others if other is not pattern
        )
    )


def _size(wanted: Wanted) -> int:
    """Count the requested ids; the same ids in many predicates are sent to tasks once."""
    found = {
        (len(ids), ids.tobytes()) for places in wanted.values() if places for ids in places.values()
    }
    return sum(size for size, _ in found)


def _least(pattern: Pattern, values: Mapping[int, Ids]) -> tuple[int | None, Ids]:
    """Choose the column of a pattern with the fewest possible values."""
    best: tuple[int | None, Ids] = (None, np.zeros(0, np.uint32))
    for column, argument in enumerate(pattern.arguments):
        if argument < 0:
            ids = np.array([constant_id(argument)], np.uint32)
        elif argument in values:
            ids = values[argument]
        else:
            continue
        if best[0] is None or len(ids) < len(best[1]):
            best = column, ids
    return best
