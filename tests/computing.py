"""Random programs whose rules compute: `dense` programs with `BIND` and functions, from a seed.

The expressions keep to finitely many values, so that recursive rules end.
"""

from __future__ import annotations

from random import Random

from corollary.errors import InvalidProgram
from corollary.lang.program import Program
from corollary.lang.syntax import (
    TRIPLE,
    Atom,
    Bind,
    Expression,
    Filter,
    Negation,
    Rule,
    Term,
    Variable,
)
from tests.dense import Maker
from tests.strategies import ARITIES, PROPERTIES

# Of one or two variables, ?x and ?y; those of ?x alone map a finite set of values into one.
_EXPRESSIONS = (
    "IF(?x < 3, ?x + 1, 0)",
    "IF(?x > 0, ?x - 1, ?x)",
    "ABS(?x)",
    "-?x * -1",
    "xsd:integer(?x)",
    "xsd:double(?x)",
    "CEIL(?x / 2)",
    "STRLEN(STR(?x))",
    "UCASE(SUBSTR(STR(?x), 1, 1))",
    'CONCAT(SUBSTR(STR(?x), 1, 1), "b")',
    'COALESCE(xsd:integer(?x), "none")',
    'IF(isBlank(?x), ?x, SKOLEM("s", ?x))',
    "DATATYPE(?x)",
    "?x",
    "2",
    "IF(?x = ?y, ?x, ?y)",
    "IF(?x < ?y, ?x, ?y)",
    'IF(?x IN (0, 1, "a"), ?y, 1)',
    "sameTerm(?x, ?y) || ?x < ?y",
)


def computing_program(seed: int, attempts: int = 6) -> Program:
    """The program of a seed."""
    random = Random(seed)
    make = _Maker(random)
    program = Program.of([], make.facts())
    for _ in range(attempts):
        try:
            program = program.added(*make.computing_rules())
        except InvalidProgram:
            continue
    return program


class _Maker(Maker):
    def expression(self, bound: list[Variable]) -> Expression:
        """An expression over bound variables."""
        text = self.random.choice(_EXPRESSIONS)
        if not bound:
            text = "IF(1 < 2, 1, 0)"
        for name in "xy":
            text = text.replace(f"?{name}", f"?{self.random.choice(bound).name}~" if bound else "")
        [rule] = Program.parse(
            f"h(?r) :- b({_VARIABLES}), BIND({text.replace('~', '')} AS ?r) ."
        ).rules
        [bind] = rule.binds
        return bind.expression

    def computing_rules(self) -> list[Rule]:
        """A rule with one or two values that it computes, and sometimes two heads."""
        rule = self.rule()
        body = [*rule.body]
        targets = []
        for name in self.random.choice((("u",), ("u",), ("u", "w"))):
            bound = sorted(
                Rule(Atom("nil", ()), tuple(body)).bound_variables(), key=lambda v: v.name
            )
            # Sometimes an atom binds the variable too, and both must agree.
            again = bound and self.maybe(0.2)
            target = self.random.choice(bound) if again else Variable(name)
            expression = self.expression([v for v in bound if v != target])
            body.insert(self.random.randrange(len(body) + 1), Bind(expression, target))
            targets.append(target)
        if self.maybe(0.3):
            body.append(self.atom(lambda: self.random.choice([*targets, Variable("x")])))
        if self.maybe(0.2):
            body.append(Negation(self.atom(lambda: self.random.choice(targets))))
        if self.maybe(0.2):
            body.append(Filter(self.condition([*targets])))

        def term(kept: Term) -> Term:
            return self.random.choice(targets) if self.maybe(0.5) else kept

        heads = [rule.head]
        if self.maybe(0.3):
            heads.append(self.atom(lambda: self.random.choice(targets)))
        made = []
        for head in heads:
            terms = [term(kept) for kept in head.terms]
            if head.relation == TRIPLE and self.maybe(0.8):
                terms[1] = self.random.choice(PROPERTIES)
            made.append(Rule(Atom(head.relation, tuple(terms)), tuple(body)))
        assert all(len(h.head.terms) == ARITIES[h.head.relation] for h in made)
        return made


_VARIABLES = ", ".join(f"?{name}" for name in ("x", "y", "z", "u", "w", "n", "m", "z2"))
