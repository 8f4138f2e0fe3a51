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
        self.epoch = [0.0, 0]  # the loss of all images, and their number
        self.interval = [0.0, 0]

    def add(self, loss_sum: Tensor, count: int) -> None:
        """One optimizer step: its loss, summed over `count` images."""
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
        """Mean over the epoch so far: every one of the images counts the same, whatever its batch."""
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
    """Accuracy and F1 of logits (N, n_classes) against labels (N,), from one confusion matrix over all images."""

    def __init__(self, preprocessing: Preprocessing, device: torch.device) -> None:
        self.classes = preprocessing.classes
        n = len(self.classes)
        self.confusion = torch.zeros(n * n, dtype=torch.int64, device=device)  # row: label; column: prediction

    def update(self, logits: Tensor, labels: Tensor) -> None:
        cells = labels * len(self.classes) + logits.argmax(dim=1)
        self.confusion.index_add_(0, cells, torch.ones_like(cells))  # bincount() would wait for the device

    def compute(self) -> dict[str, float]:
        """The first is the one that decides which checkpoint is best, where that is not the loss."""
        counts = self._counts()
        right, total = counts.diagonal().sum(), counts.sum()
        present = [f1 for *_, f1, support, predicted in self._rows() if support + predicted]
        return {"accuracy": (right / total).item(), "macro_f1": sum(present) / len(present)}

    def table(self) -> list[str]:
        """A line per class, for evaluate.py."""
        lines = [f"{'class':20} precision  recall      f1  images"]
        for name, precision, recall, f1, support, _ in self._rows():
            lines.append(f"{name:20} {precision:9.4f} {recall:7.4f} {f1:7.4f}  {support:6}")
        return lines

    def _counts(self) -> Tensor:
        n = len(self.classes)
        return self.confusion.cpu().double().view(n, n)

    def _rows(self) -> list[tuple[str, float, float, float, int, int]]:
        counts = self._counts()
        hits, supports, predictions = counts.diagonal().tolist(), counts.sum(1).tolist(), counts.sum(0).tolist()
        return [
            (
                name,
                hit / max(predicted, 1),
                hit / max(support, 1),
                2 * hit / max(support + predicted, 1),
                int(support),
                int(predicted),
            )
            for name, hit, support, predicted in zip(self.classes, hits, supports, predictions, strict=True)
        ]
