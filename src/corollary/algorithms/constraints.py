"""Constraints: which rules `false :- body` the facts contradict, and by which facts.

A constraint is never mixed with the rules that derive facts. Its body is evaluated once over a
finished materialization, as a rule for an internal relation that lists all its variables, so that
every engine can do it with `derive`; each row of that relation is one way to contradict it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from corollary.core.compile import compile_rule
from corollary.core.engine import Engine, F
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Aggregate, Atom, Constant, Rule, Variable

_RELATION = "VIOLATION"  # facts of it never leave this module


@dataclass(frozen=True)
class Violation:
    """One way to contradict a constraint: values for its variables."""

    rule: Rule
    substitution: dict[Variable, Constant]

    @property
    def facts(self) -> tuple[Atom, ...]:
        """The positive atoms of the body with these values."""
        values = self.substitution
        return tuple(
            Atom(
                part.relation,
                tuple(values[t] if isinstance(t, Variable) else t for t in part.terms),
            )
            for part in self.rule.body
            if isinstance(part, Atom)
        )


@dataclass(frozen=True)
class Inconsistency:
    """A constraint that is contradicted: how often, and some of the ways."""

    rule: Rule
    count: int
    examples: tuple[Violation, ...]

    def describe(self, printer: Printer) -> dict[str, Any]:
        """The inconsistency as JSON has it: the rule's name and text, the count, the examples."""
        return {
            "rule": self.rule.name,
            "constraint": printer.rule(self.rule),
            "count": self.count,
            "examples": [[printer.atom(fact) for fact in way.facts] for way in self.examples],
        }


def inconsistencies(
    program: Program, facts: F, engine: Engine[F], *, examples: int | None = 3
) -> Iterator[Inconsistency]:
    """The constraints that the facts (a materialization) contradict, each with some examples.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> program = Program.parse("[alone] false :- p(?x), q(?x) . p(1) . p(2) . q(2) .")
    >>> engine = ColumnarEngine(Dictionary())
    >>> facts = engine.facts(encode(program.facts, engine.dictionary))
    >>> for found in inconsistencies(program, facts, engine):
    ...     print(found.describe(Printer())["examples"])
    [['p(2)', 'q(2)']]
    """
    for rule in program.constraints:
        variables = tuple(
            dict.fromkeys(
                variable
                for part in rule.body
                if isinstance(part, Atom | Aggregate)
                for variable in part.variables()
            )
        )
        listed = Rule(Atom(_RELATION, variables), rule.body, rule.name, rule.span)
        compiled = compile_rule(listed, engine.dictionary)
        found = engine.derive([compiled], facts).facts
        count = len(found)
        if count:
            rows = found.rows(Predicate(_RELATION))[:examples].tolist()
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
    """Every way in which the facts contradict a constraint; of each constraint up to `limit`."""
    for found in inconsistencies(program, facts, engine, examples=limit):
        yield from found.examples
