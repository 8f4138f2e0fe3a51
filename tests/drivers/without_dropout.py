"""Run a script that trains, with a model that stays in evaluation mode: what training and validation see is the same.

Usage: without_dropout.py SCRIPT [ARGUMENT …]
"""

import runpy
import sys
from pathlib import Path

from torch import nn


def main() -> None:
    train = nn.Module.train
    nn.Module.train = lambda module, mode=True: train(module, False)
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path.cwd())  # what `python SCRIPT` would put there
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
