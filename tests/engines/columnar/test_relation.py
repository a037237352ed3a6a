"""A relation is a set, however it came about, and shares what it can."""

from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from corollary.engines.columnar import kernels, sets
from corollary.engines.columnar.layers import layers
from corollary.engines.columnar.relation import Relation, as_set
from corollary.testing import thresholds

keys = st.lists(st.integers(0, 60), max_size=25)


class Sets(RuleBasedStateMachine):
    """Relations beside Python sets; every version stays what it was."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: list[tuple[Relation, set[int]]] = [(Relation(1), set())]

    def other(self, numbers: list[int], split: int) -> tuple[Relation, set[int]]:
        """A second relation, of two runs and a few tombstones."""
        parts = [as_set(np.array(part, np.uint64)) for part in (numbers[:split], numbers[split:])]
        whole = Relation.of(1, parts[0]).union(Relation.of(1, parts[1]))
        gone = set(numbers[::5])
        return whole.difference(Relation.of(1, as_set(np.array(sorted(gone), np.uint64)))), (
            set(numbers) - gone
        )

    def add(self, relation: Relation, expected: set[int]) -> None:
        self.versions.append((relation, expected))
        for version, content in self.versions:
            assert version.keys().tolist() == sorted(content)
            assert len(version) == len(content)
            probes = np.arange(62, dtype=np.uint64)
            assert version.contains(probes).tolist() == [x in content for x in range(62)]

    @rule(numbers=keys, split=st.integers(0, 25), at=st.integers(0, 10**6))
    def union(self, numbers: list[int], split: int, at: int) -> None:
        relation, content = self.versions[at % len(self.versions)]
        other, more = self.other(numbers, split)
        self.add(relation.union(other), content | more)

    @rule(numbers=keys, split=st.integers(0, 25), at=st.integers(0, 10**6))
    def difference(self, numbers: list[int], split: int, at: int) -> None:
        relation, content = self.versions[at % len(self.versions)]
        other, less = self.other(numbers, split)
        self.add(relation.difference(other), content - less)

    @rule(gone=keys, new=keys, at=st.integers(0, 10**6))
    def changed(self, gone: list[int], new: list[int], at: int) -> None:
        relation, content = self.versions[at % len(self.versions)]
        less, more = set(gone), set(new)
        after, went, came = relation.changed(
            *(as_set(np.array(sorted(part), np.uint64)) for part in (less, more))
        )
        assert went.tolist() == sorted((content & less) - more)
        assert came.tolist() == sorted(more - content)
        self.add(after, (content - less) | more)
        # What is known of these is asked of all versions, before the change and after it.
        self.add(Relation.of(1, went), (content & less) - more)
        self.add(Relation.of(1, came), more - content)
        again = relation.replaced(went, came)
        assert again.keys().tolist() == after.keys().tolist()

    @rule(at=st.integers(0, 10**6), parts=st.integers(1, 70))
    def slices(self, at: int, parts: int) -> None:
        relation, content = self.versions[at % len(self.versions)]
        found = relation.sliced(parts)
        assert len(found) <= parts
        assert [key for part in found for key in part.keys().tolist()] == sorted(content)
        for part in found[:3]:
            self.add(part, {*part.keys().tolist()})

    @rule(first=st.integers(0, 10**6), second=st.integers(0, 10**6))
    def versions_together(self, first: int, second: int) -> None:
        (a, x), (b, y) = (self.versions[at % len(self.versions)] for at in (first, second))
        self.add(a.intersection(b), x & y)
        self.add(a.difference(b), x - y)
        self.add(a.union(b), x | y)


class LongRuns(Sets):
    """The same as if all runs were long: those that change much are written again."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = ExitStack()
        self.limits.enter_context(thresholds(short_run_keys_limit=0))

    def teardown(self) -> None:
        self.limits.close()


TestSets = Sets.TestCase
TestLongRuns = LongRuns.TestCase


def test_shares_rewritten_runs() -> None:
    first = np.arange(10_000, dtype=np.uint64)
    gone, new = first[::2].copy(), first[::3] + np.uint64(20_000)
    one, two = Relation.of(1, first), Relation.of(1, first)
    two.runs = one.runs
    after, went, came = one.changed(gone, new)
    assert two.replaced(went, came).runs == after.runs
    left, comes = Relation.of(1, went), Relation.of(1, came)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sets, "select", None)  # nothing is compared
        assert left.intersection(one) is left
        assert comes.difference(one) is comes
        assert not len(left.intersection(after))
        assert left.difference(after) is left
        assert comes.intersection(after) is comes
    assert after.keys().tolist() == sorted({*first.tolist()} - {*gone.tolist()} | {*new.tolist()})


@pytest.mark.parametrize("size", [10, 3_000, 40_000])
def test_many_small_changes(size: int) -> None:
    """Short runs, long ones and tombstones: each version is what sets say, for searches too."""
    random = np.random.default_rng(size)
    relation, content = Relation(2), set[int]()
    for step in range(120):
        count = int(random.integers(1, size if step % 40 == 0 else 60))
        new = set(random.integers(0, 4 * size, count).tolist())
        gone = set(random.choice(sorted(content), count // 2).tolist()) if content else set()
        gone |= set(random.integers(0, 4 * size, 3).tolist())
        relation, went, came = relation.changed(
            *(np.array(sorted(part), np.uint64) for part in (gone, new))
        )
        assert set(went.tolist()) == (content & gone) - new
        assert set(came.tolist()) == new - content
        content = (content - gone) | new
        assert relation.keys().tolist() == sorted(content)
        assert relation.run().transposed.keys.tolist() == sorted(
            (key << 32 | key >> 32) & (2**64 - 1) for key in content
        )
        found = layers(relation)
        kept = set(found.keys.tolist()) - set(found.tombstones.tolist())
        assert kept | set(found.more.tolist()) == content
        assert kept.isdisjoint(found.more.tolist())
        assert len(relation.runs) <= 2 + len(relation) // 2048


@given(st.lists(st.integers(0, 3_000), max_size=600), st.lists(st.integers(0, 3_000), max_size=8))
def test_few_keys_among_many(many: list[int], few: list[int]) -> None:
    a, b = (np.unique(np.array(part, np.uint64)) for part in (many, few))
    out = np.zeros(len(a) + len(b), np.uint64)
    assert out[: kernels.merge_by_insertion(a, b, out)].tolist() == sorted({*many, *few})
    assert sets.merge(a, b).tolist() == sorted({*many, *few})


def test_a_small_update_shares_the_large_run() -> None:
    large = Relation.of(2, np.arange(10**6, dtype=np.uint64) << np.uint64(32))
    one = Relation.of(2, np.array([5], np.uint64))
    more = large.union(one)
    assert more.runs[0] is large.runs[0]
    assert len(more) == 10**6 + 1
    less = more.difference(large.intersection(Relation.of(2, np.array([0], np.uint64))))
    assert less.runs[0] is large.runs[0]
    assert len(less) == 10**6


def test_revives_tombstones() -> None:
    large = Relation.of(1, np.arange(100, dtype=np.uint64))
    seven = Relation.of(1, np.array([7], np.uint64))
    again = large.difference(seven).union(seven)
    assert again.runs[0] is large.runs[0]
    assert again.keys().tolist() == list(range(100))


@given(keys)
def test_runs_are_few(numbers: list[int]) -> None:
    relation = Relation(1)
    for number in numbers:
        relation = relation.union(Relation.of(1, np.array([number], np.uint64)))
    assert relation.keys().tolist() == sorted(set(numbers))
    assert len(relation.runs) <= 4
