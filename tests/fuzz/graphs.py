"""Named graphs changed in every way, in random settings, compared with a fresh knowledge base.

The statements of graphs are counted in a plain set of quads. After every step a knowledge base has
exactly these, and answers queries about graphs as one that was loaded from a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import corollary as co
from corollary import KnowledgeBase
from corollary.knowledge_base.purging import purge
from corollary.knowledge_base.transaction import Transaction
from corollary.knowledge_base.verify import verify_store
from corollary.lang.program import Program
from corollary.testing import random_thresholds
from tests.configurations import as_triple
from tests.fuzz.lane import Figures

Quad = tuple[str, str, str, str]  # N-Quads terms; an empty graph is the default graph
Quads = frozenset[Quad]
Request = Callable[[Transaction], object]

STEPS = 8
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_PROPERTIES = (
    "<urn:p0>",
    "<urn:p1>",
    _TYPE,
    "<http://www.w3.org/2000/01/rdf-schema#subClassOf>",
)
_SAME = "<http://www.w3.org/2002/07/owl#sameAs>"
_THINGS = (*(f"<urn:s{n}>" for n in range(4)), "<urn:C0>", "<urn:g1>")
_CLASSES = ("<urn:C0>", "<urn:C1>", "<urn:s1>")
_GRAPHS = ("", "<urn:g1>", "<urn:g2>", "<urn:g3>")
_READS = "[?s, <urn:by>, ?g] :- [?s, <urn:p0>, ?d] ?g ."
_DERIVES = "[?s, <urn:p2>, ?o] <urn:g3> :- [?s, <urn:p1>, ?o] ?g, [?g, a, <urn:C0>] ."
_EVERY = "SELECT ?s ?p ?o { ?s ?p ?o }"
_QUERIES: tuple[tuple[str, str], ...] = (
    (_EVERY, "union"),
    (_EVERY, "default"),
    (_EVERY, "<urn:g1>"),
    ("SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }", "union"),
    ("SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g", "union"),
    ("SELECT ?g ?s { GRAPH ?g { ?s a <urn:C0> } ?s <urn:p0> ?x }", "union"),
    ("SELECT ?s ?o { GRAPH <urn:g1> { ?s <urn:p0> ?o } }", "default"),
)


class _Journey:
    """A knowledge base, mostly stored, and the quads that it must have."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random = Random(seed)
        self.path, self.file = folder / "store", folder / "reference.nq"
        name = random.choice(("rhodf", "rhodf", "owl-rl", "none"))
        self.rule = random.choice(("", _READS, _DERIVES))
        self.program = Program.parse(self.rule)
        if name != "none":
            self.program = co.rules(name) | self.program
        self.properties = (*_PROPERTIES, _SAME) if name == "owl-rl" else _PROPERTIES
        mode = random.choice(("materialized", "materialized", "hybrid"))
        rewrites = name == "owl-rl" and mode == "materialized" and random.random() < 0.5
        self.options: dict[str, Any] = {
            "mode": mode,
            "equality": "rewrite" if rewrites else "rules",
            "specialize": random.choice((None, True, False)),
            "algorithm": random.choice(("auto", "bf", "dred", "fp")),
            "threads": random.choice((1, 2)),
        }
        self.over: Any = random.choice(("union", "union", "default", ["<urn:g1>"]))
        self.taken: list[str] = []
        self.quads: Quads = frozenset()
        self.kb = KnowledgeBase(self.program, reason_over=self.over, **self.options)
        self.is_stored = random.random() < 0.7
        if self.is_stored:
            self.kb.save(self.path)
        self.past = {self.kb.version: self.quads}

    def run(self, steps: int) -> None:
        changes = [self._insert, self._insert, self._delete, self._data, self._clear, self._union]
        if self.rule != _DERIVES:  # else patterns match what is derived into graphs, too
            changes += [self._copy, self._delete_where, self._move_property, self._turn]
        others = [self._back, self._undo, self._open, self._purge] if self.is_stored else []
        for _ in range(steps):
            step = self.random.choice([*changes, *others])
            self.taken.append(step.__name__)
            step()
            self._note_versions()
            self._check()
        for version, quads in self.past.items():
            if self.is_stored and version:
                assert self._stated(KnowledgeBase.open(self.path, at_version=version)) == quads
        assert not self.is_stored or verify_store(self.path).problems == []

    # -- changes: a request, and the quads after it ----------------------------------------------

    def _insert(self) -> None:
        new = self._new(5)
        self._commit(lambda tx: _each(tx.insert, new), self.quads | new)

    def _delete(self) -> None:
        old = self._some() | self._new(1)
        self._commit(lambda tx: _each(tx.delete, old), self.quads - old)

    def _data(self) -> None:
        old, new = self._some(), self._new(3)
        text = f"DELETE DATA {{ {_data(old)} }} ; INSERT DATA {{ {_data(new)} }}"
        self._update(text, (self.quads - old) | new)

    def _clear(self) -> None:
        which = self.random.choice(("GRAPH <urn:g1>", "NAMED", "DEFAULT", "ALL"))
        chosen: dict[str, Callable[[str], bool]] = {
            "GRAPH <urn:g1>": lambda graph: graph == "<urn:g1>",
            "NAMED": bool,
            "DEFAULT": lambda graph: not graph,
            "ALL": lambda graph: True,
        }
        word = self.random.choice(("CLEAR", "DROP"))
        gone = {quad for quad in self.quads if chosen[which](quad[3])}
        self._update(f"{word} SILENT {which}", self.quads - gone)

    def _union(self) -> None:
        """Outside of `GRAPH`, a pattern matches all graphs and a template the default graph."""
        name = self.random.choice(self.properties[:2])
        gone = {quad for quad in self.quads if quad[1] == name and not quad[3]}
        self._update(f"DELETE {{ ?s {name} ?o }} WHERE {{ ?s {name} ?o }}", self.quads - gone)

    def _copy(self) -> None:
        source, target = self.random.sample(_GRAPHS, 2)
        word = self.random.choice(("COPY", "ADD", "MOVE"))
        found = {quad for quad in self.quads if quad[3] == source}
        if source and not found:
            return
        kept = self.quads if word == "ADD" else {q for q in self.quads if q[3] != target}
        quads = {*kept} | {(s, p, o, target) for s, p, o, _ in found}
        names = (f"GRAPH {graph}" if graph else "DEFAULT" for graph in (source, target))
        self._update(f"{word} {' TO '.join(names)}", quads - found if word == "MOVE" else quads)

    def _delete_where(self) -> None:
        thing = self.random.choice(_THINGS)
        gone = {quad for quad in self.quads if quad[3] and quad[0] == thing}
        self._update(f"DELETE WHERE {{ GRAPH ?g {{ {thing} ?p ?o }} }}", self.quads - gone)

    def _move_property(self) -> None:
        old, new = (self.random.choice(self.properties) for _ in range(2))
        found = {quad for quad in self.quads if quad[3] and quad[1] == old}
        where = f"GRAPH ?g {{ ?s {old} ?o }}"
        insert = f"GRAPH <urn:g2> {{ ?s {new} ?o }}"
        self._update(
            f"DELETE {{ {where} }} INSERT {{ {insert} }} WHERE {{ {where} }}",
            (self.quads - found) | {(s, new, o, "<urn:g2>") for s, _, o, _ in found},
        )

    def _turn(self) -> None:
        name, graph = self.random.choice(self.properties), "<urn:g1>"
        found = {quad for quad in self.quads if quad[3] == graph and quad[1] == name}
        self._update(
            f"WITH {graph} DELETE {{ ?s {name} ?o }} INSERT {{ ?o {name} ?s }}"
            f" WHERE {{ ?s {name} ?o }}",
            (self.quads - found) | {(o, name, s, graph) for s, _, o, _ in found},
        )

    def _back(self) -> None:
        version = self.random.choice(sorted(self.past))
        self.kb.revert(to=version)
        self.quads = self.past[version]

    def _undo(self) -> None:
        version = self.random.choice(sorted(self.past))
        if version - 1 in self.past and version > 1:
            old, new = self.past[version - 1], self.past[version]
            self.kb.revert(version)
            self.quads = (self.quads - (new - old)) | (old - new)

    def _open(self) -> None:
        self.kb = KnowledgeBase.open(self.path, specialize=self.random.choice((None, True, False)))

    def _purge(self) -> None:
        if self.options["mode"] == "hybrid":
            return
        thing = self.random.choice(_THINGS[:4])
        purge(self.path, about=[thing])
        self.past = {
            version: frozenset(quad for quad in quads if thing not in quad)
            for version, quads in self.past.items()
        }
        self.quads = frozenset(quad for quad in self.quads if thing not in quad)
        self._open()

    def _update(self, text: str, quads: Iterable[Quad]) -> None:
        self._commit(lambda tx: tx.update(text), quads)

    def _commit(self, request: Request, quads: Iterable[Quad]) -> None:
        preview = None
        if self.random.random() < 0.4:
            with self.kb.transaction() as tx:
                request(tx)
                preview = tx.preview()
                tx.rollback()
        with self.kb.transaction() as tx:
            request(tx)
        assert preview is None or {*preview} == {*tx.changes}
        self.quads = frozenset(quads)

    def _new(self, most: int) -> Quads:
        random, found = self.random, []
        for _ in range(random.randint(1, most)):
            name = random.choice(self.properties)
            value = random.choice(_CLASSES if name == _TYPE else _THINGS)
            found.append((random.choice(_THINGS), name, value, random.choice(_GRAPHS)))
        return frozenset(found)

    def _some(self) -> Quads:
        return frozenset(self.random.sample(sorted(self.quads), min(len(self.quads), 2)))

    # -- checks ----------------------------------------------------------------------------------

    def _note_versions(self) -> None:
        if not self.is_stored:
            return
        kinds = {commit.version: commit.kind for commit in self.kb.log()}
        before = self.past[max(self.past)]
        for version in range(max(self.past) + 1, self.kb.version + 1):
            widens = kinds[version] == "widen"  # comes before the update that needs it
            self.past[version] = before if widens else self.quads

    def _stated(self, kb: KnowledgeBase) -> Quads:
        """The explicit quads, without axioms."""
        lines = str(kb.serialize("nq", "explicit")).splitlines()
        found = {(*line.rstrip(" .").split(" "), "")[:4] for line in lines}
        axioms = {(*as_triple(fact), "") for fact in self.program.facts}
        return frozenset(found - axioms)  # type: ignore[arg-type]

    def _check(self) -> None:
        assert self._stated(self.kb) == self.quads
        self.file.write_text(_lines(self.quads), "utf-8")
        plain: dict[str, Any] = {"algorithm": "rematerialize", "modules": False}
        # Equality by representatives concerns quads, too, as it does plain relations.
        plain["equality"] = self.options["equality"]
        other = KnowledgeBase(self.program, reason_over=self.over, specialize=False, **plain)
        other.load(self.file)
        for query, graph in _QUERIES:
            ours, theirs = (_rows(kb, query, graph) for kb in (self.kb, other))
            assert ours == theirs, f"{query} over {graph}: {ours - theirs} and {theirs - ours}"


def _rows(kb: KnowledgeBase, query: str, graph: str) -> Counter[tuple[object, ...]]:
    found: Any = kb.query(query, default_graph=graph)
    return Counter(tuple(row.values()) for row in found.to_pylist())


def _each(do: Callable[..., None], quads: Quads) -> None:
    for s, p, o, graph in sorted(quads):
        do(f"{s} {p} {o} .", graph=graph or None)


def _data(quads: Quads) -> str:
    parts = ((f"{s} {p} {o} .", g) for s, p, o, g in sorted(quads))
    return " ".join(f"GRAPH {g} {{ {text} }}" if g else text for text, g in parts)


def _lines(quads: Quads) -> str:
    return "".join(f"{' '.join(quad).rstrip()} .\n" for quad in sorted(quads)) or "# nothing\n"


def check(seed: int, steps: int = STEPS) -> None:
    """Take the journey of a seed."""
    with (
        TemporaryDirectory() as folder,
        nullcontext() if seed % 2 else random_thresholds(seed),
    ):
        journey = _Journey(seed, Path(folder))
        try:
            journey.run(steps)
        except BaseException as error:
            error.add_note(f"{journey.options} {journey.over} {journey.rule} {journey.taken}")
            raise


def run(seed: int) -> Figures:
    """Check one seed."""
    check(seed)
    return {"journeys": 1, "states": STEPS}
