"""Importing the modules of a generated project into the test's own process."""

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from plainloop.examples import write_project
from plainloop.render import render


@contextmanager
def imported(folder: Path, answers: Mapping[str, Any], *names: str) -> Iterator[list[ModuleType]]:
    """The named modules of a project with these answers, as long as the context lasts."""
    write_project(folder, render(answers))
    with imported_from(folder, *names) as modules:
        yield modules


@contextmanager
def imported_from(folder: Path, *names: str) -> Iterator[list[ModuleType]]:
    """The named modules of the project in a folder, as long as the context lasts."""
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        yield [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = before
        importlib.invalidate_caches()
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
