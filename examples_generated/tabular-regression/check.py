"""Checks of your data and your model that take seconds, before a run that takes hours.

Usage:
    python check.py                     exit status 1 if something is wrong
    python check.py --data-dir mine     it takes the flags of train.py
"""

import torch
import tyro

from check_data import LOOKS_AT_DATA
from check_model import LOOKS_AT_MODEL
from check_setup import Finding, put_together
from check_training import LOOKS_AT_TRAINING
from config import Config
from stopping import end_with_the_reader


def check(config: Config) -> None:
    project = put_together(config)
    to_fix: list[Finding] = []
    for look_at in (*LOOKS_AT_DATA, *LOOKS_AT_MODEL, *LOOKS_AT_TRAINING):
        try:
            for verdict, line in look_at(project):
                print(f"{verdict:8} {line}", flush=True)
                if verdict != "ok":
                    to_fix.append((verdict, line))
        except torch.OutOfMemoryError:
            to_fix.append(("wrong", f"{project.device} is out of memory: lower --batch-size {config.batch_size}"))
        if any(verdict == "wrong" for verdict, _ in to_fix):
            break  # what follows rests on it
    if to_fix:
        print("\nto fix:")
        for verdict, line in to_fix:
            print(f"{verdict:8} {line}")
    if any(verdict == "wrong" for verdict, _ in to_fix):
        raise SystemExit(1)
    print("\nwhere that is as you mean it: python train.py" if to_fix else "next: python train.py")


if __name__ == "__main__":
    end_with_the_reader()
    check(tyro.cli(Config))
