"""Run a script for which no file may grow beyond a size: the system refuses it as a full disk does.

Usage: full_disk.py BYTES SCRIPT [ARGUMENT …]
"""

import resource
import runpy
import sys
from pathlib import Path


def main() -> None:
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path.cwd())  # what `python SCRIPT` would put there
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
