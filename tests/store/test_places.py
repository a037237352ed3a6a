"""A store lies where its path says, whatever characters the path has."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary import KnowledgeBase
from corollary.errors import InvalidInput
from corollary.knowledge_base.verify import verify_store
from corollary.store import Store
from corollary.store.compaction import compact, vacuum
from tests.store.killing import begin

NAMES = ["a%20b", "a b", "a#b", "a?b=c", "s3:x", "file:x", "http:", "é 中", "%", "x%2Fy", "[1]{2}*"]
NAMES += ["a\\b", "x\\", "\\"]


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_a_path(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    begin(Path("a b"))  # what a%20b must not be mixed up with
    if name != "a b":
        begin(Path(name))
    with KnowledgeBase.open(name).transaction() as tx:
        tx.insert("edge(2, 3) .")
    compact(Store.open(name), full=True)
    vacuum(Store.open(name), keep=1, older_than=0.0)
    assert KnowledgeBase.open(name).count() == 9
    assert verify_store(name).problems == []
    assert {path.name for path in tmp_path.iterdir()} == {"a b", name}
    if name != "a b":
        assert KnowledgeBase.open("a b").count() == 5


def test_a_backslash_is_no_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is: in the name, in a folder above, or where a link points."""
    monkeypatch.chdir(tmp_path)
    begin(Path("a/b"))
    begin(Path("p\\q/s"))
    Path("link").symlink_to("a\\b")
    Path("a\\b").mkdir()
    begin(Path("link"))
    for name in ("p\\q/s", "a\\b", "link"):
        with KnowledgeBase.open(name).transaction() as tx:
            tx.insert("edge(2, 3) .")
        assert verify_store(name).problems == []
    assert Store.open("a/b").latest() == 1
    assert {path.name for path in tmp_path.iterdir()} == {"a", "a\\b", "p\\q", "link"}


def test_addresses(tmp_path: Path) -> None:
    begin(tmp_path / "a b")
    assert KnowledgeBase.open((tmp_path / "a b").as_uri()).count() == 5
    for address in ("https://example.org/store", "ftp://host/store", "s3://bucket/a%20b"):
        with pytest.raises(InvalidInput) as caught:
            KnowledgeBase.open(address)
        assert caught.value.code == "E510"
        with pytest.raises(InvalidInput) as caught:
            KnowledgeBase("p(1) .").save(address)
        assert caught.value.code == "E510"
