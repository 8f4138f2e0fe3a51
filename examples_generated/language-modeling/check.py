"""Checks of your data and your model that take seconds, before a run that takes hours.

Usage:
    python check.py                     exit status 1 if something is wrong
    python check.py --data-dir mine     it takes the flags of train.py
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
import tyro
from tokenizers import Tokenizer
from torch import Tensor, nn

from batches import BadData, training_loader
from checkpoint import load_weights
from config import Config
from data import IGNORE, Preprocessing, Windows
from evaluate import has_bfloat16, make_criterion
from model import make_model
from schedule import planned_rates
from train import seed_all

# "ok", "warning" or "wrong", and one line: what was seen, why it matters, what to do.
Finding = tuple[str, str]


@dataclass
class Project:
    """Your data and your model as train.py puts them together, and the first batch of the first epoch."""

    config: Config
    device: torch.device
    preprocessing: Preprocessing
    train_set: Windows
    steps_per_epoch: int
    indices: list[int]  # of the windows in the batch
    tokens: Tensor
    next_tokens: Tensor
    model: nn.Module

    @cached_property
    def logits(self) -> Tensor:
        """As the first step sees them: dropout on."""
        self.model.train()
        tokens = self.tokens.to(self.device)
        autocast = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=has_bfloat16(self.device))
        with torch.no_grad(), autocast:
            return self.model(tokens).float().cpu()


def check(config: Config) -> None:
    project = put_together(config)
    wrong = False
    for look_at in (one_batch, one_sample, forward_pass, first_loss, learning_rate):
        for verdict, line in look_at(project):
            print(f"{verdict:8} {line}")
            wrong = wrong or verdict == "wrong"
        if wrong:
            raise SystemExit(1)  # what follows rests on it
    print("next: python train.py")


def put_together(config: Config) -> Project:
    seed_all(config.seed)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    preprocessing = Preprocessing.fit(config)
    train_set = Windows(config, "train", preprocessing, augment=True)
    Windows(config, "val", preprocessing)  # what cannot be read there should not wait for the first evaluation
    train_loader = training_loader(train_set, config)
    steps_per_epoch = math.ceil(len(train_loader) / config.accumulate)
    key = next(iter(train_loader.sampler))
    try:
        tokens, next_tokens = train_set[key]
    except BadData as error:
        raise SystemExit(str(error)) from None
    model = make_model(preprocessing).to(device)
    if config.init_from:
        load_weights(config.init_from, model)
    return Project(config, device, preprocessing, train_set, steps_per_epoch, key[1], tokens, next_tokens, model)


def one_sample(project: Project) -> Iterator[Finding]:
    """The start of a window as the model sees it: only a person sees whether it reads well."""
    tokenizer = Tokenizer.from_str(project.preprocessing.tokenizer)
    tokens, next_tokens = project.tokens[0].tolist(), project.next_tokens[0].tolist()
    yield "ok", f"a window of {len(tokens)} tokens begins {tokenizer.decode(tokens)[:200]!r}"
    pairs = [pair for pair in zip(tokens, next_tokens, strict=True) if pair[1] != IGNORE][:8]
    named = [f"{tokenizer.decode([token])!r} by {tokenizer.decode([following])!r}" for token, following in pairs]
    yield "ok", f"the model is to follow {', '.join(named)} …"


def one_batch(project: Project) -> Iterator[Finding]:
    """Shapes, types and ranges."""
    tokens = project.tokens
    vocabulary = len(project.preprocessing.bytes_per_token)
    seen = described("tokens", tokens)
    if tokens.dtype != torch.int64 or tokens.ndim != 2:
        yield "wrong", f"{seen}: the model takes token numbers (N, T) of type int64; correct them in data.py"
    elif tokens.min() < 0 or tokens.max() >= vocabulary:
        yield "wrong", f"{seen}: {vocabulary} tokens have the numbers 0 to {vocabulary - 1}; correct them in data.py"
    else:
        yield "ok", seen

    next_tokens = project.next_tokens
    seen = described("next_tokens", next_tokens)
    if next_tokens.dtype != torch.int64 or next_tokens.shape != tokens.shape:
        yield "wrong", f"{seen}: they must be like tokens in shape and type; correct them in data.py"
    elif (next_tokens[:, :-1] != tokens[:, 1:])[next_tokens[:, :-1] != IGNORE].any():
        yield "wrong", f"{seen}: they are not tokens moved by one, so the model learns something else; see data.py"
    else:
        yield "ok", seen


def forward_pass(project: Project) -> Iterator[Finding]:
    """Does the model take the batch, and give what the loss takes?"""
    n_parameters = sum(parameter.numel() for parameter in project.model.parameters())
    trained = sum(parameter.numel() for parameter in project.model.parameters() if parameter.requires_grad)
    if not n_parameters:
        yield "wrong", "the model has no parameters: those of layers in a plain list are not found; use nn.ModuleList"
        return
    if not trained:
        yield "wrong", f"all of {n_parameters:,} parameters are frozen: nothing would be trained; see requires_grad"
        return
    try:
        shape = tuple(project.logits.shape)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        reason = " ".join(str(error).split())
        yield "wrong", f"the model does not take the batch ({reason}); correct model.py, or the shapes in data.py"
        return
    expected = (*project.next_tokens.shape, len(project.preprocessing.bytes_per_token))
    if shape != expected:
        yield "wrong", f"logits {shape}, but the loss takes {expected} with the next_tokens; correct model.py"
    elif not project.logits.isfinite().all():
        yield "wrong", "NaN or infinity in the logits, none in the batch: look for where in model.py"
    else:
        of_them = "" if trained == n_parameters else f", of which {trained:,} are trained"
        yield "ok", f"logits {shape} from {n_parameters:,} parameters{of_them}"


def first_loss(project: Project) -> Iterator[Finding]:
    """Before the first step a model knows nothing, and the loss of knowing nothing is known."""
    logits, next_tokens = project.logits.flatten(0, 1), project.next_tokens.flatten()
    n_tokens = (next_tokens != IGNORE).sum()
    criterion = make_criterion()
    loss = criterion(logits, next_tokens) / n_tokens
    expected = criterion(torch.zeros_like(logits), next_tokens) / n_tokens
    halves = zip(logits.chunk(2), next_tokens.chunk(2), strict=True)
    added = sum(criterion(*half) for half in halves) / n_tokens
    seen = f"loss {loss:.4f} before the first step; a model that holds all tokens equally likely has {expected:.4f}"
    if not torch.isclose(added, loss, rtol=1e-3):
        yield "wrong", f"loss {loss:.4f}, {added:.4f} by its halves: train.py divides sums; give the loss reduction sum"
    elif loss > 5 * expected:
        yield "warning", f"{seen}: too large logits; scale the input or the last layer's weights"
    elif loss < 0.5 * expected and not project.config.init_from:
        yield "warning", f"{seen}: it seems to know the answer; is that part of the input?"
    else:
        yield "ok", seen


def learning_rate(project: Project) -> Iterator[Finding]:
    """How many steps it has to work with, and how high it comes."""
    config = project.config
    total = config.epochs * project.steps_per_epoch
    peak = max(planned_rates(config, project.steps_per_epoch))
    yield "ok", f"{total:,} steps at a learning rate up to {peak:g}; python train.py --show-schedule shows each"


def described(name: str, tensor: Tensor) -> str:
    low, high = tensor.aminmax()
    return f"{name} {tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')} from {low:.4g} to {high:.4g}"


if __name__ == "__main__":
    check(tyro.cli(Config))
