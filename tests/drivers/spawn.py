"""Run a script whose worker processes start as on macOS and Windows: anew, with what they need pickled.

Usage: spawn.py SCRIPT [ARGUMENT …]
"""

import multiprocessing
import runpy
import sys
from pathlib import Path


def main() -> None:
    multiprocessing.set_start_method("spawn")
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path.cwd())  # what `python SCRIPT` would put there
    runpy.run_path(str(Path(sys.argv[0]).absolute()), run_name="__main__")


if __name__ == "__main__":
    main()
