"""Every triple of values of the questions that shape the loop, rendered: it parses, and ruff finds nothing.

The projects are thousands, their different files far fewer: each is looked at once.
"""

import hashlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from plainloop.covering import covering_array
from plainloop.render import render

pytestmark = pytest.mark.xdist_group("triples")

SHAPING = (
    "task",
    "labels",
    "loss",
    "optimizer",
    "scheduler",
    "amp",
    "gradient_clipping",
    "gradient_accumulation",
    "ema",
)


@cache
def files() -> dict[tuple[str, str], str]:
    """Every different file that the projects hold, by its path and a digest of its text."""
    found = {}
    for answers in covering_array(strength=3, names=SHAPING):
        for path, text in render(answers).items():
            found[path, hashlib.sha256(text.encode()).hexdigest()] = text
    return found


def of_type(suffix: str) -> Iterator[tuple[str, str]]:
    return ((path, text) for (path, _), text in files().items() if path.endswith(suffix))


def test_they_parse():
    for path, text in of_type(".py"):
        compile(text, path, "exec", dont_inherit=True)
    for _, text in of_type(".toml"):
        tomllib.loads(text)
    for _, text in of_type(".yml"):
        yaml.safe_load(text)


def rules() -> tuple[str, list[str]]:
    """A project's rules for ruff, the same in all projects, with the modules of every one of them known as its own."""
    settings = [tomllib.loads(text)["tool"]["ruff"] for _, text in of_type("pyproject.toml")]
    modules = sorted({name for each in settings for name in each["lint"]["isort"].pop("known-first-party")})
    assert all(each == settings[0] for each in settings)
    select = ", ".join(f'"{rule}"' for rule in settings[0]["lint"]["select"])
    known = ", ".join(f'"{name}"' for name in modules)
    text = f"line-length = {settings[0]['line-length']}\nlint.select = [{select}]\n"
    return text + f"lint.isort.known-first-party = [{known}]\n", modules


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """All different Python files, each under its own name in a folder of its own."""
    folder = tmp_path_factory.mktemp("triples")
    (folder / "ruff.toml").write_text(rules()[0], encoding="utf-8")
    for (path, digest), text in files().items():
        if path.endswith(".py"):
            file = folder / digest / path
            file.parent.mkdir(parents=True)
            file.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", ["check --output-format concise", "format --diff --quiet"], ids=["lint", "format"])
def test_ruff_finds_nothing(folder, command):
    ruff = [sys.executable, "-m", "ruff", *command.split(), "--no-cache", "."]
    done = subprocess.run(ruff, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
