"""Loss and metrics of a checkpoint.

Usage:
    python evaluate.py --checkpoint runs/default/best.pt
    python evaluate.py --checkpoint runs/default/best.pt --split test
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import tyro
from torch import Tensor, nn

from batches import evaluation_loader
from checkpoint import load_model, read_checkpoint, saved_preprocessing
from config import Config
from data import Preprocessing, Rows
from metrics import Metrics
from model import make_model
from run_folder import config_of
from stopping import end_with_the_reader


@torch.inference_mode()  # no graph: less memory and less time
def evaluate(
    model: nn.Module, batches: Iterable[Any], criterion: nn.Module, metrics: Metrics, device: torch.device
) -> dict[str, float]:
    """The mean loss and the `metrics` over all `batches`. Leaves the model in evaluation mode."""
    model.eval()  # dropout off: inference_mode() does not do that
    losses, count = [], 0
    for features, labels in batches:
        features = features.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        logits = model(features)
        losses.append(criterion(logits, labels))
        count += len(labels)
        metrics.update(logits, labels)
    # Sums, divided once: a mean of the batches' means would give the small last batch too much weight.
    return {"loss": sum(torch.stack(losses).tolist()) / count, **metrics.compute()}


def make_criterion(pos_weight: Tensor) -> nn.Module:
    """The loss of a batch as a sum: who calls it divides once, by the number of labels in the step."""
    return nn.BCEWithLogitsLoss(pos_weight=pos_weight, reduction="sum")


def pos_weight(labels: Tensor) -> Tensor:
    """How many times a yes counts: so that yes and no weigh the same in sum, however rare a yes is."""
    positives = labels.sum(dim=0, keepdim=True)
    return (len(labels) - positives) / positives.clamp(min=1)


@dataclass(frozen=True, kw_only=True)
class Arguments:
    checkpoint: Path = Path("runs/default/best.pt")
    """What train.py wrote: best.pt to use, last.pt to go on from."""
    data_dir: Path = Config.data_dir
    """Folder with the split."""
    split: str = "val"
    """Which part of the data: val, test or train."""


def main(arguments: Arguments) -> None:
    checkpoint = read_checkpoint(arguments.checkpoint)
    config = config_of(checkpoint, arguments.data_dir)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    preprocessing = saved_preprocessing(arguments.checkpoint, checkpoint, Preprocessing)
    loader = evaluation_loader(Rows(config, arguments.split, preprocessing), config)

    model = make_model(preprocessing).to(device)
    load_model(arguments.checkpoint, checkpoint, model)
    criterion = make_criterion(torch.ones(1)).to(device)
    criterion.load_state_dict(checkpoint["criterion"])  # the weights that were counted in training
    metrics = Metrics(preprocessing, device)
    values = evaluate(model, loader, criterion, metrics, device)
    end_with_the_reader()  # not before: a broken pipe to a worker must be an error
    for name, value in values.items():
        print(f"{arguments.split}_{name} {value:.6f}")
    print()
    print("\n".join(metrics.table()))


if __name__ == "__main__":
    main(tyro.cli(Arguments))
