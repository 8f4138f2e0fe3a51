"""Runs Python commands, each in a process of its own, without importing torch and the like for each anew.

It imports them once and forks. Commands come as lines of JSON on standard input: the folder, the arguments after
`python`, and a file for what the command prints. The answer is a line with the process's id, which is the id of its
process group too; to a line with that id, the answer is its exit status, once it has ended.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import sys
from pathlib import Path

import torch

# Of what the commands import, that which takes long.
for library in (
    "matplotlib.figure",
    "pandas",
    "PIL.Image",
    "pytest",
    "sklearn.datasets",
    "sklearn.model_selection",
    "tokenizers",
    "torch._dynamo",  # every optimizer of torch imports it
    "torch.utils.data",
    "torchmetrics.classification",
    "tqdm",
    "tyro",
):
    importlib.import_module(library)

LONGEST = 600
"""Seconds that a command may take."""

torch.set_num_threads(1)


def become(folder: str, arguments: list[str], output: str) -> None:
    """Be `python ARGUMENTS` in `folder`."""
    signal.alarm(LONGEST)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout.reconfigure(line_buffering=True)  # as on a terminal: a command that is killed has printed its lines
    os.chdir(folder)
    if arguments[0] == "-m":
        sys.path[0] = folder
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(folder, arguments[0]).parent)
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


def main() -> None:
    gc.freeze()  # what is there by now is no garbage: a process that looks through it copies its memory
    for line in sys.stdin:
        asked = json.loads(line)
        if isinstance(asked, int):
            _, status = os.waitpid(asked, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        child = os.fork()
        os.setpgid(child, child)  # a group of its own: a signal to it reaches the command and its workers alone
        if child == 0:
            become(*asked)
            return
        print(child, flush=True)


if __name__ == "__main__":
    main()
