"""A full disk, a folder that cannot be written, a file that is no checkpoint: one line, and what was good stays.

The disk is full by a limit on the size of a file (RLIMIT_FSIZE), which binds root too and takes no mount. Nor do the
permissions of a folder bind root: where it cannot be written, something else stands in its place.
"""

import errno
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from random import Random

import pytest
import torch

from modules import imported_from
from projects import DRIVERS, Warm, assert_same_runs, shrink

pytestmark = pytest.mark.xdist_group("bad disks")

FLAGS = ["--batch-size", "4", "--log-every", "1", "--vocabulary-size", "300"]
WAY_OUT = "what last.pt holds is good: make room, and go on with --resume"
FILES = ("config.json", "tokenizer.json", "metrics.jsonl", "best.pt", "last.pt")


@pytest.fixture(scope="module")
def runs(project, warm, tmp_path_factory) -> tuple[Path, list[str], Path, Path]:
    """A project, the command that trains it, and the folders of a run of one epoch and a run of two."""
    made, folder = project(task="text-regression", scheduler="step"), tmp_path_factory.mktemp("run")
    shutil.copytree(made / "data", folder / "data")
    shrink(folder / "data", rows=64)
    train = ["train.py", *FLAGS, "--data-dir", str(folder / "data")]
    for epochs in ("1", "2"):
        warm.run(made, *train, "--epochs", epochs, "--run-dir", folder / epochs)
    return made, train, folder / "1", folder / "2"


def last_line(warm: Warm, project: Path, *command: str | Path) -> str:
    """With which a command ends that is refused."""
    said = warm.run(project, *command, status=1)
    assert "Traceback" not in said, said
    return said.rstrip().splitlines()[-1]


@pytest.mark.parametrize("begun", [False, True], ids=["a new run", "a run that goes on"])
def test_a_disk_that_is_full_costs_no_checkpoint(begun, runs, warm, tmp_path):
    project, train, one, two = runs
    sizes = {name: (two / name).stat().st_size for name in FILES}
    hit = set()
    for name, size in sizes.items():
        run = tmp_path / name
        if begun:
            shutil.copytree(one, run)
        before = {path.name: path.read_bytes() for path in run.glob("*.pt")}
        command = [*train, "--epochs", "2", "--run-dir", run, "--resume"]
        said = last_line(warm, project, DRIVERS / "full_disk.py", str(size - 1), *command)
        # Where another file is as large, the first that does not fit is named.
        (named,) = [name for name in FILES if said.startswith((f"{run / name} could", f"{run / name} cannot"))]
        hit.add(named)
        if "last.pt" in before:
            assert (run / "last.pt").read_bytes() == before["last.pt"]
        for checkpoint in run.glob("*.pt"):
            torch.load(checkpoint, weights_only=True)
        warm.run(project, *command)
        assert_same_runs(two, run)
        assert not list(run.glob("*.tmp"))
    assert hit >= {"config.json", "tokenizer.json", "last.pt"}
    assert begun or "best.pt" in hit


def test_curves_are_not_worth_a_run(project, warm, tmp_path):
    made, run = project(task="tabular-regression", tracker="tensorboard"), tmp_path / "run"
    command = ["train.py", "--epochs", "1", "--log-every", "1", "--batch-size", "32", "--run-dir", run]
    warm.run(made, *command)
    (events,) = (run / "tensorboard").iterdir()
    needed = max(path.stat().st_size for path in run.glob("*.json*"))
    assert events.stat().st_size > 2 * needed
    said = last_line(warm, made, DRIVERS / "full_disk.py", str(events.stat().st_size - 100), *command, "--overwrite")
    assert said.startswith(f"{run / 'best.pt'} could not be written (")


def test_a_metrics_file_that_does_not_fit(project, warm, tmp_path):
    made, run = project(task="tabular-regression"), tmp_path / "run"
    command = ["train.py", "--epochs", "1", "--log-every", "1", "--batch-size", "4", "--run-dir", run]
    said = last_line(warm, made, DRIVERS / "full_disk.py", "4000", *command)
    assert said == f"{run / 'metrics.jsonl'} cannot be written (File too large): {WAY_OUT}"
    warm.run(made, *command, "--resume")


def test_what_is_not_flushed_is_not_counted_on(runs, tmp_path, monkeypatch):
    """The last moment at which a full disk shows: a network's disk may accept a write and refuse to keep it."""
    project, _, one, _ = runs
    shutil.copytree(one, tmp_path / "run")
    with imported_from(project, "run_folder") as [run_folder]:
        metrics = run_folder.MetricsFile(tmp_path / "run" / "metrics.jsonl")
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EDQUOT, "Disk quota exceeded")))
        with pytest.raises(SystemExit, match=r"metrics.jsonl cannot be written \(Disk quota exceeded\)"):
            metrics.state_dict()


@pytest.mark.parametrize(
    "name", ["", "lock", "config.json", "tokenizer.json", "metrics.jsonl", "best.pt", "leftover.tmp"]
)
def test_a_place_that_is_taken(name, runs, warm, tmp_path):
    """By a file where the run's folder should be, or a folder where a file of it should be."""
    project, train, *_ = runs
    place = tmp_path / "run" / name
    if name:
        (place / "something").mkdir(parents=True)
    else:
        place.touch()
    overwrite = ["--overwrite"] if name in ("metrics.jsonl", "best.pt") else []
    said = last_line(warm, project, *train, "--epochs", "1", "--run-dir", tmp_path / "run", *overwrite)
    assert said.startswith(str(place if name not in ("lock", "leftover.tmp") else place.parent)), said


def test_a_folder_below_a_file(runs, warm, tmp_path):
    project, train, *_ = runs
    (tmp_path / "runs").touch()
    said = last_line(warm, project, *train, "--run-dir", tmp_path / "runs" / "mine")
    assert said == f"{tmp_path / 'runs' / 'mine'} cannot be written (Not a directory): choose another --run-dir"


def test_nothing_but_a_checkpoint_is_read_as_one(runs, tmp_path):
    project, _, one, _ = runs
    whole, random = (one / "best.pt").read_bytes(), Random(0)
    file = tmp_path / "best.pt"

    def save(things: object) -> bytes:
        torch.save(things, file)
        return file.read_bytes()

    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("best/data.pkl", b"nothing")
    foreign = {
        "empty": b"",
        "text": b"epoch,loss\n1,0.5\n",
        "zip": (tmp_path / "zip").read_bytes(),
        "pickle": pickle.dumps({"model": [1, 2]}),
        "code": pickle.dumps(print),
        "weights alone": save({"weight": torch.zeros(2)}),
        "a whole model": save(torch.nn.Linear(1, 1)),
        "a tensor": save(torch.zeros(2)),
        "a list": save([1]),
        **{f"cut at {size}": whole[:size] for size in random.sample(range(1, len(whole)), 60)},
        **{f"random {size}": random.randbytes(size) for size in range(1, 120)},
    }
    with imported_from(project, "checkpoint") as [checkpoint]:
        for name, content in foreign.items():
            file.write_bytes(content)
            with pytest.raises(SystemExit) as refused:
                checkpoint.read_checkpoint(file)
            assert str(refused.value).startswith(f"{file} is no "), name
            assert "\n" not in str(refused.value), name


@pytest.mark.parametrize("size", [0, 1000, -1000], ids=["empty", "its beginning", "all but its end"])
def test_every_command_refuses_a_checkpoint_that_was_cut(size, runs, warm, tmp_path):
    project, train, one, _ = runs
    run = shutil.copytree(one, tmp_path / "run")
    for path in run.glob("*.pt"):
        path.write_bytes(path.read_bytes()[:size])
    files = {path.name: path.read_bytes() for path in run.iterdir()}
    (tmp_path / "texts").write_text("a text\n", encoding="utf-8")
    for command in (
        [*train, "--run-dir", run, "--resume"],
        [*train, "--run-dir", tmp_path / "next", "--init-from", run / "best.pt"],
        ["evaluate.py", "--checkpoint", run / "best.pt"],
        ["predict.py", "--checkpoint", run / "best.pt", tmp_path / "texts"],
    ):
        said = warm.run(project, *command, status=1)
        assert said.count("\n") == 1 and "is no whole checkpoint, but cut short or another kind of file" in said, said
    assert {path.name: path.read_bytes() for path in run.iterdir()} == files


def test_a_reader_that_has_enough_ends_the_command_without_a_word(project, warm, tmp_path):
    made, run = project(task="tabular-regression"), tmp_path / "run"
    warm.run(made, "train.py", "--epochs", "1", "--run-dir", run)
    table = (made / "data" / "val.csv").read_text().splitlines()
    (tmp_path / "many.csv").write_text("\n".join([table[0], *table[1:] * 100]))
    best = ["--checkpoint", str(run / "best.pt")]
    for command in (
        ["predict.py", *best, str(tmp_path / "many.csv")],
        ["evaluate.py", *best],
        ["train.py", "--show-schedule"],
    ):
        with (tmp_path / "errors").open("wb") as errors:
            writer = subprocess.Popen([sys.executable, *command], cwd=made, stdout=subprocess.PIPE, stderr=errors)
            writer.stdout.close()
            assert writer.wait() != 0
        assert (tmp_path / "errors").read_text() == ""


@pytest.mark.parametrize(
    "task", ["tabular-regression", "text-regression", "token-classification", "time-series-forecasting"]
)
def test_a_mistake_in_the_last_file_is_found_before_the_first_line(task, project, warm, tmp_path):
    made, run = project(task=task), tmp_path / "run"
    shutil.copytree(made / "data", tmp_path / "data")
    shrink(tmp_path / "data", rows=64 if task != "time-series-forecasting" else 10_000)
    warm.run(
        made, "train.py", "--epochs", "1", "--batch-size", "1024", "--data-dir", tmp_path / "data", "--run-dir", run
    )
    good, missing = tmp_path / "data" / "val.csv", tmp_path / "no file"
    said = warm.run(made, "predict.py", "--checkpoint", run / "best.pt", good, missing, status=1)
    assert said.count("\n") == 1 and str(missing) in said, said
