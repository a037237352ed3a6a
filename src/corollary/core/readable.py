"""Proofs as people read them: without the steps of auxiliary relations."""

from __future__ import annotations

from dataclasses import replace

from corollary.core.proof import Proof
from corollary.lang.syntax import Atom, is_auxiliary


def without_auxiliary(proof: Proof) -> Proof:
    """Replace every auxiliary fact of a proof by its premises.

    >>> fact, step, leaf = (Atom(name, ()) for name in ("fact", "_step", "leaf"))
    >>> inner = Proof(step, premises=(Proof(leaf, explicit=True),))
    >>> print(without_auxiliary(Proof(fact, premises=(inner,))))
    fact()   derived
    └─ leaf()   explicit
    """
    shown: dict[int, tuple[Proof, ...]] = {}
    last = proof
    for node in proof.nodes():
        premises: dict[object, Proof] = {}
        for premise in node.premises:
            for part in shown[id(premise)]:
                premises.setdefault(part.fact, part)
        found = tuple(premises.values())
        last = node if found == node.premises else replace(node, premises=found)
        is_hidden = isinstance(node.fact, Atom) and is_auxiliary(node.fact.relation) and found
        shown[id(node)] = found if is_hidden else (last,)
    return last
