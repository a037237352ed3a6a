"""Report relations that rules read, but nothing gives facts to."""

from __future__ import annotations

from corollary.core.notices import note
from corollary.errors import nearest
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE


def undefined_relations(program: Program) -> list[str]:
    """The relations in rule bodies that no rule, fact or file of the program gives facts to.

    >>> undefined_relations(Program.parse("path(?x, ?y) :- egde(?x, ?y) . edge(1, 2) ."))
    ['egde']
    """
    given = program.derived | {fact.relation for fact in program.facts} | {TRIPLE}
    given |= {one.relation for one in program.declarations.inputs}
    rules = (*program.rules, *program.constraints)
    read = {atom.relation: None for rule in rules for atom, _ in rule.atoms()}
    return [relation for relation in read if relation not in given]


def note_undefined(program: Program) -> None:
    """Report undefined relations, each with the most similar one that has facts."""
    missing = undefined_relations(program)
    for relation in missing:
        close = nearest(relation, {*program.arities} - {*missing})
        guess = f" (did you mean {close}?)" if close else ""
        note("W107", 1, detail=f"{relation}{guess}")
