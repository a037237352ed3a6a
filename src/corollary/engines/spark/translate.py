"""Translate Π[Ip, In : Δp, Δn] to clauses over operands: one per position at which Δ may enter.

An operand is a set of facts named by a letter; an atom that reads it is an atom over that letter's
relations. Data that only the driver can provide also becomes relations: the groups of aggregates,
which it computes first, and the terms that satisfy filters, for which tasks emit queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from corollary.core.calls import computed
from corollary.core.compile import (
    CompiledExpression,
    CompiledRule,
    Condition,
    Grouping,
    Pattern,
    substituted_expression,
)
from corollary.core.delta import (
    DeltaPlan,
    Operand,
    delta_plans,
    full_plan,
    negative_delta_plans,
    unproved_plans,
)
from corollary.core.expressions import holds
from corollary.engines.spark.answers import TermQuery
from corollary.engines.spark.base import SparkRun
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.filters import Column, compared_variables
from corollary.engines.spark.packing import NONE, Key
from corollary.engines.spark.plan import (
    AUXILIARY,
    QUERIES,
    Clause,
    Plan,
    Planner,
    Source,
    SourceAtom,
)
from corollary.engines.spark.tuning import tuning
from corollary.lang.stratify import Predicate

_FRESH = 1 << 16  # first number of variables that do not occur in a rule


class TermAspect(Enum):
    """The subject of a query about terms without a condition."""

    VALUE = "which value it has"
    TEXT = "what it is, so that tasks can compare it"


VALUE, TEXT = TermAspect

Reading = tuple[list[SourceAtom], list[SourceAtom], list[SourceAtom]]  # positive, absent, present


@dataclass
class Translation:
    """Clauses of rules in a plan, and the facts that their letters denote."""

    run: SparkRun
    operands: Mapping[str, SparkFacts]
    recursive: Sequence[CompiledRule] = ()  # rules whose heads are facts of `f`
    queries: dict[Key, TermQuery] = field(default_factory=dict)
    compared: set[Column] = field(default_factory=set)  # columns whose terms filters compare
    groups: Mapping[Grouping, Predicate] = field(default_factory=dict)  # facts of `g`
    replicated: Collection[Predicate] = ()  # predicates whose facts are replicated to all tasks

    def __post_init__(self) -> None:
        self.plan = Plan(self.run.type_id)
        derived = {self.source("f", rule.head) for rule in self.recursive}
        wide = any(p.wide for r in self.recursive for p in (r.head, *r.body))
        if wide:  # any of them may be derived through another one
            derived |= {self.source("f", p) for r in self.recursive for p in r.body}
        self._sizes: dict[Source, int] = {}
        replicated = {
            key
            for key in (self.run.key(p, 0)[:3] for p in self.replicated)
            if self._is_replicated(key)
        }
        self.planner = Planner(
            self.plan,
            self._size,
            broadcast_limit=self.run.options.tiny,
            derived=derived,
            replicated=replicated,
        )
        self._query_keys: dict[CompiledExpression | TermAspect, Key] = {}
        self._asking_atoms: set[tuple[Key, Source, int]] = set()
        for rule in self.recursive:
            primary = self.source("f", rule.head)
            if wide and primary.key[0] == 0:
                primary = self.plan.wide("f")[1]
            self.plan.primary[primary] = self.plan.place(primary, 0)

    def _is_replicated(self, relation: tuple[int, ...]) -> bool:
        """Whether the facts of a relation may be replicated, in each of the operands."""
        largest = max(
            (
                sum(n for key, n in self._counts_of(facts).items() if key[:3] == relation)
                for facts in self.operands.values()
            ),
            default=0,
        )
        return largest <= tuning.replicated_facts_limit

    def source(self, letter: str, pattern: Pattern) -> Source:
        """Return the source that an atom reads."""
        return Source(letter, self.run.key(pattern.predicate, len(pattern.arguments)))

    def atom(self, letter: str, pattern: Pattern) -> SourceAtom:
        return SourceAtom(self.source(letter, pattern), pattern.arguments)

    def atoms(self, letter: str, patterns: Sequence[Pattern]) -> list[SourceAtom]:
        return [self.atom(letter, pattern) for pattern in patterns]

    def _size(self, source: Source) -> int:
        size = self._sizes.get(source)
        if size is None:
            facts = self.operands.get(source.operand)
            size = 1 << 40 if source.operand == AUXILIARY else 0
            if facts is not None:
                size = self._count(facts, source.key)
            self._sizes[source] = size
        return size

    def _count(self, facts: SparkFacts, key: Key) -> int:
        counts = self._counts_of(facts)
        if key[0] == 0 and key[1] == NONE:
            return sum(n for k, n in counts.items() if k[0] == 0)
        if key[0] == 0 and key[1] == self.run.type_id and key[2] == NONE:
            return sum(n for k, n in counts.items() if k[0] == 0 and k[2] != NONE)
        return counts.get(key, 0)

    def _counts_of(self, facts: SparkFacts) -> dict[Key, int]:
        counts = self._counts.get(id(facts))
        if counts is None:
            counts = self._counts[id(facts)] = facts.counts_by_key()
        return counts

    _counts: dict[int, dict[Key, int]] = field(default_factory=dict)

    # -- rules -----------------------------------------------------------------------------------

    def add(self, rule: CompiledRule, head: SourceAtom, reading: Reading) -> None:
        """Add the clause of one reading of a rule."""
        rule_conditions, values = list(rule.conditions), dict[int, int]()
        if rule.computes:
            constants = self._constants(rule)
            if constants is None:
                return
            rule_conditions, values = constants
            head, reading = _with_constants(head, reading, values)
        positive, absent, present = reading
        body = list(positive)
        for grouping in rule.groupings:
            key = self.run.key(self.groups[grouping], len(grouping.outer))
            body.append(SourceAtom(Source("g", key), grouping.outer))
        body += [self._projected(atom, rule.valued) for atom in present]
        if any(
            self._size(a.source) == 0
            and a.source.operand in self.operands
            and a.source not in self.planner.derived
            for a in body
        ):
            return  # nothing to read
        negated = [a for a in absent if self._size(a.source)]
        conditions: list[Condition] = []
        for number, condition in enumerate(rule_conditions):
            if condition.target is not None or any(v >= rule.bound for v in condition.variables):
                body.append(_replaced(self._computed_atom(condition, body), values))
                continue
            match condition.expression, condition.variables:
                case _, ():
                    if not holds(condition.expression, {}, 1, self.run.dictionary)[0]:
                        return
                case ("sameValue", (int(one), int(two))), _ if one != two:
                    # both share a value, which gets a variable of its own
                    value = _FRESH + number
                    body += [self._query_atom(v, body, VALUE, value) for v in (one, two)]
                case _, (variable,):
                    expression = condition.renumbered({variable: 0}).expression
                    body.append(self._query_atom(variable, body, expression))
                case _ if self._compares_many(condition, body):
                    body.append(self._computed_atom(condition, body))
                case _:
                    conditions.append(condition)
        for variable in compared_variables(conditions):
            atoms = [a for a in body if variable in a.variables]
            asking_atom = min(atoms, key=lambda a: (self._is_derived(a), self._size(a.source)))
            if self._is_derived(asking_atom):
                # If a rule compares all literals with some, and these are empty, no query is
                # emitted.
                others = [
                    self._projected(a, 0)
                    for a in positive
                    if a is not asking_atom and not {*a.variables} & {*asking_atom.variables}
                ]
                body.append(self._query_atom(variable, body, TEXT, guards=others))
            else:
                self.compared.add((asking_atom.source, asking_atom.arguments.index(variable)))
        self.planner.add(Clause(head, tuple(body), tuple(negated), rule.valued, tuple(conditions)))

    def _compares_many(self, condition: Condition, body: Sequence[SourceAtom]) -> bool:
        """Whether a filter compares more terms than should be sent to every task.

        Tasks then join the texts of terms with the rows that satisfy the other atoms.
        """
        if self.run.terms is None or not compared_variables([condition]):
            return False
        most, count = len(self.run.dictionary), 0
        for variable in condition.variables:
            atoms = [atom for atom in body if variable in atom.variables]
            sizes = [most if self._is_derived(a) else self._size(a.source) for a in atoms]
            count += min(sizes)
        return min(most, count) > tuning.broadcast_terms_limit

    def _constants(self, rule: CompiledRule) -> tuple[list[Condition], dict[int, int]] | None:
        """Compute the `BIND`s that read no variable; None if one has no value."""
        dictionary = self.run.dictionary
        left = list(rule.conditions)
        values: dict[int, int] = {}
        while True:
            terms = {v: dictionary.term(term_id) for v, term_id in values.items()}
            left = [condition.with_constants(terms) for condition in left]
            ready = [c for c in left if c.target is not None and not c.variables]
            if not ready:
                return left, values
            for condition in ready:
                found, valid = computed(condition.expression, {}, 1, dictionary)
                assert condition.target is not None, "chosen so"
                if not valid[0] or values.setdefault(condition.target, int(found[0])) != found[0]:
                    return None
            left = [condition for condition in left if condition not in ready]

    def _computed_atom(self, condition: Condition, body: Sequence[SourceAtom]) -> SourceAtom:
        """Create an atom of a query about rows of terms: the value of an expression over each.

        A filter over computed values is such a query too: which rows satisfy it.
        """
        inputs, computes = condition.variables, condition.target is not None
        numbers = {variable: number for number, variable in enumerate(inputs)}
        expression = substituted_expression(condition.expression, numbers)
        aspect = ("", (expression, len(inputs), int(computes)))
        key = self._query_keys.get(aspect)
        if key is None:
            key = self._query_keys[aspect] = (len(self.queries) + 1, NONE, NONE, len(inputs))
            results = Source("k", (*key[:3], len(inputs) + computes))
            self.planner.derived.add(results)
            self._sizes[results] = 1 << 40
            self.queries[key] = TermQuery(results, expression, computes=computes, of_rows=True)
        covering = [atom for atom in body if atom.variables.issuperset(inputs)]
        asking = [min(covering, key=lambda a: self._size(a.source))] if covering else body
        query_atom = SourceAtom(Source(QUERIES, key), inputs)
        self.planner.add(Clause(query_atom, tuple(asking), (), _FRESH), auxiliary=True)
        target = () if condition.target is None else (condition.target,)
        return SourceAtom(self.queries[key].answers, (*inputs, *target))

    def _is_derived(self, atom: SourceAtom) -> bool:
        return atom.source in self.planner.derived

    def _query_atom(
        self,
        variable: int,
        body: Sequence[SourceAtom],
        aspect: CompiledExpression | TermAspect,
        value: int = -1,
        guards: Sequence[SourceAtom] = (),
    ) -> SourceAtom:
        """Create an atom for a query about a term: does a condition hold, its value, or its text.

        The query covers all terms that an atom of the body may bind there if the `guards` match
        too; rules with the same aspect share the results.
        """
        key = self._query_keys.get(aspect)
        if key is None:
            key = self._query_keys[aspect] = (len(self.queries) + 1, NONE, NONE, 1)
            results = Source("k", (*key[:3], 2 if aspect is VALUE else 1))
            self.planner.derived.add(results)
            self._sizes[results] = 1 << 40
            condition = None if isinstance(aspect, TermAspect) else aspect
            self.queries[key] = TermQuery(results, condition, aspect is TEXT)
        atoms = [a for a in body if variable in a.variables and a.source.operand != "k"]
        asking_atom = min(atoms, key=lambda a: self._size(a.source))
        asking_place = (key, asking_atom.source, asking_atom.arguments.index(variable))
        if guards or asking_place not in self._asking_atoms:
            if not guards:
                self._asking_atoms.add(asking_place)
            query_atom = SourceAtom(Source(QUERIES, key), (variable,))
            clause = Clause(query_atom, (asking_atom, *guards), (), _FRESH)
            self.planner.add(clause, auxiliary=True)
        arguments = (variable, value) if aspect is VALUE else (variable,)
        return SourceAtom(self.queries[key].answers, arguments)

    def _projected(self, atom: SourceAtom, bound: int) -> SourceAtom:
        """Project an atom of which any match suffices to its variables that the rule binds."""
        auxiliary_atom = self.planner.new_auxiliary(sorted(v for v in atom.variables if v < bound))
        numbered = max((*atom.variables, bound - 1)) + 1
        self.planner.add(Clause(auxiliary_atom, (atom,), (), numbered), auxiliary=True)
        return auxiliary_atom


def _with_constants(
    head: SourceAtom, reading: Reading, values: Mapping[int, int]
) -> tuple[SourceAtom, Reading]:
    """Replace variables by the constants with these ids."""
    if not values:
        return head, reading

    positive, absent, present = ([_replaced(atom, values) for atom in part] for part in reading)
    return _replaced(head, values), (positive, absent, present)


def _replaced(atom: SourceAtom, values: Mapping[int, int]) -> SourceAtom:
    arguments = tuple(-1 - values[a] if a in values else a for a in atom.arguments)
    return SourceAtom(atom.source, arguments)


LETTERS = {
    Operand.FACTS: "f",
    Operand.OLD: "o",
    Operand.DELTA: "d",
    Operand.ABSENT: "n",
    Operand.WIDE_ABSENT: "b",
    Operand.REMOVED: "e",
    Operand.UNPROVED: "p",
}


def delta_readings(
    translation: Translation, rule: CompiledRule, *, delta: bool, negative_delta: bool
) -> Iterator[Reading]:
    """Yield the readings of a rule in Π[f, n : d, e]; each instance is derived by one reading."""
    sizes = len(rule.body), len(rule.negated)
    letters = LETTERS if delta else LETTERS | {Operand.OLD: "f"}
    if not delta and not negative_delta:
        yield _reading(translation, rule, full_plan(*sizes), letters)
    for plan in delta_plans(*sizes) if delta else ():
        yield _reading(translation, rule, plan, letters)
    for plan in negative_delta_plans(*sizes) if negative_delta else ():
        yield _reading(translation, rule, plan, letters)


def support_readings(
    translation: Translation, rule: CompiledRule, *, unproved: bool, several: bool
) -> Iterator[Reading]:
    """Yield readings of the body in `f`; or with one fact (or several) that is only in `p`."""
    sizes = len(rule.body), len(rule.negated)
    if not unproved:
        yield _reading(translation, rule, full_plan(*sizes), LETTERS)
        return
    for plan in unproved_plans(*sizes, range(len(rule.body)), several=several):
        yield _reading(translation, rule, plan, LETTERS)


def _reading(
    t: Translation, rule: CompiledRule, plan: DeltaPlan, letters: Mapping[Operand, str]
) -> Reading:
    def atoms(operands: Sequence[Operand], patterns: Sequence[Pattern]) -> list[SourceAtom]:
        pairs = zip(operands, patterns, strict=True)
        return [t.atom(letters[operand], pattern) for operand, pattern in pairs]

    positive = atoms(plan.body, rule.body)
    if plan.delta is not None:  # joins start with the delta
        positive.insert(0, positive.pop(plan.delta))
    outside = [t.atom(letters[Operand.FACTS], rule.body[at]) for at in plan.unproved]
    removed = () if plan.removed is None else (rule.negated[plan.removed],)
    present = [t.atom(letters[Operand.REMOVED], pattern) for pattern in removed]
    return positive, [*atoms(plan.negated, rule.negated), *outside], present
