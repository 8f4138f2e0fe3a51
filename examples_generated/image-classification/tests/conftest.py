"""A small data set, a quick configuration, and ways to watch a run from outside."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import Dataset

import train as training
from config import Config
from sample_data import write_sample

torch.set_num_threads(1)  # small tensors: a second thread costs more than it brings


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample data."""
    folder = tmp_path_factory.mktemp("data")
    write_sample(folder)
    return folder


@pytest.fixture
def config(data_dir: Path, tmp_path: Path) -> Config:
    """Two epochs of five steps, the last one of each smaller than the others."""
    return Config(
        data_dir=data_dir,
        run_dir=tmp_path / "run",
        epochs=2,
        batch_size=12,
        num_workers=0,
        log_every=3,
    )


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """There two runs are the same to the bit; on a GPU they are so with --deterministic alone."""
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: None)


class Few(Dataset):
    """Some of a data set, taken at even distances up to its last."""

    def __init__(self, full: Dataset, size: int) -> None:
        self.full = full
        self.chosen = [((i + 1) * len(full) - 1) // size for i in range(size)]

    def __getitem__(self, key: tuple[int, list[int]]) -> Any:
        seed, indices = key
        return self.full[seed, [self.chosen[i] for i in indices]]

    def __len__(self) -> int:
        return len(self.chosen)


@pytest.fixture(autouse=True)
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train on 53 of the images and validate on 60."""
    whole = training.training_loader, training.evaluation_loader
    monkeypatch.setattr(training, "training_loader", lambda data, config: whole[0](Few(data, 53), config))
    monkeypatch.setattr(training, "evaluation_loader", lambda data, config: whole[1](Few(data, 60), config))


@pytest.fixture
def stop_after() -> Iterator[Callable[[int], None]]:
    """stop_after(n): the n-th optimizer step from now is followed by a SIGTERM, as a cluster sends it."""
    left: list[int] = []  # steps, for each call

    def count(_: torch.optim.Optimizer) -> None:
        left[:] = [steps - 1 for steps in left]
        if 0 in left:
            os.kill(os.getpid(), 15)

    with each_step(after=count):
        yield left.append


@pytest.fixture
def rates() -> Iterator[list[float]]:
    """The learning rate of every optimizer step that a run takes."""
    taken: list[float] = []
    with each_step(before=lambda optimizer: taken.append(optimizer.param_groups[0]["lr"])):
        yield taken


def nothing(_: torch.optim.Optimizer) -> None: ...


@contextmanager
def each_step(
    before: Callable[[torch.optim.Optimizer], None] = nothing, after: Callable[[torch.optim.Optimizer], None] = nothing
) -> Iterator[None]:
    """Have them called before and after every step of the optimizer."""
    hooks = (
        register_optimizer_step_pre_hook(lambda optimizer, *_: before(optimizer)),
        register_optimizer_step_post_hook(lambda optimizer, *_: after(optimizer)),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def run_to_end(config: Config, **changes: Any) -> dict[str, Any]:
    """Train as a new process would, and give what last.pt holds."""
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)  # a resumed run must not depend on what these were
    config = replace(config, **changes)
    training.train(config)
    return load(config.run_dir / "last.pt")


def load(path: Path) -> dict[str, Any]:
    return torch.load(path, weights_only=True)


def differences(one: Any, other: Any, name: str = "") -> list[str]:
    """Where two checkpoints differ in so much as a bit."""
    if isinstance(one, torch.Tensor):
        return [] if torch.equal(one, other) else [name]
    if isinstance(one, dict):
        found = [f"{name}/{key}" for key in sorted(one.keys() ^ other.keys(), key=str)]
        for key in sorted(one.keys() & other.keys(), key=str):
            found += differences(one[key], other[key], f"{name}/{key}")
        return found
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return [name]
        pairs = enumerate(zip(one, other, strict=True))
        return [place for i, (left, right) in pairs for place in differences(left, right, f"{name}/{i}")]
    return [] if one == other else [f"{name}: {one} and {other}"]
