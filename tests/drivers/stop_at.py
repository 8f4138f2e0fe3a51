"""Run a script that trains, and send the process a signal after so many optimizer steps.

Usage: stop_at.py STEPS SIGNAL SCRIPT [ARGUMENT …]
"""

import os
import runpy
import sys
from itertools import count
from pathlib import Path

from torch.optim.optimizer import register_optimizer_step_post_hook


def main() -> None:
    steps, signum, script = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    made = count(1)

    def after_step(*_: object) -> None:
        if next(made) == steps:
            os.kill(os.getpid(), signum)

    register_optimizer_step_post_hook(after_step)
    sys.argv = sys.argv[3:]
    sys.path[0] = str(Path.cwd())  # what `python SCRIPT` would put there
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
