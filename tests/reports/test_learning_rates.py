"""Rates that start over after a resume, run too fast, jump, freeze, or fall while the model improves."""

import math
import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

import tracing
from modules import imported
from plainloop.catalogue import catalogue
from plainloop.render import render
from projects import differences
from tracing import Event, values_of

pytestmark = pytest.mark.xdist_group("reports of learning rates")

OPTIMIZERS = ["sgd", "adagrad", "radam", "adamw"]
SCHEDULERS = [name for name, facts in catalogue()["schedulers"].items() if facts["steps"] != "never"]
PIECES = [range(5), range(5, 6), range(6, 12)]  # of twelve steps, or epochs


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_rates_of_a_resumed_run_are_those_of_a_whole_one(scheduler, tmp_path):
    """From the first step on; and to resume and save again moves nothing. What is saved are plain numbers."""
    optimizer_name = OPTIMIZERS[SCHEDULERS.index(scheduler) % len(OPTIMIZERS)]
    answers = {"task": "tabular-regression", "scheduler": scheduler, "optimizer": optimizer_name}
    steps = catalogue()["schedulers"][scheduler]["steps"]
    names = "config", "train", "checkpoint", "schedule"
    with (
        imported(tmp_path, answers, *names) as [config, train, checkpoint, schedule],
        warnings.catch_warnings(action="error"),
    ):
        settings = config.Config(epochs=3 if steps == "step" else 12)
        path = tmp_path / "last.pt"

        def begin() -> dict[str, Any]:
            model = torch.nn.Linear(2, 2)
            optimizer = train.make_optimizer(model, settings)
            of_step = [4] if steps == "step" else []
            scheduler = schedule.make_scheduler(optimizer, settings, *of_step)
            return {"model": model, "optimizer": optimizer, "scheduler": scheduler}

        def go_on(state: dict[str, Any], piece: range) -> list[float]:
            rates = []
            for step in piece:
                rates.append(state["optimizer"].param_groups[0]["lr"])
                state["optimizer"].step()
                # On a metric: better once, and never again.
                state["scheduler"].step(*[float(step > 0)] if steps == "metric" else [])
            return rates

        whole = go_on(begin(), range(12))
        pieces = []
        state = begin()
        for piece in PIECES:
            pieces += go_on(state, piece)
            checkpoint.save_checkpoint(path, state, config={})
            saved = checkpoint.read_checkpoint(path)
            for _ in range(2):
                state = begin()
                checkpoint.restore(checkpoint.read_checkpoint(path), state, path, new_settings=False)
                checkpoint.save_checkpoint(path, state, config={})
                assert not differences(saved, checkpoint.read_checkpoint(path))
    assert pieces == whole
    assert len(set(whole)) > 1
    assert "optimizer" not in saved["scheduler"]


MUON = {"task": "tabular-regression", "scheduler": "warmup-linear", "optimizer": "muon", "gradient_accumulation": True}
ONE_CYCLE = {"task": "tabular-regression", "scheduler": "one-cycle", "optimizer": "adam", "gradient_accumulation": True}


@pytest.fixture
def train(warm, tmp_path) -> Callable[..., list[Event]]:
    return partial(tracing.train, warm, tmp_path)


@pytest.mark.parametrize("answers", [MUON, ONE_CYCLE], ids=["warmup-linear", "one-cycle"])
def test_train_resumes_a_schedule_where_it_was(project, train, tmp_path, answers):
    """Also after a resume that was stopped before its first step."""
    made = project(**answers)
    flags = ["--epochs", "2", "--batch-size", "8", "--accumulate", "2"]
    whole = values_of(train(made, *flags), "step")
    train(made, *flags, "--overwrite", stop=3, status=143)
    stopped = torch.load(tmp_path / "run" / "last.pt", weights_only=True)
    resumed = train(made, *flags, "--resume", stop=0, status=143)
    assert not values_of(resumed, "step")
    assert not differences(stopped, torch.load(tmp_path / "run" / "last.pt", weights_only=True))
    assert values_of(train(made, *flags, "--resume"), "step") == whole[3:]


@pytest.mark.parametrize(
    ("rows", "batch_size", "accumulate"), [(100, 8, 1), (100, 24, 3), (13, 12, 3), (9, 20, 2)], ids=str
)
def test_the_schedule_ends_with_the_run(project, train, rows, batch_size, accumulate):
    """torch refuses a step more of this one; a step less, and its last rate would be another."""
    flags = ["--epochs", "3", "--batch-size", str(batch_size), "--accumulate", str(accumulate), "--lr", "0.01"]
    events = train(project(**ONE_CYCLE), *flags, rows=rows)
    rates = values_of(events, "step")
    assert len(rates) == len(values_of(events, "schedule")) == 3 * math.ceil(rows / batch_size)
    assert rates[-1] == pytest.approx(0.01 / 25 / 1e4)


METRICS = {
    ("tabular-classification", "binary"): "max",
    ("tabular-classification", "multiclass"): "max",
    ("tabular-classification", "multilabel"): "max",
    ("image-segmentation", None): "max",
    ("token-classification", None): "max",
    ("tabular-regression", None): "min",
    ("text-regression", None): "min",
    ("language-modeling", None): "min",
    ("time-series-forecasting", None): "min",
}


@pytest.mark.parametrize(("task", "labels"), METRICS, ids=str)
@pytest.mark.parametrize("monitor", ["loss", "metric"])
def test_a_plateau_looks_in_the_direction_of_the_best(task, labels, monitor):
    answers = {"task": task, "scheduler": "plateau", "monitor": monitor} | ({"labels": labels} if labels else {})
    written = render(answers)
    mode = "min" if monitor == "loss" else METRICS[task, labels]
    assert f'mode="{mode}"' in written["schedule.py"]
    start, comparison = {"min": (r"math\.inf", "<"), "max": (r"-math\.inf", ">")}[mode]
    (best,) = re.findall(rf"(best_val_\w+): float = {start}\n", written["train.py"])
    assert f"] {comparison} progress.{best}:" in written["train.py"]


RATE_BY_LOSS = {"task": "tabular-regression", "scheduler": "plateau"}
RATE_BY_ACCURACY = {"task": "tabular-classification", "labels": "binary", "scheduler": "plateau", "monitor": "metric"}


@pytest.mark.parametrize(
    ("answers", "name", "worse"),
    [(RATE_BY_LOSS, "loss", 0.1), (RATE_BY_ACCURACY, "accuracy", -0.1)],
    ids=["loss", "accuracy"],
)
def test_the_rate_falls_when_nothing_improves(project, train, answers, name, worse):
    """It looks at every evaluation, at those within an epoch too, and at nothing else."""
    flags = ["--batch-size", "8", "--epochs", "2", "--eval-every", "2", "--lr-patience", "1", "--lr", "0.01"]
    getting_worse = [0.5 + worse * i for i in range(4)]
    rates = {}
    for direction in (1, -1):
        scores = [name, getting_worse[::direction]]
        events = train(project(**answers), *flags, "--overwrite", scores=scores)
        rates[direction] = values_of(events, "step")
        looked = [word for word, _ in events if word in ("evaluate", "schedule")]
        assert looked == ["evaluate", "schedule"] * 4
    assert rates[-1] == [0.01] * 8
    assert rates[1] == pytest.approx([0.01] * 6 + [0.001] * 2)


@pytest.mark.parametrize("scheduler", [name for name, facts in catalogue()["schedulers"].items() if "warmup" in facts])
def test_a_warm_up_joins_what_follows(scheduler, tmp_path):
    with imported(tmp_path, {"scheduler": scheduler}, "config", "schedule") as [config, schedule]:

        def rates(warmup_steps: int) -> list[float]:
            return schedule.planned_rates(config.Config(lr=1.0, epochs=5, warmup_steps=warmup_steps), 10)

        without, half = rates(0), rates(25)
    assert without[0] == max(without) == 1
    assert half[:25] == pytest.approx([step / 25 for step in range(1, 26)])
    assert 0.95 < half[25] <= 1  # what follows begins there, and not at step 0


@pytest.mark.parametrize(("scheduler", "epochs"), [("warmup-cosine", 3), ("cosine", 20), ("polynomial", 20)])
def test_a_decay_goes_all_the_way_down_and_never_up(scheduler, epochs, tmp_path):
    with imported(tmp_path, {"scheduler": scheduler}, "config", "schedule") as [config, schedule]:
        settings = {"warmup_steps": 0} if scheduler == "warmup-cosine" else {}
        rates = schedule.planned_rates(config.Config(lr=1.0, epochs=epochs, **settings), 10)
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 1
    assert rates[-1] < 0.01
