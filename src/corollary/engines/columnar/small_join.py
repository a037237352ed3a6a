"""Joins of two atoms of which one has very few facts: `H(x, y) :- goal(x), P(x, y)`.

A query evaluates hundreds of such rules, most with an empty result, and planning a join would take
longer than running it: the few facts are looked up in the other atom directly.
"""

from __future__ import annotations

from functools import lru_cache

from corollary.core.compile import CompiledRule
from corollary.engines.columnar.bindings import JoinAtom, Table, expand, matches
from corollary.engines.columnar.collector import HeadCollector
from corollary.engines.columnar.facts import Space
from corollary.engines.columnar.relation import Relation
from corollary.engines.columnar.tuning import tuning


@lru_cache(maxsize=1 << 14)
def _is_simple(rule: CompiledRule) -> bool:
    """Whether the two atoms share a variable and have no constants or repeated variables."""
    if len(rule.body) != 2 or any(pattern.wide for pattern in rule.body):
        return False
    one, two = (pattern.arguments for pattern in rule.body)
    return (
        min((*one, *two), default=-1) >= 0
        and len({*one}) == len(one) <= 2
        and len({*two}) == len(two) <= 2
        and not {*one}.isdisjoint(two)
    )


def small_join_into(
    rule: CompiledRule, atoms: tuple[Relation, ...], collector: HeadCollector, space: Space
) -> bool:
    """Evaluate the rule; False if it has another form or both atoms have many facts."""
    if not _is_simple(rule):
        return False
    small = int(len(atoms[1]) < len(atoms[0]))
    if len(atoms[small]) > tuning.small_atom_facts_limit:
        return False
    keys = atoms[small].keys()
    arguments = rule.body[small].arguments
    columns = space.packing.unpack(keys, len(arguments))
    table = Table(len(keys), dict(zip(arguments, columns, strict=True)))
    other = JoinAtom(rule.body[1 - small].arguments, atoms[1 - small])
    if {*other.arguments} <= {*arguments}:
        matched = table.filtered(matches(other, table, space) > 0)
        if matched.rows:
            collector.add_table(rule.head, matched)
        return True
    for piece in expand(other, table, space):
        if piece.rows:
            collector.add_table(rule.head, piece)
    return True
