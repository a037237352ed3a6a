"""Signals that arrive in code that is not ours: libraries and compiled loops change exceptions."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from corollary.cli.interrupts import Repeater, interruptible, leaving
from corollary.cli.progress import Limits, Progress
from corollary.errors import CorollaryError, LimitReached, OperationFailed


def _convert(error: type[Exception]) -> None:
    """Replace any exception by another, as C code does that returns a result beside an error."""
    try:
        time.sleep(10)
    except BaseException:
        raise error("returned a result with an exception set") from None
    raise AssertionError("no signal arrived")


def _swallow() -> None:
    """Receive signals where Python can only drop the exception, then go on."""

    class Node:
        pass

    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        node = Node()
        reference = weakref.ref(node, lambda _: time.sleep(0.01))
        del node
        assert reference() is None
    time.sleep(10)
    raise AssertionError("the signal was not repeated")


@pytest.mark.parametrize("error", [SystemError, ValueError, RuntimeError])
def test_time_limit_survives_conversion(error: type[Exception]) -> None:
    progress = Progress(Limits(seconds=0.05), quiet=True)
    with pytest.raises(LimitReached, match=r"--limit-seconds 0\.05"), progress.watched():
        _convert(error)


def test_memory_limit_survives_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corollary.cli.progress.resident_memory", lambda: 1 << 40)
    progress = Progress(Limits(memory=1 << 30), quiet=True)
    with pytest.raises(OperationFailed) as caught, progress.watched():
        _convert(SystemError)
    assert caught.value.code == "E406"


def test_time_limit_is_repeated_without_noise(capfd: pytest.CaptureFixture[str]) -> None:
    progress = Progress(Limits(seconds=0.05), quiet=True)
    with pytest.raises(LimitReached), progress.watched():
        _swallow()
    assert "Exception ignored" not in capfd.readouterr().err


def test_limits_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the signal is repeated while the block ends, its handler and timer are gone.

    Otherwise the exception appears later, in code that prints the error, and the process dies by
    the signal.
    """
    monkeypatch.setattr("corollary.cli.progress.REPEAT_SECONDS", 0.0001)
    before = signal.getsignal(signal.SIGALRM)
    for _ in range(150):
        with pytest.raises(LimitReached), Progress(Limits(seconds=0.0005), quiet=True).watched():
            time.sleep(10)
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
        assert signal.getsignal(signal.SIGALRM) == before


def test_errors_before_the_limit_stay() -> None:
    progress = Progress(Limits(seconds=60), quiet=True)
    with pytest.raises(SystemError), progress.watched():
        raise SystemError("not from a signal")


@contextlib.contextmanager
def _ctrl_c() -> Iterator[None]:
    """Interrupt the work inside from outside."""
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    yield


@pytest.mark.parametrize("error", [SystemError, ValueError, CorollaryError])
def test_ctrl_c_survives_conversion(error: type[Exception]) -> None:
    with pytest.raises(KeyboardInterrupt), interruptible(), _ctrl_c():
        _convert(error)


def test_ctrl_c_says_what_is_left_after_conversion() -> None:
    with (
        pytest.raises(KeyboardInterrupt, match="one commit"),
        interruptible(),
        leaving(lambda: "one commit"),
        _ctrl_c(),
    ):
        _convert(SystemError)


def test_ctrl_c_is_repeated_without_noise(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), interruptible(), _ctrl_c():
        _swallow()
    assert "Exception ignored" not in capfd.readouterr().err


@pytest.mark.parametrize("seconds", [0.45, 0.49, 0.5, 0.501, 0.505, 0.51])
def test_repetition_does_not_outlive_the_block(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal would be repeated just when the block ends, where another handler is back."""
    monkeypatch.setattr("corollary.cli.interrupts.REPEAT_SECONDS", 0.5)
    late: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: late.append(number))
    try:
        with contextlib.suppress(KeyboardInterrupt), interruptible():
            try:
                with _ctrl_c():
                    time.sleep(10)
            finally:
                until = time.monotonic() + seconds
                while time.monotonic() < until:  # unwinding takes long
                    with contextlib.suppress(KeyboardInterrupt):
                        time.sleep(0.0005)
        time.sleep(0.1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert late == []


def test_closed_repeater_sends_nothing() -> None:
    received: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: received.append(number))
    try:
        repeater = Repeater(signal.SIGALRM)
        repeater.send()
        repeater.close()
        assert received == [signal.SIGALRM]
        repeater.send()
        time.sleep(0.01)
        assert received == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)


_STOPPED_IN_EXEC = """
import sys
from corollary.cli.interrupts import interruptible
try:
    with interruptible():
        print("ready", flush=True)
        exec("import time; time.sleep(60)")
except KeyboardInterrupt:
    sys.exit(1)
"""


def test_exit_status_survives_ctrl_c_inside_exec(tmp_path: Path) -> None:
    """`python -m` would end by the signal, long after the exception was handled."""
    (tmp_path / "stopped_in_exec.py").write_text(_STOPPED_IN_EXEC)
    command = [sys.executable, "-m", "stopped_in_exec"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 1
