"""Laws that every engine keeps: whatever the facts and the rules, it agrees with the oracle.

The oracle reads one set of facts. Where negation and aggregates read another one, the relations
that they read get other names (`apart`), and so do the facts of that other set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from corollary.algorithms import seminaive
from corollary.core import graph_engine, tables
from corollary.core.compile import (
    CompiledRule,
    compile_rule,
    covers,
    narrow_predicate,
    narrow_terms,
)
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Derived, Difference, Engine, Facts
from corollary.core.tables import atom_of, encode
from corollary.lang import reference
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    TRIPLE,
    TYPE,
    Aggregate,
    Atom,
    BodyLiteral,
    Constant,
    Negation,
    Rule,
    Variable,
)
from tests import strategies
from tests.dense import compositions, dense_programs, more_facts

MakeEngine = Callable[[Dictionary], Engine[Any]]

# -- facts as atoms and as rows -------------------------------------------------------------------


def decode(facts: Facts, dictionary: Dictionary) -> set[Atom]:
    """All facts as ground atoms."""
    return set(tables.decode(facts, dictionary))


def counted(derived: Derived[Any], dictionary: Dictionary) -> Counter[Atom]:
    """The heads, each as often as it has instances."""
    assert derived.counts is not None
    assert set(derived.counts) == set(derived.facts.predicates())
    out: Counter[Atom] = Counter()
    for predicate, counts in derived.counts.items():
        rows = derived.facts.rows(predicate).tolist()
        for row, count in zip(rows, counts.tolist(), strict=True):
            out[atom_of(predicate, dictionary.terms(row))] += count
    return out


def materialized(make: MakeEngine, program: Program) -> set[Atom]:
    """All facts that follow from a program, by semi-naive evaluation on an engine."""
    dictionary = Dictionary()
    engine = make(dictionary)
    explicit = engine.facts(encode(program.facts, dictionary))
    return decode(seminaive.materialize(program, explicit, engine).facts, dictionary)


# -- the oracle with positive and negative facts apart --------------------------------------------


def _other(atom: Atom) -> Atom:
    return Atom("other " + atom.relation, atom.terms)


def apart(rule: Rule) -> Rule:
    """The rule with other names for the relations that it negates or aggregates."""

    def literal(part: BodyLiteral) -> BodyLiteral:
        match part:
            case Negation(atom):
                return Negation(_other(atom))
            case Aggregate(atoms, group, bindings):
                return Aggregate(tuple(map(_other, atoms)), group, bindings)
        return part

    return Rule(rule.head, tuple(map(literal, rule.body)))


@dataclass(frozen=True)
class Sets:
    """Ip, In, Δp ⊆ Ip, and Δn that has nothing in common with In."""

    positive: frozenset[Atom]
    negative: frozenset[Atom]
    delta: frozenset[Atom] = frozenset()
    negative_delta: frozenset[Atom] = frozenset()

    def instances(self, rule: Rule) -> list[reference.Substitution]:
        """The instances of Π[Ip, In]."""
        known = {*self.positive, *map(_other, self.negative)}
        return reference.instances(apart(rule), known)

    def new_instances(self, rule: Rule) -> list[reference.Substitution]:
        """The instances of Π[Ip, In : Δp, Δn]."""
        return [s for s in self.instances(rule) if self._uses_delta(rule, s)]

    def _uses_delta(self, rule: Rule, s: reference.Substitution) -> bool:
        return any(
            reference.substitute(part, s) in self.delta
            if isinstance(part, Atom)
            else isinstance(part, Negation)
            and bool(reference.join([s], part.atom, {*self.negative_delta}))
            for part in rule.body
        )


def heads(rule: Rule, instances: Iterable[reference.Substitution]) -> Counter[Atom]:
    return Counter(reference.substitute(rule.head, s) for s in instances)


# -- examples ------------------------------------------------------------------------------------

_few_edges = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12)
_some_facts = st.lists(strategies.facts(), max_size=12).map(frozenset)


class Example(NamedTuple):
    """Rules, and facts for each of the roles; shown in the rule language if a law fails."""

    rules: tuple[Rule, ...]
    sets: Sets

    def __repr__(self) -> str:
        lines = [f"  {Printer().rule(rule)}" for rule in self.rules]
        for role, facts in vars(self.sets).items():
            lines.append(f"{role}: " + " ".join(sorted(f"{Printer().atom(a)} ." for a in facts)))
        return "\n".join(["", *lines])


def as_example(program: Program) -> Example:
    return Example(program.rules, Sets(frozenset(program.facts), frozenset()))


@st.composite
def rules_and_sets(
    draw: st.DrawFn,
    programs: st.SearchStrategy[Program] = dense_programs(),  # noqa: B008
) -> Example:
    """A program, and sets that have much to do with it."""
    program = draw(programs)
    random = Random(draw(st.integers(0, 2**64 - 1)))
    positive = frozenset(program.facts)
    if random.random() < 0.5:  # a materialization has more instances than random facts
        positive = frozenset(reference.materialize(program))
    delta = frozenset(fact for fact in sorted(positive, key=repr) if random.random() < 0.4)
    others = [more_facts(program, random.getrandbits(64)) for _ in range(2)]
    negative = random.choice([positive, positive - delta, others[0]])
    negative_delta = random.choice([delta, delta | others[1], others[1]]) - negative
    return Example(program.rules, Sets(positive, negative, delta, negative_delta))


def _parsed(text: str) -> frozenset[Atom]:
    return frozenset(Program.parse(text).facts)


# Δp and Δn in several atoms of one instance, in all combinations.
IN_MANY_PLACES = Example(
    Program.parse(
        """
        p(?x, ?y) :- a(?x), b(?x, ?y), NOT c(?x), NOT d(?y, ?z, ?z), NOT e(?x, ?y) .
        q(?x) :- a(?x), a(?y), b(?x, ?y), NOT c(?y), NOT c(?x) .
        r() :- NOT c(?x), NOT n() .
        """
    ).rules,
    Sets(
        _parsed("a(1) . a(2) . a(3) . b(1, 1) . b(1, 2) . b(2, 1) . b(2, 3) .")
        | _parsed("b(3, 2) . b(3, 3) . b(3, 4) ."),
        _parsed("d(3, 1, 2) . e(3, 3) . d(4, 1, 1) ."),
        _parsed("a(1) . a(3) . b(1, 2) . b(2, 3) ."),
        _parsed("c(1) . c(2) . e(2, 3) . n() . d(1, 5, 5) . d(2, 6, 6) . d(2, 7, 7) .")
        | _parsed("d(3, 1, 5) . d(4, 5, 5) ."),
    ),
)

# -- the laws -------------------------------------------------------------------------------------


def facts_behave_like_sets(
    make: MakeEngine, example: tuple[frozenset[Atom], frozenset[Atom]]
) -> None:
    dictionary = Dictionary()
    engine = make(dictionary)
    one, two = example
    a = engine.facts(encode([*one, *one], dictionary))
    b = engine.facts(encode(two, dictionary))
    for facts, expected in ((a, one), (b, two)):
        assert decode(facts, dictionary) == expected
        assert len(facts) == len(expected)
        assert set(facts.predicates()) == {narrow_predicate(atom) for atom in expected}
        for predicate in facts.predicates():
            rows = facts.rows(predicate)
            assert rows.dtype == np.uint32
            assert rows.tolist() == sorted(rows.tolist()), "rows are in sorted order"
    for result, expected in (
        (a.union(b), one | two),
        (a.difference(b), one - two),
        (a.intersection(b), one & two),
        (a.union(a), one),
        (a.difference(a), frozenset()),
    ):
        assert decode(result, dictionary) == expected
        assert len(result) == len(expected)
        assert set(result.predicates()) == {narrow_predicate(atom) for atom in expected}
    changes_are_told(engine, one, two)
    wide = [Predicate(TRIPLE), Predicate(TRIPLE, TYPE)]
    for predicate in {*wide, *map(narrow_predicate, one | two)}:
        expected = frozenset(atom for atom in one if covers(predicate, narrow_predicate(atom)))
        assert decode(a.only([predicate]), dictionary) == expected
        assert decode(a.without([predicate]), dictionary) == one - expected
    assert len(a.only([])) == 0
    assert len(a.only([*map(narrow_predicate, one)])) == len(one)
    # The operations leave their operands as they were.
    assert decode(a, dictionary) == one
    assert decode(b, dictionary) == two


def changes_are_told(engine: Any, one: frozenset[Atom], two: frozenset[Atom]) -> None:
    """A set that changes again and again, by parts of two sets, and what it says about it."""
    dictionary = engine.dictionary
    atoms = sorted(one | two, key=repr)
    known: set[Atom] = set()
    facts = other = engine.facts({})
    for size in (1, 2, 3, 5):
        deleted, inserted = set(atoms[::size]), set(atoms[size::2]) & one
        changed, went, came = facts.changed(
            *(engine.facts(encode(part, dictionary)) for part in (deleted, inserted))
        )
        assert decode(went, dictionary) == (known & deleted) - inserted
        assert decode(came, dictionary) == inserted - known
        known = (known - deleted) | inserted
        assert decode(changed, dictionary) == known
        assert len(changed) == len(known)
        other = other.replaced(went, came)
        assert decode(other, dictionary) == known
        assert decode(facts.replaced(went, came, shared=other), dictionary) == known
        facts = changed


Pairs = list[tuple[int, int]]


def closures_differ_as_they_should(
    make: MakeEngine, example: tuple[bool, bool, list[tuple[Pairs, Pairs]]]
) -> None:
    """`reclose` after each of some changes of given pairs and edges; `copied`: pairs are edges."""
    backwards, copied, changes = example
    body = "e(?x, ?y), p(?y, ?z)" if backwards else "p(?x, ?y), e(?y, ?z)"
    engine = make(Dictionary())
    rule = compile_rule(Program.parse(f"p(?x, ?z) :- {body} .").rules[0], engine.dictionary)
    p, e = Predicate("p"), Predicate("e")
    before, known = engine.facts({}), engine.facts({})
    for pairs, edges in changes:
        rows = {p: edges if copied else pairs, e: edges}
        changed = engine.facts({q: np.array(r, np.uint32) for q, r in rows.items() if r})
        after = before.difference(changed).union(changed.difference(before))
        found = graph_engine.reclose(engine, rule, before, after, changed=changed, known=known)
        given = after.only([p])
        closed = given.union(engine.close([rule], after, given).facts)
        _check_difference(known, found, closed)
        before, known = after, known.difference(found.deleted).union(found.inserted)


def components_differ_as_they_should(make: MakeEngine, changes: list[Pairs]) -> None:
    """`reconnect` after each of some changes of edges."""
    engine = make(Dictionary())
    e, p = Predicate("e"), Predicate("p")
    text = "p(?x, ?y) :- e(?x, ?y) . p(?y, ?x) :- e(?x, ?y) . p(?x, ?z) :- p(?x, ?y), p(?y, ?z) ."
    program = Program.parse(text)
    before, known = engine.facts({}), engine.facts({})
    for edges in changes:
        changed = engine.facts({e: np.array(edges, np.uint32)} if edges else {})
        after = before.difference(changed).union(changed.difference(before))
        found = graph_engine.reconnect(engine, e, p, before, after, changed=changed, known=known)
        closed = seminaive.materialize(program, after, engine, modules=False).facts.only([p])
        _check_difference(known, found, closed)
        before, known = after, known.difference(found.deleted).union(found.inserted)
        least = graph_engine.components(engine, e, Predicate("least"), after).rows(
            Predicate("least")
        )
        first: dict[int, int] = {}
        for x, y in known.rows(p).tolist():  # in order
            first.setdefault(x, y)
        assert dict(least.tolist()) == first


def _check_difference(known: Any, found: Difference[Any], closed: Any) -> None:
    assert len(found.inserted) == len(closed.difference(known))
    assert len(found.inserted.difference(closed)) == len(found.inserted.intersection(known)) == 0
    assert len(found.deleted) == len(known.difference(closed))
    assert len(found.deleted.intersection(closed)) == len(found.deleted.difference(known)) == 0


def derive_finds_every_instance_once(make: MakeEngine, example: Example) -> None:
    """Π[Ip], without and with In."""
    rules, sets = example
    dictionary = Dictionary()
    engine = make(dictionary)
    compiled = [compile_rule(rule, dictionary) for rule in rules]
    facts = engine.facts(encode(sets.positive, dictionary))
    negative = engine.facts(encode(sets.negative, dictionary))
    alone = Sets(sets.positive, sets.positive)
    for oracle, found in (
        (alone, engine.derive(compiled, facts, counted=True)),
        (sets, engine.derive(compiled, facts, negative=negative, counted=True)),
    ):
        expected: Counter[Atom] = Counter()
        for rule in rules:
            expected += heads(rule, oracle.instances(rule))
        assert decode(found.facts, dictionary) == set(expected)
        assert counted(found, dictionary) == expected
        assert found.instances == expected.total()


def derive_finds_every_new_instance_once(make: MakeEngine, example: Example) -> None:
    """Π[Ip, In : Δp, Δn], and with one of the two only."""
    rules, sets = example
    dictionary = Dictionary()
    engine = make(dictionary)
    compiled = [compile_rule(rule, dictionary) for rule in rules]
    facts = engine.facts(encode(sets.positive, dictionary))
    negative = engine.facts(encode(sets.negative, dictionary))
    delta = engine.facts(encode(sets.delta, dictionary))
    negative_delta = engine.facts(encode(sets.negative_delta, dictionary))
    one = Sets(sets.positive, sets.negative, sets.delta)
    other = Sets(sets.positive, sets.negative, negative_delta=sets.negative_delta)
    for oracle, deltas in (
        (sets, {"delta": delta, "negative_delta": negative_delta}),
        (one, {"delta": delta}),
        (other, {"negative_delta": negative_delta}),
    ):
        found = engine.derive(compiled, facts, negative=negative, counted=True, **deltas)
        expected: Counter[Atom] = Counter()
        for rule in rules:
            expected += heads(rule, oracle.new_instances(rule))
        assert decode(found.facts, dictionary) == set(expected)
        assert counted(found, dictionary) == expected
        assert found.instances == expected.total()


def derive_of_heads_finds_their_instances(make: MakeEngine, example: Example) -> None:
    """With `heads`: the instances of these heads, and no others."""
    rules, sets = example
    dictionary = Dictionary()
    engine = make(dictionary)
    compiled = [compile_rule(rule, dictionary) for rule in rules]
    facts = engine.facts(encode(sets.positive, dictionary))
    negative = engine.facts(encode(sets.negative, dictionary))
    delta = engine.facts(encode(sets.delta, dictionary))
    all_heads = {head for rule in rules for head in heads(rule, sets.instances(rule))}
    wanted = {*sorted(all_heads, key=repr)[::2], *sets.negative_delta}
    asked = engine.facts(encode(wanted, dictionary))
    plain = engine.derive(compiled, facts, negative=negative, heads=asked, counted=True)
    new = engine.derive(compiled, facts, negative=negative, delta=delta, heads=asked, counted=True)
    before = Sets(sets.positive, sets.negative, sets.delta)
    for found, instances in ((plain, sets.instances), (new, before.new_instances)):
        expected: Counter[Atom] = Counter()
        for rule in rules:
            expected += heads(rule, instances(rule))
        expected = Counter({head: n for head, n in expected.items() if head in wanted})
        assert counted(found, dictionary) == expected
        assert found.instances == expected.total()
    # Without counts, an engine may look for one instance of a head only, but finds the same heads.
    some = engine.derive(compiled, facts, negative=negative, heads=asked)
    assert decode(some.facts, dictionary) == decode(plain.facts, dictionary)


def counts_add_up(make: MakeEngine, example: Example) -> None:
    """C + Π[Ip] + Π[Ip : Δ] − Π[Ip : Δ] and its parts."""
    rules, sets = example
    dictionary = Dictionary()
    engine = make(dictionary)
    compiled = [compile_rule(rule, dictionary) for rule in rules]
    facts = engine.facts(encode(sets.positive, dictionary))
    delta = engine.facts(encode(sets.delta, dictionary))
    every = engine.derive(compiled, facts, counted=True)
    new = engine.derive(compiled, facts, delta=delta, counted=True)
    # Π[Ip] and Π[Ip : Δ] of the oracle, where negation reads Ip
    alone = Sets(sets.positive, sets.positive, sets.delta)
    of_all: Counter[Atom] = Counter()
    of_new: Counter[Atom] = Counter()
    for rule in rules:
        of_all += heads(rule, alone.instances(rule))
        of_new += heads(rule, alone.new_instances(rule))
    counts = engine.counts().plus(every)
    for kept, expected in (
        (counts, of_all),
        (counts.plus(new), of_all + of_new),
        (counts.minus(new), of_all - of_new),
        (counts.plus(new).minus(every), of_new),
        (counts.minus(every), Counter()),
    ):
        assert decode(kept.facts(), dictionary) == set(expected)
        assert decode(kept.positive(facts), dictionary) == sets.positive & set(expected)
        asked = every.facts.union(facts)
        found: Counter[Atom] = Counter()
        for predicate, numbers in kept.of(asked).items():
            rows = asked.rows(predicate).tolist()
            for row, number in zip(rows, numbers.tolist(), strict=True):
                found[atom_of(predicate, dictionary.terms(row))] = number
        assert +found == expected
        assert set(found) == set(of_all) | sets.positive
    for predicate in (Predicate(TRIPLE), *{narrow_predicate(atom) for atom in of_all}):
        left = decode(counts.without([predicate]).facts(), dictionary)
        assert left == {atom for atom in of_all if not covers(predicate, narrow_predicate(atom))}


def close_is_the_fixpoint_of_derive(make: MakeEngine, example: Example) -> None:
    """And considers every instance that uses a fact of Δ ∪ J once."""
    rules, sets = example
    dictionary = Dictionary()
    engine = make(dictionary)
    closed = engine.close(
        [compile_rule(rule, dictionary) for rule in rules],
        engine.facts(encode(sets.positive, dictionary)),
        engine.facts(encode(sets.delta, dictionary)),
        negative=engine.facts(encode(sets.negative, dictionary)),
    )
    now = Sets(sets.positive, sets.negative, sets.delta)
    while True:
        found = {head for rule in rules for head in heads(rule, now.new_instances(rule))}
        new = found - now.positive
        if not new:
            break
        now = Sets(now.positive | new, now.negative, now.delta | new)
    assert decode(closed.facts, dictionary) == now.positive - sets.positive
    assert closed.instances == sum(len(now.new_instances(rule)) for rule in rules)


def materialize_agrees_with_the_oracle(make: MakeEngine, example: Example) -> None:
    """And considers every applicable instance once."""
    program = Program.of(example.rules, sorted(example.sets.positive, key=repr))
    dictionary = Dictionary()
    engine = make(dictionary)
    explicit = engine.facts(encode(program.facts, dictionary))
    progress: list[int] = []

    def on_progress(stratum: int, strata: int, round_: int, facts: int) -> None:
        progress.append(stratum)

    found = seminaive.materialize(program, explicit, engine, modules=False, on_progress=on_progress)
    expected = reference.materialize(program)
    assert decode(found.facts, dictionary) == expected
    modular = seminaive.materialize(program, explicit, engine)
    assert decode(modular.facts, dictionary) == expected
    applicable = sum(len(reference.instances(rule, expected)) for rule in program.rules)
    assert sum(found.statistics.derivations.values()) == applicable
    assert progress == sorted(progress)
    assert {*progress} == {*range(1, len(program.strata) + 1)}


def support_finds_the_instances_of_heads(make: MakeEngine, example: Example) -> None:
    rules, sets = example
    dictionary = Dictionary()
    engine = make(dictionary)
    within = Sets(sets.positive, sets.negative)
    of_rules = {rule: within.instances(rule) for rule in rules}
    derivable = {head for rule, found in of_rules.items() for head in heads(rule, found)}
    # Some heads that have instances, and some facts that may have none.
    wanted = {*sorted(derivable, key=repr)[::2], *sets.delta}
    found: dict[Rule, Counter[frozenset[tuple[Variable, Constant]]]] = {
        rule: Counter() for rule in rules
    }
    for support in engine.support(
        [compile_rule(rule, dictionary) for rule in rules],
        engine.facts(encode(wanted, dictionary)),
        within=engine.facts(encode(sets.positive, dictionary)),
        negative=engine.facts(encode(sets.negative, dictionary)),
    ):
        numbers = _numbers(support.rule)
        assert support.bindings.shape[1] == support.rule.bound == len(numbers)
        for row in support.bindings.tolist():
            terms = dictionary.terms(row)
            s = frozenset((variable, terms[number]) for variable, number in numbers.items())
            found[support.rule.source][s] += 1
    for rule, instances in of_rules.items():
        chosen = (s for s in instances if reference.substitute(rule.head, s) in wanted)
        assert found[rule] == Counter(frozenset(s.items()) for s in chosen)


def support_tells_unproved_atoms(make: MakeEngine, example: Example) -> None:
    """Instances with exactly one, or with several, body facts that are not in `within`."""
    rules, sets = example
    dictionary = Dictionary()
    engine = make(dictionary)
    within = sets.positive - sets.delta
    every = Sets(sets.positive, within)
    wanted = {head for rule in rules for head in heads(rule, every.instances(rule))}
    for several in (False, True):
        found: dict[Rule, int] = dict.fromkeys(rules, 0)
        for support in engine.support(
            [compile_rule(rule, dictionary) for rule in rules],
            engine.facts(encode(wanted, dictionary)),
            within=engine.facts(encode(within, dictionary)),
            unproved=engine.facts(encode(sets.positive, dictionary)),
            several=several,
        ):
            assert len(np.unique(support.bindings, axis=0)) == len(support.bindings)
            found[support.rule.source] += len(support.bindings)
        for rule in rules:
            body = [part for part in rule.body if isinstance(part, Atom)]
            open_ = [
                sum(reference.substitute(atom, s) in sets.delta for atom in body)
                for s in every.instances(rule)
            ]
            assert found[rule] == sum(n > 1 if several else n == 1 for n in open_)


def _numbers(rule: CompiledRule) -> dict[Variable, int]:
    """The rule's bound variables with their numbers."""
    numbers: dict[Variable, int] = {}
    atoms = (part for part in rule.source.body if isinstance(part, Atom))
    for atom, pattern in zip(atoms, rule.body, strict=True):
        arguments = zip(narrow_terms(atom), pattern.arguments, strict=True)
        numbers |= {term: number for term, number in arguments if isinstance(term, Variable)}
    aggregates = (part for part in rule.source.body if isinstance(part, Aggregate))
    for aggregate, grouping in zip(aggregates, rule.groupings, strict=True):
        numbers |= zip(aggregate.variables(), grouping.outer, strict=True)
    return numbers


@dataclass(frozen=True)
class Law:
    """What holds for all examples of an engine; `spark` is how many of them Spark has time for.

    `always` are examples that random ones are not likely to be like.
    """

    check: Callable[[MakeEngine, Any], None]
    examples: st.SearchStrategy[Any]
    spark: int
    always: tuple[Any, ...] = ()
    about: str = ""

    @property
    def name(self) -> str:
        return self.check.__name__ + self.about


LAWS = [
    Law(facts_behave_like_sets, st.tuples(_some_facts, _some_facts), spark=8),
    Law(
        closures_differ_as_they_should,
        st.tuples(
            st.booleans(),
            st.booleans(),
            st.lists(st.tuples(_few_edges, _few_edges), min_size=1, max_size=5),
        ),
        spark=2,
    ),
    Law(components_differ_as_they_should, st.lists(_few_edges, min_size=1, max_size=6), spark=2),
    Law(derive_finds_every_instance_once, rules_and_sets(), spark=8),
    Law(derive_finds_every_new_instance_once, rules_and_sets(), 8, (IN_MANY_PLACES,)),
    Law(close_is_the_fixpoint_of_derive, rules_and_sets(), spark=6),
    Law(materialize_agrees_with_the_oracle, dense_programs().map(as_example), spark=6),
    Law(support_finds_the_instances_of_heads, rules_and_sets(), spark=6),
    Law(derive_of_heads_finds_their_instances, rules_and_sets(), 6, (IN_MANY_PLACES,)),
    Law(support_tells_unproved_atoms, rules_and_sets(), 4, (IN_MANY_PLACES,)),
    Law(counts_add_up, rules_and_sets(), spark=4),
    # Engines have ways of their own for closures of graphs.
    Law(
        close_is_the_fixpoint_of_derive, rules_and_sets(compositions()), 2, about="_of_compositions"
    ),
    Law(
        materialize_agrees_with_the_oracle,
        compositions().map(as_example),
        spark=2,
        about="_of_compositions",
    ),
]
