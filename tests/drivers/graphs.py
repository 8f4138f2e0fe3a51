"""Run a script that trains, and print how many tensors with a graph there are after each optimizer step.

Usage: graphs.py SCRIPT [ARGUMENT …]
"""

import gc
import runpy
import sys
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


def main() -> None:
    numbers = []

    def after_step(*_: object) -> None:
        tensors = (thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor))
        numbers.append(sum(tensor.grad_fn is not None for tensor in tensors))

    register_optimizer_step_post_hook(after_step)
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path.cwd())  # what `python SCRIPT` would put there
    runpy.run_path(sys.argv[0], run_name="__main__")
    print("graphs", *numbers)


if __name__ == "__main__":
    main()
