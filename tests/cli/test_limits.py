"""Limits and Ctrl-C in real processes: every command, one thread and two, in each phase.

A command that is stopped ends with status 1 and one message that says what is left behind, and the
store is at the version that the message names. A watchdog ends what would not stop.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from corollary.store import Store
from tests.cli.calls import call

_HANG = 240  # seconds after which a command counts as one that does not stop
_ADDRESSES = 16 << 30  # bytes of addresses that a command may ask for
_STATE = re.compile(r"the store is (?:still )?at version (\d+)")

CROSS = "g(?a, ?b, ?c, ?d) :- n(?a), n(?b), n(?c), n(?d) .\n"
CLOSURE = "p(?x, ?y) :- e(?x, ?y) .\np(?x, ?z) :- p(?x, ?y), p(?y, ?z) .\n"
PRODUCT = "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f . ?g <urn:p> ?h }"
SORTED = f"{PRODUCT} ORDER BY ?a ?c ?e ?g"
COUNTED = f"SELECT (COUNT(*) AS ?n) {{ {PRODUCT.partition('{')[2]}"


@dataclass(frozen=True)
class Files:
    """What commands work on."""

    folder: Path

    def prepare(self) -> None:
        """Small files of which much follows, and a store of the same facts."""
        folder = self.folder
        folder.mkdir(exist_ok=True)
        (folder / "n.facts").write_text("".join(f"{n}\n" for n in range(3000)))
        edges = [(n, (n * 7 + k * 13) % 9000) for n in range(9000) for k in range(3)]
        (folder / "e.facts").write_text("".join(f"{x}\t{y}\n" for x, y in edges))
        (folder / "n.dl").write_text("".join(f"n({n}) .\n" for n in range(3000)))
        (folder / "cross.dl").write_text(CROSS)
        (folder / "closure.dl").write_text(CLOSURE)
        (folder / "script").write_text("add rule " + CROSS.strip() + " ;\ncommit ;\n")
        (folder / "p.nt").write_text(
            "".join(f"<urn:{n}> <urn:p> <urn:{n}> .\n" for n in range(3000))
        )
        (folder / "patch.rdfp").write_text(
            "".join(f"TX .\nA <urn:x{n}> <urn:p> <urn:y> .\nTC .\n" for n in range(3000))
        )
        (folder / "none.dl").write_text("unused(?x) :- n(?x), missing(?x) .\n")
        store = str(folder / "store")
        done = call("build", store, folder / "p.nt", "--rules", "none", "--engine", "columnar")
        assert done.returncode == 0, done.stderr


def limit_addresses() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "corollary.cli.main", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        preexec_fn=limit_addresses,
    )


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    try:
        out, errors = process.communicate(timeout=_HANG)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def processor_seconds(process: subprocess.Popen[str]) -> float:
    """What a process has worked so far: a measure that does not depend on who else works."""
    text = Path(f"/proc/{process.pid}/stat").read_text()
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupted(after: float, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Send Ctrl-C when a command has worked for so long."""
    process = start(*arguments)
    until = time.monotonic() + _HANG
    while process.poll() is None and processor_seconds(process) < after:
        assert time.monotonic() < until, "the command does not work"
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    return finish(process)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    found = Files(tmp_path_factory.mktemp("limits") / "files")
    found.prepare()
    return found


Command = Callable[[Files, Path], list[str | Path]]

# Commands that would work for hours, and what they would write.
COMMANDS: dict[str, Command] = {
    "run": lambda f, out: ["run", f.folder / "cross.dl", "--facts", f.folder, "--out", out],
    "run-closure": lambda f, out: [
        *("run", f.folder / "closure.dl", "--facts", f.folder, "--out", out, "--no-modules")
    ],
    "run-explain": lambda f, out: [
        *("run", f.folder / "cross.dl", "--facts", f.folder, "--explain", "g(1, 1, 1, 1)")
    ],
    "apply": lambda f, out: ["apply", f.folder / "n.dl", "--updates", f.folder / "script"],
    "build": lambda f, out: [
        *("build", out, f.folder / "n.dl", "--rules", f.folder / "cross.dl", "--engine", "columnar")
    ],
    "check": lambda f, out: ["check", f.folder / "n.dl", "--rules", f.folder / "cross.dl"],
    "query-files": lambda f, out: [
        *("query", "--data", f.folder / "p.nt", "--rules", "none", PRODUCT),
        *("--format", "tsv", "--out", out),
    ],
    "query-store": lambda f, out: [
        *("query", f.folder / "store", PRODUCT, "--format", "csv", "--out", out)
    ],
    "query-count": lambda f, out: ["query", f.folder / "store", COUNTED, "--out", out],
}
# These change the store; a limit may come before or after a commit.
UPDATES: dict[str, Command] = {
    "update": lambda f, out: [
        *("update", out, "--insert", f.folder / "n.dl", "--add-rules", f.folder / "cross.dl")
    ],
    "patch": lambda f, out: ["update", out, "--patch", f.folder / "patch.rdfp"],
}
# These end by themselves, soon: a limit comes while they open the store, or not at all.
READERS: dict[str, Command] = {
    "explain": lambda f, out: [
        *("explain", f.folder / "store", "[<urn:1>, <urn:p>, <urn:1>]", "--format", "tree")
    ],
    "verify": lambda f, out: ["verify", f.folder / "store"],
    "check-store": lambda f, out: ["check", f.folder / "store"],
}


def check_stopped(done: subprocess.CompletedProcess[str], expected: str) -> None:
    assert done.returncode == 1, (done.stdout[-500:], done.stderr)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.stderr.count(expected) == 1


def copied_store(files: Files, path: Path) -> Path:
    import shutil

    shutil.copytree(files.folder / "store", path)
    return path


def check_store(path: Path, message: str) -> None:
    """The store opens at the version that the message names, and is right."""
    named = _STATE.search(message)
    assert named is not None, message
    assert Store.open(path).latest() == int(named[1])
    done = call("verify", path, "--json")
    assert json.loads(done.stdout)["right"], done.stdout


def stop(
    name: str,
    files: Files,
    out: Path,
    flags: list[str],
    expected: str,
    *,
    after: float = 0,
    in_process: bool = False,
) -> None:
    """Run a command that is to be stopped, by a limit or by Ctrl-C, and look at what is left."""
    changes = name in UPDATES
    if changes:
        copied_store(files, out)
    command = [*(COMMANDS | UPDATES | READERS)[name](files, out), *flags, "--quiet"]
    if in_process:
        done = call(*command)
    else:
        done = interrupted(after, *command) if after else finish(start(*command))
    check_stopped(done, expected)
    if changes:
        check_store(out, done.stderr)
    elif name != "apply":
        assert not out.exists() or not any(out.iterdir()), "nothing half-written"
        assert "nothing was written" in done.stderr
    assert not list(out.parent.glob(".*.tmp*"))


THREADS = ["1", "2"]


@pytest.mark.parametrize(("name", "threads"), [("run", "2"), ("query-store", "2"), ("patch", "2")])
def test_time_is_limited(name: str, threads: str, files: Files, tmp_path: Path) -> None:
    flags = ["--limit-seconds", "3", "--threads", threads]
    stop(name, files, tmp_path / "out", flags, "E405: stopped by --limit-seconds 3: ")


@pytest.mark.long
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", [*COMMANDS, *UPDATES])
def test_time_is_limited_everywhere(name: str, threads: str, files: Files, tmp_path: Path) -> None:
    flags = ["--limit-seconds", "2", "--threads", threads]
    stop(name, files, tmp_path / "out", flags, "E405: stopped by --limit-seconds 2: ")


@pytest.mark.long
@pytest.mark.parametrize("name", READERS)
def test_time_is_limited_while_a_store_is_opened(name: str, files: Files, tmp_path: Path) -> None:
    flags = ["--limit-seconds", "0.01"]
    stop(name, files, tmp_path / "out", flags, "E405: stopped by --limit-seconds 0.01: ")


@pytest.mark.parametrize("name", ["query-store"])
def test_memory_is_limited(name: str, files: Files, tmp_path: Path) -> None:
    flags = ["--limit-memory", "600M", "--threads", "2"]
    stop(name, files, tmp_path / "out", flags, "E406: ")


@pytest.mark.long
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", [name for name in (*COMMANDS, "update") if name != "query-count"])
def test_memory_is_limited_everywhere(
    name: str, threads: str, files: Files, tmp_path: Path
) -> None:
    flags = ["--limit-memory", "600M", "--threads", threads]
    stop(name, files, tmp_path / "out", flags, "E406: ")


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", ["run", "run-closure"])
def test_facts_are_limited_inside_a_round(
    name: str, threads: str, files: Files, tmp_path: Path
) -> None:
    flags = ["--limit-facts", "100000", "--threads", threads]
    expected = "E405: stopped by --limit-facts 100000: "
    stop(name, files, tmp_path / "out", flags, expected, in_process=True)


@pytest.mark.parametrize("name", ["query-count"])
def test_ctrl_c(name: str, files: Files, tmp_path: Path) -> None:
    flags = ["--threads", "2"]
    stop(name, files, tmp_path / "out", flags, "stopped by Ctrl-C: ", after=4)


# Threads and seconds of work: while modules are imported, while data are read or the store is
# opened, and while rules or the query are evaluated.
PHASES = [("2", 0.5), ("2", 1.5), ("1", 5), ("2", 5)]


@pytest.mark.long
@pytest.mark.parametrize(("threads", "after"), PHASES)
@pytest.mark.parametrize("name", ["run", "build", "query-store", "update", "patch"])
def test_ctrl_c_in_each_phase(
    name: str, threads: str, after: float, files: Files, tmp_path: Path
) -> None:
    flags = ["--threads", threads]
    out = tmp_path / "out"
    if name in UPDATES and after < 1:
        pytest.skip("the store is not opened yet")
    stop(name, files, out, flags, "stopped by Ctrl-C: ", after=after)


@pytest.mark.parametrize("seconds", ["0.3", "0.6", "0.9"])
def test_a_limit_while_a_query_is_parsed_is_no_mistake_of_the_query(
    seconds: str, files: Files, tmp_path: Path
) -> None:
    """While the store is opened, the query is parsed, or the database plans it."""
    objects = ", ".join(f"?b{n}" for n in range(20_000))
    (tmp_path / "long.rq").write_text(f"SELECT * {{ ?a <urn:p> {objects} }}")
    command = ("query", files.folder / "store", tmp_path / "long.rq", "--limit-seconds", seconds)
    done = finish(start(*command))
    check_stopped(done, f"E405: stopped by --limit-seconds {seconds}: ")


def test_duplicates_do_not_count_as_facts(tmp_path: Path) -> None:
    """A rule may have far more instances than there are facts."""
    (tmp_path / "n.facts").write_text("".join(f"{n}\n" for n in range(300)))
    (tmp_path / "p.dl").write_text("m(?a) :- n(?a), n(?b), FILTER(?a <= ?b) .\n")
    flags = ("--json", "--limit-facts", "600")
    done = call("run", tmp_path / "p.dl", "--facts", tmp_path, *flags)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["facts"] == 600
    done = call("run", tmp_path / "p.dl", "--facts", tmp_path, "--limit-facts", "599")
    check_stopped(done, "E405: stopped by --limit-facts 599: ")
