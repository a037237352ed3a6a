"""H(x) :- P(x, y), A(x), B(y): pairs whose ends are in sets, as `owl:someValuesFrom` asks for them.

Pairs stay keys: those that pass are written in their order, by bits of the sets, and what is asked
of them is marked from there. Columns of subjects and objects, a mask for each set and what is left
of the columns after each are not made. Measured on 2.1 M pairs: 3.1 ms instead of 5.0, 1.7 instead
of 2.8 with two threads.
"""

from __future__ import annotations

from functools import lru_cache

from corollary.core.compile import CompiledRule
from corollary.engines.columnar import sets
from corollary.engines.columnar.join import Source, starting_atom
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import EMPTY, Relation, Run
from corollary.engines.columnar.sink import Sink
from corollary.engines.columnar.tuning import tuning


@lru_cache(maxsize=1 << 14)
def pair_atom(rule: CompiledRule) -> int | None:
    """Which atom has the pairs, None if the rule has another form."""
    found = [at for at, pattern in enumerate(rule.body) if len(pattern.arguments) == 2]
    if len(found) != 1 or len(rule.body) == 1 or rule.head.wide or any(p.wide for p in rule.body):
        return None
    pair, head = rule.body[found[0]].arguments, rule.head.arguments
    others = [p.arguments for at, p in enumerate(rule.body) if at != found[0]]
    if min(pair) < 0 or pair[0] == pair[1] or not head or len({*head}) < len(head):
        return None
    if not {*pair}.issuperset(head) or any(len(a) != 1 or a[0] not in pair for a in others):
        return None
    return found[0]


def select_into(
    rule: CompiledRule, atoms: tuple[Relation, ...], first: int | None, sink: Sink
) -> bool:
    """Evaluate the rule into the sink; False if it has another form, or another way costs less."""
    at = pair_atom(rule)
    if at is None or len(atoms[at]) < tuning.semijoin_pairs_minimum or atoms[at].dead:
        return False
    sources = [Source(p.arguments, r) for p, r in zip(rule.body, atoms, strict=True)]
    if starting_atom(sources, first) != at:
        return False
    subject = rule.body[at].arguments[0]
    checks: tuple[list[Keys], list[Keys]] = [], []
    for place, source in enumerate(sources):
        if place != at:
            bits = source.relation.bits(len(atoms[at]))
            if bits is None:
                return False
            checks[source.arguments[0] != subject].append(bits)
    sink.space.budget.reserve(8 * max(map(len, atoms[at].runs)), "selecting pairs")
    for run in atoms[at].runs:
        kept = run
        for place in range(max(map(len, checks))):
            keys = sets.select_pairs(
                kept.keys, *(c[place] if place < len(c) else EMPTY for c in checks)
            )
            kept = kept if len(keys) == len(kept) else Run(keys)
        sink.add_pairs(rule.head, rule.body[at].arguments, kept)
    return True
