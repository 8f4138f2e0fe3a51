"""Stop signals: Ctrl-C, a scheduler that ends the job, a cluster that takes its machine back."""

import atexit
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

# Windows has no SIGUSR1; schedulers elsewhere send it some time before they kill.
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)]

Batch = TypeVar("Batch")


class Stopped(Exception):
    """A stop signal has come; `signum` says which."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


class StopSignals:
    """Keeps a stop signal until the running step is complete; a second one ends the process at once."""

    def __init__(self) -> None:
        self.received: int | None = None
        for signum in STOP_SIGNALS:
            signal.signal(signum, self.keep)

    def keep(self, signum: int, _frame: object) -> None:
        self.received = signum
        # Not print(): the signal may have come in the middle of one.
        os.write(2, b"\nstopping once the running step is saved; the next signal ends the run at once\n")
        for other in STOP_SIGNALS:
            signal.signal(other, signal.SIG_DFL)

    def check(self) -> None:
        """Raise Stopped if a signal has come."""
        if self.received is not None:
            raise Stopped(self.received)

    def watch(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches, until a signal comes."""
        for batch in batches:
            self.check()
            yield batch


@contextmanager
def signals_held() -> Iterator[None]:
    """Workers that start in here get no stop signal before they ignore it; this process gets it at the end."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_signals_to_the_parent(_worker: int) -> None:
    """A signal to the whole process group reaches the loader's workers too: they go on until the parent has saved."""
    for signum in STOP_SIGNALS:
        signal.signal(signum, signal.SIG_IGN)
    sys.excepthook = _hide_the_lost_parent


def _hide_the_lost_parent(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The thread that hands over batches reports here if the parent has been killed meanwhile: no fault of its own."""
    if not issubclass(kind, ConnectionError | EOFError):
        sys.__excepthook__(kind, error, trace)


def end_with_the_reader() -> None:
    """Where the output goes into `head` or `less`, which close it early: end without a word, as other programs do."""
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


@atexit.register
def end_workers() -> None:
    """Python ends what is left of the workers by a SIGTERM, which they ignore, and would wait for them for ever."""
    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's own handler reports workers that die
    for worker in multiprocessing.active_children():
        worker.kill()
