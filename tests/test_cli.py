"""The command line: what it prints, and its exit status."""

import subprocess
import sys
from pathlib import Path

import pytest

from plainloop.catalogue import ROOT
from plainloop.examples import write_project
from plainloop.render import render
from plainloop.tables import markdown


def plainloop(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from plainloop.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)


def test_choices_shows_every_question():
    shown = plainloop("choices")
    assert shown.returncode == 0
    assert "optimizer: How are the weights moved?" in shown.stdout
    assert "huber" in shown.stdout


def test_readme_has_the_current_tables():
    """Else: make examples."""
    assert markdown() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_diff_shows_what_an_answer_changes():
    shown = plainloop("diff", "optimizer=sgd")
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert "-optimizer: adamw" in lines
    assert "+optimizer: sgd" in lines
    assert any(line.startswith("+") and "SGD" in line for line in lines)
    assert "\033" not in shown.stdout


def test_diff_starts_from_a_projects_answers(tmp_path):
    write_project(tmp_path, render({"task": "tabular-regression", "scheduler": "plateau"}))
    shown = plainloop("diff", "loss=huber", "--project", tmp_path)
    assert "-loss: mse" in shown.stdout.splitlines()
    assert plainloop("diff", "loss=mse", "--project", tmp_path).stdout == ""


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["diff", "optimizer=adamww"], 1),
        (["diff", "optimiser=adam"], 1),
        (["diff", "loss=mse"], 1),
        (["diff", "optimizer=sgd", "--project", "nowhere"], 1),
        (["diff", "optimizer"], 2),
        (["diff"], 2),
        (["explain"], 2),
        ([], 2),
    ],
)
def test_mistakes_get_a_line_and_a_status(arguments, status):
    shown = plainloop(*arguments)
    assert shown.returncode == status
    assert "Traceback" not in shown.stderr
    if status == 1:
        assert len(shown.stderr.splitlines()) == 1
