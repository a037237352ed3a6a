"""The page in a real browser: the six views, by keyboard, on a phone, under its own policy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calls import call
from tests.service.servers import Server, serving

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "corollary" / "service" / "static"
CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
SCREENSHOTS = os.environ.get("COROLLARY_SCREENSHOTS")  # a folder to write them to

browser_test = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the path")


def test_the_page_loads_nothing_from_elsewhere() -> None:
    index = (STATIC / "index.html").read_text()
    assert "http" not in index.replace("http-equiv", "")
    assert "style=" not in index
    assert "<script>" not in index
    style = (STATIC / "assets" / "index.css").read_text()
    assert "url(" not in style
    assert "@import" not in style
    assert (STATIC / "licenses.txt").read_text().count("MIT License") > 3


def test_the_lock_file_names_no_host() -> None:
    assert '"resolved"' not in (ROOT / "web" / "package-lock.json").read_text()


@pytest.mark.long
@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no Node")
def test_the_built_files_are_those_of_the_sources(tmp_path: Path) -> None:
    web = tmp_path / "web"
    shutil.copytree(ROOT / "web", web, ignore=shutil.ignore_patterns("node_modules"))
    installed = ROOT / "web" / "node_modules"
    if installed.is_dir():
        (web / "node_modules").symlink_to(installed)
    else:
        done = subprocess.run(["npm", "ci"], cwd=web, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"the packages cannot be installed: {done.stderr[-200:]}")
    built = tmp_path / "built"
    command = ["npx", "vite", "build", "--outDir", str(built), "--emptyOutDir"]
    subprocess.run(command, cwd=web, check=True, capture_output=True)
    names = {path.relative_to(built) for path in built.rglob("*") if path.is_file()}
    assert names == {path.relative_to(STATIC) for path in STATIC.rglob("*") if path.is_file()}
    for name in names:
        assert (built / name).read_bytes() == (STATIC / name).read_bytes(), name


@pytest.fixture
def lubm(tmp_path: Path) -> Iterator[Server]:
    """A server of LUBM(1)."""
    data, store = tmp_path / "lubm", tmp_path / "store"
    made = call("generate", "lubm", "--scale", "1", "--out", data, "--quiet")
    assert made.returncode == 0, made.stderr
    built = call("build", store, data, "--rules", "owl-rl", "--engine", "columnar", "--quiet")
    assert built.returncode == 0, built.stderr
    with serving(store, "--open") as server:
        yield server


@pytest.mark.long
@browser_test
def test_six_views_in_a_browser(lubm: Server) -> None:
    """In a process of its own: Playwright's event loop gets in the way of other tests."""
    pytest.importorskip("playwright.sync_api")
    command = [
        sys.executable,
        "-m",
        "tests.service.walk",
        lubm.url,
        str(CHROMIUM),
        SCREENSHOTS or "-",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
