"""Programs with equality, streams of changes that merge and split classes, and their comparison."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from corollary.algorithms.reasoner import Options
from corollary.algorithms.seminaive import materialize
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, is_auxiliary
from corollary.reasoning.representatives import RepresentativeReasoner
from tests.engines.conformance import MakeEngine
from tests.streams import Commit, Stream

PREFIX = "@prefix : <http://example.org/> .\n"
REFLEXIVE = """
    [eq-ref] [?s, owl:sameAs, ?s] :- [?s, ?p, ?o] .
    [eq-ref] [?p, owl:sameAs, ?p] :- [?s, ?p, ?o] .
    [eq-ref] [?o, owl:sameAs, ?o] :- [?s, ?p, ?o] .
"""
EQUALITY = """
    [eq-sym] [?y, owl:sameAs, ?x] :- [?x, owl:sameAs, ?y] .
    [eq-trans] [?x, owl:sameAs, ?z] :- [?x, owl:sameAs, ?y], [?y, owl:sameAs, ?z] .
    [eq-rep-s] [?t, ?p, ?o] :- [?s, owl:sameAs, ?t], [?s, ?p, ?o] .
    [eq-rep-p] [?s, ?q, ?o] :- [?p, owl:sameAs, ?q], [?s, ?p, ?o] .
    [eq-rep-o] [?s, ?p, ?t] :- [?o, owl:sameAs, ?t], [?s, ?p, ?o] .
"""
# Equality in plain relations, which representatives imply.
PLAIN = """
    near(?y, ?z) :- near(?x, ?z), [?x, owl:sameAs, ?y] .
    near(?z, ?y) :- near(?z, ?x), [?x, owl:sameAs, ?y] .
    node(?y) :- node(?x), [?x, owl:sameAs, ?y] .
"""
POOL = """
    [?y, owl:sameAs, ?z] :- [?p, a, :Functional], [?x, ?p, ?y], [?x, ?p, ?z] .
    [?x, owl:sameAs, ?y] :- [?p, a, :Inverse], [?x, ?p, ?z], [?y, ?p, ?z] .
    [?x, owl:sameAs, ?y] :- [?x, a, :C], [?y, a, :C], [?x, :r, ?z], [?y, :r, ?z] .
    [?y, owl:sameAs, ?z] :- [?x, :p, ?y], [?x, :p, ?z] .
    [?x, ?q, ?y] :- [?p, :sub, ?q], [?x, ?p, ?y] .
    [?x, a, ?d] :- [?c, :subClass, ?d], [?x, a, ?c] .
    [?x, a, :D] :- [?x, a, :C] .
    [?x, :p, ?z] :- [?x, :q, ?y], [?y, :r, ?z] .
    [?x, :r, ?z] :- [?x, :r, ?y], [?y, :r, ?z] .
    [?x, :q, ?y] :- [?x, owl:sameAs, ?y] .
    [?x, owl:sameAs, :a] :- [?x, a, :D], [?x, :q, ?y] .
    [:b, :p, ?x] :- [?x, a, :C] .
    [?x, a, :C] :- [?x, :q, :c] .
    [?x, :r, ?y] :- [?x, :q, ?y], FILTER(!sameTerm(?x, ?y)) .
    [?x, a, :E] :- [?x, :p, ?y], FILTER(sameTerm(?y, :b) || isLiteral(?y)) .
    near(?x, ?y) :- [?x, :q, ?y] .
    near(?x, ?z) :- near(?x, ?y), near(?y, ?z) .
    node(?x) :- near(?x, ?x) .
    node(:b) :- [?x, a, :C] .
    [?x, a, :F] :- node(?x) .
"""
NODES = (":a", ":b", ":c", ":a", ":b", ":c", ":d", ":e", "1", '"x"')
PROPERTIES = (":p", ":q", ":r")


def parse(text: str) -> Program:
    return Program.parse(PREFIX + text)


def random_fact(random: Random) -> str:
    """A triple of one of the kinds that the pool reads, or a fact of a plain relation."""
    one, two = random.choice(NODES), random.choice(NODES)
    kind = random.random()
    if kind < 0.25:
        # Rarely properties and classes, even those of RDF and OWL themselves.
        if random.random() < 0.25:
            one, two = random.sample([*PROPERTIES, ":C", ":D", ":Functional", ":a"], 2)
        if random.random() < 0.04:
            one, two = random.choice(PROPERTIES), random.choice(["rdf:type", "owl:sameAs"])
        return f"[{one}, owl:sameAs, {two}] ."
    if kind < 0.7:
        return f"[{one}, {random.choice(PROPERTIES)}, {two}] ."
    if kind < 0.85:
        return f"[{one}, a, {random.choice([':C', ':D', ':E', ':a'])}] ."
    if kind < 0.93:
        return random.choice([
            "[:q, a, :Functional] .", "[:q, a, :Functional] .", "[:r, a, :Inverse] .",
            "[:q, :sub, :r] .",
            "[:p, :sub, owl:sameAs] ." if random.random() < 0.1 else "[:r, :sub, :q] .",
            "[:D, :subClass, :C] .",
        ])  # fmt: skip
    return f"near({one}, {two}) ."


def equality_stream(seed: int, commits: int = 6) -> Stream:
    """The stream of a seed."""
    random = Random(seed)
    pool = parse(POOL).rules
    equality = parse(EQUALITY + (REFLEXIVE if random.random() < 0.3 else "")).rules
    # Mostly with a rule that makes terms equal: those stand first.
    merging = random.sample(pool[:4], random.choice((0, 1, 1, 2)))
    rules = Program.of([*equality, *merging, *random.sample(pool, random.choice((1, 2, 3)))])
    everything = sorted(
        {parse(random_fact(random)).facts[0] for _ in range(random.choice((8, 14, 24)))}, key=repr
    )
    facts = {fact for fact in everything if random.random() < 0.7}
    start, made = Program.of(rules.rules, facts), []
    for _ in range(commits):
        kind = random.random()
        out = [fact for fact in everything if fact not in facts]
        held = sorted(facts, key=repr)
        deleted = frozenset(random.sample(held, min(len(held), random.choice((0, 1, 1, 2, 4)))))
        inserted = frozenset(random.sample(out, min(len(out), random.choice((0, 0, 1, 2)))))
        if kind < 0.1:
            inserted = frozenset(random.sample(sorted(facts, key=repr), len(facts) // 2)) | inserted
        own = [rule for rule in rules.rules if rule not in equality]
        removed = tuple(random.sample(own, min(len(own), random.choice((0, 0, 0, 1)))))
        spare = [rule for rule in pool if rule not in rules]
        added = tuple(random.sample(spare, random.choice((0, 0, 0, 1))))
        made.append(Commit(inserted, deleted, added, removed))
        rules = rules.removed(*removed).added(*added)
        facts = (facts - deleted) | inserted
    return Stream(seed, start, tuple(made))


class Kept:
    """An `RepresentativeReasoner` that speaks in atoms."""

    def __init__(
        self, program: Program, make_engine: MakeEngine = ColumnarEngine, **options: Any
    ) -> None:
        self.engine = make_engine(Dictionary())
        self.maintainer = RepresentativeReasoner(
            program.without_facts(), self.encode(program.facts), self.engine, Options(**options)
        )

    def encode(self, atoms: Iterable[Atom]) -> Any:
        return self.engine.facts(encode(atoms, self.engine.dictionary))

    def decode(self, facts: Any) -> set[Atom]:
        return set(decode(facts, self.engine.dictionary))

    @property
    def facts(self) -> set[Atom]:
        return self.decode(self.maintainer.facts)

    def play(self, commit: Commit) -> Changes[Any]:
        return self.maintainer.update(
            Changes(
                self.encode(commit.inserted),
                self.encode(commit.deleted),
                commit.added,
                commit.removed,
            )
        )


def by_rules(program: Program, explicit: Iterable[Atom], *, oracle: bool = False) -> set[Atom]:
    """The materialization by the rules of equality, in plain relations too."""
    full = program.without_facts() | parse(PLAIN)
    if oracle:
        return visible(reference.materialize(full, explicit))
    engine = ColumnarEngine(Dictionary())
    done = materialize(full, engine.facts(encode(explicit, engine.dictionary)), engine)
    return visible(decode(done.facts, engine.dictionary))


def visible(facts: Iterable[Atom]) -> set[Atom]:
    """Without the facts of auxiliary relations."""
    return {fact for fact in facts if not is_auxiliary(fact.relation)}


def replay(
    stream: Stream,
    make_engine: MakeEngine = ColumnarEngine,
    *,
    oracle: bool = False,
    **options: Any,
) -> Kept:
    """Play a stream, and compare facts and changes with the rules after every commit."""
    kept = Kept(stream.program, make_engine, **options)
    rules, explicit = stream.program.without_facts(), frozenset(stream.program.facts)
    known = by_rules(rules, explicit, oracle=oracle)
    assert kept.facts == known, "at first"
    for number, commit in enumerate(stream.commits, 1):
        rules = rules.removed(*commit.removed).added(*commit.added)
        explicit = (explicit - commit.deleted) | commit.inserted
        wanted = by_rules(rules, explicit, oracle=oracle)
        changes = kept.play(commit)
        assert kept.facts == wanted, f"commit {number}"
        assert kept.maintainer.count() == len(wanted), f"commit {number}"
        assert kept.decode(changes.inserted) == wanted - known, f"commit {number}"
        assert kept.decode(changes.deleted) == known - wanted, f"commit {number}"
        assert kept.decode(kept.maintainer.explicit) == explicit
        assert kept.maintainer.program == rules
        known = wanted
    return kept
