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
from tokenizers import Tokenizer
from torch import Tensor, nn

from batches import BadData, training_loader
from checkpoint import load_weights
from config import Config
from data import Preprocessing, Texts, read_table
from evaluate import make_criterion
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
    train_set: Texts
    steps_per_epoch: int
    indices: list[int]  # of the texts in the batch
    tokens: dict[str, Tensor]
    labels: Tensor
    model: nn.Module

    @cached_property
    def logits(self) -> Tensor:
        """As the first step sees them: dropout on."""
        self.model.train()
        tokens = {name: tensor.to(self.device) for name, tensor in self.tokens.items()}
        with torch.no_grad(), torch.autocast(self.device.type, dtype=torch.float16):
            return self.model(**tokens).float().cpu()


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
    train_set = Texts(config, "train", preprocessing)
    Texts(config, "val", preprocessing)  # what cannot be read there should not wait for the first evaluation
    train_loader = training_loader(train_set, config)
    steps_per_epoch = len(train_loader)
    key = next(iter(train_loader.sampler))
    try:
        tokens, labels = train_set[key]
    except BadData as error:
        raise SystemExit(str(error)) from None
    model = make_model(preprocessing).to(device)
    if config.init_from:
        load_weights(config.init_from, model)
    return Project(config, device, preprocessing, train_set, steps_per_epoch, key[1], tokens, labels, model)


def one_sample(project: Project) -> Iterator[Finding]:
    """A text as the file has it and as the model sees it: only a person sees whether they belong together."""
    file, index = project.config.data_dir / "train.csv", project.indices[0]
    yield "ok", f"row {index + 1} of {file}: {shorten(read_table(file)['text'][index], 200, placeholder=' …')}"
    ids = project.tokens["input_ids"][0][project.tokens["attention_mask"][0].bool()].tolist()
    tokenizer = Tokenizer.from_str(project.preprocessing.tokenizer)
    tokens = "|".join(" ".join(tokenizer.decode([token]).split("\n")) for token in ids[:40])
    label = project.preprocessing.classes[int(project.labels[0])]
    yield "ok", f"the model sees its {len(ids)} tokens {tokens}{' …' if len(ids) > 40 else ''} and is to say {label}"


def one_batch(project: Project) -> Iterator[Finding]:
    """Shapes, types and ranges."""
    ids, mask = project.tokens["input_ids"], project.tokens["attention_mask"]
    seen = described("input_ids", ids)
    if ids.dtype != torch.int64 or ids.ndim != 2:
        yield "wrong", f"{seen}: the model takes token numbers (N, T) of type int64; correct them in data.py"
    elif mask.shape != ids.shape or not mask.bool().any(dim=1).all():
        yield "wrong", f"{seen}: attention_mask must have that shape, and a token in every text; correct it in data.py"
    else:
        yield "ok", seen

    labels = project.labels
    seen = described("labels", labels)
    n_classes = len(project.preprocessing.classes)
    if labels.dtype != torch.int64 or labels.shape != (len(ids),):
        yield "wrong", f"{seen}: the loss takes class numbers (N,) of type int64; correct them in data.py"
    elif labels.min() < 0 or labels.max() >= n_classes:
        yield "wrong", f"{seen}: {n_classes} classes have the numbers 0 to {n_classes - 1}; correct them in data.py"
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
    expected = (len(project.labels), len(project.preprocessing.classes))
    if shape != expected:
        yield "wrong", f"logits {shape}, but the loss takes {expected} with the labels; correct model.py"
    elif not project.logits.isfinite().all():
        yield "wrong", "NaN or infinity in the logits, none in the batch: look for where in model.py"
    else:
        of_them = "" if trained == n_parameters else f", of which {trained:,} are trained"
        yield "ok", f"logits {shape} from {n_parameters:,} parameters{of_them}"


def first_loss(project: Project) -> Iterator[Finding]:
    """Before the first step a model knows nothing, and the loss of knowing nothing is known."""
    logits, labels = project.logits, project.labels
    criterion = make_criterion()
    loss = criterion(logits, labels) / len(labels)
    expected = criterion(torch.zeros_like(logits), labels) / len(labels)
    halves = zip(logits.chunk(2), labels.chunk(2), strict=True)
    added = sum(criterion(*half) for half in halves) / len(labels)
    seen = f"loss {loss:.4f} before the first step; a model that holds all classes equally likely has {expected:.4f}"
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
