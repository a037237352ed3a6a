"""Every way to compare two closures gives the same, whatever the sizes that choose it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.dictionary import Dictionary
from corollary.engines.columnar import components, relation, reroute
from corollary.engines.columnar.engine import ColumnarEngine
from tests.engines import conformance

WAYS: dict[str, dict[Any, dict[str, int]]] = {
    "rows": {reroute: {"_WORDS": 1 << 40}},
    "searches": {reroute: {"_WORDS": 0}},
    "few sources": {reroute: {"_WORDS": 0, "_ALL": 0, "_LOOKED_UP": 0}},
    "rows of few sources": {reroute: {"_WORDS": 1 << 40, "_ALL": 0}},
    "dead keys": {reroute: {"_WORDS": 0, "_ALL": 0}, relation: {"_SPARSE": 1}},
    "many edges": {components: {"_FEW": 0}},
    "few edges": {components: {"_FEW": 1000}, relation: {"_SPARSE": 1}},
}
LAWS = [law for law in conformance.LAWS if "differ_as" in law.name]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("law", LAWS, ids=[law.name for law in LAWS])
@pytest.mark.parametrize("threads", [1, 2])
@given(data=st.data())
def test_ways_agree(way: str, law: conformance.Law, threads: int, data: st.DataObject) -> None:
    def engine(dictionary: Dictionary) -> ColumnarEngine:
        return ColumnarEngine(dictionary, threads=threads)

    example = data.draw(law.examples)
    with pytest.MonkeyPatch.context() as patch:
        for module, values in WAYS[way].items():
            for name, value in values.items():
                patch.setattr(module, name, value)
        law.check(engine, example)
