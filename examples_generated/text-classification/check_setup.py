"""Your data and your model as train.py puts them together, for check.py."""

import os
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from batches import BadData, Loader, training_loader
from checkpoint import load_weights
from config import Config
from data import Preprocessing, Texts
from evaluate import make_criterion
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
    splits: dict[str, Texts]  # train and val
    train_loader: Loader
    steps_per_epoch: int
    indices: list[int]  # of the texts in the batch
    tokens: dict[str, Tensor]
    labels: Tensor
    model: nn.Module
    criterion: nn.Module
    logits: Tensor = field(init=False)  # of the batch, once the model has been given it
    uses: dict[nn.Parameter, bool] = field(init=False)  # in that forward pass; whether torch keeps track of them

    def outputs_of(self, model: nn.Module, tokens: dict[str, Tensor]) -> Tensor:
        """The logits, in the precision of train.py."""
        tokens = {name: tensor.to(self.device) for name, tensor in tokens.items()}
        with torch.autocast(self.device.type, dtype=torch.float16):
            return model(**tokens)

    def loss_of(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The mean over the texts, as train.py divides it."""
        labels = labels.to(logits.device)
        with torch.autocast(self.device.type, dtype=torch.float16):
            return self.criterion(logits, labels) / len(labels)


def put_together(config: Config) -> Project:
    seed_all(config.seed)
    if config.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    preprocessing = Preprocessing.fit(config)
    splits = {split: Texts(config, split, preprocessing) for split in ("train", "val")}
    train_set = splits["train"]
    train_loader = training_loader(train_set, config)
    steps_per_epoch = len(train_loader)
    key = next(iter(train_loader.sampler))
    try:
        tokens, labels = train_set[key]
    except BadData as error:
        raise SystemExit(str(error)) from None
    model = make_model(preprocessing)
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
        indices=key[1],
        tokens=tokens,
        labels=labels,
        model=model,
        criterion=criterion,
    )


def listed(names: list[str]) -> str:
    """A few of them, and how many more."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
