"""The 14 queries of LUBM over LUBM(1): the published answers, and pyoxigraph's."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from typing import Any

import pyoxigraph as ox
import pytest

import corollary
from benchmarks.report import DATA
from corollary import KnowledgeBase
from corollary.query.results import Solutions, TripleTable
from corollary.query.write import encoded

FOLDER = DATA / "lubm"
if not (FOLDER / "queries").is_dir():
    pytest.skip(f"the queries of LUBM are not here: {FOLDER}", allow_module_level=True)

NUMBERS = range(1, 15)


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    kb = KnowledgeBase(corollary.rules("owl-rl"))
    kb.load(str(FOLDER / "univ-bench.swat-ns.nt"), str(FOLDER / "lubm-1.nt.gz"))
    return kb


@pytest.fixture(scope="module")
def store(kb: KnowledgeBase) -> ox.Store:
    """What the knowledge base says, exported and read by somebody else."""
    # Rules say something about literals too, which no RDF file can.
    found = kb.query("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(!isLiteral(?s)) }")
    assert isinstance(found, TripleTable)
    about = kb.query("SELECT ?s { ?s ?p ?o FILTER(isLiteral(?s)) }")
    assert isinstance(about, Solutions)
    assert len(found) + len(about) == kb.count()
    store = ox.Store()
    store.bulk_load(encoded(found, "nt"), format=ox.RdfFormat.N_TRIPLES)
    return store


def query(number: int) -> str:
    """A query, with the namespace that the data have."""
    text = (FOLDER / "queries" / f"q{number}.rq").read_text("utf-8")
    return re.sub(
        r"http://www\.lehigh\.edu/~zhp2/2004/0401/univ-bench\.owl",
        "http://swat.cse.lehigh.edu/onto/univ-bench.owl",
        text,
    )


def published(number: int) -> list[list[str]]:
    path = FOLDER / "answers" / f"answers_query{number}.csv"
    return list(csv.reader(io.StringIO(path.read_text("utf-8"))))[1:]


@pytest.mark.parametrize("number", NUMBERS)
def test_published_answers(kb: KnowledgeBase, number: int) -> None:
    found = kb.query(query(number))
    assert isinstance(found, Solutions)
    rows = list(csv.reader(io.StringIO(encoded(found, "csv").decode(), newline="")))[1:]
    wanted = [row for row in published(number) if row != ["NO ANSWERS."]]
    assert sorted(rows) == sorted(wanted)


@pytest.mark.parametrize("number", NUMBERS)
def test_answers_of_pyoxigraph(kb: KnowledgeBase, store: ox.Store, number: int) -> None:
    found: Any = store.query(query(number))
    wanted = Counter(tuple(map(str, row)) for row in found)
    mine = kb.query(query(number))
    assert isinstance(mine, Solutions)
    columns = [column.to_pylist() for column in mine.table.columns]
    assert Counter(zip(*columns, strict=True)) == wanted
