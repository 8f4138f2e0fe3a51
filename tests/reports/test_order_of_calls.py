"""Gradients clipped too early or left over, steps never taken, NaN that is kept: the order of the loop's calls."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

import tracing
from tracing import Event, values_of

pytestmark = pytest.mark.xdist_group("reports of the order of calls")

SCALED = {
    "task": "tabular-classification",
    "labels": "binary",
    "optimizer": "sgd",
    "amp": "fp16",
    "gradient_accumulation": True,
    "ema": True,
}
TEXTS = {
    "task": "text-regression",
    "optimizer": "radam",
    "scheduler": "plateau",
    "amp": "off",
    "gradient_clipping": "value",
    "gradient_accumulation": True,
}


@pytest.fixture
def train(warm, tmp_path) -> Callable[..., list[Event]]:
    return partial(tracing.train, warm, tmp_path)


WORDS = "zero", "backward", "unscale", "clip", "step", "update", "schedule", "average", "evaluate"


@pytest.mark.parametrize(
    ("answers", "step", "at_the_end"),
    [
        (SCALED, "zero( backward)+ unscale clip step update schedule average ", "evaluate "),
        (TEXTS, "zero( backward)+ clip step ", "evaluate schedule "),
    ],
    ids=["fp16", "plateau"],
)
@pytest.mark.parametrize("accumulate", [4, 32], ids=["a short last window", "a window longer than the epoch"])
def test_every_window_is_one_step(project, train, tmp_path, answers, step, at_the_end, accumulate):
    """Unscaled once and clipped once, when it is complete; none is left out, and none reaches into the next epoch."""
    flags = ["--epochs", "2", "--batch-size", str(2 * accumulate), "--accumulate", str(accumulate)]
    events = train(project(**answers), *flags)
    order = "".join(f"{word} " for word, _ in events if word in WORDS)
    assert re.fullmatch(f"(({step})+{at_the_end}){{2}}", order)
    windows = [window.count("backward") for window in order.split("zero")[1:]]
    of_an_epoch = {4: [4, 4, 4, 2], 32: [14]}[accumulate]  # 27 rows, two in a pass
    assert windows == 2 * of_an_epoch
    progress = torch.load(tmp_path / "run" / "last.pt", weights_only=True)["progress"]
    assert progress["step"] == len(windows)


def test_what_is_clipped_does_not_depend_on_the_loss_scale(project, train):
    """Without unscaling first, the norm would be 65536 times as large."""
    flags = ["--epochs", "1", "--batch-size", "8", "--lr", "1e-12"]
    norms = [
        values_of(train(project(**SCALED), *flags, run=str(scale), scale=scale), "clip") for scale in (1.0, 65536.0)
    ]
    assert norms[0] == pytest.approx(norms[1], rel=0.02)
    assert len(norms[0]) == 4


PLAIN = {"task": "tabular-regression"}
SCALED_VALUES = {"task": "tabular-regression", "amp": "fp16", "optimizer": "radam", "scheduler": "cosine"}
TWO_BY_FOUR = ["--epochs", "2", "--batch-size", "8"]  # four steps in an epoch


def finite(path: Path) -> bool:
    checkpoint = torch.load(path, weights_only=True)
    return all(weights.isfinite().all() for weights in checkpoint["model"].values())


@pytest.mark.parametrize("step", [6, 8], ids=["within an epoch", "at its last step"])
def test_an_infinite_gradient_ends_the_run(project, train, tmp_path, step):
    """Clipping by the norm makes NaN of it; the loss of that step is finite still."""
    train(project(**PLAIN), *TWO_BY_FOUR, status=1, infinite_from=step, infinite_to=step)
    last, best = (torch.load(tmp_path / "run" / name, weights_only=True) for name in ("last.pt", "best.pt"))
    assert last["progress"]["step"] == best["progress"]["step"] == 4  # as the first epoch left them
    assert finite(tmp_path / "run" / "last.pt")
    assert finite(tmp_path / "run" / "best.pt")


@pytest.mark.parametrize("answers", [SCALED, SCALED_VALUES], ids=["fused", "not fused"])
def test_the_scaler_leaves_out_an_infinite_gradient(project, train, tmp_path, answers):
    events = train(project(**answers), *TWO_BY_FOUR, infinite_from=3, infinite_to=3)
    scales = values_of(events, "update")
    assert len(scales) == len(values_of(events, "step"))
    assert scales[-1] == min(scales) == 32768
    assert finite(tmp_path / "run" / "last.pt")


def test_a_run_that_takes_no_step_any_more_ends(project, train, tmp_path):
    """The scaler would leave out every step, the loss stay finite, and the run finish with what it began with."""
    train(project(**SCALED_VALUES), "--epochs", "9", "--batch-size", "8", status=1, infinite_from=5)
    assert torch.load(tmp_path / "run" / "last.pt", weights_only=True)["scaler"]["scale"] >= 1
