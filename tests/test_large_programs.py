"""Programs of extreme form: long chains of rules, and long bodies, end within seconds.

The work runs in child processes with a watchdog: what is exponential would never end.
"""

import itertools
import random
import subprocess
import sys
import time

import pytest

from corollary import KnowledgeBase, OperationFailed, Program
from corollary.core.compile import compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang import reference
from corollary.lang.syntax import Atom, Constant, Variable
from tests.effort import first

_HANG = 600  # seconds after which a child counts as hanging

CHAIN = """
import json, sys
from corollary import KnowledgeBase, Program

n, text = int(sys.argv[1]), sys.argv[2]
program = Program.parse(
    "@prefix : <urn:> .\\n" + "\\n".join(text.format(n=i, next=i + 1) for i in range(n))
)
first, last = sys.argv[3].format(n=0), sys.argv[3].format(n=n)
kb = KnowledgeBase(program)
with kb.transaction() as tx:
    tx.insert("@prefix : <urn:> .\\n" + f"{first.format(x=1)} . {first.format(x=2)} .")
assert kb.count() == 2 * (n + 1), kb.count()
with kb.transaction() as tx:
    tx.delete("@prefix : <urn:> .\\n" + f"{first.format(x=2)} .")
assert kb.count() == n + 1, kb.count()
with kb.transaction() as tx:
    tx.remove_rules("@prefix : <urn:> .\\n" + text.format(n=n // 2, next=n // 2 + 1))
assert kb.count() == n // 2 + 1, kb.count()
with kb.transaction() as tx:
    tx.add_rules("@prefix : <urn:> .\\n" + text.format(n=n // 2, next=n // 2 + 1))
assert kb.count() == n + 1, kb.count()
depth = min(n, 3000)
goal = sys.argv[3].format(n=depth).format(x=1)
proof = kb.explain(goal)
assert proof.height == depth, proof.height
assert len(str(proof)) < 1000 * n
json.dumps(proof.to_json())
"""

CHAINS = {
    "relations": ("p{next}(?x) :- p{n}(?x) .", "p{n}({{x}})"),
    "pairs": ("p{next}(?y, ?x) :- p{n}(?x, ?y) .", "p{n}({{x}}, {{x}})"),
    "classes": ("[?x, a, :C{next}] :- [?x, a, :C{n}] .", "[<urn:i{{x}}>, a, <urn:C{n}>]"),
}


CYCLE = """
import sys
from corollary import KnowledgeBase

n = int(sys.argv[1])
kb = KnowledgeBase("\\n".join(f"p{(i + 1) % n}(?x) :- p{i}(?x) ." for i in range(n)))
for change, fact, expected in (
    ("insert", "p0(1) .", n),
    ("insert", "p5(2) .", 2 * n),
    ("delete", "p0(1) .", n),
    ("delete", "p5(2) .", 0),
):
    with kb.transaction() as tx:
        getattr(tx, change)(fact)
    assert kb.count() == expected, (change, fact, kb.count())
"""


@pytest.mark.parametrize("rules", [1_500, pytest.param(15_000, marks=pytest.mark.long)])
def test_cycles_of_rules(rules: int) -> None:
    """A round considers the rules that read what is new, not all of them."""
    subprocess.run(
        [sys.executable, "-c", CYCLE, str(rules)], check=True, capture_output=True, timeout=_HANG
    )


@pytest.mark.parametrize("rules", [600, pytest.param(20_000, marks=pytest.mark.long, id="20,000")])
@pytest.mark.parametrize("kind", CHAINS)
def test_chains_of_rules(kind: str, rules: int) -> None:
    if rules > 10_000 and kind != "relations":
        pytest.skip("one chain of this length is enough")
    text, fact = CHAINS[kind]
    done = subprocess.run(
        [sys.executable, "-c", CHAIN, str(rules), text, fact],
        capture_output=True,
        text=True,
        timeout=_HANG,
    )
    assert done.returncode == 0, done.stderr


BODY = """
import sys
from corollary import KnowledgeBase, Program

text, head, fact, count = sys.argv[1:]
kb = KnowledgeBase(Program.parse(text))
with kb.transaction() as tx:
    tx.insert(fact)
assert kb.count(head) == int(count), kb.count(head)
with kb.transaction() as tx:
    tx.delete(fact)
row = kb.facts(head).to_pylist()
assert row, "there is an answer"
kb.explain(head.replace("?a", "1"))
"""

ATOMS = 40
BODIES = {
    "chain": [f"e(?x{n}, ?x{n + 1})" for n in range(ATOMS)],
    "star": [f"e(?x0, ?y{n})" for n in range(ATOMS)],
    "clique": [f"e(?x{one}, ?x{two})" for one, two in itertools.combinations(range(10), 2)][:ATOMS],
    "disconnected": [f"e(?x{n}, ?y{n})" for n in range(ATOMS)],
    "constants": [f"e(?x{n}, {n % 3 + 1})" for n in range(ATOMS)],
    "through a constant": [
        f"e(?x{n // 2}, 1)" if n % 2 else f"e(1, ?x{n // 2})" for n in range(ATOMS)
    ],
}


@pytest.mark.parametrize("shape", first(3, BODIES))
def test_long_bodies(shape: str) -> None:
    """Over a complete graph of 4 nodes there are 4^40 ways to match most of them."""
    edges = " ".join(f"e({x}, {y}) ." for x in range(1, 5) for y in range(1, 5))
    text = f"{edges}\nq(?x0) :- {', '.join(BODIES[shape])} ."
    new = "e(5, 5) ."
    expected = 4 if shape in ("constants", "through a constant") else 5
    done = subprocess.run(
        [sys.executable, "-c", BODY, text, "q(?a)", new, str(expected)],
        capture_output=True,
        text=True,
        timeout=_HANG,
    )
    assert done.returncode == 0, done.stderr


STAR = "q(?x) :- " + ", ".join(f"e(?x, ?y{n})" for n in range(32)) + " ."
EDGES = " ".join(f"e(1, {n}) ." for n in range(4))


def without_one(algorithm: str) -> KnowledgeBase:
    kb = KnowledgeBase(STAR + EDGES, algorithm=algorithm)
    with kb.transaction() as tx:
        tx.delete("e(1, 0) .")
    return kb


def test_counts_do_not_wrap_around() -> None:
    """4^32 instances are 0 in 64 bits."""
    for algorithm in ("dred-c", "bf-c", "counting"):
        with pytest.raises(OperationFailed, match="cannot be counted"):
            without_one(algorithm)
    for algorithm in ("dred", "bf"):
        assert "q(1)" in without_one(algorithm)


Substitution = dict[Variable, Constant]


def matches(body: list[Atom], facts: set[tuple[Constant, ...]]) -> list[Substitution]:
    """All substitutions, one atom after the other."""
    found: list[Substitution] = [{}]
    for atom in body:
        found = [
            more
            for known in found
            for fact in facts
            if (more := extended(known, atom, fact)) is not None
        ]
    return found


def extended(known: Substitution, atom: Atom, fact: tuple[Constant, ...]) -> Substitution | None:
    more = dict(known)
    for term, value in zip(atom.terms, fact, strict=True):
        if isinstance(term, Variable):
            if more.setdefault(term, value) != value:
                return None
        elif term != value:
            return None
    return more


@pytest.mark.parametrize("seed", first(6, range(25)))
def test_instances_of_long_bodies_are_counted(seed: int) -> None:
    """Rows that stand for each other still count one by one."""
    draw = random.Random(seed)
    variables = [f"?v{n}" for n in range(draw.randint(2, 7))]
    terms = [*variables, *variables, *variables, "1"]
    body = [f"e({draw.choice(terms)}, {draw.choice(terms)})" for _ in range(draw.randint(5, 12))]
    used = sorted({v for v in variables if any(v in atom for atom in body)})
    head = draw.sample(used, min(len(used), draw.randint(0, 2)))
    pairs = {(draw.randint(1, 4), draw.randint(1, 4)) for _ in range(draw.randint(2, 5))}
    program = Program.parse(
        f"q({', '.join(head)}) :- {', '.join(body)} ."
        + " ".join(f"e({x}, {y}) ." for x, y in sorted(pairs))
    )
    [rule] = program.rules
    facts = {fact.terms for fact in program.facts}
    atoms = [part for part in rule.body if isinstance(part, Atom)]
    expected = matches(atoms, facts)  # type: ignore[arg-type]
    dictionary = Dictionary()
    engine = ColumnarEngine(dictionary)
    explicit = engine.facts(encode(program.facts, dictionary))
    for counted in (False, True):
        found = engine.derive([compile_rule(rule, dictionary)], explicit, counted=counted)
        assert found.instances == len(expected)
    heads = {
        fact for fact in reference.materialize(program, set(program.facts)) if fact.relation == "q"
    }
    assert len(found.facts) == len(heads)
    assert found.counts is not None
    assert sum(int(counts.sum()) for counts in found.counts.values()) == len(expected)


@pytest.mark.parametrize("algorithm", ["bf", "dred", "dred-c"])
def test_updates_touch_each_stratum_once(algorithm: str) -> None:
    """The time of a change that passes all strata grows with their number, not its square."""

    def seconds(strata: int) -> float:
        text = "".join(f"p{n + 1}(?x) :- p{n}(?x) .\n" for n in range(strata))
        kb = KnowledgeBase(text, algorithm=algorithm)
        begin = time.process_time()
        with kb.transaction() as tx:
            tx.insert("p0(1) . p0(2) .")
        end = time.process_time()
        assert kb.count() == 2 * (strata + 1)
        return end - begin

    seconds(10)  # compiles
    few, many = (min(seconds(strata) for _ in range(2)) for strata in (200, 2000))
    assert many < 25 * few
