"""What --resume does with a run that is not quite the one asked for: it says so in one line, or goes on exactly."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch

from plainloop.catalogue import catalogue
from projects import Warm, differences, shrink

pytestmark = pytest.mark.xdist_group("honest resume")

SCHEDULERS = catalogue()["schedulers"]
FLAGS = ["--batch-size", "64", "--log-every", "1"]


def refusal(warm: Warm, project: Path, *command: str | Path, status: int = 1) -> str:
    """The one line with which a command ends, after what it says of its progress."""
    said = warm.run(project, *command, status=status)
    assert "Traceback" not in said
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("going on from")]
    assert len(lines) == 1, said
    return lines[0]


def assert_ends_as(whole: Path, run: Path) -> None:
    """The same lines of metrics, and the same state to go on from."""
    assert (run / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()
    assert not differences(*(torch.load(folder / "last.pt", weights_only=True) for folder in (whole, run)))


def contents(run: Path) -> dict[str, bytes]:
    """Every file in a run's folder."""
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_more_epochs_are_what_they_would_have_been_or_are_refused(scheduler, project, warm, tmp_path):
    made, run = project(task="tabular-regression", scheduler=scheduler), tmp_path / "run"
    train = ["train.py", *FLAGS, "--run-dir", run]
    warm.run(made, *train, "--epochs", "2")
    assert "has come to epoch 2" in refusal(warm, made, *train, "--resume", "--epochs", "1")
    if SCHEDULERS[scheduler]["spans_run"]:
        said = refusal(warm, made, *train, "--resume", "--epochs", "3")
        assert "--epochs 2 then, 3 now" in said and "the schedule is planned over all epochs" in said
        warm.run(made, *train, "--resume", "--epochs", "3", "--accept-changes")
        assert torch.load(run / "last.pt", weights_only=True)["progress"]["epoch"] == 3
    else:
        warm.run(made, *train, "--resume", "--epochs", "3")
        warm.run(made, "train.py", *FLAGS, "--run-dir", tmp_path / "whole", "--epochs", "3")
        assert_ends_as(tmp_path / "whole", run)


REGRESSION = {"task": "tabular-regression"}
IMAGES = {"task": "image-classification"}
REGENERATED = {
    "optimizer": (REGRESSION, {"optimizer": "sgd"}, "another optimizer (AdamW then, SGD now)"),
    "scheduler": (REGRESSION, {"scheduler": "one-cycle"}, "another schedule (warmup-cosine then, one-cycle now)"),
    "form of one scheduler": (REGRESSION, {"scheduler": "warmup-linear"}, "another schedule"),
    "no scheduler": (REGRESSION, {"scheduler": "constant"}, "another scheduler (LambdaLR then, nothing now)"),
    "fp16": (REGRESSION, {"amp": "fp16"}, "another scaler (nothing then, GradScaler now)"),
    "ema": (REGRESSION, {"ema": True}, "another ema (nothing then, WeightAverage now)"),
    "no ema": ({**REGRESSION, "ema": True}, {"ema": False}, "another ema (WeightAverage then, nothing now)"),
    "loss": (REGRESSION, {"loss": "huber"}, "another loss (mse then, huber now)"),
    "loss with weights": (IMAGES, {"loss": "weighted-cross-entropy"}, "another loss (cross-entropy then"),
    "clipping": (REGRESSION, {"gradient_clipping": "value"}, "--max-grad-value nothing then, 0.5 now"),
    "task": (IMAGES, {"task": "image-regression"}, "is of another project"),
}


@pytest.fixture(scope="module")
def trained(project, warm, tmp_path_factory):
    """A function that gives a project with small data and a short run of it, made once."""
    folder, known = tmp_path_factory.mktemp("trained"), {}

    def of(**answers: str | bool) -> tuple[Path, list[str], Path]:
        made = project(**answers)
        if made not in known:
            here = folder / str(len(known))
            shutil.copytree(made / "data", here / "data")
            shrink(here / "data", rows=128)
            train = ["train.py", *FLAGS, "--epochs", "1", "--num-workers", "0", "--data-dir", str(here / "data")]
            warm.run(made, *train, "--run-dir", here / "run")
            known[made] = made, train, here / "run"
        return known[made]

    return of


@pytest.mark.parametrize("name", REGENERATED)
def test_a_checkpoint_of_other_answers_is_named_and_its_weights_are_offered(name, trained, warm, tmp_path):
    answers, change, expected = REGENERATED[name]
    before, (now, train, _) = trained(**answers)[2], trained(**(answers | change))
    kept = contents(before)
    said = refusal(warm, now, *train, "--run-dir", before, "--resume")
    assert expected in said
    assert f"--init-from {before / 'last.pt'}" in said
    assert contents(before) == kept
    said = warm.run(now, *train, "--run-dir", tmp_path / "next", "--init-from", before / "last.pt")
    assert f"weights from {before / 'last.pt'}" in said
    assert ("left as initialised: " in said) == (name == "task"), said


def test_another_precision_is_refused_where_there_is_another(trained, warm, tmp_path):
    """The answer alone does not make it: without the instructions for bfloat16, it is float32 as before."""
    _, _, run = trained(**REGRESSION)
    made, train, _ = trained(**REGRESSION, amp="bf16")
    source = (made / "evaluate.py").read_text(encoding="utf-8")
    asked = "torch.backends.cpu.get_cpu_capability()"
    assert asked in source
    for capability in ("AVX512", "AVX2"):
        shutil.copytree(made, tmp_path / capability, ignore=shutil.ignore_patterns("data"))
        (tmp_path / capability / "evaluate.py").write_text(source.replace(asked, repr(capability)), encoding="utf-8")
    resume = [*train, "--run-dir", run, "--resume"]
    said = refusal(warm, tmp_path / "AVX512", *resume)
    assert "another precision (float32 then, bfloat16 now)" in said
    assert "finished after 1 epochs" in warm.run(tmp_path / "AVX2", *resume)


def test_a_second_process_is_refused_and_the_first_goes_on(trained, warm, tmp_path):
    made, train, _ = trained(**REGRESSION)
    long = [*train, "--epochs", "30", "--batch-size", "4", "--checkpoint-every", "5"]
    warm.run(made, *long, "--run-dir", tmp_path / "whole")
    run = tmp_path / "run"
    first = warm.start(made, tmp_path / "first.txt", *long, "--run-dir", run)
    while not (run / "last.pt").exists():
        time.sleep(0.01)
    os.kill(first, signal.SIGSTOP)  # it shall not end before the others have tried
    kept = contents(run)
    for how in (["--resume"], ["--overwrite"], []):
        assert "is in use by another process" in refusal(warm, made, *long, "--run-dir", run, *how)
    assert contents(run) == kept
    os.kill(first, signal.SIGCONT)
    assert warm.wait(first) == 0
    assert_ends_as(tmp_path / "whole", run)


@pytest.mark.parametrize("name", ["after all epochs", "early"])
def test_a_finished_run_says_so_and_changes_no_file(name, project, warm, tmp_path):
    made, run = project(task="text-regression", tracker="tensorboard", early_stopping=True), tmp_path / "run"
    shutil.copytree(made / "data", tmp_path / "data")
    shrink(tmp_path / "data", rows=64)
    train = ["train.py", *FLAGS, "--data-dir", tmp_path / "data", "--run-dir", run]
    # At a rate of nearly nothing the rounded loss never gets better twice in a row for long.
    flags = {"after all epochs": ["--epochs", "2"], "early": ["--epochs", "9", "--patience", "1", "--lr", "1e-30"]}[
        name
    ]
    ended = warm.run(made, *train, *flags).splitlines()[-3:]
    kept = contents(run)
    said = warm.run(made, *train, *flags, "--resume").splitlines()
    assert said == [line for line in ended if line.startswith(("stopped early", "finished after", "next: "))]
    assert any(line.startswith("stopped early") for line in said) == (name == "early")
    assert contents(run) == kept


def test_a_used_folder_is_kept_unless_it_is_to_go(trained, warm, tmp_path):
    made, train, done = trained(**REGRESSION)
    run = shutil.copytree(done, tmp_path / "run")
    train = [*train, "--run-dir", run]
    kept = contents(run)
    assert "has been used: go on with --resume, or start anew with --overwrite" in refusal(warm, made, *train)
    for flag in (["--overwrite"], ["--init-from", run / "best.pt"]):
        assert "--resume goes on, " in refusal(warm, made, *train, "--resume", *flag, status=2)
    nowhere = refusal(warm, made, *train, "--overwrite", "--init-from", tmp_path / "no.pt")
    assert f"{tmp_path / 'no.pt'} does not exist" in nowhere
    own = refusal(warm, made, *train, "--overwrite", "--init-from", run / "best.pt")
    assert own == f"--overwrite would delete {run / 'best.pt'}, its own start: give another --run-dir"
    assert contents(run) == kept
    warm.run(made, *train, "--overwrite", "--init-from", done / "best.pt")
    assert contents(run).keys() == kept.keys()
    assert contents(run)["last.pt"] != kept["last.pt"]


def test_without_a_checkpoint_a_run_starts_and_says_so(trained, warm, tmp_path):
    made, train, done = trained(**REGRESSION)
    said = warm.run(made, *train, "--run-dir", tmp_path / "run", "--resume")
    assert said.startswith(f"no {tmp_path / 'run' / 'last.pt'} to go on from: starting anew")
    assert_ends_as(done, tmp_path / "run")


def test_settings_that_change_the_result_are_named(trained, warm, tmp_path):
    made, train, done = trained(**REGRESSION)
    run = shutil.copytree(done, tmp_path / "run")
    kept = contents(run)
    for flags, named in {
        ("--lr", "0.5"): "--lr 0.01 then, 0.5 now",
        ("--seed", "7", "--weight-decay", "0"): "--seed 0 then, 7 now, --weight-decay 0.05 then, 0.0 now",
        ("--batch-size", "32", "--accept-changes"): "--batch-size was 64",
    }.items():
        assert named in refusal(warm, made, *train, "--run-dir", run, "--resume", *flags)
    shutil.copytree(Path(train[train.index("--data-dir") + 1]), tmp_path / "data")
    shrink(tmp_path / "data", rows=100)
    said = refusal(warm, made, *train, "--run-dir", run, "--resume", "--data-dir", tmp_path / "data")
    assert "was trained on 128 rows, and there are 100 now" in said
    assert contents(run) == kept
