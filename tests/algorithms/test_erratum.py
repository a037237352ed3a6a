"""An erratum of Hu, Motik, Horrocks (AAAI 2019): line 28 of Algorithm 3, as printed, is wrong.

The classes below follow Algorithms 2 to 6 line by line, for a stratum with two modules: a
transitive relation, and rules that copy the facts of one node to another. They share no code with
Corollary.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import corollary as co
from corollary.algorithms.registry import ALGORITHMS

Pair = tuple[int, int]
Pairs = set[Pair]


class Transitive:
    """R(x, z) :- R(x, y), R(y, z): Algorithms 4, 5 and 6."""

    def __init__(self) -> None:
        self.external: Pairs = set()  # X_R

    def add(self, facts: Pairs, delta: Pairs) -> Pairs:
        self.external |= delta
        derived: Pairs = set()
        queue = list(delta)

        def derive(pair: Pair) -> None:
            if pair not in facts | derived:
                derived.add(pair)
                queue.append(pair)

        for u, v in delta:
            for middle, w in facts - delta:
                if middle == v:
                    derive((u, w))
        while queue:
            v, w = queue.pop()
            for u, middle in self.external:
                if middle == v:
                    derive((u, w))
        return derived

    def delete(self, facts: Pairs, delta: Pairs, certain: Pairs) -> Pairs:
        self.external -= delta
        overdeleted: Pairs = set()
        seen, queue = set(delta), list(delta)

        def reach(pair: Pair) -> None:
            if pair in facts - seen:
                seen.add(pair)
                queue.append(pair)
                if pair not in certain:  # C_nr = 0
                    overdeleted.add(pair)

        for u, v in delta:
            for middle, w in facts:
                if middle == v:
                    reach((u, w))
        while queue:
            v, w = queue.pop()
            for u, middle in self.external:
                if middle == v:
                    reach((u, w))
        return overdeleted - delta

    def rederive(self, facts: Pairs, delta: Pairs) -> Pairs:
        return {pair for pair in delta if pair[1] in self._reachable(pair[0])}

    def _reachable(self, node: int) -> set[int]:
        reached: set[int] = set()
        frontier = {node}
        while frontier:
            frontier = {y for x, y in self.external if x in frontier} - reached
            reached |= frontier
        return reached


class Copies:
    """R(a, x) :- R(b, x), for some constants a and b: semi-naive evaluation."""

    def __init__(self, rules: Iterable[Pair]) -> None:
        self.rules = list(rules)

    def _step(self, facts: Pairs) -> Pairs:
        return {(a, x) for a, b in self.rules for node, x in facts if node == b}

    def add(self, facts: Pairs, delta: Pairs) -> Pairs:
        derived: Pairs = set()
        new = delta
        while new:
            new = self._step(new) - facts - derived
            derived |= new
        return derived

    def delete(self, facts: Pairs, delta: Pairs, certain: Pairs) -> Pairs:
        overdeleted: Pairs = set()
        new = delta
        while new:
            new = (self._step(new) & facts) - certain - delta - overdeleted
            overdeleted |= new
        return overdeleted

    def rederive(self, facts: Pairs, delta: Pairs) -> Pairs:
        derived: Pairs = set()
        while new := (self._step(facts | derived) & delta) - derived:
            derived |= new
        return derived


class Materialization:
    """DRed^c-Mod over these two modules; the explicit facts are the certain ones."""

    def __init__(self, rules: Iterable[Pair], *, as_printed: bool) -> None:
        self.modules: list[Transitive | Copies] = [Transitive(), Copies(rules)]
        self.as_printed = as_printed
        self.explicit: Pairs = set()
        self.facts: Pairs = set()

    def insert(self, inserted: Pairs) -> None:
        self.explicit |= inserted
        self._add(inserted)

    def _add(self, delta: Pairs) -> None:
        """Lines 11 to 15 of Algorithm 2, which are lines 36 to 40 of Algorithm 3."""
        own: list[Pairs] = [set() for _ in self.modules]
        while delta:
            self.facts |= delta
            own = [
                module.add(self.facts, delta - part)
                for module, part in zip(self.modules, own, strict=True)
            ]
            delta = set().union(*own)

    def delete(self, lost: Pairs) -> None:
        self.explicit -= lost
        deleted: Pairs = set()  # D
        delta = lost
        parts: list[Pairs] = [set() for _ in self.modules]  # Δᵢ
        while delta:  # lines 26 to 30
            inputs = [self._input(delta, parts, at) for at in range(len(parts))]
            remaining = self.facts - (deleted - delta)
            parts = [
                module.delete(remaining, seen, self.explicit)
                for module, seen in zip(self.modules, inputs, strict=True)
            ]
            deleted |= delta
            delta = set().union(*parts) - deleted
        self.facts -= deleted
        rederived = [module.rederive(self.facts, deleted) for module in self.modules]
        self._add(set().union(*rederived))  # lines 33 to 40

    def _input(self, delta: Pairs, parts: list[Pairs], at: int) -> Pairs:
        """Line 28: what module `at` is told of the deleted facts."""
        if self.as_printed or not any(parts):
            return delta - parts[at]
        return set().union(*parts[:at], *parts[at + 1 :])


# R(5, 1) is derived by the copy first, so that it is external to the transitive relation; then
# also by transitivity. Deleting R(4, 1) lets both modules delete it in the same iteration.
RULES = [(5, 4)]
INSERTIONS: list[Pairs] = [{(4, 1)}, {(5, 4)}]


@pytest.mark.parametrize(("as_printed", "survivors"), [(True, {(5, 1)}), (False, set())])
def test_erratum_of_line_28_of_algorithm_3(as_printed: bool, survivors: Pairs) -> None:
    materialization = Materialization(RULES, as_printed=as_printed)
    for inserted in INSERTIONS:
        materialization.insert(inserted)
    assert materialization.facts == {(4, 1), (5, 4), (5, 1)}
    materialization.delete({(4, 1)})
    assert materialization.facts == {(5, 4)} | survivors


@pytest.mark.parametrize("rule", ["r(5, ?x) :- r(4, ?x) .", "r(?x, ?y) :- r(?x, ?y) ."])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("algorithm", sorted({*ALGORITHMS} - {"counting"}))
def test_corollary_is_free_of_the_erratum(algorithm: str, together: bool, rule: str) -> None:
    program = f"r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . {rule}"
    kb = co.KnowledgeBase(program, algorithm=algorithm)
    for inserted in [INSERTIONS[0] | INSERTIONS[1]] if together else INSERTIONS:
        with kb.transaction() as tx:
            tx.insert(" ".join(f"r({x}, {y}) ." for x, y in inserted))
    assert kb.count("r") == 3
    with kb.transaction() as tx:
        tx.delete("r(4, 1) .")
    assert kb.facts("r").to_pydict() == {"arg0": ["5"], "arg1": ["4"], "explicit": [True]}
