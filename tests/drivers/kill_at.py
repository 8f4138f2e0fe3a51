"""Run a script that trains, and send it a signal when it comes to a place for the n-th time.

Usage: kill_at.py PLACE COUNT SIGNAL process|group SCRIPT [ARGUMENT …]
"""

import os
import runpy
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from multiprocessing import Value
from pathlib import Path
from typing import IO, Any

import torch
from torch.utils.data._utils import signal_handling

# What is called at a place: the module, the function or class in it, the method; whether the signal comes before it.
PLACES = {
    "the preparations": ("batches", "training_loader", None, True),
    "a step": ("metrics", "TrainLoss", "add", True),
    "an evaluation": ("metrics", "Metrics", "update", True),
    "a line of metrics": ("run_folder", "MetricsFile", "write", False),
    "the rename of a checkpoint": ("pathlib", "Path", "replace", True),
    "what follows the rename": ("pathlib", "Path", "replace", False),
}


def calls(function: Callable, before: Callable[[], None], after: Callable[[], None]) -> Callable:
    """The function, and something before and after it."""

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        before()
        result = function(*arguments, **named)
        after()
        return result

    return called


def nothing() -> None:
    """Where the signal comes on the other side."""


def lie_in_wait(place: str, strike: Callable[[], None]) -> None:
    """Have `strike` called each time that the place is reached."""
    if place == "a half-written checkpoint":
        write = torch.save

        def save(state: Any, file: IO[bytes]) -> None:
            write(state, file)
            file.truncate(file.tell() // 2)
            file.flush()
            strike()  # a SIGKILL leaves the half; after another signal the whole is written
            file.seek(0)
            write(state, file)

        torch.save = save
    elif place == "the start of a worker":
        # A worker has torch's handlers then, and not yet its own.
        signal_handling._set_worker_signal_handlers = calls(
            signal_handling._set_worker_signal_handlers, nothing, strike
        )
    else:
        module, name, method, first = PLACES[place]
        owner = import_module(module)
        if method:
            owner, name = getattr(owner, name), method
        around = (strike, nothing) if first else (nothing, strike)
        setattr(owner, name, calls(getattr(owner, name), *around))


def main() -> None:
    place, times, signum, whom = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    sys.argv = sys.argv[5:]
    sys.path[0] = str(Path.cwd())  # what `python SCRIPT` would put there
    process, reached = os.getpid(), Value("i")  # counted in all processes together

    def strike() -> None:
        with reached.get_lock():
            reached.value += 1
            due = reached.value == times
        if due and whom == "group":
            os.killpg(os.getpgid(process), signum)
        elif due:
            os.kill(process, signum)

    lie_in_wait(place, strike)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
