"""Recognize which rules of a stratum form modules; custom recognizers can be registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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

Recognizer = Callable[[Sequence[CompiledRule], Dictionary], Sequence[Module[Any]]]

_registered: list[Recognizer] = []


@contextmanager
def registered(recognizer: Recognizer) -> Iterator[None]:
    """Register a recognizer, which runs before the built-in one, within a `with` statement.

    A recognizer receives the recursive rules of a stratum, and returns modules for some of them.
    """
    register(recognizer)
    try:
        yield
    finally:
        _registered.remove(recognizer)


def register(recognizer: Recognizer) -> None:
    """Register a recognizer, which runs before the built-in one, for programs compiled later."""
    _registered.insert(0, recognizer)


def recognize_modules(rules: Sequence[CompiledRule], dictionary: Dictionary) -> list[Module[Any]]:
    """Partition recursive rules into modules, by shape up to variable names and atom order.

    >>> from corollary.core.compile import compile_rule
    >>> from corollary.lang.program import Program
    >>> text = "p(?x, ?z) :- p(?y, ?z), p(?x, ?y) . q(?x, ?y) :- p(?x, ?y), q(?y, ?x) ."
    >>> dictionary = Dictionary()
    >>> rules = [compile_rule(rule, dictionary) for rule in Program.parse(text).rules]
    >>> [module.name for module in recognize_modules(rules, dictionary)]
    ['transitive p', 'recursive']
    """
    modules: list[Module[Any]] = []
    others = list(rules)
    # A rule with a variable property or class in its head may derive any of them.
    if not any(rule.head.wide for rule in rules):
        for recognizer in (*_registered, _recognize_built_in):
            for module in recognizer(others, dictionary):
                modules.append(module)
                others = [rule for rule in others if rule not in module.rules]
    if others or not modules:
        modules.append(SemiNaive(others))
    return modules


def _recognize_built_in(rules: Sequence[CompiledRule], dictionary: Dictionary) -> list[Module[Any]]:
    if len(rules) == 1 and is_linear(rules[0]):
        return [Linear(rules, dictionary)]
    transitive = [rule for rule in rules if is_transitive(rule)]
    modules: list[Module[Any]] = []
    for predicate in dict.fromkeys(rule.head.predicate for rule in transitive):
        own = [rule for rule in transitive if rule.head.predicate is predicate]
        symmetric = [r for r in rules if r.head.predicate is predicate and is_symmetric(r)]
        kind = SymmetricTransitive if symmetric else Transitive
        modules.append(kind([*own, *symmetric], dictionary))
    return modules
