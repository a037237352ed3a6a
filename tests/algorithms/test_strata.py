"""Strata that are changed are those that would be found anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corollary.algorithms.strata import CompiledStrata
from corollary.core.dictionary import Dictionary
from corollary.lang.program import Program
from corollary.lang.syntax import Rule

NAMES = "abcdefgh"


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """Over plain relations and over classes, with one or two atoms."""
    classes = draw(st.booleans())

    def atom(name: str) -> str:
        return f"[?x, a, <{name}>]" if classes else f"{name}(?x)"

    names = [draw(st.sampled_from(NAMES)) for _ in range(draw(st.integers(2, 3)))]
    text = f"{atom(names[0])} :- {', '.join(map(atom, names[1:]))} ."
    return Program.parse(text).rules[0]


@given(
    st.lists(rules(), max_size=12, unique=True),
    st.lists(st.tuples(st.lists(rules(), max_size=3), st.integers(0, 3)), max_size=5),
)
def test_changed(start: list[Rule], steps: list[tuple[list[Rule], int]]) -> None:
    dictionary = Dictionary()
    now = list(start)
    strata = CompiledStrata(now, dictionary)
    for added, fewer in steps:
        removed = now[:fewer]
        new = list(dict.fromkeys(rule for rule in added if rule not in now))
        before, now = strata, [*now[fewer:], *new]
        strata = before.changed(now, new, removed)
        _same(strata, CompiledStrata(now, dictionary))
        came, went = strata.difference(before)
        assert {compiled.source for compiled in came} == set(new)
        assert {compiled.source for compiled in went} == set(removed)


def _same(found: CompiledStrata, expected: CompiledStrata) -> None:
    def content(strata: CompiledStrata) -> set[object]:
        return {
            (
                stratum.predicates,
                frozenset(rule.source for rule in stratum.nonrecursive),
                frozenset(rule.source for rule in stratum.recursive),
            )
            for stratum in strata.strata
        }

    assert content(found) == content(expected)
    assert found.compiled.keys() == expected.compiled.keys()
    assert found.derived == expected.derived
    for number, stratum in enumerate(found.strata):
        for predicate in stratum.predicates:
            assert found.owner(predicate) == number
        for predicate in stratum.reads:
            assert number in found.readers([predicate])
            owner = found.owner(predicate)
            assert owner is None or owner <= number, "dependencies go back"
    read = {predicate for stratum in expected.strata for predicate in stratum.reads}
    for predicate in read:
        readers = [found.strata[number] for number in found.readers([predicate])]
        assert all(predicate in stratum.reads for stratum in readers)
        assert len(readers) == len(expected.readers([predicate]))
