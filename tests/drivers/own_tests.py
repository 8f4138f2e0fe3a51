"""Run a project's own tests, on sample data that are there already: writing them anew each time takes seconds.

Usage: own_tests.py DATA [ARGUMENT OF PYTEST …]
"""

import importlib
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path[0] = str(Path.cwd())  # what `python -m pytest` would put there
sys.dont_write_bytecode = True  # a source file that changes within a second would be taken for its older bytecode

sample_data = importlib.import_module("sample_data")
written = sys.argv[1]
# Links: all tests of a project share these data, so none may change them.
sample_data.write_sample = lambda folder: shutil.copytree(written, folder, copy_function=os.link, dirs_exist_ok=True)
sys.exit(pytest.main(["-p", "no:cacheprovider", "-q", *sys.argv[2:]]))
