"""Every pair of choices, in projects that really train. `make test-pairs` runs all of them, `make test` a share.

Each project of the covering array is trained on its sample data, made small; killed, and resumed to the same result,
bit for bit; evaluated to what training had logged; and asked for predictions. Every fifth runs its own tests too.
What has passed is remembered by its content in .pairs/, and passes at once until the template or these tests change.
"""

import hashlib
import json
import shutil
import signal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from plainloop.catalogue import ROOT
from plainloop.covering import covering_array
from plainloop.examples import write_project
from plainloop.questionnaire import resolve
from plainloop.render import render
from projects import ROWS, Warm, assert_same_runs, predicts, read_metrics, shrink, stop_at

PASSED = ROOT / ".pairs"
OWN_TESTS = 5
"""One in so many projects runs its own tests."""
INDUCTOR = 4
"""So many projects are compiled in earnest; the others trace the model as torch.compile does, and run it as it is."""

covering_array = cache(covering_array)


def name_of(number: int) -> str:
    """What a project is called: its number, and what shapes it most."""
    answers = covering_array()[number]
    shown = [answers[key] for key in ("task", "labels", "loss", "optimizer", "scheduler") if key in answers]
    return "-".join([f"{number:03}", *shown])


@cache
def by_inductor() -> list[int]:
    """The projects that are compiled in earnest, of those whose batches have few shapes: they resume exactly."""
    compiled = (number for number, answers in enumerate(covering_array()) if answers["compile"])
    return [number for number in compiled if not resolve(covering_array()[number])["named_inputs"]][:INDUCTOR]


def flags(number: int) -> list[str]:
    """A short run: about a dozen steps in two epochs, none of them the last before a checkpoint."""
    answers = covering_array()[number]
    chosen = ["--epochs", "2", "--batch-size", "16", "--log-every", "2", "--checkpoint-every", "3"]
    if answers["device"] not in ("auto", "cpu"):
        chosen += ["--device", "cpu"]
    if answers["compile"] and number not in by_inductor():
        chosen += ["--compile-backend", "aot_eager"]
    return chosen


@pytest.fixture(scope="session")
def samples(tmp_path_factory, warm) -> Any:
    """A function that puts the sample data of a project into its folder; written once for all that have the same."""
    folder = tmp_path_factory.mktemp("samples")

    def put_into(project: Path, data_kind: str) -> None:
        sample = folder / hashlib.sha256((project / "sample_data.py").read_bytes()).hexdigest()
        if not sample.exists():
            warm.run(project, "sample_data.py")
            shrink(project / "data", rows=ROWS.get(data_kind, 90), characters=12_000)
            shutil.copytree(project / "data", sample)
        else:
            shutil.copytree(sample, project / "data")

    return put_into


def content(number: int) -> str:
    """A name for all that decides whether a project passes."""
    parts = [json.dumps(render(covering_array()[number]), sort_keys=True), json.dumps(flags(number))]
    parts += [Path(__file__).read_text(encoding="utf-8"), (ROOT / "constraints.txt").read_text(encoding="utf-8")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    share, shares = metafunc.config.getoption("pairs")
    numbers = range(share - 1, len(covering_array()), shares)
    metafunc.parametrize("number", numbers, ids=map(name_of, numbers))


def test_it_trains(number: int, warm: Warm, samples: Any, tmp_path: Path) -> None:
    passed = PASSED / content(number)
    if passed.exists():
        pytest.skip("has passed, and nothing has changed since")
    project = tmp_path / "project"
    write_project(project, render(covering_array()[number]))
    data_kind = resolve(covering_array()[number])["data_kind"]
    samples(project, data_kind)
    warm.run(project, "check.py", *flags(number))
    warm.run(project, "train.py", "--run-dir", "runs/whole", *flags(number))
    resumes_exactly(warm, project, number)
    # What Inductor fuses is not rounded in between, as the plain model of evaluate.py does it.
    evaluates(warm, project, tolerance=1e-3 if number in by_inductor() else 1e-5)
    predicts(warm, project, data_kind, project / "data", project / "runs" / "whole" / "best.pt")
    if number % OWN_TESTS == 0:
        warm.run(project, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
    PASSED.mkdir(exist_ok=True)
    passed.touch()
    shutil.rmtree(project)


def resumes_exactly(warm: Warm, project: Path, number: int) -> None:
    """Stopped in the first epoch, killed in the second, with another number of workers each time."""
    steps = max(line["step"] for line in read_metrics(project / "runs" / "whole"))
    chosen = ["--run-dir", "runs/pieces", *flags(number)]
    first = max(steps // 4, 1)
    stop_at(warm.run, project, first, signal.SIGTERM, *chosen, "--num-workers", "0")
    stop_at(warm.run, project, max(steps // 2, 1), signal.SIGKILL, *chosen, "--num-workers", "1", "--resume")
    warm.run(project, "train.py", *chosen, "--num-workers", "0", "--resume")
    assert_same_runs(project / "runs" / "whole", project / "runs" / "pieces")


def evaluates(warm: Warm, project: Path, tolerance: float) -> None:
    """best.pt has the values that were logged when it was written."""
    lines = warm.run(project, "evaluate.py", "--checkpoint", "runs/whole/best.pt").splitlines()
    evaluated = {words[0]: words[1] for line in lines if len(words := line.split()) == 2}
    logged = [line for line in read_metrics(project / "runs" / "whole") if "val_loss" in line]
    assert all(line["val_loss"] is not None and line["train_loss"] is not None for line in logged)
    names = [name for name in logged[0] if name.startswith("val_") and logged[0][name] is not None]
    assert any(
        all(float(evaluated[name]) == pytest.approx(line[name], abs=2e-6, rel=tolerance) for name in names)
        for line in logged
    ), (evaluated, logged)
