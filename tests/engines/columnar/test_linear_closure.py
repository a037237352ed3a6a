"""Linear closures at once equal those round by round, whatever the ids and the way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary
from corollary.core.tuning import UNLIMITED
from corollary.engines.columnar import linear_closure
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.testing import thresholds

LEFT = "path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
RIGHT = "path(?x, ?z) :- edge(?x, ?y), path(?y, ?z) ."
TWO = "path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) . path(?x, ?z) :- path(?x, ?y), back(?z, ?y) ."

# Few nodes whose ids need one, two or three levels of bits.
nodes = st.sampled_from([0, 1, 63, 64, 65, 4095, 4096, 262_143, 262_144, 300_000])
pairs = st.lists(st.tuples(nodes, nodes), min_size=1, max_size=25)


# Subject by subject; with bitsets, or lists, that subjects share; a few pairs at a time.
NO_BITSETS = {"bitset_steps_ratio": 0}
NO_LISTS = {"reach_lists_pairs_minimum": UNLIMITED}
WAYS: dict[str, dict[str, int]] = {
    "subjects": NO_BITSETS | NO_LISTS,
    "bitsets": NO_LISTS,
    "small blocks of bitsets": {
        "parallel_pairs_minimum": 0,
        "bitset_narrow_words": 0,
        "bitset_pair_words": UNLIMITED,
        "closure_block_pairs": 2,
    },
    "lists": {"reach_lists_pairs_minimum": 0} | NO_BITSETS,
    "small blocks of lists": {
        "reach_lists_pairs_minimum": 0,
        "parallel_pairs_minimum": 0,
        "reach_list_room": 1,
        "closure_block_pairs": 2,
    }
    | NO_BITSETS,
}


@pytest.mark.parametrize("rules", [LEFT, RIGHT, TWO], ids=["left", "right", "two"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", WAYS)
@given(edges=pairs, start=pairs, back=pairs)
def test_differential_rounds(
    rules: str,
    threads: int,
    way: str,
    edges: list[tuple[int, int]],
    start: list[tuple[int, int]],
    back: list[tuple[int, int]],
) -> None:
    tables = {
        Predicate(name): np.array(rows, np.uint32)
        for name, rows in (("edge", edges), ("path", start), ("back", back))
    }

    def closed() -> tuple[list[list[int]], dict[str, int]]:
        engine = ColumnarEngine(Dictionary(), threads=threads)
        done = materialize(Program.parse(rules), engine.facts(tables), engine)
        return done.facts.rows(Predicate("path")).tolist(), done.statistics.derivations

    with thresholds(**WAYS[way]), pytest.MonkeyPatch.context() as patch:
        at_once = closed()
        patch.setattr(linear_closure, "finish", lambda *arguments: None)
        assert at_once == closed()


def test_shared_rows_of_many_nodes() -> None:
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(0, 3000, (20_000, 2), np.uint32), axis=1)
    tables = {Predicate("edge"): ends[ends[:, 0] < ends[:, 1]]}
    program = Program.parse("path(?x, ?y) :- edge(?x, ?y) . " + LEFT)

    def closed(threads: int) -> tuple[npt.NDArray[np.uint32], dict[str, int]]:
        engine = ColumnarEngine(Dictionary(), threads=threads)
        done = materialize(program, engine.facts(tables), engine)
        return done.facts.rows(Predicate("path")), done.statistics.derivations

    with thresholds(**NO_BITSETS, **NO_LISTS):
        expected, derivations = closed(1)
    for threads in (1, 2):
        with thresholds(parallel_pairs_minimum=1000):
            found, counts = closed(threads)
        assert np.array_equal(found, expected)
        assert counts == derivations


def test_an_update_continues_from_what_is_known() -> None:
    program = Program.parse("path(?x, ?y) :- edge(?x, ?y) . " + LEFT)
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 200, (400, 2), np.uint32)
    engine = ColumnarEngine(Dictionary())
    whole = materialize(program, engine.facts({Predicate("edge"): edges}), engine).facts
    half = materialize(program, engine.facts({Predicate("edge"): edges[:200]}), engine).facts
    again = half.union(engine.facts({Predicate("edge"): edges}))
    assert materialize(program, again, engine).facts.rows(Predicate("path")).tolist() == (
        whole.rows(Predicate("path")).tolist()
    )
