"""Knowledge bases: what they take, what they show, and that transactions are atomic."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import rdflib
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import corollary as co
from corollary import KnowledgeBase, Program
from corollary.errors import InvalidInput
from corollary.files.cells import read_cell
from corollary.lang import reference
from corollary.lang.printer import Printer
from corollary.lang.syntax import IRI, TRIPLE, XSD, Atom, Literal, Rule
from tests import strategies
from tests.strategies import ARITIES

CLOSURE = """
    path(?x, ?y) :- edge(?x, ?y) .
    [step] path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
"""
TUTORS = "@prefix : <http://example.org/> . [?x, a, :Person] :- [?x, :tutors, ?y] ."


def atoms(kb: KnowledgeBase) -> dict[Atom, bool]:
    """All facts of the public tables, with whether they are explicit."""
    found = {}
    for relation in [*ARITIES, "edge", "path"]:
        pattern = "[?s, ?p, ?o]" if relation == TRIPLE else relation
        if relation not in (TRIPLE, *kb.state.arities):
            continue
        for row in kb.facts(pattern).to_pylist():
            explicit = row.pop("explicit")
            found[Atom(relation, tuple(map(read_cell, row.values())))] = explicit
    return found


def changed(changes: Any) -> tuple[set[Atom], set[Atom]]:
    """The inserted and the deleted facts, which the tables and the iteration tell alike."""
    inserted = {atom for sign, atom in changes if sign == "+"}
    deleted = {atom for sign, atom in changes if sign == "-"}
    for facts, table in ((inserted, changes.inserted), (deleted, changes.deleted)):
        rows = set()
        for row in table.to_pylist():
            relation = TRIPLE if row.pop("relation") == "triples" else row
            del row["explicit"]
            cells = tuple(read_cell(cell) for cell in row.values() if cell is not None)
            rows.add((relation == TRIPLE, cells))
        assert rows == {(fact.relation == TRIPLE, fact.terms) for fact in facts}
        assert table.num_rows == len(facts)
    assert len(changes) == len(inserted) + len(deleted)
    return inserted, deleted


# -- transactions ---------------------------------------------------------------------------------


class Stopped(Exception):
    """Raised in the middle of a transaction."""


class Transactions(RuleBasedStateMachine):
    """Random transactions, some of which fail, against the oracle."""

    def __init__(self) -> None:
        super().__init__()
        self.kb = KnowledgeBase()
        self.now: list[Rule] = []
        self.explicit: set[Atom] = set()
        self.version = 0
        self.known: set[Atom] = set()  # what the machine has seen, so that it is deleted again

    @rule(
        facts=st.lists(strategies.facts(), max_size=6),
        gone=st.lists(st.integers(0, 100), max_size=3),
        added=st.lists(strategies.rules(), max_size=2),
        removed=st.booleans(),
        as_text=st.booleans(),
        again=st.booleans(),
        end=st.sampled_from(["well", "well", "well", "stopped", "arity", "rule", "text"]),
    )
    def transaction(
        self,
        facts: list[Atom],
        gone: list[int],
        added: list[Rule],
        removed: bool,
        as_text: bool,
        again: bool,
        end: str,
    ) -> None:
        explicit, rules = set(self.explicit), list(self.now)
        pool = sorted(self.known, key=repr)
        deleted = [pool[number % len(pool)] for number in gone if pool]
        before = set(reference.materialize(Program.of(self.now), self.explicit))
        try:
            with self.kb.transaction() as tx:
                if removed and rules:
                    tx.remove_rules(rules[0])
                    rules = rules[1:]
                tx.add_rules(added)
                rules += [new for new in added if new not in rules]
                tx.insert("".join(f"{Printer().atom(f)} .\n" for f in facts) if as_text else facts)
                explicit |= {*facts}
                tx.delete(deleted)
                explicit -= {*deleted}
                if again:  # the later request counts
                    tx.insert(deleted)
                    explicit |= {*deleted}
                self.fail(end, tx)
        except (Stopped, InvalidInput):
            assert end != "well"
            return
        assert end == "well"
        self.now, self.explicit, self.known = (
            list(dict.fromkeys(rules)),
            explicit,
            self.known | explicit,
        )
        self.version += 1
        after = set(reference.materialize(Program.of(self.now), self.explicit))
        assert changed(tx.changes) == (after - before, before - after)
        assert tx.changes.version == self.version

    def fail(self, end: str, tx: Any) -> None:
        match end:
            case "stopped":
                raise Stopped
            case "arity":
                tx.insert([(1, 2)], relation="four")
                tx.insert([(1, 2, 3, 4)], relation="four")
            case "rule":
                tx.remove_rules("never(?x) :- heard(?x) .")
            case "text":
                tx.insert("this is neither ( nor [ .")

    @invariant()
    def facts_are_those_of_the_oracle(self) -> None:
        wanted = reference.materialize(Program.of(self.now), self.explicit)
        assert atoms(self.kb) == {fact: fact in self.explicit for fact in wanted}
        assert self.kb.count() == len(wanted)
        assert self.kb.version == self.version

    @precondition(lambda self: self.explicit)
    @rule(number=st.integers(0, 1000))
    def explanation(self, number: int) -> None:
        facts = sorted(atoms(self.kb), key=repr)
        fact = facts[number % len(facts)]
        proof = self.kb.explain(Printer().atom(fact))
        assert proof.fact == fact
        assert proof.explicit == (fact in self.explicit)
        assert fact in self.kb


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(max_examples=30, stateful_step_count=8)


def test_what_a_transaction_changes() -> None:
    kb = KnowledgeBase(CLOSURE)
    with kb.transaction() as tx:
        tx.insert("edge(1, 2) . edge(2, 3) .")
        assert kb.count() == 0, "inside the block, nothing has changed"
    with kb.transaction() as tx:
        tx.delete("edge(1, 2) .")
        tx.insert("path(1, 2) .")
    assert str(tx.changes) == "- edge(1, 2)"
    assert tx.changes.deleted.to_pydict() == {
        "relation": ["edge"],
        "arg0": ["1"],
        "arg1": ["2"],
        "explicit": [True],
    }
    assert tx.changes.statistics.seconds["update"] > 0
    assert tx.changes.inserted.num_rows == 0
    assert tx.changes.inserted.column_names == ["relation", "explicit"]
    assert repr(tx.changes) == "<changes of version 2: +0 -1>"
    assert kb.explain("path(1, 2)").explicit


def test_rules_come_and_go() -> None:
    kb = KnowledgeBase(CLOSURE + "edge(1, 2) . edge(2, 3) .")
    with kb.transaction() as tx:
        tx.remove_rules("path(?a, ?c) :- path(?a, ?b), edge(?b, ?c) .")
        tx.add_rules("back(?y, ?x) :- edge(?x, ?y) .")
    assert str(tx.changes) == "+ back(2, 1)\n+ back(3, 2)\n- path(1, 3)"
    assert (len(tx.changes.added_rules), len(tx.changes.removed_rules)) == (1, 1)
    with kb.transaction() as tx:
        tx.add_rules(kb.program.rules)
        tx.remove_rules(Program.parse("back(?y, ?x) :- edge(?x, ?y) ."))
    assert kb.count("back") == 0
    assert [r.head.relation for r in kb.program.rules] == ["path"]


def test_one_transaction_at_a_time() -> None:
    kb = KnowledgeBase(CLOSURE + "edge(1, 2) .")
    with kb.transaction():
        for begin in (lambda: kb.transaction().__enter__(), lambda: kb.load(".")):
            with pytest.raises(InvalidInput) as caught:
                begin()
            assert caught.value.code == "E343"
    assert kb.version == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda tx: tx.insert("edge(1, 2, 3) ."), "E203"),
        (lambda tx: tx.insert("edge(1, 2"), "E101"),
        (lambda tx: tx.insert("edge(1, ?x) ."), "E208"),
        (lambda tx: tx.insert(":a :b :c ."), "E320"),
        (lambda tx: tx.insert("rdf:a rdf:b"), "E320"),
        (lambda tx: tx.insert("p(?x) :- q(?x) ."), "E341"),
        (lambda tx: tx.insert(Program.parse("p(?x) :- q(?x) .")), "E341"),
        (lambda tx: tx.insert(7), "E341"),
        (lambda tx: tx.insert(b"edge(1, 2) ."), "E341"),
        (lambda tx: tx.insert([(1, 2)]), "E341"),
        (lambda tx: tx.insert(["edge"]), "E341"),
        (lambda tx: tx.insert([(object(), 2)], relation="edge"), "E341"),
        (lambda tx: tx.insert("edge(1, 2) .", relation="edge"), "E341"),
        (lambda tx: tx.insert([(1, 2, 3)], relation="[]"), "E341"),
        (lambda tx: tx.insert([(1, 2, 3)]), "E213"),
        (lambda tx: tx.insert(("<a>", "b c", "<d>")), "E101"),
        (lambda tx: tx.insert(pa.table({"x": [1]})), "E341"),
        (lambda tx: tx.insert(pa.table({"x": [1]}), relation="edge"), "E203"),
        (lambda tx: tx.insert(pa.table({"x": [1, None]}), relation="new"), "E341"),
        (lambda tx: tx.insert(pa.table({"x": [[1]]}), relation="new"), "E341"),
        (lambda tx: tx.insert(pa.table({"s": ["<a>"], "p": ["b"], "o": ["c"]})), "E320"),
        (lambda tx: tx.add_rules("edge(1, 2, 3) ."), "E203"),
        (lambda tx: tx.add_rules("p(?x) :- edge(?x, ?y, ?z) ."), "E203"),
        (lambda tx: tx.add_rules("edge(?x, ?x) :- path(?x, ?y), NOT edge(?x, ?y) ."), "E205"),
        (lambda tx: tx.remove_rules("p(?x) :- q(?x) ."), "E307"),
        (lambda tx: tx.load("nowhere.ttl"), "E301"),
        (lambda tx: tx.load("nowhere/*.ttl"), "E301"),
        (lambda tx: tx.load(__file__), "E341"),
        (lambda tx: tx.changes, "E343"),
    ],
)
def test_mistakes_change_nothing(change: Callable[[Any], None], code: str) -> None:
    kb = KnowledgeBase(CLOSURE + "edge(1, 2) .")
    before = atoms(kb)
    with pytest.raises(InvalidInput) as caught, kb.transaction() as tx:  # noqa: PT012
        tx.insert("edge(2, 3) . @prefix new: <http://example.org/new> .")
        change(tx)
    assert caught.value.code == code
    assert atoms(kb) == before
    assert kb.version == 0
    assert "new" not in kb.prefixes
    with kb.transaction() as tx:
        tx.insert("edge(2, 3) .")
    assert kb.count("path") == 3
    with pytest.raises(InvalidInput, match="is over"):
        tx.insert("edge(2, 3) .")


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda kb: kb.facts("pth"), "E344"),
        (lambda kb: kb.count("pth(?x)"), "E344"),
        (lambda kb: kb.facts("path(?x)"), "E203"),
        (lambda kb: kb.facts("[?x, a]"), "E101"),
        (lambda kb: kb.facts("[?x, a, no:where]"), "E201"),
        (lambda kb: kb.explain("path(?x, 1)"), "E208"),
        (lambda kb: kb.explain("path(9, 1)"), "E340"),
        (lambda kb: KnowledgeBase(engine="steam"), "E314"),
        (lambda kb: KnowledgeBase(algorithm="magic"), "E308"),
    ],
)
def test_wrong_questions(ask: Callable[[KnowledgeBase], object], code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ask(KnowledgeBase(CLOSURE))
    assert caught.value.code == code


# -- what is taken --------------------------------------------------------------------------------

ONE_EDGE = Atom("edge", (Literal("1", XSD + "integer"), Literal("b")))


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"from": [1], "to": ["b"]}),
        pa.table({"from": [1], "to": pa.array(["b"]).dictionary_encode()}),
        pa.record_batch({"from": [1], "to": ["b"]}),
        pa.table({"from": [1], "to": ["b"]}).to_pandas(),
        pl.DataFrame({"from": [1], "to": ["b"]}),
        [(1, "b")],
        (1, "b"),
        iter([[np.int64(1), "b"]]),
    ],
    ids=lambda data: type(data).__module__ + "." + type(data).__name__,
)
def test_rows_and_frames(data: Any) -> None:
    kb = KnowledgeBase(CLOSURE)
    with kb.transaction() as tx:
        tx.insert(data, relation="edge")
    assert {*atoms(kb)} == {ONE_EDGE, Atom("path", ONE_EDGE.terms)}


EXAMPLE = "http://example.org/"
TUTORING = Atom(TRIPLE, (IRI(EXAMPLE + "john"), IRI(EXAMPLE + "tutors"), IRI(EXAMPLE + "math")))


def rdflib_graph() -> rdflib.Graph:
    graph = rdflib.Graph()
    graph.add(tuple(rdflib.URIRef(term.value) for term in TUTORING.terms))  # type: ignore
    return graph


@pytest.mark.parametrize(
    "data",
    [
        ":john :tutors :math .",
        "@prefix e: <http://example.org/> . e:john e:tutors e:math .",
        "[:john, :tutors, :math] .",
        ":tutors(:john, :math) .",
        TUTORING,
        [TUTORING],
        Program.of([], [TUTORING]),
        (":john", "<http://example.org/tutors>", IRI(EXAMPLE + "math")),
        [(":john", ":tutors", ":math")],
        list(rdflib_graph()),
        rdflib_graph(),
        pa.table(
            {
                "o": [f"<{EXAMPLE}math>"],
                "s": [f"<{EXAMPLE}john>"],
                "p": [f"<{EXAMPLE}tutors>"],
                "more": [1],
            }
        ),
    ],
    ids=lambda data: type(data).__name__,
)
def test_triples(data: Any) -> None:
    kb = KnowledgeBase(TUTORS)
    with kb.transaction() as tx:
        tx.insert(data)
    assert str(tx.changes) == "+ [:john, :tutors, :math]\n+ [:john, a, :Person]"
    with kb.transaction() as tx:
        tx.delete(data if not hasattr(data, "__next__") else [TUTORING])
    assert kb.count() == 0


def test_terms() -> None:
    kb = KnowledgeBase()
    values = [True, 7, 0.5, Decimal("1.50"), "x y", '"7"', rdflib.Literal("a", lang="en")]
    with kb.transaction() as tx:
        tx.insert([(value,) for value in values], relation="one")
    cells = kb.facts("one")["arg0"].to_pylist()
    assert sorted(cells) == sorted(["true", "7", "5.0E-1", "1.50", "x y", '"7"', '"a"@en'])
    with kb.transaction() as tx:  # cells read back
        tx.delete(kb.facts("one").select(["arg0"]), relation="one")
    assert kb.count() == 0


def test_files(tmp_path: Path) -> None:
    (tmp_path / "rules.dl").write_text(CLOSURE + "edge(7, 8) .", "utf-8")
    (tmp_path / "edge.facts").write_text("1\t2\n", "utf-8")
    (tmp_path / "weight.csv").write_text("a,b,3\n", "utf-8")
    (tmp_path / "none.csv").write_text("", "utf-8")
    (tmp_path / "a.ttl").write_text(
        "@prefix e: <http://example.org/> . e:a e:p [] , <b> .", "utf-8"
    )
    (tmp_path / "b.nt.gz").write_bytes(gzip.compress(b"_:x <http://example.org/p> _:x .\n"))
    (tmp_path / ".hidden.ttl").write_text("no Turtle", "utf-8")
    kb = KnowledgeBase()
    changes = kb.load(tmp_path / "rules.dl", tmp_path)
    assert kb.version == changes.version == 1
    assert kb.facts("edge").num_rows == kb.count("path") == 2
    assert kb.facts("weight").column_names == ["arg0", "arg1", "arg2", "explicit"]
    assert kb.count("[?s, e:p, ?o]") == 3
    assert kb.count("[?s, ?p, ?s]") == 1
    assert kb.prefixes["e"] == "http://example.org/"
    (tmp_path / "other.facts").write_text("2\t3\n", "utf-8")
    kb.load(str(tmp_path / "oth*.facts"), relation="edge")
    kb.load(tmp_path / "b.nt.gz")
    assert kb.count("path(1, ?y)") == 2
    assert kb.count("[?s, ?p, ?s]") == 2, "blank nodes of a file are its own"
    (tmp_path / "bad.nt").write_text("\n<a> <b> .\n", "utf-8")
    with pytest.raises(InvalidInput) as caught:
        kb.load(tmp_path / "bad.nt")
    assert (caught.value.code, caught.value.line) == ("E320", 2)


def test_patterns() -> None:
    kb = KnowledgeBase(
        "@prefix : <http://example.org/> . zero . one(?x) :- two(?x, ?x) . two(1, 1) . two(1, 2) ."
        "[:a, a, :C] . [:a, :p, :a] . [:a, :p, :b] . [:b, :q, 3] ."
    )
    counts = {
        "zero": 1,
        "two": 2,
        "two(?x, ?x)": 1,
        "two(1, ?y)": 2,
        "two(?x, 3)": 0,
        "one(1)": 1,
        "[?s, ?p, ?o]": 4,
        "[?s, a, ?c]": 1,
        "[?s, a, :C]": 1,
        ":C(?x)": 1,
        "[?s, :p, ?o]": 2,
        "[?s, :p, ?s]": 1,
        "[?s, ?p, :a]": 1,
        "[?s, ?p, :C]": 1,
        "[?s, ?p, ?p]": 0,
        "[?s, ?s, ?o]": 0,
        "[:a, ?p, ?o]": 3,
        "[:a, a, ?c]": 1,
        "[:b, a, ?c]": 0,
        "[3, ?p, ?o]": 0,
        "[:a, :p, :b]": 1,
        "[:a, :p, :c] .": 0,
    }
    assert {pattern: kb.count(pattern) for pattern in counts} == counts
    terms = len(kb.state.dictionary)
    for pattern in ("two(?x, 77)", "[?s, :new, :new]", "[:new, ?p, ?o]", "[?s, a, :New]"):
        assert kb.count(pattern) == 0
        with pytest.raises(InvalidInput):
            kb.explain(pattern.replace("?x", "78").replace("?s", ":s").replace("?p", ":p"))
    assert len(kb.state.dictionary) == terms, "asking adds no term"
    assert {pattern: kb.facts(pattern).num_rows for pattern in counts} == counts
    assert {pattern: pattern in kb for pattern in counts} == {p: n > 0 for p, n in counts.items()}


def test_prefixes_of_data() -> None:
    kb = KnowledgeBase("[?x, a, ?d] :- [?x, a, ?c], [?c, rdfs:subClassOf, ?d] .")
    with kb.transaction() as tx:
        tx.insert("@prefix ex: <http://example.org/> . ex:a a ex:C . ex:C rdfs:subClassOf ex:D .")
    assert str(kb.explain("ex:D(ex:a)")) == (
        "[ex:a, a, ex:D]   by [?x, a, ?d] :- [?x, a, ?c], [?c, rdfs:subClassOf, ?d]\n"
        "├─ [ex:a, a, ex:C]   explicit\n"
        "└─ [ex:C, rdfs:subClassOf, ex:D]   explicit"
    )
    with kb.transaction() as tx:
        tx.insert("@prefix ex: <http://other.org/> . ex:b a ex:C .")
    assert str(tx.changes) == "+ [<http://other.org/b>, a, <http://other.org/C>]"
    assert kb.prefixes["ex"] == "http://example.org/", "a known prefix keeps its meaning"


def test_aggregates_are_not_shown() -> None:
    kb = KnowledgeBase("n(?c) :- AGGREGATE(e(?x) ON BIND count(?x) AS ?c) . e(1) . e(2) .")
    assert kb.count() == 3
    with kb.transaction() as tx:
        tx.insert("e(3) .")
    assert str(tx.changes) == "+ e(3)\n+ n(3)\n- n(2)"
    assert kb.explain("n(3)").premises[0].kind == "aggregate"


@pytest.mark.parametrize("algorithm", ["bf", "dred", "bf-c", "dred-c", "fp", "rematerialize"])
def test_algorithms(algorithm: str) -> None:
    kb = KnowledgeBase(CLOSURE, algorithm=algorithm, modules=False)
    kb.load(pa.table({"a": [1, 2, 3], "b": [2, 3, 1]}), relation="edge")
    with kb.transaction() as tx:
        tx.delete("edge(3, 1) .")
    assert kb.count("path") == 3
    assert tx.changes.statistics.algorithm == algorithm


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_on_spark() -> None:
    kb = KnowledgeBase(CLOSURE, engine="spark")
    with kb.transaction() as tx:
        tx.insert("edge(1, 2) . edge(2, 3) .")
    assert len(tx.changes) == 5
    assert kb.facts("path(1, ?y)")["arg1"].to_pylist() == ["2", "3"]
    assert kb.explain("path(1, 3)").height == 2


def test_import_is_quick_and_lazy() -> None:
    code = (
        "import corollary, sys; print(*(m in sys.modules for m in ('numba', 'numpy', 'pyspark')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False"] * 3
    assert co.KnowledgeBase is KnowledgeBase
    with pytest.raises(AttributeError):
        co.Knowledge  # noqa: B018


def test_visible_facts_are_selected_once_per_update() -> None:
    """Selecting them looks at all predicates, and every pattern asks for them."""
    kb = KnowledgeBase("_h(?x) :- p(?x) . q(?x) :- _h(?x) . p(1) .")
    reasoner = kb.state.reasoner
    first = reasoner.facts
    assert reasoner.facts is first
    kb.insert("p(2) .")
    assert reasoner.facts is not first
    assert reasoner.facts is reasoner.facts
    assert kb.count() == 4
