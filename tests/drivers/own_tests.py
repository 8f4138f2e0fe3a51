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


def link_or_copy(source: str, target: str) -> None:
    """Images are many, and no test writes into one; a project's tests do shorten tables and texts where they are."""
    (os.link if source.endswith(".png") else shutil.copy)(source, target)


def write_sample(folder: Path) -> None:
    """Put the data there that are already written."""
    shutil.copytree(written, folder, copy_function=link_or_copy, dirs_exist_ok=True)


sample_data.write_sample = write_sample
sys.exit(pytest.main(["-p", "no:cacheprovider", "-q", *sys.argv[2:]]))
