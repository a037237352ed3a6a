"""Violated constraints, each with proofs of `false`.

A proof of `false` is an instance of the constraint's body. Its premises are the positive body
facts, each with a smallest proof, and the negated atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

from corollary.algorithms import constraints
from corollary.core.proof import Proof
from corollary.core.readable import without_auxiliary
from corollary.core.tables import decode, encode
from corollary.knowledge_base.graphs import graphs_of
from corollary.lang.printer import Printer
from corollary.lang.substitute import substituted_aggregate, substituted_atom
from corollary.lang.syntax import Aggregate, Atom, Constant, Negation, Rule, Variable

if TYPE_CHECKING:
    from corollary.knowledge_base.state import KnowledgeState

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

    def __repr__(self) -> str:
        return f"<Inconsistency: {self.name}, {self.count:,}>"

    def _repr_html_(self) -> str:
        """The constraint, the number of violations, and the proofs as pictures."""
        ways = f"{self.count:,} ways" if self.count > 1 else "1 way"
        pictures = "".join(f"<div>{proof.to_svg()}</div>" for proof in self.proofs)
        more = self.count - len(self.proofs)
        note = f"<p>… and {more:,} more</p>" if more > 0 else ""
        return f"<p><b>{escape(self.name)}</b> is contradicted in {ways}</p>{pictures}{note}"

    def to_json(self) -> dict[str, Any]:
        """Convert to a dictionary: `rule`, `constraint`, `count`, and `proofs`, one per example."""
        return {
            "rule": self.rule.name,
            "constraint": Printer(self.prefixes).rule(self.rule),
            "count": self.count,
            "proofs": [proof.to_json() for proof in self.proofs],
        }


_CANDIDATES = 1000  # violations of a constraint among which proofs are sought
_PROVED = 16  # of them, those with the fewest derived premises


def smallest_proofs(
    state: KnowledgeState, limit: int | None, *, readable: bool = False
) -> list[Inconsistency]:
    """List the violated constraints, each with up to `limit` proofs, the smallest first.

    The smallest proof is sought among the first thousand violations: sixteen of them, or `limit`
    if it is more, are proved, those with the fewest derived premises. With `readable`, the steps of
    auxiliary relations are hidden.

    >>> from corollary import KnowledgeBase
    >>> kb = KnowledgeBase("false :- p(?x) . p(?x) :- q(?x) . q(1) . p(2) .")
    >>> [found] = smallest_proofs(kb.state, 1)
    >>> print(found)
    false :- p(?x) is contradicted in 2 ways
      false   by false :- p(?x)
      └─ p(2)   explicit
      …
    """
    reasoner, prefixes = state.reasoner, state.all_prefixes
    candidates = None if limit is None else max(limit, _CANDIDATES)
    shown = []
    for found in reasoner.inconsistencies(examples=candidates):
        examples = found.examples
        if limit is not None:
            examples = _fewest_derived(found.examples, state)[: max(limit, _PROVED)]
        proved = prove_examples(replace(found, examples=examples), reasoner.explain, prefixes)
        proofs = [without_auxiliary(p) if readable else p for p in proved.proofs]
        proofs = [replace(p, prefixes=prefixes, graphs=graphs_of(state, p)) for p in proofs]
        proofs.sort(key=lambda proof: (proof.size, proof.height))
        shown.append(replace(proved, proofs=tuple(proofs[:limit])))
    return shown


def _fewest_derived(
    examples: Sequence[constraints.Violation], state: KnowledgeState
) -> tuple[constraints.Violation, ...]:
    """Sort violations by the number of their premises that are not explicit."""
    if len(examples) <= 1:
        return tuple(examples)
    facts = {fact for example in examples for fact in example.facts}
    known = state.engine.facts(encode(facts, state.dictionary))
    explicit = {*decode(known.intersection(state.reasoner.explicit), state.dictionary)}
    return tuple(sorted(examples, key=lambda one: sum(fact not in explicit for fact in one.facts)))


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
