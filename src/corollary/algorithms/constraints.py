"""Check constraints `false :- body` against a materialization.

Constraints are kept apart from the rules that derive facts. The body of a constraint is evaluated
once over the finished materialization, as a rule whose head is an internal relation of all its
variables, so that every engine can evaluate it with `derive`; each row of that relation is one
violation, except that symmetric variants count once (`variants`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from corollary.algorithms.variants import distinct_rows
from corollary.core.compile import compile_rule
from corollary.core.engine import Engine, F
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.substitute import substituted_atom
from corollary.lang.syntax import Aggregate, Atom, Bind, Constant, Rule, Variable

_RELATION = "VIOLATION"  # facts of it never leave this module


@dataclass(frozen=True)
class Violation:
    """One violation of a constraint: a substitution of its variables."""

    rule: Rule
    substitution: dict[Variable, Constant]

    @property
    def facts(self) -> tuple[Atom, ...]:
        """The instantiated positive body atoms."""
        positive = (part for part in self.rule.body if isinstance(part, Atom))
        return tuple(substituted_atom(atom, self.substitution) for atom in positive)


@dataclass(frozen=True)
class Inconsistency:
    """A violated constraint: the number of violations, and some examples."""

    rule: Rule
    count: int
    examples: tuple[Violation, ...]

    def describe(self, printer: Printer) -> dict[str, Any]:
        """The inconsistency as JSON: the rule's name and text, the count, the examples."""
        return {
            "rule": self.rule.name,
            "constraint": printer.rule(self.rule),
            "count": self.count,
            "examples": [
                [printer.atom(fact) for fact in violation.facts] for violation in self.examples
            ],
        }


def inconsistencies(
    program: Program,
    facts: F,
    engine: Engine[F],
    *,
    examples: int | None = 3,
    variants: bool = False,
) -> Iterator[Inconsistency]:
    """The constraints that a materialization violates, each with some examples.

    Symmetric variants of a violation count once, unless `variants` is true.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> program = Program.parse("[alone] false :- p(?x), q(?x) . p(1) . p(2) . q(2) .")
    >>> engine = ColumnarEngine(Dictionary())
    >>> facts = engine.facts(encode(program.facts, engine.dictionary))
    >>> for inconsistency in inconsistencies(program, facts, engine):
    ...     print(inconsistency.describe(Printer())["examples"])
    [['p(2)', 'q(2)']]
    """
    for rule in program.constraints:
        variables = tuple(
            dict.fromkeys(
                variable
                for part in rule.body
                if isinstance(part, Atom | Aggregate | Bind)
                for variable in part.variables()
            )
        )
        listed = Rule(Atom(_RELATION, variables), rule.body, rule.name, rule.span)
        compiled = compile_rule(listed, engine.dictionary)
        violating = engine.derive([compiled], facts).facts
        if len(violating):
            found = violating.rows(Predicate(_RELATION))
            distinct = found if variants else distinct_rows(rule, variables, found)
            count = len(distinct)
            rows = distinct[:examples].tolist()
            yield Inconsistency(
                rule,
                count,
                tuple(
                    Violation(rule, dict(zip(variables, engine.dictionary.terms(row), strict=True)))
                    for row in rows
                ),
            )


def violations(
    program: Program, facts: F, engine: Engine[F], *, limit: int | None = None
) -> Iterator[Violation]:
    """All violations, symmetric variants included, up to `limit` per constraint."""
    found = inconsistencies(program, facts, engine, examples=limit, variants=True)
    for inconsistency in found:
        yield from inconsistency.examples
