"""Builds and updates on Spark give what follows from scratch, whatever the thresholds are."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from corollary import spark as co
from corollary.testing import Crossings, all_thresholds, draw, recorded_crossings, thresholds
from tests.engines.factories import session
from tests.spark.data import embedded, stored
from tests.spark.test_update import SUB, TYPE

pytestmark = [pytest.mark.spark, pytest.mark.long]

SPARK = [name for name, known in all_thresholds().items() if known.layer == "spark"]
# Only updates of stores compare these; the others are crossed in `test_crossings`.
CROSSED = (
    "cached_chunks_facts_limit",
    "cached_chunks_parts_limit",
    "broadcast_later_rows_limit",
    "driver_input_bytes_limit",
    "driver_texts_limit",
)


def limits_of(seed: int) -> dict[str, int]:
    """All thresholds at their minimum, all at their maximum, or drawn."""
    known = all_thresholds()
    drawn = draw(seed)
    if seed < 2:
        drawn = {name: (known[name].minimum, known[name].maximum)[seed] for name in known}
    return {name: drawn[name] for name in (*SPARK, "remembered_texts_limit")}


RULES = """
@prefix : <urn:> .
[?x, a, ?d] :- [?x, a, ?c], [?c, rdfs:subClassOf, ?d] .
[?c, rdfs:subClassOf, ?e] :- [?c, rdfs:subClassOf, ?d], [?d, rdfs:subClassOf, ?e] .
[?x, :same, ?y] :- [?x, :size, ?n], [?y, :size, ?m], FILTER(?n = ?m && ?x != ?y) .
[?x, :is, :Large] :- [?x, :size, ?n], FILTER(?n >= 3) .
[?x, :was, :Odd] :- [?x, :size, ?n], NOT [?x, :is, :Large] .
"""


def history(seed: int) -> list[tuple[set[str], set[str]]]:
    """The triples at first, and two changes: what is deleted and inserted."""
    random = Random(seed)
    pool = [
        f"<urn:x{random.randrange(6)}> <urn:size> {value} ."
        for value in ('"1"', '"3.0"', '"2"', '"n/a"', '"01"', '"4"')
        for _ in range(2)
    ]
    number = "^^<http://www.w3.org/2001/XMLSchema#decimal>"
    pool = [f"{line[:-2]}{number} ." if at % 2 else line for at, line in enumerate(pool)]
    pool += [f"<urn:x{n}> {TYPE} <urn:C{n % 4}> ." for n in range(6)]
    pool += [f"<urn:C{n}> {SUB} <urn:C{random.randrange(4)}> ." for n in range(4)]
    random.shuffle(pool)
    first, later = pool[:14], pool[14:]
    return [(set(), {*first}), ({*first[:3]}, {*later[:4]}), ({*later[:1]}, {*first[:2]})]


def replay(seed: int, path: Path, limits: dict[str, int], crossings: Crossings) -> None:
    """Build a store, apply the changes, compare with the embedded engine after every step."""
    rules = path / "rules.dl"
    rules.write_text(RULES)
    explicit: set[str] = set()
    for number, (deleted, inserted) in enumerate(history(seed)):
        explicit = explicit - deleted | inserted
        files = [path / f"{kind}{number}.nt" for kind in ("less", "more", "all")]
        for file, lines in zip(files, (deleted, inserted, explicit), strict=True):
            file.write_text("\n".join(sorted(lines)) + "\n")
        less, more, everything = files
        with thresholds(**limits), recorded_crossings(crossings):
            if number == 0:
                co.build(path / "store", more, rules=rules, session=session())
            else:
                co.update(path / "store", insert=[more], delete=[less], session=session())
        assert stored(path / "store") == embedded([everything], rules), (number, limits)


def test_random_thresholds(tmp_path: Path) -> None:
    crossings: Crossings = {}
    for seed in range(4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        replay(seed, folder, limits_of(seed), crossings)
    missing = {name: crossings[name] for name in CROSSED if crossings[name] != {False, True}}
    assert not missing
