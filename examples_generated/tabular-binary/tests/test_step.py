"""The order of a step, and what it costs."""

import itertools
import json
import weakref
from collections.abc import Iterator

import pytest
import torch
from conftest import each_step, run_to_end
from torch import nn
from torch.overrides import TorchFunctionMode

import train as training
from model import Model

STEP = [
    "zero_grad",
    "backward",
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
            length = len(log)
            result = original(*arguments, **named)
            del log[length:]  # what it calls itself
            return result

        monkeypatch.setattr(owner, name, logged)

    watch(torch.optim.Optimizer, "zero_grad", "zero_grad")
    watch(torch.Tensor, "backward", "backward")
    watch(training, "evaluate", "evaluate")
    make_scheduler = training.make_scheduler

    def watched_scheduler(*arguments):
        scheduler = make_scheduler(*arguments)
        watch(type(scheduler), "step", "schedule")  # after it was made, which takes a step of its own
        return scheduler

    monkeypatch.setattr(training, "make_scheduler", watched_scheduler)
    with each_step(before=lambda _: log.append("step")):
        yield log


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[nn.Module]:
    """The models that training makes."""
    made: list[nn.Module] = []
    make_model = training.make_model

    def kept(*arguments, **settings):
        made.append(make_model(*arguments, **settings))
        return made[-1]

    monkeypatch.setattr(training, "make_model", kept)
    return made


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: weights.detach().clone() for name, weights in model.named_parameters()}


def test_the_order_of_a_step(config, calls):
    run_to_end(config)
    assert calls == 2 * [*5 * STEP, *EPOCH_END]  # 53 rows: four batches of 12, then one of 5


def test_training_and_evaluation_use_their_own_mode(config):
    modes = []

    def note(module, _):
        if isinstance(module, Model):
            modes.append((module.training, torch.is_grad_enabled()))

    hook = nn.modules.module.register_module_forward_pre_hook(note)
    try:
        run_to_end(config, eval_every=2)
    finally:
        hook.remove()
    assert set(modes) == {(True, True), (False, False)}
    phases = [mode for mode, _ in itertools.groupby(modes)]
    evaluations = 6  # after steps 2, 4, 5, 6, 8 and 10
    assert len(phases) == 2 * evaluations  # training comes back after each evaluation, in an epoch too


def test_every_parameter_is_trained_once_and_only_matrices_decay(config):
    model = training.make_model(training.Preprocessing.fit(config))
    optimizer = training.make_optimizer(model, config)
    given = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    assert len(given) == len(set(given))
    assert set(given) == set(model.parameters())
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            assert group["weight_decay"] == (config.weight_decay if parameter.ndim >= 2 else 0)


def test_an_epoch_changes_every_parameter(config, models, monkeypatch):
    """Of those that the model has when it is trained, whatever it had when it was made."""
    # As on a device whose tensors are of another kind, model.to() leaves new parameters; on a CPU it leaves the old.
    monkeypatch.setattr(torch.__future__, "get_overwrite_module_params_on_conversion", lambda: True)
    before = []
    with each_step(before=lambda _: before.append(weights_of(models[0]))):
        run_to_end(config, epochs=1)
    after = weights_of(models[0])
    same = [name for name, weights in before[0].items() if torch.equal(weights, after[name])]
    assert same == []


def gradients_of_each_step(config, models, **changes) -> list[dict[str, torch.Tensor]]:
    """As the optimizer gets them, of a run whose weights stand still."""
    steps = []

    def note(_):
        named = models[-1].named_parameters()
        steps.append({name: weights.grad.clone() for name, weights in named if weights.grad is not None})

    with each_step(before=note):
        run_to_end(config, epochs=1, lr=1e-12, log_every=1, overwrite=True, **changes)
    return steps


def test_the_gradient_norm_is_that_of_the_step(config, models):
    whole = gradients_of_each_step(config, models)
    norms = [nn.utils.get_total_norm(gradients.values()).item() for gradients in whole]
    rows = map(json.loads, (config.run_dir / "metrics.jsonl").read_text().splitlines())
    assert [row["grad_norm"] for row in rows if "grad_norm" in row] == pytest.approx(norms, rel=1e-4)


def test_no_step_keeps_the_graph_of_an_earlier_one(config, monkeypatch):
    """They would fill the memory, step by step."""
    losses, alive = [], []
    make_criterion = training.make_criterion

    def note(criterion, arguments, loss_sum):
        if loss_sum.requires_grad:
            alive.append(sum(loss() is not None for loss in losses))
            losses.append(weakref.ref(loss_sum))

    def watched(*weights):
        criterion = make_criterion(*weights)
        criterion.register_forward_hook(note)
        return criterion

    monkeypatch.setattr(training, "make_criterion", watched)
    run_to_end(config, log_every=1000)
    assert len(losses) >= 10
    assert max(alive) == 1  # the one before, until its variable has the new one


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
        if self.watching and function in self.WAITING:
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
