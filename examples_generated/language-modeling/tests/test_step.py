"""The order of a step, and what it costs."""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from conftest import differences, each_step, run_to_end
from torch import nn
from torch.overrides import TorchFunctionMode

import model
import train as training
from model import Model

STEP = [
    "zero_grad",
    *["backward"] * 4,
    "clip",
    "step",
    "schedule",
]
EPOCH_END = ["evaluate"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the loop calls, in order."""
    log: list[str] = []

    def watch(owner, name: str, word: str) -> None:
        original = getattr(owner, name)

        def logged(*arguments, **named):
            log.append(word)
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, logged)

    watch(torch.optim.Optimizer, "zero_grad", "zero_grad")
    watch(torch.Tensor, "backward", "backward")
    watch(nn.utils, "clip_grad_norm_", "clip")
    watch(training, "evaluate", "evaluate")
    make_scheduler = training.make_scheduler

    def watched_scheduler(*arguments):
        scheduler = make_scheduler(*arguments)
        watch(type(scheduler), "step", "schedule")  # after it was made, which takes a step of its own
        return scheduler

    monkeypatch.setattr(training, "make_scheduler", watched_scheduler)
    with each_step(before=lambda _: log.append("step")):
        yield log


def test_the_order_of_a_step(config, calls):
    run_to_end(config)
    # 53 windows: three steps of 16 in four batches, then one of 5 in two.
    last_step = STEP.copy()
    del last_step[1:3]
    assert calls == 2 * [*3 * STEP, *last_step, *EPOCH_END]


def test_training_and_evaluation_use_their_own_mode(config):
    modes = []

    def note(module, _):
        if isinstance(module, Model):
            modes.append((module.training, torch.is_grad_enabled()))

    hook = nn.modules.module.register_module_forward_pre_hook(note)
    run_to_end(config, eval_every=2)
    hook.remove()
    assert set(modes) == {(True, True), (False, False)}
    phases = [mode for mode, _ in itertools.groupby(modes)]
    evaluations = 4
    assert len(phases) == 2 * evaluations  # training comes back after each evaluation, in an epoch too


def test_every_parameter_is_trained_once_and_only_matrices_decay(config):
    model = training.make_model(training.Preprocessing.fit(config)).to("cpu")
    optimizer = training.make_optimizer(model, config)
    given = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    assert len(given) == len(set(given))
    assert set(given) == set(model.parameters())
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            assert group["weight_decay"] == (config.weight_decay if parameter.ndim >= 2 else 0)


def test_a_step_changes_every_parameter(config, monkeypatch):
    models = []
    make_model = training.make_model

    def kept(*arguments, **settings):
        models.append(make_model(*arguments, **settings))
        before.update({name: value.clone() for name, value in models[-1].named_parameters()})
        return models[-1]

    before: dict[str, torch.Tensor] = {}
    monkeypatch.setattr(training, "make_model", kept)
    run_to_end(config, epochs=1)
    same = [name for name, value in models[0].named_parameters() if torch.equal(before[name], value)]
    assert same == []


def gradients_of_each_step(config) -> list[dict[str, torch.Tensor]]:
    """As the optimizer gets them, of a run whose weights stand still."""
    models, steps = [], []

    def kept(*arguments, **settings):
        models.append(make_model(*arguments, **settings))
        return models[-1]

    def note(_):
        named = models[-1].named_parameters()
        steps.append({name: weights.grad.clone() for name, weights in named if weights.grad is not None})

    make_model = training.make_model
    with each_step(before=note), pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "make_model", kept)
        run_to_end(config, epochs=1, lr=1e-12, max_grad_norm=1e9, overwrite=True)
    return steps


def test_the_gradient_of_a_split_step_is_that_of_one_big_batch(config, monkeypatch):
    """Without dropout and augmentation, in float32: what is left is the sum."""
    monkeypatch.setattr(Model, "train", lambda model, mode=True: nn.Module.train(model, False))
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
    loader = training.training_loader

    def plain(data, config):
        data.augment = False
        return loader(data, config)

    monkeypatch.setattr(training, "training_loader", plain)
    split = gradients_of_each_step(config)
    whole = gradients_of_each_step(replace(config, accumulate=1))
    assert len(split) == len(whole) == 4  # the last step is smaller, and its batches are of two sizes
    for one, other in zip(split, whole, strict=True):
        for name, gradient in one.items():
            assert gradient.norm() > 0, name
            assert (gradient - other[name]).norm() < 1e-4 * gradient.norm(), name


def test_recomputing_activations_changes_nothing(config, tmp_path, monkeypatch):
    kept = run_to_end(config, epochs=1)
    checkpointed = []
    checkpoint = model.checkpoint
    monkeypatch.setattr(model, "checkpoint", lambda *a, **named: checkpointed.append(1) or checkpoint(*a, **named))
    recomputed = run_to_end(config, epochs=1, run_dir=tmp_path / "recomputed", activation_checkpointing=True)
    assert checkpointed
    for part in ("model", "optimizer", "random", "train_loss"):
        assert differences(kept[part], recomputed[part]) == []


class Reads(TorchFunctionMode):
    """Notes every call that makes the host wait for a tensor's value."""

    WAITING = {
        getattr(torch.Tensor, name)
        for name in ("item", "tolist", "numpy", "cpu", "__bool__", "__float__", "__int__", "__format__", "__repr__")
    }

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.watching = False

    def __torch_function__(self, function, types, arguments=(), named=None):
        # The number of tokens is an int, and counted before they leave the CPU.
        if self.watching and function in self.WAITING and arguments[0].is_floating_point():
            self.seen.append(function.__name__)
        return function(*arguments, **(named or {}))


def test_a_step_never_waits_for_the_device(config, monkeypatch):
    reads = Reads()

    def watched(batches, *_):
        for batch in batches:
            reads.watching = True
            yield batch
            reads.watching = False

    monkeypatch.setattr(training, "bar", watched)
    with reads:
        run_to_end(config, log_every=1000)
    assert reads.seen == []
