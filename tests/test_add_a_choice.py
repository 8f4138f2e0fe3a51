"""README's "Add a choice", followed to the letter in a copy of the template: the new loss is offered, and trains."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from modules import imported_from
from plainloop.catalogue import ROOT
from projects import read_metrics, run, shrink

ANSWERS = ["task=tabular-regression", "loss=log-cosh"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The template and its tools, with the entry and the part that README shows."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copy(ROOT / "copier.yml", folder)
    for name in ("template", "generator"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Add a choice\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?:^ {7}.*\n|^\n(?=\n* {7}))+", section, re.MULTILINE)
    entry, part = (textwrap.dedent(block).strip("\n") + "\n" for block in blocks)
    catalogue = folder / "template" / "catalogue.yml"
    before, losses, after = catalogue.read_text(encoding="utf-8").partition("\nlosses:\n")
    catalogue.write_text(before + losses + textwrap.indent(entry, "  ") + after, encoding="utf-8")
    (folder / "template/parts/losses/own/log-cosh.py.jinja").write_text(part, encoding="utf-8")
    return folder


def plainloop(copy: Path, *arguments: str) -> str:
    """What the copy's own command line prints."""
    environment = os.environ | {"PYTHONPATH": str(copy / "generator")}
    command = [sys.executable, "-c", "from plainloop.cli import main; raise SystemExit(main())", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_it_is_offered_where_it_belongs(copy):
    line = next(line for line in plainloop(copy, "choices").splitlines() if line.split()[:1] == ["log-cosh"])
    assert "squared near zero" in line
    assert "tabular-regression" in line
    assert "text-classification" not in line


def test_it_changes_what_it_should(copy):
    changed = set(re.findall(r"^\+\+\+ b/(\S+)", plainloop(copy, "diff", *ANSWERS), re.MULTILINE))
    assert {"losses.py", "evaluate.py", "train.py"} <= changed


def test_it_trains(copy, tmp_path):
    data = [word for answer in ANSWERS for word in ("--data", answer)]
    command = [sys.executable, "-m", "copier", "copy", "--quiet", "--defaults", *data, str(copy), str(tmp_path / "new")]
    subprocess.run(command, check=True)
    project = tmp_path / "new"
    subprocess.run([sys.executable, "-m", "ruff", "check", "--quiet", "."], cwd=project, check=True)
    subprocess.run([sys.executable, "-m", "ruff", "format", "--check", "--quiet", "."], cwd=project, check=True)
    run(project, "sample_data.py")
    shrink(project / "data")
    run(project, "train.py", "--epochs", "5")
    losses = [row["train_loss"] for row in read_metrics(project / "runs/default") if "train_loss" in row]
    assert losses[-1] < losses[0]
    with imported_from(project, "evaluate") as [evaluate]:
        predictions, targets = torch.tensor([0.5, -3.0, 40.0]), torch.tensor([0.0, 1.0, 0.0])
        expected = (predictions - targets).double().cosh().log().sum()
        assert evaluate.make_criterion()(predictions, targets).item() == pytest.approx(expected.item(), rel=1e-6)
