"""Rule instances that were chosen for facts, as a `Proof`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from corollary.algorithms.aggregates import without_aggregates
from corollary.core.compile import CompiledRule, home_terms
from corollary.core.dictionary import Dictionary
from corollary.core.proof import Proof
from corollary.core.tables import atom_of
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    Aggregate,
    Atom,
    Binding,
    Constant,
    Filter,
    Negation,
    Rule,
    Variable,
)

SAMPLE = 5  # instances that stand for those of an aggregate

Key = tuple[Predicate, tuple[int, ...]]  # a fact


@dataclass(frozen=True)
class Instance:
    """The rule instance that proves a fact."""

    rule: CompiledRule
    bindings: tuple[int, ...]
    body: tuple[Key, ...]


@dataclass
class Chosen:
    """What a search has chosen: an instance for each fact, and matches for each aggregate."""

    instances: dict[Key, Instance] = field(default_factory=dict)
    samples: dict[Key, list[tuple[Key, ...]]] = field(default_factory=dict)
    least: bool = True  # whether no proof has a smaller height


class Builder:
    """Chosen instances as a proof."""

    def __init__(self, chosen: Chosen, program: Program, dictionary: Dictionary) -> None:
        self.chosen = chosen
        self.program = program
        self.dictionary = dictionary
        self.proofs: dict[Key, Proof] = {}
        # As the program writes them: equal rules may differ in name, and aggregates are replaced.
        self.rules = {without_aggregates([rule])[0]: rule for rule in program.rules}

    def build(self, goal: Key) -> Proof:
        """The proof of a fact; premises first, without recursion, as proofs can be high."""
        stack = [goal]
        while stack:
            key = stack[-1]
            missing = [premise for premise in self._needed(key) if premise not in self.proofs]
            if missing and key not in self.proofs:
                stack += missing
                continue
            stack.pop()
            if key not in self.proofs:
                self.proofs[key] = self._proof(key, root=key == goal)
        return self.proofs[goal]

    def _needed(self, key: Key) -> list[Key]:
        instance = self.chosen.instances.get(key)
        needed = list[Key]()
        for premise in instance.body if instance is not None else ():
            if premise in self.chosen.samples:
                needed += self._sampled(premise)
            else:
                needed.append(premise)
        return needed

    def _sampled(self, key: Key) -> list[Key]:
        """The facts that stand for what an aggregate was computed from."""
        bodies = self.chosen.samples[key][:SAMPLE]
        return list(dict.fromkeys(premise for body in bodies for premise in body))

    def _proof(self, key: Key, *, root: bool) -> Proof:
        predicate, row = key
        prefixes = self.program.prefixes
        fact = atom_of(predicate, self.dictionary.terms(row))
        instance = self.chosen.instances.get(key)
        if instance is None:
            return Proof(fact, explicit=True, prefixes=prefixes)
        source = instance.rule.source
        written = self.rules.get(source, source)
        premises = tuple(self._premises(instance, written))
        least = self.chosen.least or not root
        return Proof(fact, written, premises=premises, least=least, prefixes=prefixes)

    def _premises(self, instance: Instance, written: Rule) -> Iterable[Proof]:
        body = iter(instance.body)
        values = self._values(instance)
        for literal, shown in zip(instance.rule.source.body, written.body, strict=True):
            if isinstance(literal, Atom):
                key = next(body)
                if isinstance(shown, Aggregate):
                    yield self._aggregate(key, shown)
                else:
                    yield self.proofs[key]
            elif isinstance(literal, Negation):
                yield Proof(
                    Negation(_substituted(literal.atom, values)), prefixes=self.program.prefixes
                )
            else:
                assert isinstance(literal, Filter), "aggregates were replaced by atoms"

    def _values(self, instance: Instance) -> dict[Variable, Constant]:
        """The variables of an instance in the order of `compile_rule`, with their values."""
        atoms = (part for part in instance.rule.source.body if isinstance(part, Atom))
        terms = (term for atom in atoms for term in home_terms(atom))
        variables = dict.fromkeys(term for term in terms if isinstance(term, Variable))
        found = self.dictionary.terms(instance.bindings)
        return dict(zip(variables, found, strict=True))

    def _aggregate(self, key: Key, shown: Aggregate) -> Proof:
        """An aggregate with the values of its group and its results."""
        terms = self.dictionary.terms(key[1])
        group = terms[: len(shown.group)]
        values = dict(zip(shown.group, group, strict=True))
        bindings = [
            Binding(b.function, values.get(b.argument, b.argument), result)  # type: ignore[arg-type]
            for b, result in zip(shown.bindings, terms[len(group) :], strict=True)
        ]
        fact = Aggregate(
            tuple(_substituted(atom, values) for atom in shown.atoms),
            cast("tuple[Variable, ...]", tuple(group)),
            cast("tuple[Binding, ...]", tuple(bindings)),
        )
        premises = tuple(self.proofs[premise] for premise in self._sampled(key))
        more = len(self.chosen.samples[key]) > SAMPLE
        return Proof(fact, premises=premises, more=more, prefixes=self.program.prefixes)


def _substituted(atom: Atom, values: dict[Variable, Constant]) -> Atom:
    terms = (values.get(term, term) if isinstance(term, Variable) else term for term in atom.terms)
    return Atom(atom.relation, tuple(terms))
