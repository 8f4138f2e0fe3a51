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
    """MAE, RMSE and R² of predictions (N,) against targets (N,), in the target's own unit."""

    def __init__(self, preprocessing: Preprocessing, device: torch.device) -> None:
        self.scale = preprocessing.target_std
        self.unread: list[Tensor] = []

    def update(self, predictions: Tensor, targets: Tensor) -> None:
        error = predictions.float() - targets
        count = torch.full((), len(targets), device=targets.device)
        self.unread.append(
            torch.stack([error.abs().sum(), error.square().sum(), targets.sum(), targets.square().sum(), count])
        )

    def compute(self) -> dict[str, float]:
        """The first is the one that decides which checkpoint is best, where that is not the loss."""
        # Added in double precision, on the CPU: not every device has it.
        absolute, squared, total, total_squared, count = torch.stack(self.unread).cpu().double().sum(0).tolist()
        around_mean = total_squared - total**2 / count
        return {
            "mae": self.scale * absolute / count,
            "rmse": self.scale * math.sqrt(squared / count),
            "r2": 1 - squared / around_mean if around_mean > 1e-6 * total_squared else math.nan,
        }
