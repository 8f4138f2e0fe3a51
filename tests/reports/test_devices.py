"""Tensors that are left behind on the CPU, and what a GPU would refuse, as far as that can be seen without one."""

import itertools
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from modules import imported
from plainloop.catalogue import catalogue
from plainloop.questionnaire import resolve
from plainloop.render import render
from plainloop.space import NOT_ASKED, valid
from projects import shrink
from tracing import Event, trace, values_of

pytestmark = pytest.mark.xdist_group("reports of devices")


@cache
def losses() -> dict[tuple[str, str], dict[str, Any]]:
    """For each kind of target and loss, answers that bring them together."""
    found = {}
    for combination in valid("loss"):
        answers = {key: value for key, value in combination.items() if value is not NOT_ASKED}
        found.setdefault((resolve(answers)["target"], answers["loss"]), answers)
    return found


def held(module: torch.nn.Module) -> list[torch.Tensor]:
    """All tensors of a module: its buffers and parameters, and what it keeps beside them."""
    return [
        value
        for part in module.modules()
        for value in [*vars(part).values(), *part._parameters.values(), *part._buffers.values()]
        if isinstance(value, torch.Tensor)
    ]


class Operations(TorchDispatchMode):
    """Names of all that torch computes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.seen.add(function.overloadpacket.__name__)
        return function(*arguments, **(named or {}))


WEIGHTS = {"weighted-cross-entropy": torch.ones(3), "weighted-bce": torch.ones(1)}


@pytest.mark.parametrize(("target", "loss"), losses(), ids=["-".join(pair) for pair in losses()])
def test_a_loss_moves_as_a_whole(target, loss, tmp_path):
    """Class weights and quantiles too; and it is one that autocast on a GPU takes: of logits, not of probabilities."""
    answers = losses()[target, loss]
    with imported(tmp_path, answers, "evaluate") as [evaluate]:
        given = [[0.1, 0.5, 0.9]] if loss == "quantile" else [WEIGHTS[loss]] if loss in WEIGHTS else []
        criterion = evaluate.make_criterion(*given)
        if target in ("binary", "multilabel"):
            with Operations() as operations:
                criterion(torch.zeros(4, requires_grad=True), torch.ones(4)).backward()
            assert "binary_cross_entropy" not in operations.seen
            assert len(operations.seen) > 1
        moved = held(criterion.to("meta"))
    assert all(tensor.device.type == "meta" for tensor in moved)
    assert bool(moved) == (loss in WEIGHTS or loss == "quantile")


@pytest.mark.parametrize("device", catalogue()["devices"])
def test_float16_never_comes_without_loss_scaling(device):
    """On whatever device: the scaler is made for the one that autocast gets, and for no other than fp16."""
    written = render({"device": device, "amp": "fp16"})["train.py"]
    assert "scaler = torch.amp.GradScaler(device.type)" in written
    assert "torch.autocast(device.type, dtype=torch.float16)" in written
    for kind in ("cpu", "mps", "xpu"):  # torch makes none for CUDA where there is none
        assert torch.amp.GradScaler(kind).is_enabled()


ADAGRAD = {"task": "tabular-classification", "labels": "binary", "loss": "weighted-bce", "optimizer": "adagrad"}
IMAGES = {"task": "image-classification", "optimizer": "muon", "ema": True}


@pytest.fixture(scope="module", params=[ADAGRAD, IMAGES], ids=["tabular", "image"])
def traces(request, project, warm, tmp_path_factory) -> dict[str, list[Event]]:
    """What each script does with a checkpoint."""
    made, folder = project(**request.param), tmp_path_factory.mktemp("traces")
    shutil.copytree(made / "data", folder / "data")
    shrink(folder / "data", rows=40)
    best, last = folder / "run" / "best.pt", folder / "last.pt"
    flags = ["--epochs", "1", "--batch-size", "16", "--data-dir", folder / "data", "--run-dir", folder / "run"]

    def traced(*command: str | Path, status: int = 0, **options: Any) -> list[Event]:
        return trace(warm, made, folder / "log", *command, status=status, **options)

    asked = sorted((folder / "data" / "val").glob("*/*.png"))[:3] or [folder / "data" / "val.csv"]
    traces = {
        "train": traced("train.py", *flags, stop=1, status=143),
        "resume": traced("train.py", *flags, "--resume"),
        "evaluate": traced("evaluate.py", "--checkpoint", best, "--data-dir", folder / "data"),
        "predict": traced("predict.py", "--checkpoint", best, *asked),
    }
    shutil.move(folder / "run" / "last.pt", last)
    traces["init from"] = traced("train.py", *flags, "--init-from", last, "--overwrite")
    return traces


def test_checkpoints_are_read_onto_the_cpu(traces):
    for script in ("resume", "evaluate", "predict", "init from"):
        places = values_of(traces[script], "load")
        assert set(places) == {"cpu"}, script


def test_evaluation_and_prediction_switch_dropout_and_batch_norm(traces):
    for script in ("evaluate", "predict"):
        modes = values_of(traces[script], "forward")
        assert set(map(tuple, modes)) == {(False, False)}, script


def test_the_optimizer_is_made_of_the_parameters_that_have_moved(traces):
    """And gets its state after that: then the state follows them to their device."""
    words = "move", "make optimizer", "restore optimizer"
    order = [word for word, _ in itertools.groupby(word for word, _ in traces["resume"] if word in words)]
    assert order == list(words)
