"""Each operation parses a log entry at most once, and stored rules only when they are new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from corollary import KnowledgeBase
from corollary.errors import OperationFailed, Source
from corollary.lang.program import Program
from corollary.store import Store, delta, programs
from corollary.store.places import name_within

RULES = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    kb = KnowledgeBase(f"{RULES} edge(0, 1) .")
    kb.save(tmp_path / "store")
    for node in (1, 2):
        _insert(kb, node)
    return tmp_path / "store"


@pytest.fixture
def parsed(path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts parsed log entries and parsed programs, beginning with empty caches."""
    counts: Counter[str] = Counter()
    read_actions, parse = delta.read_actions, Program.parse

    def count_actions(file: Path) -> object:
        counts[str(file.relative_to(path))] += 1
        return read_actions(file)

    def count_programs(source: Source | str, *, syntax: str = "dl") -> object:
        counts["program"] += isinstance(source, Source) and source.name.endswith("rules")
        return parse(source, syntax=syntax)

    monkeypatch.setattr(delta, "read_actions", count_actions)
    monkeypatch.setattr(Program, "parse", count_programs)
    delta._read_record.cache_clear()
    programs._parse.cache_clear()
    return counts


def _insert(kb: KnowledgeBase, node: int) -> None:
    with kb.transaction() as transaction:
        transaction.insert(f"edge({node}, {node + 1}) .")


def _update(path: Path) -> None:
    kb = KnowledgeBase.open(path)
    _insert(kb, 7)
    _insert(kb, 8)


@pytest.mark.parametrize(
    "operation",
    [
        KnowledgeBase.open,
        _update,
        lambda path: KnowledgeBase.open(path).query("path(0, ?x)"),
        lambda path: list(Store.open(path).log()),
        lambda path: KnowledgeBase.open(path).diff(1, 3),
        lambda path: list(KnowledgeBase.open(path).changes_since(0)),
    ],
    ids=["open", "update", "query", "log", "diff", "changes_since"],
)
def test_parses_each_log_entry_once(
    operation: Callable[[Path], object], path: Path, parsed: Counter[str]
) -> None:
    operation(path)
    assert parsed
    assert {name: count for name, count in parsed.items() if count > 1} == {}


def test_parses_unchanged_rules_once(path: Path, parsed: Counter[str]) -> None:
    for _ in range(2):
        _update(path)
    assert parsed["program"] == 1


def test_parses_changed_log_entry_again(path: Path, parsed: Counter[str]) -> None:
    store = Store.open(path)
    assert store.commit(1).author == store.commit(1).author
    entry = store.facts.log_file(1)
    assert parsed[name_within(entry, path)] == 1
    entry.write_text("{}\n")
    with pytest.raises(OperationFailed, match="no valid commit metadata"):
        store.commit(1)
