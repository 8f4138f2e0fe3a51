"""Checks of your data and your model that take seconds, before a run that takes hours.

Usage:
    python check.py                     exit status 1 if something is wrong
    python check.py --data-dir mine     it takes the flags of train.py
"""

import os
import sys

import torch
import tyro

from check_data import LOOKS_AT_DATA
from check_model import LOOKS_AT_MODEL
from check_setup import Finding, put_together
from check_training import LOOKS_AT_TRAINING
from config import Config


def check(config: Config) -> None:
    project = put_together(config)
    to_fix: list[Finding] = []

    def note(verdict: str, line: str) -> None:
        say(f"{verdict:8} {line}")
        if verdict != "ok":
            to_fix.append((verdict, line))

    for look_at in (*LOOKS_AT_DATA, *LOOKS_AT_MODEL, *LOOKS_AT_TRAINING):
        try:
            for verdict, line in look_at(project):
                note(verdict, line)
        except torch.OutOfMemoryError:
            seen = f"{project.device} is out of memory, as train.py would be"
            note("wrong", f"{seen}; raise --accumulate {config.accumulate}")
        if any(verdict == "wrong" for verdict, _ in to_fix):
            break  # what follows rests on it
    if to_fix:
        say("\nto fix:")
        for verdict, line in to_fix:
            say(f"{verdict:8} {line}")
    if any(verdict == "wrong" for verdict, _ in to_fix):
        raise SystemExit(1)
    say(f"\n{'if these are as you want them' if to_fix else 'next'}: python train.py, with the same flags")


def say(line: str) -> None:
    """Print at once, and end without a word where `head` or `less` has closed the output.

    Not by SIGPIPE: it would end this process as silently for a write to a worker that has died.
    """
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes what is left when it ends
        raise SystemExit(1) from None


if __name__ == "__main__":
    check(tyro.cli(Config))
