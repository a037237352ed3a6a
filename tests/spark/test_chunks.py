"""What updates on Spark keep beside a store: as good as its tables, and never missed."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corollary import spark as co
from corollary.engines.spark import chunk_cache, engine, terms
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.rules import read_rules
from corollary.knowledge_base.spark import updating
from corollary.store import Store
from corollary.testing import thresholds
from tests.effort import first, scaled
from tests.engines.factories import session
from tests.spark.data import embedded, held, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
RULES = """
@prefix : <urn:> .
[?x, a, :Part] :- [?x, :in, ?y] .
_whole(?y) :- [?x, :in, ?y], NOT _part(?y) .
_part(?x) :- [?x, a, :Part] .
[?y, a, :Whole] :- _whole(?y) .
[?x, :below, ?y] :- [?x, :in, ?y], _whole(?y) .
"""


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the smallest sets are in Spark, as if they were large."""
    made = partial(engine.SparkEngine, small=3, partitions=3, tiny=1)
    monkeypatch.setattr(engine, "SparkEngine", made)
    monkeypatch.setattr(updating, "SparkEngine", made)


def lines(pairs: set[tuple[int, int]]) -> str:
    return "".join(f"<urn:n{x}> <urn:in> <urn:n{y}> .\n" for x, y in sorted(pairs))


def unread(*_: Any) -> Any:
    raise AssertionError("facts were read from tables")


@pytest.mark.scaled
@pytest.mark.usefixtures("large")
def test_updates_go_on_from_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = random.Random(1)
    pairs = {(drawn.randrange(12), drawn.randrange(12)) for _ in range(14)}
    rules, store = tmp_path / "rules.dl", tmp_path / "store"
    rules.write_text(RULES)
    (tmp_path / "data.nt").write_text(lines(pairs))
    co.build(store, tmp_path / "data.nt", rules=rules, session=session())
    monkeypatch.setattr(updating, "_facts", unread)
    for _ in range(scaled(2)):
        come = {(drawn.randrange(12), drawn.randrange(12)) for _ in range(2)}
        go = {*drawn.sample(sorted(pairs), 2)} - come
        pairs = pairs - go | come
        (tmp_path / "come.nt").write_text(lines(come))
        (tmp_path / "go.nt").write_text(lines(go))
        co.update(
            store, insert=[tmp_path / "come.nt"], delete=[tmp_path / "go.nt"], session=session()
        )
        (tmp_path / "all.nt").write_text(lines(pairs))
        assert stored(store) == embedded([tmp_path / "all.nt"], rules)


@pytest.mark.long  # `test_faults.py` has one damage of each kind
@pytest.mark.usefixtures("large")
def test_what_is_missing_or_damaged_is_read_from_tables(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (tmp_path / "data.nt").write_text(lines({(x, x + 1) for x in range(8)}))
    (tmp_path / "rules.dl").write_text(RULES)
    co.build(store, tmp_path / "data.nt", rules=tmp_path / "rules.dl", session=session())
    read: list[bool] = []
    facts = updating._facts

    def update(line: str) -> bool:
        """Whether tables were read."""
        read.clear()
        (tmp_path / "one.nt").write_text(line)
        co.update(store, insert=[tmp_path / "one.nt"], session=session())
        kb = KnowledgeBase.open(store)
        kb.state.reasoner.verify()
        assert held(kb) == stored(store)
        return bool(read)

    def noted(*arguments: Any) -> Any:
        read.append(True)
        return facts(*arguments)

    chunks = store / "chunks"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updating, "_facts", noted)
        assert not update("<urn:a> <urn:in> <urn:n1> .")
        assert {path.name[:32] for path in chunks.glob("*.json")} == {Store.open(store).commit().id}
        [file, *_] = sorted(chunks.rglob("*.parquet"))
        file.write_bytes(file.read_bytes()[:-1])
        assert update("<urn:b> <urn:in> <urn:n2> .")
        [few] = chunks.glob("*.arrow")
        few.write_bytes(b"no")
        assert update("<urn:d> <urn:in> <urn:n4> .")
        with KnowledgeBase.open(store).transaction() as tx:
            tx.delete("<urn:a> <urn:in> <urn:n1> .")
        shutil.rmtree(chunks)
        assert update("<urn:e> <urn:in> <urn:n5> .")
        assert not update("<urn:a> <urn:in> <urn:n7> .")


@pytest.mark.usefixtures("large")
def test_without_room_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    (tmp_path / "data.nt").write_text(lines({(x, x + 1) for x in range(8)}))
    monkeypatch.setattr(chunk_cache, "chunk_batches", full)
    co.build(tmp_path / "store", tmp_path / "data.nt", rules="rhodf", session=session())
    assert not [*(tmp_path / "store" / "chunks").glob("*")]
    assert stored(tmp_path / "store") == embedded([tmp_path / "data.nt"], "rhodf")


def test_few_facts_and_many(spark: SparkSession, tmp_path: Path) -> None:
    """Facts that the driver keeps are in one file."""
    (tmp_path / "data.nt").write_text(lines({(x, x + 1) for x in range(8)}))
    co.build(tmp_path / "store", tmp_path / "data.nt", rules=read_rules("owl-rl"), session=spark)
    chunks = tmp_path / "store" / "chunks"
    assert sorted(path.suffix for path in chunks.iterdir()) == [".arrow", ".json"]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("few", first(1, [True, False]))
def test_values_and_anything_are_looked_up(
    few: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Literals of other forms with the same value; and facts of which any one will do."""
    xsd = "http://www.w3.org/2001/XMLSchema#"
    texts = ['"7"', '"a"', '"b"', f'"a"^^<{xsd}token>', f'"7"^^<{xsd}int>', f'"07"^^<{xsd}byte>']
    data = [f"<urn:n{n}> <urn:p> {text} .\n" for n, text in enumerate(texts * 2)]
    rules = tmp_path / "rules.dl"
    rules.write_text(
        "@prefix : <urn:> ."
        "[?x, :same, ?y] :- [?x, :p, ?l], [?y, :p, ?m], FILTER(sameValue(?l, ?m)) ."
        "[:p, :is, :used] :- [?x, :p, ?l] . [:q, :is, :used] :- [?x, :q, ?l] ."
    )
    whole, first, last = (tmp_path / name for name in ("whole.nt", "first.nt", "last.nt"))
    whole.write_text("".join(data))
    first.write_text("".join(data[1:]))
    last.write_text(data[0])
    looked: list[Any] = []
    same_values = terms.TermTable.same_values

    def noted(self: Any, ids: Any) -> Any:
        looked.append(same_values(self, ids))
        return looked[-1]

    monkeypatch.setattr(terms.TermTable, "same_values", noted)
    store = tmp_path / "store"
    with thresholds(**({} if few else {"driver_literals_limit": 2})):
        co.build(store, first, rules=rules, session=session())
        co.update(store, insert=[last], session=session())
        assert stored(store) == embedded([whole], rules)
        co.update(store, delete=[last], session=session())
        assert stored(store) == embedded([first], rules)
    assert looked
    assert all((found is not None) is few for found in looked)


def test_many_deletions_are_fp_update(spark: SparkSession, tmp_path: Path) -> None:
    data = [f"<urn:n{n}> {TYPE} <urn:A> .\n" for n in range(60_000)]
    (tmp_path / "all.nt").write_text("".join(data) + f"<urn:A> {SUB} <urn:B> .\n")
    (tmp_path / "go.nt").write_text("".join(data[:1_100]))
    (tmp_path / "one.nt").write_text(data[-1])
    co.build(tmp_path / "store", tmp_path / "all.nt", rules="rhodf", session=spark)
    built = co.update(tmp_path / "store", delete=[tmp_path / "go.nt"], session=spark)
    assert (built.algorithm, built.deleted) == ("fp", 2_200)
    built = co.update(tmp_path / "store", delete=[tmp_path / "one.nt"], session=spark)
    assert (built.algorithm, built.deleted) == ("auto", 2)
