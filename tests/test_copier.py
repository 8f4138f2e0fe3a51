"""Copier itself: it writes what the in-memory render writes, and it changes an answer later."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import copier
import pytest
import yaml

from plainloop.catalogue import ROOT
from plainloop.examples import EXAMPLES
from plainloop.questionnaire import ask
from plainloop.render import ANSWERS_FILE, render

UNLIKE = {
    **EXAMPLES,
    "mps": {
        "task": "image-classification",
        "labels": "multilabel",
        "loss": "weighted-bce",
        "optimizer": "sgd",
        "scheduler": "exponential",
        "device": "mps",
        "amp": "fp16",
        "gradient_clipping": "off",
    },
    "stop early": {
        "task": "tabular-classification",
        "loss": "weighted-cross-entropy",
        "scheduler": "constant",
        "device": "cuda",
        "amp": "bf16",
        "gradient_accumulation": True,
        "early_stopping": True,
        "monitor": "metric",
    },
}


def git(folder: Path, *arguments: str) -> str:
    """Git, with a name of its own."""
    identity = ["-c", "user.name=A tester", "-c", "user.email=tester@example.org"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit_all(folder: Path) -> None:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "as generated")


def files(project: Path) -> dict[str, str]:
    """What lies in a project, without its repository."""
    paths = (path.relative_to(project) for path in sorted(project.rglob("*")) if path.is_file())
    return {path.as_posix(): (project / path).read_bytes().decode() for path in paths if path.parts[0] != ".git"}


def copy(template: Path, project: Path, answers: dict) -> Path:
    copier.run_copy(str(template), project, data=answers, defaults=True, quiet=True, unsafe=False)
    return project


@pytest.fixture(scope="module")
def released(template, tmp_path_factory) -> Path:
    """The template in a repository of its own, with a release."""
    repository = tmp_path_factory.mktemp("released")
    shutil.copytree(template, repository, dirs_exist_ok=True)
    commit_all(repository)
    git(repository, "tag", "v0.1.0")
    return repository


@pytest.mark.parametrize("answers", UNLIKE.values(), ids=UNLIKE)
def test_writes_what_the_in_memory_render_writes(answers, template, tmp_path):
    written = files(copy(template, tmp_path / "project", answers))
    assert written == render(answers, src_path=str(template))


def recorded_answers(project: Path) -> dict:
    answers = yaml.safe_load((project / ANSWERS_FILE).read_text(encoding="utf-8"))
    return {key: value for key, value in answers.items() if not key.startswith("_")}


def test_answers_file_holds_every_answer(template, tmp_path):
    """Copier says nothing of an answer to a question that it does not know."""
    answers = UNLIKE["stop early"]
    recorded = recorded_answers(copy(template, tmp_path / "project", answers))
    assert answers.items() <= recorded.items()
    assert ask(recorded).recorded == recorded


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ({"loss": "focal", "scheduler": "plateau"}, {"loss": "cross-entropy"}),
        (dict(EXAMPLES["tabular-binary"]), {"task": "tabular-regression"}),
    ],
    ids=["loss", "task"],
)
def test_update_of_an_answer_gives_a_fresh_copy(before, change, released, tmp_path):
    project = copy(released, tmp_path / "project", before)
    commit_all(project)
    copier.run_update(
        project, data=change, vcs_ref=copier.VcsRef.CURRENT, defaults=True, overwrite=True, quiet=True, unsafe=False
    )
    after = ask(change, before).recorded
    assert files(project) == files(copy(released, tmp_path / "fresh", after))


def test_command_in_the_answers_file_changes_an_answer_and_keeps_edits(released, tmp_path):
    project = copy(released, tmp_path / "project", {})
    edited = project / "model.py"
    edited.write_text(edited.read_text() + "\n# my own line\n")
    commit_all(project)

    header = [line for line in (project / ANSWERS_FILE).read_text().splitlines() if line.startswith("#")]
    (command,) = [line.lstrip("# ") for line in header if "copier update" in line]
    program, *arguments = shlex.split(command.replace("KEY=VALUE", "optimizer=sgd"))
    assert program == "copier"
    subprocess.run([sys.executable, "-m", "copier", *arguments], cwd=project, check=True, capture_output=True)

    assert recorded_answers(project)["optimizer"] == "sgd"
    assert "SGD" in (project / "train.py").read_text()
    assert edited.read_text().endswith("# my own line\n")


def test_template_in_git_is_the_template_on_disk(tmp_path):
    """No file of the template is ignored by a .gitignore: users get what git holds."""
    if not (ROOT / ".git").exists():
        pytest.skip("the template is not in a git repository here")
    ignored = git(ROOT, "ls-files", "--others", "--ignored", "--exclude-standard", "template", "copier.yml")
    assert not [path for path in ignored.splitlines() if "__pycache__" not in path]
