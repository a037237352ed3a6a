"""H(x) :- P(x, y), A(x), B(y): semi-joins of pairs with sets, the form of `owl:someValuesFrom`.

Pairs stay packed as keys: a pass over the keys tests the bitmaps of the sets, and heads are
projected from the keys that pass. This avoids columns of subjects and objects, a mask per set and
filtered copies of the columns. Measured on 2.1 M pairs: 3.1 ms instead of 5.0, 1.7 instead of 2.8
with two threads.
"""

from __future__ import annotations

from functools import lru_cache

from corollary.core.compile import CompiledRule
from corollary.engines.columnar import sets
from corollary.engines.columnar.bindings import JoinAtom
from corollary.engines.columnar.collector import HeadCollector
from corollary.engines.columnar.join import starting_atom
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import EMPTY, Relation, Run
from corollary.engines.columnar.tuning import tuning


@lru_cache(maxsize=1 << 14)
def pair_atom(rule: CompiledRule) -> int | None:
    """The position of the binary atom, None if the rule has another form."""
    binary = [at for at, pattern in enumerate(rule.body) if len(pattern.arguments) == 2]
    if len(binary) != 1 or len(rule.body) == 1 or rule.head.wide or any(p.wide for p in rule.body):
        return None
    pair, head = rule.body[binary[0]].arguments, rule.head.arguments
    others = [p.arguments for at, p in enumerate(rule.body) if at != binary[0]]
    if min(pair) < 0 or pair[0] == pair[1] or not head or len({*head}) < len(head):
        return None
    if not {*pair}.issuperset(head) or any(len(a) != 1 or a[0] not in pair for a in others):
        return None
    return binary[0]


def semijoin_into(
    rule: CompiledRule, atoms: tuple[Relation, ...], first: int | None, collector: HeadCollector
) -> bool:
    """Evaluate a rule of this form; False if it has another form or a join is cheaper."""
    at = pair_atom(rule)
    if at is None or len(atoms[at]) < tuning.semijoin_pairs_minimum or atoms[at].tombstones:
        return False
    sources = [JoinAtom(p.arguments, r) for p, r in zip(rule.body, atoms, strict=True)]
    if starting_atom(sources, first) != at:
        return False
    subject = rule.body[at].arguments[0]
    bitmaps: tuple[list[Keys], list[Keys]] = [], []  # of subjects, of objects
    for place, source in enumerate(sources):
        if place != at:
            bits = source.relation.bits(len(atoms[at]))
            if bits is None:
                return False
            bitmaps[source.arguments[0] != subject].append(bits)
    collector.space.budget.reserve(8 * max(map(len, atoms[at].runs)), "selecting pairs")
    for run in atoms[at].runs:
        selected = run
        for place in range(max(map(len, bitmaps))):
            keys = sets.select_pairs(
                selected.keys, *(c[place] if place < len(c) else EMPTY for c in bitmaps)
            )
            selected = selected if len(keys) == len(selected) else Run(keys)
        collector.add_pairs(rule.head, rule.body[at].arguments, selected)
    return True
