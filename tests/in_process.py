"""A project's modules in the test's own process, where a test can reach in."""

import random
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from modules import imported_from
from plainloop.questionnaire import resolve
from projects import read_metrics

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


@contextmanager
def at_hand(project: Path, *names: str) -> Iterator[list[ModuleType]]:
    """The named modules of a project; what they do to the process's signals and generators is undone."""
    handlers = {signum: signal.getsignal(signum) for signum in SIGNALS}
    states = random.getstate(), np.random.get_state()
    with imported_from(project, *names) as modules, torch.random.fork_rng():
        try:
            yield modules
        finally:
            for signum, handler in handlers.items():
                signal.signal(signum, handler)
            random.setstate(states[0])
            np.random.set_state(states[1])


def evaluations(run_dir: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl that an evaluation left."""
    return [line for line in read_metrics(run_dir) if "val_loss" in line]


def load(path: Path) -> dict[str, Any]:
    return torch.load(path, weights_only=True, map_location="cpu")


def dataset_name(answers: Mapping[str, Any]) -> str:
    """What data.py calls its data set."""
    return resolve(answers)["dataset"]


FITTED: dict[str, dict[str, Any]] = {}


def preprocessing(answers: Mapping[str, Any], made: Path, modules: list[ModuleType]) -> Any:
    """What is fitted on the sample data of a project, once: a vocabulary takes long. `modules`: config and data."""
    config, data = modules
    if str(answers) not in FITTED:
        FITTED[str(answers)] = asdict(data.Preprocessing.fit(config.Config(data_dir=made / "data")))
    return data.Preprocessing(**FITTED[str(answers)])
