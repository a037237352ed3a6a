"""RDF Patch with named graphs: random histories, and patches between any two of their versions."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corollary import KnowledgeBase, Program
from corollary.cli.main import main
from corollary.core.dictionary import Dictionary
from corollary.knowledge_base.differences import Differences, diff, write_feed
from corollary.knowledge_base.patches import apply_patch
from corollary.rdf.patch import read_patch
from corollary.store import Store
from corollary.store.clone import clone
from tests.effort import first
from tests.test_datasets import GRAPHS, RULES, operation, quads_of

DERIVING = "[?s, <urn:q>, ?o] <urn:trusted> :- [?s, <urn:q>, ?o] <urn:g> ."
REACHES: tuple[Any, ...] = ("union", "default", ["<urn:g>"], ["default", "<urn:h>"])


def _history(seed: int, folder: Path, *, versions: int = 6) -> Store:
    """A store after random updates, changes of rules and of the graphs that rules read."""
    draw = random.Random(seed)
    kb = KnowledgeBase("\n".join(draw.sample(RULES, 2)))
    kb.save(folder)
    for number in range(versions):
        with kb.transaction() as tx:
            match draw.randint(0, 7):
                case 0:
                    tx.reason_over(draw.choice(REACHES))
                case 1:
                    is_known = Program.parse(DERIVING).rules[0] in kb.program
                    (tx.remove_rules if is_known else tx.add_rules)(DERIVING)
                case 2:
                    tx.insert(f'_:g{number} {{ _:n <urn:p> "a\\n\\"b"@en, <urn:a> }}')
                case _:
                    tx.update(" ; ".join(operation(draw) for _ in range(3)))
    return Store.open(folder)


def _patch(found: Differences, which: str, folder: Path) -> Path:
    path = folder / "found.rdfp"
    found.write(path, "rdfp", which)
    return path


def _applied(statements: set[str], path: Path) -> set[str]:
    """What the lines of a patch make of statements, read by themselves."""
    lines = path.read_text().splitlines()
    gone = {line[2:-2] for line in lines if line.startswith("D ")}
    new = {line[2:-2] for line in lines if line.startswith("A ")}
    assert gone <= statements, "only what is there is deleted"
    assert not new & statements, "only what is not there is added"
    return statements - gone | new


@pytest.mark.parametrize("seed", first(2, range(12)))
def test_patches_lead_from_any_version_to_any_other(seed: int, tmp_path: Path) -> None:
    store = _history(seed, tmp_path / "store")
    draw = random.Random(seed)
    newest = store.latest()
    for number in range(2):
        one, other = draw.sample(range(1, newest + 1), 2)
        path = _patch(diff(store, one, other), "explicit", tmp_path)
        before, expected = (
            quads_of(KnowledgeBase.open(tmp_path / "store", at_version=v)) for v in (one, other)
        )
        assert _applied(before, path) == expected
        target = tmp_path / f"copy{number}"
        clone(tmp_path / "store", target, at_version=one)
        copy = KnowledgeBase.open(target)
        list(apply_patch(copy, path))
        assert quads_of(KnowledgeBase.open(target)) == quads_of(copy) == expected


@pytest.mark.parametrize("seed", first(2, range(8)))
@pytest.mark.parametrize("which", ["all", "derived"])
def test_patches_are_differences_of_exports(seed: int, which: str, tmp_path: Path) -> None:
    store = _history(seed, tmp_path / "store")
    for one, other in [(1, store.latest()), (store.latest(), 2)]:
        path = _patch(diff(store, one, other), which, tmp_path)
        before, after = (
            quads_of(KnowledgeBase.open(tmp_path / "store", at_version=v), which)
            for v in (one, other)
        )
        assert _applied(before, path) == after


@pytest.mark.parametrize("seed", first(2, range(8)))
def test_a_feed_repeats_every_version(seed: int, tmp_path: Path) -> None:
    store = _history(seed, tmp_path / "store")
    file = io.StringIO()
    write_feed(store, 0, file, "explicit")
    path = tmp_path / "feed.rdfp"
    path.write_text(file.getvalue())
    copy = KnowledgeBase()
    seen = [int(found.headers["version"]) for found in read_patch(path, Dictionary())]
    for number, _ in zip(seen, apply_patch(copy, path), strict=True):
        expected = KnowledgeBase.open(tmp_path / "store", at_version=number)
        assert quads_of(copy) == quads_of(expected)


def test_patches_of_versions_that_a_vacuum_removed(tmp_path: Path) -> None:
    store = _history(1, tmp_path / "store")
    expected = _patch(diff(store, 2, 5), "explicit", tmp_path).read_text()
    assert main(["vacuum", str(tmp_path / "store"), "--keep", "1", "--quiet"]) == 0
    assert _patch(diff(store, 2, 5), "explicit", tmp_path).read_text() == expected


@pytest.mark.parametrize("dry", [False, True])
def test_changes_of_an_update_are_written_with_their_graphs(
    dry: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kb = KnowledgeBase("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] .")
    kb.insert("<urn:a> <urn:p> <urn:b> . <urn:g> { <urn:a> <urn:p> <urn:b> }")
    kb.save("s")
    before = quads_of(kb, "all")
    request = "MOVE DEFAULT TO <urn:h> ; INSERT DATA { GRAPH <urn:h> { <urn:b> <urn:q> <urn:a> } }"
    flags = ["--dry-run"] if dry else []
    command = ["update", "s", "--sparql", request, "--changes", "c.rdfp", "--quiet", *flags]
    assert main(command) == 0
    after = KnowledgeBase.open("s") if not dry else kb
    if dry:
        after.update(request)
    assert _applied(before, Path("c.rdfp")) == quads_of(after, "all")


def test_data_without_named_graphs_open_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = KnowledgeBase("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] .")
    kb.insert("<urn:a> <urn:p> <urn:b> .")
    kb.save(tmp_path / "s")

    def fail(*_: Any) -> Callable[..., Any]:
        raise AssertionError("facts are not needed")

    monkeypatch.setattr("corollary.knowledge_base.version_facts.open_columns", fail)
    found = diff(Store.open(tmp_path / "s"), 0, 1)
    assert found.statements() == found.triples() == ([], ["<urn:a> <urn:p> <urn:b> ."])


def test_patches_leave_out_what_rdf_does_not_have(tmp_path: Path) -> None:
    kb = KnowledgeBase("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] .")
    kb.insert("<urn:a> <urn:p> 1, <urn:b> .")
    kb.save(tmp_path / "s")
    for number in (3, 6):  # a triple of a literal is left out
        lines = kb.diff(0).statements("all")[1]
        assert len(lines) == number
        assert not any(line.startswith('"') for line in lines)
        kb.insert("<urn:c> <urn:p> <urn:d>, 2 .", graph="<urn:g>")


@pytest.mark.parametrize("graph", [*GRAPHS[:1], "_:g", "ex:g"])
def test_mixed_runs_of_lines_are_read(graph: str, tmp_path: Path) -> None:
    path = tmp_path / "p.rdfp"
    lines = [f"A <urn:s{n}> <urn:p> _:o{f' {graph}' if n % 2 else ''} ." for n in range(6)]
    path.write_text("PA ex <urn:> .\n" + "\n".join(lines))
    kb = KnowledgeBase()
    list(apply_patch(kb, path))
    named = {quad.split()[0] for quad in quads_of(kb) if len(quad.split()) == 4}
    assert named == {"<urn:s1>", "<urn:s3>", "<urn:s5>"}
    assert len(quads_of(kb)) == 6
