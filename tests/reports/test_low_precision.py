"""Low precision that reaches where it should not, a scaler that forgets, a schedule that a skipped step confuses."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

import tracing
from modules import imported, imported_from
from plainloop.questionnaire import resolve
from plainloop.space import valid
from projects import differences
from tracing import Event, values_of

pytestmark = pytest.mark.xdist_group("reports of low precision")

BFLOAT16 = {"task": "tabular-regression", "amp": "bf16", "optimizer": "adafactor", "ema": True}
SCALED = {"task": "tabular-classification", "labels": "binary", "optimizer": "sgd", "amp": "fp16"}
SCALED_BY_EPOCH = {"task": "tabular-regression", "amp": "fp16", "optimizer": "radam", "scheduler": "cosine"}
TWO_BY_FOUR = ["--epochs", "2", "--batch-size", "8"]  # four steps in an epoch
SCALE = 2.0**36
"""Where the loss scaler begins, so that the first steps overflow by themselves."""


@pytest.fixture
def train(warm, tmp_path) -> Callable[..., list[Event]]:
    return partial(tracing.train, warm, tmp_path)


def tensors(state: Any) -> list[torch.Tensor]:
    """All that a part of a checkpoint holds."""
    if isinstance(state, torch.Tensor):
        return [state]
    inner = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else []
    return [tensor for part in inner for tensor in tensors(part)]


def test_bfloat16_is_for_the_forward_pass_alone(project, train, tmp_path):
    """No loss scaler, and weights, their average and what the optimizer remembers of them stay float32."""
    events = train(project(**BFLOAT16), *TWO_BY_FOUR, bfloat16=True)
    assert {tuple(value) for value in values_of(events, "autocast")} == {("cpu", "torch.bfloat16")}
    assert not values_of(events, "make scaler")
    last = torch.load(tmp_path / "run" / "last.pt", weights_only=True)
    kept = [tensor for part in ("model", "ema", "optimizer") for tensor in tensors(last[part])]
    assert {tensor.dtype for tensor in kept if tensor.is_floating_point()} == {torch.float32}


@pytest.mark.parametrize(
    "answers",
    [
        {"task": "tabular-classification", "labels": "binary", "amp": "bf16"},
        {"task": "tabular-regression", "loss": "quantile", "amp": "bf16"},
        {"task": "image-segmentation"},
        {"task": "token-classification"},
        {"task": "time-series-forecasting", "amp": "bf16"},
    ],
    ids=lambda answers: answers["task"],
)
def test_evaluation_in_bfloat16(project, answers, monkeypatch):
    """Its outputs become the numbers of the metrics, and the loss is that of float32 but for the rounding."""
    made = project(**answers)
    names = "config", "data", "model", "evaluate", "metrics", "batches"
    with imported_from(made, *names) as [config, data, model, evaluate, metrics, batches]:
        settings = config.Config(data_dir=made / "data", batch_size=16, num_workers=0)
        preprocessing = data.Preprocessing.fit(settings)
        val_set = getattr(data, resolve(answers)["dataset"])(settings, "val", preprocessing)
        loader = batches.evaluation_loader(val_set, settings)
        torch.manual_seed(0)
        untrained, device = model.make_model(preprocessing), torch.device("cpu")
        quantiles = [preprocessing.quantiles] if "loss" in answers else []
        values = []
        for bfloat16 in (False, True):
            monkeypatch.setattr(evaluate, "has_bfloat16", lambda _, answer=bfloat16: answer)
            few = itertools.islice(loader, 2)
            sums = metrics.Metrics(preprocessing, device)
            values.append(evaluate.evaluate(untrained, few, evaluate.make_criterion(*quantiles), sums, device))
    in_float32, in_bfloat16 = values
    assert in_bfloat16 != in_float32
    assert in_bfloat16["loss"] == pytest.approx(in_float32["loss"], rel=0.02)
    assert {type(value) for value in in_bfloat16.values()} == {float}
    assert in_bfloat16.keys() == in_float32.keys()


def test_a_resumed_run_goes_on_at_its_loss_scale(project, train, tmp_path):
    made = project(**SCALED)
    whole = train(made, *TWO_BY_FOUR, run="whole", scale=SCALE)
    train(made, *TWO_BY_FOUR, scale=SCALE, stop=3, status=143)
    resumed = train(made, *TWO_BY_FOUR, "--resume", scale=SCALE)
    scales = values_of(whole, "update")
    assert scales[:3] == [SCALE / 2, SCALE / 4, SCALE / 8]
    assert values_of(resumed, "update") == scales[3:]
    one, other = (torch.load(tmp_path / run / "last.pt", weights_only=True) for run in ("whole", "run"))
    assert not differences(one, other)


@pytest.mark.parametrize(("answers", "moves"), [(SCALED, 8), (SCALED_BY_EPOCH, 2)], ids=["by steps", "by epochs"])
def test_the_schedule_counts_steps_that_the_scaler_leaves_out(project, train, answers, moves):
    """torch warns of it, and any warning ends this run. To ask whether a step was taken would wait for the device."""
    events = train(project(**answers), *TWO_BY_FOUR, scale=SCALE)
    scales = values_of(events, "update")
    assert scales[0] == SCALE / 2
    assert len(scales) == len(values_of(events, "step")) == 8
    assert len(values_of(events, "schedule")) == moves


SCALABLE = sorted({answers["optimizer"] for answers in valid("optimizer", "amp") if answers["amp"] == "fp16"})


@pytest.mark.parametrize("name", SCALABLE)
def test_a_first_step_that_is_left_out_leaves_no_trace(name, tmp_path):
    """What an optimizer remembers is made in its first step, of memory that may hold anything."""
    answers = {"task": "tabular-regression", "optimizer": name, "amp": "fp16"}
    with imported(tmp_path, answers, "config", "train") as [config, train]:

        def weights_after(*gradients: float) -> list[torch.Tensor]:
            torch.manual_seed(0)
            model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(3)))
            optimizer = train.make_optimizer(model, config.Config())
            if name == "schedule-free-adamw":
                optimizer.train()
            scaler = torch.amp.GradScaler("cpu")
            dirty = [torch.full_like(weights, 1e9) for weights in model.parameters() for _ in range(9)]
            del dirty
            for gradient in gradients:
                scaler.scale(torch.zeros(1))
                for weights in model.parameters():
                    weights.grad = torch.full_like(weights, gradient * scaler.get_scale())
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
            return list(model.parameters())

        left_out, not_there = weights_after(math.inf, 2.0, 1.0), weights_after(2.0, 1.0)
    for one, other in zip(left_out, not_there, strict=True):
        assert torch.equal(one, other)
