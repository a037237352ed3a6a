"""Sets of ids, by halving and by tables."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.dictionary import Ids
from corollary.core.ids import Contained, contains, in_order, missing_in, together

IDS = st.lists(st.integers(0, 200), max_size=40).map(lambda ids: np.array(ids, np.uint32))


@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=6), st.sampled_from([0, 150, 1 << 26]))
def test_tables_and_halving_agree(pairs: list[tuple[Ids, Ids]], room: int) -> None:
    contained = Contained(room)
    sets = [(in_order(one), two) for one, two in pairs]
    for ids, values in sets * 2:
        expected = [value in {*ids.tolist()} for value in values.tolist()]
        assert contained(ids, values).tolist() == expected
        assert contains(ids, values).tolist() == expected


@given(IDS, IDS)
def test_set_operations(one: Ids, two: Ids) -> None:
    assert together(one, two).tolist() == sorted({*one.tolist(), *two.tolist()})
    assert missing_in(in_order(one), two).tolist() == sorted({*two.tolist()} - {*one.tolist()})
