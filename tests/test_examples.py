"""The committed examples: each really trains, evaluates, is killed, resumes, predicts, and passes its own tests."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from plainloop import examples
from projects import EXAMPLES, assert_same_runs, copy_example, read_metrics, run, shrink, train_in_pieces

FLAGS = ["--epochs", "2", "--batch-size", "16", "--log-every", "2", "--checkpoint-every", "3"]


def test_they_are_current():
    assert examples.differences() == []
    assert list(examples.EXAMPLES) == EXAMPLES


# All tests of one example run in one process, one after the other: they share its data and its first run.
@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in EXAMPLES])
def project(request, tmp_path_factory) -> Path:
    """An example with its sample data, made small."""
    folder = copy_example(request.param, tmp_path_factory.mktemp("example"))
    run(folder, "sample_data.py")
    shrink(folder / "data")
    return folder


@pytest.fixture(scope="module")
def trained(project) -> Path:
    """The folder of a run that nobody disturbed."""
    run(project, "train.py", "--run-dir", "runs/whole", *FLAGS)
    return project / "runs" / "whole"


def test_evaluates_to_what_training_reported(project, trained):
    lines = run(project, "evaluate.py", "--checkpoint", trained / "best.pt").stdout.splitlines()
    evaluated = {words[0]: words[1] for line in lines if len(words := line.split()) == 2}
    reported = [line for line in read_metrics(trained) if "val_loss" in line]
    names = [name for name in reported[0] if name.startswith("val_")]
    assert len(names) >= 2
    matching = [line for line in reported if all(f"{line[name]:.6f}" == evaluated[name] for name in names)]
    assert matching, (evaluated, reported)


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def predict_images(predict: Callable[..., str], data: Path) -> None:
    images = sorted(data.glob("val/*/*.png"))[:3]
    assert len(rows(predict(*images))) == 1 + len(images)


def predict_table(predict: Callable[..., str], data: Path) -> None:
    table = data / "val.csv"
    assert len(rows(predict(table))) == len(rows(table.read_text(encoding="utf-8")))


def predict_texts(predict: Callable[..., str], data: Path) -> None:
    texts = data / "texts"
    texts.write_text('Return the mean of the values.\nOpen a file and read it, "quoted".\n', encoding="utf-8")
    assert len(rows(predict(texts))) == 3


def predict_continuation(predict: Callable[..., str], data: Path) -> None:
    assert "def " in predict("--prompt", "def ")


PREDICTIONS = {
    "image-classification": predict_images,
    "tabular-binary": predict_table,
    "tabular-regression": predict_table,
    "text-classification": predict_texts,
    "language-modeling": predict_continuation,
}


def test_predicts(project, trained):
    def predict(*arguments: str | Path) -> str:
        return run(project, "predict.py", "--checkpoint", trained / "best.pt", *arguments).stdout

    PREDICTIONS[project.name](predict, project / "data")


def test_plots(project, trained):
    run(project, "plot.py", trained)
    pictures = [path for path in project.rglob("*.png") if not path.is_relative_to(project / "data")]
    assert len(pictures) == 1
    assert pictures[0].read_bytes().startswith(b"\x89PNG")


def test_passes_its_checks(project):
    run(project, "check.py")


def test_resumes_exactly(project, trained):
    steps = max(line["step"] for line in read_metrics(trained))
    train_in_pieces(run, project, "runs/pieces", FLAGS, epoch=steps // 2)
    assert_same_runs(trained, project / "runs" / "pieces")


def test_passes_its_own_tests(project):
    run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
