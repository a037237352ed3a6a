"""Small work that calls every compiled loop; `corollary warm` runs each part in a process.

Random thresholds send a few facts through the code for large inputs, so that each loop is called
with all types of arguments, within a second once it is compiled.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_GRAPH = """
path(?x, ?y) :- edge(?x, ?y) .
path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
same(?x, ?y) :- link(?x, ?y) .
same(?x, ?y) :- same(?y, ?x) .
same(?x, ?z) :- same(?x, ?y), same(?y, ?z) .
above(?x, ?y) :- edge(?x, ?y) .
above(?x, ?z) :- above(?x, ?y), above(?y, ?z) .
"""
_JOINS = """
two(?x, ?z) :- edge(?x, ?y), link(?y, ?z) .
member(?x) :- edge(?x, ?y), node(?y) .
triangle(?x, ?y, ?z) :- edge(?x, ?y), edge(?y, ?z), edge(?x, ?z) .
large(?x) :- size(?x, ?n), FILTER(?n > 20) .
outside(?x) :- node(?x), NOT edge(?x, ?_) .
back(?y, ?x) :- edge(?x, ?y), node(?x), node(?y) .
chain(?x, ?w) :- edge(?x, ?y), link(?y, ?z), edge(?z, ?w) .
near(?x) :- two(?x, ?z), member(?z) .
"""
_COMPUTING = """
sum(?x, ?v) :- size(?x, ?n), BIND(?n + 1 AS ?v) .
name(?x, ?v) :- label(?x, ?n), BIND(CONCAT(?n, "!") AS ?v) .
"""
_SEEDS = 12


@contextmanager
def _compiled(seed: int | None = None) -> Iterator[None]:
    """Compile every loop that is called in the block; a seed draws the other thresholds."""
    from corollary.testing import draw, thresholds

    drawn = {} if seed is None else draw(seed)
    with thresholds(**(drawn | {"interpreted_call_elements": 0})):
        yield


def _facts(size: int) -> list[str]:
    facts = []
    for n in range(size):
        facts += [f"edge({n}, {n + 1}) .", f"edge({n}, {(7 * n + 3) % size}) ."]
        facts += [f"link({n}, {n * n % size}) .", f"size({n}, {n}) ."]
        facts += [f"node({n}) ."] * (n % 3 == 0)
    return facts


def _replay(rules: str) -> None:
    """Materialize, insert and delete facts, with every algorithm and all kinds of thresholds."""
    from corollary.algorithms.registry import ALGORITHMS
    from corollary.knowledge_base import KnowledgeBase

    algorithms = [name for name in ALGORITHMS if name != "counting"]  # it refuses recursion
    for seed in [None, *range(_SEEDS)]:
        facts = _facts(200 if seed is None else 30)
        with _compiled(seed):
            kb = KnowledgeBase(
                rules,
                algorithm=algorithms[(seed or 0) % len(algorithms)],
                threads=1 + (seed or 0) % 2,
            )
            for inserted, deleted in ((facts[::2], []), (facts[1::2], []), ([], facts[3:12:2])):
                with kb.transaction() as tx:
                    tx.insert(" ".join(inserted))
                    tx.delete(" ".join(deleted))


def graphs() -> None:
    """Closures and connected components, and their changes."""
    _replay(_GRAPH)


def joins() -> None:
    """Sets, joins, filters and their changes."""
    _replay(_JOINS)


def computing() -> None:
    """Values of whole columns."""
    from corollary.core.bulk import LEAST_ROWS
    from corollary.knowledge_base import KnowledgeBase

    with _compiled():
        kb = KnowledgeBase(_COMPUTING)
        with kb.transaction() as tx:
            tx.insert([(n, n) for n in range(LEAST_ROWS)], relation="size")
            tx.insert([(n, str(n)) for n in range(LEAST_ROWS)], relation="label")


def documents() -> None:
    """Reading RDF of every syntax."""
    from corollary.core.dictionary import Dictionary
    from corollary.rdf import formats

    line = '<urn:s{0}> <urn:p> "o{0}"@en .\n_:b{0} <urn:q> "1"^^<urn:t> .\n# comment\n'
    texts = {
        "a.nt": "".join(line.format(n) for n in range(9)),
        "b.nq": '<urn:s> <urn:p> _:b <urn:g> .\n<urn:s> <urn:p> "\\u0041" .\n',
        "c.ttl": "@prefix : <urn:> . :s :p :o, [ :q ( 1 2 ) ] .",
        "d.rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
        "e.jsonld": '{"@id": "urn:s", "urn:p": {"@id": "urn:o"}}',
    }
    with tempfile.TemporaryDirectory() as folder, _compiled():
        for name, text in texts.items():
            path = Path(folder, name)
            path.write_text(text, encoding="utf-8")
            formats.read(path, Dictionary())


def ontologies() -> None:
    """Rules tuple at a time, and stores: built, opened, changed and queried."""
    from corollary.knowledge_base import KnowledgeBase
    from corollary.rdf import rules

    subclass = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    facts = [f"[<urn:c{n}>, {subclass}, <urn:c{n + 1}>] ." for n in range(9)]
    facts += [f"[<urn:x{n}>, a, <urn:c{n}>] ." for n in range(9)]
    with tempfile.TemporaryDirectory() as folder, _compiled():
        kb = KnowledgeBase(rules("owl-rl"))
        for change in (kb.transaction(), kb.transaction()):
            with change as tx:
                tx.insert(" ".join(facts))
            facts = [f"[<urn:y>, a, <urn:c{n}>] ." for n in range(3)]
        with kb.transaction() as tx:
            tx.delete(facts[0])
        path = Path(folder, "store")
        kb.save(path)
        for _ in range(2):
            opened = KnowledgeBase.open(path)
            with opened.transaction() as tx:
                tx.insert("[<urn:z>, a, <urn:c1>] .")
                tx.delete(facts[1])
            opened.query("SELECT * { ?s a ?c }")


# Slowest first, as they start in this order.
WORK = {
    "graphs": graphs,
    "ontologies": ontologies,
    "joins": joins,
    "computing": computing,
    "documents": documents,
}

if __name__ == "__main__":
    WORK[sys.argv[1]]()
