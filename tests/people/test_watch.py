"""Progress in notebooks, by a real kernel; and nothing of it elsewhere."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from corollary import KnowledgeBase
from corollary.core import watch
from corollary.rdf.triples import Progress


class Screen:
    """What a notebook would show."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown: list[tuple[str, bool]] = []
        monkeypatch.setattr(watch, "in_notebook", lambda: True)
        monkeypatch.setattr(watch, "DELAY", 0.0)
        monkeypatch.setattr(watch, "_EVERY", 0.01)

        def show(self_: watch.Watch, html: str) -> None:
            self.shown.append((html, self_.is_shown))
            self_.is_shown = True

        monkeypatch.setattr(watch.Watch, "_show", show)


def test_work_is_shown_with_its_share_and_ends_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    with watch.watching("loading"):
        outer = watch.current()
        assert outer is not None
        outer.read(Progress("<pets>.ttl", 25, 100, 1000))
        with watch.watching("deriving"):
            assert watch.current() is outer
        while not any("1,000 statements" in html for html, _ in screen.shown):
            time.sleep(0.01)
    assert watch.current() is None
    (first, is_update), *_, (last, _) = screen.shown
    assert not is_update
    assert "<progress" in first
    assert "<progress" not in last
    assert "reading &lt;pets&gt;.ttl, 1,000 statements" in last
    assert any('value="25" max="100"' in html for html, _ in screen.shown)


def test_short_work_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    monkeypatch.setattr(watch, "DELAY", 60.0)
    KnowledgeBase("p(1) .").insert("p(2)")
    assert screen.shown == []


def test_knowledge_bases_tell_what_they_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Screen(monkeypatch)
    monkeypatch.setattr("corollary.knowledge_base.state.in_notebook", lambda: True)
    told: list[str] = []
    monkeypatch.setattr(watch.Watch, "tell", lambda _, state, share=None: told.append(state))
    (tmp_path / "edges.nt").write_text("<urn:a> <urn:p> <urn:b> .\n", "utf-8")
    kb = KnowledgeBase("path(?x, ?y) :- edge(?x, ?y) . edge(1, 2) .")
    kb.load(tmp_path / "edges.nt")
    assert any(state.startswith("deriving, stratum 1 of 1") for state in told)
    assert any("edges.nt, 1 statements" in state for state in told)


def test_elsewhere_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert not watch.in_notebook()
    with watch.watching("loading"):
        assert watch.current() is None
    assert capsys.readouterr() == ("", "")


def test_compiling_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_announced", [])
    first, second = watch.Watch("a"), watch.Watch("b")
    first.compiling()
    first.compiling()
    second.compiling()
    assert "compiling loops, once on this machine" in first.text()
    assert second.notes == []


@pytest.mark.slow
def test_a_real_kernel_shows_it(tmp_path: Path) -> None:
    lines = (f"<urn:{n}> <urn:p> <urn:{n + 1}> .\n" for n in range(2000))
    (tmp_path / "chain.nt").write_text("".join(lines), "utf-8")
    code = f"""
        from corollary.core import watch
        watch.DELAY = 0.0
        import corollary
        kb = corollary.KnowledgeBase("[?x, <urn:q>, ?y] :- [?x, <urn:p>, ?y] .")
        changes = kb.load({str(tmp_path / "chain.nt")!r})
    """
    cell = nbformat.v4.new_code_cell("\n".join(map(str.strip, code.splitlines())))  # type: ignore[no-untyped-call]
    notebook: Any = nbformat.v4.new_notebook(cells=[cell])  # type: ignore[no-untyped-call]
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [output["data"] for output in notebook.cells[0].outputs if "data" in output]
    assert shown
    assert all("<progress" not in data["text/html"] for data in shown)
    assert any(" s" in data["text/plain"] for data in shown)
