"""Every kernel equals a few lines of plain numpy or Python."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.engines.columnar import bit_matrix, collector, kernels, sets
from corollary.engines.columnar.collector import Projection
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import Packing, Run, as_set
from corollary.testing import thresholds

small = st.integers(0, 40)
wide = st.one_of(small, st.integers(0, 2**32 - 2))
keys = st.one_of(small, st.integers(0, 2**64 - 1))


def array(numbers: list[int]) -> Keys:
    return np.array(numbers, np.uint64)


key_sets = st.lists(keys, max_size=60, unique=True).map(lambda numbers: array(sorted(numbers)))
small_sets = st.lists(small, max_size=30, unique=True).map(lambda numbers: array(sorted(numbers)))
pairs = st.lists(st.tuples(small, small), max_size=60, unique=True).map(
    lambda found: array(sorted(x << 32 | y for x, y in found))
)
wide_pairs = st.lists(st.tuples(wide, wide), max_size=40, unique=True).map(
    lambda found: array(sorted(x << 32 | y for x, y in found))
)


def halves(a: Keys) -> list[tuple[int, int]]:
    return [(int(x) >> 32, int(x) & 0xFFFFFFFF) for x in a]


@given(key_sets, key_sets)
def test_set_operations(a: Keys, b: Keys) -> None:
    assert np.array_equal(sets.merge(a, b), np.union1d(a, b))
    assert np.array_equal(sets.select(a, b, True), np.intersect1d(a, b))
    assert np.array_equal(sets.select(a, b, False), np.setdiff1d(a, b))


@pytest.mark.parametrize("factor", [1, 100])
def test_set_operations_of_unequal_sizes(factor: int) -> None:
    rng = np.random.default_rng(factor)
    a = np.unique(rng.integers(0, 10**6, 1000, np.uint64))
    b = np.unique(rng.integers(0, 10**6, 1000 * factor, np.uint64))
    for x, y in ((a, b), (b, a)):
        assert np.array_equal(sets.select(x, y, True), np.intersect1d(x, y))
        assert np.array_equal(sets.select(x, y, False), np.setdiff1d(x, y))


@given(st.lists(keys, max_size=60).map(array), key_sets)
def test_membership(probes: Keys, a: Keys) -> None:
    mask = np.zeros(len(probes), bool)
    kernels.member(probes, a, mask)
    assert np.array_equal(mask, np.isin(probes, a))


@given(st.lists(keys, max_size=60).map(array), small_sets)
def test_membership_by_bitmap(probes: Keys, a: Keys) -> None:
    mask = np.zeros(len(probes), bool)
    bits = sets.bitmap(a) if len(a) else np.zeros(1, np.uint64)
    kernels.member_bitmap(probes, bits, mask)
    assert np.array_equal(mask, np.isin(probes, a))
    narrow = (probes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    mask[:] = False
    kernels.member_bitmap(narrow, bits, mask)
    assert np.array_equal(mask, np.isin(narrow, a))


@given(pairs)
def test_projections(a: Keys) -> None:
    assert sets.numbers([a, a[::-1]], 41).tolist() == sorted({y for _, y in halves(a)})
    assert sets.unique(a, np.uint64(32)).tolist() == sorted({x for x, _ in halves(a)})
    either = sorted({z for pair in halves(a) for z in pair})
    assert sets.numbers([a], 41, subjects=[a]).tolist() == either
    for spread in (0, 1 << 12) if either else ():  # made and merged, or marked
        with thresholds(head_bitmap_sparsity_limit=spread):
            both = [Projection(Run(a), subjects=True), Projection(Run(a), subjects=False)]
            assert collector.unite([], [], 1, both).keys.tolist() == either
            known = [Run(sets.unique(a, np.uint64(32)))]
            left = sorted({*either} - {x for x, _ in halves(a)})
            assert collector.unite([], [], 1, both, known).keys.tolist() == left
    assert kernels.largest_low(a) == max((y for _, y in halves(a)), default=0)


@given(st.lists(keys, max_size=60).map(array))
def test_as_set(a: Keys) -> None:
    assert np.array_equal(as_set(a), np.unique(a))
    assert np.array_equal(as_set(np.sort(a)), np.unique(a))
    assert np.array_equal(as_set(np.unique(a)), np.unique(a))


@given(wide_pairs)
def test_swap(a: Keys) -> None:
    assert sets.transpose(a).tolist() == sorted(y << 32 | x for x, y in halves(a))
    with thresholds(radix_sort_pairs_minimum=0):
        assert sets.transpose(a).tolist() == sorted(y << 32 | x for x, y in halves(a))


@given(wide_pairs, st.lists(wide, max_size=30).map(array))
def test_ranges(a: Keys, probes: Keys) -> None:
    low, high = np.zeros(len(probes), np.int64), np.zeros(len(probes), np.int64)
    kernels.ranges(a, np.uint64(32), probes, low, high)
    for i, x in enumerate(probes.tolist()):
        assert a[low[i] : high[i]].tolist() == [k for k in a.tolist() if k >> 32 == x]


@given(pairs, st.lists(wide, max_size=30).map(array))
def test_ranges_by_offsets(a: Keys, probes: Keys) -> None:
    size = int(a[-1] >> np.uint64(32)) + 1 if len(a) else 0
    low, high = np.zeros(len(probes), np.int64), np.zeros(len(probes), np.int64)
    kernels.ranges_by_offsets(kernels.offsets(a, np.uint64(32), size), probes, low, high)
    for i, x in enumerate(probes.tolist()):
        assert a[low[i] : high[i]].tolist() == [k for k in a.tolist() if k >> 32 == x]


@given(st.lists(st.tuples(small, st.integers(0, 5)), max_size=20))
def test_expand(stretches: list[tuple[int, int]]) -> None:
    low = np.array([start for start, _ in stretches], np.int64)
    high = low + np.array([length for _, length in stretches], np.int64)
    rows, places = kernels.expand(low, high, int((high - low).sum()))
    expected = [(i, j) for i in range(len(low)) for j in range(low[i], high[i])]
    assert list(zip(rows.tolist(), places.tolist(), strict=True)) == expected


@given(pairs, pairs)
def test_compose(left: Keys, right: Keys) -> None:
    size = int(right[-1] >> np.uint64(32)) + 1 if len(right) else 0
    starts = kernels.offsets(right, np.uint64(32), size)
    found, instances, _ = kernels.compose(left, starts, right, np.zeros(41, np.int64), 0)
    kernels.sort_groups(found)
    both = [(x, z) for x, y in halves(left) for v, z in halves(right) if v == y]
    assert found.tolist() == sorted({x << 32 | z for x, z in both})
    assert instances == len(both) == kernels.fan_out(left, starts).sum()


@given(pairs, pairs)
def test_matrices(left: Keys, right: Keys) -> None:
    ids: npt.NDArray[np.uint32] = np.arange(41, dtype=np.uint32)
    matrices = [bit_matrix.Matrix(41) for _ in range(3)]
    for matrix, content in zip(matrices, (left, right), strict=False):
        bit_matrix.set_bits(matrix.bits, ids.astype(np.int64), content)
        matrix.measure()
        assert bit_matrix.pairs(matrix.bits, ids).tolist() == content.tolist()
        assert matrix.counts.sum() == len(content)
    a, b, target = matrices
    instances = bit_matrix.or_rows(a.bits, b.bits, b.counts, b.first, b.last, target.bits, 0, 41)
    both = [(x, z) for x, y in halves(left) for v, z in halves(right) if v == y]
    assert bit_matrix.pairs(target.bits, ids).tolist() == sorted({x << 32 | z for x, z in both})
    assert instances == len(both)


@given(st.integers(0, 5), st.lists(st.lists(wide, min_size=5, max_size=5), max_size=30), small)
def test_packing(arity: int, rows: list[list[int]], cut: int) -> None:
    packing = Packing()
    rows = [row[:arity] for row in rows]
    packed: list[int] = []
    for part in (rows[:cut], rows[cut:]):  # numbers given earlier stay
        columns = [np.array([row[p] for row in part], np.uint32) for p in range(arity)]
        packed += packing.pack(columns, len(part)).tolist()
    assert len(set(packed)) == len({tuple(row) for row in rows})
    columns = packing.unpack(array(packed), arity)
    assert [tuple(c[i] for c in columns) for i in range(len(rows))] == [tuple(row) for row in rows]
