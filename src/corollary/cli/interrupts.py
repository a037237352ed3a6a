"""Ctrl-C: interrupt the work at any point, and report what it leaves behind."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

# Seconds until a lost interrupt is repeated: Python drops an exception that a signal handler raises
# inside the callback of a weak reference or the finalizer of an object.
REPEAT_SECONDS = 0.1


@contextlib.contextmanager
def _nothing() -> Iterator[None]:
    yield


# Where a context manager is left: an exception that is raised here skips what it has to undo.
_LEAVING = type(_nothing()).__exit__.__code__


def can_raise(frame: FrameType | None) -> bool:
    """Whether a signal handler may raise at this point; if not, the signal has to be repeated."""
    return frame is None or frame.f_code is not _LEAVING


class Repeater:
    """Repeats a signal to the main thread, from another thread, until it is closed.

    A signal that arrives after the old handler is restored would end the process.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._lock = threading.Lock()
        self._closed = False

    def send(self) -> None:
        """Send the signal, unless closed."""
        with self._lock:
            if not self._closed:
                signal.pthread_kill(threading.main_thread().ident or 0, self._number)

    def close(self) -> None:
        """Stop sending; signals sent before are delivered when this returns."""
        with self._lock:
            self._closed = True
        time.sleep(0)  # a system call: pending signals are delivered when it returns


class CtrlC(KeyboardInterrupt):
    """The exception of Ctrl-C inside `interruptible`.

    A class of its own, because CPython remembers a plain `KeyboardInterrupt` that leaves
    `exec` of a string (`dataclass` and `namedtuple` call it while modules are imported), even if
    it is handled later, and then ends the process by the signal instead of its exit status.
    """


class _Interrupt:
    """The last Ctrl-C: whether it was raised, and whether its exception was handled."""

    def __init__(self) -> None:
        self.raised = False
        self.is_over = False  # set by one instruction, which no signal interrupts
        self.handled = threading.Event()
        self.repeater = Repeater(signal.SIGINT)


_interrupt = _Interrupt()


@contextlib.contextmanager
def leaving(outcome: Callable[[], str]) -> Iterator[None]:
    """Add what the work inside leaves behind to the message of a Ctrl-C."""
    interrupt = _interrupt
    try:
        yield
    except BaseException as error:
        if not (interrupt.raised or isinstance(error, KeyboardInterrupt)):
            raise
        interrupt.is_over = True
        interrupt.handled.set()
        raise CtrlC(outcome()) from None


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt the work inside at any point.

    Compiled code and libraries may turn the exception of a signal into one of their own, such as
    `SystemError`. Whatever leaves the block after Ctrl-C is therefore a `KeyboardInterrupt`.
    """
    global _interrupt
    outer, interrupt = _interrupt, _Interrupt()
    _interrupt = interrupt

    def repeat() -> None:
        if not interrupt.handled.wait(REPEAT_SECONDS):
            interrupt.repeater.send()

    def stop(number: int, frame: FrameType | None) -> None:
        if interrupt.is_over:
            return
        threading.Thread(target=repeat, daemon=True).start()
        if can_raise(frame):
            interrupt.raised = True
            raise CtrlC

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        with silenced(KeyboardInterrupt):
            yield
    except BaseException as error:
        if interrupt.raised and not isinstance(error, KeyboardInterrupt):
            raise CtrlC from error
        raise
    finally:
        interrupt.is_over = True
        interrupt.handled.set()
        interrupt.repeater.close()
        signal.signal(signal.SIGINT, before)
        _interrupt = outer


@contextlib.contextmanager
def silenced(kind: type[BaseException]) -> Iterator[None]:
    """Suppress the report when Python drops an exception of this kind: the signal is repeated."""
    before = sys.unraisablehook

    def report(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, kind):
            before(unraisable)

    sys.unraisablehook = report
    try:
        yield
    finally:
        sys.unraisablehook = before
