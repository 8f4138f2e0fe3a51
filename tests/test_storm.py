"""Runs that are killed again and again, at any moment, end as one that nobody disturbed.

How often: --storm N. The moments follow from a seed, which the header names and --storm-seed gives again.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil
import pytest

from plainloop.examples import EXAMPLES
from projects import DRIVERS, Warm, assert_same_runs, shrink

PROJECTS = {
    **EXAMPLES,
    "image-classification": {"task": "image-classification"},
    "accumulation": {"task": "token-classification", "gradient_accumulation": True, "scheduler": "cosine"},
    "ema": {"task": "image-segmentation", "ema": True, "optimizer": "muon", "scheduler": "one-cycle"},
    "fp16": {"task": "text-regression", "amp": "fp16", "ema": True, "scheduler": "cosine-restarts"},
    "averaged weights": {"task": "image-regression", "optimizer": "schedule-free-adamw", "early_stopping": True},
}
FLAGS = ["--epochs", "2", "--batch-size", "4", "--log-every", "2", "--eval-every", "5", "--checkpoint-every", "3"]

SOFT = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]
BY_THE_CLOCK = ["while it imports", "while it starts", "while it trains", "twice"]
KINDS = [
    "while it imports",
    *["while it starts"] * 4,
    *["while it trains"] * 5,
    *["twice"] * 4,
    # Those of tests/drivers/kill_at.py.
    "the preparations",
    *["the start of a worker"] * 2,
    *["a step"] * 2,
    *["an evaluation"] * 2,
    "a line of metrics",
    *["a half-written checkpoint"] * 2,
    *["the rename of a checkpoint"] * 2,
    "what follows the rename",
]
MOST_SECONDS = 60
"""In which workers must be gone once their parent is: they look for it every five seconds."""


@dataclass
class Whole:
    """A run that nobody disturbs: its folder, and the seconds until its first step and from there to its end."""

    folder: Path
    to_start: float
    to_train: float


@dataclass
class Blow:
    """Signals to a run, and when they come."""

    kind: str
    signum: signal.Signals
    whom: str
    """`process` or, with its workers, `group`: so do terminals and schedulers."""
    workers: int
    seconds: float
    times: int
    """At which time that the run comes to its place, where its kind names one."""
    second: tuple[float, signal.Signals] | None = None
    """So much later, another signal."""


def blows(random: Random, whole: Whole) -> Iterator[Blow]:
    """Without end, of all kinds in any order; the first before there is a checkpoint."""
    kinds = ["the preparations"]
    while True:
        for kind in kinds:
            blow = Blow(
                kind,
                signum=random.choice([signal.SIGKILL, signal.SIGKILL, *SOFT]),
                whom=random.choice(["process", "group"]),
                workers=random.choice([0, 1, 2]),
                seconds=random.uniform(0, whole.to_start),
                times=random.choice([1, 1, 2, 3]),
            )
            if kind == "while it imports":
                blow.seconds = random.uniform(0, 3)
            if kind in ("while it trains", "twice"):
                blow.seconds = whole.to_start + random.uniform(-0.1, 0.3) * whole.to_train
            if kind == "twice":
                blow.signum = random.choice(SOFT)
                blow.second = random.uniform(0, 0.5), random.choice([signal.SIGKILL, *SOFT])
            if kind == "the start of a worker":
                blow.workers, blow.whom, blow.times = random.choice([1, 2]), "group", random.choice([1, 2])
            yield blow
        kinds = random.sample(KINDS, len(KINDS))


def strike(warm: Warm, project: Path, output: Path, command: list[str], blow: Blow) -> tuple[int, int]:
    """Start a run and have the signals sent: its process, and its exit status."""
    if blow.kind not in BY_THE_CLOCK:
        how = [blow.kind, str(blow.times), str(int(blow.signum)), blow.whom]
        process = warm.start(project, output, DRIVERS / "kill_at.py", *how, *command)
        return process, warm.wait(process)
    cold = None
    if blow.kind == "while it imports":
        with output.open("wb") as file:
            cold = subprocess.Popen(
                [sys.executable, *command], cwd=project, stdout=file, stderr=file, process_group=0, text=True
            )
    process = cold.pid if cold else warm.start(project, output, *command)
    send = os.killpg if blow.whom == "group" else os.kill
    time.sleep(blow.seconds)
    send(process, blow.signum)
    if blow.second:
        time.sleep(blow.second[0])
        send(process, blow.second[1])
    return process, cold.wait() if cold else warm.wait(process)


def wrong(blow: Blow, status: int, said: str) -> str:
    """What is wrong with the way in which a run has ended."""
    if blow.signum == signal.SIGINT and status == -signal.SIGINT and "KeyboardInterrupt" in said:
        # Python's own answer to Ctrl-C, as long as train.py is not there yet.
        return "it listened by then" if "parameters on" in said else ""
    for word in ("Traceback", "Error", "Exception", "Warning"):
        if word in said:
            return f"it printed {word}"
    sent = {blow.signum, *([blow.second[1]] if blow.second else [])}
    kept = "stopping once the running step is saved" in said
    if status == 0:
        return "" if "finished after" in said else "status 0, and not finished"
    if status == 128 + blow.signum and blow.signum != signal.SIGKILL:
        return "" if kept and "go on with --resume" in said else f"status {status}, and it does not say that it saved"
    if -status not in sent:
        return f"status {status}"
    if -status == signal.SIGKILL or (blow.second and kept):
        return ""
    # The signal's own default: right before train.py can listen, and after it has.
    listens = "parameters on" in said and "finished after" not in said
    return f"status {status} from a run that should have listened" if kept or listens else ""


def left_behind(groups: list[int]) -> list[psutil.Process]:
    """What still runs of these process groups."""
    running = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) in groups and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return running


def undisturbed(warm: Warm, project: Path, folder: Path, flags: list[str]) -> Whole:
    """A run from beginning to end, with the clock."""
    begun, started = time.monotonic(), None
    process = warm.start(project, folder / "whole.txt", "train.py", "--run-dir", str(folder / "whole"), *flags)
    while started is None and psutil.Process(process).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.005)
        if (folder / "whole" / "config.json").exists():
            started = time.monotonic()
    assert warm.wait(process) == 0, (folder / "whole.txt").read_text()
    return Whole(folder / "whole", started - begun, time.monotonic() - started)


@pytest.mark.parametrize("name", PROJECTS)
def test_a_run_that_is_killed_again_and_again_ends_as_one_that_is_not(name, project, warm, tmp_path, pytestconfig):
    made = project(**PROJECTS[name])
    shutil.copytree(made / "data", tmp_path / "data")
    shrink(tmp_path / "data", rows=96, characters=12_000)
    flags = [*FLAGS, "--data-dir", str(tmp_path / "data")]
    whole = undisturbed(warm, made, tmp_path, [*flags, "--num-workers", "0"])

    run, groups, output = tmp_path / "run-0", [], tmp_path / "output.txt"
    random = Random(f"{pytestconfig.getoption('storm_seed')} {name}")
    falling = blows(random, whole)
    for number in range(pytestconfig.getoption("storm")):
        blow = next(falling)
        command = ["train.py", "--run-dir", str(run), *flags, "--resume", "--num-workers", str(blow.workers)]
        process, status = strike(warm, made, output, command, blow)
        groups.append(process)
        said = output.read_text(encoding="utf-8", errors="replace")
        if fault := wrong(blow, status, said):
            pytest.fail(f"{fault}\nblow {number + 1}: {blow}\n{said[-4000:]}")
        if status == 0:
            assert_as_whole(run, whole)
            run = tmp_path / f"run-{number + 1}"  # more blows than the run had steps: another
    warm.run(made, "train.py", "--run-dir", run, *flags, "--resume", "--num-workers", "1")
    assert_as_whole(run, whole)

    end = time.monotonic() + MOST_SECONDS
    while (still := left_behind(groups)) and time.monotonic() < end:
        time.sleep(0.2)
    assert not still


def assert_as_whole(run: Path, whole: Whole) -> None:
    """It left what the undisturbed run left, and nothing else."""
    assert_same_runs(whole.folder, run)
    assert sorted(path.name for path in run.iterdir()) == sorted(path.name for path in whole.folder.iterdir())
