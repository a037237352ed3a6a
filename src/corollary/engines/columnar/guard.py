"""Bodies of two atoms of which one has very few facts: `H(x, y) :- asked(x), P(x, y)`.

Rules of this form are evaluated by the hundred for one query, mostly for nothing, so that planning
a join would take longer than doing it: the few facts are looked up in the other atom at once.
"""

from __future__ import annotations

from functools import lru_cache

from corollary.core.compile import CompiledRule
from corollary.engines.columnar.facts import Space
from corollary.engines.columnar.join import Source, Table, expand, matches
from corollary.engines.columnar.relation import Relation
from corollary.engines.columnar.sink import Sink
from corollary.engines.columnar.tuning import tuning


@lru_cache(maxsize=1 << 14)
def _is_simple(rule: CompiledRule) -> bool:
    """Whether the atoms share a variable, and have no constants and no variable twice."""
    if len(rule.body) != 2 or any(pattern.wide for pattern in rule.body):
        return False
    one, two = (pattern.arguments for pattern in rule.body)
    return (
        min((*one, *two), default=-1) >= 0
        and len({*one}) == len(one) <= 2
        and len({*two}) == len(two) <= 2
        and not {*one}.isdisjoint(two)
    )


def guard_into(rule: CompiledRule, atoms: tuple[Relation, ...], sink: Sink, space: Space) -> bool:
    """Evaluate the rule into the sink if one of its two atoms has few facts."""
    if not _is_simple(rule):
        return False
    few = int(len(atoms[1]) < len(atoms[0]))
    if len(atoms[few]) > tuning.small_atom_facts_limit:
        return False
    keys = atoms[few].keys()
    arguments = rule.body[few].arguments
    columns = space.packing.unpack(keys, len(arguments))
    table = Table(len(keys), dict(zip(arguments, columns, strict=True)))
    other = Source(rule.body[1 - few].arguments, atoms[1 - few])
    if {*other.arguments} <= {*arguments}:
        found = table.filtered(matches(other, table, space) > 0)
        if found.rows:
            sink.add_table(rule.head, found)
        return True
    for piece in expand(other, table, space):
        if piece.rows:
            sink.add_table(rule.head, piece)
    return True
