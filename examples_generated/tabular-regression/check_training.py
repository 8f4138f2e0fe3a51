"""Does it learn, at what rate, and what does that cost? Each on a copy of the model. For check.py."""

import copy
import math
import os
import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from check_setup import Finding, Project
from train import make_optimizer, seed_all

SECONDS = 5
"""For what would take longer on a slow machine."""


class Trial:
    """Steps as train.py takes them, at the full learning rate, with a copy of the model."""

    def __init__(self, project: Project, *, dropout: bool) -> None:
        seed_all(project.config.seed)
        self.losses: list[float] = []  # of each forward pass
        self.project, self.model = project, copy.deepcopy(project.model).to(project.device).train()
        for module in self.model.modules():
            if isinstance(module, nn.modules.dropout._DropoutNd) and not dropout:
                module.p = 0.0
        self.optimizer = make_optimizer(self.model, project.config)

    def step(self, features: Tensor, targets: Tensor) -> None:
        self.optimizer.zero_grad()
        loss = self.project.loss_of(self.project.outputs_of(self.model, features), targets)
        loss.backward()
        nn.utils.clip_grad_value_(self.model.parameters(), self.project.config.max_grad_value)
        self.optimizer.step()
        self.losses.append(loss.item())


def learnt_by_heart(project: Project) -> Iterator[Finding]:
    """Who cannot learn one batch by heart learns nothing from many."""
    trial, lr, started = Trial(project, dropout=False), project.config.lr, time.monotonic()
    while len(trial.losses) < 100 and (len(trial.losses) < 2 or time.monotonic() - started < SECONDS):
        trial.step(project.features, project.targets)
        first, last = trial.losses[0], trial.losses[-1]
        seen = f"one batch again and again: loss {first:.4g} to {last:.4g} in {len(trial.losses)} passes"
        if not math.isfinite(last) or last - first > 10 * abs(first):
            yield "wrong", f"{seen}: the learning rate of {lr:g} is too high; try --lr {lr / 10:g} or less"
            return
        if last < first - 0.75 * abs(first):
            yield "ok", f"{seen}: it is learnt by heart"
            return
    if len(trial.losses) < 100 and last < first:
        yield "ok", f"{seen}, which is as far as {SECONDS} seconds go"
    else:
        rates = f"--lr {10 * lr:g} and {lr / 10:g}"
        yield "warning", f"{seen}: not learnt by heart, and all data are harder; try {rates}, then look at model.py"


def learning_rate(project: Project) -> Iterator[Finding]:
    """How many steps it has to work with, and how high it comes."""
    config, n_train = project.config, len(project.splits["train"])
    total = config.epochs * project.steps_per_epoch
    if config.batch_size > n_train:
        seen = f"--batch-size {config.batch_size} is more than the {n_train} training rows"
        yield "warning", f"{seen}: each epoch is one step, {total:,} in all; lower it"
    yield "ok", f"learning rate {config.lr:g} for {total:,} steps, until val_loss stops improving"


def speed(project: Project) -> Iterator[Finding]:
    """How long the run will take, and whether the data come in time."""
    trial, workers, cores = Trial(project, dropout=True), project.config.num_workers, os.cpu_count() or 1
    if workers > 2 * cores:
        yield "warning", f"--num-workers {workers} on {cores} cores: they hinder each other; give at most {cores}"
    waited, worked, steps = 0.0, 0.0, 0
    started = asked = time.perf_counter()
    for features, targets in project.train_loader:
        got = time.perf_counter()
        trial.step(features, targets)  # which reads the loss: the device is done
        if steps:
            waited += got - asked  # not the first time, when the workers start
        asked = time.perf_counter()
        worked += asked - got
        steps += 1
        if steps == 20 or asked - started > SECONDS:
            break
    share = waited / (waited + worked)
    minutes = (waited + worked) / steps * len(project.train_loader) * project.config.epochs / 60
    seen = f"{100 * share:.0f}% of the time is spent waiting for data, with --num-workers {workers} on {cores} cores"
    if share > 0.5 and workers < cores - 1:
        yield "warning", f"{seen}: the device idles; give --num-workers {cores - 1}"
    else:
        yield "ok", f"{seen}; the run takes about {max(minutes, 0.1):.1f} minutes, its evaluations not counted"


def memory(project: Project) -> Iterator[Finding]:
    """What a step holds at once."""
    trial = Trial(project, dropout=True)
    measured = project.device.type in ("cuda", "xpu")
    if measured:
        torch.accelerator.reset_peak_memory_stats()
    activations: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        activations[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = project.loss_of(project.outputs_of(trial.model, project.features), project.targets)
    for parameter in trial.model.parameters():
        activations.pop(parameter.untyped_storage().data_ptr(), None)  # kept in any case
    del loss
    trial.step(project.features, project.targets)
    weights = sum(parameter.numel() * parameter.element_size() for parameter in trial.model.parameters())
    state = sum(
        value.numel() * value.element_size()
        for values in trial.optimizer.state.values()
        for value in values.values()
        if isinstance(value, Tensor)
    )
    parts = {"weights": weights, "gradients": weights, "optimizer": state, "activations": sum(activations.values())}
    listed = ", ".join(f"{name} {size / 2**20:.1f}" for name, size in parts.items())
    yield "ok", f"memory of a step, estimated: {sum(parts.values()) / 2**20:.1f} MiB ({listed})"
    if measured:
        peak, (_, total) = torch.accelerator.max_memory_allocated(), torch.accelerator.get_memory_info()
        yield "ok", f"memory of a step, measured: {peak / 2**30:.2f} of {total / 2**30:.0f} GiB on {project.device}"


LOOKS_AT_TRAINING = (learnt_by_heart, learning_rate, speed, memory)
