"""Running generated projects, each command in a process of its own. Imports nothing of Plainloop."""

import csv
import io
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

EXAMPLES_FOLDER = Path(__file__).parents[1] / "examples_generated"
DRIVERS = Path(__file__).parent / "drivers"
EXAMPLES = ["image-classification", "tabular-binary", "tabular-regression", "text-classification", "language-modeling"]

# What may differ between two runs with the same result.
WHERE_AND_HOW = {"run_dir", "num_workers", "resume", "overwrite", "accept_changes"}


def copy_example(name: str, folder: Path) -> Path:
    """A fresh copy of a committed example, without the data and runs that somebody may have left in it."""
    ignore = shutil.ignore_patterns("data", "runs", "__pycache__", ".*_cache")
    return Path(shutil.copytree(EXAMPLES_FOLDER / name, folder / name, ignore=ignore))


def run(project: Path, *command: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """A Python command in the project's folder; it must end with this status."""
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=project, capture_output=True, text=True, timeout=600
    )
    assert_status(command, done.returncode, status, done.stdout + done.stderr)
    return done


def assert_status(command: Sequence[str | Path], ended: int, status: int, output: str) -> None:
    """Fail, with what it printed, if a command did not end as it must."""
    said = f"{' '.join(map(str, command))} ended with {ended}, not {status}\n{output[-6000:]}"
    assert ended == status, said


class Warm:
    """Runs the commands of many projects: each in a process of its own, forked from one that has imported torch."""

    def __init__(self, folder: Path) -> None:
        self.output = folder / "output.txt"
        driver = [sys.executable, str(DRIVERS / "warm.py")]
        self.server = subprocess.Popen(driver, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, project: Path, *command: str | Path, status: int | None = 0) -> str:
        """What a Python command in the project's folder printed; it must end with this status, or with any if None."""
        ended = self.wait(self.start(project, self.output, *command))
        output = self.output.read_text(encoding="utf-8", errors="replace")
        assert_status(command, ended, ended if status is None else status, output)
        return output

    def start(self, project: Path, output: Path, *command: str | Path) -> int:
        """Start a Python command in the project's folder: the id of its process, the first of a process group."""
        return self._ask([str(project), [*map(str, command)], str(output)])

    def wait(self, process: int) -> int:
        """The exit status of a command that was started, once it has ended."""
        return self._ask(process)

    def _ask(self, what: object) -> int:
        print(json.dumps(what), file=self.server.stdin, flush=True)
        return int(self.server.stdout.readline())

    def close(self) -> None:
        """End it."""
        self.server.stdin.close()
        self.server.wait()


def predicts(warm: Warm, project: Path, data_kind: str, data: Path, checkpoint: Path) -> None:
    """predict.py gives a line for each thing asked for, or for the language model a text that goes on."""

    def said(*asked: str | Path) -> str:
        return warm.run(project, "predict.py", "--checkpoint", checkpoint, *asked)

    def rows(*asked: str | Path) -> list[list[str]]:
        return list(csv.reader(io.StringIO(said(*asked))))[1:]

    if data_kind == "language":
        text = said("--prompt", "def ")
        assert text.startswith("def ")
        assert len(text) > 10
    elif images := sorted(data.glob("val/**/*.png"))[:3]:
        assert len(rows(*images)) == len(images)
    elif data_kind in ("text", "words"):
        texts = data / "texts"
        texts.write_text("Return the mean of the values\nimport os . path\n", encoding="utf-8")
        assert len(rows(texts)) >= 2
    else:
        assert rows(data / "val.csv")


ROWS = {"series": 300, "words": 500}
"""How many rows these kinds of data need, where others do with fewer."""


def shrink(data: Path, rows: int = 200, characters: int = 40_000) -> None:
    """Leave only the beginning of the sample data, so that an epoch takes seconds on a CPU."""
    for path in [*data.glob("*.csv"), *data.glob("*/labels.csv")]:
        with path.open(newline="", encoding="utf-8") as file:
            table = list(csv.reader(file))[: rows + 1]
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(table)
        if path.name == "labels.csv":
            kept = {row[0] for row in table}
            for image in path.parent.glob("*.png"):
                if image.name not in kept:
                    image.unlink()
    for path in data.glob("*.txt"):
        path.write_text(path.read_text(encoding="utf-8")[:characters], encoding="utf-8")
    for folder in data.glob("*/*/"):
        of_a_class = folder.name not in ("images", "masks")
        for path in sorted(folder.glob("*.png"))[rows // 10 if of_a_class else rows :]:
            path.unlink()


def read_metrics(run_dir: Path) -> list[dict[str, float]]:
    """The lines of metrics.jsonl."""
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def stop_at(run: Callable, project: Path, step: int, signum: signal.Signals, *arguments: str) -> None:
    """Train until the process has made so many optimizer steps and sends itself this signal."""
    killed = signum is signal.SIGKILL
    status = -signum if killed else 128 + signum
    run(project, DRIVERS / "stop_at.py", str(step), str(int(signum)), "train.py", *arguments, status=status)


def train_in_pieces(run: Callable, project: Path, run_dir: str, flags: list[str], epoch: int) -> None:
    """A run of two epochs of `epoch` steps: stopped and killed in the middle of each, by changing numbers of workers.

    The steps are counted from each start; a kill falls after the last checkpoint, so some steps are made twice.
    """
    flags = ["--run-dir", run_dir, *flags]
    third = max(epoch // 3, 2)
    stop_at(run, project, third, signal.SIGTERM, *flags, "--num-workers", "0")
    stop_at(run, project, third, signal.SIGKILL, *flags, "--num-workers", "2", "--resume")
    stop_at(run, project, epoch, signal.SIGKILL, *flags, "--num-workers", "1", "--resume")
    run(project, "train.py", *flags, "--num-workers", "0", "--resume")


def differences(one: object, other: object, where: str = "") -> list[str]:
    """Where two loaded checkpoints are not the same, bit for bit."""
    if type(one) is not type(other):
        return [f"{where}: {type(one).__name__} and {type(other).__name__}"]
    if isinstance(one, dict):
        keys = (one.keys() ^ other.keys()) - WHERE_AND_HOW
        both = (key for key in one if key in other and key not in WHERE_AND_HOW)
        inner = (line for key in both for line in differences(one[key], other[key], f"{where}.{key}"))
        return [*(f"{where}.{key}: in one only" for key in keys), *inner]
    if isinstance(one, (list, tuple)) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for index, pair in pairs for line in differences(*pair, f"{where}[{index}]")]
    if isinstance(one, torch.Tensor):
        same = one.dtype == other.dtype and torch.equal(one, other)
        return [] if same else [f"{where}: tensors differ"]
    return [] if repr(one) == repr(other) else [f"{where}: {one!r} and {other!r}"]


def assert_same_runs(one: Path, other: Path) -> None:
    """Two runs left the same metrics and the same checkpoints."""
    assert (one / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    for name in ("last.pt", "best.pt"):
        loaded = [torch.load(run_dir / name, weights_only=True, map_location="cpu") for run_dir in (one, other)]
        assert not differences(*loaded), name
