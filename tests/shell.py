"""Shell scripts whose `corollary` runs in this process.

The shell is real, with its pipes, redirections and exit statuses. Only `corollary` starts no
interpreter that imports the package: a small client on the PATH sends its arguments, folder and
open files over a socket; the test executes the command and answers with the exit status.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.cli.calls import execute

_CLIENT = """#!{python} -IS
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
words = "\\0".join([os.getcwd(), *sys.argv[1:]])
socket.send_fds(server, [os.fsencode(words)], [0, 1, 2])
sys.exit(server.recv(1)[0])
"""


def shell(commands: str, folder: Path, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run commands in a folder until one fails, and return what they print."""
    with (
        tempfile.TemporaryDirectory(prefix="shell-") as place,
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        _listening(f"{place}/socket") as server,
    ):
        client = Path(place, "corollary")
        client.write_text(_CLIENT.format(python=sys.executable, address=server.getsockname()))
        client.chmod(0o700)
        path = os.pathsep.join([place, str(Path(sys.executable).parent), os.environ["PATH"]])
        process = subprocess.Popen(
            ["sh", "-ec", commands], cwd=folder, env=os.environ | {"PATH": path}, stdout=out
        )
        _serve(server, process)
        out.seek(0)
        done = subprocess.CompletedProcess(process.args, process.returncode, out.read())
    if check:
        done.check_returncode()
    return done


@contextlib.contextmanager
def _listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        yield server


def _serve(server: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Execute commands in this thread, which receives signals, until the shell ends."""

    def announce_end() -> None:
        process.wait()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(server.getsockname())  # an empty message

    waiter = threading.Thread(target=announce_end)
    waiter.start()
    while True:
        connection, _ = server.accept()
        with connection:
            message, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
            if not message:
                break
            connection.sendall(bytes([_answer(os.fsdecode(message), *files)]))
    waiter.join()


def _answer(message: str, stdin: int, stdout: int, stderr: int) -> int:
    folder, *words = message.split("\0")
    with (
        open(stdin, encoding="utf-8") as source,
        open(stdout, "w", encoding="utf-8") as out,
        open(stderr, "w", encoding="utf-8") as errors,
    ):
        before, sys.stdin = sys.stdin, source
        try:
            return execute(words, out, errors, Path(folder))
        finally:
            sys.stdin = before
