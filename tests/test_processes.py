"""What the process around Corollary may be like: forked, killed, without a writable home."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from corollary.query.spill import SpillFolder

_HANG = 300  # seconds after which a child counts as hanging


def run(code: str, *, folder: Path | None = None, **environment: str) -> str:
    """What a Python process prints; it must end well."""
    if folder is not None:
        environment |= {"TMPDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=_HANG,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FORKED = """
import os, signal, sys
from corollary import KnowledgeBase, Program

kb = KnowledgeBase(
    Program.parse("path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
    " [?x, <urn:path>, ?y] :- path(?x, ?y) ."), threads=2, mode=sys.argv[1])
edges = [(n % 500, (7 * n + 1) % 500) for n in range(40_000)]
with kb.transaction() as tx:
    tx.insert(edges, relation="edge")
count = "SELECT (COUNT(*) AS ?n) { ?x <urn:path> ?y . ?y <urn:path> ?x }"
before = kb.query(count).table.to_pylist()
child = os.fork()
if child == 0:
    signal.alarm(250)
    assert kb.query(count).table.to_pylist() == before
    with kb.transaction() as tx:
        tx.insert([(n + 1000, n + 1001) for n in range(300)], relation="edge")
        tx.delete(edges[:100], relation="edge")
    assert kb.count("path(1000, ?y)") == 300
    assert kb.query("ASK { 1000 <urn:path> 1300 }") is True
    print("child", flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert kb.query(count).table.to_pylist() == before
assert kb.count("path(1000, ?y)") == 0
print("parent")
"""


@pytest.mark.parametrize("mode", ["materialized", "hybrid"])
def test_a_forked_child_goes_on_by_itself(mode: str) -> None:
    code = FORKED.replace("sys.argv[1]", repr(mode))
    assert run(code) == "child\nparent\n"


FORKED_SPARK = """
import os
from corollary.engines.spark.session import build_session
from corollary.errors import OperationFailed

session = build_session("local[1]")
child = os.fork()
if child == 0:
    try:
        build_session("local[1]")
    except OperationFailed as error:
        print(error.code, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(session.range(3).count())
session.stop()
"""


@pytest.mark.long
@pytest.mark.spark
def test_a_forked_child_does_not_use_the_spark_of_its_parent() -> None:
    assert run(FORKED_SPARK) == "E408\n3\n"


# Numba asks several places in turn where compiled loops can be stored: with only the one that the
# environment names, all that need a home or a package that can be written are gone.
NO_HOME = """
import os, numba, numba.core.caching as caching
caching.CacheImpl._locator_classes = [
    locator for locator in caching.CacheImpl._locator_classes if "UserProvided" in locator.__name__
]
import numpy as np
from corollary.core.hashing import word
from corollary.core.jit import unusual_cache

number = word.dispatcher(np.full(8, 1, np.uint8), 0) & 15
print(number, os.path.basename(numba.config.CACHE_DIR))
print(unusual_cache())
"""


def test_loops_are_compiled_without_a_home_that_can_be_written(tmp_path: Path) -> None:
    folder = f"corollary-cache-{os.getuid()}"
    where = f"they are kept in {tmp_path / folder}: no other folder can be written"
    assert run(NO_HOME, folder=tmp_path) == f"1 {folder}\n{where}\n"
    assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


def test_a_cache_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    """What is in the cache is executed."""
    folder = tmp_path / f"corollary-cache-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    found = run(NO_HOME, folder=tmp_path).split()
    assert found[0] == "1"
    assert found[1] != folder.name
    assert list(folder.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]  # the other one is gone


def test_loops_are_compiled_where_nothing_can_be_written(tmp_path: Path) -> None:
    nothing = tmp_path / "file"
    nothing.write_text("")
    code = "import tempfile; tempfile.gettempdir = lambda: '/proc/nothing'\n" + NO_HOME
    assert run(code).splitlines()[-1] == "they are not kept: no folder can be written"


READ_ONLY = """
set -e
mount -t tmpfs tmpfs {home}
mount -o remount,ro {home}
mount --bind {package} {package}
mount -o remount,bind,ro {package}
HOME={home} XDG_CACHE_HOME={home} NUMBA_CACHE_DIR= {python} -c "{code}"
"""


@pytest.mark.long
def test_a_read_only_home_and_package(tmp_path: Path) -> None:
    """With real mounts, in a namespace of their own."""
    import corollary

    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("this system does not allow mounts in a namespace of their own")
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    package = Path(corollary.__file__).parent
    code = "from corollary import KnowledgeBase; kb = KnowledgeBase('p(?x) :- q(?x) .');"
    code += " tx = kb.transaction(); tx.__enter__(); tx.insert('q(1) .');"
    code += " tx.__exit__(None, None, None); print(kb.count())"
    script = READ_ONLY.format(home=home, package=package, python=sys.executable, code=code)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=_HANG,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


# -- spill folders ---------------------------------------------------------------------------------


def test_spill_folders_are_private_and_removed(tmp_path: Path) -> None:
    code = """
import gc, os, pathlib, stat, tempfile
from corollary import KnowledgeBase

root = pathlib.Path(tempfile.gettempdir())
os.umask(0)
kb = KnowledgeBase()
with kb.transaction() as tx:
    tx.insert("<urn:a> <urn:b> <urn:c> .")
kb.query("SELECT * { ?s ?p ?o }")
[folder] = root.glob("corollary-spill-*")
print(oct(stat.S_IMODE(folder.stat().st_mode)), str(os.getpid()) in folder.name)
"""
    assert run(code, folder=tmp_path) == "0o700 False\n"
    assert not list(tmp_path.glob("corollary-spill-*"))


KILLED = """
import os, signal
from corollary.query.spill import SpillFolder
print(SpillFolder().path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_a_folder_that_the_next_one_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        capture_output=True,
        text=True,
        timeout=_HANG,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert done.returncode == -signal.SIGKILL
    left = Path(done.stdout.strip())
    alive = SpillFolder()
    assert left.exists()  # it may belong to a process that has just begun
    for folder in (left, alive.path):
        os.utime(folder, (0, 0))
    another = SpillFolder()
    assert not left.exists()
    assert alive.path.exists()
    another.remove()
    alive.remove()
    assert list(tmp_path.iterdir()) == []
