"""The rules that a change concerns are found by their predicates."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corollary.core.compile import Pattern, compile_rule, covers
from corollary.core.dictionary import Dictionary
from corollary.engines.columnar.rule_index import RuleIndex, RuleIndexes
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.testing import thresholds
from tests.dense import dense_programs


@given(dense_programs(), st.data())
def test_the_index_finds_what_a_scan_finds(program: Program, data: st.DataObject) -> None:
    dictionary = Dictionary()
    rules = [compile_rule(rule, dictionary) for rule in program.rules]
    patterns = [p for rule in rules for p in (rule.head, *rule.body, *rule.negated)]
    narrow = sorted({p.predicate for p in patterns if not p.wide}, key=repr)
    if not narrow:
        return
    subset = st.lists(st.sampled_from(narrow), unique=True)
    changed, removed = data.draw(subset), data.draw(subset)
    index = RuleIndex(rules)

    def reads(pattern: Pattern, predicates: list[Predicate]) -> bool:
        own = pattern.predicate
        return any(covers(own, p) if pattern.wide else own == p for p in predicates)

    found = index.reading(changed, removed)
    for rule in rules:
        if any(reads(p, changed) for p in rule.body) or any(
            reads(p, removed) for p in rule.negated
        ):
            assert rule in found
    deriving = index.deriving(changed)
    for rule in rules:
        if reads(rule.head, changed):
            assert rule in deriving
    assert list(found) == [rule for rule in rules if rule in found], "in their order"


def test_indexes_are_kept_for_sequences_that_cannot_change() -> None:
    rules = tuple(
        compile_rule(rule, Dictionary())
        for rule in Program.parse("p(?x) :- q(?x) . q(?x) :- p(?x) .").rules
    )
    indexes = RuleIndexes()
    with thresholds(scanned_rules_limit=2):
        assert indexes.of(rules) is None
    with thresholds(scanned_rules_limit=1):
        assert indexes.of(rules) is indexes.of(rules)
        assert indexes.of([*rules]) is not indexes.of([*rules])
