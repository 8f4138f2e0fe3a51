"""Run a script that trains, with autocast and loss scaling switched off: the reference for its mixed precision.

Usage: in_float32.py SCRIPT [ARGUMENT …]
"""

import runpy
import sys
from pathlib import Path

import torch


class Autocast(torch.autocast):
    """Changes nothing."""

    def __init__(self, device_type: str, *_: object, **__: object) -> None:
        super().__init__(device_type, enabled=False)


class GradScaler(torch.amp.GradScaler):
    """Scales nothing."""

    def __init__(self, device: str = "cuda", *_: object, **__: object) -> None:
        super().__init__(device, enabled=False)


def main() -> None:
    torch.autocast = torch.amp.autocast = Autocast
    torch.amp.GradScaler = GradScaler
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path.cwd())  # what `python SCRIPT` would put there
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
