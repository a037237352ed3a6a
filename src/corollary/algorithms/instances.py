"""Build a `Proof` from the rule instances that a search chose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from corollary.algorithms.aggregates import without_aggregates
from corollary.core.calls import computed
from corollary.core.compile import CompiledRule, narrow_terms
from corollary.core.dictionary import Dictionary
from corollary.core.proof import Proof
from corollary.core.tables import atom_of
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.substitute import substituted_aggregate, substituted_atom
from corollary.lang.syntax import (
    Aggregate,
    Atom,
    Bind,
    Constant,
    Filter,
    Negation,
    Rule,
    Variable,
)

SAMPLE = 5  # matches of an aggregate that a proof shows

Key = tuple[Predicate, tuple[int, ...]]  # a fact


@dataclass(frozen=True)
class Instance:
    """A rule instance that proves a fact."""

    rule: CompiledRule
    bindings: tuple[int, ...]
    body: tuple[Key, ...]


@dataclass
class ProofChoice:
    """The result of a search: an instance for each fact, sample matches for each aggregate."""

    instances: dict[Key, Instance] = field(default_factory=dict)
    samples: dict[Key, list[tuple[Key, ...]]] = field(default_factory=dict)
    least: bool = True  # whether no proof has a smaller height


class ProofBuilder:
    """Assemble chosen instances into a proof."""

    def __init__(self, choice: ProofChoice, program: Program, dictionary: Dictionary) -> None:
        self.choice = choice
        self.program = program
        self.dictionary = dictionary
        self.proofs: dict[Key, Proof] = {}
        # The rules as written: equal rules may differ in name, and aggregates were replaced.
        self.rules = {without_aggregates([rule])[0]: rule for rule in program.rules}

    def build(self, goal: Key) -> Proof:
        """Build the proof of a fact bottom-up; iterative, because proofs can be deep."""
        stack = [goal]
        while stack:
            key = stack[-1]
            missing = [premise for premise in self._premise_keys(key) if premise not in self.proofs]
            if missing and key not in self.proofs:
                stack += missing
                continue
            stack.pop()
            if key not in self.proofs:
                self.proofs[key] = self._proof(key, root=key == goal)
        return self.proofs[goal]

    def _premise_keys(self, key: Key) -> list[Key]:
        instance = self.choice.instances.get(key)
        keys = list[Key]()
        for premise in instance.body if instance is not None else ():
            if premise in self.choice.samples:
                keys += self._sample(premise)
            else:
                keys.append(premise)
        return keys

    def _sample(self, key: Key) -> list[Key]:
        """Sample the facts that an aggregate was computed from."""
        bodies = self.choice.samples[key][:SAMPLE]
        return list(dict.fromkeys(premise for body in bodies for premise in body))

    def _proof(self, key: Key, *, root: bool) -> Proof:
        predicate, row = key
        prefixes = self.program.prefixes
        fact = atom_of(predicate, self.dictionary.terms(row))
        instance = self.choice.instances.get(key)
        if instance is None:
            return Proof(fact, explicit=True, prefixes=prefixes)
        source = instance.rule.source
        written_rule = self.rules.get(source, source)
        premises = tuple(self._premises(instance, written_rule))
        least = self.choice.least or not root
        return Proof(fact, written_rule, premises=premises, least=least, prefixes=prefixes)

    def _premises(self, instance: Instance, written_rule: Rule) -> Iterable[Proof]:
        body = iter(instance.body)
        values = self._values(instance)
        for literal, shown in zip(instance.rule.source.body, written_rule.body, strict=True):
            if isinstance(literal, Atom):
                key = next(body)
                if isinstance(shown, Aggregate):
                    yield self._aggregate(key, shown)
                else:
                    yield self.proofs[key]
            elif isinstance(literal, Negation):
                absent = Negation(substituted_atom(literal.atom, values))
                yield Proof(absent, prefixes=self.program.prefixes)
            else:
                assert isinstance(literal, Filter | Bind), "aggregates were replaced by atoms"

    def _values(self, instance: Instance) -> dict[Variable, Constant]:
        """The variable bindings of an instance, in the order of `compile_rule`."""
        atoms = (part for part in instance.rule.source.body if isinstance(part, Atom))
        terms = (term for atom in atoms for term in narrow_terms(atom))
        variables = dict.fromkeys(term for term in terms if isinstance(term, Variable))
        values = dict(zip(variables, self.dictionary.terms(instance.bindings), strict=True))
        if instance.rule.source.binds:
            values |= self._computed(instance)
        return values

    def _computed(self, instance: Instance) -> dict[Variable, Constant]:
        """The values of the `BIND`s of an instance."""
        ids = {number: np.array([one], np.uint32) for number, one in enumerate(instance.bindings)}
        values = {}
        for bind, condition in zip(
            instance.rule.source.binds, instance.rule.conditions, strict=False
        ):
            found, _ = computed(condition.expression, ids, 1, self.dictionary)
            assert condition.target is not None, "the conditions of BINDs come first"
            ids[condition.target] = found
            values[bind.variable] = self.dictionary.term(int(found[0]))
        return values

    def _aggregate(self, key: Key, shown: Aggregate) -> Proof:
        """The proof of an aggregate, with its group and results filled in."""
        variables = (*shown.group, *(binding.result for binding in shown.bindings))
        values = dict(zip(variables, self.dictionary.terms(key[1]), strict=True))
        fact = substituted_aggregate(shown, values)
        premises = tuple(self.proofs[premise] for premise in self._sample(key))
        more = len(self.choice.samples[key]) > SAMPLE
        return Proof(fact, premises=premises, more=more, prefixes=self.program.prefixes)
