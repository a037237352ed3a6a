"""Which rules of a stratum form modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corollary.algorithms.modular.framework import Module, SemiNaive
from corollary.algorithms.modular.symmetric_transitive import SymmetricTransitive, is_symmetric
from corollary.algorithms.modular.transitive import (
    Linear,
    Transitive,
    is_linear,
    is_transitive,
)
from corollary.core.compile import CompiledRule
from corollary.core.dictionary import Dictionary


def is_modular(rules: Sequence[CompiledRule]) -> bool:
    """Whether modules cover all these recursive rules."""
    if any(rule.head.wide for rule in rules):
        return False
    transitive = {rule.head.predicate for rule in rules if is_transitive(rule)}
    if not transitive:
        return len(rules) == 1 and is_linear(rules[0])
    return all(
        is_transitive(rule) or (is_symmetric(rule) and rule.head.predicate in transitive)
        for rule in rules
    )


def recognized(rules: Sequence[CompiledRule], dictionary: Dictionary) -> list[Module[Any]]:
    """The modules of recursive rules: by shape, up to names of variables and order of atoms.

    >>> from corollary.core.compile import compile_rule
    >>> from corollary.lang.program import Program
    >>> text = "p(?x, ?z) :- p(?y, ?z), p(?x, ?y) . q(?x, ?y) :- p(?x, ?y), q(?y, ?x) ."
    >>> dictionary = Dictionary()
    >>> rules = [compile_rule(rule, dictionary) for rule in Program.parse(text).rules]
    >>> [module.name for module in recognized(rules, dictionary)]
    ['transitive p', 'recursive']
    """
    transitive = {rule.head.predicate: rule for rule in rules if is_transitive(rule)}
    symmetric = {rule.head.predicate for rule in rules if is_symmetric(rule)}
    # Where a property or class is a variable, a rule may derive any of them.
    if any(rule.head.wide for rule in rules):
        transitive = {}
    modules: list[Module[Any]] = [
        (SymmetricTransitive if predicate in symmetric else Transitive)(rule, dictionary)
        for predicate, rule in transitive.items()
    ]
    taken = [
        rule
        for rule in rules
        if rule.head.predicate in transitive and (is_transitive(rule) or is_symmetric(rule))
    ]
    others = [rule for rule in rules if rule not in taken]
    if not modules and len(others) == 1 and is_linear(others[0]):
        return [Linear(others)]
    if others or not modules:
        modules.append(SemiNaive(others))
    return modules
