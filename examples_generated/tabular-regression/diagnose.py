"""Where the numbers went wrong, once a loss is no longer finite."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from batches import Loader
from checkpoint import load_weights, read_checkpoint
from data import Preprocessing
from model import make_model
from run_folder import RunFolder

IN_THE_DATA = "the data hold NaN or infinity: look for where"


def explain(
    step: int,
    run: RunFolder,
    loader: Loader,
    preprocessing: Preprocessing,
    model: nn.Module,
    criterion: nn.Module,
    device: torch.device,
) -> str:
    """Why the loss of `step` is not finite, as far as that step can be taken again. `loader` stands at its batch."""
    if run.last.exists():
        weights = f"the weights of {run.last}"
        model.load_state_dict(read_checkpoint(run.last)["model"])
    else:
        weights = "the initial weights"
        torch.manual_seed(run.config.seed)
        model.load_state_dict(make_model(preprocessing).state_dict())
        if run.config.init_from:
            load_weights(run.config.init_from, model)
    stage = first_bad_stage([loader.dataset[next(iter(loader.sampler))]], model, criterion, device)
    seen = (
        f"the loss of step {step} is not finite. Its batch, made again with {weights}: {stage}."
        " What was saved before is good."
    )
    if stage == IN_THE_DATA:
        return seen
    again = "--resume --accept-changes" if run.last.exists() else "--overwrite"
    return f"{seen} To try a lower rate: {again} --lr {run.config.lr / 10:g}"


def first_bad_stage(
    batches: Iterable[tuple[Tensor, Tensor]],
    model: nn.Module,
    criterion: nn.Module,
    device: torch.device,
) -> str:
    """The first of input, output, loss and gradient that is infinite or NaN in one step on `batches`, in words."""
    model.train()
    model.zero_grad()
    for features, targets in batches:
        features, targets = features.to(device), targets.to(device)
        if not (features.isfinite().all() and targets.isfinite().all()):
            return IN_THE_DATA
        predictions = model(features)
        loss = criterion(predictions, targets) / len(targets)
        if not predictions.isfinite().all():
            return "the input is finite, the model's output is not"
        if not loss.isfinite():
            return "input and output are finite, the loss is not"
        loss.backward()
    if not all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None):
        return "input, output and loss are finite, the gradient is not"
    return "all is finite there, so the weights have run away since: the learning rate is too high"
