"""A run that is interrupted again and again counts its epochs, its patience and its lines as one that is not."""

import signal
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from in_process import at_hand, evaluations, load
from projects import assert_same_runs, read_metrics, stop_at

pytestmark = pytest.mark.xdist_group("reports")

LOWER = {"task": "tabular-regression", "early_stopping": True}
HIGHER = {"task": "tabular-classification", "labels": "binary", "early_stopping": True, "monitor": "metric"}


def test_an_epoch_that_ctrl_c_interrupts_is_taken_to_its_end(project, warm, tmp_path):
    made = project(task="tabular-regression")
    flags = ["--epochs", "2", "--batch-size", "64"]
    warm.run(made, "train.py", "--run-dir", tmp_path / "whole", *flags)
    steps = read_metrics(tmp_path / "whole")[-1]["step"]
    stop_at(warm.run, made, steps // 2 + 2, signal.SIGINT, "--run-dir", tmp_path / "stopped", *flags)
    last = load(tmp_path / "stopped" / "last.pt")["progress"]
    assert (last["epoch"], last["batch"]) == (1, 2)
    warm.run(made, "train.py", "--run-dir", tmp_path / "stopped", *flags, "--resume")
    assert_same_runs(tmp_path / "whole", tmp_path / "stopped")


def test_more_epochs_go_on_counting_and_leave_the_lines_before(project, warm, tmp_path):
    made = project(**HIGHER)
    train = ["train.py", "--run-dir", tmp_path, "--patience", "9"]
    warm.run(made, *train, "--epochs", "2")
    before = (tmp_path / "metrics.jsonl").read_bytes()
    warm.run(made, *train, "--epochs", "5", "--resume", "--accept-changes")
    assert (tmp_path / "metrics.jsonl").read_bytes().startswith(before)
    assert [line["epoch"] for line in evaluations(tmp_path)] == [1, 2, 3, 4, 5]
    assert load(tmp_path / "last.pt")["progress"]["epoch"] == 5


def scripted(train: ModuleType, name: str, values: list[float], after: Callable[[], None]) -> None:
    """Have the evaluations of train.py give these values, one after the other, and call `after` after each."""
    evaluate = train.evaluate
    left = iter(values)

    def say(*arguments: object) -> dict[str, float]:
        metrics = evaluate(*arguments) | {name: next(left)}
        after()
        return metrics

    train.evaluate = say


@pytest.mark.parametrize(
    ("answers", "name", "sign"), [(LOWER, "loss", 1), (HIGHER, "accuracy", -1)], ids=["the lower", "the higher"]
)
@pytest.mark.parametrize("often", [False, True], ids=["at once", "a process for each epoch"])
def test_an_improvement_starts_patience_anew(project, tmp_path, answers, name, sign, often):
    values = [1 * sign, 2 * sign, 1.5 * sign, 0.9 * sign, sign, sign, sign, 0.1 * sign]
    interrupt = (lambda: signal.raise_signal(signal.SIGTERM)) if often else (lambda: None)
    assert epochs_until_it_stops(project(**answers), tmp_path, name, values, interrupt) == 7
    best = load(tmp_path / "best.pt")["progress"]
    assert best["best_epoch"] == 4
    assert best[f"best_val_{name}"] == 0.9 * sign


def epochs_until_it_stops(
    made: Path, run_dir: Path, name: str, values: list[float], interrupt: Callable[[], None]
) -> int:
    """With a patience of 3, going on each time that it is interrupted."""
    with at_hand(made, "config", "train") as [config, train]:
        scripted(train, name, values, interrupt)
        settings = config.Config(
            data_dir=made / "data", run_dir=run_dir, epochs=30, batch_size=128, patience=3, resume=True
        )
        for _ in values:
            try:
                train.train(settings)
                break
            except SystemExit as stopped:
                assert stopped.code == 128 + signal.SIGTERM
    return load(run_dir / "last.pt")["progress"]["epoch"]
