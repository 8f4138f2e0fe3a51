"""Checks of your data and your model that take seconds, before a run that takes hours.

Usage:
    python check.py                     exit status 1 if something is wrong
    python check.py --data-dir mine     it takes the flags of train.py
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from textwrap import shorten

import torch
import tyro
from torch import Tensor, nn

from batches import BadData, training_loader
from checkpoint import load_weights
from config import Config
from data import Preprocessing, Rows, read_table
from evaluate import make_criterion
from model import make_model
from train import seed_all

# "ok", "warning" or "wrong", and one line: what was seen, why it matters, what to do.
Finding = tuple[str, str]


@dataclass
class Project:
    """Your data and your model as train.py puts them together, and the first batch of the first epoch."""

    config: Config
    device: torch.device
    preprocessing: Preprocessing
    train_set: Rows
    steps_per_epoch: int
    indices: list[int]  # of the rows in the batch
    features: Tensor
    targets: Tensor
    model: nn.Module

    @cached_property
    def predictions(self) -> Tensor:
        """As the first step sees them: dropout on."""
        self.model.train()
        features = self.features.to(self.device)
        with torch.no_grad():
            return self.model(features).float().cpu()


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
    train_set = Rows(config, "train", preprocessing)
    Rows(config, "val", preprocessing)  # what cannot be read there should not wait for the first evaluation
    train_loader = training_loader(train_set, config)
    steps_per_epoch = len(train_loader)
    key = next(iter(train_loader.sampler))
    try:
        features, targets = train_set[key]
    except BadData as error:
        raise SystemExit(str(error)) from None
    model = make_model(preprocessing).to(device)
    if config.init_from:
        load_weights(config.init_from, model)
    return Project(config, device, preprocessing, train_set, steps_per_epoch, key[1], features, targets, model)


def one_sample(project: Project) -> Iterator[Finding]:
    """A row as the file has it and as the model sees it: only a person sees whether they belong together."""
    file, index = project.config.data_dir / "train.csv", project.indices[0]
    cells = ", ".join(f"{name} {cell}" for name, cell in read_table(file).iloc[index].items())
    yield "ok", f"line {index + 2} of {file}: {shorten(cells, 400, placeholder=' …')}"
    features = " ".join(f"{feature:.3g}" for feature in project.features[0].tolist())
    mean, std = project.preprocessing.target_mean, project.preprocessing.target_std
    target = f"{project.targets[0]:.3g}, which is {project.targets[0] * std + mean:.6g}"
    yield "ok", f"the model sees it as {shorten(features, 400, placeholder=' …')} and is to say {target}"


def one_batch(project: Project) -> Iterator[Finding]:
    """Shapes, types and ranges."""
    features = project.features
    seen = described("features", features)
    if features.dtype != torch.float32:
        yield "wrong", f"{seen}: the model's weights are float32, and features must be; convert them in data.py"
    elif not features.isfinite().all():
        yield "wrong", f"{seen}: NaN or infinity would go from here into every weight; look for it in the data"
    elif features.abs().max() > 20:
        yield "warning", f"{seen}: large numbers make for large, unsteady steps; scale them in data.py"
    else:
        yield "ok", seen

    targets = project.targets
    seen = described("targets", targets)
    if targets.dtype != torch.float32 or targets.shape != (len(features),):
        yield "wrong", f"{seen}: the loss takes targets (N,) of type float32; correct them in data.py"
    elif not targets.isfinite().all():
        yield "wrong", f"{seen}: NaN or infinity would go from here into every weight; look for it in the data"
    elif targets.abs().mean() > 10:
        yield "warning", f"{seen}: far from 0, and the model starts there; scale them in data.py"
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
        shape = tuple(project.predictions.shape)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        reason = " ".join(str(error).split())
        yield "wrong", f"the model does not take the batch ({reason}); correct model.py, or the shapes in data.py"
        return
    expected = tuple(project.targets.shape)
    if shape != expected:
        seen = f"predictions {shape} for targets {expected}"
        yield "wrong", f"{seen}: model.py must give (N,); even (N, 1) would be compared with targets as N × N pairs"
    elif not project.predictions.isfinite().all():
        yield "wrong", "NaN or infinity in the predictions, none in the batch: look for where in model.py"
    else:
        of_them = "" if trained == n_parameters else f", of which {trained:,} are trained"
        yield "ok", f"predictions {shape} from {n_parameters:,} parameters{of_them}"


def first_loss(project: Project) -> Iterator[Finding]:
    """Before the first step a model knows nothing, and the loss of knowing nothing is known."""
    predictions, targets = project.predictions, project.targets
    criterion = make_criterion()
    loss = criterion(predictions, targets) / len(targets)
    expected = criterion(torch.zeros_like(predictions), targets) / len(targets)
    halves = zip(predictions.chunk(2), targets.chunk(2), strict=True)
    added = sum(criterion(*half) for half in halves) / len(targets)
    seen = f"loss {loss:.4f} before the first step; a model that always says the mean has {expected:.4f}"
    if not torch.isclose(added, loss, rtol=1e-3):
        yield "wrong", f"loss {loss:.4f}, {added:.4f} by its halves: train.py divides sums; give the loss reduction sum"
    elif loss > 5 * expected:
        yield "warning", f"{seen}: too large predictions; scale the input or the last layer's weights"
    elif loss < 0.5 * expected and not project.config.init_from:
        yield "warning", f"{seen}: it seems to know the answer; is that part of the input?"
    else:
        yield "ok", seen


def learning_rate(project: Project) -> Iterator[Finding]:
    """How many steps it has to work with, and how high it comes."""
    config = project.config
    total = config.epochs * project.steps_per_epoch
    yield "ok", f"{total:,} steps, at a learning rate of {config.lr:g} until val_loss stops improving"


def described(name: str, tensor: Tensor) -> str:
    low, high = tensor.aminmax()
    return f"{name} {tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')} from {low:.4g} to {high:.4g}"


if __name__ == "__main__":
    check(tyro.cli(Config))
