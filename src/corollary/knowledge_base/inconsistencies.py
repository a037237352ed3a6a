"""What the facts contradict: each constraint with proofs of `false`, apart from all facts.

A proof of `false` is an instance of the constraint's body: its premises are the facts that the body
reads, each with a smallest proof of its own, and what the body negates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from corollary.algorithms import constraints
from corollary.core.proof import Proof
from corollary.lang.printer import Printer
from corollary.lang.syntax import Aggregate, Atom, Binding, Constant, Negation, Rule, Variable

Explain = Callable[[Atom], Proof]


@dataclass(frozen=True, eq=False)
class Inconsistency:
    """A constraint that the facts contradict: in how many ways, and proofs of some of them."""

    rule: Rule
    count: int
    proofs: tuple[Proof, ...]  # of `false`, by this constraint
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The name of the constraint, or its text if it has none."""
        return self.rule.name or Printer(self.prefixes).rule(self.rule).removesuffix(" .")

    def __str__(self) -> str:
        """A line that says what is contradicted, and the proofs as trees."""
        ways = f"{self.count:,} ways" if self.count > 1 else "1 way"
        lines = [f"{self.name} is contradicted in {ways}"]
        lines += [_indented(str(proof)) for proof in self.proofs]
        if self.proofs and self.count > len(self.proofs):
            lines.append("  …")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """As dictionaries: `rule`, `constraint`, `count`, and for each of `proofs` one."""
        return {
            "rule": self.rule.name,
            "constraint": Printer(self.prefixes).rule(self.rule),
            "count": self.count,
            "proofs": [proof.to_json() for proof in self.proofs],
        }


def proved(
    found: constraints.Inconsistency, explain: Explain, prefixes: Mapping[str, str]
) -> Inconsistency:
    """An inconsistency with a proof for each of its examples."""
    known: dict[Atom, Proof] = {}  # so that a fact of many examples is explained once

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
                yield explain(_substituted(part, values))
            case Negation(atom):
                yield Proof(Negation(_substituted(atom, values)))
            case Aggregate():
                yield Proof(_computed(part, values))


def _computed(part: Aggregate, values: Mapping[Variable, Constant]) -> Aggregate:
    """An aggregate with the values of its group and its results."""
    group = {variable: values[variable] for variable in part.group}
    bindings = [
        Binding(b.function, group.get(b.argument, b.argument), values[b.result])  # type: ignore[arg-type]
        for b in part.bindings
    ]
    return Aggregate(
        tuple(_substituted(atom, group) for atom in part.atoms),
        cast("tuple[Variable, ...]", tuple(group.values())),
        tuple(bindings),
    )


def _substituted(atom: Atom, values: Mapping[Variable, Constant]) -> Atom:
    terms = (values.get(term, term) if isinstance(term, Variable) else term for term in atom.terms)
    return Atom(atom.relation, tuple(terms))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
