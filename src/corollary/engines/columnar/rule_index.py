"""An index of rules by the predicates and constants of their bodies and heads.

A small change affects few rules of a large stratum. Scanning every rule in every round would make a
cycle of n rules take n² steps; so would scanning every rule that reads `p`, if each reads another
constant, as in `p(1) :- p(0) . p(2) :- p(1) . …`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from corollary.core.compile import CompiledRule, Pattern, constant_id
from corollary.core.dictionary import Ids
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import Packing, Relation
from corollary.engines.columnar.tuning import tuning
from corollary.lang.stratify import Predicate

_CACHED_INDEXES = 256  # rule sequences per engine


class RuleIndex:
    """Rules by the facts that they read and derive; results keep the order of the rules."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.rules = rules
        self._bodies = _Positions(rule.body for rule in rules)
        self._negated = _Positions(rule.negated for rule in rules)
        self._heads = _Positions((rule.head,) for rule in rules)

    def reading(
        self, changed: ColumnarFacts, removed: ColumnarFacts | None = None
    ) -> Sequence[CompiledRule]:
        """The rules that may read one of these facts, or negate one of `removed`."""
        positions = self._bodies.of(changed)
        if removed is not None:
            positions |= self._negated.of(removed)
        return self._at(positions)

    def deriving(self, heads: ColumnarFacts) -> Sequence[CompiledRule]:
        """The rules that may derive one of these facts."""
        return self._at(self._heads.of(heads))

    def _at(self, positions: set[int]) -> Sequence[CompiledRule]:
        if len(positions) == len(self.rules):
            return self.rules
        return [self.rules[at] for at in sorted(positions)]


class _Positions:
    """Positions of rules by some of their atoms."""

    def __init__(self, atoms: Iterable[Iterable[Pattern]]) -> None:
        narrow: dict[Predicate, list[tuple[Pattern, int]]] = {}
        self._wide: set[int] = set()
        for at, patterns in enumerate(atoms):
            for pattern in patterns:
                if pattern.wide:
                    self._wide.add(at)
                else:
                    narrow.setdefault(pattern.predicate, []).append((pattern, at))
        self._by_predicate = {p: _AtomsOfPredicate(found) for p, found in narrow.items()}

    def of(self, facts: ColumnarFacts) -> set[int]:
        positions = set(self._wide)
        packing = facts.space.packing
        for predicate, relation in facts.relations.items():
            if (atoms := self._by_predicate.get(predicate)) is not None:
                atoms.collect(relation, packing, positions)
        return positions


class _AtomsOfPredicate:
    """Positions of rules by the constants of their atoms of one predicate.

    All constants of an atom count: the first may be the same everywhere, as in
    `p(7, 1) :- p(7, 0) . p(7, 2) :- p(7, 1) . …`.
    """

    def __init__(self, atoms: Iterable[tuple[Pattern, int]]) -> None:
        self._variable: list[int] = []  # positions of the atoms without constants
        self._constant: list[int] = []
        forms: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
        for pattern, at in atoms:
            places = tuple(i for i, argument in enumerate(pattern.arguments) if argument < 0)
            if not places:
                self._variable.append(at)
                continue
            constants = tuple(constant_id(pattern.arguments[place]) for place in places)
            forms.setdefault(places, {}).setdefault(constants, []).append(at)
            self._constant.append(at)
        self._forms = [_Form(places, rules) for places, rules in forms.items()]

    def collect(self, relation: Relation, packing: Packing, positions: set[int]) -> None:
        """Add the positions of the atoms that may match one of the facts."""
        positions.update(self._variable)
        if not self._constant:
            return
        if len(relation) // len(self._constant) > tuning.rows_of_constant_limit:
            positions.update(self._constant)
            return
        columns = packing.unpack(relation.keys(), relation.arity)
        for form in self._forms:
            form.collect(columns, positions)


class _Form:
    """Positions of rules by the constants of atoms that have them at the same places."""

    def __init__(self, places: tuple[int, ...], rules: dict[tuple[int, ...], list[int]]) -> None:
        self._places = places
        self._rules = list(rules.values())
        # Per place, the numbers of the constants up to there: a rank and a constant to a rank.
        self._levels: list[Keys] = []
        constants = np.array(list(rules), np.uint64).reshape(len(rules), len(places))
        ranks = np.zeros(len(rules), np.uint64)
        for column in constants.T:
            level, inverse = np.unique(_numbered(ranks, column), return_inverse=True)
            ranks = inverse.astype(np.uint64)
            self._levels.append(level)
        self._rules = [self._rules[at] for at in np.argsort(ranks)]

    def collect(self, columns: Sequence[Ids], positions: set[int]) -> None:
        """Add the positions of the atoms that have the constants of one of the rows."""
        rows: slice | np.ndarray[tuple[int], np.dtype[np.intp]] = slice(None)
        ranks = np.zeros(len(columns[0]), np.uint64)
        for place, level in zip(self._places, self._levels, strict=True):
            keys = _numbered(ranks, columns[place][rows])
            found = np.searchsorted(level[:-1], keys)
            hits = np.flatnonzero(level[found] == keys)
            ranks = found[hits].astype(np.uint64)
            rows = hits if isinstance(rows, slice) else rows[hits]
        for rank in np.unique(ranks).tolist():
            positions.update(self._rules[rank])


def _numbered(ranks: Keys, constants: Ids | Keys) -> Keys:
    """One number for each rank and constant."""
    return (ranks << np.uint64(32)) | constants.astype(np.uint64)


class RuleIndexes:
    """A cache of the indexes of rule sequences; strata pass the same sequence each time."""

    def __init__(self) -> None:
        self._cache: dict[int, RuleIndex] = {}

    def of(self, rules: Sequence[CompiledRule]) -> RuleIndex | None:
        """The index of a sequence; None if it is short enough to be scanned."""
        if len(rules) <= tuning.scanned_rules_limit:
            return None
        cached = self._cache.get(id(rules))
        if cached is not None and cached.rules is rules:
            return cached
        index = RuleIndex(rules)
        if isinstance(rules, tuple):  # a list may change
            if len(self._cache) >= _CACHED_INDEXES:
                del self._cache[next(iter(self._cache))]
            self._cache[id(rules)] = index
        return index
