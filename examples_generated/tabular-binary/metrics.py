"""Sums that stay on the device until they are read."""

import math
from typing import Any

import torch
from torch import Tensor

from data import Preprocessing


class NonFiniteLoss(Exception):
    """A training loss was infinite or NaN, `steps_ago` optimizer steps ago."""

    def __init__(self, steps_ago: int) -> None:
        super().__init__(f"{steps_ago} steps ago")
        self.steps_ago = steps_ago


class TrainLoss:
    """The training loss, as sums over the epoch and since the last line of metrics.jsonl.

    A step hands over its loss as a tensor, unread: item() would make the CPU wait for the device at every step.
    They are read together, and added in double precision.
    """

    def __init__(self) -> None:
        self.unread: list[tuple[Tensor, int]] = []
        self.epoch = [0.0, 0]  # the loss of all rows, and their number
        self.interval = [0.0, 0]

    def add(self, loss_sum: Tensor, count: int) -> None:
        """One optimizer step: its loss, summed over `count` rows."""
        self.unread.append((loss_sum.detach(), count))  # detach() lets go of the graph

    def read(self) -> None:
        """Wait for the device and take in the losses of all steps up to here."""
        if not self.unread:
            return
        losses = torch.stack([loss for loss, _ in self.unread]).tolist()
        for i, (loss, (_, count)) in enumerate(zip(losses, self.unread, strict=True)):
            if not math.isfinite(loss):
                raise NonFiniteLoss(steps_ago=len(losses) - 1 - i)
            for sums in (self.epoch, self.interval):
                sums[0] += loss
                sums[1] += count
        self.unread.clear()

    def of_interval(self) -> float:
        """Mean since this was last asked for."""
        self.read()
        (total, count), self.interval = self.interval, [0.0, 0]
        return total / count

    def of_epoch(self) -> float:
        """Mean over the epoch so far: every one of the rows counts the same, whatever its batch."""
        self.read()
        return self.epoch[0] / self.epoch[1]

    def start_epoch(self) -> None:
        self.epoch = [0.0, 0]

    def state_dict(self) -> dict[str, Any]:
        self.read()
        return {"epoch": self.epoch, "interval": self.interval}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.interval = list(state["epoch"]), list(state["interval"])


class Metrics:
    """Accuracy, F1 and AUROC of logits (N,) against labels (N,), 0 or 1."""

    def __init__(self, preprocessing: Preprocessing, device: torch.device) -> None:
        from torchmetrics.classification import BinaryAUROC  # here, since importing it takes seconds

        self.classes = preprocessing.classes
        self.confusion = torch.zeros(4, dtype=torch.int64, device=device)  # 2 × label + prediction
        self.auroc = BinaryAUROC(validate_args=False).to(device)

    def update(self, logits: Tensor, labels: Tensor) -> None:
        labels = labels.long()
        cells = 2 * labels + (logits > 0)  # a logit above 0 is a probability above one half
        self.confusion.index_add_(0, cells, torch.ones_like(cells))
        self.auroc.update(logits.float().sigmoid(), labels)

    def compute(self) -> dict[str, float]:
        """The first is the one that decides which checkpoint is best, where that is not the loss."""
        (true_negative, false_positive), (false_negative, true_positive) = self._counts()
        right, wrong = true_positive + true_negative, false_positive + false_negative
        both_classes = true_positive + false_negative and true_negative + false_positive
        return {
            "accuracy": right / (right + wrong),
            "f1": 2 * true_positive / max(2 * true_positive + wrong, 1),
            "auroc": self.auroc.compute().item() if both_classes else math.nan,  # not defined for one class alone
        }

    def table(self) -> list[str]:
        """A line per class, for evaluate.py."""
        counts = self._counts()
        lines = [f"{'class':20} precision  recall  rows"]
        for i, name in enumerate(self.classes):
            support, predicted = sum(counts[i]), counts[0][i] + counts[1][i]
            precision, recall = counts[i][i] / max(predicted, 1), counts[i][i] / max(support, 1)
            lines.append(f"{name:20} {precision:9.4f} {recall:7.4f}  {support:4}")
        return lines

    def _counts(self) -> list[list[int]]:
        return self.confusion.view(2, 2).tolist()
