"""Run a script that trains, and have the model give NaN from the n-th training batch on.

Usage: spoil.py N SCRIPT [ARGUMENT …]
"""

import runpy
import sys
from itertools import count
from pathlib import Path

from torch import nn


def main() -> None:
    first, script = int(sys.argv[1]), sys.argv[2]
    number = count(1)

    def spoil(module: nn.Module, _: object, outputs: object) -> object:
        if type(module).__name__ == "Model" and module.training and next(number) >= first:
            return outputs * float("nan")
        return outputs

    nn.modules.module.register_module_forward_hook(spoil)
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path.cwd())  # what `python SCRIPT` would put there
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
