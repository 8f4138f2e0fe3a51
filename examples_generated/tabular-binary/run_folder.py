"""The folder of a run: who may write to it, what it holds, and whether a run can go on in it."""

import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from checkpoint import Stateful, read_checkpoint
from config import Config

# Settings on which the result does not depend: they may differ when a run goes on, and no checkpoint holds them.
WITHOUT_EFFECT = {
    "data_dir",
    "run_dir",
    "resume",
    "init_from",
    "overwrite",
    "accept_changes",
    "show_schedule",
    "num_workers",
    "checkpoint_every",
}
# Settings that a run keeps to its end: its position counts batches of one size, and its preprocessing stays as it was
# fitted when the run began.
KEPT = {
    "batch_size",
    "target",
    "ignore",
    "categories",
}
# The way out when a run ends in its middle.
GO_ON = "what last.pt holds is good: make room, and go on with --resume"


class RunFolder:
    """config.json, metrics.jsonl, last.pt to go on from and best.pt to use. One process at a time.

    Attributes:
        saved: the checkpoint that this run goes on from, or None for a run that starts.
        changes: the settings that differ from that checkpoint's, as name -> (then, now).
    """

    def __init__(self, config: Config) -> None:
        self.config, self.path = config, config.run_dir
        self.last, self.best = self.path / "last.pt", self.path / "best.pt"
        with refusal(self.path, "choose another --run-dir"):
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.path / "lock")
            for leftover in self.path.glob("*.tmp"):
                leftover.unlink()  # of a save that was killed
        self.metrics = MetricsFile(self.path / "metrics.jsonl")
        self.saved: dict[str, Any] | None = None
        self.changes: dict[str, tuple[Any, Any]] = {}
        if config.resume and self.last.exists():
            self.saved = read_checkpoint(self.last)
        elif config.resume:
            print(f"no {self.last} to go on from: starting anew")
        elif not config.overwrite and (self.last.exists() or self.best.exists() or self.metrics.path.exists()):
            raise SystemExit(f"{self.path} has been used: go on with --resume, or start anew with --overwrite")
        elif config.init_from and config.init_from.resolve() in (self.last.resolve(), self.best.resolve()):
            raise SystemExit(f"--overwrite would delete {config.init_from}, its own start: give another --run-dir")

    def begin(self, device: torch.device) -> None:
        """Write config.json, and clear what an earlier run left, unless this one goes on from it."""
        about = {
            "settings": settings(self.config),
            "command": sys.argv,
            "git_commit": _git_commit(),
            "device": _device_name(device),
            "threads": torch.get_num_threads(),
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
            "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        }
        self.write("config.json", json.dumps(about, indent=2) + "\n")
        if self.saved is None:
            for file in (self.last, self.best, self.metrics.path):
                with refusal(file, "choose another --run-dir"):
                    file.unlink(missing_ok=True)

    def write(self, name: str, text: str) -> None:
        """Write a file of the run, whole or not at all."""
        unfinished = self.path / f"{name}.tmp"
        with refusal(self.path / name, "choose another --run-dir"):
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(self.path / name)

    def compare(self, state: Mapping[str, Stateful], about: Mapping[str, Any]) -> None:
        """Refuse to go on with another project, other rows or other settings than the run began with."""
        from_weights = f"start from its weights with --init-from {self.last} and another --run-dir"
        facts = {name: value for name, value in about.items() if isinstance(value, str)}  # the loss, the precision
        self.changes = _differences({name: self.saved.get(name) for name in facts}, facts)
        parts = _differences(self.saved["classes"], {name: type(part).__name__ for name, part in state.items()})
        others = (self.changes | parts).items()
        other = ", ".join(f"another {name} ({then} then, {now} now)" for name, (then, now) in others)
        if parts:
            raise SystemExit(f"{self.last} was made with {other}: {from_weights}")
        if other and not self.config.accept_changes:
            raise SystemExit(
                f"{self.last} was made with {other}: the run would not end as one that never stopped."
                f" Bring that back, give --accept-changes, or {from_weights}"
            )
        then, now = self.saved.get("training_rows"), about["training_rows"]
        if then != now:
            raise SystemExit(
                f"{self.last} was trained on {then} rows, and there are {now} now: its position counts those."
                f" Bring them back, or {from_weights}"
            )
        self._compare_settings(from_weights)

    def _compare_settings(self, from_weights: str) -> None:
        changes = _differences(self.saved["config"], lasting_settings(self.config))
        progress = self.saved["progress"]
        begun = progress["epoch"] + (progress["batch"] > 0)
        if self.config.epochs < begun:
            raise SystemExit(f"--epochs {self.config.epochs}: {self.last} has come to epoch {begun}: give that or more")
        if kept := sorted(changes.keys() & KEPT):
            listed = ", ".join(f"--{name.replace('_', '-')} was {changes[name][0]}" for name in kept)
            raise SystemExit(
                f"{listed} in {self.last}, and the run goes on with no other: give that, or {from_weights}"
            )
        if changes and not self.config.accept_changes:
            listed = ", ".join(
                f"--{name.replace('_', '-')} {then} then, {now} now" for name, (then, now) in changes.items()
            )
            if "epochs" in changes:
                listed += "; the schedule is planned over all epochs: the learning rate would have been another so far"
            raise SystemExit(
                f"{self.last} was made with other settings ({listed}): the run would not end as one that never"
                f" stopped. Give the old ones, give --accept-changes, or {from_weights}"
            )
        self.changes |= changes


class MetricsFile:
    """metrics.jsonl: one JSON object a line. Its length is in the checkpoint: what came later is cut off on resume,
    and written again by the steps that are taken again."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, **values: float) -> None:
        # JSON has no NaN and no infinity: a value that is not defined, such as AUROC of one class, is null.
        row = {name: value if math.isfinite(value) else None for name, value in values.items()}
        with refusal(self.path, GO_ON), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def state_dict(self) -> dict[str, Any]:
        if not self.path.exists():
            return {"bytes": 0}
        with refusal(self.path, GO_ON), self.path.open("rb+") as file:
            os.fsync(file.fileno())  # before the checkpoint that counts on these lines
        return {"bytes": self.path.stat().st_size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with refusal(self.path, "see its permissions"):
            self.path.touch()
        if self.path.stat().st_size < state["bytes"]:
            raise SystemExit(f"{self.path} has lost lines that last.pt counts on: put it back, or --overwrite the run")
        with refusal(self.path, "see its permissions"):
            os.truncate(self.path, state["bytes"])


@contextmanager
def refusal(path: Path, way_out: str) -> Iterator[None]:
    """What cannot be written, on a full disk or for lack of permission, ends the run with one line."""
    try:
        yield
    except OSError as error:
        raise SystemExit(f"{path} cannot be written ({error.strerror}): {way_out}") from None


def settings(config: Config) -> dict[str, Any]:
    """Every setting, as a plain value."""
    return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(config).items()}


def lasting_settings(config: Config) -> dict[str, Any]:
    """The settings on which the result depends: what a checkpoint holds."""
    return {name: value for name, value in settings(config).items() if name not in WITHOUT_EFFECT}


def config_of(checkpoint: Mapping[str, Any], data_dir: Path) -> Config:
    """The configuration that a checkpoint was made with, for the data in `data_dir`."""
    known = {field.name for field in fields(Config)}  # a setting that has since gone from config.py is left out
    saved = {name: value for name, value in checkpoint["config"].items() if name in known}
    return Config(**saved, data_dir=data_dir)


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    both = {name: (then.get(name, "nothing"), now.get(name, "nothing")) for name in sorted(then.keys() | now.keys())}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def _lock(path: Path) -> Any:
    """Hold `path` until this process ends, however it ends."""
    file = path.open("a")
    try:
        if os.name == "posix":
            import fcntl

            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unlike flock, not shared with worker processes
        else:
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):  # others say that this file system has no locks: `refusal` names them
        raise SystemExit(f"{path.parent} is in use by another process: choose another --run-dir") from None
    return file


def _device_name(device: torch.device) -> str:
    if device.type in ("cuda", "xpu"):
        return torch.get_device_module(device).get_device_name(device)
    return str(device)


def _git_commit() -> str | None:
    try:
        result = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent)
    except OSError:
        return None
    return result.stdout.strip() or None
