"""Violated constraints, each with proofs of `false`.

A proof of `false` is an instance of the constraint's body. Its premises are the positive body
facts, each with a smallest proof, and the negated atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from corollary.algorithms import constraints
from corollary.core.proof import Proof
from corollary.lang.printer import Printer
from corollary.lang.substitute import substituted_aggregate, substituted_atom
from corollary.lang.syntax import Aggregate, Atom, Constant, Negation, Rule, Variable

Explain = Callable[[Atom], Proof]


@dataclass(frozen=True, eq=False)
class Inconsistency:
    """A violated constraint: the number of violations and some proofs."""

    rule: Rule
    count: int
    proofs: tuple[Proof, ...]  # proofs of `false` by this constraint
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The name of the constraint; its text if it is unnamed."""
        return self.rule.name or Printer(self.prefixes).rule(self.rule).removesuffix(" .")

    def __str__(self) -> str:
        """Format a line that names the constraint, and the proofs as trees."""
        ways = f"{self.count:,} ways" if self.count > 1 else "1 way"
        lines = [f"{self.name} is contradicted in {ways}"]
        lines += [_indented(str(proof)) for proof in self.proofs]
        if self.proofs and self.count > len(self.proofs):
            lines.append("  …")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Convert to a dictionary: `rule`, `constraint`, `count`, and `proofs`, one per example."""
        return {
            "rule": self.rule.name,
            "constraint": Printer(self.prefixes).rule(self.rule),
            "count": self.count,
            "proofs": [proof.to_json() for proof in self.proofs],
        }


def prove_examples(
    found: constraints.Inconsistency, explain: Explain, prefixes: Mapping[str, str]
) -> Inconsistency:
    """Prove each example of a violated constraint."""
    known: dict[Atom, Proof] = {}  # of facts that several examples share

    def proof_of(fact: Atom) -> Proof:
        if fact not in known:
            known[fact] = explain(fact)
        return known[fact]

    proofs = []
    for example in found.examples:
        premises = tuple(_premises(found.rule, example.substitution, proof_of))
        least = all(premise.least for premise in premises)
        proofs.append(
            Proof(found.rule.head, found.rule, premises=premises, least=least, prefixes=prefixes)
        )
    return Inconsistency(found.rule, found.count, tuple(proofs), prefixes)


def _premises(rule: Rule, values: Mapping[Variable, Constant], explain: Explain) -> Iterator[Proof]:
    for part in rule.body:
        match part:
            case Atom():
                yield explain(substituted_atom(part, values))
            case Negation(atom):
                yield Proof(Negation(substituted_atom(atom, values)))
            case Aggregate():
                yield Proof(substituted_aggregate(part, values))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
