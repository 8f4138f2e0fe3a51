"""Run a script in which a broadcast that was not meant, of (N, 1) against (N,), is an error.

Usage: strict.py SCRIPT [ARGUMENT …]
"""

import runpy
import sys
import warnings
from pathlib import Path


def main() -> None:
    warnings.filterwarnings("error", "Using a target size", UserWarning)
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path.cwd())  # what `python SCRIPT` would put there
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
