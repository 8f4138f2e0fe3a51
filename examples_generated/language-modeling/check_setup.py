"""Your data and your model as train.py puts them together, for check.py."""

import math
import os
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from batches import BadData, Loader, training_loader
from checkpoint import load_weights
from config import Config
from data import IGNORE, Preprocessing, Windows
from evaluate import has_bfloat16, make_criterion
from model import make_model
from train import seed_all

# "ok", "warning" or "wrong", and one line: what was seen, why it matters, what to do.
Finding = tuple[str, str]


@dataclass
class Project:
    """Data, model and loss, and the first batch of the first epoch."""

    config: Config
    device: torch.device
    preprocessing: Preprocessing
    splits: dict[str, Windows]  # train and val, as they are without augmentation
    train_loader: Loader
    steps_per_epoch: int
    tokens: Tensor
    next_tokens: Tensor
    model: nn.Module
    criterion: nn.Module
    logits: Tensor = field(init=False)  # of the batch, once the model has been given it
    uses: dict[nn.Parameter, bool] = field(init=False)  # in that forward pass; whether torch keeps track of them

    def outputs_of(self, model: nn.Module, tokens: Tensor) -> Tensor:
        """The logits, in the precision of train.py."""
        tokens = tokens.to(self.device)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=has_bfloat16(self.device)):
            return model(tokens)

    def loss_of(self, logits: Tensor, next_tokens: Tensor) -> Tensor:
        """The mean over the tokens, as train.py divides it."""
        next_tokens = next_tokens.to(logits.device)
        n_tokens = (next_tokens != IGNORE).sum().clamp(min=1)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=has_bfloat16(self.device)):
            return self.criterion(logits.flatten(0, 1), next_tokens.flatten()) / n_tokens


def put_together(config: Config) -> Project:
    seed_all(config.seed)
    if config.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    preprocessing = Preprocessing.fit(config)
    splits = {split: Windows(config, split, preprocessing) for split in ("train", "val")}
    train_set = Windows(config, "train", preprocessing, augment=True)
    train_loader = training_loader(train_set, config)
    steps_per_epoch = math.ceil(len(train_loader) / config.accumulate)
    key = next(iter(train_loader.sampler))
    try:
        tokens, next_tokens = train_set[key]
    except BadData as error:
        raise SystemExit(str(error)) from None
    model = make_model(preprocessing, recompute=config.activation_checkpointing)
    if config.init_from:
        print(load_weights(config.init_from, model))
    criterion = make_criterion()
    return Project(
        config=config,
        device=device,
        preprocessing=preprocessing,
        splits=splits,
        train_loader=train_loader,
        steps_per_epoch=steps_per_epoch,
        tokens=tokens,
        next_tokens=next_tokens,
        model=model,
        criterion=criterion,
    )


def listed(names: list[str]) -> str:
    """A few of them, and how many more."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
